#include "scheduler/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/units.h"
#include "scheduler/digest.h"
#include "scheduler/infeasible.h"
#include "scheduler/planners/ahead.h"
#include "scheduler/planners/bucket.h"
#include "scheduler/planners/bytescheduler.h"
#include "scheduler/planners/deepcompile.h"
#include "scheduler/planners/deepspeed.h"
#include "scheduler/planners/fixed.h"
#include "scheduler/planners/planners.h"
#include "scheduler/tight.h"

static const struct weft_planner planners[] = {
#define ROW(identifier, name, literal, text) {name, text, literal, weft_planner_##identifier},
    WEFT_PLANNER_MAP(ROW)
#undef ROW
        {NULL, NULL, false, NULL},
};

const struct weft_planner *weft_planners(void)
{
    return planners;
}

const struct weft_setting *weft_planner_settings(const struct weft_planner *planner)
{
    static const struct {
        const char *planner;
        const struct weft_setting *settings;
    } all[] = {
        {"ddp", weft_bucket_settings},
        {"zero1", weft_bucket_settings},
        {"fairscale", weft_bucket_settings},
        {"fsdp2", weft_ahead_settings},
        {"fsdp2-mix", weft_ahead_settings},
        {"deepspeed", weft_deepspeed_settings},
        {"deepcompile", weft_deepcompile_settings},
        {"bytescheduler", weft_bytescheduler_settings},
        {"dear", weft_bucket_settings},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(all[i].planner, planner->name) == 0) return all[i].settings;
    return NULL;
}

static const struct weft_setting *find_setting(const struct weft_setting *settings,
                                               const char *name)
{
    for (; settings && settings->name; settings++)
        if (strcmp(settings->name, name) == 0) return settings;
    return NULL;
}

const struct weft_planner *weft_planner_find(const char *name, const struct weft_setting **setting)
{
    size_t length = strcspn(name, ":");
    for (const struct weft_planner *planner = planners; planner->name; planner++) {
        const struct weft_setting *found = NULL;
        if (strlen(planner->name) != length || memcmp(planner->name, name, length) != 0) continue;
        if (name[length] != '\0') {
            found = find_setting(weft_planner_settings(planner), name + length + 1);
            if (!found) return NULL;
        }
        if (setting) *setting = found;
        return planner;
    }
    return NULL;
}

struct run {
    const struct weft_problem *problem;
    const struct weft_lower_inputs *inputs; /* NULL: no layout; else `timed` while there is time */
    struct weft_lower_inputs timed;
    const struct weft_schedule_options *options;
    const struct weft_planner *planner;
    struct weft_digest *table;
    int64_t *room_bytes; /* [n_slots], the most of them: see weft_tight_room */
    int64_t most_room_bytes;
    struct weft_candidate candidate;
    /* The bound of the first round, and what the solver said in the last. */
    struct weft_outcome outcome;
    struct weft_pool pool; /* of certificates */
    int64_t deadline_ns;   /* on options->now_ns; 0 = none */
    /* The best so far: one that fits, or the one that exceeds the limit least. */
    struct weft_plan *plan;
    struct weft_program *program;
};

static bool is_late(const struct run *run)
{
    return run->deadline_ns > 0 && run->options->now_ns() >= run->deadline_ns;
}

static void keep(struct run *run, struct weft_plan *plan, struct weft_program *program)
{
    weft_plan_destroy(run->plan);
    weft_program_destroy(run->program);
    run->plan = plan;
    run->program = program;
}

static int64_t total_bytes(const struct run *run)
{
    return run->plan->prediction.total_bytes;
}

/* What overlaps more may slow compute more: the candidate as it is, where relaxing it costs time.
 */
static enum weft_status keep_if_no_slower(struct run *run, struct weft_plan **relaxed,
                                          struct weft_error *err)
{
    struct weft_plan *plan = NULL;
    WEFT_TRY(weft_plan_create(run->problem, run->options->planner, run->candidate.policies,
                              run->candidate.moves, run->candidate.n_moves, &plan, err));
    enum weft_status status = weft_plan_predict(plan, err);
    if (status == WEFT_OK && plan->prediction.step_ns < (*relaxed)->prediction.step_ns) {
        struct weft_plan *slower = *relaxed;
        *relaxed = plan;
        plan = slower;
    }
    weft_plan_destroy(plan);
    return status;
}

