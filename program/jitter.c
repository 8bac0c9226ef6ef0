/* SPDX-License-Identifier: Apache-2.0 */
#include "program/jitter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/normal.h"
#include "plan/events.h"
#include "problem/early.h"

/* The ranks that a block waits for. */
/* PAIR: of a place on a node and on its neighbour, in even and odd turns of gossip. */
enum jitter_group {
    JITTER_ALL,
    JITTER_NODE,
    JITTER_ACROSS,
    JITTER_OWN,
    JITTER_PAIR,
    JITTER_OTHER_PAIR,
    JITTER_GROUPS
};

struct ranks_run {
    const struct weft_plan *plan;
    int64_t n_ranks, n_groups[JITTER_GROUPS];
    int32_t *group_of[JITTER_GROUPS]; /* [n_ranks] */
    int64_t *now_ns;                  /* by rank, of its compute */
    int64_t *lane_ns;                 /* by lane and rank: end of the lane's last block */
    int64_t *waited_ns;               /* by rank */
    int64_t *end_at;                  /* by placement: its place in end_ns */
    int64_t *end_ns;                  /* by placement and group */
    int64_t *begins;                  /* by placement: plan/events.h, otherwise its launch */
    int32_t *due, *blocking;          /* by lane and slot, as in program/simulate.c; -1: none */
    int32_t next[WEFT_MOST_LANES];    /* placement at the head of the lane */
    int32_t over[WEFT_MOST_LANES];    /* last placement with a known end; -1: none */
    int64_t *step_ns;                 /* by step */
    int64_t step;                     /* of the updates at hand */
    int64_t ended_ns;                 /* of the last rank, the step before */
    int64_t *group_ns;                /* by group: end of a step */
};

static int64_t lognormal_ns(const void *of, int64_t step, int64_t rank, int32_t slot,
                            int64_t slot_ns)
{
    const struct weft_jitter_factors *factors = of;
    if (factors->cv <= 0 || slot_ns == 0) return slot_ns;
    const double variance = log1p(factors->cv * factors->cv);
    const double z =
        weft_normal_of(factors->seed, (uint64_t)step << 32 | (uint64_t)rank, (uint64_t)slot);
    return llround((double)slot_ns * exp(sqrt(variance) * z - variance / 2));
}

struct weft_jitter_law weft_jitter_lognormal(const struct weft_jitter_factors *of)
{
    return (struct weft_jitter_law){lognormal_ns, of};
}

static enum jitter_group group_of_item(const struct weft_plan *plan, const struct weft_item *item)
{
    const struct weft_problem_strategy *chosen = weft_plan_chosen(plan, item->decision);
    switch (weft_item_kind_of(item)->role) {
    case WEFT_ROLE_GATHERS:
    case WEFT_ROLE_REDUCES:
        return plan->problem->period.every > 0 ||
                       weft_policy_groups[chosen->policy].parameters == WEFT_GROUP_NODE
                   ? JITTER_NODE
                   : JITTER_ALL;
    case WEFT_ROLE_ACROSS:
        return plan->problem->period.gossip ? JITTER_PAIR : JITTER_ACROSS;
    case WEFT_ROLE_DOWN:
    case WEFT_ROLE_UP:
    case WEFT_ROLE_HOST:
    case WEFT_ROLE_READS:
    case WEFT_ROLE_WRITES:
    case WEFT_ROLE_COUNT:
        break;
    }
    return JITTER_OWN;
}

static enum jitter_group group_of_placement(const struct weft_plan *plan, int32_t placement)
{
    return group_of_item(plan, &plan->problem->items[plan->placements[placement].item].item);
}

static int64_t latest_of(int64_t a_ns, int64_t b_ns)
{
    return a_ns > b_ns ? a_ns : b_ns;
}

/* The ends of a placement, by group, and the group of each rank. */
struct block_ends {
    int64_t *ns;
    const int32_t *group_of;
};

