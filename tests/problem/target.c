/* SPDX-License-Identifier: Apache-2.0 */
/* Problems of plans for PyTorch's FSDP2, by hand. */
#include "problem/target.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers/custom.h"
#include "problem/stages.h"
#include "spec/profile/profile.h"

/* Four layers a to d on two ranks. A unit's flat buffer has 4, 8, 16 and 4 KiB. */
static const char four[] =
    "{\"version\": 1, \"model\": {\"layers\": ["
    "{\"name\": \"a\", \"type\": \"custom\", \"hidden\": 1, \"parameters\": 1024, "
    "\"forward_flops\": \"1k\", \"backward_flops\": \"2k\", \"output\": \"256B\", \"saved\": "
    "\"0B\"}, "
    "{\"name\": \"b\", \"type\": \"custom\", \"hidden\": 1, \"parameters\": 2048, "
    "\"forward_flops\": \"1k\", \"backward_flops\": \"2k\", \"output\": \"256B\", \"saved\": "
    "\"0B\"}, "
    "{\"name\": \"c\", \"type\": \"custom\", \"hidden\": 1, \"parameters\": 4096, "
    "\"forward_flops\": \"1k\", \"backward_flops\": \"2k\", \"output\": \"256B\", \"saved\": "
    "\"0B\"}, "
    "{\"name\": \"d\", \"type\": \"custom\", \"hidden\": 1, \"parameters\": 1024, "
    "\"forward_flops\": \"1k\", \"backward_flops\": \"2k\", \"output\": \"1KiB\", \"saved\": "
    "\"0B\"}]}, "
    "\"cluster\": {\"ranks\": 2, \"device\": {\"flops\": {\"f32\": \"1G\"}, "
    "\"memory_bandwidth\": \"1GB/s\"}, "
    "\"link\": {\"intra\": {\"alpha\": \"1us\", \"bandwidth\": \"1GB/s\"}}}, "
    "\"train\": {\"steps\": 1, \"micro_batch\": 1, \"seq_len\": 1, \"clip_norm\": 1%s}, "
    "\"plan\": {\"for\": \"fsdp2\"}}";

struct made {
    struct weft_config *config;
    struct weft_profile *profile;
    struct weft_stages stages;
};

/* `late`, `more`: another end of backward than the default. */
static struct made make_of(const char *text, bool late, int32_t more)
{
    struct made made = {0};
    struct weft_variant variants[WEFT_MOST_VARIANTS];
    struct weft_error err = {0};
    cr_assert_eq(
        weft_config_parse(text, strlen(text), "four.json", ".", NULL, 0, &made.config, &err),
        WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_profile_analytic(made.config, &made.profile, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_variants_list(made.config, variants), 1);
    variants[0].rule.late = late;
    variants[0].rule.more_inputs = more;
    cr_assert_eq(
        weft_stages_create_variant(made.config, made.profile, &variants[0], &made.stages, &err),
        WEFT_OK, "%s", err.text);
    return made;
}

static struct made make_ends(const char *train, bool late, int32_t more)
{
    char text[sizeof four + 128];
    snprintf(text, sizeof text, four, train);
    return make_of(text, late, more);
}

static struct made make_four(const char *train)
{
    return make_ends(train, false, 0);
}

static void drop_made(struct made *made)
{
    weft_stages_finish(&made->stages);
    weft_profile_destroy(made->profile);
    weft_config_destroy(made->config);
}

static int32_t find_slot(const struct weft_problem *problem, const char *name)
{
    for (int32_t s = 0; s < problem->n_slots; s++)
        if (strcmp(problem->slot_names[s], name) == 0) return s;
    cr_assert_fail("no slot %s", name);
    return -1;
}

/* Bytes of parameters, gradients and temporaries that the units hold in a slot under policies
 * "fffs" without the shards. Gathers block, so no launch adds to them. */
static int64_t held_in(const struct weft_problem *problem, const char *policies, const char *slot)
{
    const int32_t s = find_slot(problem, slot);
    int64_t bytes = 0;
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        const struct weft_problem_decision *unit = &problem->decisions[u];
        const int32_t k =
            weft_decision_of_policy(unit, policies[u] == 'f' ? WEFT_POLICY_FSDP : WEFT_POLICY_SDP);
        cr_assert_geq(k, 0);
        for (int32_t h = 0; h < unit->strategies[k].n_holds; h++) {
            const struct weft_hold *hold = &unit->strategies[k].holds[h];
            const bool still = hold->category == WEFT_CATEGORY_OPTIMIZER_STATE ||
                               hold->category == WEFT_CATEGORY_SHARDED_PARAMETERS ||
                               hold->category == WEFT_CATEGORY_SHARDED_GRADIENTS;
            if (!still && hold->first <= s && s <= hold->last) bytes += hold->bytes;
        }
    }
    return bytes;
}