/* A plan of the candidate, relaxed within `limit_bytes` of the rows' problem when that is wanted,
 * lowered and measured. It is kept when it takes less than the one kept before. */
static enum weft_status lower(struct run *run, const struct weft_problem *rows, int64_t limit_bytes,
                              bool relax, int32_t effort, struct weft_error *err)
{
    struct weft_plan *plan = NULL;
    struct weft_program *program = NULL;
    enum weft_status status;
    WEFT_TRY(weft_plan_create(rows, run->options->planner, run->candidate.policies,
                              run->candidate.moves, run->candidate.n_moves, &plan, err));
    if (relax) WEFT_TRY_GOTO(fail, weft_plan_relax(plan, limit_bytes, err));
    plan->problem = run->problem;
    WEFT_TRY_GOTO(fail, weft_plan_predict(plan, err));
    if (relax && run->problem->compute_rate < WEFT_RATE_ONE)
        WEFT_TRY_GOTO(fail, keep_if_no_slower(run, &plan, err));
    if (run->inputs) {
        WEFT_TRY_GOTO(fail, weft_program_lower(plan, run->inputs, effort, &program, err));
        plan->prediction.arena_bytes = program->arena_bytes;
        plan->prediction.total_bytes = program->base_bytes + program->arena_bytes;
    } else {
        plan->prediction.total_bytes = plan->prediction.peak_bytes;
    }
    if (!run->plan || plan->prediction.total_bytes < total_bytes(run)) {
        keep(run, plan, program);
    } else {
        weft_plan_destroy(plan);
        weft_program_destroy(program);
    }
    return WEFT_OK;
fail:
    weft_plan_destroy(plan);
    return status;
}

/* Each search for a layout gets a part of the time that is left: rows that are a little tighter do
 * what it may not, and there must be time to look at them. */
static void limit_search(struct run *run)
{
    if (!run->timed.clock.now_ns) return;
    int64_t now_ns = run->options->now_ns();
    run->timed.clock.deadline_ns = now_ns + (run->deadline_ns - now_ns) / 8;
}

/* Tries to make the candidate's layout fit: with blocks moved apart as far as memory allows, as
 * they are, and with a longer search, the longest only where `hard`. A literal one only as it is.
 */
static enum weft_status pack(struct run *run, const struct weft_problem *rows,
                             int64_t row_limit_bytes, bool literal, bool hard,
                             struct weft_error *err)
{
    static const struct {
        bool relax, hard;
        int32_t effort;
    } tries[] = {
        {true, false, 0}, {false, false, 0}, {false, false, 1}, {true, true, 1}, {false, true, 2}};
    int64_t limit_bytes = run->problem->memory_limit_bytes;
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        if ((tries[i].relax && literal) || (tries[i].hard && !hard)) continue;
        limit_search(run);
        WEFT_TRY(lower(run, rows, row_limit_bytes, tries[i].relax, tries[i].effort, err));
        if (total_bytes(run) <= limit_bytes) break;
    }
    return WEFT_OK;
}

/* Adds the moves of an item to the candidate, the gathers of which block unless there is room for
 * all of them in the last slot of their window. */
static void move_late(struct run *run, int32_t index, int64_t *rows, int64_t limit_bytes)
{
    struct weft_candidate *out = &run->candidate;
    const struct weft_item *item = &run->problem->items[index].item;
    bool gathers = item->kind == WEFT_ALL_GATHER;
    int64_t bytes = gathers ? item->n_blocks * item->stair_bytes : 0;
    bool fits = rows[item->last] + bytes <= limit_bytes;
    if (gathers && fits) rows[item->last] += bytes;
    for (int32_t b = 0; b < item->n_blocks; b++)
        out->moves[out->n_moves++] = (struct weft_move){.item = index,
                                                        .slot = !gathers ? item->first
                                                                : fits   ? item->last
                                                                         : item->last + 1};
}

/* The leanest policies, gathers as late as they can be, and blocking where rows would exceed
 * `limit_bytes`: 0 makes all of them block, and the plan the leanest there is. */
