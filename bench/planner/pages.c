/* SPDX-License-Identifier: Apache-2.0 */
/* Plans a config with ilp at limits above its least one, and pages the programs: pages CONFIG
 * [--set path.key=value]... [--at BYTES] [--page BYTES]...
 *
 * Limits are 1.0, 1.01, 1.03, 1.06 and 1.12 times the least, and apply to rows alone. Prints one
 * line of JSON per limit and page size: pages, pages and bytes of the fullest slot, and the time of
 * paging. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cli/process/solver.h"
#include "problem/stages.h"
#include "program/paging.h"
#include "scheduler/digest/digest.h"
#include "scheduler/schedule.h"

enum { MOST_SETS = 32, MOST_SIZES = 8 };

struct pages_bench {
    const char *path, *sets[MOST_SETS];
    int32_t n_sets, n_sizes;
    int64_t sizes[MOST_SIZES], at_bytes;
    struct weft_solver_process solver;
    struct weft_config *config;
    struct weft_profile *profile;
    struct weft_stages stages;
};

static double cpu_s(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static enum weft_status read_arguments(int argc, char **argv, struct pages_bench *b,
                                       struct weft_error *err)
{
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--set") == 0 && more && b->n_sets < MOST_SETS) {
            b->sets[b->n_sets++] = argv[++i];
        } else if (strcmp(argv[i], "--at") == 0 && more) {
            b->at_bytes = atoll(argv[++i]);
        } else if (strcmp(argv[i], "--page") == 0 && more && b->n_sizes < MOST_SIZES) {
            b->sizes[b->n_sizes++] = atoll(argv[++i]);
        } else if (argv[i][0] != '-' && b->path == NULL) {
            b->path = argv[i];
        } else {
            return weft_fail(err, WEFT_E_USAGE, "unknown argument %s", argv[i]);
        }
    }
    if (b->path == NULL) return weft_fail(err, WEFT_E_USAGE, "usage: pages CONFIG [--at BYTES]");
    if (b->n_sizes == 0) {
        b->sizes[b->n_sizes++] = WEFT_PAGE_LEAST_BYTES;
        b->sizes[b->n_sizes++] = 64 << 10;
        b->sizes[b->n_sizes++] = WEFT_PAGE_LARGE_BYTES;
    }
    return WEFT_OK;
}

static enum weft_status print_paging(const struct pages_bench *b, double factor,
                                     const struct weft_program *program, int64_t page_bytes,
                                     struct weft_error *err)
{
    struct weft_paging *paging = NULL;
    double from_s = cpu_s();
    struct weft_work work = weft_work_begin(NULL, 0);
    WEFT_TRY(weft_program_page(program, page_bytes, 0, NULL, &work, &paging, err));
    double took_s = cpu_s() - from_s;
    printf("{\"config\": \"%s\", \"factor\": %.2f, \"page_bytes\": %lld, \"n_pages\": %d, "
           "\"row_pages\": %d, \"row_bytes\": %lld, \"over_row\": %.6f, \"n_tables\": %d, "
           "\"n_mappings\": %d, \"work\": %lld, \"took_s\": %.4f}\n",
           b->path, factor, (long long)page_bytes, paging->n_pages, paging->row_pages,
           (long long)program->live_bytes,
           (double)paging->n_pages * (double)page_bytes / (double)program->live_bytes,
           paging->n_tables, paging->n_mappings, (long long)work.spent, took_s);
    fflush(stdout);
    weft_paging_destroy(paging);
    return WEFT_OK;
}

static enum weft_status page_limit(struct pages_bench *b, double factor, int64_t limit_bytes,
                                   struct weft_error *err)
{
    struct weft_lower_inputs inputs = weft_lower_inputs_of(b->config, b->profile, &b->stages);
    struct weft_work work = weft_work_begin(weft_clock_now_ns, b->config->plan.time_limit_ns);
    struct weft_schedule_options options = {
        .planner = "ilp",
        .budget = weft_budget_of(&work, weft_work_within((int64_t)b->config->plan.work_limit,
                                                         b->config->plan.time_limit_ns)),
        .gap = b->config->plan.gap,
        .solver = weft_solver_of_process(&b->solver),
    };
    struct weft_plan *plan = NULL;
    struct weft_program *program = NULL;
    enum weft_status status;
    inputs.page_bytes = WEFT_PAGE_LARGE_BYTES; /* page size of the program's own paging */
    b->stages.problem->tiers[0].limit_bytes = limit_bytes;
    WEFT_TRY_GOTO(done, weft_schedule(b->stages.problem, NULL, &options, &plan, NULL, err));
    WEFT_TRY_GOTO(done, weft_program_lower(plan, &inputs, &program, err));
    for (int32_t s = 0; s < b->n_sizes; s++)
        WEFT_TRY_GOTO(done, print_paging(b, factor, program, b->sizes[s], err));
done:
    weft_program_destroy(program);
    weft_plan_destroy(plan);
    return status;
}

static enum weft_status page_limits(struct pages_bench *b, struct weft_error *err)
{
    static const double factors[] = {1.0, 1.01, 1.03, 1.06, 1.12};
    WEFT_TRY(weft_config_read(b->path, b->sets, b->n_sets, &b->config, err));
    WEFT_TRY(weft_profile_resolve(b->config, &b->profile, err));
    WEFT_TRY(weft_stages_create(b->config, b->profile, &b->stages, err));
    if (b->at_bytes > 0) return page_limit(b, 0, b->at_bytes, err);
    int64_t least = weft_least_limit(b->stages.problem, 0, NULL);
    for (size_t f = 0; f < sizeof factors / sizeof *factors; f++)
        WEFT_TRY(page_limit(b, factors[f], (int64_t)((double)least * factors[f]), err));
    return WEFT_OK;
}

int main(int argc, char **argv)
{
    static struct pages_bench bench;
    static struct weft_error err;
    signal(SIGPIPE, SIG_IGN); /* a solver that ended must not end this program */
    enum weft_status status = read_arguments(argc, argv, &bench, &err);
    if (status == WEFT_OK) status = page_limits(&bench, &err);
    if (status != WEFT_OK) fprintf(stderr, "pages: %s\n", err.text);
    weft_stages_finish(&bench.stages);
    weft_profile_destroy(bench.profile);
    weft_config_destroy(bench.config);
    return weft_status_exit_code(status);
}
