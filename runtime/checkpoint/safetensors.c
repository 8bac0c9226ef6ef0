/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/checkpoint/safetensors_header.h"

enum { LENGTH_BYTES = 8, CONVERTED_ELEMENTS = 4096 };

static enum weft_status fail_read(const char *path, int error, struct weft_error *err)
{
    enum weft_status status = WEFT_E_IO;
    if (error == ENOENT || error == ENOTDIR) status = WEFT_E_NO_INPUT;
    if (error == ELOOP) status = WEFT_E_DATA;
    if (error == EACCES || error == EPERM) status = WEFT_E_PERMISSION;
    return weft_fail(err, status, "%s: cannot be read: %s", path, strerror(error));
}

/* Reads all bytes. WEFT_E_DATA if the file has become shorter. */
static enum weft_status read_at(int fd, void *out, int64_t bytes, int64_t offset, const char *path,
                                struct weft_error *err)
{
    char *to = out;
    while (bytes > 0) {
        ssize_t n = pread(fd, to, (size_t)bytes, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_read(path, errno, err);
        if (n == 0)
            return weft_fail(err, WEFT_E_DATA, "%s: ends at byte %" PRId64 ", too early", path,
                             offset);
        to += n;
        bytes -= n;
        offset += n;
    }
    return WEFT_OK;
}

static uint64_t header_length(const unsigned char bytes[LENGTH_BYTES])
{
    uint64_t length = 0;
    for (int i = LENGTH_BYTES - 1; i >= 0; i--)
        length = length << 8 | bytes[i];
    return length;
}

/* Checks the length field against the file's size. */
static enum weft_status check_length(const unsigned char *bytes, int64_t file_bytes,
                                     const char *path, int64_t *out, struct weft_error *err)
{
    if (file_bytes < LENGTH_BYTES)
        return weft_fail(err, WEFT_E_DATA,
                         "%s: has %" PRId64 " bytes; a safetensors file begins with 8 of length",
                         path, file_bytes);
    uint64_t length = header_length(bytes);
    if (length < 2 || length > WEFT_SAFETENSORS_MOST_HEADER_BYTES)
        return weft_fail(err, WEFT_E_DATA,
                         "%s: says that its header has %" PRIu64
                         " bytes; from 2 to 100000000 are possible",
                         path, length);
    if ((int64_t)length > file_bytes - LENGTH_BYTES)
        return weft_fail(err, WEFT_E_DATA,
                         "%s: says that its header has %" PRIu64 " bytes, but has only %" PRId64
                         " after the length",
                         path, length, file_bytes - LENGTH_BYTES);
    *out = (int64_t)length;
    return WEFT_OK;
}

static int by_offset(const void *a, const void *b)
{
    const struct weft_safetensors_tensor *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
    const struct weft_safetensors_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static int by_key(const void *a, const void *b)
{
    const struct weft_safetensors_metadata *x = a, *y = b;
    return strcmp(x->key, y->key);
}

/* Checks that the tensors fill the data without gaps or overlaps. */
static enum weft_status check_offsets(struct weft_safetensors *file, struct weft_error *err)
{
    int64_t at = 0, data_bytes = file->file_bytes - file->data_begin;
    if (file->n_tensors > 1)
        qsort(file->tensors, (size_t)file->n_tensors, sizeof *file->tensors, by_offset);
    for (int32_t i = 0; i < file->n_tensors; i++) {
        struct weft_safetensors_tensor *tensor = &file->tensors[i];
        if (tensor->begin != at)
            return weft_fail(err, WEFT_E_DATA,
                             "%s: tensor %s begins at byte %" PRId64 " of the data, where %" PRId64
                             " is next: %s",
                             file->path, tensor->name, tensor->begin, at,
                             tensor->begin > at ? "a hole" : "an overlap");
        if (tensor->bytes > data_bytes - at)
            return weft_fail(err, WEFT_E_DATA,
                             "%s: tensor %s ends at byte %" PRId64
                             " of the data, of which there are %" PRId64,
                             file->path, tensor->name, tensor->begin + tensor->bytes, data_bytes);
        at += tensor->bytes;
        tensor->begin += file->data_begin;
    }
    if (at == data_bytes) return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA,
                     "%s: has %" PRId64 " bytes of data, and its tensors take %" PRId64, file->path,
                     data_bytes, at);
}

static enum weft_status check_names(struct weft_safetensors *file, struct weft_error *err)
{
    size_t n = (size_t)file->n_tensors, n_metadata = (size_t)file->n_metadata;
    file->by_name = weft_pool_array(&file->pool, n, sizeof *file->by_name);
    if (file->by_name == NULL) return weft_fail_memory(err, file->path);
    for (size_t i = 0; i < n; i++)
        file->by_name[i] = &file->tensors[i];
    if (n > 1) qsort(file->by_name, n, sizeof *file->by_name, by_name);
    for (size_t i = 1; i < n; i++) {
        if (strcmp(file->by_name[i - 1]->name, file->by_name[i]->name) == 0)
            return weft_fail(err, WEFT_E_DATA, "%s: tensor %s stands twice in the header",
                             file->path, file->by_name[i]->name);
    }
    if (n_metadata > 1) qsort(file->metadata, n_metadata, sizeof *file->metadata, by_key);
    for (size_t i = 1; i < n_metadata; i++) {
        if (strcmp(file->metadata[i - 1].key, file->metadata[i].key) == 0)
            return weft_fail(err, WEFT_E_DATA, "%s: __metadata__ has a key twice", file->path);
    }
    return WEFT_OK;
}

static enum weft_status fill_file(struct weft_safetensors *file, const char *header, int64_t length,
                                  struct weft_error *err)
{
    WEFT_TRY(weft_safetensors_header(header, (size_t)length, file, err));
    file->data_begin = LENGTH_BYTES + length;
    WEFT_TRY(check_offsets(file, err));
    return check_names(file, err);
}

static enum weft_status create_file(const char *path, struct weft_safetensors **out,
                                    struct weft_error *err)
{
    struct weft_safetensors *file = calloc(1, sizeof *file);
    if (file == NULL) return weft_fail_memory(err, path);
    file->fd = -1;
    file->path = weft_pool_string(&file->pool, path);
    if (file->path == NULL) {
        weft_safetensors_destroy(file);
        return weft_fail_memory(err, path);
    }
    *out = file;
    return WEFT_OK;
}

enum weft_status weft_safetensors_parse(const void *bytes, size_t length, int64_t file_bytes,
                                        const char *path, struct weft_safetensors **out,
                                        struct weft_error *err)
{
    struct weft_safetensors *file = NULL;
    int64_t header_bytes = 0;
    if (length < LENGTH_BYTES) file_bytes = (int64_t)length;
    WEFT_TRY(check_length(bytes, file_bytes, path, &header_bytes, err));
    if ((int64_t)length - LENGTH_BYTES < header_bytes)
        return weft_fail(err, WEFT_E_DATA, "%s: ends within its header", path);
    WEFT_TRY(create_file(path, &file, err));
    file->file_bytes = file_bytes;
    enum weft_status status =
        fill_file(file, (const char *)bytes + LENGTH_BYTES, header_bytes, err);
    if (status != WEFT_OK) {
        weft_safetensors_destroy(file);
        return status;
    }
    *out = file;
    return WEFT_OK;
}

static enum weft_status open_file(struct weft_safetensors *file, struct weft_error *err)
{
    struct stat about;
    do {
        file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    } while (file->fd < 0 && errno == EINTR);
    if (file->fd < 0 || fstat(file->fd, &about) != 0) return fail_read(file->path, errno, err);
    if (!S_ISREG(about.st_mode))
        return weft_fail(err, WEFT_E_DATA, "%s: is not a plain file", file->path);
    file->file_bytes = about.st_size;
    return WEFT_OK;
}

static enum weft_status read_header(struct weft_safetensors *file, struct weft_error *err)
{
    unsigned char field[LENGTH_BYTES] = {0};
    int64_t length = 0;
    if (file->file_bytes >= LENGTH_BYTES)
        WEFT_TRY(read_at(file->fd, field, LENGTH_BYTES, 0, file->path, err));
    WEFT_TRY(check_length(field, file->file_bytes, file->path, &length, err));
    char *header = malloc((size_t)length);
    if (header == NULL) return weft_fail_memory(err, file->path);
    enum weft_status status = read_at(file->fd, header, length, LENGTH_BYTES, file->path, err);
    if (status == WEFT_OK) status = fill_file(file, header, length, err);
    free(header);
    return status;
}

enum weft_status weft_safetensors_open(const char *path, struct weft_safetensors **out,
                                       struct weft_error *err)
{
    struct weft_safetensors *file = NULL;
    WEFT_TRY(create_file(path, &file, err));
    enum weft_status status = open_file(file, err);
    if (status == WEFT_OK) status = read_header(file, err);
    if (status != WEFT_OK) {
        weft_safetensors_destroy(file);
        return status;
    }
    *out = file;
    return WEFT_OK;
}

void weft_safetensors_destroy(struct weft_safetensors *file)
{
    if (file == NULL) return;
    if (file->fd >= 0) close(file->fd);
    weft_pool_finish(&file->pool);
    free(file);
}

const struct weft_safetensors_tensor *weft_safetensors_find(const struct weft_safetensors *file,
                                                            const char *name)
{
    int32_t low = 0, high = file->n_tensors;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        int order = strcmp(file->by_name[middle]->name, name);
        if (order == 0) return file->by_name[middle];
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

bool weft_safetensors_has_shape(const struct weft_safetensors_tensor *tensor, const int64_t *dims,
                                int32_t n_dims)
{
    bool same = tensor->n_dims == n_dims;
    for (int32_t d = 0; same && d < n_dims; d++)
        same = tensor->dims[d] == dims[d];
    return same;
}

static void put_shape(const int64_t *dims, int32_t n_dims, struct weft_text *out)
{
    weft_text_add(out, "[");
    for (int32_t d = 0; d < n_dims; d++)
        weft_text_addf(out, "%s%" PRId64, d == 0 ? "" : ", ", dims[d]);
    weft_text_add(out, "]");
}

void weft_safetensors_put_shapes(const struct weft_safetensors_tensor *tensor, const int64_t *dims,
                                 int32_t n_dims, struct weft_text *out)
{
    weft_text_add(out, " is ");
    put_shape(tensor->dims, tensor->n_dims, out);
    weft_text_add(out, ", the model's ");
    put_shape(dims, n_dims, out);
}

enum weft_status weft_safetensors_read(const struct weft_safetensors *file,
                                       const struct weft_safetensors_tensor *tensor, int64_t first,
                                       int64_t count, void *out, struct weft_error *err)
{
    int64_t size = weft_tensor_type_bytes(tensor->type);
    if (first < 0 || count < 0 || first > tensor->elements - count)
        return weft_fail(err, WEFT_E_INTERNAL,
                         "%s: tensor %s has %" PRId64 " elements, not %" PRId64 " from %" PRId64,
                         file->path, tensor->name, tensor->elements, count, first);
    return read_at(file->fd, out, count * size, tensor->begin + first * size, file->path, err);
}

enum weft_status weft_safetensors_read_bytes(const struct weft_safetensors *file, int64_t offset,
                                             int64_t bytes, void *out, struct weft_error *err)
{
    return read_at(file->fd, out, bytes, offset, file->path, err);
}

static float widen_half(enum weft_tensor_type type, uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, bits = (uint32_t)half << 16;
    if (type == WEFT_TENSOR_F16) {
        uint32_t exponent = half >> 10 & 31, fraction = half & 0x3FF;
        if (exponent == 0) { /* fraction * 2^-24, exactly */
            float value = (float)fraction * 0x1p-24f;
            return sign != 0 ? -value : value;
        }
        bits = sign | (exponent == 31 ? 0x7F800000u : (exponent + 112) << 23) | fraction << 13;
    }
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

enum weft_status weft_safetensors_read_f32(const struct weft_safetensors *file,
                                           const struct weft_safetensors_tensor *tensor,
                                           int64_t first, int64_t count, float *out,
                                           struct weft_error *err)
{
    if (tensor->type == WEFT_TENSOR_F32)
        return weft_safetensors_read(file, tensor, first, count, out, err);
    if (tensor->type != WEFT_TENSOR_F16 && tensor->type != WEFT_TENSOR_BF16)
        return weft_fail(err, WEFT_E_DATA, "%s: tensor %s is of %s; F32, F16 or BF16 is wanted",
                         file->path, tensor->name, weft_tensor_type_name(tensor->type));
    uint16_t halves[CONVERTED_ELEMENTS];
    for (int64_t done = 0; done < count;) {
        int64_t n = count - done < CONVERTED_ELEMENTS ? count - done : CONVERTED_ELEMENTS;
        WEFT_TRY(weft_safetensors_read(file, tensor, first + done, n, halves, err));
        for (int64_t i = 0; i < n; i++)
            out[done + i] = widen_half(tensor->type, halves[i]);
        done += n;
    }
    return WEFT_OK;
}
