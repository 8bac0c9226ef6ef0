#include "scheduler/rounds.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "scheduler/planners/planners.h"
#include "scheduler/tight.h"

enum { MOST_ROUNDS = 6 };

/* Round 0, which proves the bound, may spend a quarter of the time limit, the others, which prove
 * nothing, a quarter of what is left. */
static int64_t part_of_time(const struct weft_packed *run, int round)
{
    int64_t time_ns = run->options->time_limit_ns;
    if (round > 0 && run->deadline_ns > 0) time_ns = run->deadline_ns - run->options->now_ns();
    return time_ns > 4 ? time_ns / 4 : 1;
}

/* The planner decides within rows that hold `tight_bytes` more, and its plan is packed. Without
 * a layout there is one round, and it has all of the time. */
static enum weft_status plan_once(struct weft_packed *run, const struct weft_planner *planner,
                                  int round, int64_t tight_bytes, struct weft_outcome *outcome,
                                  struct weft_error *err)
{
    struct weft_schedule_options options = *run->options;
    struct weft_tight tight;
    int64_t limit_bytes = run->problem->memory_limit_bytes;
    if (run->inputs && options.time_limit_ns > 0) options.time_limit_ns = part_of_time(run, round);
    options.draft = round > 0;
    *outcome = (struct weft_outcome){.solver_gap = -1, .pool = &run->pool};
    weft_packed_keep(run, NULL, NULL);
    WEFT_TRY(weft_tight_create(run->problem, run->room_bytes, tight_bytes, &tight, err));
    enum weft_status status =
        planner->decide(&tight.problem, limit_bytes, &options, &run->candidate, outcome, err);
    /* Literal is what was asked for, whichever rule decides: what ilp takes of a rule's it may
     * relax, and what is asked of a rule stays as the rule has it. */
    if (status == WEFT_OK)
        status = weft_packed_pack(run, &tight.problem, limit_bytes, run->planner->literal, err);
    weft_tight_finish(&tight);
    return status;
}

bool weft_may_retreat(const struct weft_planner *planner)
{
    return planner->decide == weft_planner_ilp || planner->decide == weft_planner_greedy;
}

/* How much less the rows of this round may hold: what the layout was too long by, and from the
 * second time on a share of all there is, doubled each time. A layout that is a little too long
 * again and again must not end in the leanest plan, which may be much slower. */
static int64_t tighten_by(int round, int64_t excess, int64_t room)
{
    int64_t share = round > 1 ? room >> (MOST_ROUNDS + 1 - round) : 0;
    int64_t wanted = excess > share ? excess : share;
    return wanted < room ? wanted : room;
}

/* Between what to look for plans of one planner: with `fails_bytes` less in the rows there was no
 * layout, with `fits_bytes` less there was, or no faster plan than what is known. */
struct rounds {
    const struct weft_planner *planner;
    int64_t fails_bytes, fits_bytes; /* fits: -1 before the first */
    int64_t excess;                  /* of the last layout that was too long */
};

/* Puts the run's plan, which fits, aside: it is the fastest of those. */
static void take_plan(struct weft_packed *run)
{
    weft_plan_destroy(run->best);
    weft_program_destroy(run->best_program);
    run->best = run->plan;
    run->best_program = run->program;
    run->plan = NULL;
    run->program = NULL;
}

static void note_shortest(struct weft_packed *run, const struct weft_near_miss *miss)
{
    struct weft_candidate to = run->shortest.candidate, *from = &run->candidate;
    memcpy(to.policies, from->policies, (size_t)run->table->n_units * sizeof *to.policies);
    memcpy(to.moves, from->moves, (size_t)from->n_moves * sizeof *to.moves);
    to.n_moves = from->n_moves;
    run->shortest = *miss;
    run->shortest.candidate = to;
}

/* Keeps the candidate when its layout, which is too long, may fit after a longer search. Of those
 * that are as fast the one that was least too long. */
