/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/job/job.h"
#include "cli/process/solver.h"
#include "library/metrics/load.h"
#include "library/session.h"
#include "report/answer.h"
#include "scheduler/digest/digest.h"

/* A byte-level GPT with more saved activations than state, so small that 2 ranks on 2 cores finish
 * in a minute. */
static const char demo_config[] =
    "{ \"version\": 1,\n"
    "  \"model\": { \"layers\": [\n"
    "    { \"name\": \"wte\", \"type\": \"embedding\", \"vocab\": 256, \"positions\": 128,"
    " \"hidden\": 256 },\n"
    "    { \"name\": \"h.{i}\", \"type\": \"transformer_block\", \"repeat\": 8, \"hidden\": 256,"
    " \"heads\": 4, \"ffn\": 1024 },\n"
    "    { \"name\": \"ln_f\", \"type\": \"layer_norm\", \"hidden\": 256 },\n"
    "    { \"name\": \"head\", \"type\": \"lm_head\", \"vocab\": 256, \"hidden\": 256,"
    " \"bias\": false } ] },\n"
    "  \"cluster\": { \"ranks\": 2 },\n"
    "  \"train\": { \"steps\": 3, \"micro_batch\": 8, \"seq_len\": 128, \"seed\": 42,\n"
    "    \"data\": \"/usr/share/common-licenses/GPL-3\",\n"
    "    \"optimizer\": { \"type\": \"adamw\", \"lr\": 1e-3 }, \"clip_norm\": 1.0,\n"
    "    \"lr_schedule\": { \"type\": \"cosine\", \"warmup_steps\": 2 } },\n"
    "  \"plan\": { \"planner\": \"ilp\", \"work_limit\": \"5G\", \"recompute\": \"auto\" } }\n";

/* A Debian system has the licence. Other systems train on the program's bytes. */
static const char licence[] = "/usr/share/common-licenses/GPL-3";
static const char own_bytes[] = "train.data={\"path\": \"/proc/self/exe\", \"format\": \"bytes\"}";

/* The joint plan, and the usual answer to a limit that nothing else fits. */
static const char *const planners[] = {"ilp", "recompute-all"};
enum { ILP, RIVAL, N_PLANNERS, LEAST_ROUNDS = 3, MOST_ROUNDS = 5, LIMIT_STEPS = 8 };

/* The link's gathers of all parameters take this much of a step's compute. */
static const double LINK_SHARE = 1.3;
static const int64_t LINK_ALPHA_NS = 30000;

struct demo {
    const struct weft_cli *cli;
    struct weft_profile *profile;
    double link_bytes_per_s; /* 0: the machine's own link */
    int64_t limit_bytes,
        without_bytes; /* without: the least limit of plans that recompute nothing */
    int32_t rounds;
    struct {
        struct weft_text plan;
        struct weft_prediction predicted;
        struct weft_train_result measured; /* of the last round */
        int64_t step_ns[MOST_ROUNDS];
        int32_t recomputed; /* layers */
        bool fits;
    } runs[N_PLANNERS];
    double bound_gap;
    struct weft_load load; /* during all measurements */
};

static enum weft_status open_session(const struct demo *demo, int64_t limit_bytes,
                                     struct weft_session *session, struct weft_error *err)
{
    const struct weft_cli *cli = demo->cli;
    const char *overrides[WEFT_CLI_OVERRIDES + 4];
    char limit[64], link[128];
    int32_t n = 0;
    if (access(licence, R_OK) != 0) overrides[n++] = own_bytes;
    for (int32_t i = 0; i < cli->n_overrides; i++)
        overrides[n++] = cli->overrides[i];
    snprintf(limit, sizeof limit, "cluster.memory_limit=%lldB", (long long)limit_bytes);
    if (limit_bytes > 0) overrides[n++] = limit;
    snprintf(link, sizeof link,
             "cluster.link={\"intra\": {\"alpha\": \"%lldns\", \"bandwidth\": \"%.0fB/s\"}}",
             (long long)LINK_ALPHA_NS, demo->link_bytes_per_s);
    if (demo->link_bytes_per_s > 0) overrides[n++] = link;
    if (demo->link_bytes_per_s > 0) overrides[n++] = "cluster.emulate=true";
    session->solver = weft_solver_of_process(cli->solver);
    session->watch = cli->watch;
    WEFT_TRY(weft_config_parse(demo_config, sizeof demo_config - 1, "demo", "/", overrides, n,
                               &session->config, err));
    if (!demo->profile) return WEFT_OK;
    struct weft_text text;
    struct weft_profile *copy = NULL;
    weft_text_init(&text);
    weft_profile_write(demo->profile, &text);
    enum weft_status status =
        weft_profile_parse(weft_text_chars(&text), text.length, "demo profile", &copy, err);
    weft_text_finish(&text);
    WEFT_TRY(status);
    return weft_session_stage(session, copy, err);
}

