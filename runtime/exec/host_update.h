/* Updates on the host: a unit that the plan updates there has its master, moments, reduced gradient
 * and rounded parameters in the host's tier. Block by block its gradient goes down, the optimizer's
 * kernels, which are those of the CPU, run where it is, and its parameters come up. Shared by the
 * files of this folder alone. */
#ifndef WEFT_RUNTIME_EXEC_HOST_UPDATE_H
#define WEFT_RUNTIME_EXEC_HOST_UPDATE_H

#include <stdint.h>

#include "base/status.h"
#include "runtime/device/device.h"
#include "runtime/exec/units.h"

struct weft_exec;
struct exec_updater;

/* A block of a unit that is updated there, bound to one instruction. */
struct exec_there {
    const struct exec_unit *unit;
    int32_t block;
    /* In the arena, where the instruction finds it: of GRADIENT_DOWN the unit's reduced gradient,
     * of PARAMETERS_UP its shard, or under zero1 the full buffer. */
    unsigned char *at;
    struct weft_nn_unit part; /* what this rank owns of the block, with the gradient at `at` */
};

/* Fills `there` for a block; its memory is the executor's. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_exec_bind_there(struct weft_exec *exec,
                                                    const struct exec_unit *unit, int32_t block,
                                                    void *at, struct exec_there **out,
                                                    struct weft_error *err);

/* Threads that update, if some unit is updated there; else *out stays NULL. */
WEFT_MUST_USE enum weft_status weft_exec_updater_create(const struct weft_exec *exec,
                                                        struct exec_updater **out,
                                                        struct weft_error *err);
void weft_exec_updater_destroy(struct exec_updater *updater); /* the stream is idle; accepts NULL */

/* Work of the streams of copies down, of updates there, and of copies up. The first, with clipping,
 * adds the block's part of the norm to the record. */
void weft_exec_push_gradient_down(struct weft_exec *exec, struct weft_stream *stream,
                                  const struct exec_there *there);
void weft_exec_push_host_update(struct weft_exec *exec, struct weft_stream *stream,
                                const struct exec_there *there);
void weft_exec_push_parameters_up(struct weft_exec *exec, struct weft_stream *stream,
                                  const struct exec_there *there);
/* Work of a stream: where the device computes in another dtype than f32, the host gets what the
 * unit's masters were rounded to, for an update that is skipped sends that up again. */
void weft_exec_push_rounded(struct weft_exec *exec, struct weft_stream *stream,
                            const struct exec_unit *unit);

#endif
