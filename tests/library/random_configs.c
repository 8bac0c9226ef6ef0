/* SPDX-License-Identifier: Apache-2.0 */
/* Random whole configs, from config to plan and, if possible, to steps: checks all promises.
 *
 * build/tests/library/test-library-random-configs [FROM TO]
 *
 * Seeds FROM to TO; the default is a few seeds of each shape, which take some seconds. A seed is a
 * whole config (tests/program/random_config.h), so its number reproduces a failure:
 * bench/planner/random_config NUMBER prints it.
 *
 * Within its limit each config has a plan that fits, with pages. The plan's rows equal its
 * program's lives, and simulator and prediction agree. The plan's file reads back as the same text
 * and proves the bound. No planner has a plan below the bound. Except for random plans, no plan
 * that is packed without loss is faster than ilp's. With equal work greedy is never faster. Below
 * the least limit there is no plan. Small configs are executed, under the virtual clock. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library/session.h"
#include "program/lifetime.h"
#include "program/predict.h"
#include "program/trace.h"
#include "runtime/train/train.h"
#include "scheduler/digest/digest.h"
#include "scheduler/planners/table.h"
#include "tests/effort.h"
#include "tests/runtime/exec/same_trace.h"
#include "tests/scheduler/random_whole.h"

enum { RIVALS = 4 };

/* The quickest first. Every shape is there, and tiny ones are executed. */
static const uint64_t usual_seeds[] = {1,  5, 19, 6,  29, 10, 14, 23, 24, 8,  7,  13, 15, 18,
                                       12, 9, 31, 32, 27, 2,  4,  11, 28, 26, 33, 30, 21};
enum { USUAL_SEEDS = TEST_CASES(sizeof usual_seeds / sizeof *usual_seeds, 8) };

static void open_session(uint64_t seed, const char *override, struct weft_session *session)
{
    const char *const overrides[] = {"plan.work_limit=200M", override};
    struct weft_text text;
    *session = (struct weft_session){0};
    weft_text_init(&text);
    OK(random_whole_write(seed, &text, &err));
    OK(weft_config_parse(weft_text_chars(&text), text.length, "random.json", ".", overrides,
                         override == NULL ? 1 : 2, &session->config, &err));
    weft_text_finish(&text);
    OK(weft_session_stage(session, NULL, &err));
}

/* Writes the plan, reads it again, and checks that both texts are equal. */
static void check_file(struct weft_session *session)
{
    struct weft_text text, again;
    weft_text_init(&text);
    weft_text_init(&again);
    weft_plan_write(session->plan, &text);
    OK(weft_session_take(session, weft_text_chars(&text), text.length, "its file", &err));
    OK(weft_session_check_others(session, "its file", &err));
    OK(weft_plan_check_prediction(session->plan, &err));
    OK(weft_plan_check_bounds(session->plan, &err));
    weft_plan_write(session->plan, &again);
    CHECK(weft_text_ok(&text) && strcmp(weft_text_chars(&text), weft_text_chars(&again)) == 0,
          "the file changes when it is read");
    weft_text_finish(&again);
    weft_text_finish(&text);
}

static void check_rows(const struct weft_session *session)
{
    const struct weft_problem *problem = session->plan->problem;
    size_t n = (size_t)problem->n_slots * WEFT_CATEGORY_COUNT;
    int64_t *rows = calloc(2 * n, sizeof *rows), *live = rows + n;
    CHECK(rows != NULL, "out of memory");
    weft_plan_rows(session->plan, 0, rows);
    weft_program_live(session->program, live);
    for (size_t i = 0; i < n; i++)
        CHECK(rows[i] == live[i], "slot %s, %s: %lld bytes by rows, %lld by lives",
              problem->slot_names[i / WEFT_CATEGORY_COUNT],
              weft_category_key((enum weft_category)(i % WEFT_CATEGORY_COUNT)), (long long)rows[i],
              (long long)live[i]);
    free(rows);
}

static void check_time(const struct weft_session *session)
{
    const struct weft_prediction *said = &session->plan->prediction;
    struct weft_trace *trace = NULL;
    struct weft_trace_summary summary;
    OK(weft_simulate(session->program, &trace, &err));
    weft_trace_summarise(session->program, trace, &summary);
    CHECK(summary.step_ns == said->step_ns && summary.exposed_ns == said->exposed_ns,
          "%lld ns simulated, %lld exposed; %lld and %lld said", (long long)summary.step_ns,
          (long long)summary.exposed_ns, (long long)said->step_ns, (long long)said->exposed_ns);
    weft_trace_destroy(trace);
}

/* Properties of a plan by any planner. */
static void check_plan(struct weft_session *session, int64_t bound_ns)
{
    const struct weft_plan *plan = session->plan;
    const struct weft_prediction *said = &plan->prediction;
    int64_t limit_bytes = plan->problem->tiers[0].limit_bytes;
    CHECK(said->total_bytes <= limit_bytes &&
              session->program->base_bytes + session->program->arena_bytes == said->total_bytes,
          "%lld bytes of %lld, %lld in the program", (long long)said->total_bytes,
          (long long)limit_bytes,
          (long long)(session->program->base_bytes + session->program->arena_bytes));
    CHECK(said->step_ns >= bound_ns, "%s: %lld ns, below the proven %lld", plan->planner,
          (long long)said->step_ns, (long long)bound_ns);
    check_rows(session);
    check_time(session);
    check_file(session);
}

