/* SPDX-License-Identifier: Apache-2.0 */
/* A file of samples has numbers for a model that reads numbers, such as the patches of images, and
 * a label for each sample. It has a header of 256 little-endian int32: magic 20261130, version 1,
 * samples modulo 2^32, rows of a sample, numbers of a row, bytes of a number. The samples follow.
 * Each has its numbers, row by row, and its label as int32.
 *
 * Numbers of 4 bytes are floats. A number b of 1 byte stands for b / 127.5 - 1, from -1 to 1. In
 * version 2 a row is a token, an int32. Samples of fewer tokens end with padding. */
#ifndef WEFT_RUNTIME_TRAIN_SAMPLES_SAMPLE_FILE_H
#define WEFT_RUNTIME_TRAIN_SAMPLES_SAMPLE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct weft_sample_file {
    int64_t n; /* samples; 0: the file has none */
    int64_t rows, width;
    int32_t number_bytes; /* 1 or 4 */
    bool tokens;          /* rows are tokens, of width 1 */
};

/* Whether a file begins as a file of samples. `n` bytes of it were read. */
bool weft_sample_file_are(const unsigned char *header, int64_t n);
/* Reads the header; `length` is the file's. WEFT_E_DATA if header and length contradict each other,
 * or without a sample. */
WEFT_MUST_USE enum weft_status weft_sample_file_read_header(const char *path,
                                                            const unsigned char *header, int64_t n,
                                                            int64_t length,
                                                            struct weft_sample_file *out,
                                                            struct weft_error *err);
/* Whether samples of both have one size and form. */
bool weft_sample_file_alike(const struct weft_sample_file *a, const struct weft_sample_file *b);

/* Words of a label. */
int64_t weft_sample_file_label_words(const struct weft_sample_file *form);
/* The label of these words. */
int32_t weft_sample_file_label(const struct weft_sample_file *form, const int32_t *words);
/* Words of a sample with its label, of number_bytes each. */
int64_t weft_sample_file_words(const struct weft_sample_file *form);
/* Fills numbers [rows * width] and the label from a sample's words. Returns the index of a number
 * that is not finite, or -1. */
int64_t weft_sample_file_decode(const struct weft_sample_file *form, const int32_t *words,
                                float *numbers, int32_t *label);

#endif
