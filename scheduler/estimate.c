/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/estimate.h"

#include <string.h>

#include "problem/target.h"
#include "program/predict.h"
#include "scheduler/place/list.h"
#include "scheduler/planners/fixed.h"
#include "scheduler/planners/table.h"

/* A step that is longer than the shortest by less than this share counts as equally short. */
static const double MATTERS = 5e-4;

/* A policy has two readings. Every unit has it, or the units to which its first published rule
 * gives it. For example, FSDP keeps the root gathered. */
enum { READINGS = 2 };

struct run {
    struct weft_problem problem; /* with the limit that is tried */
    bool timed;
    int32_t *readings[READINGS]; /* [n_units] each, of the policy at hand */
    struct weft_pool pool;
    struct weft_candidate candidate;
    struct weft_digest *table; /* for placing by lists; NULL before the first */
    struct weft_list *list;
};

void weft_estimate_init(struct weft_need rows[WEFT_ESTIMATE_ROWS])
{
    static const struct {
        enum weft_policy policy;
        enum weft_need_way way;
        const char *rule;
    } all[WEFT_ESTIMATE_ROWS] = {
        {WEFT_POLICY_DP, WEFT_NEED_JUST_IN_TIME, NULL},
        {WEFT_POLICY_DP, WEFT_NEED_PUBLISHED, "ddp"},
        {WEFT_POLICY_DP, WEFT_NEED_FASTEST, NULL},
        {WEFT_POLICY_ZERO1, WEFT_NEED_JUST_IN_TIME, NULL},
        {WEFT_POLICY_ZERO1, WEFT_NEED_PUBLISHED, "zero1"},
        {WEFT_POLICY_ZERO1, WEFT_NEED_FASTEST, NULL},
        {WEFT_POLICY_SDP, WEFT_NEED_JUST_IN_TIME, NULL},
        {WEFT_POLICY_SDP, WEFT_NEED_PUBLISHED, "fsdp2:kept"},
        {WEFT_POLICY_SDP, WEFT_NEED_FASTEST, NULL},
        {WEFT_POLICY_FSDP, WEFT_NEED_JUST_IN_TIME, NULL},
        {WEFT_POLICY_FSDP, WEFT_NEED_PUBLISHED, "fsdp2"},
        {WEFT_POLICY_FSDP, WEFT_NEED_PUBLISHED, "deepspeed"},
        {WEFT_POLICY_FSDP, WEFT_NEED_FASTEST, NULL},
    };
    for (int i = 0; i < WEFT_ESTIMATE_ROWS; i++)
        rows[i] = (struct weft_need){
            .policy = all[i].policy, .way = all[i].way, .rule = all[i].rule, .unit = -1};
}

uint32_t weft_estimate_rows_of(uint32_t ways)
{
    struct weft_need rows[WEFT_ESTIMATE_ROWS];
    uint32_t asked = 0;
    weft_estimate_init(rows);
    for (int i = 0; i < WEFT_ESTIMATE_ROWS; i++)
        if (ways >> rows[i].way & 1u) asked |= 1u << i;
    return asked;
}

static void take_policies(struct run *run, int reading)
{
    memcpy(run->candidate.strategies, run->readings[reading],
           (size_t)run->problem.n_decisions * sizeof *run->candidate.strategies);
}

static enum weft_status place_published(struct run *run, const char *name, struct weft_error *err)
{
    struct weft_schedule_options options = {.planner = name, .draft = true};
    struct weft_outcome outcome = {.pool = &run->pool};
    const struct weft_planner *planner = weft_planner_find(name, &options.setting);
    if (!weft_planner_knows_updates(planner, &run->problem))
        return weft_fail(err, WEFT_E_INFEASIBLE, "planner %s: it updates no unit in backward",
                         name);
    return weft_planner_decide(planner, &run->problem, &options, &run->candidate, &outcome, err);
}

/* A stretch of limits, from low to high, with the same step time of a rule. */
struct stretch {
    int64_t low, high, ns;
};
enum { MOST_STRETCHES = 32 };

/* Stretches of each rule under one reading. */
struct stretches {
    int32_t n_rules; /* rules that differ; without gathers all are like the first */
    int32_t n[WEFT_LIST_RULES];
    struct stretch of[WEFT_LIST_RULES][MOST_STRETCHES];
};