static struct block_ends ends_of(const struct ranks_run *run, int32_t placement)
{
    enum jitter_group group = group_of_placement(run->plan, placement);
    const int64_t every = run->plan->problem->period.every;
    if (group == JITTER_PAIR && run->step / every % 2 > 0) group = JITTER_OTHER_PAIR;
    return (struct block_ends){run->end_ns + run->end_at[placement], run->group_of[group]};
}

/* Whether a block works in the step at hand, and not in others of an average. */
static bool block_works(const struct ranks_run *run, const struct weft_problem_item *item)
{
    if (!weft_item_averages(&item->item)) return true;
    return run->step % run->plan->problem->period.every == item->phase;
}

/* A block that does not work follows the blocks before it on its lane. No rank waits for another.
 */
static void pass_block(const struct ranks_run *run, const int64_t *lane_ns, struct block_ends ends)
{
    for (int64_t r = 0; r < run->n_ranks; r++) {
        int64_t *end_ns = &ends.ns[ends.group_of[r]];
        *end_ns = latest_of(*end_ns, lane_ns[r]);
    }
}

/* Finds the end of a block at the head of its lane. Each group begins with its last rank. */
static void run_block(struct ranks_run *run, int32_t lane, int32_t placement)
{
    const struct weft_placement *at = &run->plan->placements[placement];
    const struct weft_problem_item *item = &run->plan->problem->items[at->item];
    const int64_t block_ns = weft_item_averages(&item->item) ? item->average_ns : item->block_ns;
    const struct block_ends ends = ends_of(run, placement);
    int64_t *lane_ns = run->lane_ns + lane * run->n_ranks;
    const int64_t n_groups = run->n_groups[group_of_placement(run->plan, placement)];
    memset(ends.ns, 0, (size_t)n_groups * sizeof *ends.ns);
    if (!block_works(run, item)) {
        pass_block(run, lane_ns, ends);
        return;
    }
    for (int64_t r = 0; r < run->n_ranks; r++) {
        int64_t *end_ns = &ends.ns[ends.group_of[r]];
        *end_ns = latest_of(*end_ns, latest_of(run->now_ns[r], lane_ns[r]));
    }
    if (at->after >= 0) {
        const struct block_ends before = ends_of(run, at->after);
        for (int64_t r = 0; r < run->n_ranks; r++) {
            int64_t *end_ns = &ends.ns[ends.group_of[r]];
            *end_ns = latest_of(*end_ns, before.ns[before.group_of[r]]);
        }
    }
    for (int64_t g = 0; g < n_groups; g++)
        ends.ns[g] += block_ns;
    for (int64_t r = 0; r < run->n_ranks; r++)
        lane_ns[r] = ends.ns[ends.group_of[r]];
}

/* Finds the ends of all blocks of a lane that a slot's start lets begin. Returns whether there was
 * one. */
static bool run_lane(struct ranks_run *run, int32_t lane, int32_t slot)
{
    const struct weft_plan *plan = run->plan;
    const int32_t before = run->over[lane];
    for (int32_t *next = &run->next[lane]; *next < plan->n_placements; ++*next) {
        const struct weft_placement *at = &plan->placements[*next];
        if (plan->problem->items[at->item].lane != lane) continue;
        if (run->begins[*next] > slot) break;
        if (at->after >= 0 &&
            run->over[plan->problem->items[plan->placements[at->after].item].lane] < at->after)
            break;
        run_block(run, lane, *next);
        run->over[lane] = *next;
    }
    return run->over[lane] > before;
}

static void run_lanes(struct ranks_run *run, int32_t slot)
{
    for (bool any = true; any;) {
        any = false;
        for (int32_t lane = WEFT_LANE_FIRST; lane < run->plan->problem->n_lanes; lane++)
            any = run_lane(run, lane, slot) || any;
    }
}

