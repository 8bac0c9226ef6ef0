#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/job.h"
#include "cli/session.h"
#include "report/plan_report.h"

enum { PATH_BYTES = 1024 };

/* The first free runs/NAME-NNN, made; or the directory that --run names. */
static enum weft_status make_run_directory(const struct weft_cli *cli, const char *config_path,
                                           char out[PATH_BYTES], struct weft_error *err)
{
    if (cli->run_directory) {
        if (strlen(cli->run_directory) >= PATH_BYTES - 32)
            return weft_fail(err, WEFT_E_USAGE, "--run: the path is too long");
        snprintf(out, PATH_BYTES, "%s", cli->run_directory);
        return weft_file_make_directory(out, err);
    }
    const char *slash = strrchr(config_path, '/');
    const char *name = slash ? slash + 1 : config_path;
    size_t length = strcspn(name, ".");
    if (length == 0 || length > 200) name = "run", length = 3;
    WEFT_TRY(weft_file_make_directory("runs", err));
    for (int i = 1; i < 100000; i++) {
        snprintf(out, PATH_BYTES, "runs/%.*s-%03d", (int)length, name, i);
        if (mkdir(out, 0777) == 0) return WEFT_OK;
        if (errno != EEXIST)
            return weft_fail(err, WEFT_E_CREATE, "%s: cannot be created: %s", out, strerror(errno));
    }
    return weft_fail(err, WEFT_E_CREATE, "runs/ has no free name for this run; give --run DIR");
}

static enum weft_status write_in(const char *directory, const char *name,
                                 const struct weft_text *text, struct weft_error *err)
{
    char path[PATH_BYTES + 32];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    if (!weft_text_ok(text)) return weft_fail_memory(err, path);
    return weft_file_write(path, weft_text_chars(text), text->length, err);
}

/* What the run was told and what was decided, so that it can be repeated. */
static enum weft_status record_run(const struct weft_session *session, const char *directory,
                                   struct weft_error *err)
{
    struct weft_text text;
    weft_text_init(&text);
    weft_config_write(session->config, &text);
    enum weft_status status = write_in(directory, "config.json", &text, err);
    weft_text_finish(&text);
    weft_text_init(&text);
    weft_plan_write(session->plan, &text);
    if (status == WEFT_OK) status = write_in(directory, "plan.json", &text, err);
    weft_text_finish(&text);
    weft_text_init(&text);
    weft_profile_write(session->profile, &text);
    if (status == WEFT_OK) status = write_in(directory, "profile.json", &text, err);
    weft_text_finish(&text);
    return status;
}

/* Without a profile and without device figures there are no times to plan with: measure first. */
static enum weft_status stage(struct weft_session *session, struct weft_error *err)
{
    const struct weft_cluster *cluster = &session->config->cluster;
    const bool figures = cluster->device.flops.f32 > 0 || cluster->device.flops.bf16 > 0 ||
                         cluster->device.flops.f16 > 0;
    struct weft_profile *profile = NULL;
    if (!cluster->profile && !figures) {
        weft_log(WEFT_LOG_INFO, "no cluster.profile and no cluster.device: measuring this machine "
                                "first (`weft profile -o` keeps it for the next time)");
        WEFT_TRY(weft_job_profile(session->config, &profile, err));
    }
    return weft_session_stage(session, profile, err);
}

static void put_summary(const struct weft_session *session, const struct weft_train_result *result,
                        struct weft_text *out)
{
    char a[WEFT_UNITS_TEXT_BYTES], b[WEFT_UNITS_TEXT_BYTES], hash[WEFT_HASH_TEXT_BYTES];
    const struct weft_prediction *p = &session->plan->prediction;
    weft_text_addf(
        out, "step      %s measured, %s predicted (%+.1f %%)\n",
        weft_units_show_ns(result->step_ns, a), weft_units_show_ns(p->step_ns, b),
        p->step_ns > 0 ? 100.0 * (double)(result->step_ns - p->step_ns) / (double)p->step_ns : 0.0);
    weft_text_addf(out, "exposed   %s measured, %s predicted\n",
                   weft_units_show_ns(result->exposed_ns, a), weft_units_show_ns(p->exposed_ns, b));
    weft_text_addf(out, "memory    %s measured, %s planned a rank\n",
                   weft_units_show_bytes(result->measured_bytes, a),
                   weft_units_show_bytes(result->planned_bytes, b));
    weft_text_addf(out, "loss      %.4f to %.4f in %lld steps; parameters %s\n", result->first_loss,
                   result->last_loss, (long long)result->steps_done,
                   weft_hash_show(result->fingerprint, hash));
}

