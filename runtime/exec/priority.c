#define _GNU_SOURCE /* syscall */
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/exec/parts.h"

/* With as many ranks as cores the channel's thread shares a core with compute. It needs
 * microseconds of it at a time, but at once: a block that waits for its turn waits for a whole
 * layer. None of this needs privilege; where it is refused, or an older kernel passes over the
 * slice, only time is lost. */
enum { CHANNEL_SLICE_NS = 100000 }; /* the least that Linux takes */

/* Changes how the calling thread is scheduled, and keeps its niceness. */
static void set_scheduling(uint32_t policy, uint64_t slice_ns)
{
    struct sched_attr attributes = {0};
    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
    if (attributes.sched_policy != SCHED_NORMAL) return; /* somebody chose otherwise */
    attributes.sched_policy = policy;
    attributes.sched_runtime = slice_ns;
    (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

/* A thread that asks for short slices preempts those with longer ones when it wakes (Linux 6.12).
 */
static enum weft_status take_short_slices(struct weft_stream *stream, const void *argument,
                                          struct weft_error *err)
{
    (void)stream;
    (void)argument;
    (void)err;
    set_scheduling(SCHED_NORMAL, CHANNEL_SLICE_NS);
    return WEFT_OK;
}

/* A batch thread preempts nobody when it wakes: the channel, which wakes compute when a block has
 * come, goes on to begin the next. */
static enum weft_status yield_to_channel(struct weft_stream *stream, const void *argument,
                                         struct weft_error *err)
{
    (void)stream;
    (void)argument;
    (void)err;
    set_scheduling(SCHED_BATCH, 0);
    return WEFT_OK;
}

void weft_exec_prefer_channel(struct weft_exec *exec)
{
    weft_stream_push(exec->streams[WEFT_STREAM_CHANNEL], take_short_slices, NULL, 0);
    weft_stream_push(exec->streams[WEFT_STREAM_COMPUTE], yield_to_channel, NULL, 0);
}
