/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/study/cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/job/hosts.h"
#include "runtime/train/train.h"
#include "scheduler/planners/table.h"

static const char default_points[] = "7";
static const char default_networks[] = "1";
static const char default_planners[] =
    "ilp,greedy,two-stage,ddp,zero1,zero2,fairscale,fsdp2,fsdp2-mix,deepspeed,deepcompile,"
    "latest-safe,simple-overlap,dear,osdp,fsdp-milp";
static const char divider[] = "two-stage"; /* its policies have a limit of their own */

static enum weft_status read_networks(struct weft_case_plans *plans, struct weft_error *err)
{
    const char *given = plans->cli->networks;
    struct weft_list list = {.rest = given ? given : default_networks};
    while (weft_list_next(&list)) {
        char *end;
        const double factor = strtod(list.item, &end);
        if (list.cut || !*list.item || *end || !(factor >= 1e-6 && factor <= 1e6))
            return weft_fail(err, WEFT_E_USAGE,
                             "--networks %s: factors of the config's bandwidths, such as 0.25,1,4",
                             given);
        if (plans->n_networks == WEFT_SWEEP_CURVES)
            return weft_fail(err, WEFT_E_USAGE, "--networks: at most %d", WEFT_SWEEP_CURVES);
        const char *name = weft_pool_string(&plans->pool, list.item);
        if (name == NULL) return weft_fail_memory(err, "a study");
        for (int32_t k = 0; k < plans->n_networks; k++)
            if (plans->factors[k] == factor)
                return weft_fail(err, WEFT_E_USAGE, "--networks %s: %s is there twice", given,
                                 list.item);
        plans->factors[plans->n_networks] = factor;
        plans->networks[plans->n_networks++] = name;
    }
    return WEFT_OK;
}

/* The config's file without its folder and end. */
static const char *name_model(const char *path, struct weft_pool *pool)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    return weft_pool_format(pool, "%.*s", dot ? (int)(dot - name) : (int)strlen(name), name);
}

enum weft_status weft_cases_read_options(struct weft_case_plans *plans, struct weft_error *err)
{
    const struct weft_cli *cli = plans->cli;
    if (!cli->output || weft_study_is_stdout(cli->output))
        return weft_fail(err, WEFT_E_USAGE,
                         "-o DIR: a study writes several files, and keeps its plans there");
    WEFT_TRY(read_networks(plans, err));
    if (weft_hosts_are_ours() && cli->n_operands * plans->n_networks > 1)
        return weft_fail(err, WEFT_E_USAGE,
                         "study: plans are made before MPI starts: give one config and one network "
                         "for each launch");
    for (int32_t a = 0; a < cli->n_operands; a++)
        for (int32_t b = 0; b < a; b++) {
            const char *one = name_model(cli->operands[a], &plans->pool);
            const char *other = name_model(cli->operands[b], &plans->pool);
            if (one == NULL || other == NULL) return weft_fail_memory(err, "a study");
            if (strcmp(one, other) == 0)
                return weft_fail(err, WEFT_E_USAGE, "%s and %s: both would be named %s",
                                 cli->operands[b], cli->operands[a], one);
        }
    plans->kept_file = weft_pool_format(&plans->pool, "%s/study", cli->output);
    return plans->kept_file ? WEFT_OK : weft_fail_memory(err, "a study");
}

/* Multiplies the bandwidths of a link by the network's factor. */
static enum weft_status scale_link(const struct weft_link *link, const char *name, double factor,
                                   struct weft_pool *pool, struct weft_cli *line,
                                   struct weft_error *err)
{
    if (link->bytes_per_s <= 0 || factor == 1) return WEFT_OK;
    if (line->n_overrides == WEFT_CLI_OVERRIDES)
        return weft_fail(err, WEFT_E_USAGE, "--set: too many overrides for `weft study`");
    const char *setting = weft_pool_format(pool, "cluster.link.%s.bandwidth=%.0fB/s", name,
                                           round(link->bytes_per_s * factor));
    if (setting == NULL) return weft_fail_memory(err, "a study");
    line->overrides[line->n_overrides++] = setting;
    return WEFT_OK;
}

