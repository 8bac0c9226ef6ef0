/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json/json.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/job/job.h"
#include "cli/job/shipped.h"
#include "cli/process/solver.h"
#include "library/machine.h"
#include "library/session.h"
#include "scheduler/planners/table.h"
#include "scheduler/schedule.h"
#include "spec/config_batch.h"
#include "spec/run/hub_run.h"

/* Adds the override "key=path" with an absolute path: a flag's path is relative to the working
 * directory, but a config's path is relative to the config's folder. */
static enum weft_status set_path(const char *flag, const char *key, const char *path,
                                 struct weft_text *out, struct weft_error *err)
{
    char directory[4096] = "";
    struct weft_text absolute;
    struct weft_json_writer writer;
    if (path[0] != '/' && !getcwd(directory, sizeof directory))
        return weft_fail(err, WEFT_E_SYSTEM, "%s %s: the current folder has no name: %s", flag,
                         path, strerror(errno));
    weft_text_init(&absolute);
    weft_text_addf(&absolute, "%s%s%s", directory, directory[0] ? "/" : "", path);
    weft_text_addf(out, "%s=", key);
    weft_json_writer_init(&writer, out, 0);
    weft_json_add_string(&writer, weft_text_chars(&absolute));
    bool ok = weft_text_ok(&absolute) && weft_text_ok(out);
    weft_text_finish(&absolute);
    return ok ? WEFT_OK : weft_fail_memory(err, flag);
}

/* Tells the notes of the model, once for all sessions of the verb. */
static void tell_notes(const struct weft_cli *cli, const struct weft_config *config)
{
    if (*cli->noted) return;
    for (const char *line = config->notes; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        weft_log(WEFT_LOG_INFO, "%.*s", (int)length, line);
        line += length + (line[length] == '\n');
        *cli->noted = true;
    }
}

/* Adds the overrides of --model and --cluster, which come first, since others change their keys. */
static enum weft_status name_sections(const struct weft_cli *cli, struct weft_text texts[2],
                                      const char **overrides, int32_t *n, struct weft_error *err)
{
    const struct {
        const char *flag, *key, *given;
        enum weft_shipped kind;
    } sections[] = {{"--model", "model", cli->model, WEFT_SHIPPED_MODELS},
                    {"--cluster", "cluster", cli->cluster, WEFT_SHIPPED_CLUSTERS}};
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        struct weft_text path;
        if (sections[i].given == NULL) continue;
        weft_text_init(&path);
        enum weft_status status =
            weft_shipped_find(sections[i].kind, sections[i].given, &path, err);
        if (status == WEFT_OK)
            status =
                set_path(sections[i].flag, sections[i].key, weft_text_chars(&path), &texts[i], err);
        weft_text_finish(&path);
        WEFT_TRY(status);
        overrides[(*n)++] = weft_text_chars(&texts[i]);
    }
    return WEFT_OK;
}

/* Finds the config's file. With --hf it is made, and `file` is the model's. */
static enum weft_status find_config(const struct weft_cli *cli, const char *path,
                                    struct weft_text *file, struct weft_text *made,
                                    struct weft_text *model, const char **overrides, int32_t *n,
                                    struct weft_error *err)
{
    enum weft_status status = weft_shipped_find(cli->hf ? WEFT_SHIPPED_MODELS : WEFT_SHIPPED_RUNS,
                                                cli->hf ? cli->hf : path, file, err);
    if (status == WEFT_OK && !weft_text_ok(file)) status = weft_fail_memory(err, path);
    if (status != WEFT_OK || !cli->hf) return status;
    WEFT_TRY(set_path("--hf", "model", weft_text_chars(file), model, err));
    overrides[(*n)++] = weft_text_chars(model);
    return weft_hub_run_write(weft_text_chars(file), made, err);
}