/* True for small configs with data to train on and few enough ranks. */
static bool can_execute(uint64_t seed, const struct weft_config *config)
{
    struct weft_error why = {0};
    return random_whole_shape(seed) == RANDOM_TINY && config->cluster.channels == 1 &&
           config->cluster.ranks <= MOST_RANKS && weft_train_check(config, &why) == WEFT_OK;
}

static void execute(const struct weft_session *session)
{
    struct job job = {.config = session->config,
                      .profile = session->profile,
                      .stages = session->stages,
                      .inputs = session->inputs,
                      .plan = session->plan,
                      .program = session->program};
    int32_t ranks = (int32_t)session->config->cluster.ranks;
    CHECK(ranks_run(ranks, same_trace, &job) == 0, "%s on %d ranks", session->plan->planner, ranks);
}

/* Plans by some of the other planners; the seed chooses them. */
static void check_rivals(uint64_t seed, struct weft_session *session, int64_t step_ns,
                         int64_t bound_ns)
{
    size_t n = 0;
    while (weft_planners()[n].name != NULL)
        n++;
    for (size_t i = 0; i < RIVALS; i++) {
        const char *name = weft_planners()[(seed * RIVALS + i) % n].name;
        if (strcmp(name, "ilp") == 0 || weft_planner_find(name, NULL)->solves) continue;
        struct weft_error why = {0};
        enum weft_status status = weft_session_plan(session, name, &why);
        CHECK(status == WEFT_OK || status == WEFT_E_INFEASIBLE || status == WEFT_E_DATA, "%s: %s",
              name, why.text);
        if (status != WEFT_OK) continue;
        check_plan(session, bound_ns);
        const struct weft_prediction *said = &session->plan->prediction;
        bool easy = said->total_bytes == said->peak_bytes && strcmp(name, "random") != 0;
        CHECK(!easy || said->step_ns >= step_ns, "%s: %lld ns, ilp %lld", name,
              (long long)said->step_ns, (long long)step_ns);
    }
}

/* A limit one byte below the least rows of every period is refused. */
static void check_least(uint64_t seed)
{
    struct weft_session session;
    struct weft_error why = {0};
    open_session(seed, "plan.recompute=none", &session);
    struct weft_variant variants[WEFT_MOST_VARIANTS];
    const int32_t n = weft_variants_list(session.config, variants);
    int64_t least_bytes = INT64_MAX;
    for (int32_t v = 0; v < n; v++) {
        OK(weft_session_stage_variant(&session, &variants[v], &err));
        const int64_t bytes = weft_least_limit(session.stages.problem, 0, NULL);
        if (bytes < least_bytes) least_bytes = bytes;
    }
    session.config->cluster.memory_limit_bytes = least_bytes - 1;
    OK(weft_session_stage_variant(&session, &variants[0], &err));
    CHECK(weft_session_plan(&session, "ilp", &why) == WEFT_E_INFEASIBLE,
          "a plan within less than the least");
    weft_session_close(&session);
}

/* ilp and greedy with the same small budget. */
static void check_equal_work(uint64_t seed)
{
    static const char *const limits[] = {"plan.work_limit=1M", "plan.work_limit=3M",
                                         "plan.work_limit=10M", "plan.work_limit=30M"};
    struct weft_session session;
    open_session(seed, limits[seed % 4], &session);
    OK(weft_session_plan(&session, "greedy", &err));
    int64_t greedy_ns = session.plan->prediction.step_ns;
    OK(weft_session_plan(&session, "ilp", &err));
    int64_t step_ns = session.plan->prediction.step_ns;
    CHECK(step_ns <= greedy_ns, "%s: ilp %lld ns, greedy %lld", limits[seed % 4],
          (long long)step_ns, (long long)greedy_ns);
    weft_session_close(&session);
}

static bool check_seed(uint64_t seed)
{
    struct weft_session session;
    open_session(seed, NULL, &session);
    bool executes = can_execute(seed, session.config);
    OK(weft_session_plan(&session, "ilp", &err));
    int64_t step_ns = session.plan->prediction.step_ns;
    int64_t bound_ns = weft_plan_least_bound_ns(session.plan);
    CHECK(bound_ns > 0, "there is no bound");
    check_plan(&session, bound_ns);
    if (executes) execute(&session);
    check_rivals(seed, &session, step_ns, bound_ns);
    weft_session_close(&session);
    check_equal_work(seed);
    check_least(seed);
    return executes;
}

int main(int argc, char **argv)
{
    int n = 0, n_executed = 0;
    CHECK(argc == 1 || argc == 3, "use: %s [FROM TO]", argv[0]);
    uint64_t first = argc == 3 ? strtoull(argv[1], NULL, 10) : 0;
    uint64_t last = argc == 3 ? strtoull(argv[2], NULL, 10) : USUAL_SEEDS - 1;
    for (uint64_t i = first; i <= last; i++, n++) {
        uint64_t seed = argc == 3 ? i : usual_seeds[i];
        printf("seed %llu\n", (unsigned long long)seed);
        fflush(stdout);
        n_executed += check_seed(seed);
    }
    printf("%d random configs, %d of them executed\n", n, n_executed);
    CHECK(n > 0 && (argc == 3 || n_executed > 0), "nothing was checked");
    return 0;
}
