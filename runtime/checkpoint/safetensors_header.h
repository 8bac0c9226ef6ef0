/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the JSON header of a safetensors file by a fixed grammar: no tree, no recursion, exact
 * numbers. */
#ifndef WEFT_RUNTIME_CHECKPOINT_SAFETENSORS_HEADER_H
#define WEFT_RUNTIME_CHECKPOINT_SAFETENSORS_HEADER_H

#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"
#include "base/status.h"

/* X(enumerator, name in files, bytes per element). */
#define WEFT_TENSOR_TYPE_MAP(X)                                                                    \
    X(BOOL, "BOOL", 1)                                                                             \
    X(U8, "U8", 1)                                                                                 \
    X(I8, "I8", 1)                                                                                 \
    X(F8_E4M3, "F8_E4M3", 1)                                                                       \
    X(F8_E5M2, "F8_E5M2", 1)                                                                       \
    X(I16, "I16", 2)                                                                               \
    X(U16, "U16", 2)                                                                               \
    X(F16, "F16", 2)                                                                               \
    X(BF16, "BF16", 2)                                                                             \
    X(I32, "I32", 4)                                                                               \
    X(U32, "U32", 4)                                                                               \
    X(F32, "F32", 4)                                                                               \
    X(F64, "F64", 8)                                                                               \
    X(I64, "I64", 8)                                                                               \
    X(U64, "U64", 8)

enum weft_tensor_type {
#define WEFT_TENSOR_TYPE_ENUMERATOR(name, text, bytes) WEFT_TENSOR_##name,
    WEFT_TENSOR_TYPE_MAP(WEFT_TENSOR_TYPE_ENUMERATOR)
#undef WEFT_TENSOR_TYPE_ENUMERATOR
        WEFT_TENSOR_TYPE_COUNT
};

const char *weft_tensor_type_name(enum weft_tensor_type type);
int64_t weft_tensor_type_bytes(enum weft_tensor_type type);

/* Limits beyond the format's: larger files are refused. */
enum {
    WEFT_SAFETENSORS_MOST_HEADER_BYTES = 100000000, /* the format's own limit */
    WEFT_SAFETENSORS_MOST_TENSORS = 200000,
    WEFT_SAFETENSORS_MOST_NAME_BYTES = 1024,
    WEFT_SAFETENSORS_MOST_DIMS = 16,
    WEFT_SAFETENSORS_MOST_METADATA = 1000,
    WEFT_SAFETENSORS_ALIGN_BYTES = 4096, /* of the data in files written here */
};

struct weft_safetensors_tensor {
    const char *name; /* unique, without "..", slashes and control characters */
    enum weft_tensor_type type;
    int32_t n_dims; /* 0: a scalar */
    const int64_t *dims;
    int64_t elements;
    int64_t begin; /* byte offset in the file */
    int64_t bytes;
};

struct weft_safetensors_metadata {
    const char *key, *value;
};

struct weft_safetensors {
    struct weft_pool pool;
    const char *path; /* for errors */
    int fd;           /* -1 if parsed from bytes */
    int64_t file_bytes, data_begin;
    int32_t n_tensors;
    struct weft_safetensors_tensor *tensors; /* by offset, without gaps */
    const struct weft_safetensors_tensor **by_name;
    int32_t n_metadata;
    struct weft_safetensors_metadata *metadata;
};

/* Parses `length` bytes of header into out->tensors (in order of the header, begin relative to the
 * data) and out->metadata; out->path is set. Checks everything within single entries. WEFT_E_DATA
 * names path, byte and tensor; WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_safetensors_header(const char *bytes, size_t length,
                                                       struct weft_safetensors *out,
                                                       struct weft_error *err);

#endif
