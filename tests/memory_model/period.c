/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_model/period.h"

#include "tests/shard/models.h"

static const struct weft_period_rule plain_period = {.n_micro = 1, .group = 1};

static struct weft_shards *shard(const struct weft_model *model)
{
    struct weft_block_rule rule = {.blocks = 1};
    struct weft_shards *shards = NULL;
    cr_assert_eq(weft_shards_create(model, 2, &rule, &shards, NULL), WEFT_OK);
    return shards;
}

static void check_slots(const struct weft_period *period, const char *const *expected)
{
    static const char letters[WEFT_SLOT_KIND_COUNT] = {'U', 'f', 'F', 'B', 'd', 'n', 'o'};
    int32_t s = 0;
    for (; expected[s] != NULL; s++) {
        cr_assert_lt(s, period->n_slots);
        cr_assert_eq(letters[period->slots[s].kind], expected[s][0], "slot %d", s);
        int32_t index = expected[s][1] == '\0' ? -1 : expected[s][1] - '0';
        cr_assert_eq(period->slots[s].index, index, "slot %d", s);
    }
    cr_assert_eq(period->n_slots, s);
}

static void check_uses(const struct weft_period *period, int32_t unit, int32_t n,
                       const int32_t *uses)
{
    cr_assert_eq(period->n_uses[unit], n, "unit %d", unit);
    for (int32_t i = 0; i < n; i++)
        cr_assert_eq(period->uses[unit][i], uses[i], "unit %d, use %d", unit, i);
}

Test(period, goes_up_and_down_the_layers)
{
    struct weft_model *model = make_tied_model(false);
    struct weft_shards *shards = shard(model);
    struct weft_period *period = NULL;
    cr_assert_eq(weft_period_create(model, shards, &plain_period, &period, NULL), WEFT_OK);
    /*                              0     1     2     3     4    5     6     7     8 */
    const char *const expected[] = {"U0", "U1", "U2", "U3", "f", "F0", "F1", "F2", "F3",
                                    /* 9  10    11    12    13   14 */
                                    "B3", "B2", "B1", "B0", "d", "n", NULL};
    check_slots(period, expected);
    cr_assert_eq(period->fill, 4);
    cr_assert_eq(period->drain, 13);
    cr_assert_eq(period->norm, 14);
    for (int32_t l = 0; l < 4; l++) {
        cr_assert_eq(period->forward[l], 5 + l);
        cr_assert_eq(period->backward[l], 12 - l);
        cr_assert_eq(period->update[l], l);
    }
    /* Tied tokens: both forwards, and the head's backward alone. Positions: forward alone. */
    check_uses(period, 0, 3, (const int32_t[]){5, 8, 9});
    check_uses(period, 1, 1, (const int32_t[]){5});
    check_uses(period, 2, 2, (const int32_t[]){6, 11});
    check_uses(period, 3, 2, (const int32_t[]){7, 10});
    cr_assert_eq(period->first_gradient[0], 9, "the head's backward adds to it first");
    cr_assert_eq(period->last_gradient[0], 12, "the embedding's last");
    cr_assert_eq(period->first_gradient[2], 11);
    cr_assert_eq(period->last_gradient[2], 11);
    weft_period_destroy(period);
    weft_shards_destroy(shards);
    weft_model_destroy(model);
}