static void begin_stretches(const struct run *run, const int32_t *strategies,
                            struct stretches *stretches)
{
    const struct weft_digest *table = run->table;
    memset(stretches->n, 0, sizeof stretches->n);
    stretches->n_rules = 1;
    for (int32_t i = 0; i < table->n_gathers; i++)
        if (weft_item_active(&run->problem.items[table->gathers[i]].item, strategies))
            stretches->n_rules = WEFT_LIST_RULES;
}

static bool is_known(const struct stretches *stretches, int32_t rule, int64_t limit_bytes,
                     int64_t *ns)
{
    for (int32_t i = 0; i < stretches->n[rule]; i++) {
        const struct stretch *it = &stretches->of[rule][i];
        if (limit_bytes < it->low || limit_bytes > it->high) continue;
        *ns = it->ns;
        return true;
    }
    return false;
}

/* The step time by one rule within a limit; -1 if nothing fits. */
static int64_t step_within(struct run *run, struct stretches *stretches, const int32_t *strategies,
                           int32_t rule, int64_t limit_bytes)
{
    int64_t ns = 0;
    if (is_known(stretches, rule, limit_bytes, &ns)) return ns;
    run->problem.tiers[0].limit_bytes = limit_bytes;
    ns = weft_list_place(run->list, strategies, weft_list_rules[rule], NULL, NULL);
    if (stretches->n[rule] < MOST_STRETCHES)
        stretches->of[rule][stretches->n[rule]++] =
            (struct stretch){weft_list_used(run->list), limit_bytes, ns};
    return ns;
}

/* The step time by the fastest rule, the first of equally fast ones; -1 if nothing fits. */
static int64_t best_within(struct run *run, struct stretches *stretches, const int32_t *strategies,
                           int64_t limit_bytes, int32_t *rule)
{
    int64_t best_ns = -1;
    for (int32_t i = 0; i < stretches->n_rules; i++) {
        const int64_t ns = step_within(run, stretches, strategies, i, limit_bytes);
        if (ns < 0 || (best_ns >= 0 && ns >= best_ns)) continue;
        best_ns = ns;
        *rule = i;
    }
    return best_ns;
}

/* True if some rule takes at most `enough_ns` within the limit. Rules that need no placement are
 * asked first. */
static bool is_fast_within(struct run *run, struct stretches *stretches, const int32_t *strategies,
                           int64_t limit_bytes, int64_t enough_ns)
{
    for (int known = 1; known >= 0; known--) {
        for (int32_t i = 0; i < stretches->n_rules; i++) {
            int64_t ns;
            if (is_known(stretches, i, limit_bytes, &ns) != known) continue;
            if (!known) ns = step_within(run, stretches, strategies, i, limit_bytes);
            if (ns >= 0 && ns <= enough_ns) return true;
        }
    }
    return false;
}

/* The least limit, to a thousandth, at which lists place the policies as fast as with any memory.
 * *ns is the step time with any memory, *rule the fastest rule at the returned limit. */
static int64_t enough_memory(struct run *run, const int32_t *strategies, int64_t *ns, int32_t *rule)
{
    struct stretches stretches;
    int64_t low = 0, high = run->table->most_bytes;
    begin_stretches(run, strategies, &stretches);
    *ns = best_within(run, &stretches, strategies, high, rule);
    int64_t enough_ns = *ns + (int64_t)((double)*ns * MATTERS);
    while (high - low > high / 1000) {
        int64_t middle = low + (high - low) / 2;
        if (is_fast_within(run, &stretches, strategies, middle, enough_ns))
            high = middle;
        else
            low = middle;
    }
    (void)best_within(run, &stretches, strategies, high, rule);
    return high;
}