static enum weft_status plan_lean(struct run *run, int64_t limit_bytes, struct weft_error *err)
{
    const struct weft_problem *problem = run->problem;
    struct weft_candidate *out = &run->candidate;
    int64_t *rows = calloc((size_t)run->table->n_slots, sizeof *rows);
    if (!rows) return weft_fail_memory(err, "memory rows");
    memcpy(out->policies, run->table->leanest, (size_t)run->table->n_units * sizeof *out->policies);
    weft_digest_lean_rows(run->table, out->policies, rows, NULL);
    out->n_moves = 0;
    for (int32_t i = 0; i < problem->n_items; i++)
        if (weft_item_active(&problem->items[i].item, out->policies))
            move_late(run, i, rows, limit_bytes);
    free(rows);
    weft_moves_sort(problem, out->moves, out->n_moves);
    if (limit_bytes > 0) return lower(run, run->problem, limit_bytes, false, 0, err);
    return pack(run, run->problem, run->table->least_bytes, true, true, err);
}

/* The last resort when packing fails: nothing is gathered ahead of its use. It is packed whatever
 * the time, for there must be a plan. */
static enum weft_status plan_leanest(struct run *run, struct weft_error *err)
{
    keep(run, NULL, NULL);
    run->timed.clock = (struct weft_layout_clock){0};
    return plan_lean(run, 0, err);
}

/* The planner decides within rows that hold `tight_bytes` more, and its plan is packed. Round 0,
 * which proves the bound, may spend a quarter of the time limit, the others prove nothing. Without
 * a layout there is one round, and it has all of the time. */
static enum weft_status plan_once(struct run *run, int round, int64_t tight_bytes, bool hard,
                                  struct weft_outcome *outcome, struct weft_error *err)
{
    struct weft_schedule_options options = *run->options;
    struct weft_tight tight;
    int64_t limit_bytes = run->problem->memory_limit_bytes;
    if (run->inputs) options.time_limit_ns >>= round < 2 ? 2 : 3;
    options.draft = round > 0;
    *outcome = (struct weft_outcome){.solver_gap = -1, .pool = &run->pool};
    keep(run, NULL, NULL);
    WEFT_TRY(weft_tight_create(run->problem, run->room_bytes, tight_bytes, &tight, err));
    enum weft_status status =
        run->planner->decide(&tight.problem, limit_bytes, &options, &run->candidate, outcome, err);
    if (status == WEFT_OK)
        status = pack(run, &tight.problem, limit_bytes, run->planner->literal, hard, err);
    weft_tight_finish(&tight);
    return status;
}

/* Rules without a choice have nothing leaner to fall back on. */
static bool may_retreat(const struct run *run)
{
    return run->planner->decide == weft_planner_ilp || run->planner->decide == weft_planner_greedy;
}

enum { MOST_ROUNDS = 6 };

/* How much less the rows of this round may hold: what the layout was too long by, and from the
 * second time on a share of all there is, doubled each time. A layout that is a little too long
 * again and again must not end in the leanest plan, which may be much slower. */
static int64_t tighten_by(int round, int64_t excess, int64_t room)
{
    int64_t share = round > 1 ? room >> (MOST_ROUNDS + 1 - round) : 0;
    int64_t wanted = excess > share ? excess : share;
    return wanted < room ? wanted : room;
}

/* Between what to look: with `fails_bytes` less in the rows there was no layout, with `fits_bytes`
 * less there was; its best plan is kept aside. */
struct rounds {
    int64_t fails_bytes, fits_bytes; /* fits: -1 before the first */
    int64_t excess, least_excess;
    int32_t n;
    struct weft_plan *plan;
    struct weft_program *program;
};

/* Puts the run's plan, which fits, aside when it is the fastest of those. */
static void take_plan(struct run *run, struct rounds *rounds)
{
    if (!rounds->plan || run->plan->prediction.step_ns < rounds->plan->prediction.step_ns) {
        struct weft_plan *plan = rounds->plan;
        struct weft_program *program = rounds->program;
        rounds->plan = run->plan;
        rounds->program = run->program;
        run->plan = plan;
        run->program = program;
    }
    keep(run, NULL, NULL);
}

