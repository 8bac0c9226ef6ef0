/* SPDX-License-Identifier: Apache-2.0 */
/* All work next to a rank's steps, under ThreadSanitizer. Ranks are threads, each with two
 * streams, a reader that fills the next batch, and a saver that writes and commits in the
 * background. Evaluations run between steps. Runs also end in the middle: by a failure, by numbers
 * that are not finite, by a signal. Without the sanitizer it still checks their ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/failpoint.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/directory.h"
#include "runtime/measure/measure.h"
#include "runtime/train/train.h"
#include "tests/runtime/comm/threads.h"
#include "tests/runtime/exec/job.h"

enum { RANKS = 2, PATH_BYTES = 96 };

struct task {
    const struct job *job;
    const char *checkpoints, *resume;
    struct weft_failpoint failpoint;
    int64_t stop_step; /* rank 1 is told to stop after this step; 0: not */
    atomic_int stops[RANKS];
    enum weft_status status[RANKS];
    struct weft_train_result results[RANKS];
};

struct rank_context {
    struct task *task;
    int32_t rank;
};

static enum weft_status on_step(void *context, const struct weft_step_line *line,
                                const struct weft_trace *trace, struct weft_error *err)
{
    const struct rank_context *c = context;
    (void)trace;
    (void)err;
    if (c->rank == 1 && line->step == c->task->stop_step) atomic_store(&c->task->stops[1], 1);
    return WEFT_OK;
}

static int train(int32_t rank, const struct ranks *ranks, void *argument)
{
    struct task *task = argument;
    const struct job *job = task->job;
    struct rank_context context = {task, rank};
    struct weft_error why = {0};
    struct weft_comm_options comm = ranks_options(rank, ranks);
    struct weft_train_options options = {
        .config = job->config,
        .plan = job->plan,
        .program = job->program,
        .shards = job->stages.shards,
        .failpoint = &task->failpoint,
        .on_step = on_step,
        .context = &context,
        .checkpoints = task->checkpoints,
        .resume = task->resume,
        .stop = &task->stops[rank],
    };
    job_open_kernels(job, &options.nn);
    OK(weft_device_open("cpu", WEFT_CLOCK_WALL, &options.device, &err));
    OK(weft_comm_open("local", &comm, &options.comm, &err));
    task->status[rank] = weft_train_run(&options, &task->results[rank], &why);
    weft_comm_close(options.comm);
    weft_nn_close(options.nn);
    weft_device_close(options.device);
    return 0;
}

/* Ends on every rank as expected, or, when one rank failed by itself, as the other's loss. */
static void run(struct task *task, const char *failpoint, enum weft_status expected)
{
    OK(weft_failpoint_parse(failpoint, &task->failpoint, &err));
    CHECK(threads_run(RANKS, train, task) == 0, "a rank ended otherwise");
    for (int32_t r = 0; r < RANKS; r++)
        CHECK(task->status[r] == expected ||
                  (expected == WEFT_E_INTERNAL && task->status[r] == WEFT_E_LOST),
              "rank %d: status %d, not %d (%s)", r, (int)task->status[r], (int)expected,
              failpoint == NULL ? "no failpoint" : failpoint);
}

static void remove_run(const char *directory)
{
    char *latest = NULL;
    while (weft_checkpoint_latest(directory, &latest, NULL) == WEFT_OK && latest != NULL) {
        weft_checkpoint_remove(&weft_sink_system, latest);
        free(latest);
    }
    weft_checkpoint_clear(&weft_sink_system, directory);
    CHECK(weft_sink_system.remove_directory(NULL, directory) == 0, "%s is not empty", directory);
}

/* A run of 12 steps that saves after every third, resumed from earlier runs' ends. */
static void check_ends(const struct job *job, const char *directory)
{
    static const struct {
        const char *failpoint;
        int64_t stop_step;
        enum weft_status expected;
    } ends[] = {
        {"backward:rank=1:step=4:do=error", 0, WEFT_E_INTERNAL},
        {"forward:rank=0:step=7:do=error", 0, WEFT_E_INTERNAL},
        {"all_gather:rank=1:step=5:do=error", 0, WEFT_E_INTERNAL},
        {"backward:rank=1:step=7:do=nan", 0, WEFT_E_NUMERIC},
        {NULL, 4, WEFT_OK},
    };
    struct task whole = {.job = job, .checkpoints = directory};
    run(&whole, NULL, WEFT_OK);
    CHECK(whole.results[0].steps_done == 12 && whole.results[0].saved_step == 12, "not all steps");
    remove_run(directory);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct task cut = {.job = job, .checkpoints = directory, .stop_step = ends[i].stop_step};
        char *latest = NULL;
        run(&cut, ends[i].failpoint, ends[i].expected);
        OK(weft_checkpoint_latest(directory, &latest, &err));
        struct task rest = {.job = job, .checkpoints = directory, .resume = latest};
        run(&rest, NULL, WEFT_OK);
        for (int32_t r = 0; r < RANKS; r++)
            CHECK(weft_hash_equal(rest.results[r].fingerprint, whole.results[0].fingerprint),
                  "rank %d has other parameters after end %d", r, (int)i);
        free(latest);
        remove_run(directory);
    }
}

int main(void)
{
    char directory[PATH_BYTES] = "/tmp/weft-train-race-XXXXXX", checkpoints[PATH_BYTES + 16];
    CHECK(mkdtemp(directory) != NULL, "no directory to save to");
    /* Under a sanitizer's malloc nobody has used the C library's, which sets itself up when it is
     * first trimmed, and not safely by two threads at once. Ranks are processes elsewhere. */
    weft_measure_trim();
    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", directory);
    for (int rotated = 0; rotated < 2; rotated++) {
        const char *overrides[] = {"cluster.ranks=2",
                                   "plan.blocks=2",
                                   "cluster.emulate=false",
                                   "cluster.memory_limit=8GiB",
                                   "train.steps=12",
                                   "train.validation={\"share\":0.1,\"every\":5,\"samples\":9}",
                                   "train.checkpoint={\"every\":3,\"at_end\":true}",
                                   rotated ? "train.clip_norm=0" : "train.optimizer.type=lamb",
                                   NULL};
        struct job job;
        job_open(&job, "configs/runs/gpt-odd.json", overrides);
        job_plan_policy(&job, WEFT_POLICY_FSDP, rotated);
        job_page_in_line(&job);
        check_ends(&job, checkpoints);
        job_close(&job);
    }
    CHECK(weft_sink_system.remove_directory(NULL, directory) == 0, "%s is left", directory);
    printf("runs with lamb, and without clipping: all ended and went on as they should\n");
    return 0;
}