Test(period, updates_in_backward_come_so_many_layers_after_their_own)
{
    struct weft_period_rule rule = plain_period;
    struct weft_model *model = make_tied_model(false);
    struct weft_shards *shards = shard(model);
    struct weft_period *period = NULL;
    rule.update_after = rule.update_ahead = 1;
    rule.offloaded = true;
    cr_assert_not(weft_period_is_rule(&rule), "it is rotated");
    rule.rotated = true;
    cr_assert_eq(weft_period_create(model, shards, &rule, &period, NULL), WEFT_OK);
    /* Tied tokens and positions have no layer before theirs. 0     1     2     3     4     5 */
    const char *const expected[] = {"B3", "B2", "B1", "U3", "B0", "U2",
                                    /* 6  7    8    9   10    11    12    13   14 */
                                    "d", "U0", "U1", "f", "F0", "F1", "F2", "F3", "n", NULL};
    check_slots(period, expected);
    cr_assert(!weft_period_norms(&rule) && !weft_period_opens(&rule));
    for (int32_t at = 0; at < weft_period_frame(&rule, 4); at++)
        cr_assert_eq(weft_period_takes_update(&rule, 4, at), at >= 1 && at <= 9, "%d", at);
    weft_period_destroy(period);
    rule.update_after = 2;
    rule.n_micro = rule.group = 2;
    rule.layers = 1;
    cr_assert_eq(weft_period_create(model, shards, &rule, &period, NULL), WEFT_OK);
    const char *const turns[] = {"B3", "B2", "B2", "B1", "B1", "B0", "B0", "U3",
                                 "d",  "U0", "U1", "U2", "f",  "F0", "F0", "F1",
                                 "F1", "F2", "F2", "F3", "B3", "F3", "n",  NULL};
    check_slots(period, turns);
    weft_period_destroy(period);
    rule.delayed = true;
    cr_assert_not(weft_period_is_rule(&rule), "a delayed update has a place of its own");
    rule.delayed = false;
    rule.every = 2;
    cr_assert_not(weft_period_is_rule(&rule), "nodes wait for averages of whole updates");
    weft_shards_destroy(shards);
    weft_model_destroy(model);
}

Test(period, a_delayed_update_follows_its_units_last_backward)
{
    struct weft_period_rule rule = plain_period;
    struct weft_model *model = make_tied_model(false);
    struct weft_shards *shards = shard(model);
    struct weft_period *period = NULL;
    rule.delayed = true;
    cr_assert_not(weft_period_is_rule(&rule), "it is rotated");
    rule.rotated = true;
    rule.update_ahead = 2; /* changes nothing */
    cr_assert_eq(weft_period_create(model, shards, &rule, &period, NULL), WEFT_OK);
    /*                              0     1     2     3     4     5     6     7 */
    const char *const expected[] = {"B3", "B2", "U3", "B1", "U2", "B0", "U1", "U0",
                                    /* 8 9  10    11    12    13   14 */
                                    "d", "f", "F0", "F1", "F2", "F3", "n", NULL};
    check_slots(period, expected);
    cr_assert_eq(period->last_gradient[0], 5, "of tied tokens: the embedding's");
    cr_assert_eq(period->update[0], 7);
    cr_assert(weft_period_norms(&rule));
    for (int32_t at = 0; at < weft_period_frame(&rule, 4); at++)
        cr_assert_eq(weft_period_takes_update(&rule, 4, at), at >= 1 && at <= 4, "%d", at);
    weft_period_destroy(period);
    rule.n_micro = rule.group = 2;
    cr_assert(weft_period_is_rule(&rule));
    rule.group = 1;
    cr_assert_not(weft_period_is_rule(&rule), "the slice is in use");
    rule.group = 2;
    rule.offloaded = true;
    cr_assert_not(weft_period_is_rule(&rule), "state stays on the device");
    weft_shards_destroy(shards);
    weft_model_destroy(model);
}

Test(period, frozen_units_have_no_update_and_no_gradient)
{
    struct weft_model *model = make_tied_model(true);
    struct weft_shards *shards = shard(model);
    struct weft_period *period = NULL;
    cr_assert_eq(weft_period_create(model, shards, &plain_period, &period, NULL), WEFT_OK);
    const char *const expected[] = {"U2", "U3", "f",  "F0", "F1", "F2", "F3",
                                    "B3", "B2", "B1", "B0", "d",  "n",  NULL};
    check_slots(period, expected);
    for (int32_t u = 0; u < 2; u++) {
        cr_assert_eq(period->update[u], -1);
        cr_assert_eq(period->first_gradient[u], -1);
        cr_assert_eq(period->last_gradient[u], -1);
    }
    check_uses(period, 0, 3, (const int32_t[]){3, 6, 7});
    cr_assert_eq(period->update[2], 0);
    weft_period_destroy(period);
    weft_shards_destroy(shards);
    weft_model_destroy(model);
}

