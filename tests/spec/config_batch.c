/* SPDX-License-Identifier: Apache-2.0 */
/* The split of train.batch: its micro-batches, and those that a resumed run keeps. */
#include <stdio.h>
#include <string.h>

#include "spec/config_batch.h"
#include "tests/spec/config_text.h"

static struct weft_config *with_batch(const char *batch, const char *more)
{
    const char *overrides[] = {"train.micro_batch=auto", batch, more, NULL};
    struct weft_config *config = NULL;
    struct weft_error err = {0};
    cr_assert_eq(parse(SMALL_CONFIG, overrides, &config, &err), WEFT_OK, "%s", err.text);
    return config;
}

static void expect_splits(const char *batch, const char *more, int32_t n, const int64_t *splits)
{
    struct weft_config *config = with_batch(batch, more);
    int64_t found[WEFT_MOST_SPLITS];
    cr_assert_eq(weft_config_splits(config, found), n, "%s", batch);
    for (int32_t i = 0; i < n; i++)
        cr_assert_eq(found[i], splits[i], "%s: %lld", batch, (long long)found[i]);
    weft_config_destroy(config);
}

Test(config_batch, splits_are_divisors)
{
    expect_splits("train.batch=24", "cluster.ranks=2", 6, (const int64_t[]){1, 2, 3, 4, 6, 12});
    expect_splits("train.batch=24", "cluster.ranks=24", 1, (const int64_t[]){1});
}

/* 24 divisors of 360: eight of them, the least and the largest included. */
Test(config_batch, many_divisors_are_sampled)
{
    struct weft_config *config = with_batch("train.batch=360", "cluster.ranks=1");
    int64_t found[WEFT_MOST_SPLITS];
    cr_assert_eq(weft_config_splits(config, found), WEFT_MOST_SPLITS);
    cr_assert_eq(found[0], 1);
    cr_assert_eq(found[WEFT_MOST_SPLITS - 1], 360);
    for (int32_t i = 0; i < WEFT_MOST_SPLITS; i++)
        cr_assert(360 % found[i] == 0 && (i == 0 || found[i] > found[i - 1]));
    weft_config_destroy(config);
}

Test(config_batch, settles_on_any_split_with_the_same_hash)
{
    struct weft_config *config = with_batch("train.batch=24", "cluster.ranks=2");
    const struct weft_hash hash = config->hash;
    cr_assert_eq(config->train.micro_batch * config->train.grad_accum, 12);
    weft_config_settle(config, 4);
    cr_assert_eq(config->train.micro_batch, 4);
    cr_assert_eq(config->train.grad_accum, 3);
    cr_assert(weft_hash_equal(hash, config->hash));
    weft_config_destroy(config);
}

Test(config_batch, a_kept_split_is_the_only_one)
{
    struct weft_config *config = with_batch("train.batch=24", "cluster.ranks=2");
    int64_t found[WEFT_MOST_SPLITS];
    config->split_given = false; /* as if the file said it */
    cr_assert_not(weft_config_keep_split(config, 5, 8));
    cr_assert_eq(weft_config_splits(config, found), 6);
    cr_assert(weft_config_keep_split(config, 3, 4));
    cr_assert_eq(weft_config_splits(config, found), 1);
    cr_assert_eq(found[0], 3);
    weft_config_destroy(config);
}

Test(config_batch, an_override_asks_for_all_splits)
{
    struct weft_config *config = with_batch("train.batch=24", "cluster.ranks=2");
    int64_t found[WEFT_MOST_SPLITS];
    cr_assert(weft_config_keep_split(config, 3, 4));
    cr_assert_eq(weft_config_splits(config, found), 6);
    weft_config_destroy(config);
}

