/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/relax/coarse.h"

#include <criterion/criterion.h>

#include "scheduler/tree/grow.h"
#include "tests/program/random_model.h"
#include "tests/scheduler/limit.h"
#include "tests/scheduler/rigs.h"
#include "tests/scheduler/solver.h"

/* Blocks between an embedding and a head, equal or not, with their analytic profile. */
static void deep_case(struct random_case *out, int32_t n_blocks, bool equal)
{
    struct weft_error err = {0};
    struct weft_text text;
    weft_text_init(&text);
    weft_text_addf(&text, "{\"model\": {\"layers\": [{\"name\": \"embed\", \"type\": "
                          "\"embedding\", \"vocab\": 320, \"hidden\": 128}, ");
    for (int32_t i = 0; i < n_blocks; i++)
        weft_text_addf(&text,
                       "{\"name\": \"b.%d\", \"type\": \"llama_block\", \"hidden\": 128, "
                       "\"heads\": 4, \"kv_heads\": 4, \"ffn\": %d}, ",
                       i, equal ? 512 : 256 + 64 * (i * 37 % 11));
    weft_text_addf(&text,
                   "{\"name\": \"head\", \"type\": \"lm_head\", \"vocab\": 320, \"hidden\": 128, "
                   "\"bias\": false}]}, \"cluster\": {\"ranks\": 8, \"device\": {\"flops\": "
                   "{\"f32\": \"1T\"}, \"memory_bandwidth\": \"100GB/s\"}, \"link\": {\"intra\": "
                   "{\"alpha\": \"1us\", \"bandwidth\": \"4GB/s\"}}}, \"train\": {\"steps\": 1, "
                   "\"micro_batch\": 1, \"seq_len\": 128}, \"plan\": {\"fuse\": false}}");
    *out = (struct random_case){0};
    cr_assert_eq(weft_config_parse(weft_text_chars(&text), text.length, "deep.json", ".", NULL, 0,
                                   &out->config, &err),
                 WEFT_OK, "%s", err.text);
    weft_text_finish(&text);
    cr_assert_eq(weft_profile_analytic(out->config, &out->profile, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_stages_create(out->config, out->profile, &out->stages, &err), WEFT_OK, "%s",
                 err.text);
}

/* A limit between the least (0) and ample (1). */
static int64_t limit_at(const struct weft_digest *table, double share)
{
    const double more = (double)(table->most_bytes - table->least_bytes);
    return table->least_bytes + (int64_t)(share * more);
}

static struct weft_coarse *make_coarse(const struct weft_digest *table,
                                       const struct weft_coarse *before)
{
    struct weft_coarse *coarse = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_coarse_create(table, before, &coarse, &err), WEFT_OK, "%s", err.text);
    return coarse;
}

/* Byte slots of the first or last strategy of all decisions, and of common holds. */
static double sum_bytes(const struct weft_problem *problem, const int32_t *length, bool last)
{
    double sum = 0;
    for (int32_t u = -1; u < problem->n_decisions; u++) {
        const struct weft_problem_decision *it = u < 0 ? NULL : &problem->decisions[u];
        const int32_t p = it && last ? it->n_strategies - 1 : 0;
        const int32_t n = it ? it->strategies[p].n_holds : problem->n_common;
        const struct weft_hold *holds = it ? it->strategies[p].holds : problem->common;
        for (int32_t i = 0; i < n; i++) {
            const int32_t wrap = holds[i].first > holds[i].last ? problem->n_slots : 0;
            for (int32_t s = holds[i].first; s <= holds[i].last + wrap; s++)
                sum += (double)holds[i].bytes * (length ? length[s % problem->n_slots] : 1);
        }
    }
    return sum;
}

/* Compute time and the added time of the first strategies. */
static int64_t sum_times(const struct weft_problem *problem)
{
    int64_t ns = 0;
    for (int32_t s = 0; s < problem->n_slots; s++)
        ns += problem->slot_ns[s];
    for (int32_t u = 0; u < problem->n_decisions; u++)
        for (int32_t i = 0; i < problem->decisions[u].strategies[0].n_times; i++)
            ns += problem->decisions[u].strategies[0].times[i].ns;
    return ns;
}

