/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "plan/events.h"
#include "plan/placement.h"
#include "problem/early.h"
#include "program/lifetime.h"
#include "program/trace.h"
#include "program/works.h"

/* A run of a program, with the instruction at the head of each lane. */
struct run {
    const struct weft_program *program;
    struct weft_trace *trace;
    int64_t step; /* of its updates; WEFT_STEP_OF_NO_UPDATE */
    struct weft_lanes lanes;
    int32_t head[WEFT_MOST_LANES];
    bool begun[WEFT_MOST_LANES]; /* the head has begun */
    bool *over;                  /* by instruction: it is complete */
};

static int32_t next_on_lane(const struct weft_program *program, int lane, int32_t from)
{
    while (from < program->n_instructions && program->instructions[from].lane != lane)
        from++;
    return from;
}

static bool is_ready(const struct run *run, const struct weft_instruction *at)
{
    for (int32_t d = 0; d < at->n_dependencies; d++)
        if (!run->over[run->program->dependencies[at->first_dependency + d]]) return false;
    return true;
}

/* Completes or begins the head of a lane. Returns whether it completed one. */
static bool turn_lane(struct run *run, int lane)
{
    int32_t i = run->head[lane];
    if (i == run->program->n_instructions) return false;
    const struct weft_instruction *at = &run->program->instructions[i];
    if (!run->begun[lane]) {
        if (!is_ready(run, at)) return false;
        run->begun[lane] = true;
        run->trace->records[i].start_ns = run->lanes.now_ns;
        weft_lanes_start(&run->lanes, lane, weft_instruction_works(at, run->step) ? at->ns : 0);
    }
    if (weft_lanes_busy(&run->lanes, lane)) return false;
    run->trace->records[i].end_ns = run->lanes.now_ns;
    run->over[i] = true;
    run->begun[lane] = false;
    run->head[lane] = next_on_lane(run->program, lane, i + 1);
    return true;
}

static void run_program(struct run *run)
{
    for (int32_t lane = 0; lane < run->program->n_lanes; lane++)
        run->head[lane] = next_on_lane(run->program, lane, 0);
    for (;;) {
        for (bool changed = true; changed;) {
            changed = false;
            for (int32_t lane = 0; lane < run->program->n_lanes; lane++)
                changed = turn_lane(run, lane) || changed;
        }
        int64_t next_ns = weft_lanes_next(&run->lanes);
        if (next_ns == INT64_MAX) return;
        weft_lanes_advance(&run->lanes, next_ns);
    }
}

enum weft_status weft_simulate_step(const struct weft_program *program, int64_t step,
                                    struct weft_trace **out, struct weft_error *err)
{
    struct run run = {.program = program,
                      .step = step,
                      .lanes = {.lanes = program->lanes, .n_lanes = program->n_lanes}};
    WEFT_TRY(weft_trace_create(program, "simulated", &run.trace, err));
    run.over = calloc((size_t)program->n_instructions + 1, sizeof *run.over);
    if (run.over == NULL) {
        weft_trace_destroy(run.trace);
        return weft_fail_memory(err, "simulation");
    }
    run_program(&run);
    free(run.over);
    weft_program_live(program, run.trace->live_bytes);
    run.trace->updated = step;
    *out = run.trace;
    return WEFT_OK;
}

enum weft_status weft_simulate(const struct weft_program *program, struct weft_trace **out,
                               struct weft_error *err)
{
    return weft_simulate_step(program, 0, out, err);
}

/* In place of a step: each average takes its share. */
enum { EVERY_STEP = -1 };

/* A replay of placements, slot by slot. */
struct replay {
    const struct weft_plan *plan;
    int64_t step; /* of the period's updates; EVERY_STEP */
    struct weft_lanes lanes;
    /* By lane and slot: last placement that its start waits for, and last that its compute waits
     * for; -1: none. */
    int64_t *due, *blocking;
    const int64_t *begins; /* by placement: plan/events.h; NULL: blocks begin at their launch */
    int32_t slot;          /* begun last */
    int32_t next[WEFT_MOST_LANES]; /* placement at the head of the lane */
    int32_t over[WEFT_MOST_LANES]; /* last complete placement; -1: none */
    bool begun[WEFT_MOST_LANES];
    bool has_one_lane;             /* one moving lane without chains */
    int64_t channel_ns;            /* of the network's lanes */
    struct weft_plan_times *times; /* or NULL */
};

