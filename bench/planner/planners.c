/* SPDX-License-Identifier: Apache-2.0 */
/* Plans one config with many planners under several limits: planners CONFIG [--set
 * path.key=value]... [--planners A,B | all] [--settings] [--starts] [--pages] [--share] [--ratio R]
 * [--limits N | --needs N | --at BYTES]
 *
 * --ratio     scales all collectives until an fsdp step's channel time is R times its compute time
 * --limits    N limits from the least that fits to the last that helps
 * --needs     N of the planners' needs without a limit, from the least that fits to the largest
 * --settings  takes a planner's best setting
 * --pages     holds pages to the limit instead of rows
 * --starts    plans each limit once more with ilp, starting from all other plans: "ilp+starts"
 * --share     divides the work among the periods; without it each period has all of the work
 *
 * If the config leaves the period open, a planner chooses among all periods and the bound is the
 * least over them. Prints one line of JSON per limit and planner. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/process/solver.h"
#include "problem/stages.h"
#include "scheduler/digest/digest.h"
#include "scheduler/planners/table.h"
#include "scheduler/schedule.h"
#include "scheduler/tree/proof.h"
#include "tests/scheduler/random_whole.h"

enum { MOST_SETS = 32, MOST_PLANNERS = 64, MOST_LIMITS = 64, MOST_STARTS = 256, BISECTIONS = 12 };

/* Plans of one period at the present limit, from which ilp may start. */
struct starts {
    struct weft_plan *plans[MOST_STARTS];
    int32_t n;
};

struct bench {
    const char *path, *planners[MOST_PLANNERS];
    char names[2048];
    const char *sets[MOST_SETS];
    int32_t n_sets, n_planners, n_limits, n_variants;
    bool settings, needs, pages, starts, shares;
    bool keeps, uses; /* for `starts`: plans are kept, or given to the planner */
    double ratio;
    int64_t at_bytes; /* the only limit; 0: choose limits */
    struct weft_solver_process solver;
    struct weft_config *config;
    struct weft_profile *profile;
    struct weft_stages variants[WEFT_MOST_VARIANTS];
    struct starts others[WEFT_MOST_VARIANTS];
    int64_t limits[MOST_LIMITS];
};

/* The best plan of one planner under one limit. */
struct found {
    bool fits;
    int64_t step_ns, exposed_ns, bound_ns, peak_bytes, total_bytes, took_ns, first_work, work;
    int32_t nodes; /* of the certificate's tree */
    char setting[64];
};

static enum weft_status add_planners(struct bench *b, const char *list, struct weft_error *err)
{
    b->n_planners = 0;
    if (strcmp(list, "all") == 0) {
        for (const struct weft_planner *p = weft_planners(); p->name; p++)
            if (!p->solves) b->planners[b->n_planners++] = p->name;
        return WEFT_OK;
    }
    snprintf(b->names, sizeof b->names, "%s", list);
    for (char *at = strtok(b->names, ","); at; at = strtok(NULL, ",")) {
        if (b->n_planners == MOST_PLANNERS || !weft_planner_find(at, NULL))
            return weft_fail(err, WEFT_E_USAGE, "no planner \"%s\", or too many", at);
        b->planners[b->n_planners++] = at;
    }
    return WEFT_OK;
}

static enum weft_status read_arguments(int argc, char **argv, struct bench *b,
                                       struct weft_error *err)
{
    b->n_limits = 5;
    WEFT_TRY(add_planners(b, "all", err));
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--settings") == 0)
            b->settings = true;
        else if (strcmp(argv[i], "--pages") == 0)
            b->pages = true;
        else if (strcmp(argv[i], "--starts") == 0)
            b->starts = true;
        else if (strcmp(argv[i], "--share") == 0)
            b->shares = true;
        else if (strcmp(argv[i], "--set") == 0 && more && b->n_sets < MOST_SETS)
            b->sets[b->n_sets++] = argv[++i];
        else if (strcmp(argv[i], "--planners") == 0 && more)
            WEFT_TRY(add_planners(b, argv[++i], err));
        else if (strcmp(argv[i], "--ratio") == 0 && more)
            b->ratio = strtod(argv[++i], NULL);
        else if (strcmp(argv[i], "--limits") == 0 && more)
            b->n_limits = atoi(argv[++i]);
        else if (strcmp(argv[i], "--needs") == 0 && more) {
            b->needs = true;
            b->n_limits = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--at") == 0 && more) {
            b->n_limits = 1;
            b->at_bytes = atoll(argv[++i]);
        } else if (argv[i][0] != '-' && !b->path)
            b->path = argv[i];
        else
            return weft_fail(err, WEFT_E_USAGE, "unknown argument %s", argv[i]);
    }
    if (b->path && b->n_limits >= 1 && b->n_limits <= MOST_LIMITS && b->ratio >= 0) return WEFT_OK;
    return weft_fail(err, WEFT_E_USAGE,
                     "usage: planners CONFIG [--set KEY=VALUE]... [--planners A,B] [--settings] "
                     "[--starts] [--pages] [--share] [--ratio R] [--limits N | --needs N | --at "
                     "BYTES]");
}