static void note_near_miss(struct weft_packed *run, int64_t excess, int64_t tight_bytes)
{
    struct weft_near_miss miss = {run->candidate, tight_bytes, run->plan->prediction.step_ns,
                                  excess};
    if (run->shortest.step_ns == 0 || excess < run->shortest.excess) note_shortest(run, &miss);
    if (excess > run->problem->memory_limit_bytes / 64) return;
    int32_t at = 0;
    while (at < run->n_near && run->near[at].step_ns < miss.step_ns)
        at++;
    bool as_fast = at < run->n_near && run->near[at].step_ns == miss.step_ns;
    if (at == WEFT_NEAR_MISSES || (as_fast && run->near[at].excess <= excess)) return;
    if (!as_fast) {
        if (run->n_near < WEFT_NEAR_MISSES) run->n_near++;
        struct weft_near_miss last = run->near[run->n_near - 1];
        memmove(&run->near[at + 1], &run->near[at],
                (size_t)(run->n_near - 1 - at) * sizeof run->near[0]);
        run->near[at] = last;
    }
    run->candidate = run->near[at].candidate;
    run->near[at] = miss;
}

static void take_round(struct weft_packed *run, struct rounds *rounds, int64_t tight_bytes)
{
    int64_t excess =
        run->plan ? weft_packed_total_bytes(run) - run->problem->memory_limit_bytes : 0;
    run->n_again++;
    if (excess > 0) {
        rounds->fails_bytes = tight_bytes;
        rounds->excess = excess;
        note_near_miss(run, excess, tight_bytes);
        return;
    }
    rounds->fits_bytes = tight_bytes;
    if (run->plan) take_plan(run);
}

/* True while a plan with wider rows may be worth the time. */
static bool is_open(const struct weft_packed *run, const struct rounds *rounds)
{
    if (weft_packed_is_late(run)) return !run->best && !weft_may_retreat(run->planner);
    if (!run->best) return true;
    double bound_ns = (double)run->outcome.bound_ns;
    double gap = run->options->gap > 1e-4 ? run->options->gap : 1e-4;
    if ((double)run->best->prediction.step_ns <= bound_ns * (1 + gap)) return false;
    if (rounds->fits_bytes < 0) return true;
    return weft_may_retreat(rounds->planner) &&
           rounds->fits_bytes - rounds->fails_bytes > run->problem->memory_limit_bytes / 512;
}

/* Again with tighter rows while the layout exceeds the limit, and with rows in between once it does
 * not. */
static enum weft_status plan_in_between(struct weft_packed *run, struct rounds *rounds,
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
        enum weft_status status = plan_once(run, rounds->planner, round, bytes, &outcome, &refusal);
        if (status == WEFT_E_INFEASIBLE) break;
        if (status != WEFT_OK) return weft_fail(err, status, "%s", refusal.text);
        take_round(run, rounds, bytes);
    }
    return WEFT_OK;
}

static enum weft_status plan_by_rule(struct weft_packed *run, const struct weft_planner *rule,
                                     struct weft_error *err)
{
    struct rounds rounds = {.planner = rule, .fits_bytes = -1};
    struct weft_error refusal = {0};
    struct weft_outcome outcome;
    enum weft_status status = plan_once(run, rule, 1, 0, &outcome, &refusal);
    if (status == WEFT_OK) {
        take_round(run, &rounds, 0);
        if (rounds.excess > 0) status = plan_in_between(run, &rounds, &refusal);
    }
    if (status == WEFT_OK || status == WEFT_E_INFEASIBLE) return WEFT_OK;
    return weft_fail(err, status, "%s", refusal.text);
}

/* Rows that leave a layout room shape a search's plan more than a rule's, so that what a rule makes
 * of the same rows may pack better: greedy first, which chooses most freely, then all that would be
 * faster than what there is by then, in a quarter of the time that is left. */
static enum weft_status plan_by_rules(struct weft_packed *run, struct weft_error *err)
{
    int64_t deadline_ns = run->deadline_ns;
    const struct weft_planner *greedy = weft_planner_find("greedy", NULL);
    if (deadline_ns > 0) run->deadline_ns -= (deadline_ns - run->options->now_ns()) * 3 / 4;
    enum weft_status status = plan_by_rule(run, greedy, err);
    for (const struct weft_planner *rule = weft_planners(); rule->name && status == WEFT_OK;
         rule++) {
        if (!weft_may_retreat(rule) && !weft_packed_is_late(run))
            status = plan_by_rule(run, rule, err);
    }
    run->deadline_ns = deadline_ns;
    return status;
}

/* Lean policies waste time but pack well, and may be faster than what is left of better ones in
 * rows that leave a layout room: ever fewer gathers ahead of their use, until it fits. */