static enum weft_status measure_machine(struct demo *demo, struct weft_error *err)
{
    struct weft_session session = {0};
    struct weft_load before;
    struct weft_profile *profile = NULL;
    weft_load_read(&before);
    weft_profile_destroy(demo->profile);
    demo->profile = NULL;
    enum weft_status status = open_session(demo, 0, &session, err);
    if (status == WEFT_OK)
        status = weft_job_profile(session.config, false, demo->cli->watch, &profile, err);
    weft_load_spend(&before, &demo->load);
    weft_session_close(&session);
    demo->profile = profile;
    return status;
}

/* Chooses a link that is slow for this machine: gathers of all parameters, twice a step, take
 * LINK_SHARE of its compute. */
static enum weft_status choose_link(struct demo *demo, struct weft_error *err)
{
    struct weft_session session = {0};
    int64_t compute_ns = 0;
    enum weft_status status = open_session(demo, 0, &session, err);
    if (status == WEFT_OK) {
        const struct weft_problem *problem = session.stages.problem;
        const double sent = 2 * (double)session.config->model->parameters * sizeof(float) *
                            (double)(problem->ranks - 1) / (double)problem->ranks;
        for (int32_t s = 0; s < problem->n_slots; s++)
            if (problem->slots[s].kind == WEFT_SLOT_FORWARD ||
                problem->slots[s].kind == WEFT_SLOT_BACKWARD)
                compute_ns += problem->slot_ns[s];
        demo->link_bytes_per_s = sent * 1e9 / (LINK_SHARE * (double)compute_ns + 1);
    }
    weft_session_close(&session);
    return status;
}

/* Makes one planner's plan within the limit. WEFT_E_INFEASIBLE. */
static enum weft_status make_plan(struct demo *demo, int which, struct weft_error *err)
{
    struct weft_session session = {0};
    enum weft_status status = open_session(demo, demo->limit_bytes, &session, err);
    if (status == WEFT_OK) status = weft_session_plan(&session, planners[which], err);
    if (status == WEFT_OK) {
        const struct weft_plan *plan = session.plan;
        demo->runs[which].predicted = plan->prediction;
        demo->runs[which].recomputed = 0;
        for (int32_t d = 0; d < plan->problem->n_decisions; d++)
            demo->runs[which].recomputed +=
                weft_plan_chosen(plan, d)->recompute != WEFT_RECOMPUTE_NONE;
        if (which == ILP) demo->bound_gap = weft_plan_claimed_gap(plan);
        weft_plan_write(plan, &demo->runs[which].plan);
        if (!weft_text_ok(&demo->runs[which].plan)) status = weft_fail_memory(err, "a plan");
    }
    weft_session_close(&session);
    return status;
}

/* The least limit of plans at a level of recomputation. */
static enum weft_status find_least(const struct demo *demo, bool recomputes, int64_t *out,
                                   struct weft_error *err)
{
    struct weft_session session = {0};
    enum weft_status status = open_session(demo, 0, &session, err);
    if (status == WEFT_OK && !recomputes) {
        const struct weft_variant variant = session.stages.variant;
        session.config->recomputes = NULL;
        status = weft_session_stage_variant(&session, &variant, err);
    }
    if (status == WEFT_OK) *out = weft_least_limit(session.stages.problem, 0, NULL);
    if (status == WEFT_OK && *out < 0) status = weft_fail_memory(err, "the least limit");
    weft_session_close(&session);
    return status;
}

/* Plans both at a limit that only recomputation fits, as low as the rival has a plan. */
static enum weft_status plan_both(struct demo *demo, struct weft_error *err)
{
    int64_t least = 0;
    WEFT_TRY(find_least(demo, true, &least, err));
    WEFT_TRY(find_least(demo, false, &demo->without_bytes, err));
    for (int step = LIMIT_STEPS / 2; step < LIMIT_STEPS; step++) {
        struct weft_error refusal = {0};
        demo->limit_bytes = least + (demo->without_bytes - least) * step / LIMIT_STEPS;
        const enum weft_status status = make_plan(demo, RIVAL, &refusal);
        if (status == WEFT_OK) return make_plan(demo, ILP, err);
        if (status != WEFT_E_INFEASIBLE) return weft_fail(err, status, "%s", refusal.text);
    }
    return weft_fail(err, WEFT_E_INFEASIBLE,
                     "demo: %s has no plan below the least limit without recomputation",
                     planners[RIVAL]);
}

