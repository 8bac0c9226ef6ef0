/* SPDX-License-Identifier: Apache-2.0 */
/* Values that a layer's forward leaves in memory, by their names in the recipe. */
#ifndef WEFT_RUNTIME_TRAIN_DUMP_VALUES_H
#define WEFT_RUNTIME_TRAIN_DUMP_VALUES_H

#include "base/status.h"
#include "runtime/nn/nn.h"

enum weft_dump_number { WEFT_DUMP_COMPUTE, WEFT_DUMP_F32, WEFT_DUMP_INT32 };

struct weft_dump_value {
    char name[96]; /* "qkv"; of a statistic with the name of its step's output before it */
    const unsigned char *at;
    enum weft_dump_number number;  /* COMPUTE: of the dtype of compute */
    int64_t rows, columns, stride; /* elements */
};
enum { WEFT_DUMP_VALUES = 80 };

/* Fills `out` and *n. Values that were replaced in place, and those that are recomputed, are left
 * out. Errors are those of weft_walk_derive. */
WEFT_MUST_USE enum weft_status weft_dump_values(const struct weft_nn_call *call,
                                                struct weft_dump_value out[WEFT_DUMP_VALUES],
                                                int32_t *n, struct weft_error *err);

#endif