static enum weft_status plan_lean_too(struct weft_packed *run, struct weft_error *err)
{
    enum { TRIES = 6 };
    int64_t limit_bytes = run->problem->memory_limit_bytes;
    for (int i = 0; i < TRIES && !weft_packed_is_late(run); i++) {
        weft_packed_keep(run, NULL, NULL);
        WEFT_TRY(weft_packed_lean(run, limit_bytes - ((INT64_C(1) << i) - 1) * run->shortest.excess,
                                  err));
        if (weft_packed_total_bytes(run) > limit_bytes) continue;
        take_plan(run);
        break;
    }
    return WEFT_OK;
}

static enum weft_status pack_near_miss(struct weft_packed *run, struct weft_near_miss *near,
                                       struct weft_error *err)
{
    struct weft_tight tight;
    struct weft_candidate other = run->candidate;
    run->candidate = near->candidate;
    near->candidate = other;
    weft_packed_keep(run, NULL, NULL);
    WEFT_TRY(weft_tight_create(run->problem, run->room_bytes, near->tight_bytes, &tight, err));
    enum weft_status status = weft_packed_pack_hard(
        run, &tight.problem, run->problem->memory_limit_bytes, run->planner->literal, err);
    weft_tight_finish(&tight);
    if (run->plan && weft_packed_total_bytes(run) <= run->problem->memory_limit_bytes)
        take_plan(run);
    return status;
}

/* What was nearly short enough, and would be faster than what fits, has the time that is left;
 * where nothing fits, what was too long by the least. */
static enum weft_status search_again(struct weft_packed *run, struct weft_error *err)
{
    for (int32_t i = 0; i < run->n_near; i++) {
        if (run->best && run->best->prediction.step_ns <= run->near[i].step_ns) break;
        if (weft_packed_is_late(run) && weft_may_retreat(run->planner)) break;
        WEFT_TRY(pack_near_miss(run, &run->near[i], err));
    }
    return run->best ? WEFT_OK : pack_near_miss(run, &run->shortest, err);
}

/* How the search ended that proved the bound, which knows nothing of what a layout costs. */
static void tell_packing(struct weft_outcome *outcome)
{
    size_t length = strlen(outcome->solver_stop), room = sizeof outcome->solver_stop - length;
    if (length > 0) snprintf(outcome->solver_stop + length, room, ", before packing");
}

/* The bound is the first round's: only its rows have the user's limit. */
enum weft_status weft_plan_in_rounds(struct weft_packed *run, struct weft_error *err)
{
    int64_t limit_bytes = run->problem->memory_limit_bytes;
    struct rounds rounds = {.planner = run->planner, .fits_bytes = -1};
    enum weft_status status = WEFT_OK;
    WEFT_TRY(plan_once(run, run->planner, 0, 0, &run->outcome, err));
    int64_t excess = weft_packed_total_bytes(run) - limit_bytes;
    if (excess <= 0) return WEFT_OK;
    rounds.excess = excess;
    note_near_miss(run, excess, 0);
    if (weft_may_retreat(run->planner)) status = plan_lean_too(run, err);
    if (status == WEFT_OK && run->planner->decide == weft_planner_ilp)
        status = plan_by_rules(run, err);
    if (status == WEFT_OK) status = plan_in_between(run, &rounds, err);
    if (status == WEFT_OK) status = search_again(run, err);
    weft_log(
        WEFT_LOG_INFO,
        "planner %s: the first layout ended %lld bytes above the limit; planned again %d times",
        run->planner->name, (long long)excess, (int)run->n_again);
    weft_packed_keep(run, run->best, run->best_program);
    run->best = NULL;
    run->best_program = NULL;
    if (run->plan) tell_packing(&run->outcome);
    if (status != WEFT_OK || run->plan) return status;
    if (weft_may_retreat(run->planner)) {
        snprintf(run->outcome.solver_stop, sizeof run->outcome.solver_stop,
                 "packing: only a plan of the leanest policies has a layout within the limit");
        return weft_packed_leanest(run, err);
    }
    return weft_fail(err, WEFT_E_INFEASIBLE,
                     "planner %s: its live bytes fit into the limit of %lld bytes, but its layout "
                     "ends %lld bytes above it",
                     run->planner->name, (long long)limit_bytes, (long long)run->shortest.excess);
}