static void take_round(struct run *run, struct rounds *rounds, int64_t tight_bytes)
{
    rounds->n++;
    rounds->excess = total_bytes(run) - run->problem->memory_limit_bytes;
    if (rounds->excess > 0) {
        rounds->fails_bytes = tight_bytes;
        if (rounds->excess < rounds->least_excess) rounds->least_excess = rounds->excess;
        return;
    }
    rounds->fits_bytes = tight_bytes;
    take_plan(run, rounds);
}

/* True while a plan with wider rows may be worth the time. */
static bool is_open(const struct run *run, const struct rounds *rounds)
{
    if (is_late(run)) return !rounds->plan && !may_retreat(run);
    if (!rounds->plan) return true;
    double bound_ns = (double)run->outcome.bound_ns;
    double gap = run->options->gap > 1e-4 ? run->options->gap : 1e-4;
    if ((double)rounds->plan->prediction.step_ns <= bound_ns * (1 + gap)) return false;
    if (rounds->fits_bytes < 0) return true;
    return may_retreat(run) &&
           rounds->fits_bytes - rounds->fails_bytes > run->problem->memory_limit_bytes / 512;
}

/* Again with tighter rows while the layout exceeds the limit, and with rows in between once it does
 * not. */
static enum weft_status plan_in_between(struct run *run, struct rounds *rounds,
                                        struct weft_error *err)
{
    for (int round = 1; round < MOST_ROUNDS && is_open(run, rounds); round++) {
        struct weft_outcome outcome;
        struct weft_error refusal = {0};
        int64_t room = run->most_room_bytes - rounds->fails_bytes;
        int64_t bytes = rounds->fails_bytes + tighten_by(round, rounds->excess, room);
        if (rounds->fits_bytes >= 0)
            bytes = rounds->fails_bytes + (rounds->fits_bytes - rounds->fails_bytes) / 2;
        if (room <= 0) break;
        enum weft_status status = plan_once(
            run, round, bytes, round + 1 == MOST_ROUNDS && !is_late(run), &outcome, &refusal);
        if (status == WEFT_E_INFEASIBLE) break;
        if (status != WEFT_OK) return weft_fail(err, status, "%s", refusal.text);
        take_round(run, rounds, bytes);
    }
    return WEFT_OK;
}

/* Rows that leave a layout room shape a search's plan more than a rule's, so that what greedy makes
 * of the same rows may pack better: both are looked at, and the faster stays. */
static enum weft_status plan_greedily_too(struct run *run, struct rounds *rounds,
                                          struct weft_error *err)
{
    const struct weft_planner *planner = run->planner;
    struct weft_error refusal = {0};
    struct weft_outcome outcome;
    if (planner->decide != weft_planner_ilp || is_late(run)) return WEFT_OK;
    run->planner = weft_planner_find("greedy", NULL);
    enum weft_status status = plan_once(run, 1, 0, false, &outcome, &refusal);
    if (status == WEFT_OK) {
        rounds->fails_bytes = 0;
        take_round(run, rounds, 0);
        if (rounds->excess > 0) status = plan_in_between(run, rounds, &refusal);
    }
    run->planner = planner;
    if (status == WEFT_OK || status == WEFT_E_INFEASIBLE) return WEFT_OK;
    return weft_fail(err, status, "%s", refusal.text);
}

/* Lean policies waste time but pack well, and may be faster than what is left of better ones in
 * rows that leave a layout room: ever fewer gathers ahead of their use, until it fits. */
static enum weft_status plan_lean_too(struct run *run, struct rounds *rounds,
                                      struct weft_error *err)
{
    enum { TRIES = 6 };
    int64_t limit_bytes = run->problem->memory_limit_bytes;
    for (int i = 0; i < TRIES && !is_late(run); i++) {
        keep(run, NULL, NULL);
        WEFT_TRY(plan_lean(run, limit_bytes - ((INT64_C(1) << i) - 1) * rounds->least_excess, err));
        if (total_bytes(run) > limit_bytes) continue;
        take_plan(run, rounds);
        break;
    }
    return WEFT_OK;
}