static enum weft_status make_stages(struct bench *b, struct weft_error *err)
{
    struct weft_variant rules[WEFT_MOST_VARIANTS];
    int32_t n = weft_variants_list(b->config, rules);
    for (int32_t v = 0; v < b->n_variants; v++)
        weft_stages_finish(&b->variants[v]);
    for (b->n_variants = 0; b->n_variants < n; b->n_variants++)
        WEFT_TRY(weft_stages_create_variant(b->config, b->profile, &rules[b->n_variants],
                                            &b->variants[b->n_variants], err));
    return WEFT_OK;
}

static enum weft_status scale_collectives(struct weft_profile *profile, double factor,
                                          struct weft_error *err)
{
    for (int k = 0; k < WEFT_COLLECTIVE_COUNT; k++) {
        struct weft_curve *curve = &profile->collectives[k];
        int64_t *ns = weft_pool_array(&profile->pool, (size_t)curve->n, sizeof *ns);
        if (!ns) return weft_fail_memory(err, "a profile");
        for (int32_t i = 0; i < curve->n; i++)
            ns[i] = (int64_t)((double)curve->ns[i] * factor + 0.5);
        curve->ns = ns;
    }
    profile->agree_ns = (int64_t)((double)profile->agree_ns * factor + 0.5);
    return WEFT_OK;
}

static enum weft_status plan_one(struct bench *b, int32_t variant, const char *planner,
                                 struct found *out, struct weft_error *err)
{
    const struct weft_config *config = b->config;
    const struct weft_stages *stages = &b->variants[variant];
    struct starts *others = &b->others[variant];
    const struct weft_lower_inputs inputs = weft_lower_inputs_of(config, b->profile, stages);
    struct weft_work work = weft_work_begin(weft_clock_now_ns, config->plan.time_limit_ns);
    int64_t units = weft_work_within((int64_t)config->plan.work_limit, config->plan.time_limit_ns);
    if (b->shares) units /= b->n_variants;
    struct weft_schedule_options options = {
        .planner = planner,
        .seed = (uint64_t)config->plan.seed,
        .budget = weft_budget_of(&work, units),
        .gap = config->plan.gap,
        .solver = weft_solver_of_process(&b->solver),
        .starts = (const struct weft_plan *const *)others->plans,
        .n_starts = b->uses ? others->n : 0,
    };
    struct weft_plan *plan = NULL;
    struct weft_error refusal = {0};
    int64_t from_ns = weft_clock_now_ns();
    enum weft_status status =
        weft_schedule(stages->problem, b->pages ? &inputs : NULL, &options, &plan, NULL, &refusal);
    *out = (struct found){.took_ns = weft_clock_now_ns() - from_ns, .work = work.spent};
    if (work.rang) return weft_fail(err, WEFT_E_HANG, "%s: the time limit ended it", planner);
    if (status == WEFT_E_INFEASIBLE || status == WEFT_E_DATA) return WEFT_OK; /* no plan */
    if (status != WEFT_OK) return weft_fail(err, status, "%s: %s", planner, refusal.text);
    out->fits = true;
    out->step_ns = plan->prediction.step_ns;
    out->exposed_ns = plan->prediction.exposed_ns;
    out->peak_bytes = plan->prediction.peak_bytes;
    out->total_bytes = plan->prediction.total_bytes;
    out->bound_ns = plan->bound_ns;
    out->first_work = plan->first_work;
    out->nodes = plan->certificate.n_nodes;
    const char *colon = strchr(planner, ':');
    snprintf(out->setting, sizeof out->setting, "%s", colon ? colon + 1 : "");
    if (b->keeps && others->n < MOST_STARTS)
        others->plans[others->n++] = plan;
    else
        weft_plan_destroy(plan);
    return WEFT_OK;
}