static void expect_rows(const struct weft_problem *problem, const char *policies,
                        const int64_t kib[9])
{
    static const char *const slots[] = {"F:a", "F:b", "F:c", "F:d",  "B:d",
                                        "B:c", "B:b", "B:a", "drain"};
    for (int i = 0; i < 9; i++)
        cr_expect_eq(held_in(problem, policies, slots[i]), kib[i] << 10, "%s %s: %lld bytes",
                     policies, slots[i], (long long)held_in(problem, policies, slots[i]));
}

Test(target, rows_of_four_units)
{
    struct made made = make_four("");
    const struct weft_problem *problem = made.stages.problem;
    /* Forward holds each unit twice: its flat buffer and its parameters.
     * B:d: d and its gradient. At the copy-in d is free, and the input of the reduction is there.
     * Its output comes after the gradient is free.
     * B:c: c, its gradient, the input of d: 36 KiB. At the copy-in c and that input are free, 20
     * KiB, for 16 KiB. B:b: b, its gradient, the input of c. B:a: a, its gradient, the input of b.
     * drain: a is reduced at the end, so its gradient and its input are there. */
    expect_rows(problem, "fffs", (const int64_t[]){8, 16, 32, 8, 8, 36, 32, 16, 8});
    /* c keeps 16 KiB from F:c to B:c. When d is gathered, c's flat buffer is still there: 12 KiB
     * more than d's. d's output of 1 KiB is not there yet. */
    expect_rows(problem, "ffss", (const int64_t[]){8, 16, 32, 35, 24, 36, 32, 16, 8});
    drop_made(&made);
}

/* A layer p without parameters is between c and d. c's flat buffer stays until d is copied out. So
 * the gather of d finds it there: 12 KiB more than d's, without the output of 1 KiB that d has not
 * made yet. */
Test(target, a_flat_buffer_stays_through_layers_without_parameters)
{
    static const char p[] =
        "{\"name\": \"p\", \"type\": \"custom\", \"hidden\": 1, \"forward_flops\": \"1k\", "
        "\"backward_flops\": \"2k\", \"output\": \"256B\"}, ";
    char begin[sizeof four], text[sizeof four + sizeof p];
    snprintf(begin, sizeof begin, four, "");
    const char *d = strstr(begin, "{\"name\": \"d\"");
    cr_assert_not_null(d);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(d - begin), begin, p, d);
    struct made made = make_of(text, false, 0);
    cr_expect_eq(held_in(made.stages.problem, "fffs", "F:p"), 16 << 10);
    cr_expect_eq(held_in(made.stages.problem, "fffs", "F:d"), 19 << 10);
    drop_made(&made);
}

/* An item's window, by kind, unit and number. */
static const struct weft_item *find_item(const struct weft_problem *problem, int kind, int32_t unit,
                                         int32_t gather)
{
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        if (item->kind == kind && item->decision == unit && item->gather == gather) return item;
    }
    cr_assert_fail("unit %d has no item %d", unit, gather);
    return NULL;
}

static void expect_window(const struct weft_problem *problem, const struct weft_item *item,
                          const char *first, const char *last)
{
    cr_expect_eq(item->first, find_slot(problem, first), "begins in %s, not %s",
                 problem->slot_names[item->first], first);
    cr_expect_eq(item->last, find_slot(problem, last), "ends in %s, not %s",
                 problem->slot_names[item->last], last);
}

