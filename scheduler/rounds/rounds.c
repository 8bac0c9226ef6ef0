#include "scheduler/rounds/rounds.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/units.h"
#include "scheduler/planners/planners.h"
#include "scheduler/planners/table.h"
#include "scheduler/rounds/rivals.h"
#include "scheduler/rounds/tight.h"

enum { MOST_ROUNDS = 6 };

/* How a round is planned. */
struct way {
    const struct weft_planner *planner;
    const struct weft_setting *setting;
    int64_t tight_bytes; /* that rows hold more */
    double part;         /* of the budget that is left; without a layout there is one round, and it
                            has all of it */
    bool draft;          /* no proof is wanted */
};

/* The first round, which proves the bound, and those with tighter rows, which prove nothing, may
 * spend a quarter of the budget that is left; the one that goes on where the first fits more of it,
 * for little is left to do then. */
static const double a_quarter = 0.25, most_of_it = 0.75;

/* The caller's plans to start from, and the fastest that fits. */
static enum weft_status add_start(struct weft_packed *run, struct weft_schedule_options *options,
                                  struct weft_error *err)
{
    if (!run->best) return WEFT_OK;
    size_t n = (size_t)options->n_starts;
    const struct weft_plan **starts = weft_pool_array(&run->pool, n + 1, sizeof *starts);
    if (!starts) return weft_fail_memory(err, "plans to start from");
    if (n > 0) memcpy(starts, options->starts, n * sizeof *starts);
    starts[n] = run->best;
    options->starts = starts;
    options->n_starts++;
    return WEFT_OK;
}

/* The planner decides, and its plan is packed. */
static enum weft_status plan_once(struct weft_packed *run, const struct way *way,
                                  struct weft_outcome *outcome, struct weft_error *err)
{
    struct weft_schedule_options options = *run->options;
    struct weft_tight tight;
    if (run->inputs) options.budget = weft_budget_part(run->budget, way->part);
    options.draft = options.draft || way->draft;
    if (way->planner != run->planner) options.setting = way->setting;
    WEFT_TRY(add_start(run, &options, err));
    *outcome = (struct weft_outcome){.solver_gap = -1, .pool = &run->pool};
    weft_packed_keep(run, NULL, NULL);
    WEFT_TRY(weft_tight_create(run->problem, run->room_bytes, way->tight_bytes, &tight, err));
    enum weft_status status =
        way->planner->decide(&tight.problem, &options, &run->candidate, outcome, err);
    /* Literal is what was asked for, whichever rule decides: what ilp takes of a rule's it may
     * relax, and what is asked of a rule stays as the rule has it. */
    if (status == WEFT_OK && way->draft && way->planner == run->planner &&
        weft_may_retreat(run->planner))
        status = weft_packed_pack_quick(run, &tight.problem, err);
    else if (status == WEFT_OK)
        status = weft_packed_pack(run, &tight.problem, run->planner->literal,
                                  weft_may_retreat(way->planner), err);
    weft_tight_finish(&tight);
    return status;
}

bool weft_may_retreat(const struct weft_planner *planner)
{
    return !weft_planner_is_rule(planner);
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
    const struct weft_setting *setting;
    int64_t fails_bytes, fits_bytes; /* fits: -1 before the first */
    int64_t excess;                  /* of the last layout that was too long */
};

static void show_best_that_fits(const struct weft_packed *run)
{
    int64_t step_ns = run->best ? run->best->prediction.step_ns : 0;
    if (!run->options->draft) weft_work_show_best(run->budget.work, step_ns);
}

/* Puts the run's plan, which fits, aside: it is the fastest of those. */
static void take_plan(struct weft_packed *run)
{
    weft_plan_destroy(run->best);
    weft_program_destroy(run->best_program);
    run->best = run->plan;
    run->best_program = run->program;
    run->plan = NULL;
    run->program = NULL;
    show_best_that_fits(run);
}

static void copy_candidate(const struct weft_digest *table, const struct weft_candidate *from,
                           struct weft_candidate *to)
{
    memcpy(to->strategies, from->strategies, (size_t)table->n_decisions * sizeof *to->strategies);
    memcpy(to->moves, from->moves, (size_t)from->n_moves * sizeof *to->moves);
    to->n_moves = from->n_moves;
}