static double lane_time(const struct weft_problem *problem)
{
    double ns = 0;
    for (int32_t i = 0; i < problem->n_items; i++)
        ns += (double)problem->items[i].item.n_blocks * (double)problem->items[i].block_ns;
    return ns;
}

static void check_windows(const struct weft_problem *problem)
{
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        cr_assert(item->first >= 0 && item->first <= item->last && item->last < problem->n_slots);
        cr_assert_gt(item->n_blocks, 0);
    }
}

/* Runs cover all slots. Times, lane time and bytes are those of the fine problem, up to rounding to
 * whole bytes and ns. */
static void check_sums(const struct weft_coarse *coarse)
{
    const struct weft_problem *from = coarse->fine->problem, *to = coarse->problem;
    int32_t n = 0;
    for (int32_t s = 0; s < to->n_slots; s++)
        n += coarse->length[s];
    cr_assert_eq(n, from->n_slots);
    for (int32_t s = 1; s < from->n_slots; s++) {
        const int32_t step = coarse->run_of[s] - coarse->run_of[s - 1];
        cr_assert(step == 0 || step == 1);
    }
    cr_assert_eq(sum_times(to), sum_times(from));
    cr_assert_float_eq(lane_time(to) / lane_time(from), 1, 1e-3);
    for (int last = 0; last < 2; last++) {
        const double bytes = sum_bytes(from, NULL, last != 0);
        cr_assert_float_eq(sum_bytes(to, coarse->length, last != 0) / bytes, 1, 1e-4);
    }
    check_windows(to);
}

Test(coarse, keeps_times_and_bytes_in_fewer_slots_and_decisions)
{
    for (int equal = 0; equal < 2; equal++) {
        struct random_case random;
        struct weft_digest *table = NULL;
        deep_case(&random, 240, equal != 0);
        cr_assert_eq(weft_digest_create(random.stages.problem, &table, NULL), WEFT_OK);
        with_limit(table, limit_at(table, 0.4));
        struct weft_coarse *coarse = make_coarse(table, NULL);
        cr_assert_lt(coarse->problem->n_slots, 120);
        cr_assert_lt(coarse->problem->n_decisions, 120);
        check_sums(coarse);
        weft_coarse_destroy(coarse);
        weft_digest_destroy(table);
        random_case_finish(&random);
    }
}

/* A price of memory in one run: this run alone is cut. */
Test(coarse, runs_are_shorter_where_a_price_changes)
{
    struct random_case random;
    struct weft_digest *table = NULL;
    deep_case(&random, 240, true);
    cr_assert_eq(weft_digest_create(random.stages.problem, &table, NULL), WEFT_OK);
    struct weft_coarse *before = make_coarse(table, NULL);
    const int32_t run = before->problem->n_slots / 2, length = before->length[run];
    cr_assert_gt(length, 5);
    before->dual->mu[run] = 1;
    struct weft_coarse *coarse = make_coarse(table, before);
    cr_assert_eq(coarse->problem->n_slots,
                 before->problem->n_slots + (length + 1) / 2 - 1 - (length > 10));
    check_sums(coarse);
    weft_coarse_destroy(coarse);
    weft_coarse_destroy(before);
    weft_digest_destroy(table);
    random_case_finish(&random);
}

static void offer_coarse(struct branch_rig *rig, const struct weft_coarse *before,
                         struct weft_coarse **out)
{
    struct weft_lp_result result = {0};
    struct weft_pool pool = {0};
    *out = make_coarse(rig->table, before);
    cr_assert(weft_branch_solve(rig->branch, &(*out)->ilp->lp, 0, &pool, &result));
    cr_assert_eq(weft_coarse_spread(*out, &result, rig->branch->dual, rig->branch->share, NULL),
                 WEFT_OK);
    cr_assert_eq(weft_proof_offer(rig->branch->proof, 0, rig->branch->dual, NULL), WEFT_OK);
    weft_pool_finish(&pool);
}

