#include "scheduler/rounds/packed.h"

#include <stdlib.h>
#include <string.h>

#include "program/predict.h"
#include "scheduler/planners/fixed.h"
#include "scheduler/search/search.h"

bool weft_packed_is_spent(const struct weft_packed *run)
{
    return weft_budget_is_over(run->budget);
}

void weft_packed_keep(struct weft_packed *run, struct weft_plan *plan, struct weft_program *program)
{
    weft_plan_destroy(run->plan);
    weft_program_destroy(run->program);
    run->plan = plan;
    run->program = program;
}

int64_t weft_packed_total_bytes(const struct weft_packed *run)
{
    return run->plan->prediction.total_bytes;
}

/* The candidate as it is, where relaxing it costs time. */
static enum weft_status keep_if_no_slower(const struct weft_packed *run,
                                          const struct weft_candidate *candidate,
                                          struct weft_plan **relaxed, struct weft_error *err)
{
    struct weft_plan *plan = NULL;
    WEFT_TRY(weft_plan_create(run->problem, run->options->planner, candidate->strategies,
                              candidate->moves, candidate->n_moves, &plan, err));
    enum weft_status status = weft_plan_predict(plan, err);
    if (status == WEFT_OK && plan->prediction.step_ns < (*relaxed)->prediction.step_ns) {
        struct weft_plan *slower = *relaxed;
        *relaxed = plan;
        plan = slower;
    }
    weft_plan_destroy(plan);
    return status;
}

enum weft_status weft_packed_measure(const struct weft_packed *run,
                                     const struct weft_candidate *candidate,
                                     const struct weft_problem *rows, bool relax,
                                     struct weft_plan **out, struct weft_error *err)
{
    struct weft_plan *plan = NULL;
    enum weft_status status;
    weft_work_spend(run->budget.work, 5 * (int64_t)candidate->n_moves * rows->n_slots / 2);
    WEFT_TRY(weft_plan_create(rows, run->options->planner, candidate->strategies, candidate->moves,
                              candidate->n_moves, &plan, err));
    if (relax) WEFT_TRY_GOTO(fail, weft_plan_relax(plan, rows->memory_limit_bytes, err));
    plan->problem = run->problem;
    WEFT_TRY_GOTO(fail, weft_plan_predict(plan, err));
    if (relax && weft_problem_relaxing_may_slow(run->problem))
        WEFT_TRY_GOTO(fail, keep_if_no_slower(run, candidate, &plan, err));
    *out = plan;
    return WEFT_OK;
fail:
    weft_plan_destroy(plan);
    return status;
}

static bool is_faster_than_best(const struct weft_packed *run, const struct weft_plan *plan)
{
    return !run->best || plan->prediction.step_ns < run->best->prediction.step_ns;
}

/* How a layout of the candidate is looked for. */
struct attempt {
    bool relax;
    int32_t effort;
    int64_t part; /* it has a part-th of the budget that is left */
};

/* A layout is searched for in an eighth of the budget that is left, for rows that are a little
 * tighter do what it may not, and there must be some left to look at them. */
enum { FIRST_PART = 8, SCREEN = -1 };

static void limit_search(struct weft_packed *run, int64_t part)
{
    if (run->limited.budget.until == INT64_MAX) return; /* it is not to end */
    run->limited.budget = weft_budget_part(run->budget, 1.0 / (double)part);
}

/* A plan of the candidate, relaxed within the limit of the rows' problem when that is wanted,
 * lowered and measured. It is kept when it is faster than the best that fits, and takes less than
 * the one kept before. */
