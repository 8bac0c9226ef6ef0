#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "cli/command.h"
#include "plan/plan.h"
#include "report/explain.h"
#include "report/plan_report.h"
#include "scheduler/schedule.h"

/* Of each plan that is made again: models of a thousand layers would take half a minute. */
static const int64_t AGAIN_NS = 5000000000;

/* The plan by ilp without solver, layout or tree, from `start`, whose rows are within row_bytes;
 * NULL when it finds none. Its problem is the caller's. */
static enum weft_status plan_within(struct weft_problem *problem, int64_t row_bytes,
                                    const struct weft_plan *const *starts, int32_t n_starts,
                                    struct weft_plan **out, struct weft_error *err)
{
    const struct weft_schedule_options options = {.planner = "ilp",
                                                  .gap = 1e-4,
                                                  .draft = true,
                                                  .starts = starts,
                                                  .n_starts = n_starts,
                                                  .time_limit_ns = AGAIN_NS,
                                                  .now_ns = weft_clock_now_ns};
    struct weft_pool pool = {0};
    struct weft_outcome outcome = {.solver_gap = -1, .pool = &pool};
    struct weft_error refusal = {0};
    size_t n_blocks = 1;
    for (int32_t i = 0; i < problem->n_items; i++)
        n_blocks += (size_t)problem->items[i].item.n_blocks;
    struct weft_candidate candidate = {
        .policies = calloc((size_t)problem->n_units + 1, sizeof *candidate.policies),
        .moves = calloc(n_blocks, sizeof *candidate.moves)};
    enum weft_status status = WEFT_OK;
    *out = NULL;
    problem->memory_limit_bytes = row_bytes;
    if (!candidate.policies || !candidate.moves) {
        status = weft_fail_memory(err, "a plan");
    } else {
        status = weft_planner_find("ilp", NULL)
                     ->decide(problem, row_bytes, &options, &candidate, &outcome, &refusal);
        if (status == WEFT_OK)
            status = weft_plan_create(problem, "ilp", candidate.policies, candidate.moves,
                                      candidate.n_moves, out, &refusal);
        if (status == WEFT_OK) status = weft_plan_predict(*out, &refusal);
        if (status == WEFT_E_INFEASIBLE)
            status = WEFT_OK;
        else if (status != WEFT_OK)
            status = weft_fail(err, status, "%s", refusal.text);
    }
    free(candidate.policies);
    free(candidate.moves);
    weft_pool_finish(&pool);
    return status;
}

/* Steps with a block less, as many bytes as the plan's largest row, and a block more. Each starts
 * from the plan and from the one with less, so that more is never slower. */
static enum weft_status find_stairs(const struct weft_plan *plan, int64_t step_ns[WEFT_STAIRS],
                                    struct weft_error *err)
{
    int64_t block_bytes = weft_explain_stair_bytes(plan, weft_explain_dearest(plan));
    struct weft_problem problems[WEFT_STAIRS];
    struct weft_plan *plans[WEFT_STAIRS] = {NULL};
    enum weft_status status = WEFT_OK;
    for (int32_t i = 0; i < WEFT_STAIRS && status == WEFT_OK; i++) {
        const struct weft_plan *starts[] = {plan, i > 0 ? plans[i - 1] : NULL};
        problems[i] = *plan->problem;
        step_ns[i] = -1;
        status = plan_within(&problems[i], plan->prediction.peak_bytes + (i - 1) * block_bytes,
                             starts, starts[1] ? 2 : 1, &plans[i], err);
        if (plans[i]) step_ns[i] = plans[i]->prediction.step_ns;
    }
    for (int32_t i = 0; i < WEFT_STAIRS; i++)
        weft_plan_destroy(plans[i]);
    return status;
}

static enum weft_status say(const struct weft_plan *plan, bool json, struct weft_text *out,
                            struct weft_error *err)
{
    int64_t step_ns[WEFT_STAIRS];
    WEFT_TRY(find_stairs(plan, step_ns, err));
    if (json) {
        struct weft_json_writer writer;
        weft_json_writer_init(&writer, out, 2);
        weft_explain_json(plan, step_ns, &writer);
        weft_text_add(out, "\n");
    } else {
        weft_report_plan(plan, out);
        weft_text_add(out, "\n");
        weft_explain_stairs(plan, step_ns, out);
        weft_explain(plan, out);
    }
    return WEFT_OK;
}

static enum weft_status run(const struct weft_cli *cli, struct weft_error *err)
{
    char *bytes = NULL;
    size_t length = 0;
    struct weft_plan *plan = NULL;
    struct weft_text out;
    WEFT_TRY(weft_file_read(cli->operands[0], INT64_C(1) << 30, &bytes, &length, err));
    enum weft_status status = weft_plan_parse(bytes, length, cli->operands[0], &plan, err);
    free(bytes);
    weft_text_init(&out);
    if (status == WEFT_OK) status = say(plan, cli->json, &out, err);
    if (status == WEFT_OK) status = weft_cli_emit(cli, &out, err);
    weft_text_finish(&out);
    weft_plan_destroy(plan);
    return status;
}

const struct weft_command weft_command_explain = {
    .name = "explain",
    .usage = "PLAN",
    .summary = "why each block sits where it does, and what each unit costs",
    .details =
        "For every unit its policy, blocks and channel time; for every block in channel order its\n"
        "launch, its deadline and what keeps it from moving: its window, memory (which slot would\n"
        "overflow, by how much), the channel's order (behind or ahead of which block), the "
        "channel\n"
        "being busy (with which block), or nothing. And what a block of memory more or less does "
        "to\n"
        "the step, by planning again without solver and layout.",
    .least_operands = 1,
    .most_operands = 1,
    .run = run,
};
