#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/job/job.h"
#include "cli/process/load.h"
#include "cli/process/solver.h"
#include "cli/terminal.h"
#include "library/session.h"
#include "report/plan_report.h"
#include "report/table.h"

/* A byte-level GPT small enough that 2 ranks on 2 cores finish within a minute. */
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
    "  \"cluster\": { \"ranks\": 2, \"emulate\": true,\n"
    "    \"link\": { \"intra\": { \"alpha\": \"30us\", \"bandwidth\": \"300MB/s\" } } },\n"
    "  \"train\": { \"steps\": 20, \"micro_batch\": 4, \"seq_len\": 128, \"seed\": 42,\n"
    "    \"data\": \"/usr/share/common-licenses/GPL-3\",\n"
    "    \"optimizer\": { \"type\": \"adamw\", \"lr\": 1e-3 }, \"clip_norm\": 1.0,\n"
    "    \"lr_schedule\": { \"type\": \"cosine\", \"warmup_steps\": 4 } },\n"
    /* Without this, zero1 for all units would fit the limit of 2 ranks, and be the whole plan. */
    "  \"plan\": { \"planner\": \"ilp\", \"work_limit\": \"5G\","
    " \"policies\": \"dp,sdp,fsdp\" } }\n";

static const char *const planners[] = {"ilp", "all-fsdp", "all-sdp"};
enum { ILP, ALL_FSDP, ALL_SDP, N_PLANNERS };

struct demo {
    const struct weft_cli *cli;
    struct weft_profile *profile;
    int64_t limit_bytes;
    struct {
        struct weft_prediction predicted;
        struct weft_train_result measured;
        bool fits;
        int32_t policies_used;
    } runs[N_PLANNERS];
    double bound_gap;
    struct weft_load load; /* during all measurements */
};

static enum weft_status open_session(const struct demo *demo, int64_t limit_bytes,
                                     struct weft_session *session, struct weft_error *err)
{
    const struct weft_cli *cli = demo->cli;
    const char *overrides[WEFT_CLI_OVERRIDES + 1];
    char limit[64];
    int32_t n = 0;
    for (; n < cli->n_overrides; n++)
        overrides[n] = cli->overrides[n];
    snprintf(limit, sizeof limit, "cluster.memory_limit=%lldB", (long long)limit_bytes);
    if (limit_bytes > 0) overrides[n++] = limit;
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
    enum weft_status status = open_session(demo, 0, &session, err);
    weft_load_read(&before);
    if (status == WEFT_OK)
        status = weft_job_profile(session.config, false, demo->cli->watch, &demo->profile, err);
    weft_load_spend(&before, &demo->load);
    weft_session_close(&session);
    return status;
}

/* Sets the limit halfway between the needs of all-fsdp and all-sdp, so that neither is the
 * answer. */
static enum weft_status choose_limit(struct demo *demo, struct weft_error *err)
{
    struct weft_session session = {0};
    int64_t needs[2] = {0};
    enum weft_status status = open_session(demo, 0, &session, err);
    for (int i = 0; status == WEFT_OK && i < 2; i++) {
        status = weft_session_plan(&session, planners[i + ALL_FSDP], err);
        if (status == WEFT_OK) needs[i] = session.plan->prediction.total_bytes;
    }
    weft_session_close(&session);
    demo->limit_bytes = (needs[0] + needs[1]) / 2;
    return status;
}

static int32_t count_policies(const struct weft_plan *plan)
{
    uint32_t seen = 0;
    int32_t count = 0;
    for (int32_t u = 0; u < plan->problem->n_decisions; u++) {
        uint32_t bit = 1u << weft_plan_chosen(plan, u)->policy;
        count += (seen & bit) == 0;
        seen |= bit;
    }
    return count;
}