/* Computes the bound of a period without a plan. */
static enum weft_status prove(const struct weft_problem *problem, int64_t *bound_ns,
                              struct weft_error *err)
{
    struct weft_pool pool = {0};
    struct weft_outcome outcome = {0};
    enum weft_status status = weft_prove(problem, NULL, &pool, &outcome, err);
    *bound_ns = outcome.bound_ns;
    weft_pool_finish(&pool);
    return status;
}

/* Plans one setting over all variants: returns the fastest plan and the least bound. */
static enum weft_status plan_variants(struct bench *b, const char *planner, int64_t limit_bytes,
                                      struct found *best, struct weft_error *err)
{
    int64_t took_ns = 0, bound_ns = INT64_MAX;
    *best = (struct found){0};
    for (int32_t v = 0; v < b->n_variants; v++) {
        struct found one;
        b->variants[v].problem->tiers[0].limit_bytes = limit_bytes;
        WEFT_TRY(plan_one(b, v, planner, &one, err));
        took_ns += one.took_ns;
        if (!one.fits) WEFT_TRY(prove(b->variants[v].problem, &one.bound_ns, err));
        if (one.bound_ns < bound_ns) bound_ns = one.bound_ns;
        if (one.fits && (!best->fits || one.step_ns < best->step_ns)) *best = one;
    }
    best->took_ns = took_ns;
    best->bound_ns = bound_ns < WEFT_PROBLEM_MOST ? bound_ns : 0;
    return WEFT_OK;
}

static enum weft_status plan_settings(struct bench *b, const char *planner, int64_t limit_bytes,
                                      struct found *best, struct weft_error *err)
{
    const struct weft_setting *setting =
        b->settings ? weft_planner_find(planner, NULL)->settings : NULL;
    WEFT_TRY(plan_variants(b, planner, limit_bytes, best, err));
    for (; setting && setting->name; setting++) {
        char name[128];
        struct found one;
        snprintf(name, sizeof name, "%s:%s", planner, setting->name);
        WEFT_TRY(plan_variants(b, name, limit_bytes, &one, err));
        if (one.fits && (!best->fits || one.step_ns < best->step_ns)) *best = one;
    }
    return WEFT_OK;
}

