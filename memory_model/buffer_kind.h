/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of buffers of a program. */
#ifndef WEFT_MEMORY_MODEL_BUFFER_KIND_H
#define WEFT_MEMORY_MODEL_BUFFER_KIND_H

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
    X(RESTORED_OUTPUT, "restored_output") /* layer: its offloaded output, back again */            \
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

#endif