Test(target, windows_of_four_units)
{
    struct made made = make_four("");
    const struct weft_problem *problem = made.stages.problem;
    expect_window(problem, find_item(problem, WEFT_ALL_GATHER, 0, 0), "fill", "fill");
    expect_window(problem, find_item(problem, WEFT_ALL_GATHER, 2, 0), "fill", "F:b");
    expect_window(problem, find_item(problem, WEFT_ALL_GATHER, 1, 1), "F:c", "B:c");
    expect_window(problem, find_item(problem, WEFT_REDUCE_SCATTER, 3, 0), "B:c", "B:c");
    expect_window(problem, find_item(problem, WEFT_REDUCE_SCATTER, 1, 0), "B:a", "B:a");
    expect_window(problem, find_item(problem, WEFT_REDUCE_SCATTER, 0, 0), "drain", "drain");
    for (int32_t i = 0; i < problem->n_items; i++)
        cr_expect_eq(problem->items[i].item.n_blocks, 1);
    drop_made(&made);
}

/* FSDP2's root unshards its list in the forward of every micro-step, so each begins with one. The
 * first layer p has no parameters, so no gather ends there. */
Test(target, every_micro_step_begins_with_the_roots_list)
{
    static const char p[] =
        "{\"name\": \"p\", \"type\": \"custom\", \"hidden\": 1, \"forward_flops\": \"1k\", "
        "\"backward_flops\": \"2k\", \"output\": \"256B\"}, ";
    char begin[sizeof four + 64], text[sizeof four + sizeof p + 64];
    snprintf(begin, sizeof begin, four, ", \"grad_accum\": 4, \"reduce\": \"step\"");
    const char *first = strstr(begin, "{\"name\": \"a\"");
    cr_assert_not_null(first);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(first - begin), begin, p, first);
    struct made made = make_of(text, false, 0);
    const struct weft_problem *problem = made.stages.problem;
    bool *hooks = calloc((size_t)problem->n_slots, sizeof *hooks);
    int32_t n = 0;
    cr_assert_not_null(hooks);
    weft_problem_hooks(problem, hooks);
    for (int32_t s = 0; s < problem->n_slots; s++) {
        const struct weft_slot *slot = &problem->slots[s];
        if (slot->kind != WEFT_SLOT_FORWARD || slot->index > 0) continue;
        n++;
        cr_expect(hooks[slot->micro > 0 ? s : find_slot(problem, "fill")], "%s",
                  problem->slot_names[s]);
    }
    cr_expect_eq(n, 4);
    free(hooks);
    drop_made(&made);
}

