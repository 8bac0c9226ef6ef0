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
#include "scheduler/proof.h"

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
    const struct weft_lower_inputs *inputs;
    const struct weft_schedule_options *options;
    const struct weft_planner *planner;
    struct weft_digest *table;
    struct weft_candidate candidate;
    /* The bound of the first round, and what the solver said in the last. */
    struct weft_outcome outcome;
    struct weft_pool pool; /* of certificates */
    /* The best so far: one that fits, or the one that exceeds the limit least. */
    struct weft_plan *plan;
    struct weft_program *program;
};

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

/* A plan of the candidate, relaxed within `limit_bytes` when that is wanted, lowered and measured.
 * It is kept when it takes less than the one kept before. */
static enum weft_status lower(struct run *run, int64_t limit_bytes, bool relax, int32_t effort,
                              struct weft_error *err)
{
    struct weft_plan *plan = NULL;
    struct weft_program *program = NULL;
    enum weft_status status;
    WEFT_TRY(weft_plan_create(run->problem, run->options->planner, run->candidate.policies,
                              run->candidate.moves, run->candidate.n_moves, &plan, err));
    if (relax) WEFT_TRY_GOTO(fail, weft_plan_relax(plan, limit_bytes, err));
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

/* Tries to make the candidate's layout fit: with blocks moved apart as far as memory allows, as
 * they are, and with a longer search. A literal one only as it is. */
static enum weft_status pack(struct run *run, int64_t row_limit_bytes, bool literal,
                             struct weft_error *err)
{
    static const struct {
        bool relax;
        int32_t effort;
    } tries[] = {{true, 0}, {false, 0}, {true, 1}, {false, 2}};
    int64_t limit_bytes = run->problem->memory_limit_bytes;
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        if (tries[i].relax && literal) continue;
        WEFT_TRY(lower(run, row_limit_bytes, tries[i].relax, tries[i].effort, err));
        if (total_bytes(run) <= limit_bytes) break;
    }
    return WEFT_OK;
}

/* The leanest plan there is: the last resort when packing fails. Laid out with the most effort, it
 * takes the least limit. */
static enum weft_status plan_leanest(struct run *run, struct weft_error *err)
{
    const struct weft_problem *problem = run->problem;
    struct weft_candidate *out = &run->candidate;
    memcpy(out->policies, run->table->leanest, (size_t)run->table->n_units * sizeof *out->policies);
    out->n_moves = 0;
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        if (!weft_item_active(item, out->policies)) continue;
        for (int32_t b = 0; b < item->n_blocks; b++)
            out->moves[out->n_moves++] = (struct weft_move){
                .item = i, .slot = item->kind == WEFT_ALL_GATHER ? item->last + 1 : item->first};
    }
    weft_moves_sort(problem, out->moves, out->n_moves);
    return pack(run, run->table->least_bytes, false, err);
}

/* The planner decides within row_limit_bytes, and its plan is packed. Round r may spend a share of
 * 2^-(r+1) of the time limit: all together no more than the limit. */
static enum weft_status plan_once(struct run *run, int round, int64_t row_limit_bytes,
                                  struct weft_outcome *outcome, struct weft_error *err)
{
    struct weft_schedule_options options = *run->options;
    options.time_limit_ns >>= round + 1;
    struct weft_problem problem = *run->problem; /* whose rows have this round's limit */
    *outcome = (struct weft_outcome){.solver_gap = -1, .pool = &run->pool};
    problem.memory_limit_bytes = row_limit_bytes;
    keep(run, NULL, NULL);
    WEFT_TRY(
        run->planner->decide(&problem, row_limit_bytes, &options, &run->candidate, outcome, err));
    return pack(run, row_limit_bytes, run->planner->literal, err);
}

/* Rules without a choice have nothing leaner to fall back on. */
static bool may_retreat(const struct run *run)
{
    return run->planner->decide == weft_planner_ilp || run->planner->decide == weft_planner_greedy;
}

enum { MOST_ROUNDS = 5 };

/* How much less the rows of this round may hold: what the layout was too long by, and from the
 * second time on a share of all there is, doubled each time. A layout that is a little too long
 * again and again must not end in the leanest plan, which may be much slower. */
static int64_t tighten_by(int round, int64_t excess, int64_t room)
{
    int64_t share = round > 1 ? room >> (MOST_ROUNDS + 1 - round) : 0;
    int64_t wanted = excess > share ? excess : share;
    return wanted < room ? wanted : room;
}

