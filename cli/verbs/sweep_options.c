/* Reads the flags of `weft sweep`. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/machine/cores.h"
#include "cli/process/children.h"
#include "cli/verbs/sweep.h"
#include "scheduler/planners/table.h"

enum { DEFAULT_POINTS = 9 };

static enum weft_status read_number(const char *flag, const char *text, int32_t least, int32_t most,
                                    int32_t *out, struct weft_error *err)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || value < least || value > most)
        return weft_fail(err, WEFT_E_USAGE, "%s %s: a number from %d to %d", flag, text, least,
                         most);
    *out = (int32_t)value;
    return WEFT_OK;
}

static enum weft_status add_planner(struct weft_sweep_planners *planners, const char *name,
                                    size_t length, struct weft_error *err)
{
    if (planners->n == WEFT_SWEEP_CURVES || length >= WEFT_SWEEP_NAME_BYTES)
        return weft_fail(err, WEFT_E_USAGE, "--planners: too many, or a name that is too long");
    char *copy = planners->names[planners->n];
    memcpy(copy, name, length);
    copy[length] = '\0';
    for (int32_t i = 0; i < planners->n; i++)
        if (strcmp(planners->names[i], copy) == 0)
            return weft_fail(err, WEFT_E_USAGE, "--planners: %s is there twice", copy);
    WEFT_TRY(weft_planner_need(copy, err));
    planners->n++;
    return WEFT_OK;
}

/* The default is all planners but `random`, which is only one draw of many. */
static enum weft_status read_planners(const char *list, struct weft_sweep_planners *planners,
                                      struct weft_error *err)
{
    if (!list) {
        for (const struct weft_planner *planner = weft_planners(); planner->name; planner++)
            if (strcmp(planner->name, "random") != 0)
                WEFT_TRY(add_planner(planners, planner->name, strlen(planner->name), err));
        return WEFT_OK;
    }
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");
        WEFT_TRY(add_planner(planners, at, length, err));
        at += length;
        if (*at != ',') return WEFT_OK;
    }
}

static enum weft_status read_end(const struct weft_cli *cli, bool *to_all, struct weft_error *err)
{
    *to_all = false;
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
static enum weft_status read_grid(const struct weft_cli *cli, struct weft_sweep_options *options,
                                  struct weft_error *err)
{
    const char *flag = cli->host_points ? "--host-points" : "--host-limits";
    struct weft_sweep_hosts *hosts = &options->hosts;
    if (!cli->host_points && !cli->host_limits) return WEFT_OK;
    if (cli->host_points && cli->host_limits)
        return weft_fail(err, WEFT_E_USAGE, "--host-points and --host-limits: give one of them");
    if (cli->split)
        return weft_fail(err, WEFT_E_USAGE,
                         "%s: --split keeps the limits that there are; leave one of them out",
                         flag);
    if (options->planners.n > 1)
        return weft_fail(err, WEFT_E_USAGE,
                         "%s: a sweep over two limits is of one planner, and --planners names %d",
                         flag, options->planners.n);
    hosts->given = cli->host_limits != NULL;
    if (hosts->given)
        return weft_sweep_read_limits(flag, cli->host_limits, 0, WEFT_SWEEP_CURVES, hosts->limits,
                                      &hosts->n, err);
    return read_number(flag, cli->host_points, 1, WEFT_SWEEP_CURVES, &hosts->n, err);
}

enum weft_status weft_sweep_check_hosts(const struct weft_config *config,
                                        const struct weft_sweep_options *options,
                                        struct weft_error *err)
{
    const char *flag = options->hosts.given ? "--host-limits" : "--host-points";
    const char *planner = options->planners.names[0];
    if (options->hosts.n == 0) return WEFT_OK;
    if (!config->cluster.host.given)
        return weft_fail(err, WEFT_E_USAGE,
                         "%s: the cluster has no memory of the host to limit: give cluster.host",
                         flag);
    if (!weft_config_uses_host(config))
        return weft_fail(err, WEFT_E_USAGE, "%s: plan.offload lets nothing be in the host's memory",
                         flag);
    if (!weft_planner_uses(weft_planner_find(planner, NULL), WEFT_HOME_HOST))
        return weft_fail(err, WEFT_E_USAGE,
                         "%s: planner %s keeps nothing in the host's memory: name another with "
                         "--planners, such as ilp or offload-stream",
                         flag, planner);
    return WEFT_OK;
}

/* Checks that the folder of an output file is writable, since the file is written after all the
 * work. */
static enum weft_status check_place(const char *flag, const char *path, struct weft_error *err)
{
    char folder[4096];
    if (!path || strcmp(path, "-") == 0) return WEFT_OK;
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (length >= sizeof folder)
        return weft_fail(err, WEFT_E_USAGE, "%s: the path is too long", flag);
    snprintf(folder, sizeof folder, "%.*s", (int)length, path);
    const char *place = slash ? (length > 0 ? folder : "/") : ".";
    if (access(place, W_OK) == 0) return WEFT_OK;
    return weft_fail(err, WEFT_E_CREATE, "%s %s: cannot be written there: %s", flag, path,
                     strerror(errno));
}

enum weft_status weft_sweep_read_options(const struct weft_cli *cli,
                                         struct weft_sweep_options *options, struct weft_error *err)
{
    const int32_t cores = weft_cores();
    *options = (struct weft_sweep_options){.points = DEFAULT_POINTS};
    options->jobs = cores < WEFT_CHILDREN_MOST ? cores : WEFT_CHILDREN_MOST;
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
    if (cli->points)
        WEFT_TRY(read_number("--points", cli->points, 1, WEFT_SWEEP_POINTS, &options->points, err));
    if (cli->jobs)
        WEFT_TRY(read_number("--jobs", cli->jobs, 1, WEFT_CHILDREN_MOST, &options->jobs, err));
    if (cli->json &&
        ((cli->csv && strcmp(cli->csv, "-") == 0) || (cli->svg && strcmp(cli->svg, "-") == 0)))
        return weft_fail(err, WEFT_E_USAGE,
                         "--json has standard output for itself: give --csv or --svg a file");
    if (cli->csv && cli->svg && strcmp(cli->csv, cli->svg) == 0)
        return weft_fail(err, WEFT_E_USAGE, "--csv and --svg: both are %s", cli->csv);
    WEFT_TRY(check_place("--csv", cli->csv, err));
    WEFT_TRY(check_place("--svg", cli->svg, err));
    if (cli->output) WEFT_TRY(check_place("-o", cli->output, err));
    WEFT_TRY(read_end(cli, &options->to_all, err));
    const bool grid = cli->host_points || cli->host_limits;
    const char *planners = cli->split               ? "two-stage,ilp"
                           : grid && !cli->planners ? "ilp"
                                                    : cli->planners;
    WEFT_TRY(read_planners(planners, &options->planners, err));
    return read_grid(cli, options, err);
}
