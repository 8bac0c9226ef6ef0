/* Slow ranks are named, and no rank is named without reason. Ranks are processes. */
#include "runtime/train/pace.h"

#include "base/rng.h"
#include "tests/runtime/exec/job.h"

enum { STEPS = 400 };

struct task {
    int32_t slow_rank; /* -1: none */
    double times;
    int64_t from;  /* step */
    int64_t noise; /* every so many steps one that takes 50 times as long; 0: none */
    int64_t warnings;
};

static int note(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    struct weft_comm_options options = ranks_options(rank, ranks);
    struct weft_comm *comm = NULL;
    struct weft_pace pace;
    int64_t warnings = 0;
    OK(weft_comm_open("local", &options, &comm, &err));
    weft_pace_init(&pace, 0, ranks->n, 0);
    for (int64_t step = 1; step <= STEPS; step++) {
        double ns = 1e6 * (1 + weft_rng_uniform(1, (uint64_t)rank, (uint64_t)step));
        struct weft_pace_finding found;
        if (rank == task->slow_rank && step >= task->from) ns *= task->times;
        if (task->noise > 0 && (step + rank) % task->noise == 0) ns *= 50;
        OK(weft_pace_note(&pace, comm, (int64_t)ns, &found, &err));
        CHECK(found.link.fault == WEFT_LINK_FINE, "local ranks have no links");
        if (found.slow < 0) continue;
        warnings++;
        CHECK(found.slow == task->slow_rank, "rank %d is named", found.slow);
        CHECK(found.times > 0.7 * task->times && found.times < 1.5 * task->times, "%g times",
              found.times);
        CHECK(step >= task->from + WEFT_PACE_STEPS, "step %lld", (long long)step);
    }
    CHECK(warnings == task->warnings, "%lld warnings", (long long)warnings);
    weft_pace_finish(&pace);
    weft_comm_close(comm);
    return 0;
}

static void run(int32_t ranks, struct task task)
{
    CHECK(ranks_run(ranks, note, &task) == 0, "%d ranks, slow rank %d", ranks, task.slow_rank);
}

RANKS_TEST(pace)
{
    run(1, (struct task){.slow_rank = -1});
    for (int32_t ranks = 2; ranks <= 4; ranks++) {
        run(ranks, (struct task){.slow_rank = -1});
        run(ranks, (struct task){.slow_rank = -1, .noise = 5});
        run(ranks, (struct task){.slow_rank = 0, .times = 2});
        /* At once and then ever more rarely: after steps 32 and 128 of the rest. */
        run(ranks, (struct task){.slow_rank = ranks - 1, .times = 10, .warnings = 2});
        run(ranks, (struct task){.slow_rank = 1, .times = 10, .from = 300, .warnings = 1});
    }
    return 0;
}
