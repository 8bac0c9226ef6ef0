/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged safetensors headers. The reader stays in bounds for any bytes, and each header that it
 * accepts keeps every promise of the header file. Without arguments it tries a fixed set of
 * mutations. With libFuzzer, by hand:
 *   clang -g -fsanitize=fuzzer,address,undefined -DWEFT_FUZZ -D_POSIX_C_SOURCE=200809L -I. \
 *     tests/runtime/checkpoint/safetensors_mutations.c runtime/checkpoint/safetensors*.c \
 *     $(find base -name '*.c') -lm -o fuzz-safetensors */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "runtime/checkpoint/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds, const char *what, const uint8_t *bytes, size_t length)
{
    if (holds) return;
    fprintf(stderr, "%s, for these %zu bytes:\n", what, length);
    fwrite(bytes, 1, length, stderr);
    fputc('\n', stderr);
    abort();
}

static bool try_bytes(const uint8_t *bytes, size_t length)
{
    struct weft_safetensors *file = NULL;
    struct weft_error err = {0};
    enum weft_status status =
        weft_safetensors_parse(bytes, length, (int64_t)length, "input", &file, &err);
    if (status != WEFT_OK) {
        demand(status == WEFT_E_DATA, "a refusal is not WEFT_E_DATA", bytes, length);
        demand(file == NULL, "the output is touched on failure", bytes, length);
        demand(strncmp(err.text, "input: ", 7) == 0, "no file in the error", bytes, length);
        return false;
    }
    int64_t at = file->data_begin;
    for (int32_t i = 0; i < file->n_tensors; i++) {
        const struct weft_safetensors_tensor *tensor = &file->tensors[i];
        int64_t elements = 1;
        for (int32_t d = 0; d < tensor->n_dims; d++)
            elements *= tensor->dims[d];
        demand(tensor->begin == at, "data are not back to back", bytes, length);
        demand(tensor->elements == elements, "elements are not the shape's", bytes, length);
        demand(tensor->bytes == elements * weft_tensor_type_bytes(tensor->type),
               "bytes are not the shape's", bytes, length);
        demand(weft_safetensors_find(file, tensor->name) == tensor, "not found by name", bytes,
               length);
        demand(strchr(tensor->name, '/') == NULL && strstr(tensor->name, "..") == NULL,
               "a name like a path", bytes, length);
        at += tensor->bytes;
    }
    demand(at == (int64_t)length, "data do not end with the file", bytes, length);
    weft_safetensors_destroy(file);
    return true;
}

/* Tries a file of this header and `data_bytes` zeroes. Its length field has the value `field`. */
static bool try_header(const void *header, size_t header_bytes, size_t data_bytes, uint64_t field)
{
    size_t length = 8 + header_bytes + data_bytes;
    uint8_t *exact = calloc(1, length);
    if (exact == NULL) abort();
    for (int i = 0; i < 8; i++)
        exact[i] = (uint8_t)(field >> (8 * i));
    if (header_bytes > 0) memcpy(exact + 8, header, header_bytes);
    bool accepted = try_bytes(exact, length);
    free(exact);
    return accepted;
}

/* Tries the bytes as a file, and as data and a header with the right length, so that the fuzzer
 * need not find lengths. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_bytes(data, size);
    if (size > 0) try_header(data + 1, size - 1, data[0], size - 1);
    return 0;
}

#ifndef WEFT_FUZZ

enum { MOST_BYTES = 2048, SEEDS = 4, PIECES = 20, ROUNDS = 100000 };

static const char *const seeds[SEEDS] = {
    "{}",
    "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
    "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
    "\"b\":{\"dtype\":\"U8\",\"shape\":[2,2],\"data_offsets\":[4,8]}}  ",
    "{\"__metadata__\":{\"k\":\"v\"},\"\\u00e9\":{\"dtype\":\"I64\",\"shape\":[],"
    "\"data_offsets\":[0,8]},\"z\":{\"dtype\":\"F16\",\"shape\":[0],\"data_offsets\":[8,8]}}",
};
static const int64_t seed_data[SEEDS] = {0, 8, 8, 8};

static const char *const pieces[PIECES] = {"{",
                                           "}",
                                           "[",
                                           "]",
                                           ",",
                                           ":",
                                           "\"",
                                           "0",
                                           "8",
                                           "-1",
                                           "1e3",
                                           "\\u0000",
                                           "\\ud800",
                                           "\"F64\"",
                                           "\"dtype\"",
                                           " ",
                                           "..",
                                           "/",
                                           "9223372036854775807",
                                           "18446744073709551616"};

struct buffer {
    uint8_t bytes[MOST_BYTES + 64];
    size_t length;
};

static void splice(struct buffer *buffer, size_t at, size_t removed, const void *added,
                   size_t length)
{
    if (removed > buffer->length - at) removed = buffer->length - at;
    if (buffer->length - removed + length > MOST_BYTES) return;
    memmove(buffer->bytes + at + length, buffer->bytes + at + removed,
            buffer->length - at - removed);
    memcpy(buffer->bytes + at, added, length);
    buffer->length += length - removed;
}

static void mutate(struct buffer *buffer, uint64_t round, uint64_t step)
{
    uint64_t draw = step * 8;
    size_t at = weft_rng_below(1, round, draw, buffer->length + 1);
    size_t span = weft_rng_below(1, round, draw + 1, 8);
    const char *piece = pieces[weft_rng_below(1, round, draw + 2, PIECES)];
    uint8_t byte = (uint8_t)weft_rng_u64(1, round, draw + 3);
    switch (weft_rng_below(1, round, draw + 4, 4)) {
    case 0:
        splice(buffer, at, 1, &byte, 1);
        break;
    case 1:
        splice(buffer, at, span, "", 0);
        break;
    case 2:
        splice(buffer, at, 0, piece, strlen(piece));
        break;
    default:
        splice(buffer, at, 0, "   ", span % 3 + 1);
        break;
    }
}

int main(void)
{
    int accepted = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        const char *seed = seeds[round % SEEDS];
        struct buffer buffer = {.length = strlen(seed)};
        memcpy(buffer.bytes, seed, buffer.length);
        uint64_t steps = weft_rng_below(2, round, 0, 4);
        for (uint64_t step = 0; step < steps; step++)
            mutate(&buffer, round, step);
        bool wrong_length = weft_rng_below(2, round, 1, 16) == 0;
        accepted += try_header(buffer.bytes, buffer.length, (size_t)seed_data[round % SEEDS],
                               buffer.length + (wrong_length ? 1 : 0));
    }
    /* Both answers must be well represented, or the mutations are no test. */
    printf("%d of %d mutations accepted\n", accepted, ROUNDS);
    return accepted > ROUNDS / 50 && accepted < ROUNDS / 2 ? 0 : 1;
}
#endif
