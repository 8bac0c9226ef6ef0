/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the time that ranks take to map their arenas: map CONFIG [path.key=value...]. It plans
 * and starts the config's ranks. Each rank maps its arena and the parts of its peers' arenas that
 * it reads, several times.
 *
 * Prints one line of JSON of rank 0, with the least times. "all" is mostly the allocation of
 * memory. "view" maps the same memory once more and shows the cost of addresses alone. CPU times do
 * not depend on other processes. */
#define _GNU_SOURCE /* for memfd_create */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "library/session.h"
#include "program/mappings.h"
#include "runtime/arena/view.h"
#include "runtime/exec/exec.h"

enum { MOST_RANKS = 16, ROUNDS = 5 };

struct bench {
    struct weft_session session;
    int32_t rank, ranks;
    int control_fd, arena_fds[MOST_RANKS];
    struct weft_arena_mapping *mappings; /* the program's mappings, for a view */
    int64_t map_ns, map_cpu_ns, view_ns, view_cpu_ns;
};

static int64_t cpu_ns(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * INT64_C(1000000000) +
           (use.ru_utime.tv_usec + use.ru_stime.tv_usec) * INT64_C(1000);
}

static void keep_least(int64_t ns, int64_t *least)
{
    if (*least == 0 || ns < *least) *least = ns;
}

static enum weft_status share_memory(struct bench *b, struct weft_error *err)
{
    const size_t bytes = weft_comm_control_bytes(b->ranks);
    b->control_fd = memfd_create("control", MFD_CLOEXEC);
    if (b->control_fd < 0 || ftruncate(b->control_fd, (off_t)bytes) != 0)
        return weft_fail(err, WEFT_E_SYSTEM, "no shared memory");
    for (int32_t r = 0; r < b->ranks; r++) {
        b->arena_fds[r] = memfd_create("arena", MFD_CLOEXEC);
        if (b->arena_fds[r] < 0) return weft_fail(err, WEFT_E_SYSTEM, "no shared memory");
    }
    return WEFT_OK;
}

static enum weft_status prepare(struct bench *b, const char *path, const char *const *sets,
                                int32_t n_sets, struct weft_error *err)
{
    struct weft_session *session = &b->session;
    WEFT_TRY(weft_config_read(path, sets, n_sets, &session->config, err));
    WEFT_TRY(weft_session_stage(session, NULL, err));
    WEFT_TRY(weft_session_plan(session, NULL, err));
    const struct weft_paging *paging = session->program->paging;
    b->ranks = (int32_t)session->config->cluster.ranks;
    if (b->ranks > MOST_RANKS) return weft_fail(err, WEFT_E_USAGE, "at most %d ranks", MOST_RANKS);
    b->mappings = calloc((size_t)paging->n_mappings + 1, sizeof *b->mappings);
    if (b->mappings == NULL) return weft_fail_memory(err, "mappings");
    for (int32_t i = 0; i < paging->n_mappings; i++) {
        const struct weft_page_mapping *from = &paging->mappings[i];
        b->mappings[i] =
            (struct weft_arena_mapping){from->at, from->pages.first, from->pages.count};
    }
    return share_memory(b, err);
}

/* Maps the arena's memory once more, with the same shape. */
static enum weft_status map_view(struct bench *b, struct weft_error *err)
{
    const struct weft_paging *paging = b->session.program->paging;
    const struct weft_arena_shape shape = {paging->span_bytes, paging->page_bytes, paging->n_pages,
                                           b->mappings, paging->n_mappings};
    const struct weft_arena_view_options options = {
        .fd = b->arena_fds[b->rank], .shape = &shape, .writes = true, .populates = true};
    struct weft_arena_view view = {0};
    const int64_t start_ns = weft_clock_now_ns(), start_cpu_ns = cpu_ns();
    WEFT_TRY(weft_arena_view_map(&view, &options, err));
    keep_least(cpu_ns() - start_cpu_ns, &b->view_cpu_ns);
    keep_least(weft_clock_now_ns() - start_ns, &b->view_ns);
    weft_arena_view_unmap(&view);
    return WEFT_OK;
}