/* Decides, and decides again with tighter rows while the layout exceeds the limit. The bound is the
 * first round's: only its rows have the user's limit. */
static enum weft_status plan_in_rounds(struct run *run, struct weft_error *err)
{
    int64_t limit_bytes = run->problem->memory_limit_bytes, row_limit_bytes = limit_bytes;
    WEFT_TRY(plan_once(run, 0, row_limit_bytes, &run->outcome, err));
    int64_t excess = total_bytes(run) - limit_bytes, least_excess = excess;
    for (int round = 1; round < MOST_ROUNDS && excess > 0; round++) {
        struct weft_outcome outcome;
        struct weft_error refusal = {0};
        int64_t room = row_limit_bytes - run->table->least_bytes;
        weft_log(WEFT_LOG_INFO,
                 "planner %s: the layout ends %lld bytes above the limit; again with tighter rows",
                 run->planner->name, (long long)excess);
        if (room <= 0) break;
        row_limit_bytes -= tighten_by(round, excess, room);
        enum weft_status status = plan_once(run, round, row_limit_bytes, &outcome, &refusal);
        if (status == WEFT_E_INFEASIBLE) break;
        if (status != WEFT_OK) return weft_fail(err, status, "%s", refusal.text);
        run->outcome.solver_gap = outcome.solver_gap;
        memcpy(run->outcome.solver_stop, outcome.solver_stop, sizeof outcome.solver_stop);
        excess = total_bytes(run) - limit_bytes;
        if (excess < least_excess) least_excess = excess;
    }
    if (excess <= 0) return WEFT_OK;
    if (may_retreat(run)) {
        snprintf(run->outcome.solver_stop, sizeof run->outcome.solver_stop,
                 "packing: only the leanest plan has a layout within the limit");
        return plan_leanest(run, err);
    }
    return weft_fail(err, WEFT_E_INFEASIBLE,
                     "planner %s: its live bytes fit into the limit of %lld bytes, but its layout "
                     "ends %lld bytes above it",
                     run->planner->name, (long long)limit_bytes, (long long)least_excess);
}

/* What needs no search, for planners that prove nothing. */
static enum weft_status prove_trivially(struct run *run, struct weft_error *err)
{
    struct weft_outcome *outcome = &run->outcome;
    struct weft_dual *dual = NULL;
    struct weft_proof *proof = NULL;
    enum weft_status status;
    WEFT_TRY_GOTO(done, weft_dual_create(run->table, run->problem->memory_limit_bytes, &dual, err));
    WEFT_TRY_GOTO(done, weft_proof_create(run->problem, 1, &proof, err));
    WEFT_TRY_GOTO(done, weft_proof_offer_trivial(proof, dual, &outcome->bound_by, err));
    outcome->bound_ns = weft_proof_bound_ns(proof);
    status = weft_proof_certificate(proof, &run->pool, &outcome->certificate, err);
done:
    weft_proof_destroy(proof);
    weft_dual_destroy(dual);
    return status;
}

static enum weft_status finish(struct run *run, struct weft_error *err)
{
    const struct weft_outcome *outcome = &run->outcome;
    struct weft_plan *plan = run->plan;
    if (outcome->certificate.n_nodes == 0) WEFT_TRY(prove_trivially(run, err));
    plan->bound_ns = outcome->bound_ns;
    plan->bound_by = outcome->bound_by;
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
    if (!candidate->policies || !candidate->moves) return weft_fail_memory(err, "a candidate");
    return WEFT_OK;
}

/* Refuses, with the limit at which the leanest plan does fit. */
static enum weft_status refuse(struct run *run, const char *refusal, struct weft_error *err)
{
    keep(run, NULL, NULL);
    WEFT_TRY(plan_leanest(run, err));
    return weft_fail_infeasible(run->table, run->planner->name, refusal,
                                run->inputs ? total_bytes(run) : 0, err);
}

static enum weft_status schedule(struct run *run, struct weft_error *err)
{
    struct weft_error refusal = {0};
    int64_t limit_bytes = run->problem->memory_limit_bytes;
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
    weft_plan_destroy(run.plan);
    weft_program_destroy(run.program);
    free(run.candidate.policies);
    free(run.candidate.moves);
    weft_pool_finish(&run.pool);
    weft_digest_destroy(run.table);
    return status;
}
