/* SPDX-License-Identifier: Apache-2.0 */
/* Pages change no bit. On random pages, different in each table, parameters equal those of a run
 * without shared pages. This holds for all policies, numbers of ranks and sizes of pages. It also
 * holds if the run settles, evaluates or restarts after an odd or even number of periods. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/mappings.h"
#include "runtime/exec/parts.h"
#include "runtime/exec/state.h"
#include "tests/effort.h"
#include "tests/runtime/exec/job.h"
#include "tests/runtime/exec/pages.h"

enum { STEPS = 5, PLANS = WEFT_POLICY_COUNT + 1 };

/* The actions of a run after each step, one bit a step. */
struct way {
    const char *name;
    unsigned settles, evaluates, resumes;
    bool poison;
};
static const struct way ways[] = {
    {"straight", 0, 0, 0, false},
    {"poisoned", 0, 0, 0, true},
    {"evaluated", 1 << 1 | 1 << 4, 1 << 1 | 1 << 4, 0, true},
    {"settled", 1 << 2 | 1 << 3, 0, 0, true},
    {"resumed", 1 << 1 | 1 << 3, 0, 1 << 1 | 1 << 3, false},
    {"resumed, behind an even one", 1 << 2, 1 << 2, 1 << 2, true},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

struct task {
    const struct job *job;
    const struct way *way;
    struct weft_hash *fingerprint; /* shared: of rank 0 */
};

/* All that is held, in the order of the walk: read, or put back. */
static float *copy_state(struct job_rank *r, float *held)
{
    struct weft_state_cursor cursor = {.held = true};
    struct weft_state_access *access;
    struct weft_state_piece piece;
    const bool reads = held == NULL;
    int64_t n = 0, at = 0;
    while (weft_exec_state_next(r->exec, &cursor, &piece))
        n += piece.count;
    if (reads) held = calloc((size_t)n, sizeof *held);
    CHECK(held != NULL, "out of memory");
    OK(weft_exec_state_open(r->exec, &access, &err));
    cursor = (struct weft_state_cursor){.held = true};
    while (weft_exec_state_next(r->exec, &cursor, &piece)) {
        if (reads) OK(weft_exec_state_read(access, &piece, 0, piece.count, held + at, &err));
        if (!reads) OK(weft_exec_state_write(access, &piece, 0, piece.count, held + at, &err));
        at += piece.count;
    }
    weft_exec_state_close(access);
    return held;
}

/* Another executor goes on from this one's state. */
static void resume(struct job_rank *r)
{
    const struct weft_loss_scale scale = weft_exec_loss_scale(r->exec);
    float *held = copy_state(r, NULL);
    job_rank_unload(r);
    job_rank_load(r);
    OK(weft_exec_state_clear(r->exec, &err));
    copy_state(r, held);
    OK(weft_exec_state_filled(r->exec, &err));
    weft_exec_set_loss_scale(r->exec, scale);
    free(held);
}

/* Stretches of all arenas that the system has for this process. */
static int64_t count_stretches(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    int64_t n = 0;
    CHECK(maps != NULL, "maps");
    while (fgets(line, sizeof line, maps) != NULL)
        n += strstr(line, "/memfd:arena") != NULL;
    fclose(maps);
    return n;
}

/* Compares the mappings with the program's forecast. */
static void check_mappings(const struct job_rank *r, int32_t n_ranks)
{
    const struct weft_paging *paging = r->exec->places.paging;
    struct weft_mappings count;
    OK(weft_program_count_mappings(r->job->program, paging, n_ranks, &count, &err));
    CHECK(weft_arena_mappings(r->arena) == count.own, "%lld mappings, not %lld",
          (long long)weft_arena_mappings(r->arena), (long long)count.own);
    const int64_t stretches = count.own_stretches + (n_ranks - 1) * count.of_peer_stretches;
    CHECK(count_stretches() == stretches, "%lld stretches, not %lld", (long long)count_stretches(),
          (long long)stretches);
}

static int train(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    const struct way *way = task->way;
    struct job_rank r;
    double loss;
    job_rank_open(&r, task->job, rank, ranks, WEFT_CLOCK_VIRTUAL, way->poison);
    check_mappings(&r, ranks->n);
    for (int64_t step = 1; step <= STEPS; step++) {
        const struct weft_step_result result = job_rank_step(&r, step);
        CHECK(result.finite, "step %lld: loss %g", (long long)step, result.loss);
        if (way->settles >> step & 1) OK(weft_exec_settle(r.exec, &err));
        if (way->evaluates >> step & 1)
            OK(weft_exec_evaluate(r.exec, r.input, r.targets, &loss, &err));
        if (way->resumes >> step & 1) resume(&r);
    }
    const struct weft_hash fingerprint = job_rank_end(&r);
    if (rank == 0) *task->fingerprint = fingerprint;
    return 0;
}

static struct weft_hash run(const struct job *job, const struct way *way, const char *what,
                            struct weft_hash *shared)
{
    struct task task = {job, way, shared};
    CHECK(ranks_run((int32_t)job->config->cluster.ranks, train, &task) == 0, "%s, %s", what,
          way->name);
    return *shared;
}

struct config {
    const char *path, *override;
};
static const struct config configs[] = {
    {"gpt-tiny", NULL},
    {"gpt-odd", "train.clip_norm=0.5"},
    {"gpt-frozen", "train.optimizer.type=lamb"},
    {"gpt-classifier", NULL},
    {"mlp-tiny", "train.precision={\"compute\":\"bf16\"}"},
    {"gpt-accumulate", "train.reduce=step"},
    {"gpt-accumulate", "train.reduce=micro_step"},
    {"gpt-no-clip", "plan.update_ahead=1"},
    {"gpt-no-clip", "train={\"steps\":8,\"micro_batch\":2,\"seq_len\":24,\"grad_accum\":2,"
                    "\"clip_norm\":0,\"data\":\"/usr/share/common-licenses/GPL-3\"}"},
    {"gpt-odd", "train={\"steps\":8,\"micro_batch\":2,\"seq_len\":24,\"clip_norm\":0,"
                "\"data\":\"/usr/share/common-licenses/GPL-3\",\"optimizer\":{\"type\":"
                "\"lamb\"}}"},
};
enum { CONFIGS = sizeof configs / sizeof configs[0] };

/* Sizes of pages and ways take turns. */
static int check_config(int c, int32_t ranks, struct weft_hash *shared)
{
    static const int64_t pages[] = {4096, 65536, 2 << 20};
    char path[64], set_ranks[64], what[160];
    struct weft_hash first = {0};
    struct job job;
    int turn = 5 * c + ranks, two_tables = 0;
    snprintf(path, sizeof path, "configs/runs/%s.json", configs[c].path);
    snprintf(set_ranks, sizeof set_ranks, "cluster.ranks=%d", ranks);
    const char *overrides[] = {set_ranks, "cluster.emulate=false", "plan.blocks=2",
                               configs[c].override, NULL};
    job_open(&job, path, overrides);
    for (int plan = 0; plan < PLANS; plan++) {
        if (plan < WEFT_POLICY_COUNT) {
            job_plan_policy(&job, (enum weft_policy)plan, plan % 2 == 0);
        } else {
            job_plan_random(&job, (uint64_t)(10 * c + ranks));
        }
        if (plan == 0) {
            job_page(&job, 4096, 1, false);
            first = run(&job, &ways[0], path, shared);
        }
        const struct way *way = &ways[turn % WAYS];
        const int64_t page_bytes = pages[turn / 2 % 3];
        job_page(&job, page_bytes, turn % 7 == 6 ? 1 : WEFT_PAGE_TABLES, true);
        if (turn % 4 == 3) job_page_as_planned(&job);
        two_tables += job.program->paging->n_tables == 2;
        snprintf(what, sizeof what, "%s, %s, %d ranks, plan %d, pages of %lld", path,
                 configs[c].override != NULL ? configs[c].override : "", ranks, plan,
                 (long long)job.program->paging->page_bytes);
        const struct weft_hash hash = run(&job, way, what, shared);
        CHECK(weft_hash_equal(hash, first), "%s, %s: other parameters", what, way->name);
        turn++;
    }
    job_close(&job);
    return two_tables;
}

RANKS_TEST(place)
{
    struct weft_hash *shared = job_shared(sizeof *shared);
    int two_tables = 0;
    for (int c = 0; c < CONFIGS; c++) {
        for (int32_t ranks = 1; ranks <= MOST_RANKS; ranks++) {
            const bool is_second = ranks == 1 + (c + 2) % MOST_RANKS;
            if (ranks == 1 + c % MOST_RANKS || TEST_CASES_OF(is_second, false, false))
                two_tables += check_config(c, ranks, shared);
        }
    }
    printf("%d configs: the same bits, %d times in two tables of pages\n", CONFIGS, two_tables);
    return 0;
}
