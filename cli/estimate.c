#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "library/session.h"
#include "report/plan_report.h"
#include "report/table.h"
#include "scheduler/schedule.h"

/* The uniform policies, each by the planner that applies it everywhere. */
static const char *const uniform[] = {"all-dp", "all-zero1", "all-sdp", "all-fsdp"};
enum { N_UNIFORM = sizeof uniform / sizeof uniform[0] };

struct estimate {
    struct weft_table table;
    struct weft_json_writer writer;
};

static void add_row(struct estimate *estimate, const char *label, const struct weft_plan *plan)
{
    char shown[4][WEFT_UNITS_TEXT_BYTES];
    const struct weft_prediction *p = &plan->prediction;
    weft_table_cell(&estimate->table, "%s", label);
    weft_table_cell(&estimate->table, "%s", plan->planner);
    weft_table_cell(&estimate->table, "%s", weft_units_show_bytes(p->total_bytes, shown[0]));
    weft_table_cell(&estimate->table, "%s", weft_units_show_ns(p->step_ns, shown[1]));
    weft_table_cell(&estimate->table, "%s", weft_units_show_ns(p->exposed_ns, shown[2]));
    weft_table_cell(&estimate->table, "%s", weft_units_show_ns(p->channel_ns, shown[3]));
}

static enum weft_status estimate_one(const struct weft_cli *cli, const char *label,
                                     struct estimate *estimate, struct weft_text *details,
                                     struct weft_error *err)
{
    struct weft_session session = {0};
    enum weft_status status = weft_cli_read_config(cli, cli->operands[0], &session, err);
    /* What each policy needs is the question, so neither the limit nor the config refuses any. */
    if (status == WEFT_OK) {
        session.config->cluster.memory_limit_bytes = 0;
        session.config->plan.policies = "dp,zero1,sdp,fsdp";
        session.draft = true;
    }
    if (status == WEFT_OK) status = weft_session_stage(&session, NULL, err);
    for (size_t i = 0; status == WEFT_OK && i < N_UNIFORM; i++) {
        status = weft_session_plan(&session, uniform[i], err);
        if (status != WEFT_OK) break;
        add_row(estimate, label, session.plan);
        weft_text_addf(details, "\n%s%s%s\n", label, label[0] ? ", " : "", uniform[i]);
        weft_report_memory(session.plan, session.plan->prediction.peak_slot, details);
        weft_report_plan_json(session.plan, &estimate->writer);
    }
    weft_session_close(&session);
    return status;
}

/* --sweep key=a,b,c: one estimate a value, each as one more override. */
static enum weft_status estimate_sweep(const struct weft_cli *cli, struct estimate *estimate,
                                       struct weft_text *details, struct weft_error *err)
{
    const char *equals = strchr(cli->sweep, '=');
    if (!equals || equals == cli->sweep || !equals[1])
        return weft_fail(err, WEFT_E_USAGE, "--sweep %s: write --sweep path.key=a,b,c", cli->sweep);
    if (cli->n_overrides == WEFT_CLI_OVERRIDES)
        return weft_fail(err, WEFT_E_USAGE, "--sweep: too many overrides");
    for (const char *value = equals + 1;; value++) {
        size_t length = strcspn(value, ",");
        char setting[512];
        int written = snprintf(setting, sizeof setting, "%.*s=%.*s", (int)(equals - cli->sweep),
                               cli->sweep, (int)length, value);
        if (length == 0 || written < 0 || (size_t)written >= sizeof setting)
            return weft_fail(err, WEFT_E_USAGE, "--sweep %s: an empty or over-long value",
                             cli->sweep);
        struct weft_cli one = *cli;
        one.overrides[one.n_overrides++] = setting;
        WEFT_TRY(estimate_one(&one, setting, estimate, details, err));
        value += length;
        if (*value == '\0') return WEFT_OK;
    }
}

static void begin(struct estimate *estimate, struct weft_text *json)
{
    static const char *const head[] = {"",     "planner", "memory a rank",
                                       "step", "exposed", "communication"};
    weft_table_init(&estimate->table, "llrrrr");
    for (size_t i = 0; i < sizeof head / sizeof head[0]; i++)
        weft_table_cell(&estimate->table, "%s", head[i]);
    weft_json_writer_init(&estimate->writer, json, 2);
    weft_json_begin_array(&estimate->writer);
}

static enum weft_status run(const struct weft_cli *cli, struct weft_error *err)
{
    struct estimate estimate;
    struct weft_text out, json, details;
    weft_cli_report_init(cli, cli->output, &out);
    weft_text_init(&json);
    weft_cli_report_init(cli, cli->output, &details);
    begin(&estimate, &json);
    enum weft_status status = cli->sweep ? estimate_sweep(cli, &estimate, &details, err)
                                         : estimate_one(cli, "", &estimate, &details, err);
    if (status == WEFT_OK) {
        weft_json_end_array(&estimate.writer);
        weft_text_add(&json, "\n");
        weft_table_render(&estimate.table, 0, &out);
        weft_text_append(&out, weft_text_chars(&details), details.length);
        status = weft_cli_emit(cli, cli->json ? &json : &out, err);
    }
    weft_table_finish(&estimate.table);
    weft_text_finish(&out);
    weft_text_finish(&json);
    weft_text_finish(&details);
    return status;
}

const struct weft_command weft_command_estimate = {
    .name = "estimate",
    .usage = "CONFIG [--sweep path.key=a,b,c]",
    .summary = "memory by category and time for every policy, without a run",
    .details = "For each uniform policy the memory of a rank by category, the step time and the\n"
               "exposed communication, by the config's profile or by its cluster's figures. Its\n"
               "memory limit and plan.policies are not applied. --sweep repeats it for each value "
               "of one key.",
    .flags = "--sweep --set --ranks --seed --profile",
    .least_operands = 1,
    .most_operands = 1,
    .run = run,
};