Test(period, slots_have_names)
{
    cr_assert_str_eq(weft_slot_kind_name(WEFT_SLOT_UPDATE), "update");
    cr_assert_str_eq(weft_slot_kind_name(WEFT_SLOT_NORM), "norm");
    for (int k = 0; k < WEFT_SLOT_KIND_COUNT; k++)
        cr_assert_not_null(weft_slot_kind_name((enum weft_slot_kind)k));
}

static struct weft_period *create(const struct weft_model *model, const struct weft_shards *shards,
                                  const struct weft_period_rule *rule)
{
    struct weft_period *period = NULL;
    struct weft_error err = {0};
    enum weft_status status = weft_period_create(model, shards, rule, &period, &err);
    cr_assert_eq(status, WEFT_OK, "%s", err.text);
    return period;
}

Test(period, repeats_forward_and_backward)
{
    struct weft_model *model = make_tied_model(false);
    struct weft_shards *shards = shard(model);
    struct weft_period_rule rule = {.n_micro = 2, .group = 1};
    struct weft_period *period = create(model, shards, &rule);
    const char *const expected[] = {"U0", "U1", "U2", "U3", "f",  "F0", "F1", "F2",
                                    "F3", "B3", "B2", "B1", "B0", "F0", "F1", "F2",
                                    "F3", "B3", "B2", "B1", "B0", "d",  "n",  NULL};
    check_slots(period, expected);
    for (int32_t s = 0; s < period->n_slots; s++)
        cr_assert_eq(period->slots[s].micro, s >= 13 && s <= 20, "slot %d", s);
    check_uses(period, 2, 4, (const int32_t[]){6, 11, 14, 19});
    cr_assert_eq(period->first_gradient[0], 9);
    cr_assert_eq(period->last_gradient[0], 12);
    cr_assert_eq(period->first_gradient[4], 17, "of the second micro-step");
    cr_assert_eq(period->last_gradient[4], 20);
    cr_assert_eq(weft_period_reductions(&rule), 2);
    rule.group = 2;
    cr_assert_eq(weft_period_reductions(&rule), 1);
    cr_assert_eq(weft_period_round_end(&rule, 0), 1);
    weft_period_destroy(period);
    weft_shards_destroy(shards);
    weft_model_destroy(model);
}

Test(period, begins_behind_the_last_forward_without_clipping)
{
    struct weft_model *model = make_tied_model(false);
    struct weft_shards *shards = shard(model);
    struct weft_period_rule rule = {.n_micro = 2, .group = 2, .rotated = true, .update_ahead = 1};
    struct weft_period *period = create(model, shards, &rule);
    /*                              0     1     2     3     4    5     6     7     8     9 */
    const char *const expected[] = {"B3", "B2", "B1", "B0", "d", "U0", "U1", "U2", "f", "F0",
                                    /* 10 11    12    13    14    15    16    17 */
                                    "U3", "F1", "F2", "F3", "B3", "B2", "B1", "B0",
                                    /* 18 19    20    21    22 */
                                    "F0", "F1", "F2", "F3", "n", NULL};
    check_slots(period, expected);
    cr_assert_eq(period->slots[0].micro, 1, "of the step that the last period began");
    cr_assert_eq(period->slots[9].micro, 0);
    cr_assert_eq(period->slots[18].micro, 1);
    cr_assert_eq(period->norm, 22);
    cr_assert_eq(period->drain, 4);
    /* In order of time within a step, which ends in the next period. */
    check_uses(period, 3, 4, (const int32_t[]){12, 15, 20, 1});
    cr_assert_eq(period->last_gradient[4 + 3], 1);
    for (int32_t at = 0; at < weft_period_frame(&rule, 4); at++) {
        bool takes = weft_period_takes_update(&rule, 4, at);
        cr_assert_eq(takes, at >= 5 && at <= 9, "slot %d of the frame", at);
    }
    weft_period_destroy(period);
    rule.update_ahead = 4;
    period = create(model, shards, &rule);
    cr_assert_eq(period->update[3], 8, "all units are updated before the first forward");
    cr_assert_eq(period->fill, 9);
    weft_period_destroy(period);
    weft_shards_destroy(shards);
    weft_model_destroy(model);
}

