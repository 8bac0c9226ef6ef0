/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* syscall, gettid */
#include <errno.h>
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "memory_model/moves.h"
#include "runtime/comm/branch.h"
#include "runtime/exec/average.h"
#include "runtime/exec/offloaded.h"
#include "runtime/exec/parts.h"

static bool is_of_network(const struct weft_exec *exec, int32_t lane)
{
    const struct weft_program *program = exec->options.program;
    return lane != WEFT_LANE_COMPUTE && lane < program->n_lanes &&
           program->lanes[lane].kind < WEFT_LANE_KIND_DOWN;
}

/* One owner's collectives are of all ranks. */
enum weft_rank_group weft_exec_group_of(const struct weft_program *program,
                                        const struct weft_instruction *at)
{
    if (at->op == WEFT_OP_AGREE) return WEFT_GROUP_ALL;
    if (weft_op_stream(at->op) != WEFT_STREAM_CHANNEL) return WEFT_GROUP_NONE;
    const enum weft_rank_group group =
        weft_moves_group(program->ways[at->unit], program->period.every > 0, (int32_t)at->op);
    return group == WEFT_GROUP_OWNER ? WEFT_GROUP_ALL : group;
}

/* Whether an instruction of the lane has a collective of the group. */
static bool needs_group(const struct weft_program *program, int32_t lane,
                        enum weft_rank_group group)
{
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct weft_instruction *at = &program->instructions[i];
        if (at->lane == lane && weft_exec_group_of(program, at) == group) return true;
    }
    return false;
}

/* The first lane of the network has the communicator itself. Each other lane, and each other group
 * of a lane, has a branch. */
static enum weft_status open_comms(struct weft_exec *exec, struct weft_error *err)
{
    const struct weft_program *program = exec->options.program;
    exec->lanes.comms[WEFT_LANE_FIRST][WEFT_GROUP_ALL] = exec->comm;
    for (int32_t lane = WEFT_LANE_FIRST; lane < program->n_lanes; lane++) {
        for (int g = 0; g < WEFT_GROUP_COUNT && is_of_network(exec, lane); g++) {
            const enum weft_rank_group group = (enum weft_rank_group)g;
            const bool of_node = exec->average != NULL && group == WEFT_GROUP_ALL;
            struct weft_comm **comm = &exec->lanes.comms[lane][group];
            if (group == WEFT_GROUP_ACROSS) *comm = weft_exec_average_pair(exec, 0);
            if (*comm != NULL || !needs_group(program, lane, group)) continue;
            WEFT_TRY(weft_comm_branch(exec->options.comm, program->lanes[lane].name,
                                      of_node ? WEFT_GROUP_NODE : group, comm, err));
        }
    }
    return WEFT_OK;
}

/* Work of these lanes waits for a disk, or computes with the host's cores. */
static bool is_of_host(enum weft_lane_kind kind)
{
    return kind == WEFT_LANE_KIND_HOST || kind == WEFT_LANE_KIND_READ ||
           kind == WEFT_LANE_KIND_WRITE;
}

/* Creates a lane's stream, with room for `items` in its queue. */
static enum weft_status create_stream(struct weft_exec *exec, int32_t lane, int64_t items,
                                      struct weft_error *err)
{
    const struct weft_program *program = exec->options.program;
    const char *name = lane == WEFT_LANE_FIRST ? "channel" : program->lanes[lane].name;
    int64_t queue = items < WEFT_STREAM_QUEUE ? WEFT_STREAM_QUEUE : items;
    if (queue > WEFT_STREAM_MOST_QUEUE) queue = WEFT_STREAM_MOST_QUEUE;
    struct weft_device *device = exec->options.device;
    const bool on_host = is_of_host(program->lanes[lane].kind);
    WEFT_TRY((on_host ? weft_stream_create_on_host : weft_stream_create)(
        device, name, (int32_t)queue, &exec->streams[lane], err));
    if (!weft_rates_contend(program->lanes[WEFT_LANE_FIRST].rates)) return WEFT_OK;
    return weft_stream_contend(
        exec->streams[lane], lane,
        program->lanes[lane == WEFT_LANE_COMPUTE ? WEFT_LANE_FIRST : lane].rates, err);
}

/* Rank 0 says for all that no GPU has run such a program yet. */
static void warn_of_untried(const struct weft_exec *exec, const int64_t items[WEFT_MOST_LANES])
{
    const struct weft_program *program = exec->options.program;
    bool any = false;
    for (int32_t lane = 0; lane < program->n_lanes; lane++)
        any |= items[lane] > 0 && is_of_host(program->lanes[lane].kind);
    if (any && exec->rank == 0 && exec->options.config->cluster.device.type == WEFT_DEVICE_CUDA)
        weft_log(WEFT_LOG_WARNING,
                 "updates on the host and state on a disk have never run on a GPU, but over "
                 "doubles of CUDA's libraries alone (docs/gpu.md): compare the fingerprint of a "
                 "short run with that of one without them");
}