/* The bound is the first round's: only its rows have the user's limit. */
static enum weft_status plan_in_rounds(struct run *run, struct weft_error *err)
{
    int64_t limit_bytes = run->problem->memory_limit_bytes;
    struct rounds rounds = {.fits_bytes = -1};
    WEFT_TRY(plan_once(run, 0, 0, false, &run->outcome, err));
    int64_t excess = total_bytes(run) - limit_bytes;
    if (excess <= 0) return WEFT_OK;
    rounds.excess = rounds.least_excess = excess;
    enum weft_status status = may_retreat(run) ? plan_lean_too(run, &rounds, err) : WEFT_OK;
    if (status == WEFT_OK) status = plan_in_between(run, &rounds, err);
    if (status == WEFT_OK) status = plan_greedily_too(run, &rounds, err);
    weft_log(
        WEFT_LOG_INFO,
        "planner %s: the first layout ended %lld bytes above the limit; planned again %d times "
        "with tighter rows",
        run->planner->name, (long long)excess, (int)rounds.n);
    if (rounds.plan) keep(run, rounds.plan, rounds.program);
    if (status != WEFT_OK || rounds.plan) return status;
    if (may_retreat(run)) {
        snprintf(run->outcome.solver_stop, sizeof run->outcome.solver_stop,
                 "packing: only a plan of the leanest policies has a layout within the limit");
        return plan_leanest(run, err);
    }
    return weft_fail(err, WEFT_E_INFEASIBLE,
                     "planner %s: its live bytes fit into the limit of %lld bytes, but its layout "
                     "ends %lld bytes above it",
                     run->planner->name, (long long)limit_bytes, (long long)rounds.least_excess);
}

static enum weft_status finish(struct run *run, struct weft_error *err)
{
    const struct weft_outcome *outcome = &run->outcome;
    struct weft_plan *plan = run->plan;
    if (outcome->certificate.n_nodes == 0)
        WEFT_TRY(weft_prove(run->problem, &run->pool, &run->outcome, err));
    plan->bound_ns = outcome->bound_ns;
    plan->bound_by = outcome->bound_by;
    plan->first_ns = outcome->first_ns;
    WEFT_TRY(weft_certificate_copy(&outcome->certificate, run->problem, &plan->pool,
                                   &plan->certificate, err));
    plan->solver_gap = outcome->solver_gap;
    plan->solver_stop = weft_pool_string(&plan->pool, outcome->solver_stop);
    if (!plan->solver_stop) return weft_fail_memory(err, "a plan");
    if (run->program) WEFT_TRY(weft_program_keep_layout(run->program, plan, err));
    char packing[WEFT_UNITS_TEXT_BYTES];
    weft_log(
        WEFT_LOG_DEBUG, "planner %s: packing costs %s above the largest row", run->planner->name,
        weft_units_show_bytes(plan->prediction.total_bytes - plan->prediction.peak_bytes, packing));
    return WEFT_OK;
}

static enum weft_status make_candidate(struct run *run, struct weft_error *err)
{
    struct weft_candidate *candidate = &run->candidate;
    candidate->policies = calloc((size_t)run->table->n_units + 1, sizeof *candidate->policies);
    candidate->moves = calloc((size_t)run->table->n_blocks + 1, sizeof *candidate->moves);
    run->room_bytes = calloc((size_t)run->table->n_slots, sizeof *run->room_bytes);
    if (!candidate->policies || !candidate->moves || !run->room_bytes)
        return weft_fail_memory(err, "a candidate");
    run->most_room_bytes = weft_tight_room(run->table, run->room_bytes);
    return WEFT_OK;
}

/* What the leanest plan takes after layout: packing it stops at its rows, which nothing is below.
 */
static enum weft_status find_least_packed(struct run *run, int64_t *bytes, struct weft_error *err)
{
    struct weft_problem problem = *run->problem;
    const struct weft_problem *asked = run->problem;
    problem.memory_limit_bytes = run->table->least_bytes;
    run->problem = &problem;
    enum weft_status status = plan_leanest(run, err);
    run->problem = asked;
    if (status == WEFT_OK) *bytes = total_bytes(run);
    keep(run, NULL, NULL);
    return status;
}