/* Places the faster of the policy's two readings. */
static enum weft_status place_fastest(struct run *run, struct weft_error *err)
{
    struct weft_candidate *out = &run->candidate;
    int64_t ns[READINGS], bytes[READINGS];
    int32_t rules[READINGS] = {0};
    const bool same = memcmp(run->readings[0], run->readings[1],
                             (size_t)run->problem.n_decisions * sizeof *run->readings[0]) == 0;
    if (!run->table) WEFT_TRY(weft_digest_create(&run->problem, &run->table, err));
    if (!run->list) WEFT_TRY(weft_list_create(run->table, &run->list, err));
    for (int i = 0; i < (same ? 1 : READINGS); i++)
        bytes[i] = enough_memory(run, run->readings[i], &ns[i], &rules[i]);
    int best = !same && (double)ns[1] * (1 + MATTERS) < (double)ns[0] ? 1 : 0;
    take_policies(run, best);
    run->problem.tiers[0].limit_bytes = bytes[best];
    ns[0] = weft_list_place(run->list, out->strategies, weft_list_rules[rules[best]], out->moves,
                            &out->n_moves);
    run->problem.tiers[0].limit_bytes = INT64_MAX;
    return ns[0] >= 0 ? WEFT_OK : weft_fail(err, WEFT_E_INTERNAL, "an estimate: nothing fits");
}

/* Places a row. Without times no placement is the fastest, so gathers are launched as early as they
 * may be. */
static enum weft_status place_need(struct run *run, const struct weft_need *need,
                                   struct weft_error *err)
{
    if (need->way == WEFT_NEED_PUBLISHED) return place_published(run, need->rule, err);
    if (need->way == WEFT_NEED_FASTEST && run->timed) return place_fastest(run, err);
    take_policies(run, 0);
    weft_fixed_place(&run->problem,
                     need->way == WEFT_NEED_JUST_IN_TIME ? WEFT_GATHER_BLOCKING : WEFT_GATHER_EARLY,
                     &run->candidate);
    return WEFT_OK;
}

static bool has_reading(const struct run *run, int reading)
{
    return memcmp(run->candidate.strategies, run->readings[reading],
                  (size_t)run->problem.n_decisions * sizeof *run->candidate.strategies) == 0;
}

/* Fills the need of the candidate. */
static enum weft_status predict_need(struct run *run, struct weft_need *need,
                                     struct weft_error *err)
{
    struct weft_plan *plan = NULL;
    WEFT_TRY(weft_plan_create(&run->problem, "estimate", run->candidate.strategies,
                              run->candidate.moves, run->candidate.n_moves, &plan, err));
    enum weft_status status = weft_plan_predict(plan, err);
    if (status == WEFT_OK) status = weft_need_of_plan(plan, need, err);
    if (status == WEFT_OK && !run->timed) need->step_ns = need->exposed_ns = need->channel_ns = 0;
    weft_plan_destroy(plan);
    return status;
}

/* Fills a row. Sets *same if its strategies are a reading of the policy: a rule may mix other
 * policies in. */
static enum weft_status fill_need(struct run *run, struct weft_need *need, bool *same,
                                  struct weft_error *err)
{
    struct weft_error refusal = {0};
    enum weft_status status = place_need(run, need, &refusal);
    if (status == WEFT_E_INFEASIBLE) return WEFT_OK;
    if (status != WEFT_OK) return weft_fail(err, status, "%s", refusal.text);
    *same = has_reading(run, 0) || has_reading(run, 1);
    if (need->way == WEFT_NEED_FASTEST && !run->timed) need->way = WEFT_NEED_EARLIEST;
    WEFT_TRY(predict_need(run, need, err));
    if (need->way != WEFT_NEED_JUST_IN_TIME || has_reading(run, 1)) return WEFT_OK;
    /* The leaner of two readings counts: zero1 of a frozen unit is dp, or sdp. */
    struct weft_need other = *need;
    take_policies(run, 1);
    weft_fixed_place(&run->problem, WEFT_GATHER_BLOCKING, &run->candidate);
    WEFT_TRY(predict_need(run, &other, err));
    if (other.bytes < need->bytes) *need = other;
    return WEFT_OK;
}

/* Takes another way as the fastest if it is faster, or as fast and leaner. */
static void take_faster(struct weft_need *fastest, const struct weft_need *other)
{
    double ns = (double)other->step_ns, best_ns = (double)fastest->step_ns;
    bool leaner = ns <= best_ns * (1 + MATTERS) && other->bytes < fastest->bytes;
    if (!leaner && ns * (1 + MATTERS) >= best_ns) return;
    *fastest = *other;
    fastest->way = WEFT_NEED_FASTEST;
    fastest->rule = NULL;
}