/* Trains a few steps under one plan. */
static enum weft_status run_plan(struct demo *demo, int which, struct weft_error *err)
{
    struct weft_session session = {0};
    struct weft_load before;
    struct weft_text result;
    struct weft_train_result *measured = &demo->runs[which].measured;
    const struct weft_text *plan = &demo->runs[which].plan;
    weft_text_init(&result);
    enum weft_status status = open_session(demo, demo->limit_bytes, &session, err);
    if (status == WEFT_OK)
        status =
            weft_session_take(&session, weft_text_chars(plan), plan->length, planners[which], err);
    if (status == WEFT_OK) {
        const struct weft_job job = {.kind = WEFT_JOB_TRAIN,
                                     .config = session.config,
                                     .profile = session.profile,
                                     .plan = session.plan,
                                     .watch = demo->cli->watch};
        weft_load_read(&before);
        status = weft_job_run(&job, &result, err);
        weft_load_spend(&before, &demo->load);
    }
    if (status == WEFT_OK) status = weft_job_read_result(&result, measured, err);
    if (status == WEFT_OK && measured->stopped)
        status =
            weft_fail(err, WEFT_E_STOPPED, "demo: stopped by a signal under %s", planners[which]);
    demo->runs[which].step_ns[demo->rounds] = measured->step_ns;
    demo->runs[which].fits =
        demo->runs[which].predicted.total_bytes <= demo->limit_bytes &&
        measured->tiers[WEFT_LOCATION_DEVICE].measured_bytes <= demo->limit_bytes;
    weft_text_finish(&result);
    weft_session_close(&session);
    return status;
}

