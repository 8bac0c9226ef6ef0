/* SPDX-License-Identifier: Apache-2.0 */
/* Slow ranks are named, and no rank is named without reason. Ranks are processes. */
#include "runtime/train/pace.h"

#include <string.h>

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
        OK(weft_pace_note(&pace, comm, (int64_t)ns, true, &found, &err));
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

/* Traffic of a window, as if three hosts of two ranks were apart. A window is slow (s), fine (f),
 * or has its bytes before a pause: of the slow link late ones (p), or all of them (m). */
enum { NODES = 3, PER_NODE = 2, MB = 1000000, USUAL_NS = 2, PLANNED_NS = 1000 * MB };

static struct weft_comm_traffic fake_traffic[NODES * PER_NODE];
static int64_t fake_moving_ns;

void __real_weft_comm_take_traffic(struct weft_comm *comm, struct weft_comm_traffic *traffic,
                                   int64_t *moving_ns);
void __wrap_weft_comm_take_traffic(struct weft_comm *comm, struct weft_comm_traffic *traffic,
                                   int64_t *moving_ns);
void __wrap_weft_comm_take_traffic(struct weft_comm *comm, struct weft_comm_traffic *traffic,
                                   int64_t *moving_ns)
{
    __real_weft_comm_take_traffic(comm, traffic, moving_ns);
    if (weft_comm_ranks(comm) < NODES * PER_NODE) return;
    memcpy(traffic, fake_traffic, sizeof fake_traffic);
    *moving_ns = fake_moving_ns;
}

/* Bytes of each other node's ranks: `usual` MB, but `slow` MB between nodes 0 and 1. */
static void set_traffic(int32_t rank, int64_t usual, int64_t slow, int64_t times)
{
    const int32_t node = rank / PER_NODE;
    for (int32_t p = 0; p < NODES * PER_NODE; p++) {
        const int32_t other = p / PER_NODE;
        const bool is_slow = node + other == 1;
        const int64_t bytes = node == other ? 0 : (is_slow ? slow : usual) * MB;
        fake_traffic[p] = (struct weft_comm_traffic){
            .bytes = bytes, .ns = USUAL_NS * bytes * (is_slow ? times : 1)};
    }
}

struct windows {
    const char *kinds;
    int64_t planned_ns; /* of a step */
    int32_t slow_rank;  /* in compute; -1: none */
    enum weft_link_fault fault;
    const char *warned; /* windows, by letters from a on */
};

static int note_windows(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct windows *windows = argument;
    struct weft_comm_options options = ranks_options(rank, ranks);
    struct weft_comm *comm = NULL;
    struct weft_pace pace;
    OK(weft_comm_open("local", &options, &comm, &err));
    weft_pace_init(&pace, 0, PER_NODE, windows->planned_ns);
    for (int w = 0; windows->kinds[w] != '\0'; w++) {
        const char kind = windows->kinds[w];
        struct weft_pace_finding found;
        fake_moving_ns = 0;
        for (int step = 0; step < WEFT_PACE_STEPS; step++) {
            if (step == 3 && (kind == 'p' || kind == 'm')) {
                set_traffic(rank, 10, kind == 'p' ? 90 : 10, 1);
                fake_moving_ns = kind == 'm' ? 9 * WEFT_PACE_STEPS * windows->planned_ns : 0;
                OK(weft_pace_pause(&pace, comm, &err));
            }
            if (kind == 'p' || kind == 'm')
                set_traffic(rank, 90, kind == 'p' ? 10 : 90, 1);
            else
                set_traffic(rank, 100, 100, kind == 's' ? 10 : 1);
            fake_moving_ns = kind == 'm' ? WEFT_PACE_STEPS * windows->planned_ns : 0;
            OK(weft_pace_note(&pace, comm, rank == windows->slow_rank ? 100 * MB : MB, true, &found,
                              &err));
        }
        const bool warns = strchr(windows->warned, 'a' + w) != NULL;
        CHECK(found.link.fault == (warns ? windows->fault : WEFT_LINK_FINE), "%s: fault %d in %d",
              windows->kinds, (int)found.link.fault, w);
        if (warns && windows->fault == WEFT_LINK_OF_PAIR)
            CHECK(found.link.from == 0 && found.link.to == 1, "of %d and %d", found.link.from,
                  found.link.to);
    }
    weft_pace_finish(&pace);
    weft_comm_close(comm);
    return 0;
}

/* Two windows of three warn, and then ever more rarely. A pause loses nothing. */
static void check_windows(void)
{
    static const struct windows all[] = {
        {"ffff", 0, -1, WEFT_LINK_FINE, ""},    {"ssssssssss", 0, -1, WEFT_LINK_OF_PAIR, "bh"},
        {"sfs", 0, -1, WEFT_LINK_OF_PAIR, "c"}, {"sffs", 0, -1, WEFT_LINK_OF_PAIR, ""},
        {"pppp", 0, -1, WEFT_LINK_FINE, ""},    {"mm", PLANNED_NS, -1, WEFT_LINK_OF_ALL, "b"},
        {"ssss", 0, 2, WEFT_LINK_FINE, ""}, /* a rank of node 1 hardly computes */
        {"ssss", 0, 4, WEFT_LINK_OF_PAIR, "b"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct windows windows = all[i];
        CHECK(ranks_run(NODES * PER_NODE, note_windows, &windows) == 0, "%s, slow rank %d",
              windows.kinds, windows.slow_rank);
    }
}

RANKS_TEST(pace)
{
    check_windows();
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