/* Compute of every rank waits for a row of placements, one a lane. */
static void wait_for_row(struct ranks_run *run, const int32_t *row)
{
    const struct weft_problem *problem = run->plan->problem;
    for (int32_t lane = WEFT_LANE_FIRST; lane < problem->n_lanes; lane++) {
        const int32_t placement = row[weft_problem_lane_at(problem, lane)];
        if (placement < 0) continue;
        const struct block_ends ends = ends_of(run, placement);
        for (int64_t r = 0; r < run->n_ranks; r++) {
            const int64_t end_ns = ends.ns[ends.group_of[r]];
            if (end_ns <= run->now_ns[r]) continue;
            run->waited_ns[r] += end_ns - run->now_ns[r];
            run->now_ns[r] = end_ns;
        }
    }
}

/* Ranks that step together end together: when the last one has computed and moved everything, and
 * agreed. Returns the end of the last. */
static int64_t end_step(struct ranks_run *run)
{
    const struct weft_problem *problem = run->plan->problem;
    const enum jitter_group group = problem->period.every > 0 ? JITTER_NODE : JITTER_ALL;
    const int32_t *group_of = run->group_of[group];
    int64_t latest_ns = 0;
    memset(run->group_ns, 0, (size_t)run->n_groups[group] * sizeof *run->group_ns);
    for (int64_t r = 0; r < run->n_ranks; r++) {
        int64_t *end_ns = &run->group_ns[group_of[r]];
        *end_ns = latest_of(*end_ns, run->now_ns[r]);
        for (int32_t lane = 0; lane < problem->n_lanes; lane++)
            *end_ns = latest_of(*end_ns, run->lane_ns[lane * run->n_ranks + r]);
    }
    for (int64_t r = 0; r < run->n_ranks; r++) {
        const int64_t end_ns = run->group_ns[group_of[r]] + weft_problem_agreements_ns(problem);
        run->waited_ns[r] += end_ns - run->now_ns[r];
        run->now_ns[r] = end_ns;
        latest_ns = latest_of(latest_ns, end_ns);
    }
    return latest_ns;
}

/* Nodes agree before the period of an average. */
static bool nodes_meet(const struct ranks_run *run)
{
    const struct weft_problem *problem = run->plan->problem;
    for (int32_t i = 0; i < problem->n_items; i++)
        if (weft_item_averages(&problem->items[i].item) && block_works(run, &problem->items[i]))
            return true;
    return problem->period.every == 0;
}

static void meet_nodes(struct ranks_run *run, int64_t at_ns)
{
    for (int64_t r = 0; r < run->n_ranks; r++) {
        run->waited_ns[r] += at_ns - run->now_ns[r];
        run->now_ns[r] = at_ns;
    }
}

/* Time from the end of the last rank's step before to that of this one. */
static int64_t run_step(struct ranks_run *run, struct weft_jitter_law law, int64_t step)
{
    const struct weft_problem *problem = run->plan->problem;
    const int64_t begin_ns = run->ended_ns;
    run->step = step;
    if (nodes_meet(run)) meet_nodes(run, begin_ns);
    for (int32_t lane = 0; lane < problem->n_lanes; lane++) {
        run->next[lane] = 0;
        run->over[lane] = -1;
    }
    for (int32_t s = 0; s < problem->n_slots; s++) {
        const int64_t slot_ns = weft_plan_slot_ns(run->plan, s);
        wait_for_row(run, run->due + s);
        run_lanes(run, s);
        wait_for_row(run, run->blocking + s);
        for (int64_t r = 0; r < run->n_ranks; r++)
            run->now_ns[r] += law.time_ns(law.of, step, r, s, slot_ns);
    }
    run->ended_ns = end_step(run);
    return run->ended_ns - begin_ns;
}