/* A profile measures other splits of the same batch, unless the split was asked for. */
Test(config_batch, a_split_is_opened_with_the_same_batch)
{
    const char *overrides[] = {"cluster.ranks=2", NULL, NULL};
    struct weft_config *config = NULL;
    struct weft_error err = {0};
    int64_t splits[WEFT_MOST_SPLITS];
    cr_assert_eq(parse(SMALL_CONFIG, overrides, &config, &err), WEFT_OK, "%s", err.text);
    const int64_t samples = config->train.micro_batch * config->train.grad_accum;
    cr_assert(weft_config_open_split(config));
    cr_assert_eq(config->train.batch, 2 * samples);
    cr_assert_eq(weft_config_splits(config, splits) > 0, true);
    cr_assert_eq(splits[0], 1);
    cr_assert_not(weft_config_open_split(config), "it is open already");
    weft_config_destroy(config);
    overrides[1] = "train.micro_batch=4";
    cr_assert_eq(parse(SMALL_CONFIG, overrides, &config, &err), WEFT_OK, "%s", err.text);
    cr_assert_not(weft_config_open_split(config), "an override names it");
    weft_config_destroy(config);
}

static struct weft_config *with_groups(const char *batch, const char *ranks, const char *micro)
{
    const char *overrides[] = {batch, ranks, micro, "train.group=2", NULL};
    struct weft_config *config = NULL;
    struct weft_error err = {0};
    cr_assert_eq(parse(SMALL_CONFIG, overrides, &config, &err), WEFT_OK, "%s", err.text);
    return config;
}

/* 7 groups of two micro-batches of 3: the last round has some ranks. */
Test(config_batch, groups_need_not_divide_by_ranks)
{
    static const int64_t shares[][3] = {{1, 14, 0}, {2, 8, 1}, {3, 6, 2},
                                        {4, 4, 1},  {5, 4, 3}, {7, 2, 0}};
    for (int i = 0; i < 6; i++) {
        char ranks[32];
        snprintf(ranks, sizeof ranks, "cluster.ranks=%d", (int)shares[i][0]);
        struct weft_config *config = with_groups("train.batch=42", ranks, "train.micro_batch=3");
        cr_assert_eq(config->train.grad_accum, shares[i][1], "%s", ranks);
        cr_assert_eq(config->train.idle, shares[i][2], "%s", ranks);
        cr_assert_eq(weft_config_samples(config), 42, "%s", ranks);
        weft_config_destroy(config);
    }
}

Test(config_batch, open_micro_batches_may_leave_ranks_idle)
{
    struct weft_config *config =
        with_groups("train.batch=12", "cluster.ranks=4", "train.micro_batch=auto");
    const struct {
        int64_t micro_batch, micro_steps, idle;
    } expected[] = {{1, 4, 2}};
    int64_t found[WEFT_MOST_SPLITS], idle;
    cr_assert_eq(weft_config_splits(config, found), 1);
    cr_assert_eq(found[0], expected[0].micro_batch);
    cr_assert_eq(weft_config_micro_steps(config, found[0], &idle), expected[0].micro_steps);
    cr_assert_eq(idle, expected[0].idle);
    weft_config_destroy(config);
}

Test(config_batch, fewer_groups_than_ranks_are_refused)
{
    static const char *const faults[][3] = {
        {"train.batch=12", "cluster.ranks=5", "start at most 2 ranks, or try a batch of 30"},
        {"train.batch=14", "cluster.ranks=2", "no whole groups of 2 micro-batches"},
    };
    for (int i = 0; i < 2; i++) {
        const char *overrides[] = {faults[i][0], faults[i][1], "train.micro_batch=3",
                                   "train.group=2", NULL};
        struct weft_config *config = NULL;
        struct weft_error err = {0};
        cr_assert_eq(parse(SMALL_CONFIG, overrides, &config, &err), WEFT_E_DATA);
        cr_assert(strstr(err.text, faults[i][2]), "%s", err.text);
    }
}