static int compare_numbers(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Gain of the joint plan's tokens/s, the median over rounds: the two runs of a round are next to
 * each other, so a busy machine slows both. */
static double measured_gain(const struct demo *demo)
{
    double gains[MOST_ROUNDS];
    for (int32_t r = 0; r < demo->rounds; r++)
        gains[r] = (double)demo->runs[RIVAL].step_ns[r] / (double)demo->runs[ILP].step_ns[r] - 1;
    qsort(gains, (size_t)demo->rounds, sizeof *gains, compare_numbers);
    return gains[demo->rounds / 2];
}

static double predicted_gain(const struct demo *demo)
{
    return (double)demo->runs[RIVAL].predicted.step_ns / (double)demo->runs[ILP].predicted.step_ns -
           1;
}

/* Runs both in turns, until the gain is seen or the rounds are spent. */
static enum weft_status run_rounds(struct demo *demo, struct weft_error *err)
{
    while (demo->rounds < MOST_ROUNDS) {
        weft_log(WEFT_LOG_INFO, "round %d of at most %d: training %s, then %s", demo->rounds + 1,
                 MOST_ROUNDS, planners[ILP], planners[RIVAL]);
        for (int which = 0; which < N_PLANNERS; which++)
            WEFT_TRY(run_plan(demo, which, err));
        demo->rounds++;
        if (demo->rounds >= LEAST_ROUNDS && measured_gain(demo) > predicted_gain(demo) / 2) break;
    }
    return WEFT_OK;
}

/* Median of the rounds' steps. */
static int64_t measured_step(const struct demo *demo, int which)
{
    double steps[MOST_ROUNDS];
    for (int32_t r = 0; r < demo->rounds; r++)
        steps[r] = (double)demo->runs[which].step_ns[r];
    qsort(steps, (size_t)demo->rounds, sizeof *steps, compare_numbers);
    return (int64_t)steps[demo->rounds / 2];
}

static bool same_bits(const struct demo *demo)
{
    for (int i = 1; i < N_PLANNERS; i++)
        if (!weft_hash_equal(demo->runs[0].measured.fingerprint,
                             demo->runs[i].measured.fingerprint) ||
            memcmp(&demo->runs[0].measured.last_loss, &demo->runs[i].measured.last_loss,
                   sizeof(double)) != 0)
            return false;
    return true;
}

enum { PLANNER, RECOMPUTED, PREDICTED, MEASURED, LAYERS, PREDICTED_EXPOSED, MEASURED_EXPOSED };
enum { PLANNED = MEASURED_EXPOSED + 1, HELD, FITS, LOSS, N_COLUMNS };

static void add_run(const struct demo *demo, int which, struct weft_rows *rows)
{
    const struct weft_prediction *p = &demo->runs[which].predicted;
    const struct weft_train_result *m = &demo->runs[which].measured;
    const bool fits = demo->runs[which].fits;
    weft_rows_begin(rows, NULL);
    weft_rows_word(rows, PLANNER, planners[which]);
    weft_rows_integer(rows, RECOMPUTED, demo->runs[which].recomputed);
    weft_rows_integer(rows, PREDICTED, p->step_ns);
    weft_rows_integer(rows, MEASURED, measured_step(demo, which));
    weft_rows_integer(rows, LAYERS, demo->runs[which].recomputed);
    weft_rows_integer(rows, PREDICTED_EXPOSED, p->exposed_ns);
    weft_rows_integer(rows, MEASURED_EXPOSED, m->exposed_ns);
    weft_rows_integer(rows, PLANNED, p->total_bytes);
    weft_rows_integer(rows, HELD, m->tiers[WEFT_LOCATION_DEVICE].measured_bytes);
    weft_rows_integer(rows, FITS, fits);
    weft_rows_show(rows, FITS, fits ? WEFT_PAINT_GOOD : WEFT_PAINT_BAD, fits ? "yes" : "no");
    weft_rows_real(rows, LOSS, m->last_loss);
    weft_rows_show(rows, LOSS, WEFT_PAINT_NONE, "%.6f", m->last_loss);
}

static void put_facts(const struct demo *demo, struct weft_answer *answer)
{
    weft_answer_integer(answer, "memory_limit_bytes", demo->limit_bytes);
    weft_answer_bool(answer, "emulated", demo->runs[ILP].measured.emulated);
    weft_answer_bool(answer, "same_bits", same_bits(demo));
    weft_answer_real(answer, "gap", demo->bound_gap);
    weft_answer_integer(answer, "least_bytes_without", demo->without_bytes);
    weft_answer_real(answer, "link_bytes_per_s", demo->link_bytes_per_s);
    weft_answer_integer(answer, "rounds", demo->rounds);
    weft_answer_real(answer, "predicted_gain", predicted_gain(demo));
    weft_answer_real(answer, "measured_gain", measured_gain(demo));
    weft_answer_real(answer, "cores_of_others", weft_load_of_others(&demo->load));
    weft_answer_real(answer, "cores_stolen", weft_load_stolen(&demo->load));
}

static void fill_answer(const struct demo *demo, struct weft_answer *answer)
{
    static const struct weft_column columns[N_COLUMNS] = {
        [PLANNER] = {"planner", "planner", 'l', WEFT_FIGURE_WORD, 0},
        [RECOMPUTED] = {NULL, "recomputed", 'r', WEFT_FIGURE_INTEGER, 0},
        [PREDICTED] = {"predicted_step_ns", "predicted", 'r', WEFT_FIGURE_NS, 0},
        [MEASURED] = {"measured_step_ns", "measured", 'r', WEFT_FIGURE_NS, 0},
        [LAYERS] = {"recomputed_layers", NULL, 'r', WEFT_FIGURE_INTEGER, 0},
        [PREDICTED_EXPOSED] = {"predicted_exposed_ns", NULL, 'r', WEFT_FIGURE_NS, 0},
        [MEASURED_EXPOSED] = {"measured_exposed_ns", NULL, 'r', WEFT_FIGURE_NS, 0},
        [PLANNED] = {"planned_bytes", "planned", 'r', WEFT_FIGURE_BYTES, 0},
        [HELD] = {"measured_bytes", "held", 'r', WEFT_FIGURE_BYTES, 0},
        [FITS] = {"fits", "fits", 'r', WEFT_FIGURE_BOOL, 0},
        [LOSS] = {"last_loss", "last loss", 'r', WEFT_FIGURE_REAL, 0}};
    char limit[WEFT_UNITS_TEXT_BYTES], without[WEFT_UNITS_TEXT_BYTES], rate[WEFT_UNITS_TEXT_BYTES],
        hash[WEFT_HASH_TEXT_BYTES];
    struct weft_text load;
    weft_units_show_bytes(demo->limit_bytes, limit);
    weft_units_show_bytes(demo->without_bytes, without);
    put_facts(demo, answer);
    struct weft_rows *rows = weft_answer_table(answer, "runs", columns, N_COLUMNS);
    weft_rows_title(rows, "2 ranks over an emulated link of %s, limit %s a rank",
                    weft_units_show_rate(demo->link_bytes_per_s, rate), limit);
    for (int which = 0; which < N_PLANNERS; which++)
        add_run(demo, which, rows);
    weft_answer_say(answer, NULL, "losses and parameters: %s (%s)\n",
                    same_bits(demo) ? "the same bits under both" : "DIFFERENT",
                    weft_hash_show(demo->runs[ILP].measured.fingerprint, hash));
    weft_answer_say(answer, NULL, "ilp: at most %.3f %% above the proven bound\n",
                    100.0 * demo->bound_gap);
    weft_text_init(&load);
    weft_load_add(&demo->load, &load);
    weft_answer_say(answer, NULL, "%s", weft_text_chars(&load));
    weft_text_finish(&load);
    weft_answer_say(
        answer, NULL,
        "within %s, weft trains %.1f %% faster than with all layers recomputed "
        "(predicted %.1f %%, median of %d rounds in turns); without recomputation nothing "
        "fits below %s\n",
        limit, 100.0 * measured_gain(demo), 100.0 * predicted_gain(demo), demo->rounds, without);
}

static enum weft_status judge_runs(const struct demo *demo, struct weft_error *err)
{
    const struct weft_train_result *ilp = &demo->runs[ILP].measured;
    if (!same_bits(demo))
        return weft_fail(err, WEFT_E_ENVIRONMENT,
                         "demo: the planners' runs ended in different bits");
    if (!demo->runs[ILP].fits || !demo->runs[RIVAL].fits)
        return weft_fail(err, WEFT_E_ENVIRONMENT, "demo: a plan did not stay within the limit");
    if (demo->runs[ILP].predicted.step_ns > demo->runs[RIVAL].predicted.step_ns)
        return weft_fail(err, WEFT_E_ENVIRONMENT, "demo: the plan is slower than %s",
                         planners[RIVAL]);
    if (!(ilp->last_loss < ilp->first_loss))
        return weft_fail(err, WEFT_E_ENVIRONMENT, "demo: the loss did not fall (%.4f to %.4f)",
                         ilp->first_loss, ilp->last_loss);
    if (measured_gain(demo) > 0) return WEFT_OK;
    return weft_fail(err, WEFT_E_ENVIRONMENT,
                     "demo: no gain was seen in %d rounds (%.1f %% predicted): other work disturbs "
                     "the runs, see the load above",
                     demo->rounds, 100.0 * predicted_gain(demo));
}

/* Measures the compute, chooses a link for it, and measures again over that link. */
static enum weft_status prepare_demo(struct demo *demo, struct weft_error *err)
{
    weft_log(WEFT_LOG_INFO, "measuring this machine, alone and over an emulated link");
    WEFT_TRY(measure_machine(demo, err));
    WEFT_TRY(choose_link(demo, err));
    WEFT_TRY(measure_machine(demo, err));
    return plan_both(demo, err);
}

static enum weft_status run_demo(const struct weft_cli *cli, struct weft_error *err)
{
    static struct demo demo;
    struct weft_answer answer = {0};
    demo = (struct demo){.cli = cli};
    for (int i = 0; i < N_PLANNERS; i++)
        weft_text_init(&demo.runs[i].plan);
    enum weft_status status = prepare_demo(&demo, err);
    if (status == WEFT_OK) status = run_rounds(&demo, err);
    if (status == WEFT_OK) {
        fill_answer(&demo, &answer);
        status = weft_cli_emit_answer(cli, &answer, err);
    }
    if (status == WEFT_OK) status = judge_runs(&demo, err);
    weft_answer_finish(&answer);
    for (int i = 0; i < N_PLANNERS; i++)
        weft_text_finish(&demo.runs[i].plan);
    weft_profile_destroy(demo.profile);
    return status;
}

const struct weft_command weft_command_demo = {
    .name = "demo",
    .usage = "",
    .summary = "plans and trains a small model here; predicted against measured",
    .details =
        "Measures this machine, and plans a byte-level GPT under a limit that only recomputation "
        "fits: with the ilp plan, which recomputes as much as it must, and with recompute-all. It "
        "trains both on a licence text with 2 ranks over an emulated link, in turns of at most 5 "
        "rounds, and prints what was predicted, what was measured, and the gain in one sentence. "
        "Exit 1 if bits differ, a plan does not fit, or no gain is seen.",
    .flags = "--set",
    .starts_ranks = true,
    .run = run_demo,
};