static enum weft_status train(const struct weft_cli *cli, struct weft_session *session,
                              const char *directory, struct weft_error *err)
{
    char metrics[PATH_BYTES + 32];
    snprintf(metrics, sizeof metrics, "%s/metrics.jsonl", directory);
    struct weft_job job = {
        .kind = WEFT_JOB_TRAIN,
        .config = session->config,
        .profile = session->profile,
        .plan = session->plan,
        .virtual_clock = cli->clock && strcmp(cli->clock, "virtual") == 0,
        .poison = cli->poison,
        .steps = cli->json    ? WEFT_STEPS_JSON
                 : cli->quiet ? WEFT_STEPS_SILENT
                              : WEFT_STEPS_TEXT,
        .metrics = metrics,
        .trace = cli->trace,
    };
    struct weft_text text, out;
    struct weft_train_result result = {0};
    weft_text_init(&text);
    weft_text_init(&out);
    enum weft_status status = weft_job_run(&job, &text, err);
    if (status == WEFT_OK) status = weft_job_read_result(&text, &result, err);
    if (status == WEFT_OK) status = write_in(directory, "result.json", &text, err);
    if (status == WEFT_OK && !cli->json) {
        put_summary(session, &result, &out);
        weft_text_addf(&out, "run       %s\n", directory);
        status = weft_cli_emit(cli, &out, err);
    } else if (status == WEFT_OK) {
        status = weft_cli_emit(cli, &text, err);
    }
    if (status == WEFT_OK && result.stopped)
        status = weft_fail(err, WEFT_E_STOPPED, "stopped by a signal after step %lld of %lld",
                           (long long)result.steps_done, (long long)session->config->train.steps);
    weft_text_finish(&text);
    weft_text_finish(&out);
    return status;
}

static enum weft_status check_flags(const struct weft_cli *cli, struct weft_error *err)
{
    if (cli->clock && strcmp(cli->clock, "wall") != 0 && strcmp(cli->clock, "virtual") != 0)
        return weft_fail(err, WEFT_E_USAGE, "--clock %s: wall or virtual", cli->clock);
    if (cli->output)
        return weft_fail(err, WEFT_E_USAGE, "train writes to a directory: give --run DIR, not -o");
    return WEFT_OK;
}

static enum weft_status run(const struct weft_cli *cli, struct weft_error *err)
{
    struct weft_session session = {0};
    char directory[PATH_BYTES];
    WEFT_TRY(check_flags(cli, err));
    enum weft_status status = weft_session_read(cli, cli->operands[0], &session, err);
    if (status == WEFT_OK) status = weft_train_check(session.config, err);
    if (status == WEFT_OK) status = stage(&session, err);
    if (status == WEFT_OK)
        status = cli->plan ? weft_session_load(&session, cli->plan, err)
                           : weft_session_plan(&session, NULL, err);
    if (status == WEFT_OK && !cli->json && !cli->quiet) {
        struct weft_text out;
        weft_text_init(&out);
        weft_report_plan(session.plan, &out);
        status = weft_cli_emit(cli, &out, err);
        weft_text_finish(&out);
    }
    if (status == WEFT_OK) status = make_run_directory(cli, cli->operands[0], directory, err);
    if (status == WEFT_OK) status = record_run(&session, directory, err);
    if (status == WEFT_OK) status = train(cli, &session, directory, err);
    weft_session_close(&session);
    return status;
}

const struct weft_command weft_command_train = {
    .name = "train",
    .usage = "CONFIG [--plan PLAN] [-n N] [--run DIR]",
    .summary = "runs the plan on local ranks",
    .details =
        "Plans (or takes --plan, refusing one that was made for something else), starts the ranks\n"
        "and trains: a line a step, and in the run directory the resolved config, profile, plan,\n"
        "metrics.jsonl and result.json. A rank that dies ends the job within 2 s with exit 69.\n"
        "--clock virtual runs the same program with predicted durations, --poison fills memory\n"
        "that the plan says is dead, --trace FILE writes rank 0's last step as a Chrome trace.",
    .flags =
        "--set --ranks --seed --memory-limit --planner --time-limit --gap --plan --run --clock "
        "--poison --trace",
    .least_operands = 1,
    .most_operands = 1,
    .run = run,
};
