/* SPDX-License-Identifier: Apache-2.0 */
/* plan.micro_step_order "auto" on small random configs with little work: its plan is no slower than
 * each order planned alone with all of the work, by more than a thousandth. Its file proves the
 * bounds of both orders. With plan.recompute "if-needed" each order recomputes as it does alone.
 *
 * build/tests/library/test-library-orders [FROM TO]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library/session.h"
#include "spec/config_batch.h"
#include "tests/effort.h"
#include "tests/program/dice.h"
#include "tests/runtime/exec/job.h"
#include "tests/scheduler/random_whole.h"

enum { SEEDS = TEST_CASES(120, 40) };

/* One question; `work` is plan.work_limit in millions of units. */
struct question {
    uint64_t seed;
    int64_t micro_steps, work, room; /* room: times the seed's memory limit */
    const char *levels;
};

/* Opens the seed's config with an order. False if it cannot have these settings, or leaves its
 * split open. */
static bool open_order(const struct question *ask, const char *order, int64_t millions,
                       struct weft_session *session)
{
    char texts[4][96];
    const char *const overrides[] = {texts[0], texts[1], texts[2], texts[3]};
    struct weft_text text;
    struct weft_error why = {0};
    int64_t splits[WEFT_MOST_SPLITS];
    snprintf(texts[0], sizeof *texts, "plan.work_limit=%lldM", (long long)millions);
    snprintf(texts[1], sizeof *texts, "plan.micro_step_order=%s", order);
    snprintf(texts[2], sizeof *texts, "train.grad_accum=%lld", (long long)ask->micro_steps);
    snprintf(texts[3], sizeof *texts, "plan.recompute=%s", ask->levels);
    *session = (struct weft_session){0};
    weft_text_init(&text);
    OK(random_whole_write(ask->seed, &text, &err));
    enum weft_status status = weft_config_parse(weft_text_chars(&text), text.length, "random.json",
                                                ".", overrides, 4, &session->config, &why);
    weft_text_finish(&text);
    if (status == WEFT_OK) session->config->cluster.memory_limit_bytes *= ask->room;
    if (status == WEFT_OK) status = weft_session_stage(session, NULL, &why);
    CHECK(status == WEFT_OK || status == WEFT_E_DATA, "%s", why.text);
    if (status != WEFT_OK) fprintf(stderr, "%s\n", why.text);
    return status == WEFT_OK && weft_config_splits(session->config, splits) == 1;
}

/* The step of an order's plan; -1: none fits. */
static int64_t plan_alone(const struct question *ask, const char *order, int64_t millions)
{
    struct weft_session session;
    struct weft_error why = {0};
    CHECK(open_order(ask, order, millions, &session), "%s alone", order);
    const enum weft_status status = weft_session_plan(&session, "ilp", &why);
    CHECK(status == WEFT_OK || status == WEFT_E_INFEASIBLE, "%s: %s", order, why.text);
    const int64_t ns = status == WEFT_OK ? session.plan->prediction.step_ns : -1;
    weft_session_close(&session);
    return ns;
}

static void check_file(struct weft_session *session)
{
    struct weft_text text;
    weft_text_init(&text);
    weft_plan_write(session->plan, &text);
    OK(weft_session_take(session, weft_text_chars(&text), text.length, "its file", &err));
    OK(weft_session_check_others(session, "its file", &err));
    OK(weft_plan_check_bounds(session->plan, &err));
    weft_text_finish(&text);
}

/* The step that the plan of both may have at most, if each order has these alone; -1: none has. */
static int64_t most_of(const int64_t alone[2])
{
    const int64_t least =
        alone[0] < 0 || (alone[1] >= 0 && alone[1] < alone[0]) ? alone[1] : alone[0];
    return least < 0 ? -1 : least + least / 1000;
}

/* Returns the number of orders with a plan; 0 if the config has no two orders. */
static int check_seed(const struct question *ask)
{
    struct weft_session both;
    struct weft_error why = {0};
    bool has = open_order(ask, "auto", ask->work, &both);
    has = has && weft_config_refuses_turns(both.config, ask->micro_steps) == NULL &&
          both.config->model->n_layers > 1;
    struct weft_session layer;
    has = has && open_order(ask, "layer", ask->work, &layer);
    if (!has) {
        weft_session_close(&both);
        return 0;
    }
    weft_session_close(&layer);
    const enum weft_status status = weft_session_plan(&both, "ilp", &why);
    const int64_t alone[] = {plan_alone(ask, "step", ask->work),
                             plan_alone(ask, "layer", ask->work)};
    const int n = (alone[0] >= 0) + (alone[1] >= 0);
    CHECK(n == 0 || status == WEFT_OK, "%s", why.text);
    if (status == WEFT_OK && n > 0) {
        const int64_t most = most_of(alone);
        const int64_t ns = both.plan->prediction.step_ns;
        CHECK(ns <= most, "%lld ns by auto, %lld by step and %lld by layer", (long long)ns,
              (long long)alone[0], (long long)alone[1]);
        check_file(&both);
    }
    weft_session_close(&both);
    return n;
}

/* A seed in which one order has a plan only with recomputation, and the other a slower one
 * without. A draft must recompute too, or the slower order gets all of the work. */
enum { RECOMPUTES_IN_ONE = 100157 };
/* Both drafts are within 2 %, and the order with the slower draft has the far faster plan. */
enum { DRAFTS_MISJUDGE = 100673 };

/* Draws the question of a seed and checks it. Returns whether both orders have plans. */
static bool draw_seed(uint64_t seed)
{
    static const char *const levels[] = {"none", "if-needed", "auto"};
    struct dice dice = dice_of(seed, "orders");
    struct question ask = {.seed = seed, .micro_steps = roll(&dice, 2, 6)};
    ask.levels = levels[roll(&dice, 0, 2)];
    ask.room = roll(&dice, 1, 4);
    ask.work = INT64_C(2) << roll(&dice, 0, 5);
    if (random_whole_shape(seed) != RANDOM_TINY && seed % 20 != 0) return false;
    fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
    return check_seed(&ask) == 2;
}

int main(int argc, char **argv)
{
    const uint64_t from = argc == 3 ? strtoull(argv[1], NULL, 10) : 1;
    const uint64_t to = argc == 3 ? strtoull(argv[2], NULL, 10) : SEEDS;
    int n_both = 0;
    for (uint64_t seed = from; seed <= to; seed++)
        n_both += draw_seed(seed);
    CHECK(argc == 3 || draw_seed(RECOMPUTES_IN_ONE), "an order of the pinned seed has no plan");
    CHECK(argc == 3 || draw_seed(DRAFTS_MISJUDGE), "an order of the pinned seed has no plan");
    printf("%d configs have plans of both orders\n", n_both);
    CHECK(argc == 3 || n_both > 0, "no config has plans of both orders");
    return 0;
}