enum weft_status weft_cli_read_config(const struct weft_cli *cli, const char *path,
                                      struct weft_session *session, struct weft_error *err)
{
    enum { HF, FILE_PATH, MADE, PROFILE, MODEL, CLUSTER, N_TEXTS };
    const char *overrides[WEFT_CLI_OVERRIDES + 5];
    struct weft_text texts[N_TEXTS];
    char ranks[64];
    int32_t n = 0;
    for (int i = 0; i < N_TEXTS; i++)
        weft_text_init(&texts[i]);
    enum weft_status status =
        find_config(cli, path, &texts[FILE_PATH], &texts[MADE], &texts[HF], overrides, &n, err);
    if (status == WEFT_OK) status = name_sections(cli, &texts[MODEL], overrides, &n, err);
    for (int32_t i = 0; i < cli->n_overrides; i++)
        overrides[n++] = cli->overrides[i];
    if (cli->ranks > 0) {
        snprintf(ranks, sizeof ranks, "cluster.ranks=%lld", (long long)cli->ranks);
        overrides[n++] = ranks;
    }
    if (cli->profile && status == WEFT_OK) {
        status = set_path("--profile", "cluster.profile", cli->profile, &texts[PROFILE], err);
        overrides[n++] = weft_text_chars(&texts[PROFILE]);
    }
    session->solver = weft_solver_of_process(cli->solver);
    session->watch = cli->watch;
    if (status == WEFT_OK)
        status = weft_config_load(
            &(struct weft_config_input){.bytes = cli->hf ? weft_text_chars(&texts[MADE]) : NULL,
                                        .length = texts[MADE].length,
                                        .source =
                                            cli->hf ? path : weft_text_chars(&texts[FILE_PATH]),
                                        .overrides = overrides,
                                        .n_overrides = n,
                                        .kinds = cli->kinds},
            &session->config, err);
    if (status == WEFT_OK)
        status = weft_config_set_plain(session->config, weft_machine_is_plain(), err);
    if (status == WEFT_OK) tell_notes(cli, session->config);
    if (status == WEFT_OK) status = weft_model_learns(session->config->model, err);
    for (int i = 0; i < N_TEXTS; i++)
        weft_text_finish(&texts[i]);
    return status;
}

void weft_cli_name_profile(const char *plan, struct weft_text *out)
{
    size_t length = strlen(plan);
    if (length > 5 && strcmp(plan + length - 5, ".json") == 0) length -= 5;
    weft_text_addf(out, "%.*s.profile.json", (int)length, plan);
}

enum weft_status weft_cli_refuse_plan(const char *plan, const char *config, struct weft_error *err)
{
    struct weft_text kept;
    weft_text_init(&kept);
    weft_cli_name_profile(plan, &kept);
    const bool is_there = access(weft_text_chars(&kept), R_OK) == 0;
    enum weft_status status = weft_fail(
        err, WEFT_E_USAGE,
        "%s: a plan is for the times that it was made with, and %s has neither a profile of its "
        "ranks nor figures: give --profile %s%s, or plan again",
        plan, config, is_there ? weft_text_chars(&kept) : "FILE",
        is_there ? ", which `weft plan` kept" : " with the profile that it was planned with");
    weft_text_finish(&kept);
    return status;
}

bool weft_cli_measures(const struct weft_session *session)
{
    const struct weft_cluster *cluster = &session->config->cluster;
    return weft_session_must_measure(session) && cluster->ranks <= cluster->ranks_per_node &&
           weft_job_check(session->config, NULL) == WEFT_OK;
}

enum weft_status weft_cli_measure(const struct weft_session *session, struct weft_profile **out,
                                  struct weft_error *err)
{
    WEFT_TRY(weft_planner_need(session->config->plan.planner, err));
    const struct weft_cluster *cluster = &session->config->cluster;
    const bool contends = cluster->contention.compute > 0 || cluster->contention.channel > 0;
    if (cluster->profile != NULL)
        weft_log(WEFT_LOG_INFO,
                 "%s: is of other ranks than the %lld of %s, and cluster.link is not given: "
                 "measuring what it lacks here first",
                 cluster->profile, (long long)cluster->ranks, session->config->source);
    else if (!weft_session_must_measure(session))
        weft_log(WEFT_LOG_INFO,
                 "measuring this machine, in place of the figures of cluster.device");
    else
        weft_log(WEFT_LOG_INFO, "no cluster.profile and no cluster.device: measuring this machine "
                                "first (`weft profile -o` keeps it for the next time)");
    WEFT_TRY(weft_job_profile(session->config, cluster->profile != NULL && contends, session->watch,
                              out, err));
    const int64_t busy_millicores = (*out)->origin.busy_millicores;
    if (busy_millicores >= WEFT_BUSY_MILLICORES)
        weft_log(WEFT_LOG_WARNING,
                 "other programs or the host used %.1f cores while this machine was measured: "
                 "times are longer by that",
                 1e-3 * (double)busy_millicores);
    return weft_session_complete(session, out, err);
}