/* The micro-steps of slots with layers, in order; -1 ends the list. */
static void check_micro_steps(const struct weft_period *period, const int32_t *expected)
{
    for (int32_t s = 0; s < period->n_slots; s++)
        if (period->slots[s].kind == WEFT_SLOT_FORWARD ||
            period->slots[s].kind == WEFT_SLOT_BACKWARD)
            cr_assert_eq(period->slots[s].micro, *expected++, "slot %d", s);
    cr_assert_eq(*expected, -1);
}

Test(period, micro_steps_take_turns_by_layers)
{
    struct weft_model *model = make_tied_model(false);
    struct weft_shards *shards = shard(model);
    struct weft_period_rule rule = {.n_micro = 2, .group = 2, .layers = 1};
    struct weft_period *period = create(model, shards, &rule);
    /*                              0     1     2     3     4    5     6     7     8     9 */
    const char *const expected[] = {"U0", "U1", "U2", "U3", "f", "F0", "F0", "F1", "F1", "F2",
                                    /* 10 11    12    13    14    15    16    17 */
                                    "F2", "F3", "B3", "F3", "B3", "B2", "B2", "B1",
                                    /* 18 19    20    21   22 */
                                    "B1", "B0", "B0", "d", "n", NULL};
    check_slots(period, expected);
    check_micro_steps(period,
                      (const int32_t[]){0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 1, 0, 1, 0, 1, -1});
    check_uses(period, 2, 4, (const int32_t[]){7, 8, 17, 18});
    cr_assert_eq(period->first_gradient[0], 12, "of tied tokens: the head's first");
    cr_assert_eq(period->last_gradient[4], 20, "the embedding's last");
    cr_assert(weft_period_in_one_pass(period, 9, 10));
    cr_assert_not(weft_period_in_one_pass(period, 10, 15), "forward and backward are apart");
    cr_assert(weft_period_in_one_pass(period, 11, 14), "but at the turn");
    cr_assert_not(weft_period_in_one_pass(period, 6, 7), "two groups");
    cr_assert_eq(weft_period_places(&rule), 2);
    weft_period_destroy(period);
    rule.layers = 3; /* F0 F1 F2 twice, the turn, B2 B1 B0 twice */
    period = create(model, shards, &rule);
    const char *const grouped[] = {"U0", "U1", "U2", "U3", "f",  "F0", "F1", "F2",
                                   "F0", "F1", "F2", "F3", "B3", "F3", "B3", "B2",
                                   "B1", "B0", "B2", "B1", "B0", "d",  "n",  NULL};
    check_slots(period, grouped);
    check_micro_steps(period,
                      (const int32_t[]){0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1, -1});
    check_uses(period, 2, 4, (const int32_t[]){6, 9, 16, 19});
    cr_assert(weft_period_in_one_pass(period, 6, 9));
    weft_period_destroy(period);
    weft_shards_destroy(shards);
    weft_model_destroy(model);
}