/* Refuses, with the limit at which the leanest plan does fit. */
static enum weft_status refuse(struct run *run, const char *refusal, struct weft_error *err)
{
    int64_t bytes;
    WEFT_TRY(find_least_packed(run, &bytes, err));
    return weft_fail_infeasible(run->table, run->planner->name, refusal, run->inputs ? bytes : 0,
                                err);
}

static enum weft_status schedule(struct run *run, struct weft_error *err)
{
    struct weft_error refusal = {0};
    int64_t limit_bytes = run->problem->memory_limit_bytes;
    if (run->options->now_ns && run->options->time_limit_ns > 0)
        run->deadline_ns = run->options->now_ns() + run->options->time_limit_ns;
    if (run->inputs) {
        run->timed = *run->inputs;
        run->inputs = &run->timed;
    }
    if (run->deadline_ns > 0 && may_retreat(run))
        run->timed.clock = (struct weft_layout_clock){run->options->now_ns, run->deadline_ns};
    WEFT_TRY(weft_digest_create(run->problem, &run->table, err));
    WEFT_TRY(make_candidate(run, err));
    if (run->table->least_bytes > limit_bytes) return refuse(run, "", err);
    enum weft_status status = plan_in_rounds(run, &refusal);
    if (status == WEFT_E_INFEASIBLE) return refuse(run, refusal.text, err);
    if (status != WEFT_OK) return weft_fail(err, status, "%s", refusal.text);
    if (total_bytes(run) > limit_bytes) return refuse(run, "", err);
    return finish(run, err);
}

/* Names the planners, or the settings of the one that is meant. */
static enum weft_status refuse_name(const char *name, struct weft_error *err)
{
    char meant[64], settings[512] = "";
    snprintf(meant, sizeof meant, "%.*s", (int)strcspn(name, ":"), name);
    const struct weft_planner *planner = weft_planner_find(meant, NULL);
    if (!planner)
        return weft_fail(err, WEFT_E_USAGE, "no planner \"%s\"; there are " WEFT_PLANNER_NAMES,
                         name);
    const struct weft_setting *setting = weft_planner_settings(planner);
    if (!setting)
        return weft_fail(err, WEFT_E_USAGE, "planner %s has no settings; write \"%s\"", meant,
                         meant);
    for (; setting->name; setting++) {
        size_t length = strlen(settings);
        snprintf(settings + length, sizeof settings - length, " %s", setting->name);
    }
    return weft_fail(err, WEFT_E_USAGE, "planner %s has no setting \"%s\"; there are%s", meant,
                     name + strlen(meant) + 1, settings);
}

static void finish_run(struct run *run)
{
    weft_plan_destroy(run->plan);
    weft_program_destroy(run->program);
    free(run->candidate.policies);
    free(run->candidate.moves);
    free(run->room_bytes);
    weft_pool_finish(&run->pool);
    weft_digest_destroy(run->table);
}

enum weft_status weft_least_packed_limit(const struct weft_problem *problem,
                                         const struct weft_lower_inputs *inputs, int64_t *bytes,
                                         struct weft_error *err)
{
    struct weft_schedule_options options = {.planner = "ilp"};
    struct run run = {.problem = problem, .inputs = inputs, .options = &options};
    run.planner = weft_planner_find(options.planner, NULL);
    enum weft_status status = weft_digest_create(problem, &run.table, err);
    if (status == WEFT_OK) status = make_candidate(&run, err);
    if (status == WEFT_OK) status = find_least_packed(&run, bytes, err);
    finish_run(&run);
    return status;
}

enum weft_status weft_schedule(const struct weft_problem *problem,
                               const struct weft_lower_inputs *inputs,
                               const struct weft_schedule_options *options, struct weft_plan **plan,
                               struct weft_program **program, struct weft_error *err)
{
    struct run run = {.problem = problem, .inputs = inputs};
    struct weft_schedule_options own = *options;
    if (!own.planner) own.planner = "ilp";
    run.planner = weft_planner_find(own.planner, &own.setting);
    if (!run.planner) return refuse_name(own.planner, err);
    run.options = &own;
    enum weft_status status = schedule(&run, err);
    if (status == WEFT_OK) {
        *plan = run.plan;
        run.plan = NULL;
        if (program) {
            *program = run.program;
            run.program = NULL;
        }
    }
    finish_run(&run);
    return status;
}