static void note_shortest(struct weft_packed *run, const struct weft_near_miss *miss)
{
    struct weft_candidate to = run->shortest.candidate;
    copy_candidate(run->table, &run->candidate, &to);
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
    if (excess > run->problem->memory_limit_bytes / 32) return;
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

/* True when the best that fits is not proven to be good enough. */
static bool is_gap_open(const struct weft_packed *run)
{
    double bound_ns = (double)run->outcome.bound_ns;
    double gap = run->options->gap > 1e-4 ? run->options->gap : 1e-4;
    return !run->best || (double)run->best->prediction.step_ns > bound_ns * (1 + gap);
}

/* True while a plan with wider rows may be worth the work. */
static bool is_open(const struct weft_packed *run, const struct rounds *rounds)
{
    if (weft_packed_is_spent(run)) return !run->best && !weft_may_retreat(run->planner);
    if (!run->best) return true;
    if (!is_gap_open(run)) return false;
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
        struct way way = {rounds->planner, rounds->setting, bytes, a_quarter, true};
        enum weft_status status = plan_once(run, &way, &outcome, &refusal);
        if (status == WEFT_E_INFEASIBLE) break;
        if (status != WEFT_OK) return weft_fail(err, status, "%s", refusal.text);
        take_round(run, rounds, bytes);
    }
    return WEFT_OK;
}

/* Packs what rules decide within rows that hold `tight_bytes` more, the fastest first, until one
 * fits; when the budget is used up by quick rules and short searches. *excess is the least by which
 * a layout was too long; 0 when none that would be faster than the best was. */
static enum weft_status pack_rivals(struct weft_packed *run, int64_t tight_bytes, int64_t *excess,
                                    struct weft_error *err)
{
    enum { MOST_TOO_LONG = 16, MOST_TOO_LATE = 4 };
    int64_t limit_bytes = run->problem->memory_limit_bytes;
    struct weft_tight tight;
    struct weft_rivals rivals;
    int n_too_long = 0;
    *excess = 0;
    WEFT_TRY(weft_tight_create(run->problem, run->room_bytes, tight_bytes, &tight, err));
    enum weft_status status = weft_rivals_create(run, &tight.problem, &rivals, err);
    for (int32_t i = 0; i < rivals.n && status == WEFT_OK; i++) {
        const struct weft_rival *rival = &rivals.rivals[i];
        if (run->best && rival->step_ns >= run->best->prediction.step_ns) break;
        if (n_too_long >= (weft_packed_is_spent(run) ? MOST_TOO_LATE : MOST_TOO_LONG)) break;
        copy_candidate(run->table, &rival->candidate, &run->candidate);
        weft_packed_keep(run, NULL, NULL);
        status = weft_packed_pack_quick(run, &tight.problem, err);
        if (status != WEFT_OK || !run->plan) continue;
        int64_t over = weft_packed_total_bytes(run) - limit_bytes;
        if (over <= 0) {
            take_plan(run);
            break;
        }
        note_near_miss(run, over, tight_bytes);
        if (*excess == 0 || over < *excess) *excess = over;
        n_too_long++;
    }
    run->n_again++;
    weft_rivals_finish(&rivals);
    weft_tight_finish(&tight);
    return status;
}

/* Packs what rules decide in the rows as they are, whatever is left, so that no rule is faster
 * whose plan is easily packed; in rows ever tighter until none that would be faster than the best
 * is too long; and in rows in between. */
static enum weft_status pack_all_rivals(struct weft_packed *run, struct weft_error *err)
{
    int64_t fails = 0, fits = -1, excess = 0;
    for (int round = 0; round < 2 * MOST_ROUNDS; round++) {
        int64_t room = run->most_room_bytes - fails, bytes = 0;
        if (round > 0 && fits < 0)
            bytes = fails + tighten_by(round < MOST_ROUNDS ? round : MOST_ROUNDS, excess, room);
        else if (round > 0)
            bytes = fails + (fits - fails) / 2;
        if (!is_gap_open(run) || (round > 0 && weft_packed_is_spent(run))) break;
        WEFT_TRY(pack_rivals(run, bytes, &excess, err));
        if (excess > 0)
            fails = bytes;
        else
            fits = bytes;
        if (fits < 0 ? run->most_room_bytes <= fails
                     : fits - fails <= run->problem->memory_limit_bytes / 512)
            break;
    }
    return WEFT_OK;
}

