/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/samples/sample_file.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    MAGIC = 20261130,
    OF_NUMBERS = 1,
    OF_TOKENS = 2,
    HEADER_BYTES = 1024,
    LABEL_BYTES = 4,
    MAGIC_BYTES = 4,
    TOKEN_BYTES = 4
};
enum { MOST_ROWS = 1 << 24, MOST_WIDTH = 1 << 24 };

/* Members of the header. */
enum { AT_MAGIC, AT_VERSION, AT_SAMPLES, AT_ROWS, AT_WIDTH, AT_BYTES };

static uint32_t read_member(const unsigned char *header, int member)
{
    const unsigned char *at = header + 4 * (ptrdiff_t)member;
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

bool weft_sample_file_are(const unsigned char *header, int64_t n)
{
    return n >= MAGIC_BYTES && read_member(header, AT_MAGIC) == MAGIC;
}

enum weft_status weft_sample_file_read_header(const char *path, const unsigned char *header,
                                              int64_t n, int64_t length,
                                              struct weft_sample_file *out, struct weft_error *err)
{
    if (n < HEADER_BYTES)
        return weft_fail(err, WEFT_E_DATA,
                         "%s: a file of samples of %" PRId64 " bytes, shorter than its header of "
                         "%d",
                         path, length, HEADER_BYTES);
    const uint32_t version = read_member(header, AT_VERSION),
                   said = read_member(header, AT_SAMPLES);
    const int64_t bytes = read_member(header, AT_BYTES);
    struct weft_sample_file form = {.tokens = version == OF_TOKENS,
                                    .rows = read_member(header, AT_ROWS),
                                    .width = read_member(header, AT_WIDTH),
                                    .number_bytes = (int32_t)bytes};
    if (version != OF_NUMBERS && version != OF_TOKENS)
        return weft_fail(err, WEFT_E_DATA,
                         "%s: a file of samples of version %" PRIu32 ": versions %d and %d can be "
                         "read",
                         path, version, OF_NUMBERS, OF_TOKENS);
    if (form.tokens && (form.width != 1 || bytes != TOKEN_BYTES))
        return weft_fail(err, WEFT_E_DATA,
                         "%s: its header says samples of tokens, with %" PRId64
                         " numbers a row of %" PRId64 " bytes: a row is one token of %d bytes",
                         path, form.width, bytes, TOKEN_BYTES);
    if (form.rows < 1 || form.rows > MOST_ROWS || form.width < 1 || form.width > MOST_WIDTH ||
        (bytes != 1 && bytes != 4))
        return weft_fail(err, WEFT_E_DATA,
                         "%s: its header says samples of %" PRId64 " rows of %" PRId64
                         " numbers of %" PRId64 " bytes: rows and numbers are from 1 to %d, and "
                         "bytes 1 or 4",
                         path, form.rows, form.width, bytes, MOST_WIDTH);
    const int64_t sample = weft_sample_file_words(&form) * bytes;
    form.n = (length - HEADER_BYTES) / sample;
    if ((length - HEADER_BYTES) % sample != 0 || (uint32_t)form.n != said || form.n < 1)
        return weft_fail(err, WEFT_E_DATA,
                         "%s: its header says %" PRIu32 " samples of %" PRId64
                         " bytes, and %" PRId64 " bytes follow the header: write at least one "
                         "sample, each with its label, and their number",
                         path, said, sample, length - HEADER_BYTES);
    *out = form;
    return WEFT_OK;
}

bool weft_sample_file_alike(const struct weft_sample_file *a, const struct weft_sample_file *b)
{
    return a->tokens == b->tokens && a->rows == b->rows && a->width == b->width &&
           a->number_bytes == b->number_bytes;
}

int64_t weft_sample_file_label_words(const struct weft_sample_file *form)
{
    return LABEL_BYTES / form->number_bytes;
}

int64_t weft_sample_file_words(const struct weft_sample_file *form)
{
    return form->rows * form->width + weft_sample_file_label_words(form);
}

int32_t weft_sample_file_label(const struct weft_sample_file *form, const int32_t *words)
{
    uint32_t bits = 0;
    int32_t label;
    if (form->number_bytes == LABEL_BYTES) return words[0];
    for (int b = 0; b < LABEL_BYTES; b++)
        bits |= (uint32_t)words[b] << (8 * b);
    memcpy(&label, &bits, sizeof label);
    return label;
}

int64_t weft_sample_file_decode(const struct weft_sample_file *form, const int32_t *words,
                                float *numbers, int32_t *label)
{
    const int64_t n = form->rows * form->width;
    *label = weft_sample_file_label(form, words + n);
    if (form->number_bytes == 1) {
        for (int64_t i = 0; i < n; i++)
            numbers[i] = (float)words[i] / 127.5f - 1.0f;
        return -1;
    }
    memcpy(numbers, words, (size_t)n * sizeof *numbers);
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(numbers[i])) return i;
    return -1;
}