/* Whether a unit has the policy: a rule takes another one for units without it, and for a target
 * without the policy that would be all. */
static bool has_policy(const struct run *run, enum weft_policy policy)
{
    for (int32_t u = 0; u < weft_problem_n_units(&run->problem); u++)
        if (weft_problem_chosen(&run->problem, run->candidate.strategies, u)->policy == policy)
            return true;
    return !weft_problem_target(&run->problem)->is_foreign;
}

/* Fills the readings of a policy. *applies: the policy can be applied. */
static enum weft_status read_policy(struct run *run, const struct weft_need *rows, int n,
                                    bool *applies, struct weft_error *err)
{
    size_t bytes = (size_t)run->problem.n_decisions * sizeof *run->readings[0];
    enum weft_status status =
        weft_fixed_decide(&weft_fixed_rules[rows[0].policy], &run->problem, &run->candidate, NULL);
    *applies = status == WEFT_OK && has_policy(run, rows[0].policy);
    if (status == WEFT_E_INFEASIBLE) return WEFT_OK;
    if (status != WEFT_OK)
        return weft_fail(err, status, "an estimate of %s", weft_policy_name(rows[0].policy));
    memcpy(run->readings[0], run->candidate.strategies, bytes);
    memcpy(run->readings[1], run->candidate.strategies, bytes);
    for (int i = 0; i < n; i++) {
        if (rows[i].way != WEFT_NEED_PUBLISHED) continue;
        if (place_published(run, rows[i].rule, NULL) == WEFT_OK)
            memcpy(run->readings[1], run->candidate.strategies, bytes);
        break;
    }
    return WEFT_OK;
}

/* Fills the rows of one policy that are asked for. */
static enum weft_status fill_policy(struct run *run, uint32_t asked, struct weft_need *rows, int n,
                                    struct weft_error *err)
{
    bool applies, same[WEFT_ESTIMATE_ROWS] = {false};
    for (int i = 0; i < n; i++)
        if (rows[i].way == WEFT_NEED_FASTEST && (asked >> i & 1u)) asked = WEFT_ESTIMATE_ALL;
    WEFT_TRY(read_policy(run, rows, n, &applies, err));
    for (int i = 0; i < n && applies; i++)
        if (asked >> i & 1u) WEFT_TRY(fill_need(run, &rows[i], &same[i], err));
    for (int f = 0; f < n; f++)
        for (int i = 0; i < n && rows[f].way == WEFT_NEED_FASTEST && rows[f].applies; i++)
            if (i != f && same[i] && rows[i].applies) take_faster(&rows[f], &rows[i]);
    return WEFT_OK;
}

enum weft_status weft_estimate_fill(const struct weft_problem *problem, bool timed, uint32_t asked,
                                    struct weft_need rows[WEFT_ESTIMATE_ROWS],
                                    struct weft_error *err)
{
    struct run run = {.problem = *problem, .timed = timed};
    size_t n_blocks = (size_t)weft_problem_count_blocks(problem);
    enum weft_status status = WEFT_OK;
    run.problem.tiers[0].limit_bytes = INT64_MAX;
    run.candidate.strategies = weft_pool_array(&run.pool, (size_t)problem->n_decisions + 1,
                                               sizeof *run.candidate.strategies);
    run.candidate.moves = weft_pool_array(&run.pool, n_blocks + 1, sizeof *run.candidate.moves);
    bool made = run.candidate.strategies && run.candidate.moves;
    for (int i = 0; i < READINGS; i++) {
        run.readings[i] =
            weft_pool_array(&run.pool, (size_t)problem->n_decisions + 1, sizeof *run.readings[i]);
        made = made && run.readings[i];
    }
    if (!made) status = weft_fail_memory(err, "an estimate");
    for (int i = 0, n; i < WEFT_ESTIMATE_ROWS && status == WEFT_OK; i += n) {
        for (n = 1; i + n < WEFT_ESTIMATE_ROWS && rows[i + n].policy == rows[i].policy;)
            n++;
        uint32_t here = asked >> i & ((1u << n) - 1);
        if (here) status = fill_policy(&run, here, &rows[i], n, err);
    }
    weft_list_destroy(run.list);
    weft_digest_destroy(run.table);
    weft_pool_finish(&run.pool);
    return status;
}
