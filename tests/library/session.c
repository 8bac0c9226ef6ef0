/* SPDX-License-Identifier: Apache-2.0 */
#include "library/session.h"
#include "problem/stages.h"
#include "spec/config_batch.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define LAYERS                                                                                     \
    "[{\"name\":\"wte\",\"type\":\"embedding\",\"vocab\":256,\"hidden\":64},"                      \
    "{\"name\":\"h.{i}\",\"type\":\"transformer_block\",\"repeat\":4,\"hidden\":64,\"heads\":4,"   \
    "\"ffn\":256},"                                                                                \
    "{\"name\":\"head\",\"type\":\"lm_head\",\"vocab\":256,\"hidden\":64}]"
#define CLUSTER                                                                                    \
    "{\"ranks\":4,\"device\":{\"flops\":{\"f32\":\"50G\"},\"memory_bandwidth\":\"10GB/s\"},"       \
    "\"link\":{\"intra\":{\"alpha\":\"20us\",\"bandwidth\":\"1GB/s\"}}}"
static const char config_text[] =
    "{\"version\":1,\"model\":{\"layers\":" LAYERS "},\"cluster\":" CLUSTER
    ",\"train\":{\"micro_batch\":2,\"seq_len\":64}}";

static struct weft_session open_overridden(const char *const *overrides, int32_t n)
{
    struct weft_session session = {0};
    struct weft_error err = {0};
    enum weft_status status = weft_config_parse(config_text, sizeof config_text - 1, "run.json",
                                                "/", overrides, n, &session.config, &err);
    cr_assert_eq(status, WEFT_OK, "%s", err.text);
    status = weft_session_stage(&session, NULL, &err);
    cr_assert_eq(status, WEFT_OK, "%s", err.text);
    return session;
}

static struct weft_session open_session(const char *override)
{
    return open_overridden(&override, override != NULL);
}

/* A session without a solver proves its plan, and another session accepts it. */
Test(session, plans_by_ascent_and_takes_its_own_plan)
{
    struct weft_session session = open_session(NULL), other = open_session(NULL);
    struct weft_error err = {0};
    struct weft_text text, again;
    weft_text_init(&text);
    weft_text_init(&again);
    cr_assert_eq(weft_session_plan(&session, NULL, &err), WEFT_OK, "%s", err.text);
    cr_assert_gt(session.plan->bound_ns, 0);
    cr_assert_leq(session.plan->bound_ns, session.plan->prediction.step_ns);
    weft_plan_write(session.plan, &text);
    cr_assert_eq(weft_session_take(&other, weft_text_chars(&text), text.length, "plan.json", &err),
                 WEFT_OK, "%s", err.text);
    weft_plan_write(other.plan, &again);
    cr_assert_str_eq(weft_text_chars(&again), weft_text_chars(&text));
    cr_assert_eq(other.program->arena_bytes, session.program->arena_bytes);
    weft_text_finish(&text);
    weft_text_finish(&again);
    weft_session_close(&session);
    weft_session_close(&other);
}

