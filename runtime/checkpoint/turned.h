/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a row-major matrix by columns: as the rows of the transposed matrix. Some rows of it are
 * kept in memory, so the source is read in long runs, and each part of it once if it is asked for
 * in order. */
#ifndef WEFT_RUNTIME_CHECKPOINT_TURNED_H
#define WEFT_RUNTIME_CHECKPOINT_TURNED_H

#include <stdint.h>

#include "base/status.h"

/* The most elements of the transposed matrix in memory, if a row is not longer. */
enum { WEFT_TURNED_ELEMENTS = 1 << 24 };

/* Elements [first, first + count) of the source. */
typedef enum weft_status weft_turned_source(const void *context, int64_t first, int64_t count,
                                            float *out, struct weft_error *err);

struct weft_turned {
    int64_t rows, columns; /* of the transposed matrix; the source has `columns` rows */
    weft_turned_source *source;
    const void *context;
    int64_t most_elements; /* 0: WEFT_TURNED_ELEMENTS */
    int64_t first, n;      /* rows in memory */
    float *kept;           /* owned */
};

/* Elements [first, first + count) of the transposed matrix. */
WEFT_MUST_USE enum weft_status weft_turned_read(struct weft_turned *turned, int64_t first,
                                                int64_t count, float *out, struct weft_error *err);
/* Frees the rows in memory; accepts {0}. */
void weft_turned_finish(struct weft_turned *turned);

#endif
