/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of buffers of a program. */
#ifndef WEFT_MEMORY_MODEL_BUFFER_KIND_H
#define WEFT_MEMORY_MODEL_BUFFER_KIND_H

enum weft_buffer_owner {
    WEFT_OWNER_UNIT,
    WEFT_OWNER_LAYER, /* one buffer per micro-step, as of WEFT_OWNER_MICRO */
    WEFT_OWNER_MICRO,
    WEFT_OWNER_STEP
};

/* X(enumerator, owner, name). A unit's or layer's buffer has its index. */
#define WEFT_BUFFER_MAP(X)                                                                         \
    X(SHARD, UNIT, "shard")     /* this rank's parameters (sdp, fsdp); persists on the device */   \
    X(FULL, UNIT, "full")       /* gathered parameters; persists under dp, zero1 */                \
    X(MASTER, UNIT, "master")   /* fp32 master of this rank's part, if not in fp32 */              \
    X(MOMENT1, UNIT, "moment1") /* fp32, of this rank's part */                                    \
    X(MOMENT2, UNIT, "moment2")                                                                    \
    X(ANCHOR, UNIT, "anchor") /* fp32, of this rank's part; averages alone touch it and OUTER */   \
    X(OUTER, UNIT, "outer")                                                                        \
    X(GRADIENT, UNIT, "gradient") /* full gradient, one per reduction */                           \
    X(REDUCED, UNIT, "reduced")   /* reduced gradient (not dp); persists in a delayed period */    \
    X(PARTIAL, UNIT, "partial")   /* fp32 sums over this node (hsdp), one per reduction */         \
    X(INPUT, MICRO, "input")                                                                       \
    X(TARGETS, MICRO, "targets")                                                                   \
    X(OUTPUT, LAYER, "output") /* input of the next layer */                                       \
    X(OUTPUT_GRADIENT, LAYER, "output_gradient")                                                   \
    X(SAVED, LAYER, "saved")                                                                       \
    X(RESTORED, LAYER, "restored")               /* its offloaded saved activations, back again */ \
    X(RESTORED_OUTPUT, LAYER, "restored_output") /* its offloaded output, back again */            \
    X(FORWARD_TEMPORARY, LAYER, "forward_temporary")                                               \
    X(BACKWARD_TEMPORARY, LAYER, "backward_temporary")                                             \
    X(TENSOR_NORMS, UNIT, "tensor_norms") /* norms of tensors and of their steps, to send */       \
    X(TENSOR_NORMS_SUM, UNIT, "tensor_norms_sum") /* their sum over ranks */                       \
    X(RECORD, STEP, "record")                     /* norm bins, loss, flags: to send */            \
    X(RECORD_SUM, STEP, "record_sum")             /* their sum over ranks */

enum weft_buffer_kind {
#define WEFT_BUFFER_ENUMERATOR(name, owner, text) WEFT_BUFFER_##name,
    WEFT_BUFFER_MAP(WEFT_BUFFER_ENUMERATOR)
#undef WEFT_BUFFER_ENUMERATOR
        WEFT_BUFFER_KIND_COUNT
};

#endif