/* Whether the placement before this one in its chain is complete. */
static bool may_follow(const struct replay *replay, const struct weft_placement *at)
{
    const struct weft_plan *plan = replay->plan;
    if (at->after < 0) return true;
    return replay->over[plan->problem->items[plan->placements[at->after].item].lane] >= at->after;
}

static int64_t block_ns(const struct replay *replay, const struct weft_problem_item *item)
{
    if (replay->step == EVERY_STEP || !weft_item_averages(&item->item)) return item->block_ns;
    const int64_t every = replay->plan->problem->period.every;
    return replay->step % every == item->phase ? item->average_ns : 0;
}

static void begin_block(struct replay *replay, int32_t lane, int32_t placement)
{
    const struct weft_plan *plan = replay->plan;
    const struct weft_problem_item *item = &plan->problem->items[plan->placements[placement].item];
    const int64_t ns = block_ns(replay, item);
    weft_lanes_start(&replay->lanes, lane, ns);
    if (weft_item_is_collective(&item->item) || weft_item_averages(&item->item))
        replay->channel_ns += ns;
    if (replay->times) replay->times->start_ns[placement] = replay->lanes.now_ns;
}

/* Completes and begins blocks of a lane at the present time. Returns whether any was completed. */
static bool serve_lane(struct replay *replay, int32_t lane)
{
    const struct weft_plan *plan = replay->plan;
    int32_t *next = &replay->next[lane], before = replay->over[lane];
    while (*next < plan->n_placements) {
        const struct weft_placement *at = &plan->placements[*next];
        const struct weft_problem_item *item = &plan->problem->items[at->item];
        bool begun = replay->begun[lane];
        if (item->lane != lane) {
            ++*next;
            continue;
        }
        const int64_t first = replay->begins ? replay->begins[*next] : at->launch;
        if (!begun && (first > replay->slot || !may_follow(replay, at))) break;
        if (!begun) begin_block(replay, lane, *next);
        replay->begun[lane] = weft_lanes_busy(&replay->lanes, lane);
        if (replay->begun[lane]) break;
        if (replay->times) replay->times->end_ns[*next] = replay->lanes.now_ns;
        replay->over[lane] = (*next)++;
    }
    return replay->over[lane] > before;
}

static void serve_all(struct replay *replay)
{
    for (bool any = true; any;) {
        any = false;
        for (int32_t lane = WEFT_LANE_FIRST; lane < replay->lanes.n_lanes; lane++)
            any = serve_lane(replay, lane) || any;
    }
}

static void pass_time(struct replay *replay)
{
    weft_lanes_advance(&replay->lanes, weft_lanes_next(&replay->lanes));
    serve_all(replay);
}

/* Ends the only moving lane's blocks up to the placement, one after another. */
static void drain_lane(struct replay *replay, int32_t lane, int64_t placement)
{
    struct weft_lanes *lanes = &replay->lanes;
    for (int32_t *next = &replay->next[lane]; *next <= placement; ++*next) {
        if (!replay->begun[lane]) begin_block(replay, lane, *next);
        if (lanes->left[lane] > 0) lanes->now_ns += (lanes->left[lane] - 1) / WEFT_RATE_ONE + 1;
        lanes->left[lane] = 0;
        if (replay->times) replay->times->end_ns[*next] = lanes->now_ns;
        replay->begun[lane] = false;
        replay->over[lane] = *next;
    }
    serve_all(replay);
}

/* Advances until the placement is complete. Everything before it was launched, so time goes on.
 * While a lane moves blocks alone, they need no event loop. */
static void wait_for(struct replay *replay, int32_t lane, int64_t placement)
{
    if (replay->has_one_lane && replay->over[lane] < placement &&
        !weft_lanes_busy(&replay->lanes, WEFT_LANE_COMPUTE))
        drain_lane(replay, lane, placement);
    while (replay->over[lane] < placement)
        pass_time(replay);
}