Test(target, backward_frees_saved_activations)
{
    struct made made = make_four("");
    struct weft_error err = {0};
    union weft_key *keys = made.config->model->layers[2].keys;
    weft_stages_finish(&made.stages);
    /* The outputs of b and c have 256 bytes. */
    keys[WEFT_CUSTOM_SAVED].integer = 16 << 10;
    keys[WEFT_CUSTOM_FREED].integer = (12 << 10) + 256;
    keys[WEFT_CUSTOM_TEMPORARY].integer = 2 << 10;
    keys[WEFT_CUSTOM_READS_OUTPUT].flag = true;
    weft_profile_destroy(made.profile);
    cr_assert_eq(weft_profile_analytic(made.config, &made.profile, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_stages_create(made.config, made.profile, &made.stages, &err), WEFT_OK, "%s",
                 err.text);
    const struct weft_problem *problem = made.stages.problem;
    const int32_t backward = find_slot(problem, "B:c");
    int64_t in_backward = 0, before = 0;
    for (int32_t i = 0; i < problem->n_common; i++) {
        const struct weft_hold *hold = &problem->common[i];
        if (hold->category != WEFT_CATEGORY_ACTIVATIONS || hold->first != find_slot(problem, "F:c"))
            continue;
        if (hold->last >= backward) in_backward += hold->bytes;
        if (hold->last >= backward - 1) before += hold->bytes;
    }
    /* And c's own output, which its backward reads. */
    cr_expect_eq(before, (16 << 10) + 256);
    cr_expect_eq(in_backward, 4 << 10);
    /* B:c: when c is copied out, 12.25 KiB are not free yet, and the temporary, 2 KiB, and the
     * gradient of b's output are not there: 10 KiB more. If c stays gathered, nothing is copied. */
    expect_rows(problem, "fffs", (const int64_t[]){8, 16, 32, 8, 8, 46, 32, 16, 8});
    expect_rows(problem, "ffss", (const int64_t[]){8, 16, 32, 35, 24, 36, 32, 16, 8});
    drop_made(&made);
}

Test(target, two_reductions_under_way)
{
    struct made made = make_ends("", false, 1);
    const struct weft_problem *problem = made.stages.problem;
    expect_window(problem, find_item(problem, WEFT_REDUCE_SCATTER, 3, 0), "B:c", "B:b");
    expect_window(problem, find_item(problem, WEFT_REDUCE_SCATTER, 2, 0), "B:b", "B:a");
    expect_window(problem, find_item(problem, WEFT_REDUCE_SCATTER, 1, 0), "B:a", "drain");
    expect_window(problem, find_item(problem, WEFT_REDUCE_SCATTER, 0, 0), "drain", "drain");
    /* B:c: at the copy-in c is free, and the input of d is not: as much as before.
     * B:b: b, its gradient, the inputs of d and c. At the copy-in b and the input of d are free,
     * more than b's input. B:a: a, its gradient, the inputs of c and b. */
    expect_rows(problem, "fffs", (const int64_t[]){8, 16, 32, 8, 8, 36, 36, 32, 16});
    drop_made(&made);
}

Test(target, late_reductions)
{
    struct made made = make_ends("", true, 0);
    const struct weft_problem *problem = made.stages.problem;
    for (int32_t u = 0; u < 4; u++)
        expect_window(problem, find_item(problem, WEFT_REDUCE_SCATTER, u, 0), "drain", "drain");
    /* Each backward holds its unit, its gradient and those of the units after it. The fullest
     * moment of drain is the copy-in of c: gradients of a, b and c, 28 KiB, the input, 16 KiB, the
     * reduced gradients of d and c, 10 KiB, and a, which stays gathered. */
    expect_rows(problem, "fffs", (const int64_t[]){8, 16, 32, 8, 8, 36, 36, 36, 58});
    drop_made(&made);
}

/* An adapter in c, a quarter of its elements, is trained alone. */
Test(target, frozen_parts_have_no_gradient_and_no_state)
{
    char begin[sizeof four], text[sizeof four + 64];
    snprintf(begin, sizeof begin, four, "");
    const char *c = strstr(begin, "\"parameters\": 4096");
    cr_assert_not_null(c);
    snprintf(text, sizeof text, "%.*s\"parameters\": 1024, \"frozen_parameters\": 3072%s",
             (int)(c - begin), begin, c + strlen("\"parameters\": 4096"));
    struct made made = make_of(text, false, 0);
    const struct weft_problem *problem = made.stages.problem;
    cr_assert_eq(problem->n_decisions, 4);
    cr_expect_eq(problem->decisions[2].elements, 4096);
    cr_expect_eq(problem->decisions[2].frozen_elements, 3072);
    cr_expect_eq(find_item(problem, WEFT_ALL_GATHER, 2, 0)->block_bytes, 16 << 10);
    cr_expect_eq(find_item(problem, WEFT_REDUCE_SCATTER, 2, 0)->block_bytes, 4 << 10);
    /* B:c: c is copied out, 32 KiB, next to the input of d. The gradient of b's output comes later.
     * B:b: b, its gradient, the input of c. */
    cr_expect_eq(held_in(problem, "fffs", "F:c"), 32 << 10);
    cr_expect_eq(held_in(problem, "fffs", "B:c"), (36 << 10) - 256);
    cr_expect_eq(held_in(problem, "fffs", "B:b"), 20 << 10);
    int64_t state = 0, parameters = 0;
    const struct weft_problem_strategy *strategy = &problem->decisions[2].strategies[0];
    for (int32_t h = 0; h < strategy->n_holds; h++) {
        if (strategy->holds[h].category == WEFT_CATEGORY_OPTIMIZER_STATE)
            state += strategy->holds[h].bytes;
        if (strategy->holds[h].category == WEFT_CATEGORY_SHARDED_PARAMETERS)
            parameters += strategy->holds[h].bytes;
    }
    cr_expect_eq(state, 4 << 10, "two moments of a half of 1024: %lld", (long long)state);
    cr_expect_eq(parameters, 8 << 10, "a half of c: %lld", (long long)parameters);
    drop_made(&made);
}

/* Bytes of temporaries that are common to all updates. */
static int64_t update_temporary(const char *train)
{
    struct made made = make_four(train);
    const struct weft_problem *problem = made.stages.problem;
    int64_t bytes = 0;
    for (int32_t i = 0; i < problem->n_common; i++) {
        const struct weft_hold *hold = &problem->common[i];
        if (hold->category != WEFT_CATEGORY_TEMPORARY) continue;
        if (hold->first == find_slot(problem, "U:a") && hold->last == find_slot(problem, "U:d"))
            bytes += hold->bytes;
    }
    drop_made(&made);
    return bytes;
}

/* A rank has 4,096 elements, 2,048 of them of c. */
Test(target, temporaries_of_an_update)
{
    cr_expect_eq(update_temporary(""), 4 * 4096);
    cr_expect_eq(update_temporary(", \"optimizer\": {\"loop\": \"for-loop\"}"), 8 * 2048);
    cr_expect_eq(update_temporary(", \"optimizer\": {\"loop\": \"fused\"}"), 0);
    cr_expect_eq(update_temporary(", \"optimizer\": {\"type\": \"sgd\"}"), 0);
}

/* B:d: at the reduction of d its input, the copy and its output are there, 10 KiB. B:c: those of c
 * have 40 KiB. */
Test(target, a_reduction_may_copy_its_input)
{
    char begin[sizeof four], text[sizeof four + 64];
    snprintf(begin, sizeof begin, four, "");
    const char *ranks = strstr(begin, "\"ranks\": 2");
    cr_assert_not_null(ranks);
    snprintf(text, sizeof text, "%.*s\"reduce_copies\": true, %s", (int)(ranks - begin), begin,
             ranks);
    struct made made = make_of(text, false, 0);
    expect_rows(made.stages.problem, "fffs", (const int64_t[]){8, 16, 32, 8, 10, 40, 32, 16, 8});
    drop_made(&made);
}

/* The problem of `four` with keys of its cluster and of its plan. */
static struct made make_with(const char *cluster, const char *plan)
{
    char begin[sizeof four], text[sizeof four + 128];
    snprintf(begin, sizeof begin, four, "");
    const char *ranks = strstr(begin, "\"ranks\": 2"), *target = strstr(begin, "\"for\"");
    snprintf(text, sizeof text, "%.*s%s%.*s%s%s", (int)(ranks - begin), begin, cluster,
             (int)(target - ranks), ranks, plan, target);
    return make_of(text, false, 0);
}

/* At most one unit ahead. With prefetch the unit before launches each gather of a backward but the
 * first. */
Test(target, gathers_may_be_limited)
{
    for (int always = 0; always < 2; always++) {
        struct made made =
            make_with("", always ? "\"ahead\": 1, \"prefetch\": true, " : "\"ahead\": 1, ");
        const struct weft_problem *problem = made.stages.problem;
        const struct weft_item *early = find_item(problem, WEFT_ALL_GATHER, 2, 0),
                               *again = find_item(problem, WEFT_ALL_GATHER, 1, 1);
        expect_window(problem, early, "F:b", "F:b");
        cr_expect(early->may_block);
        expect_window(problem, find_item(problem, WEFT_ALL_GATHER, 0, 0), "fill", "fill");
        expect_window(problem, again, "B:c", "B:c");
        cr_expect_eq(again->may_block, !always);
        drop_made(&made);
    }
}

/* At the copy-out of c, d is reduced: c, the input and the output of d have 22 KiB. d with its
 * gradient had 8 KiB in B:d. c's flat buffer is a gather's. */
Test(target, the_begin_of_a_backward_is_in_the_slot_before)
{
    for (int always = 0; always < 2; always++) {
        struct made made = make_with("", always ? "\"prefetch\": true, " : "");
        int64_t bytes[2] = {0};
        const char *const slots[] = {"B:d", "B:c"};
        for (int i = 0; i < 2; i++)
            bytes[i] = held_in(made.stages.problem, "fffs", slots[i]);
        cr_expect_eq(bytes[0], always ? (8 + 14) << 10 : 8 << 10, "%lld", (long long)bytes[0]);
        cr_expect_eq(bytes[1], 36 << 10, "%lld", (long long)bytes[1]);
        drop_made(&made);
    }
}

/* The pool of gathers has the largest pair of neighbours, b and c, or c and d; without a limit all
 * units. Reduced gradients are half of all units. */
Test(target, pools_are_common_rows)
{
    for (int ahead = 0; ahead < 2; ahead++) {
        struct made made = make_with("\"pools\": true, ", ahead ? "\"ahead\": 1, " : "");
        const struct weft_problem *problem = made.stages.problem;
        int64_t gathers = 0, gradients = 0;
        for (int32_t i = 0; i < problem->n_common; i++) {
            const struct weft_hold *hold = &problem->common[i];
            cr_expect(hold->category != WEFT_CATEGORY_SHARDED_GRADIENTS ||
                      hold->last == problem->n_slots - 1);
            if (hold->category == WEFT_CATEGORY_SHARDED_GRADIENTS) gradients += hold->bytes;
            if (hold->category == WEFT_CATEGORY_COMMUNICATION && hold->bytes > gathers)
                gathers = hold->bytes;
        }
        cr_expect_eq(gathers, (ahead ? 24 : 32) << 10, "%lld", (long long)gathers);
        cr_expect_eq(gradients, 16 << 10, "%lld", (long long)gradients);
        cr_expect_eq(find_item(problem, WEFT_ALL_GATHER, 2, 1)->stair_bytes, 0);
        /* Units hold their flat buffers in the pool: half of the rows of forward. */
        cr_expect_eq(held_in(problem, "fffs", "F:c"), 16 << 10);
        drop_made(&made);
    }
}

Test(target, micro_steps_wait_for_their_reductions)
{
    struct made made = make_four(", \"grad_accum\": 2, \"reduce\": \"micro_step\"");
    const struct weft_problem *problem = made.stages.problem;
    expect_window(problem, find_item(problem, WEFT_REDUCE_SCATTER, 1, 0), "B1:a", "B1:a");
    expect_window(problem, find_item(problem, WEFT_REDUCE_SCATTER, 0, 0), "drain1", "drain1");
    expect_window(problem, find_item(problem, WEFT_REDUCE_SCATTER, 0, 1), "drain", "drain");
    cr_expect_eq(find_slot(problem, "drain1") + 1, find_slot(problem, "F2:a"));
    drop_made(&made);
}

Test(target, its_own_gathers_are_all_in_backward)
{
    struct made made = make_four("");
    struct weft_error err = {0};
    weft_stages_finish(&made.stages);
    made.config->plan.target = WEFT_FOR_FSDP2_DEFAULT;
    cr_assert_eq(weft_stages_create(made.config, made.profile, &made.stages, &err), WEFT_OK, "%s",
                 err.text);
    const struct weft_problem *problem = made.stages.problem;
    const struct weft_item *again = find_item(problem, WEFT_ALL_GATHER, 3, 1);
    expect_window(problem, again, "F:d", "F:d");
    cr_expect(weft_problem_must_block(problem, again), "d is gathered in B:d, and not before");
    drop_made(&made);
}

Test(target, micro_steps_gather_in_each_forward)
{
    struct made made = make_four(", \"grad_accum\": 2, \"reduce\": \"step\"");
    const struct weft_problem *problem = made.stages.problem;
    const struct weft_item *again = find_item(problem, WEFT_ALL_GATHER, 1, 2);
    expect_window(problem, again, "F2:a", "F2:a");
    cr_expect_eq(again->strategies, 3, "sdp and fsdp");
    cr_expect_eq(find_item(problem, WEFT_ALL_GATHER, 1, 1)->strategies, 2, "fsdp alone");
    cr_expect(weft_problem_must_block(problem, find_item(problem, WEFT_ALL_GATHER, 0, 2)));
    cr_expect_not(weft_problem_must_block(problem, again));
    drop_made(&made);
}

Test(target, what_it_lacks_is_refused)
{
    static const struct {
        const char *override, *says;
    } cases[] = {
        {"plan.recompute=selective", "recompute whole layers"},
        {"plan.policies=dp", "no policy of a plan for PyTorch's FSDP2"},
        {"plan.for=fsdp3", "fsdp3"},
    };
    char text[sizeof four];
    snprintf(text, sizeof text, four, "");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weft_error err = {0};
        struct weft_config *config = NULL;
        uint32_t policies;
        enum weft_status status = weft_config_parse(text, strlen(text), "four.json", ".",
                                                    &cases[i].override, 1, &config, &err);
        if (status == WEFT_OK) status = weft_variants_policies(config, &policies, &err);
        cr_expect_eq(status, WEFT_E_DATA);
        cr_expect(strstr(err.text, cases[i].says) != NULL, "%s", err.text);
        weft_config_destroy(config);
    }
}
