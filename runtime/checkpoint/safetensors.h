/* safetensors is a file of named tensors: a length N in 8 little-endian bytes, N bytes of JSON
 * header, and data. Readers treat a file as hostile. They check every rule of the format, and every
 * size against the file's length, before they allocate or use anything from it. */
#ifndef WEFT_RUNTIME_CHECKPOINT_SAFETENSORS_H
#define WEFT_RUNTIME_CHECKPOINT_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"
#include "base/status.h"
#include "base/text.h"

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

/* Opens `path` and checks its header. The handle keeps the file open until it is destroyed.
 * WEFT_E_NO_INPUT, WEFT_E_PERMISSION, WEFT_E_IO; WEFT_E_DATA names the file, and the tensor if
 * there is one. */
WEFT_MUST_USE enum weft_status weft_safetensors_open(const char *path,
                                                     struct weft_safetensors **out,
                                                     struct weft_error *err);
/* The same checks on the first `length` bytes of a file of `file_bytes`: the length field, and the
 * header or a part of it. */
WEFT_MUST_USE enum weft_status weft_safetensors_parse(const void *bytes, size_t length,
                                                      int64_t file_bytes, const char *path,
                                                      struct weft_safetensors **out,
                                                      struct weft_error *err);
void weft_safetensors_destroy(struct weft_safetensors *file);

/* Finds a tensor in logarithmic time; NULL if there is none of that name. */
const struct weft_safetensors_tensor *weft_safetensors_find(const struct weft_safetensors *file,
                                                            const char *name);

bool weft_safetensors_has_shape(const struct weft_safetensors_tensor *tensor, const int64_t *dims,
                                int32_t n_dims);
/* Appends the two shapes: " is [2, 3], the model's [3]". */
void weft_safetensors_put_shapes(const struct weft_safetensors_tensor *tensor, const int64_t *dims,
                                 int32_t n_dims, struct weft_text *out);

/* Reads `count` elements from element `first` on. WEFT_E_DATA if the file has become shorter since
 * it was opened; WEFT_E_IO. */
WEFT_MUST_USE enum weft_status weft_safetensors_read(const struct weft_safetensors *file,
                                                     const struct weft_safetensors_tensor *tensor,
                                                     int64_t first, int64_t count, void *out,
                                                     struct weft_error *err);
/* Reads bytes of the file from a byte offset on. */
WEFT_MUST_USE enum weft_status weft_safetensors_read_bytes(const struct weft_safetensors *file,
                                                           int64_t offset, int64_t bytes, void *out,
                                                           struct weft_error *err);
/* Reads elements of F32, F16 or BF16 as floats; WEFT_E_DATA for other types. */
WEFT_MUST_USE enum weft_status weft_safetensors_read_f32(
    const struct weft_safetensors *file, const struct weft_safetensors_tensor *tensor,
    int64_t first, int64_t count, float *out, struct weft_error *err);

#endif
