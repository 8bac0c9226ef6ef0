/* SPDX-License-Identifier: Apache-2.0 */
/* Configs and files for the trainer's unit tests. */
#ifndef WEFT_TESTS_RUNTIME_TRAIN_RUN_TEXT_H
#define WEFT_TESTS_RUNTIME_TRAIN_RUN_TEXT_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spec/config.h"

enum { SAMPLES = 3, SEQ = 5 };

static const char text_run[] =
    "{\"version\": 1, \"model\": {\"layers\": ["
    "{\"name\": \"wte\", \"type\": \"embedding\", \"vocab\": 256, \"positions\": 8, \"hidden\": 8},"
    "{\"name\": \"head\", \"type\": \"lm_head\", \"vocab\": 256, \"hidden\": 8}]},"
    "\"cluster\": {\"ranks\": 1}, \"train\": {\"steps\": 3, \"micro_batch\": 3, \"seq_len\": 5, "
    "\"seed\": 1}}";

/* `data` and `setting` ("train.steps=4") may be NULL. */
static inline struct weft_config *parse_run(const char *run, const char *data, const char *setting)
{
    struct weft_error err = {0};
    struct weft_config *config;
    char set_data[256];
    const char *overrides[2];
    int32_t n = 0;
    snprintf(set_data, sizeof set_data, "train.data=%s", data != NULL ? data : "");
    if (data != NULL) overrides[n++] = set_data;
    if (setting != NULL) overrides[n++] = setting;
    enum weft_status status =
        weft_config_parse(run, strlen(run), "run", ".", overrides, n, &config, &err);
    cr_assert_eq(status, WEFT_OK, "%s", err.text);
    return config;
}

/* A new file with these bytes; the name is the caller's buffer. */
static inline const char *write_bytes(char path[32], const void *bytes, size_t length)
{
    strcpy(path, "/tmp/weft-data-XXXXXX");
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, bytes, length), (ssize_t)length);
    close(fd);
    return path;
}

/* A file with TEXT_BYTE(i) as byte i, so that a sample reveals its place. A text has no NUL. */
#define TEXT_BYTE(i) (1 + (i) % 251)

static inline const char *write_text(char path[32], size_t length)
{
    unsigned char *bytes = malloc(length + 1);
    cr_assert_not_null(bytes);
    for (size_t i = 0; i < length; i++)
        bytes[i] = (unsigned char)TEXT_BYTE(i);
    write_bytes(path, bytes, length);
    free(bytes);
    return path;
}

/* A token file with i modulo `below` as token i. */
static inline const char *write_tokens(char path[32], size_t n, int32_t below)
{
    unsigned char *bytes = calloc(1, 1024 + 2 * n);
    cr_assert_not_null(bytes);
    int32_t header[3] = {20240520, 1, (int32_t)n};
    for (size_t i = 0; i < sizeof header; i++)
        bytes[i] = (unsigned char)((uint32_t)header[i / 4] >> (8 * (i % 4)));
    for (size_t i = 0; i < n; i++) {
        int32_t token = (int32_t)(i % (size_t)below);
        bytes[1024 + 2 * i] = (unsigned char)(token & 255);
        bytes[1025 + 2 * i] = (unsigned char)(token >> 8);
    }
    write_bytes(path, bytes, 1024 + 2 * n);
    free(bytes);
    return path;
}

#endif