static enum weft_status check_plan(const struct weft_plan *plan, struct weft_error *err)
{
    const struct weft_problem *problem = plan->problem;
    bool has_nodes = problem->period.every > 0;
    for (int32_t i = 0; i < problem->n_items; i++)
        has_nodes |= weft_problem_needs(problem, plan->strategies, i) &&
                     weft_item_kind_of(&problem->items[i].item)->role == WEFT_ROLE_ACROSS;
    if (weft_problem_contends(problem))
        return weft_fail(err, WEFT_E_DATA,
                         "--jitter: compute and communication of this plan slow each other, which "
                         "the simulation of unequal ranks leaves out: plan with "
                         "cluster.contention.compute=0 and cluster.contention.channel=0, or a "
                         "profile without rates");
    if (has_nodes && problem->ranks_per_node == 0)
        return weft_fail(err, WEFT_E_DATA,
                         "--jitter: the plan has collectives of nodes, but not how many ranks a "
                         "node has: plan again");
    return WEFT_OK;
}

/* The first rank of a rank's pair, as in runtime/comm/branch.h. */
static int64_t pair_of(int64_t rank, int64_t ranks, int64_t per_node, int64_t round)
{
    const int64_t nodes = ranks / per_node, node = rank / per_node;
    int64_t first = node - (node + round) % 2;
    if (first < 0) first = nodes % 2 == 0 ? nodes - 1 : 0;
    return first * per_node + rank % per_node;
}

static void group_ranks(struct ranks_run *run)
{
    const struct weft_problem *problem = run->plan->problem;
    const int64_t per_node = problem->ranks_per_node > 0 ? problem->ranks_per_node : 1;
    run->n_groups[JITTER_ALL] = 1;
    run->n_groups[JITTER_NODE] = run->n_ranks / per_node;
    run->n_groups[JITTER_ACROSS] = per_node;
    run->n_groups[JITTER_OWN] = run->n_ranks;
    run->n_groups[JITTER_PAIR] = run->n_groups[JITTER_OTHER_PAIR] = run->n_ranks;
    for (int64_t r = 0; r < run->n_ranks; r++) {
        run->group_of[JITTER_ALL][r] = 0;
        run->group_of[JITTER_NODE][r] = (int32_t)(r / per_node);
        run->group_of[JITTER_ACROSS][r] = (int32_t)(r % per_node);
        run->group_of[JITTER_OWN][r] = (int32_t)r;
        run->group_of[JITTER_PAIR][r] = (int32_t)pair_of(r, run->n_ranks, per_node, 0);
        run->group_of[JITTER_OTHER_PAIR][r] = (int32_t)pair_of(r, run->n_ranks, per_node, 1);
    }
}

static void index_deadlines(struct ranks_run *run)
{
    const struct weft_plan *plan = run->plan;
    const struct weft_problem *problem = plan->problem;
    const size_t n = weft_problem_lane_at(problem, problem->n_lanes);
    for (size_t i = 0; i < n; i++)
        run->due[i] = run->blocking[i] = -1;
    for (int32_t i = 0; i < plan->n_placements; i++) {
        const struct weft_placement *at = &plan->placements[i];
        const size_t lane = weft_problem_lane_at(problem, problem->items[at->item].lane);
        const bool blocks = weft_placement_blocks(at) || (weft_problem_is_early(problem) &&
                                                          problem->items[at->item].item.acquires);
        (blocks ? run->blocking : run->due)[lane + (size_t)at->deadline] = i;
    }
}

static void find_begins(struct ranks_run *run)
{
    const struct weft_plan *plan = run->plan;
    if (weft_problem_is_early(plan->problem)) {
        weft_events_find(plan, run->begins + plan->n_placements, run->begins);
        return;
    }
    for (int32_t i = 0; i < plan->n_placements; i++)
        run->begins[i] = plan->placements[i].launch;
}