/* Makes the command line of a sweep of the case. */
static enum weft_status make_line(struct weft_case_plans *plans, int32_t config, int32_t network,
                                  struct weft_cli *line, struct weft_error *err)
{
    const struct weft_cli *cli = plans->cli;
    const struct weft_place everywhere = {0};
    struct weft_session session = {0};
    *line = *cli;
    line->operands[0] = cli->operands[config];
    line->n_operands = 1;
    line->output = NULL;
    if (!line->points && !line->limits) line->points = default_points;
    if (!line->planners) line->planners = default_planners;
    enum weft_status status = weft_place_open(line, &everywhere, &session, err);
    if (status == WEFT_OK && session.config->cluster.profile != NULL &&
        plans->factors[network] != 1)
        status = weft_fail(err, WEFT_E_USAGE,
                           "--networks: %s has measured times (cluster.profile), which no factor "
                           "changes",
                           line->operands[0]);
    if (status == WEFT_OK && !cli->measure && weft_session_must_measure(&session))
        status =
            weft_fail(err, WEFT_E_USAGE,
                      "%s: a study needs times: give cluster.device, --profile FILE or --measure",
                      line->operands[0]);
    if (status == WEFT_OK) {
        const double factor = plans->factors[network];
        status = scale_link(&session.config->cluster.link.intra, "intra", factor, &plans->pool,
                            line, err);
        if (status == WEFT_OK)
            status = scale_link(&session.config->cluster.link.inter, "inter", factor, &plans->pool,
                                line, err);
    }
    weft_session_close(&session);
    return status;
}

/* Curves of planners, of rivals and of divisions. */
static enum weft_status check_curves(const struct weft_study *study, struct weft_error *err)
{
    if (study->n_planners + study->n_rivals + study->n_limits <= WEFT_SWEEP_CURVES) return WEFT_OK;
    return weft_fail(err, WEFT_E_USAGE, "--points, --planners: at most %d together",
                     WEFT_SWEEP_CURVES);
}

static void add_curves(struct weft_study *study)
{
    for (int32_t i = 0; i < study->n_planners; i++)
        weft_study_add_curve(study, study->planners[i], study->n_limits);
    for (int32_t i = 0; i < study->n_rivals; i++)
        weft_study_add_curve(study, study->rivals[i].planner, study->n_limits);
    for (int32_t i = 0; i < study->n_limits; i++)
        weft_study_add_curve(study, divider, study->n_limits - i);
}

/* Gives the divisions their limits. The points of curve i are of the limits from i on. */
static void limit_divisions(struct weft_study *study)
{
    const int32_t first = study->n_planners + study->n_rivals;
    for (int32_t i = 0; i < study->n_limits; i++)
        for (int32_t k = 0; k < study->n_limits - i; k++) {
            struct weft_sweep_point *point = &study->curves[first + i].points[k];
            point->limit_bytes = study->limits[i + k];
            point->policy_limit_bytes = study->limits[i];
        }
}

/* True for a rule of others: no planner of Weft's own and no draw. */
static bool is_published(const struct weft_planner *planner)
{
    return !planner->searches && !planner->solves && planner->fixed == NULL &&
           strcmp(planner->name, divider) != 0 && strcmp(planner->name, "random") != 0;
}

/* Copies the results of a case. */
static enum weft_status take_case(struct weft_case_plans *plans, const struct weft_study *study,
                                  int32_t network, struct weft_case *out, struct weft_error *err)
{
    const size_t n_curves = (size_t)study->sweep.n_curves, n_rows = (size_t)study->n_rows;
    struct weft_sweep_point *points = weft_pool_array(&plans->pool, n_rows, sizeof *points);
    out->curves = weft_pool_array(&plans->pool, n_curves, sizeof *out->curves);
    out->model = name_model(study->cli->operands[0], &plans->pool);
    out->network = plans->networks[network];
    out->n_limits = study->n_limits;
    out->n_planners = study->n_planners + study->n_rivals;
    out->measured = study->cli->measure;
    out->has_drift = study->drift.known;
    out->compute_drift = study->drift.compute;
    out->network_drift = study->drift.network;
    out->n_repeats = study->n_repeats;
    out->n_repeated = study->n_repeated;
    if (points == NULL || out->curves == NULL || out->model == NULL)
        return weft_fail_memory(err, "a study");
    for (int32_t c = 0; c < study->sweep.n_curves; c++) {
        const struct weft_sweep_curve *from = &study->curves[c];
        const char *name = weft_pool_string(&plans->pool, from->planner);
        if (name == NULL) return weft_fail_memory(err, "a study");
        memcpy(points, from->points, (size_t)from->n_points * sizeof *points);
        out->curves[c] = (struct weft_sweep_curve){name, from->n_points, points};
        points += from->n_points;
        if (c >= out->n_planners) continue;
        const struct weft_planner *planner = weft_planner_find(name, NULL);
        out->is_rule[c] = planner == NULL || is_published(planner);
    }
    return WEFT_OK;
}

