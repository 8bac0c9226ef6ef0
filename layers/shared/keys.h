/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of keys that several kinds have, and helpers to add tensors. */
#ifndef WEFT_LAYERS_SHARED_KEYS_H
#define WEFT_LAYERS_SHARED_KEYS_H

#include "spec/kind.h"

#define WEFT_LARGE       9007199254740992.0 /* 2^53: doubles represent every integer up to it */
#define WEFT_INT32_MOST  2147483647.0
#define WEFT_WIDTH_MOST  16777216.0 /* 2^24 */
#define WEFT_KEYS(array) .keys = (array), .n_keys = sizeof(array) / sizeof *(array)

#define WEFT_ROW_HIDDEN                                                                            \
    {                                                                                              \
        "hidden", WEFT_FIELD_INTEGER, WEFT_LAYER_AT(hidden), NULL, 1, WEFT_WIDTH_MOST, NULL, NULL, \
            "input width; also the output width if the type keeps it"                              \
    }
#define WEFT_ROW_VOCAB                                                                             \
    {                                                                                              \
        "vocab", WEFT_FIELD_INTEGER, WEFT_LAYER_AT(vocab), NULL, 1, WEFT_INT32_MOST, NULL, NULL,   \
            "number of tokens"                                                                     \
    }
#define WEFT_ROW_BIAS                                                                              \
    {                                                                                              \
        "bias", WEFT_FIELD_BOOL, WEFT_LAYER_AT(bias), "true", 0, 0, NULL, NULL,                    \
            "adds a trained bias"                                                                  \
    }
#define WEFT_ROW_TIE                                                                               \
    {                                                                                              \
        "tie", WEFT_FIELD_STRING, offsetof(struct weft_layer_entry, tie), "null", 0, 0, NULL,      \
            NULL,                                                                                  \
            "name of an earlier layer that this one shares a tensor with: an lm_head an "          \
            "embedding's token table, a custom layer a custom layer's parameters, next to "        \
            "its own"                                                                              \
    }

/* a * b as a size, or -1 on overflow. Later checks refuse -1. */
static inline int64_t weft_size(int64_t a, int64_t b)
{
    int64_t out;
    return weft_checked_mul(a, b, &out) ? out : -1;
}

static inline void weft_add_matrix(struct weft_layer_shape *shape, const char *name, int64_t rows,
                                   int64_t columns, double std)
{
    shape->tensors[shape->n_tensors++] =
        (struct weft_layer_tensor){name, rows, columns, WEFT_INIT_NORMAL, std, true};
}

static inline void weft_add_vector(struct weft_layer_shape *shape, const char *name, int64_t length,
                                   enum weft_init init)
{
    shape->tensors[shape->n_tensors++] =
        (struct weft_layer_tensor){name, length, 0, init, 0, false};
}

#endif
