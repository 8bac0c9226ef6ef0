/* A buffer is bytes of a program that are contiguous: of a unit, of a layer, or of the whole step.
 * Blocks of a unit are pieces of its buffer. */
#ifndef WEFT_PROGRAM_BUFFER_H
#define WEFT_PROGRAM_BUFFER_H

#include <stdint.h>

#include "memory_model/life.h"
#include "memory_model/weigh.h"

/* What a buffer is; index is a unit or a layer. */
#define WEFT_BUFFER_MAP(X)                                                                         \
    X(SHARD, "shard")     /* unit: this rank's parameters (sdp, fsdp); persistent */               \
    X(FULL, "full")       /* unit: gathered parameters, one buffer for each residency;             \
                             under dp and zero1 the one resident buffer, persistent */             \
    X(MASTER, "master")   /* unit: fp32 master of what this rank owns, if compute is not */        \
    X(MOMENT1, "moment1") /* unit: fp32, of what this rank owns */                                 \
    X(MOMENT2, "moment2")                                                                          \
    X(GRADIENT, "gradient") /* unit: full gradient, one buffer for each reduction */               \
    X(REDUCED, "reduced")   /* unit: this rank's reduced gradient (not dp) */                      \
    X(INPUT, "input")       /* a micro-batch; what follows but the records has one a micro-step */ \
    X(TARGETS, "targets")                                                                          \
    X(OUTPUT, "output")                   /* layer: what flows to the next layer */                \
    X(OUTPUT_GRADIENT, "output_gradient") /* layer: gradient of its output */                      \
    X(SAVED, "saved")                     /* layer */                                              \
    X(RESTORED, "restored") /* layer that is away: what it saved, back from the host */            \
    X(FORWARD_TEMPORARY, "forward_temporary")                                                      \
    X(BACKWARD_TEMPORARY, "backward_temporary")                                                    \
    X(TENSOR_NORMS, "tensor_norms") /* unit: of parameters and steps of its tensors, to send */    \
    X(TENSOR_NORMS_SUM, "tensor_norms_sum") /* the same, summed over ranks */                      \
    X(RECORD, "record")                     /* norm bins, loss, flags: to send */                  \
    X(RECORD_SUM, "record_sum")             /* the same, summed over ranks */

enum weft_buffer_kind {
#define WEFT_BUFFER_ENUMERATOR(name, text) WEFT_BUFFER_##name,
    WEFT_BUFFER_MAP(WEFT_BUFFER_ENUMERATOR)
#undef WEFT_BUFFER_ENUMERATOR
        WEFT_BUFFER_KIND_COUNT
};
const char *weft_buffer_kind_name(enum weft_buffer_kind kind);

struct weft_buffer {
    enum weft_buffer_kind kind;
    enum weft_category category;
    int32_t index;                 /* unit, layer, or -1 */
    int32_t instance;              /* FULL: number of the residency; GRADIENT: of the reduction;
                                      INPUT to BACKWARD_TEMPORARY: of the micro-step; else 0 */
    int64_t used_bytes;            /* that work on it may touch */
    int64_t bytes;                 /* the same, rounded to the arena's alignment */
    int32_t n_pieces;              /* blocks of a unit's full buffers that come and go; else 1 */
    const struct weft_life *lives; /* [n_pieces], slots */
};

#endif