/* Tells the number of plans, and the longest time that their limits of work allow. */
static void tell_size(const struct weft_case_plans *plans, const struct weft_study *study)
{
    const int32_t n_cases = plans->cli->n_operands * plans->n_networks;
    const double work = study->session.config->plan.work_limit;
    int32_t searches = 0;
    for (int32_t i = 0; i < study->n_planners; i++)
        searches += weft_planner_find(study->planners[i], NULL)->searches;
    weft_log(WEFT_LOG_INFO,
             "study: %d cases of about %d plans; %d in all are searched, which takes about %.0f s "
             "at most on %d processes",
             n_cases, (int)study->n_rows, n_cases * searches * study->n_limits,
             work * 1e-9 * n_cases * searches * study->n_limits / study->jobs, (int)study->jobs);
}

/* Plans one case. The caller finishes the study. */
static enum weft_status plan_case(struct weft_case_plans *plans, struct weft_study *study,
                                  struct weft_error *err)
{
    const struct weft_place everywhere = {0};
    char hash[WEFT_HASH_TEXT_BYTES];
    WEFT_TRY(weft_study_read_options(study, err));
    WEFT_TRY(weft_place_open(study->cli, &everywhere, &study->session, err));
    WEFT_TRY(weft_study_check_planners(study, err));
    WEFT_TRY(check_curves(study, err));
    if (study->cli->measure) WEFT_TRY(weft_train_check(study->session.config, err));
    weft_study_keep(study->cli, study->session.config, plans->kept_file, &study->kept);
    WEFT_TRY(weft_study_measure(study, err));
    WEFT_TRY(weft_session_stage(&study->session, NULL, err));
    WEFT_TRY(weft_study_stage(study, err));
    study->kept.base = weft_kept_key(&study->kept, "profile %s",
                                     weft_hash_show(study->session.profile->hash, hash));
    if (!study->cli->limits) WEFT_TRY(weft_study_find_limits(study, err));
    add_curves(study);
    WEFT_TRY(weft_study_make_rows(study, err));
    limit_divisions(study);
    if (plans->cases.n == 0) tell_size(plans, study);
    WEFT_TRY(weft_study_plan(study, err));
    if (!study->cli->measure) return WEFT_OK;
    WEFT_TRY(weft_study_run(study, err));
    return weft_study_measure_drift(study, err);
}

static void finish_study(struct weft_study *study)
{
    for (int32_t i = 0; study->rows != NULL && i < study->n_rows; i++)
        weft_text_finish(&study->rows[i].plan);
    for (int32_t v = 0; v < study->n_periods; v++)
        weft_stages_finish(&study->stages[v]);
    weft_times_finish(&study->times);
    weft_session_close(&study->session);
    weft_pool_finish(&study->pool);
}

/* Plans the case and adds it. */
static enum weft_status add_case(struct weft_case_plans *plans, int32_t config, int32_t network,
                                 struct weft_error *err)
{
    static struct weft_cli line;
    static struct weft_study study;
    WEFT_TRY(make_line(plans, config, network, &line, err));
    study = (struct weft_study){.cli = &line, .settles = line.measure, .times.fd = -1};
    enum weft_status status = plan_case(plans, &study, err);
    plans->kept = study.kept;
    if (status == WEFT_OK)
        status = take_case(plans, &study, network, &plans->cases.cases[plans->cases.n], err);
    if (status == WEFT_OK) plans->cases.n++;
    finish_study(&study);
    return status;
}

enum weft_status weft_cases_plan(struct weft_case_plans *plans, struct weft_error *err)
{
    const struct weft_cli *cli = plans->cli;
    const int32_t n = cli->n_operands * plans->n_networks;
    const int64_t begun_ns = weft_clock_now_ns();
    enum weft_status status = WEFT_OK;
    plans->cases.cases = weft_pool_array(&plans->pool, (size_t)n, sizeof *plans->cases.cases);
    if (plans->cases.cases == NULL) return weft_fail_memory(err, "a study");
    for (int32_t k = 0; k < n && status == WEFT_OK; k++) {
        weft_watch_part(cli->watch, "study", "case", k, n, begun_ns);
        status = add_case(plans, k / plans->n_networks, k % plans->n_networks, err);
    }
    weft_watch_part(cli->watch, NULL, NULL, 0, 0, 0);
    return status;
}