Test(config_batch, any_number_of_ranks_keeps_the_order)
{
    const struct weft_order order = {4, 3, 4, 2, 1, 1, 0}; /* 7 groups */
    static const enum weft_order_kept kept[] = {WEFT_ORDER_KEPT, WEFT_ORDER_KEPT, WEFT_ORDER_KEPT,
                                                WEFT_ORDER_KEPT, WEFT_ORDER_KEPT, WEFT_ORDER_KEPT,
                                                WEFT_ORDER_KEPT, WEFT_ORDER_FEWER};
    for (int ranks = 1; ranks <= 8; ranks++) {
        struct weft_config *config =
            with_groups("train.batch=42", "cluster.ranks=1", "train.micro_batch=3");
        struct weft_error err = {0};
        enum weft_order_kept found;
        config->split_given = config->order_given = false; /* as if the file said it */
        config->cluster.ranks = config->cluster.ranks_per_node = ranks;
        cr_assert_eq(weft_config_keep_order(config, &order, &found, &err), WEFT_OK, "%s", err.text);
        cr_assert_eq(found, kept[ranks - 1], "%d ranks", ranks);
        cr_assert_eq(weft_config_samples(config), ranks == 8 ? 42 * 8 : 42, "%d ranks", ranks);
        weft_config_destroy(config);
    }
}

static struct weft_config *with_turns(const char *order)
{
    const char *overrides[] = {"train.grad_accum=4", "cluster.ranks=4", order, NULL};
    struct weft_config *config = NULL;
    struct weft_error err = {0};
    cr_assert_eq(parse(SMALL_CONFIG, overrides, &config, &err), WEFT_OK, "%s", err.text);
    config->split_given = config->order_given = false; /* as if the file said it */
    return config;
}

/* Fewer ranks have several rounds, which have one order. Without a tied tensor the sums are kept.
 */
Test(config_batch, turns_end_where_several_rounds_begin)
{
    for (int tied = 0; tied < 2; tied++) {
        const struct weft_order order = {4, 2, 4, 4, 0, 1, 1};
        struct weft_config *config = with_turns("plan.micro_step_order=layer");
        struct weft_error err = {0};
        enum weft_order_kept found;
        cr_assert_eq(weft_config_turn_layers(config), 1);
        for (int32_t t = 0; t < config->model->n_tensors && !tied; t++)
            config->model->tensors[t].trainable = t > 0; /* the tied one comes first */
        cr_assert_eq(weft_model_ties(config->model), tied > 0);
        config->cluster.ranks = config->cluster.ranks_per_node = 2;
        config->train.batch = 4 * 2 * 4;
        cr_assert_eq(weft_config_keep_order(config, &order, &found, &err), WEFT_OK, "%s", err.text);
        cr_assert_eq(found, tied ? WEFT_ORDER_TIED : WEFT_ORDER_KEPT);
        cr_assert_eq(weft_config_turn_layers(config), 0);
        cr_assert_eq(weft_config_samples(config), 4 * 2 * 4, "a step keeps its samples");
        weft_config_destroy(config);
    }
}

/* Without train.batch the ranks and train.grad_accum name the samples. A checkpoint with
 * micro-steps one after the other keeps its bits in any order that the config asks for. */
Test(config_batch, fewer_ranks_of_a_tied_model_keep_the_samples)
{
    for (int layers = 0; layers < 3; layers++) {
        const struct weft_order order = {4, 2, 4, 4, 0, 1, layers};
        struct weft_config *config = with_turns("plan.micro_step_order=auto");
        struct weft_error err = {0};
        enum weft_order_kept found;
        cr_assert(weft_model_ties(config->model) && config->train.batch == 0);
        cr_assert(weft_config_keep_turns(config, layers));
        config->cluster.ranks = config->cluster.ranks_per_node = 2;
        cr_assert_eq(weft_config_keep_order(config, &order, &found, &err), WEFT_OK, "%s", err.text);
        cr_assert_eq(found, layers > 0 ? WEFT_ORDER_TIED : WEFT_ORDER_KEPT);
        cr_assert_eq(weft_config_samples(config), 4 * 2 * 4);
        cr_assert_eq(config->train.grad_accum, 8);
        weft_config_destroy(config);
    }
}

