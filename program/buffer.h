/* SPDX-License-Identifier: Apache-2.0 */
/* A buffer is contiguous bytes of a program: of a unit, of a layer, or of the whole step. The
 * blocks of a unit are pieces of its buffer. */
#ifndef WEFT_PROGRAM_BUFFER_H
#define WEFT_PROGRAM_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

#include "memory_model/life.h"
#include "memory_model/weigh.h"

/* Kinds of buffers. The index is a unit or a layer. */
#define WEFT_BUFFER_MAP(X)                                                                         \
    X(SHARD, "shard")     /* unit: this rank's parameters (sdp, fsdp); persists on the device */   \
    X(FULL, "full")       /* unit: gathered parameters; persists under dp, zero1 */                \
    X(MASTER, "master")   /* unit: fp32 master of this rank's part, if not in fp32 */              \
    X(MOMENT1, "moment1") /* unit: fp32, of this rank's part */                                    \
    X(MOMENT2, "moment2")                                                                          \
    X(ANCHOR, "anchor") /* unit: fp32, of this rank's part; averages alone touch it and OUTER */   \
    X(OUTER, "outer")                                                                              \
    X(GRADIENT, "gradient") /* unit: full gradient, one per reduction */                           \
    X(REDUCED, "reduced")   /* unit: reduced gradient (not dp); persists in a delayed period */    \
    X(PARTIAL, "partial")   /* unit: fp32 sums over this node (hsdp), one per reduction */         \
    X(INPUT, "input")       /* micro-batch; one per micro-step down to BACKWARD_TEMPORARY */       \
    X(TARGETS, "targets")                                                                          \
    X(OUTPUT, "output")                   /* layer: input of the next layer */                     \
    X(OUTPUT_GRADIENT, "output_gradient") /* layer: gradient of its output */                      \
    X(SAVED, "saved")                     /* layer */                                              \
    X(RESTORED, "restored")               /* offloaded layer: its saved activations, back again */ \
    X(FORWARD_TEMPORARY, "forward_temporary")                                                      \
    X(BACKWARD_TEMPORARY, "backward_temporary")                                                    \
    X(TENSOR_NORMS, "tensor_norms") /* unit: norms of tensors and of their steps, to send */       \
    X(TENSOR_NORMS_SUM, "tensor_norms_sum") /* their sum over ranks */                             \
    X(RECORD, "record")                     /* norm bins, loss, flags: to send */                  \
    X(RECORD_SUM, "record_sum")             /* their sum over ranks */

enum weft_buffer_kind {
#define WEFT_BUFFER_ENUMERATOR(name, text) WEFT_BUFFER_##name,
    WEFT_BUFFER_MAP(WEFT_BUFFER_ENUMERATOR)
#undef WEFT_BUFFER_ENUMERATOR
        WEFT_BUFFER_KIND_COUNT
};
const char *weft_buffer_kind_name(enum weft_buffer_kind kind);

/* Whether buffers of this kind may be offloaded state. */
static inline bool weft_buffer_is_state(enum weft_buffer_kind kind)
{
    return kind == WEFT_BUFFER_MASTER || kind == WEFT_BUFFER_MOMENT1 || kind == WEFT_BUFFER_MOMENT2;
}

struct weft_buffer {
    enum weft_buffer_kind kind;
    enum weft_category category;
    int32_t index; /* unit, layer, or -1 */
    /* FULL: number of the residency. SHARD on the host: 0 in the update, otherwise 1 + number of
     * the residency. GRADIENT, PARTIAL: number of the reduction. INPUT to BACKWARD_TEMPORARY:
     * number of the micro-step. Otherwise 0. */
    int32_t instance;
    int64_t used_bytes;            /* that work may touch */
    int64_t bytes;                 /* rounded to the arena's alignment */
    int32_t n_pieces;              /* blocks of a unit's buffers that do not persist; otherwise 1 */
    const struct weft_life *lives; /* [n_pieces], in slots */
};

#endif
