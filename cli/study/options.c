/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/flags.h"
#include "cli/study/crew.h"
#include "cli/study/sweep.h"
#include "problem/variants.h"
#include "scheduler/planners/table.h"
#include "spec/config_batch.h"

enum { DEFAULT_POINTS = 9, MOST_REPEATS = 99 };

static int compare_sizes(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Reads the sizes of a list: sorted, without duplicates. */
static enum weft_status read_sizes(const char *flag, const char *text, int64_t least_bytes,
                                   int32_t most, int64_t *sizes, int32_t *n, struct weft_error *err)
{
    struct weft_list list = {.rest = text};
    struct weft_error wrong = {0};
    int32_t n_read = 0;
    while (weft_list_next(&list)) {
        if (n_read == most) return weft_fail(err, WEFT_E_USAGE, "%s: at most %d", flag, most);
        if (weft_units_bytes(list.item, &sizes[n_read], &wrong) != WEFT_OK)
            return weft_fail(err, WEFT_E_USAGE, "%s: %s", flag, wrong.text);
        if (sizes[n_read++] < least_bytes)
            return weft_fail(err, WEFT_E_USAGE, "%s: \"%s\" is no memory at all", flag, list.item);
    }
    qsort(sizes, (size_t)n_read, sizeof *sizes, compare_sizes);
    *n = 0;
    for (int32_t i = 0; i < n_read; i++)
        if (i == 0 || sizes[i] != sizes[*n - 1]) sizes[(*n)++] = sizes[i];
    return WEFT_OK;
}

/* The default is all planners but `random`, which is only one draw of many. */
static enum weft_status read_planners(const char *text, struct weft_study *study,
                                      struct weft_error *err)
{
    struct weft_list list = {.rest = text};
    for (const struct weft_planner *planner = weft_planners(); !text && planner->name; planner++)
        if (strcmp(planner->name, "random") != 0)
            study->planners[study->n_planners++] = planner->name;
    while (weft_list_next(&list)) {
        if (study->n_planners == WEFT_SWEEP_CURVES || list.cut)
            return weft_fail(err, WEFT_E_USAGE, "--planners: too many, or a name that is too long");
        for (int32_t i = 0; i < study->n_planners; i++)
            if (strcmp(study->planners[i], list.item) == 0)
                return weft_fail(err, WEFT_E_USAGE, "--planners: %s is there twice", list.item);
        WEFT_TRY(weft_planner_need(list.item, err));
        const char *name = weft_pool_string(&study->pool, list.item);
        if (name == NULL) return weft_fail_memory(err, "a sweep");
        study->planners[study->n_planners++] = name;
    }
    return WEFT_OK;
}

static enum weft_status read_end(const struct weft_cli *cli, bool *to_all, struct weft_error *err)
{
    if (!cli->to) return WEFT_OK;
    *to_all = strcmp(cli->to, "all") == 0;
    if (!*to_all && strcmp(cli->to, "gain") != 0)
        return weft_fail(err, WEFT_E_USAGE,
                         "--to %s: gain (where more memory shortens no step) or all (where every "
                         "planner has a plan)",
                         cli->to);
    if (cli->limits || cli->split)
        return weft_fail(err, WEFT_E_USAGE, "--to: the limits are given by %s already",
                         cli->limits ? "--limits" : "--split");
    return WEFT_OK;
}

/* A grid has one planner, by default ilp. */
static enum weft_status read_grid(struct weft_study *study, struct weft_error *err)
{
    const struct weft_cli *cli = study->cli;
    const char *flag = cli->host_points ? "--host-points" : "--host-limits";
    if (!cli->host_points && !cli->host_limits) return WEFT_OK;
    if (cli->host_points && cli->host_limits)
        return weft_fail(err, WEFT_E_USAGE, "--host-points and --host-limits: give one of them");
    if (cli->split)
        return weft_fail(err, WEFT_E_USAGE,
                         "%s: --split keeps the limits that there are; leave one of them out",
                         flag);
    if (study->n_planners > 1)
        return weft_fail(err, WEFT_E_USAGE,
                         "%s: a sweep over two limits is of one planner, and --planners names %d",
                         flag, study->n_planners);
    study->hosts_given = cli->host_limits != NULL;
    if (study->hosts_given)
        return read_sizes(flag, cli->host_limits, 0, WEFT_SWEEP_CURVES, study->hosts,
                          &study->n_hosts, err);
    return weft_flag_number(flag, cli->host_points, WEFT_SWEEP_CURVES, &study->n_hosts, err);
}

/* Whether a published rule runs micro-steps in an order that the config allows. */
static bool follows_order(const struct weft_planner *planner, const struct weft_config *config)
{
    const bool open = weft_config_opens_turns(config);
    if (!planner->literal || (!planner->turns && open)) return true;
    const bool turns = (open || weft_config_turn_layers(config) > 0) &&
                       weft_config_refuses_turns(config, config->train.grad_accum) == NULL &&
                       config->model->n_layers > 1;
    return planner->turns == turns;
}

static void drop_planners(const struct weft_config *config, struct weft_study *study)
{
    int32_t n = 0;
    uint32_t policies = 0;
    struct weft_error unsaid = {0};
    if (weft_variants_policies(config, &policies, &unsaid) != WEFT_OK) policies = 0;
    for (int32_t i = 0; i < study->n_planners; i++) {
        const struct weft_planner *planner = weft_planner_find(study->planners[i], NULL);
        const bool caches = planner->fixed != NULL && planner->fixed->caches;
        const int locations =
            caches ? weft_config_parameter_locations(config) : weft_config_state_locations(config);
        const bool has = planner->locations == 0 || (planner->locations & locations) != 0;
        const bool recomputes = !planner->recomputes || config->recomputes != NULL;
        const bool splits = !planner->fills_batch || config->train.asked.micro_batch == 0;
        bool allowed = follows_order(planner, config); /* policies that no config has by default */
        for (int p = WEFT_POLICY_HSDP; p < WEFT_POLICY_COUNT; p++)
            allowed &= planner->fixed != &weft_fixed_rules[p] || (policies >> p & 1) != 0;
        allowed &= !caches || (policies >> WEFT_POLICY_NODES & 1) != 0;
        allowed &= !planner->solves; /* it takes long */
        if (has && recomputes && splits && allowed) study->planners[n++] = study->planners[i];
    }
    study->n_planners = n;
}

enum weft_status weft_study_check_planners(struct weft_study *study, struct weft_error *err)
{
    const struct weft_config *config = study->session.config;
    const struct weft_cli *cli = study->cli;
    const char *flag = study->hosts_given ? "--host-limits" : "--host-points";
    const char *planner = study->planners[0];
    if (study->n_hosts == 0) {
        if (!cli->planners && !cli->split) drop_planners(config, study);
        return WEFT_OK;
    }
    if (!config->cluster.host.given)
        return weft_fail(err, WEFT_E_USAGE,
                         "%s: the cluster has no memory of the host to limit: give cluster.host",
                         flag);
    if (!weft_config_uses_host(config))
        return weft_fail(err, WEFT_E_USAGE, "%s: plan.offload lets nothing be in the host's memory",
                         flag);
    if (!weft_planner_uses(weft_planner_find(planner, NULL), WEFT_LOCATION_HOST))
        return weft_fail(err, WEFT_E_USAGE,
                         "%s: planner %s keeps nothing in the host's memory: name another with "
                         "--planners, such as ilp or offload-stream",
                         flag, planner);
    return WEFT_OK;
}

bool weft_study_is_stdout(const char *path)
{
    return path != NULL && strcmp(path, "-") == 0;
}

/* The file is written after all the work. */
static enum weft_status check_output(const char *flag, const char *path, struct weft_error *err)
{
    if (path == NULL || weft_study_is_stdout(path)) return WEFT_OK;
    return weft_flag_check_folder(flag, path, err);
}

/* Refuses flags that contradict one another. */
static enum weft_status check_flags(const struct weft_cli *cli, struct weft_error *err)
{
    if (strcmp(cli->operands[0], "-") == 0)
        return weft_fail(err, WEFT_E_USAGE,
                         "sweep reads its config once a plan: give a file, not -");
    if (cli->memory_limit && !cli->split)
        return weft_fail(err, WEFT_E_USAGE,
                         "--memory-limit: a sweep goes over limits; name them with --limits, or "
                         "keep one and divide it with --split");
    if (cli->points && cli->limits)
        return weft_fail(err, WEFT_E_USAGE, "--points and --limits: give one of them");
    if (cli->planners && cli->split)
        return weft_fail(err, WEFT_E_USAGE,
                         "--split compares two-stage and ilp: leave out --planners");
    if (cli->n_overrides + WEFT_PLACE_SETTINGS > WEFT_CLI_OVERRIDES)
        return weft_fail(err, WEFT_E_USAGE, "--set: too many overrides for `weft sweep`");
    return WEFT_OK;
}

enum weft_status weft_study_read_options(struct weft_study *study, struct weft_error *err)
{
    const struct weft_cli *cli = study->cli;
    study->n_limits = DEFAULT_POINTS;
    WEFT_TRY(check_flags(cli, err));
    WEFT_TRY(weft_flag_number("--points", cli->points, WEFT_SWEEP_POINTS, &study->n_limits, err));
    WEFT_TRY(weft_crew_read_jobs(cli->jobs, &study->jobs, err));
    study->n_repeats = 1;
    if (cli->repeat && !cli->measure)
        return weft_fail(err, WEFT_E_USAGE, "--repeat: goes with --measure");
    WEFT_TRY(weft_flag_number("--repeat", cli->repeat, MOST_REPEATS, &study->n_repeats, err));
    if (cli->json && (weft_study_is_stdout(cli->csv) || weft_study_is_stdout(cli->svg)))
        return weft_fail(err, WEFT_E_USAGE,
                         "--json has standard output for itself: give --csv or --svg a file");
    if (cli->csv && cli->svg && strcmp(cli->csv, cli->svg) == 0)
        return weft_fail(err, WEFT_E_USAGE, "--csv and --svg: both are %s", cli->csv);
    WEFT_TRY(check_output("--csv", cli->csv, err));
    WEFT_TRY(check_output("--svg", cli->svg, err));
    WEFT_TRY(check_output("-o", cli->output, err));
    WEFT_TRY(read_end(cli, &study->to_all, err));
    const bool grid = cli->host_points || cli->host_limits;
    WEFT_TRY(read_planners(cli->split               ? "two-stage,ilp"
                           : grid && !cli->planners ? "ilp"
                                                    : cli->planners,
                           study, err));
    WEFT_TRY(read_grid(study, err));
    WEFT_TRY(weft_study_read_rivals(study, err));
    if (cli->split && cli->limits)
        return weft_fail(err, WEFT_E_USAGE, "--split divides one limit: leave --limits out");
    if (!cli->limits) return WEFT_OK;
    return read_sizes("--limits", cli->limits, 1, WEFT_SWEEP_POINTS, study->limits,
                      &study->n_limits, err);
}