/* As the rule would be planned if it were asked for. */
static enum weft_status plan_by_rule(struct weft_packed *run, const struct weft_rival *rival,
                                     struct weft_error *err)
{
    struct rounds rounds = {.planner = rival->planner, .setting = rival->setting, .fits_bytes = -1};
    const struct way way = {rival->planner, rival->setting, 0, a_quarter, true};
    struct weft_error refusal = {0};
    struct weft_outcome outcome;
    enum weft_status status = plan_once(run, &way, &outcome, &refusal);
    if (status == WEFT_OK) {
        take_round(run, &rounds, 0);
        if (rounds.excess > 0) status = plan_in_between(run, &rounds, &refusal);
    }
    if (status == WEFT_OK || status == WEFT_E_INFEASIBLE) return WEFT_OK;
    return weft_fail(err, status, "%s", refusal.text);
}

/* Rows that leave a layout room shape a search's plan more than a rule's, so that what a rule makes
 * of the same rows may pack better: all of them together, which is quick, then each by itself as
 * long as it would be faster than the best. In half of the budget that is left. */
static enum weft_status plan_by_rules(struct weft_packed *run, struct weft_error *err)
{
    struct weft_budget whole = run->budget;
    struct weft_rivals rivals = {0};
    run->budget = weft_budget_part(whole, 0.5);
    enum weft_status status = pack_all_rivals(run, err);
    if (status == WEFT_OK && is_gap_open(run) && !weft_packed_is_spent(run))
        status = weft_rivals_create(run, run->problem, &rivals, err);
    for (int32_t i = 0; i < rivals.n && status == WEFT_OK && !weft_packed_is_spent(run); i++) {
        const struct weft_rival *rival = &rivals.rivals[i];
        if (run->best && rival->step_ns >= run->best->prediction.step_ns) break;
        status = plan_by_rule(run, rival, err);
    }
    weft_rivals_finish(&rivals);
    run->budget = whole;
    return status;
}

/* Lean strategies waste time but pack well, and may be faster than what is left of better ones in
 * rows that leave a layout room: ever fewer gathers ahead of their use, until it fits. */
static enum weft_status plan_lean_too(struct weft_packed *run, struct weft_error *err)
{
    enum { TRIES = 6 };
    int64_t limit_bytes = run->problem->memory_limit_bytes;
    for (int i = 0; i < TRIES && !weft_packed_is_spent(run); i++) {
        weft_packed_keep(run, NULL, NULL);
        WEFT_TRY(weft_packed_lean(run, limit_bytes - ((INT64_C(1) << i) - 1) * run->shortest.excess,
                                  err));
        if (weft_packed_total_bytes(run) > limit_bytes) continue;
        take_plan(run);
        break;
    }
    return WEFT_OK;
}

/* One of n_left that are worth it. */
static enum weft_status pack_near_miss(struct weft_packed *run, struct weft_near_miss *near,
                                       int32_t n_left, struct weft_error *err)
{
    struct weft_tight tight;
    struct weft_candidate other = run->candidate;
    run->candidate = near->candidate;
    near->candidate = other;
    weft_packed_keep(run, NULL, NULL);
    WEFT_TRY(weft_tight_create(run->problem, run->room_bytes, near->tight_bytes, &tight, err));
    enum weft_status status =
        weft_packed_pack_hard(run, &tight.problem, run->planner->literal, n_left, err);
    weft_tight_finish(&tight);
    if (run->plan && weft_packed_total_bytes(run) <= run->problem->memory_limit_bytes)
        take_plan(run);
    return status;
}

static bool is_worth_it(const struct weft_packed *run, const struct weft_near_miss *near)
{
    return !run->best || near->step_ns < run->best->prediction.step_ns;
}

/* What was nearly short enough, and would be faster than what fits, has the budget that is left;
 * where nothing fits, what was too long by the least. */
static enum weft_status search_again(struct weft_packed *run, struct weft_error *err)
{
    for (int32_t i = 0; i < run->n_near && is_worth_it(run, &run->near[i]); i++) {
        int32_t n_left = 1;
        if (weft_packed_is_spent(run) && weft_may_retreat(run->planner)) break;
        while (i + n_left < run->n_near && is_worth_it(run, &run->near[i + n_left]))
            n_left++;
        WEFT_TRY(pack_near_miss(run, &run->near[i], n_left, err));
    }
    return run->best ? WEFT_OK : pack_near_miss(run, &run->shortest, 1, err);
}

/* How the search ended that proved the bound, which knows nothing of what a layout costs. */
static void tell_packing(struct weft_outcome *outcome)
{
    size_t length = strlen(outcome->solver_stop), room = sizeof outcome->solver_stop - length;
    if (length > 0) snprintf(outcome->solver_stop + length, room, ", before packing");
}