static enum weft_status lower(struct weft_packed *run, const struct weft_problem *rows,
                              const struct attempt *attempt, struct weft_error *err)
{
    struct weft_plan *plan = NULL;
    struct weft_program *program = NULL;
    enum weft_status status;
    WEFT_TRY(weft_packed_measure(run, &run->candidate, rows, attempt->relax, &plan, err));
    if (!is_faster_than_best(run, plan)) {
        weft_plan_destroy(plan);
        return WEFT_OK;
    }
    if (run->inputs) {
        limit_search(run, attempt->part);
        weft_work_spend(run->budget.work,
                        1000 * (int64_t)run->problem->n_slots + 60 * (int64_t)plan->n_placements);
        WEFT_TRY_GOTO(fail, weft_program_lower(plan, run->inputs, attempt->effort, &program, err));
        plan->prediction.arena_bytes = program->arena_bytes;
        plan->prediction.total_bytes = program->base_bytes + program->arena_bytes;
    } else {
        plan->prediction.total_bytes = plan->prediction.peak_bytes;
    }
    if (!run->plan || plan->prediction.total_bytes < weft_packed_total_bytes(run)) {
        weft_packed_keep(run, plan, program);
    } else {
        weft_plan_destroy(plan);
        weft_program_destroy(program);
    }
    return WEFT_OK;
fail:
    weft_plan_destroy(plan);
    return status;
}

/* True when the plan's layout is too long for longer searches to be worth it. */
static bool is_hopeless(const struct weft_packed *run)
{
    enum { HOPELESS_PART = 32 };
    int64_t limit_bytes = run->problem->memory_limit_bytes;
    return run->plan && weft_packed_total_bytes(run) - limit_bytes > limit_bytes / HOPELESS_PART;
}

static enum weft_status pack(struct weft_packed *run, const struct weft_problem *rows, bool literal,
                             const struct attempt *attempts, int n_attempts, bool is_one_of_many,
                             struct weft_error *err)
{
    for (int i = 0; i < n_attempts; i++) {
        if (attempts[i].relax && literal) continue;
        WEFT_TRY(lower(run, rows, &attempts[i], err));
        if (run->plan && weft_packed_total_bytes(run) <= run->problem->memory_limit_bytes) break;
        if (is_one_of_many && !attempts[i].relax && is_hopeless(run)) break;
    }
    return WEFT_OK;
}

enum weft_status weft_packed_pack(struct weft_packed *run, const struct weft_problem *rows,
                                  bool literal, bool is_one_of_many, struct weft_error *err)
{
    static const struct attempt attempts[] = {
        {true, 0, FIRST_PART}, {false, 0, FIRST_PART}, {false, 1, FIRST_PART}};
    return pack(run, rows, literal, attempts, 3, is_one_of_many, err);
}

enum weft_status weft_packed_pack_quick(struct weft_packed *run, const struct weft_problem *rows,
                                        struct weft_error *err)
{
    static const struct attempt attempts[] = {{true, SCREEN, FIRST_PART},
                                              {false, SCREEN, FIRST_PART},
                                              {true, 0, FIRST_PART},
                                              {false, 0, FIRST_PART}};
    struct weft_budget budget = run->limited.budget;
    bool spent = weft_packed_is_spent(run);
    if (spent) run->limited.budget = weft_budget_unlimited(run->budget.work);
    enum weft_status status = pack(run, rows, false, attempts, spent ? 2 : 4, true, err);
    run->limited.budget = budget;
    return status;
}

enum weft_status weft_packed_pack_hard(struct weft_packed *run, const struct weft_problem *rows,
                                       bool literal, int32_t n_left, struct weft_error *err)
{
    const struct attempt attempts[] = {{true, 1, 2 * (int64_t)n_left},
                                       {false, 2, 2 * (int64_t)n_left}};
    return pack(run, rows, literal, attempts, 2, false, err);
}

/* The candidate's plan with the addresses of `start`, if its program is safe with them and within
 * the limit. */