/* Shares of each decision's strategies add up to 1. */
static void check_shares(const struct branch_rig *rig)
{
    for (int32_t u = 0; u < rig->table->n_decisions; u++) {
        double sum = 0;
        for (int32_t p = 0; p < weft_digest_count(rig->table, u); p++)
            sum += rig->branch->share[weft_digest_at(rig->table, u, p)];
        cr_assert_float_eq(sum, 1, 1e-6);
    }
}

/* Returns the part of the relaxation's gain over trivial prices that three coarse ones have. */
static double part_of_gain(bool equal, double share)
{
    struct random_case random;
    struct weft_coarse *before = NULL, *coarse = NULL;
    struct branch_rig fine = {.options.solver = test_solver()};
    struct branch_rig rough = {.options.solver = test_solver()};
    const char *by = "";
    deep_case(&random, 70, equal);
    struct weft_problem *problem = random.stages.problem;
    cr_assert_eq(weft_digest_create(problem, &rough.table, NULL), WEFT_OK);
    const int64_t limit_bytes = limit_at(rough.table, share);
    weft_digest_destroy(rough.table);
    branch_rig_begin(&fine, problem, limit_bytes);
    branch_rig_begin(&rough, problem, limit_bytes);
    cr_assert_eq(weft_branch_root(fine.branch, NULL), WEFT_OK);
    cr_assert_eq(weft_proof_offer_trivial(rough.branch->proof, rough.branch->dual, &by, NULL),
                 WEFT_OK);
    const int64_t trivial_ns = weft_branch_bound_ns(rough.branch);
    for (int round = 0; round < 3; round++) {
        offer_coarse(&rough, before, &coarse);
        weft_coarse_destroy(before);
        before = coarse;
    }
    weft_coarse_destroy(before);
    check_shares(&rough);
    const int64_t best_ns = weft_branch_bound_ns(fine.branch) - trivial_ns;
    const int64_t found_ns = weft_branch_bound_ns(rough.branch) - trivial_ns;
    cr_assert_gt(best_ns, 0);
    branch_rig_end(&rough);
    branch_rig_end(&fine);
    random_case_finish(&random);
    return (double)found_ns / (double)best_ns;
}

/* Memory has a price at the lower limit. At the higher one updates decide, which make room. */
Test(coarse, prices_are_near_the_best, .timeout = 300)
{
    if (!test_solver_exists()) cr_skip_test("no weft-solve in this build");
    const double equal_part = part_of_gain(true, 0.1), uneven_part = part_of_gain(false, 0.3);
    cr_expect_geq(equal_part, 0.98, "equal blocks: %g", equal_part);
    cr_expect_geq(uneven_part, 0.98, "uneven blocks: %g", uneven_part);
}

/* Above 600 slots the tree has no relaxation of its own. */
Test(coarse, bounds_the_root_of_a_long_period, .timeout = 300)
{
    if (!test_solver_exists()) cr_skip_test("no weft-solve in this build");
    struct random_case random;
    struct branch_rig rig = {.options.solver = test_solver()};
    deep_case(&random, 220, true);
    cr_assert_gt(random.stages.problem->n_slots, 600);
    cr_assert_eq(weft_digest_create(random.stages.problem, &rig.table, NULL), WEFT_OK);
    const int64_t limit_bytes = limit_at(rig.table, 0.3);
    weft_digest_destroy(rig.table);
    branch_rig_begin(&rig, random.stages.problem, limit_bytes);
    cr_assert_eq(weft_branch_root(rig.branch, NULL), WEFT_OK);
    cr_assert_null(rig.branch->ilp);
    cr_assert_str_eq(rig.branch->bound_by, "coarse relaxation, weak duality");
    cr_assert_leq(weft_branch_bound_ns(rig.branch), rig.search->step_ns);
    branch_rig_end(&rig);
    random_case_finish(&random);
}