static bool open_run(struct ranks_run *run, int64_t n_steps)
{
    const struct weft_plan *plan = run->plan;
    const struct weft_problem *problem = plan->problem;
    const size_t ranks = (size_t)run->n_ranks, steps = (size_t)n_steps;
    const size_t rows = weft_problem_lane_at(problem, problem->n_lanes);
    bool ok = true;
    for (int g = 0; g < JITTER_GROUPS; g++)
        ok &= (run->group_of[g] = calloc(ranks, sizeof *run->group_of[g])) != NULL;
    run->now_ns = calloc(ranks, sizeof *run->now_ns);
    run->waited_ns = calloc(ranks, sizeof *run->waited_ns);
    run->group_ns = calloc(ranks, sizeof *run->group_ns);
    run->lane_ns = calloc(ranks * (size_t)problem->n_lanes, sizeof *run->lane_ns);
    run->due = calloc(rows, sizeof *run->due);
    run->blocking = calloc(rows, sizeof *run->blocking);
    run->end_at = calloc((size_t)plan->n_placements + 1, sizeof *run->end_at);
    run->step_ns = calloc(steps, sizeof *run->step_ns);
    run->begins =
        calloc((size_t)plan->n_placements + weft_events_words(problem) + 1, sizeof *run->begins);
    if (!ok || !run->begins || !run->now_ns || !run->waited_ns || !run->group_ns || !run->lane_ns ||
        !run->due || !run->blocking || !run->end_at || !run->step_ns)
        return false;
    group_ranks(run);
    index_deadlines(run);
    find_begins(run);
    int64_t n_ends = 0;
    for (int32_t i = 0; i < plan->n_placements; i++) {
        run->end_at[i] = n_ends;
        n_ends += run->n_groups[group_of_placement(plan, i)];
    }
    run->end_ns = calloc((size_t)n_ends + 1, sizeof *run->end_ns);
    return run->end_ns != NULL;
}

static void close_run(struct ranks_run *run)
{
    for (int g = 0; g < JITTER_GROUPS; g++)
        free(run->group_of[g]);
    free(run->now_ns);
    free(run->waited_ns);
    free(run->group_ns);
    free(run->lane_ns);
    free(run->due);
    free(run->blocking);
    free(run->end_at);
    free(run->end_ns);
    free(run->step_ns);
    free(run->begins);
}

static int compare_ns(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The least of the sorted times that a share of them does not exceed. */
static int64_t quantile_ns(const int64_t *sorted_ns, int64_t n, int64_t percent)
{
    return sorted_ns[(n * percent + 99) / 100 - 1];
}

static void sum_up(struct ranks_run *run, int64_t n_steps, struct weft_jitter_steps *out)
{
    double sum_ns = 0, waited_ns = 0;
    for (int64_t i = 0; i < n_steps; i++)
        sum_ns += (double)run->step_ns[i];
    for (int64_t r = 0; r < run->n_ranks; r++)
        waited_ns += (double)run->waited_ns[r];
    qsort(run->step_ns, (size_t)n_steps, sizeof *run->step_ns, compare_ns);
    *out = (struct weft_jitter_steps){
        .mean_ns = llround(sum_ns / (double)n_steps),
        .median_ns = quantile_ns(run->step_ns, n_steps, 50),
        .p99_ns = quantile_ns(run->step_ns, n_steps, 99),
        .longest_ns = run->step_ns[n_steps - 1],
        .waiting = sum_ns > 0 ? waited_ns / (double)run->n_ranks / sum_ns : 0,
    };
}

enum weft_status weft_simulate_jitter(const struct weft_plan *plan, struct weft_jitter_law law,
                                      int64_t n_steps, struct weft_jitter_steps *out,
                                      struct weft_error *err)
{
    struct ranks_run run = {.plan = plan, .n_ranks = plan->problem->ranks};
    WEFT_TRY(check_plan(plan, err));
    const bool opened = open_run(&run, n_steps);
    for (int64_t step = 0; opened && step < n_steps; step++)
        run.step_ns[step] = run_step(&run, law, step);
    if (opened) sum_up(&run, n_steps, out);
    close_run(&run);
    return opened ? WEFT_OK : weft_fail_memory(err, "the simulation of all ranks");
}