/* Chooses limits from the least that fits to the point from which greedy gains nothing more. */
static enum weft_status choose_limits(struct bench *b, struct weft_error *err)
{
    struct found found;
    int64_t low = weft_least_limit(b->variants[0].problem, 0, NULL), least = low;
    WEFT_TRY(plan_variants(b, "greedy", INT64_MAX, &found, err));
    int64_t high = found.peak_bytes, enough_ns = found.step_ns + found.step_ns / 2000;
    for (int i = 0; i < BISECTIONS && low < high - high / 500; i++) {
        int64_t middle = low + (high - low) / 2;
        WEFT_TRY(plan_variants(b, "greedy", middle, &found, err));
        if (found.fits && found.step_ns <= enough_ns)
            high = middle;
        else
            low = middle;
    }
    if (high <= least) high = least + least / 20 + 1;
    for (int32_t i = 0; i < b->n_limits; i++)
        b->limits[i] = b->n_limits == 1
                           ? high
                           : least + (int64_t)((double)(high - least) * i / (b->n_limits - 1));
    return WEFT_OK;
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Chooses limits evenly from the planners' needs, by rank and not by size: needs lie close
 * together. */
static enum weft_status choose_needs(struct bench *b, struct weft_error *err)
{
    int64_t needs[MOST_PLANNERS + 1];
    int32_t n = 0;
    needs[n++] = weft_least_limit(b->variants[0].problem, 0, NULL);
    for (int32_t p = 0; p < b->n_planners; p++) {
        struct found found;
        WEFT_TRY(plan_variants(b, b->planners[p], INT64_MAX, &found, err));
        if (found.fits) needs[n++] = found.peak_bytes;
    }
    qsort(needs, (size_t)n, sizeof *needs, by_size);
    for (int32_t i = 0; i < b->n_limits; i++)
        b->limits[i] = needs[b->n_limits == 1 ? n - 1 : i * (n - 1) / (b->n_limits - 1)];
    return WEFT_OK;
}

static void print_found(const struct bench *b, int32_t limit, const char *planner,
                        const struct found *found)
{
    printf("{\"limit\": %d, \"limit_bytes\": %lld, \"planner\": \"%s\", \"setting\": \"%s\", "
           "\"fits\": %s, \"step_ns\": %lld, \"exposed_ns\": %lld, \"bound_ns\": %lld, "
           "\"peak_bytes\": %lld, \"total_bytes\": %lld, \"took_ns\": %lld, "
           "\"work\": %lld, \"first_work\": %lld, "
           "\"nodes\": %d, \"units\": %d, \"layers\": %d}\n",
           limit, (long long)b->limits[limit], planner, found->setting,
           found->fits ? "true" : "false", (long long)found->step_ns, (long long)found->exposed_ns,
           (long long)found->bound_ns, (long long)found->peak_bytes, (long long)found->total_bytes,
           (long long)found->took_ns, (long long)found->work, (long long)found->first_work,
           found->nodes, b->variants[0].problem->n_decisions, b->config->model->n_layers);
    fflush(stdout);
}

static void drop_starts(struct bench *b)
{
    for (int32_t v = 0; v < b->n_variants; v++) {
        for (int32_t i = 0; i < b->others[v].n; i++)
            weft_plan_destroy(b->others[v].plans[i]);
        b->others[v].n = 0;
    }
}

/* Plans with ilp from all other plans, unless the plan without them is proven optimal. */
static enum weft_status plan_with_starts(struct bench *b, int32_t limit,
                                         const struct found *without, struct weft_error *err)
{
    struct found found = *without;
    b->uses = true;
    enum weft_status status = WEFT_OK;
    if (!without->fits || without->step_ns > without->bound_ns)
        status = plan_variants(b, "ilp", b->limits[limit], &found, err);
    b->uses = false;
    if (status == WEFT_OK) print_found(b, limit, "ilp+starts", &found);
    return status;
}

static enum weft_status plan_limit(struct bench *b, int32_t limit, struct weft_error *err)
{
    struct found without = {0};
    for (int32_t p = 0; p < b->n_planners; p++) {
        struct found found;
        bool ilp = strcmp(b->planners[p], "ilp") == 0;
        b->keeps = b->starts && !ilp;
        enum weft_status status = plan_settings(b, b->planners[p], b->limits[limit], &found, err);
        b->keeps = false;
        if (status != WEFT_OK) return status;
        print_found(b, limit, b->planners[p], &found);
        if (ilp) without = found;
    }
    return b->starts ? plan_with_starts(b, limit, &without, err) : WEFT_OK;
}

static enum weft_status measure(struct bench *b, struct weft_error *err)
{
    WEFT_TRY(weft_config_read(b->path, b->sets, b->n_sets, &b->config, err));
    WEFT_TRY(weft_profile_resolve(b->config, &b->profile, err));
    WEFT_TRY(make_stages(b, err));
    if (b->ratio > 0) {
        double ratio = fsdp_ratio(b->variants[0].problem);
        if (ratio <= 0)
            return weft_fail(err, WEFT_E_DATA, "%s: nothing to make a ratio of", b->path);
        WEFT_TRY(scale_collectives(b->profile, b->ratio / ratio, err));
        WEFT_TRY(make_stages(b, err));
    }
    bool pages = b->pages; /* limits are chosen for rows alone */
    b->pages = false;
    if (b->at_bytes > 0)
        b->limits[0] = b->at_bytes;
    else
        WEFT_TRY(b->needs ? choose_needs(b, err) : choose_limits(b, err));
    b->pages = pages;
    for (int32_t l = 0; l < b->n_limits; l++) {
        enum weft_status status = plan_limit(b, l, err);
        drop_starts(b);
        if (status != WEFT_OK) return status;
    }
    return WEFT_OK;
}

int main(int argc, char **argv)
{
    static struct bench bench;
    static struct weft_error err;
    signal(SIGPIPE, SIG_IGN); /* a solver that ended must not end this program */
    enum weft_status status = read_arguments(argc, argv, &bench, &err);
    if (status == WEFT_OK) status = measure(&bench, &err);
    if (status != WEFT_OK) fprintf(stderr, "planners: %s\n", err.text);
    for (int32_t v = 0; v < bench.n_variants; v++)
        weft_stages_finish(&bench.variants[v]);
    weft_profile_destroy(bench.profile);
    weft_config_destroy(bench.config);
    return weft_status_exit_code(status);
}