/* The same for one row of each lane. */
static void wait_for_all(struct replay *replay, const int64_t *placements)
{
    const struct weft_problem *problem = replay->plan->problem;
    for (int32_t lane = WEFT_LANE_FIRST; lane < problem->n_lanes; lane++)
        wait_for(replay, lane, placements[weft_problem_lane_at(problem, lane)]);
}

static void index_placements(struct replay *replay)
{
    const struct weft_plan *plan = replay->plan;
    int32_t n_slots = plan->problem->n_slots, n = weft_problem_n_moving(plan->problem) * n_slots;
    for (int32_t i = 0; i < n; i++)
        replay->due[i] = replay->blocking[i] = -1;
    for (int32_t i = 0; i < plan->n_placements; i++) {
        const struct weft_placement *at = &plan->placements[i];
        size_t lane = weft_problem_lane_at(plan->problem, plan->problem->items[at->item].lane);
        /* If the host runs ahead, launches of the slot wait for no gather. */
        const bool blocks = weft_placement_blocks(at) ||
                            (replay->begins && plan->problem->items[at->item].item.acquires);
        (blocks ? replay->blocking : replay->due)[lane + (size_t)at->deadline] = i;
    }
}

static void replay_plan(const struct weft_plan *plan, int64_t step, int64_t *scratch,
                        struct weft_plan_times *times, struct weft_plan_spans *spans,
                        struct weft_prediction *out)
{
    const struct weft_problem *problem = plan->problem;
    int32_t n_slots = problem->n_slots;
    struct replay replay = {
        .plan = plan,
        .step = step,
        .lanes = weft_problem_lanes(problem),
        .due = scratch,
        .blocking = scratch + weft_problem_lane_at(problem, problem->n_lanes),
        .has_one_lane = problem->n_lanes == WEFT_LANE_FIRST + 1 && !weft_problem_chains(problem),
        .times = times,
    };
    for (int32_t lane = 0; lane < problem->n_lanes; lane++)
        replay.over[lane] = -1;
    if (weft_problem_is_early(problem)) {
        int64_t *begins = scratch + 2 * weft_problem_lane_at(problem, problem->n_lanes);
        weft_events_find(plan, begins + plan->n_placements, begins);
        replay.begins = begins;
    }
    index_placements(&replay);
    int64_t compute_ns = 0, exposed_ns = 0, slowdown_ns = 0;
    for (int32_t s = 0; s < n_slots; s++) {
        int64_t idle_ns = replay.lanes.now_ns;
        wait_for_all(&replay, replay.due + s);
        replay.slot = s;
        if (times) times->slot_start_ns[s] = replay.lanes.now_ns;
        serve_all(&replay);
        wait_for_all(&replay, replay.blocking + s);
        int64_t start_ns = replay.lanes.now_ns, slot_ns = weft_plan_slot_ns(plan, s);
        weft_lanes_start(&replay.lanes, WEFT_LANE_COMPUTE, slot_ns);
        while (weft_lanes_busy(&replay.lanes, WEFT_LANE_COMPUTE))
            pass_time(&replay);
        if (spans) spans->work_start_ns[s] = start_ns;
        if (spans) spans->work_end_ns[s] = replay.lanes.now_ns;
        exposed_ns += start_ns - idle_ns;
        compute_ns += slot_ns;
        slowdown_ns += replay.lanes.now_ns - start_ns - slot_ns;
    }
    /* The norm slot's sum over ranks follows everything on its lane. The agreements of updates have
     * the lane to themselves. */
    int64_t computed_ns = replay.lanes.now_ns;
    while (weft_lanes_next(&replay.lanes) != INT64_MAX)
        pass_time(&replay);
    int64_t agreements_ns = weft_problem_agreements_ns(problem);
    int64_t agreed_ns = replay.lanes.now_ns + agreements_ns;
    out->exposed_ns = exposed_ns + agreed_ns - computed_ns;
    out->step_ns = agreed_ns;
    out->compute_ns = compute_ns;
    out->slowdown_ns = slowdown_ns;
    out->channel_ns = replay.channel_ns + agreements_ns;
}