Test(period, turns_begin_behind_the_last_forward_without_clipping)
{
    struct weft_model *model = make_tied_model(false);
    struct weft_shards *shards = shard(model);
    struct weft_period_rule rule = {
        .n_micro = 2, .group = 2, .layers = 1, .rotated = true, .update_ahead = 1};
    struct weft_period *period = create(model, shards, &rule);
    /*                              0     1     2     3     4     5     6     7    8     9 */
    const char *const expected[] = {"B3", "B2", "B2", "B1", "B1", "B0", "B0", "d", "U0", "U1",
                                    /* 10 11   12    13    14    15    16    17    18 */
                                    "U2", "f", "F0", "F0", "U3", "F1", "F1", "F2", "F2",
                                    /* 19 20    21    22 */
                                    "F3", "B3", "F3", "n", NULL};
    check_slots(period, expected);
    check_micro_steps(period,
                      (const int32_t[]){1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, -1});
    check_uses(period, 2, 4, (const int32_t[]){15, 16, 3, 4});
    cr_assert_eq(period->first_gradient[0], 20);
    cr_assert_eq(period->last_gradient[4], 6);
    for (int32_t at = 0; at < weft_period_frame(&rule, 4); at++)
        cr_assert_eq(weft_period_takes_update(&rule, 4, at), at >= 8 && at <= 15, "%d", at);
    weft_period_destroy(period);
    rule.delayed = true; /* U directly after the unit's last backward */
    period = create(model, shards, &rule);
    const char *const delayed[] = {"B3", "B2", "B2", "U3", "B1", "B1", "U2", "B0",
                                   "B0", "U1", "U0", "d",  "f",  "F0", "F0", "F1",
                                   "F1", "F2", "F2", "F3", "B3", "F3", "n",  NULL};
    check_slots(period, delayed);
    weft_period_destroy(period);
    weft_shards_destroy(shards);
    weft_model_destroy(model);
}

Test(period, refuses_rules_that_are_none)
{
    static const struct weft_period_rule rules[] = {
        {.n_micro = 0, .group = 1},
        {.n_micro = 2, .group = 0},
        {.n_micro = 3, .group = 2},
        {.n_micro = 1, .group = 1, .rotated = true},
        {.n_micro = 1, .group = 1, .update_ahead = 1},
        {.n_micro = 1, .group = 1, .layers = 1},
        {.n_micro = 2, .group = 1, .layers = 1},
        {.n_micro = 2, .group = 2, .layers = -1},
        {.n_micro = 2, .group = 2, .layers = 4},
        {.n_micro = 2, .group = 2, .layers = 1, .drains = true},
        {.n_micro = 2, .group = 2, .layers = 1, .late = true},
    };
    struct weft_model *model = make_tied_model(false);
    struct weft_shards *shards = shard(model);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        struct weft_period *period = NULL;
        cr_assert_eq(weft_period_create(model, shards, &rules[i], &period, NULL), WEFT_E_INTERNAL);
        cr_assert_null(period);
    }
    weft_shards_destroy(shards);
    weft_model_destroy(model);
}

Test(period, destroy_accepts_nothing)
{
    weft_period_destroy(NULL);
}

Test(period, may_begin_with_a_slot_before_all_updates)
{
    struct weft_model *model = make_tied_model(false);
    struct weft_shards *shards = shard(model);
    struct weft_period_rule rule = plain_period;
    rule.offloaded = true;
    struct weft_period *period = create(model, shards, &rule);
    const char *const expected[] = {"o",  "U0", "U1", "U2", "U3", "f", "F0", "F1", "F2",
                                    "F3", "B3", "B2", "B1", "B0", "d", "n",  NULL};
    check_slots(period, expected);
    cr_assert_eq(period->update[0], 1);
    cr_assert_eq(period->fill, 5);
    cr_assert_eq(period->norm, 15);
    for (int32_t at = 0; at < weft_period_frame(&rule, 4); at++)
        cr_assert_eq(weft_period_takes_update(&rule, 4, at), at == 1);
    weft_period_destroy(period);
    rule.update_ahead = 1;
    period = create(model, shards, &rule);
    const char *const beside[] = {"o",  "U0", "U1", "U2", "f",  "F0", "U3", "F1", "F2",
                                  "F3", "B3", "B2", "B1", "B0", "d",  "n",  NULL};
    check_slots(period, beside);
    cr_assert_eq(period->update[3], 6, "beside what is computed, before its first use");
    for (int32_t at = 0; at < weft_period_frame(&rule, 4); at++)
        cr_assert_eq(weft_period_takes_update(&rule, 4, at), at >= 1 && at <= 5);
    weft_period_destroy(period);
    rule.update_ahead = 0;
    rule.agreed_updates = true;
    cr_assert_not(weft_period_is_rule(&rule));
    weft_shards_destroy(shards);
    weft_model_destroy(model);
}