/* One thread issues a step and may run far ahead on one stream, for example with all gathers. So
 * each queue has room for a whole step. Otherwise a full channel would keep compute waiting. */
static enum weft_status create_streams(struct weft_exec *exec, struct weft_error *err)
{
    enum { ITEMS_EACH = 8 }; /* waits, stamps, poison, the work, advance, record */
    const struct weft_program *program = exec->options.program;
    int64_t items[WEFT_MOST_LANES] = {0};
    for (int32_t i = 0; i < program->n_instructions; i++)
        items[program->instructions[i].lane] += ITEMS_EACH;
    items[WEFT_LANE_COMPUTE] += program->n_units + ITEMS_EACH; /* for NORM and the step's scalars */
    warn_of_untried(exec, items);
    for (int32_t lane = 0; lane < program->n_lanes; lane++) {
        const enum weft_lane_kind kind = program->lanes[lane].kind;
        if (lane > WEFT_LANE_FIRST && items[lane] == 0) continue;
        if (kind == WEFT_LANE_KIND_READ || kind == WEFT_LANE_KIND_WRITE)
            items[lane] += 2 * (int64_t)program->n_units * weft_exec_offloaded_items(exec);
        WEFT_TRY(create_stream(exec, lane, items[lane], err));
    }
    return WEFT_OK;
}

/* After a failure of one stream the work of the others is useless, so it is stopped. */
static void stop_network(void *context)
{
    struct weft_exec *exec = context;
    weft_comm_cancel(exec->options.comm);
}

static void stop_compute(void *context)
{
    struct weft_exec *exec = context;
    weft_stream_stop(exec->streams[WEFT_LANE_COMPUTE]);
}

static void stop_all(void *context)
{
    stop_compute(context);
    stop_network(context);
}

/* A single lane of the network does not cancel: its peers find the same cause. With several lanes
 * the others are cancelled, and then report no cause. */
static void stop_after_lane(void *context)
{
    const struct exec_watched *watched = context;
    int32_t none = 0;
    const bool is_first =
        atomic_compare_exchange_strong(&watched->exec->lanes.failed, &none, watched->lane);
    stop_compute(watched->exec);
    for (int32_t lane = WEFT_LANE_FIRST + 1; is_first && lane < WEFT_MOST_LANES; lane++)
        if (is_of_network(watched->exec, lane)) stop_network(watched->exec);
}

static void watch_streams(struct weft_exec *exec)
{
    weft_stream_on_failure(exec->streams[WEFT_LANE_COMPUTE], stop_network, exec);
    for (int32_t lane = WEFT_LANE_FIRST; lane < WEFT_MOST_LANES; lane++) {
        if (exec->streams[lane] == NULL) continue;
        exec->lanes.watched[lane] = (struct exec_watched){exec, lane};
        if (is_of_network(exec, lane))
            weft_stream_on_failure(exec->streams[lane], stop_after_lane,
                                   &exec->lanes.watched[lane]);
        else
            weft_stream_on_failure(exec->streams[lane], stop_all, exec);
    }
}

/* With as many ranks as cores, the channel's thread shares a core with compute. It needs
 * microseconds at a time, but at once: a late block delays a whole layer on all ranks. Measured
 * with communication about equal to compute, all-fsdp takes 27 to 56 % more than predicted without
 * this, and 1 % with it. It works without a privilege. If the system refuses, or an older kernel
 * ignores the slice, only time is lost. */
enum {
    COMPUTE_NICE = 5,          /* above the process's value */
    CHANNEL_NICE = -15,        /* below it */
    CHANNEL_SLICE_NS = 100000, /* Linux's minimum; 6.12 and later use it */
    LEAST_NICE = -20,
    MOST_NICE = 19
};

/* A thread with short slices runs at once when it wakes, unless it has just used more than its
 * share of the core. Then it may wait for the next tick, up to 4 ms. A larger share needs a
 * privilege (root, CAP_SYS_NICE or ulimit -e), so a second call asks for it. Measured with bound
 * ranks and communication about equal to compute, over 700 to 950 collectives a step. Without the
 * larger share, and with waits that sleep (runtime/comm/local_control.c), 2 to 7 are over 0.5 ms
 * late. With the share and waits that stay awake, 1 or 2 are. */