size_t weft_simulate_words(const struct weft_problem *problem)
{
    const size_t words = 2 * weft_problem_lane_at(problem, problem->n_lanes);
    if (!weft_problem_is_early(problem)) return words;
    return words + (size_t)weft_problem_count_blocks(problem) + weft_events_words(problem);
}

void weft_simulate_plan(const struct weft_plan *plan, int64_t *scratch, struct weft_prediction *out)
{
    replay_plan(plan, EVERY_STEP, scratch, NULL, NULL, out);
}

void weft_simulate_plan_step(const struct weft_plan *plan, int64_t step, int64_t *scratch,
                             struct weft_prediction *out)
{
    replay_plan(plan, step, scratch, NULL, NULL, out);
}

/* The first phase of an average above `phase`; -1: none. */
static int64_t next_phase(const struct weft_problem *problem, int64_t phase)
{
    int64_t next = -1;
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_problem_item *item = &problem->items[i];
        if (weft_item_averages(&item->item) && item->phase > phase &&
            (next < 0 || item->phase < next))
            next = item->phase;
    }
    return next;
}

/* The first step without an average; of several steps with one each, a step like the first. */
static int64_t step_without(const struct weft_problem *problem)
{
    int64_t step = 0;
    for (int64_t phase = next_phase(problem, -1); phase == step; phase = next_phase(problem, phase))
        step++;
    return step;
}

/* Adds to `sum` by how much a period's times are above those of another. */
static void add_excess(struct weft_prediction *sum, const struct weft_prediction *of,
                       const struct weft_prediction *than)
{
    sum->step_ns += of->step_ns - than->step_ns;
    sum->slowdown_ns += of->slowdown_ns - than->slowdown_ns;
    sum->channel_ns += of->channel_ns - than->channel_ns;
}

void weft_simulate_mean(const struct weft_plan *plan, int64_t *scratch, struct weft_prediction *out)
{
    const struct weft_problem *problem = plan->problem;
    const int64_t every = problem->period.every;
    struct weft_prediction excess = {0}, usual, one;
    if (next_phase(problem, -1) < 0) {
        weft_simulate_plan(plan, scratch, out);
        return;
    }
    replay_plan(plan, step_without(problem), scratch, NULL, NULL, &usual);
    for (int64_t phase = next_phase(problem, -1); phase >= 0; phase = next_phase(problem, phase)) {
        replay_plan(plan, phase, scratch, NULL, NULL, &one);
        add_excess(&excess, &one, &usual);
    }
    const int64_t more_ns = excess.step_ns > 0 ? excess.step_ns + every - 1 : excess.step_ns;
    out->step_ns = usual.step_ns + more_ns / every;
    out->compute_ns = usual.compute_ns;
    out->slowdown_ns = usual.slowdown_ns + excess.slowdown_ns / every;
    out->exposed_ns = out->step_ns - out->compute_ns - out->slowdown_ns;
    out->channel_ns = usual.channel_ns + excess.channel_ns / every;
}

void weft_simulate_extremes(const struct weft_plan *plan, int64_t *scratch, int64_t *least_ns,
                            int64_t *most_ns)
{
    struct weft_prediction one;
    replay_plan(plan, step_without(plan->problem), scratch, NULL, NULL, &one);
    *least_ns = *most_ns = one.step_ns;
    for (int64_t phase = next_phase(plan->problem, -1); phase >= 0;
         phase = next_phase(plan->problem, phase)) {
        replay_plan(plan, phase, scratch, NULL, NULL, &one);
        if (one.step_ns < *least_ns) *least_ns = one.step_ns;
        if (one.step_ns > *most_ns) *most_ns = one.step_ns;
    }
}

void weft_simulate_plan_times(const struct weft_plan *plan, int64_t *scratch,
                              struct weft_plan_times *out)
{
    struct weft_prediction unused;
    replay_plan(plan, EVERY_STEP, scratch, out, NULL, &unused);
}

void weft_simulate_plan_spans(const struct weft_plan *plan, int64_t *scratch,
                              struct weft_plan_spans *out)
{
    struct weft_prediction unused;
    replay_plan(plan, EVERY_STEP, scratch, &out->times, out, &unused);
}