/* Two nodes of two ranks become one node, which sums in another order. The samples stay all the
 * same, or the ranks are refused. */
Test(config_batch, fewer_ranks_that_sum_otherwise_keep_the_samples)
{
    const struct weft_order order = {4, 2, 4, 4, 0, 2, 0};
    for (int delay = 0; delay < 2; delay++) {
        struct weft_config *config = with_turns("plan.micro_step_order=step");
        struct weft_error err = {0};
        enum weft_order_kept found;
        config->cluster.ranks = config->cluster.ranks_per_node = 2;
        config->train.delay = delay;
        cr_assert(config->train.batch == 0 && weft_config_samples(config) == 2 * 2 * 4);
        const enum weft_status status = weft_config_keep_order(config, &order, &found, &err);
        cr_assert_eq(status, delay ? WEFT_E_USAGE : WEFT_OK, "%s", err.text);
        cr_assert_eq(found, WEFT_ORDER_LOST);
        if (delay)
            cr_assert_not_null(strstr(err.text, "2 ranks cannot take the 32 samples"), "%s",
                               err.text);
        else
            cr_assert_eq(weft_config_samples(config), 4 * 2 * 4);
        weft_config_destroy(config);
    }
}

/* The first layer and the last one share a tensor, which no two groups of fewer layers hold. */
Test(config_batch, turns_of_other_sizes_may_add_up_a_tied_tensor_alike)
{
    struct weft_config *config = with_turns("plan.micro_step_order=auto");
    struct weft_model *model = config->model;
    const int32_t n = model->n_layers;
    for (int32_t a = 1; a < n; a++) {
        cr_assert(weft_model_ties_alike(model, a, 1 + a % (n - 1)), "%d", a);
        cr_assert_not(weft_model_ties_alike(model, a, 0), "%d", a);
    }
    cr_assert(weft_model_ties_alike(model, n, 0), "one group is no turn");
    model->tensors[0].trainable = false;
    cr_assert(weft_model_ties_alike(model, 0, 1));
    weft_config_destroy(config);
}

Test(config_batch, turns_are_refused_where_gradients_are_reduced_in_between)
{
    struct weft_config *config = with_turns("plan.micro_step_order=auto");
    cr_assert_null(weft_config_refuses_turns(config, 4));
    cr_assert_not_null(weft_config_refuses_turns(config, 1));
    config->train.group = 2;
    cr_assert_null(weft_config_refuses_turns(config, 2));
    cr_assert_not_null(weft_config_refuses_turns(config, 4));
    config->train.group = 0;
    config->train.cadence = WEFT_CADENCE_MICRO_STEP;
    cr_assert_not_null(weft_config_refuses_turns(config, 4));
    weft_config_destroy(config);
}

Test(config_batch, an_open_order_is_the_checkpoints_if_bits_depend_on_it)
{
    struct weft_config *config = with_turns("plan.micro_step_order=auto");
    cr_assert(weft_config_opens_turns(config));
    cr_assert_not(weft_config_keep_turns(config, config->model->n_layers));
    cr_assert_not(weft_config_keep_turns(config, INT64_C(1) << 32));
    cr_assert(weft_config_opens_turns(config));
    cr_assert(weft_config_keep_turns(config, 2));
    cr_assert(!weft_config_opens_turns(config) && weft_config_turn_layers(config) == 2);
    weft_config_destroy(config);
    config = with_turns("plan.micro_step_order=2");
    cr_assert(weft_config_keep_turns(config, 1));
    cr_assert_eq(weft_config_turn_layers(config), 2, "the config names it");
    weft_config_destroy(config);
    config = with_turns("plan.micro_step_order=auto");
    config->model->tensors[0].trainable = false;
    cr_assert(weft_config_keep_turns(config, 2));
    cr_assert(weft_config_opens_turns(config), "no tensor is tied");
    weft_config_destroy(config);
}
