/* Scratch of a GPU's kernels: bytes that they need besides the layout's buffers (runtime/nn/cuda).
 * On a GPU it is the end of a layer's temporaries; a CPU needs none. */
#ifndef WEFT_LAYERS_SHARED_SCRATCH_H
#define WEFT_LAYERS_SHARED_SCRATCH_H

#include "layers/shared/keys.h"

/* Partial sums of columns: one fp32 row of `width` for each stripe of rows. */
int64_t weft_scratch_columns(struct weft_subject *subject, int64_t rows, int64_t width);
/* Backward of a GPT-2 block: partial sums, then gradients of scores or dots of rows. */
int64_t weft_scratch_block(struct weft_subject *subject);
/* A loss over `rows` rows: losses of rows, then a scale and partial sums. */
void weft_scratch_classes(struct weft_subject *subject, int64_t rows, int64_t outputs,
                          struct weft_layer_work *work);

#endif