static enum weft_status take_short_slices(struct weft_stream *stream, const void *argument,
                                          struct weft_error *err)
{
    (void)stream;
    (void)argument;
    (void)err;
    struct sched_attr attributes = {0};
    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return WEFT_OK;
    if (attributes.sched_policy != SCHED_NORMAL) return WEFT_OK; /* the user chose a policy */
    attributes.sched_runtime = CHANNEL_SLICE_NS;
    (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
    attributes.sched_nice += CHANNEL_NICE;
    if (attributes.sched_nice < LEAST_NICE) attributes.sched_nice = LEAST_NICE;
    (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
    return WEFT_OK;
}

static enum weft_status give_way(struct weft_stream *stream, const void *argument,
                                 struct weft_error *err)
{
    (void)stream;
    (void)argument;
    (void)err;
    id_t thread = (id_t)syscall(SYS_gettid);
    errno = 0;
    int nice_value = getpriority(PRIO_PROCESS, thread) + COMPUTE_NICE;
    if (errno != 0) return WEFT_OK;
    (void)setpriority(PRIO_PROCESS, thread, nice_value < MOST_NICE ? nice_value : MOST_NICE);
    return WEFT_OK;
}

static void prefer_network(struct weft_exec *exec)
{
    for (int32_t lane = WEFT_LANE_FIRST; lane < WEFT_MOST_LANES; lane++)
        if (is_of_network(exec, lane) && exec->streams[lane] != NULL)
            weft_stream_push(exec->streams[lane], take_short_slices, NULL, 0);
    weft_stream_push(exec->streams[WEFT_LANE_COMPUTE], give_way, NULL, 0);
}

enum weft_status weft_exec_lanes_open(struct weft_exec *exec, struct weft_error *err)
{
    WEFT_TRY(open_comms(exec, err));
    WEFT_TRY(create_streams(exec, err));
    watch_streams(exec);
    prefer_network(exec);
    return WEFT_OK;
}

/* A failing stream stops the others. So all are idle, and none has a callback, before the first is
 * destroyed. */
void weft_exec_lanes_close(struct weft_exec *exec)
{
    struct weft_error unsaid = {0};
    enum weft_status known = WEFT_OK; /* the caller has the error already */
    for (int s = 0; s < WEFT_MOST_LANES; s++) {
        if (exec->streams[s] != NULL) known = weft_stream_synchronise(exec->streams[s], &unsaid);
    }
    (void)known;
    for (int s = 0; s < WEFT_MOST_LANES; s++) {
        if (exec->streams[s] != NULL) weft_stream_on_failure(exec->streams[s], NULL, NULL);
    }
    for (int s = 0; s < WEFT_MOST_LANES; s++) {
        if (exec->streams[s] != NULL) weft_stream_destroy(exec->streams[s]);
    }
}

/* The order in which lanes are asked for their errors: the cause before its consequences. Other
 * tiers come first: they stop compute and network, which then report nothing useful. Compute is
 * next: the network gives up after it fails, and compute does nothing after the network has failed.
 * In the network the first lane that failed is the cause. */
static int32_t order_lanes(const struct weft_exec *exec, int32_t lanes[WEFT_MOST_LANES])
{
    const int32_t failed = atomic_load(&exec->lanes.failed);
    int32_t n = 0;
    for (int32_t lane = WEFT_LANE_FIRST; lane < WEFT_MOST_LANES; lane++)
        if (exec->streams[lane] != NULL && !is_of_network(exec, lane)) lanes[n++] = lane;
    lanes[n++] = WEFT_LANE_COMPUTE;
    if (failed > 0) lanes[n++] = failed;
    for (int32_t lane = WEFT_LANE_FIRST; lane < WEFT_MOST_LANES; lane++)
        if (exec->streams[lane] != NULL && is_of_network(exec, lane) && lane != failed)
            lanes[n++] = lane;
    return n;
}

enum weft_status weft_exec_synchronise(struct weft_exec *exec, struct weft_error *err)
{
    struct weft_error errors[WEFT_MOST_LANES] = {0};
    enum weft_status found[WEFT_MOST_LANES] = {WEFT_OK};
    int32_t lanes[WEFT_MOST_LANES];
    for (int32_t lane = 0; lane < WEFT_MOST_LANES; lane++)
        if (exec->streams[lane] != NULL)
            found[lane] = weft_stream_synchronise(exec->streams[lane], &errors[lane]);
    const int32_t n = order_lanes(exec, lanes);
    for (int32_t i = 0; i < n; i++) {
        if (found[lanes[i]] == WEFT_OK) continue;
        if (err != NULL) *err = errors[lanes[i]];
        return found[lanes[i]];
    }
    return weft_nn_verdict(exec->options.nn, err);
}