static enum weft_status run_planner(struct demo *demo, int which, struct weft_error *err)
{
    struct weft_session session = {0};
    struct weft_load before;
    struct weft_text result;
    weft_text_init(&result);
    /* all-sdp exceeds the limit by construction. It runs without the limit, for comparison. */
    int64_t limit_bytes = which == ALL_SDP ? 0 : demo->limit_bytes;
    enum weft_status status = open_session(demo, limit_bytes, &session, err);
    if (status == WEFT_OK) status = weft_session_plan(&session, planners[which], err);
    if (status == WEFT_OK) {
        demo->runs[which].predicted = session.plan->prediction;
        demo->runs[which].policies_used = count_policies(session.plan);
        if (which == ILP) {
            struct weft_text text;
            demo->bound_gap = weft_plan_gap(session.plan);
            weft_text_init(&text);
            weft_report_policies(session.plan, &text);
            weft_log(WEFT_LOG_INFO, "ilp: %s", weft_text_chars(&text));
            weft_text_finish(&text);
        }
        struct weft_job job = {.kind = WEFT_JOB_TRAIN,
                               .config = session.config,
                               .profile = session.profile,
                               .plan = session.plan,
                               .watch = demo->cli->watch};
        weft_log(WEFT_LOG_INFO, "training %lld steps under %s",
                 (long long)session.config->train.steps, planners[which]);
        weft_load_read(&before);
        status = weft_job_run(&job, &result, err);
        weft_load_spend(&before, &demo->load);
    }
    if (status == WEFT_OK) status = weft_job_read_result(&result, &demo->runs[which].measured, err);
    if (status == WEFT_OK && demo->runs[which].measured.stopped)
        status =
            weft_fail(err, WEFT_E_STOPPED, "demo: stopped by a signal under %s", planners[which]);
    demo->runs[which].fits =
        demo->runs[which].predicted.total_bytes <= demo->limit_bytes &&
        demo->runs[which].measured.tiers[WEFT_HOME_DEVICE].measured_bytes <= demo->limit_bytes;
    weft_text_finish(&result);
    weft_session_close(&session);
    return status;
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

enum measure {
    STEP_PREDICTED,
    STEP_MEASURED,
    STEP_ERROR,
    EXPOSED_PREDICTED,
    EXPOSED_MEASURED,
    MEMORY_PLANNED,
    MEMORY_MEASURED,
    FITS,
    LAST_LOSS,
    N_MEASURES
};

static void add_measure(const struct demo *demo, int which, enum measure measure,
                        struct weft_table *table)
{
    const struct weft_prediction *p = &demo->runs[which].predicted;
    const struct weft_train_result *m = &demo->runs[which].measured;
    const int64_t ns[N_MEASURES] = {[STEP_PREDICTED] = p->step_ns,
                                    [STEP_MEASURED] = m->step_ns,
                                    [EXPOSED_PREDICTED] = p->exposed_ns,
                                    [EXPOSED_MEASURED] = m->exposed_ns};
    bool fits = demo->runs[which].fits;
    char shown[WEFT_UNITS_TEXT_BYTES];
    if (measure == STEP_ERROR)
        weft_table_cell(table, "%+.1f %%",
                        100.0 * (double)(m->step_ns - p->step_ns) / (double)p->step_ns);
    else if (measure == MEMORY_PLANNED || measure == MEMORY_MEASURED)
        weft_table_cell(table, "%s",
                        weft_units_show_bytes(measure == MEMORY_PLANNED
                                                  ? p->total_bytes
                                                  : m->tiers[WEFT_HOME_DEVICE].measured_bytes,
                                              shown));
    else if (measure == FITS)
        weft_table_cell_painted(table, fits ? WEFT_PAINT_GOOD : WEFT_PAINT_BAD,
                                fits ? "yes" : "no");
    else if (measure == LAST_LOSS)
        weft_table_cell(table, "%.6f", m->last_loss);
    else
        weft_table_cell(table, "%s", weft_units_show_ns(ns[measure], shown));
}

static void show_text(const struct demo *demo, struct weft_text *out)
{
    static const char *const names[N_MEASURES] = {
        "step, predicted", "step, measured",   "error", "exposed, predicted", "exposed, measured",
        "memory, planned", "memory, measured", "fits",  "last loss"};
    char limit[WEFT_UNITS_TEXT_BYTES], hash[WEFT_HASH_TEXT_BYTES];
    struct weft_table table;
    weft_text_addf(out,
                   "2 ranks, emulated link; limit %s a rank, halfway between all-fsdp and "
                   "all-sdp\n",
                   weft_units_show_bytes(demo->limit_bytes, limit));
    weft_table_init(&table, "lrrr");
    weft_table_cell(&table, "emulated link");
    for (int i = 0; i < N_PLANNERS; i++)
        weft_table_cell(&table, "%s", planners[i]);
    for (int measure = 0; measure < N_MEASURES; measure++) {
        weft_table_cell(&table, "%s", names[measure]);
        for (int i = 0; i < N_PLANNERS; i++)
            add_measure(demo, i, (enum measure)measure, &table);
    }
    weft_table_render(&table, 2, out);
    weft_table_finish(&table);
    weft_text_addf(out, "losses and parameters: %s (%s)\n",
                   same_bits(demo) ? "the same bits under all three" : "DIFFERENT",
                   weft_hash_show(demo->runs[ILP].measured.fingerprint, hash));
    weft_text_addf(out, "ilp: at most %.3f %% above the proven bound\n", 100.0 * demo->bound_gap);
    weft_load_add(&demo->load, out);
}

static void show_json(const struct demo *demo, struct weft_text *out)
{
    struct weft_json_writer writer;
    weft_json_writer_init(&writer, out, 2);
    weft_json_begin_object(&writer);
    weft_json_put_integer(&writer, "memory_limit_bytes", demo->limit_bytes);
    weft_json_put_bool(&writer, "emulated", demo->runs[ILP].measured.emulated);
    weft_json_put_bool(&writer, "same_bits", same_bits(demo));
    weft_json_put_number(&writer, "gap", demo->bound_gap);
    weft_json_put_number(&writer, "cores_of_others", weft_load_of_others(&demo->load));
    weft_json_put_number(&writer, "cores_stolen", weft_load_stolen(&demo->load));
    weft_json_key(&writer, "runs");
    weft_json_begin_array(&writer);
    for (int i = 0; i < N_PLANNERS; i++) {
        const struct weft_prediction *p = &demo->runs[i].predicted;
        const struct weft_train_result *m = &demo->runs[i].measured;
        weft_json_begin_object(&writer);
        weft_json_put_string(&writer, "planner", planners[i]);
        weft_json_put_integer(&writer, "predicted_step_ns", p->step_ns);
        weft_json_put_integer(&writer, "measured_step_ns", m->step_ns);
        weft_json_put_integer(&writer, "predicted_exposed_ns", p->exposed_ns);
        weft_json_put_integer(&writer, "measured_exposed_ns", m->exposed_ns);
        weft_json_put_integer(&writer, "planned_bytes", p->total_bytes);
        weft_json_put_integer(&writer, "measured_bytes", m->tiers[WEFT_HOME_DEVICE].measured_bytes);
        weft_json_put_bool(&writer, "fits", demo->runs[i].fits);
        weft_json_put_number(&writer, "last_loss", m->last_loss);
        weft_json_end_object(&writer);
    }
    weft_json_end_array(&writer);
    weft_json_end_object(&writer);
    weft_text_add(out, "\n");
}

static enum weft_status judge_runs(const struct demo *demo, struct weft_error *err)
{
    const struct weft_train_result *ilp = &demo->runs[ILP].measured;
    if (!same_bits(demo))
        return weft_fail(err, WEFT_E_ENVIRONMENT,
                         "demo: the planners' runs ended in different bits");
    if (!demo->runs[ILP].fits || !demo->runs[ALL_FSDP].fits)
        return weft_fail(err, WEFT_E_ENVIRONMENT, "demo: a plan did not stay within the limit");
    if (demo->runs[ALL_SDP].fits)
        return weft_fail(err, WEFT_E_ENVIRONMENT,
                         "demo: all-sdp fits, so the limit forced nothing");
    if (demo->runs[ILP].policies_used < 2)
        return weft_fail(err, WEFT_E_ENVIRONMENT, "demo: the plan does not mix policies");
    if (!(ilp->last_loss < ilp->first_loss))
        return weft_fail(err, WEFT_E_ENVIRONMENT, "demo: the loss did not fall (%.4f to %.4f)",
                         ilp->first_loss, ilp->last_loss);
    return WEFT_OK;
}

static enum weft_status run_demo(const struct weft_cli *cli, struct weft_error *err)
{
    struct demo demo = {.cli = cli};
    struct weft_text out;
    weft_log(WEFT_LOG_INFO, "measuring this machine");
    enum weft_status status = measure_machine(&demo, err);
    if (status == WEFT_OK) status = choose_limit(&demo, err);
    for (int i = 0; status == WEFT_OK && i < N_PLANNERS; i++)
        status = run_planner(&demo, i, err);
    weft_cli_report_init(cli, cli->output, &out);
    if (status == WEFT_OK) {
        if (cli->json)
            show_json(&demo, &out);
        else
            show_text(&demo, &out);
        status = weft_cli_emit(cli, &out, err);
    }
    if (status == WEFT_OK) status = judge_runs(&demo, err);
    weft_text_finish(&out);
    weft_profile_destroy(demo.profile);
    return status;
}

const struct weft_command weft_command_demo = {
    .name = "demo",
    .usage = "",
    .summary = "plans and trains a small model here; predicted against measured",
    .details =
        "Measures this machine, plans a byte-level GPT under a limit halfway between what "
        "all-fsdp\n"
        "and all-sdp need, trains it on a licence text with 2 ranks over an emulated link under "
        "the\n"
        "ilp plan, all-fsdp and all-sdp, and prints for each what was predicted and what was\n"
        "measured, and what other programs used meanwhile. Exit 1 when bits differ, a plan does\n"
        "not fit, or policies are not mixed.",
    .flags = "--set",
    .starts_ranks = true,
    .run = run_demo,
};