/* Opens a session of a GPU in bf16. The config has no page size, so plans need no device here. */
static struct weft_session open_gpu(const char *compute, bool plain)
{
    const char *overrides[] = {"cluster.device.type=cuda", compute,
                               "cluster.device.flops={\"f32\":\"50G\",\"bf16\":\"90G\"}"};
    struct weft_session session = open_overridden(overrides, 3);
    struct weft_error err = {0};
    cr_assert_eq(weft_config_set_plain(session.config, plain, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_session_stage(&session, NULL, &err), WEFT_OK, "%s", err.text);
    return session;
}

/* Makes a plan, gives it to a session with plain products or with others, and returns the error's
 * text if it is refused, otherwise NULL. */
static const char *take_of_other(const char *compute, bool made_plain, bool runs_plain,
                                 struct weft_error *err)
{
    struct weft_session made = open_gpu(compute, made_plain), runs = open_gpu(compute, runs_plain);
    struct weft_text text, again;
    weft_text_init(&text);
    weft_text_init(&again);
    cr_assert_eq(weft_session_plan(&made, "greedy", err), WEFT_OK, "%s", err->text);
    weft_plan_write(made.plan, &text);
    const enum weft_status status =
        weft_session_take(&runs, weft_text_chars(&text), text.length, "plan.json", err);
    if (status == WEFT_OK) {
        weft_plan_write(runs.plan, &again);
        cr_assert_str_eq(weft_text_chars(&again), weft_text_chars(&text));
    }
    weft_text_finish(&text);
    weft_text_finish(&again);
    weft_session_close(&made);
    weft_session_close(&runs);
    return status == WEFT_OK ? NULL : err->text;
}

/* Attention of bf16 saves statistics on tensor cores, and f32 probabilities with any products. */
Test(session, refuses_only_a_plan_without_room_for_probabilities)
{
    static const char bf16[] = "train.precision={\"compute\":\"bf16\"}";
    static const char f32[] = "train.precision={\"compute\":\"f32\"}";
    struct weft_error err = {0};
    cr_expect_eq(take_of_other(bf16, false, false, &err), NULL);
    cr_expect_eq(take_of_other(bf16, true, true, &err), NULL);
    cr_expect_eq(take_of_other(bf16, true, false, &err), NULL);
    cr_expect_eq(take_of_other(f32, false, true, &err), NULL);
    const char *refused = take_of_other(bf16, false, true, &err);
    cr_assert_not_null(refused);
    cr_expect(strstr(refused, "plan.json: was made for attention on tensor cores") != NULL &&
                  strstr(refused, "WEFT_GEMM=plain weft plan run.json -o plan.json") != NULL,
              "%s", refused);
}

/* Accepts a plan at its need for one tier as limit, and refuses it at a page less. */
static void takes_within(const char *tier, const char *state, const char *limit)
{
    struct weft_error err = {0};
    char exact[64];
    const char *overrides[] = {tier, state, "plan.offload.activations=[\"device\"]", exact};
    struct weft_session session = open_overridden(overrides, 3);
    cr_assert_eq(weft_session_plan(&session, "greedy", &err), WEFT_OK, "%s", err.text);
    struct weft_problem_tier *second = &session.stages.problem->tiers[1];
    const int64_t held = weft_plan_peak(session.plan, 1, NULL);
    for (int64_t less = 0; less <= 4096; less += 4096) {
        struct weft_text text;
        second->limit_bytes = held - less;
        snprintf(exact, sizeof exact, "%s=%lldB", limit, (long long)(held - less));
        struct weft_session other = open_overridden(overrides, 4);
        weft_text_init(&text);
        weft_plan_write(session.plan, &text);
        enum weft_status status =
            weft_session_take(&other, weft_text_chars(&text), text.length, "plan.json", &err);
        cr_assert_eq(status, less == 0 ? WEFT_OK : WEFT_E_DATA, "%s", err.text);
        cr_assert(less == 0 || (strstr(err.text, "plan.json: slot ") != NULL &&
                                strstr(err.text, second->name) != NULL),
                  "%s", err.text);
        weft_text_finish(&text);
        weft_session_close(&other);
    }
    weft_session_close(&session);
}

Test(session, takes_no_plan_above_the_limit_of_a_tier)
{
    takes_within("cluster.host={\"memory_limit\":\"1GB\",\"down\":{\"bandwidth\":\"1GB/s\"},"
                 "\"up\":{\"bandwidth\":\"1GB/s\"},\"update\":\"1GB/s\"}",
                 "plan.offload.state=[\"host\"]", "cluster.host.memory_limit");
    takes_within("cluster.disk={\"path\":\"/tmp\",\"limit\":\"1GB\",\"read\":{\"bandwidth\":"
                 "\"1GB/s\"},\"write\":{\"bandwidth\":\"1GB/s\"}}",
                 "plan.offload.state=[\"disk\"]", "cluster.disk.limit");
}

/* The plan also proves a bound for each other period that the config allows. */
Test(session, proves_the_other_periods_too)
{
    struct weft_session session = open_session("train.clip_norm=0");
    struct weft_session other = open_session("train.clip_norm=0");
    struct weft_variant variants[WEFT_MOST_VARIANTS];
    struct weft_error err = {0};
    struct weft_text text, again;
    weft_text_init(&text);
    weft_text_init(&again);
    cr_assert_eq(weft_session_plan(&session, NULL, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(session.plan->n_others + 1, weft_variants_list(session.config, variants));
    cr_assert_gt(session.plan->n_others, 0);
    cr_assert_eq(weft_plan_check_bounds(session.plan, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_session_check_others(&session, "its file", &err), WEFT_OK, "%s", err.text);
    int64_t least_ns = weft_plan_least_bound_ns(session.plan);
    cr_assert(least_ns > 0 && least_ns <= session.plan->bound_ns);
    weft_plan_write(session.plan, &text);
    cr_assert_eq(weft_session_take(&other, weft_text_chars(&text), text.length, "plan.json", &err),
                 WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_session_check_others(&other, "its file", &err), WEFT_OK, "%s", err.text);
    weft_plan_write(other.plan, &again);
    cr_assert_str_eq(weft_text_chars(&again), weft_text_chars(&text));
    other.plan->others[0].bound_ns *= 2;
    cr_assert_eq(weft_session_check_others(&other, "its file", &err), WEFT_E_DATA);
    cr_assert(strstr(err.text, "its file: other_periods[0]: the plan claims") != NULL, "%s",
              err.text);
    other.plan->others[0].bound_ns /= 2;
    other.plan->others[0].problem->period.update_ahead = 3;
    cr_assert_eq(weft_session_check_others(&other, "its file", &err), WEFT_E_DATA);
    weft_text_finish(&text);
    weft_text_finish(&again);
    weft_session_close(&session);
    weft_session_close(&other);
}

/* Opens the config with a host tier over links of a latency, and copies in blocks of a size; NULL:
 * left open. `forced`: all saved activations go to the host, so its links bind. */
static struct weft_session open_host(const char *alpha, bool forced, const char *size)
{
    char host[256];
    snprintf(host, sizeof host,
             "cluster.host={\"memory_limit\":\"1GB\",\"update\":\"1GB/s\",\"down\":{\"bandwidth\":"
             "\"600MB/s\",\"alpha\":\"%s\"},\"up\":{\"bandwidth\":\"600MB/s\",\"alpha\":\"%s\"}}",
             alpha, alpha);
    const char *overrides[] = {
        host,
        forced ? "cluster.memory_limit=1GiB" : "cluster.memory_limit=2800KiB",
        "cluster.page=4KiB",
        size == NULL ? "plan.work_limit=400M" : "plan.work_limit=100M",
        forced ? "plan.offload={\"state\":[\"device\"],\"activations\":[\"host\"]}"
               : "plan.offload={\"update\":[\"device\"]}",
        size};
    return open_overridden(overrides, size == NULL ? 5 : 6);
}

static int64_t planned_step_ns(const char *alpha, bool forced, const char *size)
{
    struct weft_session session = open_host(alpha, forced, size);
    struct weft_error err = {0};
    cr_assert_eq(weft_session_plan(&session, NULL, &err), WEFT_OK, "%s", err.text);
    const int64_t step_ns = session.plan->prediction.step_ns;
    weft_session_close(&session);
    return step_ns;
}

/* The faster way to copy is planned, with work for all periods. The other one is proven too, and
 * only a config that leaves the size open takes both. */
static void copies_at_best(const char *alpha, bool whole)
{
    struct weft_text text;
    struct weft_error err = {0};
    const int64_t blocks_ns = planned_step_ns(alpha, whole, "plan.offload.block_size=64KiB");
    const int64_t whole_ns = planned_step_ns(alpha, whole, "plan.offload.block_size=1GiB");
    struct weft_session session = open_host(alpha, whole, NULL),
                        open = open_host(alpha, whole, NULL),
                        fixed = open_host(alpha, whole, "plan.offload.block_size=64KiB");
    cr_assert(whole ? whole_ns < blocks_ns : blocks_ns < whole_ns, "in blocks %lld ns, whole %lld",
              (long long)blocks_ns, (long long)whole_ns);
    cr_assert_eq(weft_session_plan(&session, NULL, &err), WEFT_OK, "%s", err.text);
    cr_assert_leq((double)session.plan->prediction.step_ns,
                  1.005 * (double)(whole ? whole_ns : blocks_ns));
    weft_text_init(&text);
    weft_plan_write(session.plan, &text);
    const char *bytes = weft_text_chars(&text);
    cr_assert_eq(weft_session_take(&open, bytes, text.length, "plan.json", &err), WEFT_OK, "%s",
                 err.text);
    cr_assert_eq(open.plan->problem->period.whole_copies, whole);
    cr_assert_geq(open.plan->n_others, 1);
    cr_assert_eq(weft_session_check_others(&open, "its file", &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_plan_check_bounds(open.plan, &err), WEFT_OK, "%s", err.text);
    enum weft_status status = weft_session_take(&fixed, bytes, text.length, "plan.json", &err);
    cr_assert_eq(status, whole ? WEFT_E_DATA : WEFT_OK);
    cr_assert(whole || weft_session_check_others(&fixed, "its file", &err) == WEFT_E_DATA);
    weft_text_finish(&text);
    weft_session_close(&session);
    weft_session_close(&open);
    weft_session_close(&fixed);
}

Test(session, copies_in_blocks_if_that_is_faster)
{
    copies_at_best("0s", false);
}

Test(session, copies_whole_if_that_is_faster)
{
    copies_at_best("7us", true);
}

/* A draft is the same plan of a rule in the same period, without any proof. */
Test(session, drafts_without_a_proof)
{
    for (int one_period = 0; one_period < 2; one_period++) {
        struct weft_session session = open_session(one_period ? NULL : "train.clip_norm=0");
        struct weft_error err = {0};
        cr_assert_eq(weft_session_plan(&session, "all-fsdp", &err), WEFT_OK, "%s", err.text);
        int64_t step_ns = session.plan->prediction.step_ns;
        int64_t total_bytes = session.plan->prediction.total_bytes;
        int64_t ahead = session.plan->problem->period.update_ahead;
        cr_assert_gt(session.plan->bound_ns, 0);
        session.draft = true;
        cr_assert_eq(weft_session_plan(&session, "all-fsdp", &err), WEFT_OK, "%s", err.text);
        cr_assert_eq(session.plan->prediction.step_ns, step_ns);
        cr_assert_eq(session.plan->prediction.total_bytes, total_bytes);
        cr_assert_eq(session.plan->problem->period.update_ahead, ahead);
        cr_assert_eq(session.plan->bound_ns, 0);
        cr_assert_eq(session.plan->certificate.n_nodes, 0);
        cr_assert_eq(session.plan->n_others, 0);
        weft_session_close(&session);
    }
}

Test(session, refuses_another_configs_plan)
{
    struct weft_session session = open_session(NULL), other = open_session("train.micro_batch=4");
    struct weft_error err = {0};
    struct weft_text text;
    weft_text_init(&text);
    cr_assert_eq(weft_session_plan(&session, "all-fsdp", &err), WEFT_OK, "%s", err.text);
    weft_plan_write(session.plan, &text);
    cr_assert_eq(weft_session_take(&other, weft_text_chars(&text), text.length, "plan.json", &err),
                 WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "plan"), "%s", err.text);
    cr_assert_null(other.program);
    weft_text_finish(&text);
    weft_session_close(&session);
    weft_session_close(&other);
}

/* Takes a plan made for one limit with a config that has another: `given` by an override, or in
 * the file. */
static enum weft_status take_other_limit(const char *planned, const char *override, bool given,
                                         int64_t *limit_bytes, struct weft_error *err)
{
    struct weft_session session = open_session(planned), other = open_session(override);
    struct weft_text text;
    weft_text_init(&text);
    cr_assert_eq(weft_session_plan(&session, "all-fsdp", err), WEFT_OK, "%s", err->text);
    weft_plan_write(session.plan, &text);
    other.config->limit_given = given;
    enum weft_status status =
        weft_session_take(&other, weft_text_chars(&text), text.length, "plan.json", err);
    *limit_bytes = other.config->cluster.memory_limit_bytes;
    if (status == WEFT_OK) {
        cr_assert_eq(other.stages.problem->tiers[0].limit_bytes,
                     session.stages.problem->tiers[0].limit_bytes);
        cr_assert(weft_hash_equal(other.config->hash, session.config->hash));
        cr_assert_not_null(other.program);
    }
    weft_text_finish(&text);
    weft_session_close(&session);
    weft_session_close(&other);
    return status;
}

Test(session, a_plans_limit_counts_where_no_flag_contradicts)
{
    static const char gib[] = "cluster.memory_limit=1GiB", odd[] = "cluster.memory_limit=1500001B";
    struct weft_error err = {0};
    int64_t bytes = 0;
    cr_assert_eq(take_other_limit(gib, "cluster.memory_limit=2GiB", false, &bytes, &err), WEFT_OK,
                 "%s", err.text);
    cr_assert_eq(bytes, INT64_C(1) << 30);
    cr_assert_eq(take_other_limit(gib, NULL, false, &bytes, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(bytes, INT64_C(1) << 30);
    cr_assert_eq(take_other_limit(NULL, gib, false, &bytes, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(bytes, 0);
    cr_assert_eq(take_other_limit(gib, gib, true, &bytes, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(take_other_limit(gib, odd, true, &bytes, &err), WEFT_E_DATA);
    cr_assert_eq(bytes, 1500001, "a limit that was given is kept");
    cr_assert_str_eq(err.text,
                     "plan.json: was made for a memory limit of 1GiB, and 1500001B (1.43 MiB) was "
                     "given: leave the flag out or give --memory-limit 1GiB, or plan again (weft "
                     "plan run.json --memory-limit 1500001B -o plan.json)");
    err = (struct weft_error){0};
    cr_assert_eq(take_other_limit(NULL, gib, true, &bytes, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "limit of none, and 1GiB was given: leave the flag out, or "
                                        "plan again"),
                       "%s", err.text);
}

Test(session, drops_a_plan_for_another)
{
    struct weft_session session = open_session(NULL);
    struct weft_error err = {0};
    cr_assert_eq(weft_session_plan(&session, "all-fsdp", &err), WEFT_OK, "%s", err.text);
    int64_t least_bytes = session.plan->prediction.total_bytes;
    cr_assert_eq(weft_session_plan(&session, "all-dp", &err), WEFT_OK, "%s", err.text);
    cr_assert_gt(session.plan->prediction.total_bytes, least_bytes);
    weft_session_drop_plan(&session);
    cr_assert_null(session.plan);
    cr_assert_null(session.program);
    weft_session_close(&session);
}

/* The figures that a watch showed last. */
static struct {
    int64_t part, parts, best_ns, n_parts;
} shown_state;

static void note_shown(struct weft_watch *watch)
{
    if (watch->what == NULL) return;
    cr_assert_str_eq(watch->what, "plan");
    if (watch->parts == 0) return;
    cr_assert_str_eq(watch->part_noun, "period");
    cr_assert_geq(watch->part, shown_state.part, "periods go forward");
    if (watch->part > shown_state.part) shown_state.best_ns = 0;
    shown_state.n_parts += watch->part > shown_state.part || shown_state.parts == 0;
    if (shown_state.best_ns > 0 && watch->best_ns > 0)
        cr_assert_leq(watch->best_ns, shown_state.best_ns, "the best gets no worse in a period");
    shown_state.part = watch->part;
    shown_state.parts = watch->parts;
    if (watch->best_ns > 0) shown_state.best_ns = watch->best_ns;
}

static int64_t no_time(void)
{
    return 1;
}

Test(session, progress_says_which_period_is_planned)
{
    struct weft_watch watch = {.look = note_shown, .now_ns = no_time};
    struct weft_session session = open_session("train.clip_norm=0");
    struct weft_error err = {0};
    session.watch = &watch;
    cr_assert_eq(weft_session_plan(&session, NULL, &err), WEFT_OK, "%s", err.text);
    cr_assert_gt(shown_state.parts, 1);
    cr_assert_eq(shown_state.n_parts, shown_state.parts);
    cr_assert(watch.parts == 0 && watch.what == NULL, "all are over");
    session.watch = NULL;
    weft_session_close(&session);
}