/* True when the budget cut the planner short and its plan, which fits, is not good enough. */
static bool is_cut_short(const struct weft_packed *run)
{
    return run->planner->decide == weft_planner_ilp && run->inputs && run->outcome.cut_short &&
           is_gap_open(run);
}

/* Plans again from the best, which fits, or from a rule's, where the planner had no work left to
 * look at all of them; *excess as for the first plan. Of the two proofs the one that proves more is
 * kept.
 */
static enum weft_status go_on(struct weft_packed *run, int64_t *excess, struct weft_error *err)
{
    const struct way way = {run->planner, NULL, 0, most_of_it, false};
    struct weft_outcome outcome;
    WEFT_TRY(pack_rivals(run, 0, excess, err));
    *excess = 0;
    if (weft_packed_is_spent(run)) return WEFT_OK;
    WEFT_TRY(plan_once(run, &way, &outcome, err));
    if (outcome.bound_ns >= run->outcome.bound_ns) {
        outcome.first_work = run->outcome.first_work;
        run->outcome = outcome;
    }
    *excess = run->plan ? weft_packed_total_bytes(run) - run->problem->memory_limit_bytes : 0;
    if (run->plan && *excess <= 0) take_plan(run);
    return WEFT_OK;
}

/* After a layout that was too long by `excess`. */
static enum weft_status plan_again(struct weft_packed *run, int64_t excess, struct weft_error *err)
{
    struct rounds rounds = {.planner = run->planner, .fits_bytes = -1, .excess = excess};
    note_near_miss(run, excess, 0);
    if (weft_may_retreat(run->planner) && !run->best) WEFT_TRY(plan_lean_too(run, err));
    if (run->planner->decide == weft_planner_ilp) WEFT_TRY(plan_by_rules(run, err));
    WEFT_TRY(plan_in_between(run, &rounds, err));
    WEFT_TRY(search_again(run, err));
    char over[WEFT_UNITS_TEXT_BYTES];
    weft_log(run->options->draft ? WEFT_LOG_DEBUG : WEFT_LOG_INFO,
             "planner %s: a layout ended %s above the limit; planned again %d time%s",
             run->planner->name, weft_units_show_bytes(excess, over), (int)run->n_again,
             run->n_again == 1 ? "" : "s");
    return WEFT_OK;
}

/* The caller's plans that have a layout within the limit: what is planned is no slower. */
static enum weft_status pack_starts(struct weft_packed *run, struct weft_error *err)
{
    if (run->planner->decide != weft_planner_ilp) return WEFT_OK;
    for (int32_t i = 0; i < run->options->n_starts; i++) {
        WEFT_TRY(weft_packed_start(run, run->options->starts[i], err));
        if (run->plan && weft_packed_total_bytes(run) <= run->problem->memory_limit_bytes)
            take_plan(run);
    }
    return WEFT_OK;
}

/* The bound is that of rounds that have the user's limit. */
enum weft_status weft_plan_in_rounds(struct weft_packed *run, struct weft_error *err)
{
    int64_t limit_bytes = run->problem->memory_limit_bytes;
    const struct way first = {run->planner, NULL, 0, a_quarter, false};
    enum weft_status status = WEFT_OK;
    WEFT_TRY(pack_starts(run, err));
    WEFT_TRY(plan_once(run, &first, &run->outcome, err));
    /* There is no plan when it would be no faster than a start that fits. */
    int64_t excess = run->plan ? weft_packed_total_bytes(run) - limit_bytes : 0;
    if (excess <= 0) {
        if (run->plan) take_plan(run);
        if (is_cut_short(run)) status = go_on(run, &excess, err);
    }
    bool again = excess > 0;
    if (again) show_best_that_fits(run);
    if (again && status == WEFT_OK) status = plan_again(run, excess, err);
    weft_packed_keep(run, run->best, run->best_program);
    run->best = NULL;
    run->best_program = NULL;
    if (run->plan && again) tell_packing(&run->outcome);
    if (status != WEFT_OK || run->plan) return status;
    if (weft_may_retreat(run->planner)) {
        snprintf(run->outcome.solver_stop, sizeof run->outcome.solver_stop,
                 "packing: only a plan of the leanest strategies has a layout within the limit");
        return weft_packed_leanest(run, err);
    }
    return weft_fail(err, WEFT_E_INFEASIBLE,
                     "planner %s: its live bytes fit into the limit of %lld bytes, but its layout "
                     "ends %lld bytes above it",
                     run->planner->name, (long long)limit_bytes, (long long)run->shortest.excess);
}