static enum weft_status take_addresses(struct weft_packed *run, const struct weft_plan *start,
                                       struct weft_error *err)
{
    struct weft_plan *plan = NULL;
    struct weft_program *program = NULL;
    struct weft_error why = {0};
    if (start->n_offsets == 0) return WEFT_OK;
    WEFT_TRY(weft_packed_measure(run, &run->candidate, run->problem, false, &plan, err));
    if (is_faster_than_best(run, plan)) {
        plan->offsets = start->offsets;
        plan->n_offsets = start->n_offsets;
        enum weft_status status = weft_program_lower(plan, run->inputs, 0, &program, &why);
        if (status == WEFT_OK)
            status = weft_program_verify(program, run->problem->memory_limit_bytes, &why);
        plan->offsets = NULL; /* the start's: the program has them */
        plan->n_offsets = 0;
        if (status == WEFT_OK) {
            plan->prediction.arena_bytes = program->arena_bytes;
            plan->prediction.total_bytes = program->base_bytes + program->arena_bytes;
            weft_packed_keep(run, plan, program);
            return WEFT_OK;
        }
    }
    weft_program_destroy(program);
    weft_plan_destroy(plan);
    return why.status == WEFT_E_SYSTEM ? weft_fail(err, why.status, "%s", why.text) : WEFT_OK;
}

enum weft_status weft_packed_start(struct weft_packed *run, const struct weft_plan *start,
                                   struct weft_error *err)
{
    struct weft_candidate *to = &run->candidate;
    weft_packed_keep(run, NULL, NULL);
    if (!run->inputs || !weft_search_moves_of(run->problem, start, to->moves)) return WEFT_OK;
    memcpy(to->strategies, start->strategies,
           (size_t)run->table->n_decisions * sizeof *to->strategies);
    to->n_moves = start->n_placements;
    WEFT_TRY(take_addresses(run, start, err));
    return run->plan ? WEFT_OK : weft_packed_pack(run, run->problem, true, true, err);
}

/* Adds the moves of an item to the candidate, the gathers of which block unless there is room for
 * all of them in the last slot of their window. */
static void move_late(struct weft_packed *run, int32_t index, int64_t *rows, int64_t limit_bytes)
{
    struct weft_candidate *out = &run->candidate;
    const struct weft_item *item = &run->problem->items[index].item;
    bool gathers = item->acquires;
    int64_t bytes = gathers ? item->n_blocks * item->stair_bytes : 0;
    bool fits = rows[item->last] + bytes <= limit_bytes;
    if (gathers && fits) rows[item->last] += bytes;
    for (int32_t b = 0; b < item->n_blocks; b++)
        out->moves[out->n_moves++] = (struct weft_move){.item = index,
                                                        .slot = !gathers ? item->first
                                                                : fits   ? item->last
                                                                         : item->last + 1};
}

enum weft_status weft_packed_lean(struct weft_packed *run, int64_t limit_bytes,
                                  struct weft_error *err)
{
    static const struct attempt once = {false, 0, FIRST_PART};
    const struct weft_problem *problem = run->problem;
    struct weft_candidate *out = &run->candidate;
    int64_t *rows = calloc((size_t)run->table->n_slots, sizeof *rows);
    if (!rows) return weft_fail_memory(err, "memory rows");
    memcpy(out->strategies, run->table->leanest,
           (size_t)run->table->n_decisions * sizeof *out->strategies);
    weft_digest_lean_rows(run->table, out->strategies, rows, NULL);
    out->n_moves = 0;
    for (int32_t i = 0; i < problem->n_items; i++)
        if (weft_item_active(&problem->items[i].item, out->strategies))
            move_late(run, i, rows, limit_bytes);
    free(rows);
    weft_moves_sort(problem, out->moves, out->n_moves);
    if (limit_bytes > 0) return lower(run, run->problem, &once, err);
    WEFT_TRY(weft_packed_pack(run, run->problem, true, false, err));
    if (weft_packed_total_bytes(run) <= run->problem->memory_limit_bytes) return WEFT_OK;
    return weft_packed_pack_hard(run, run->problem, true, 1, err);
}

enum weft_status weft_packed_leanest(struct weft_packed *run, struct weft_error *err)
{
    weft_packed_keep(run, NULL, NULL);
    run->limited.budget = weft_budget_unlimited(run->budget.work);
    return weft_packed_lean(run, 0, err);
}