static enum weft_status run_rounds(struct bench *b, struct weft_comm *comm, struct weft_error *err)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct weft_arena *arena = NULL;
        const int64_t start_ns = weft_clock_now_ns(), start_cpu_ns = cpu_ns();
        WEFT_TRY(weft_exec_map_arena(comm, b->session.program, false, &arena, err));
        keep_least(cpu_ns() - start_cpu_ns, &b->map_cpu_ns);
        keep_least(weft_clock_now_ns() - start_ns, &b->map_ns);
        WEFT_TRY(map_view(b, err));
        weft_comm_unmap_arena(comm);
    }
    return WEFT_OK;
}

static enum weft_status print(const struct bench *b, struct weft_error *err)
{
    const struct weft_program *program = b->session.program;
    struct weft_mappings count;
    WEFT_TRY(weft_program_count_mappings(program, program->paging, b->ranks, &count, err));
    printf("{\"figure\": \"map\", \"ranks\": %d, \"arena_mib\": %lld, \"page_kib\": %lld, "
           "\"mappings\": %lld, \"all_ms\": %.1f, \"all_cpu_ms\": %.1f, \"view_ms\": %.2f, "
           "\"view_cpu_ms\": %.2f}\n",
           b->ranks, (long long)(program->arena_bytes >> 20),
           (long long)(program->paging->page_bytes >> 10), (long long)count.all,
           (double)b->map_ns / 1e6, (double)b->map_cpu_ns / 1e6, (double)b->view_ns / 1e6,
           (double)b->view_cpu_ns / 1e6);
    return WEFT_OK;
}

static int run_rank(struct bench *b)
{
    struct weft_error err = {0};
    struct weft_comm *comm = NULL;
    const struct weft_comm_options options = {
        .rank = b->rank,
        .ranks = b->ranks,
        .local = {.control_fd = b->control_fd, .arena_fds = b->arena_fds},
        .timeout_ns = INT64_C(60) * 1000000000,
    };
    enum weft_status status = weft_comm_open("local", &options, &comm, &err);
    if (status == WEFT_OK) status = run_rounds(b, comm, &err);
    if (status == WEFT_OK && b->rank == 0) status = print(b, &err);
    if (status != WEFT_OK) fprintf(stderr, "map: rank %d: %s\n", b->rank, err.text);
    weft_comm_close(comm);
    fflush(NULL);
    return weft_status_exit_code(status);
}

static enum weft_status run_ranks(struct bench *b, struct weft_error *err)
{
    pid_t pids[MOST_RANKS];
    enum weft_status status = WEFT_OK;
    for (b->rank = 0; b->rank < b->ranks; b->rank++) {
        pids[b->rank] = fork();
        if (pids[b->rank] < 0) return weft_fail(err, WEFT_E_SYSTEM, "fork failed");
        if (pids[b->rank] > 0) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(run_rank(b));
    }
    for (int32_t r = 0; r < b->ranks; r++) {
        int outcome = 0;
        if (waitpid(pids[r], &outcome, 0) != pids[r] || outcome != 0)
            status = weft_fail(err, WEFT_E_LOST, "rank %d failed", r);
    }
    return status;
}

int main(int argc, char **argv)
{
    static struct bench bench;
    static struct weft_error err;
    enum weft_status status = WEFT_E_USAGE;
    if (argc < 2) {
        weft_fail(&err, status, "usage: map CONFIG [path.key=value...]");
    } else {
        status = prepare(&bench, argv[1], (const char *const *)argv + 2, argc - 2, &err);
    }
    if (status == WEFT_OK) status = run_ranks(&bench, &err);
    if (status != WEFT_OK) fprintf(stderr, "map: %s\n", err.text);
    free(bench.mappings);
    weft_session_close(&bench.session);
    return weft_status_exit_code(status);
}
