/* SPDX-License-Identifier: Apache-2.0 */
#include "library/metrics/tensorboard.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/file.h"

/* The one file of a folder. */
static void read_events(const char *folder, char **bytes, size_t *length)
{
    char path[512] = "";
    struct weft_error err = {0};
    DIR *open = opendir(folder);
    cr_assert_not_null(open);
    for (struct dirent *entry = readdir(open); entry != NULL; entry = readdir(open))
        if (strncmp(entry->d_name, "events.out.tfevents.", 20) == 0)
            snprintf(path, sizeof path, "%s/%.200s", folder, entry->d_name);
    closedir(open);
    cr_assert_eq(weft_file_read(path, 1 << 20, bytes, length, &err), WEFT_OK, "%s", err.text);
    unlink(path);
}

static uint64_t read_fixed(const char *bytes, size_t n)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++)
        value |= (uint64_t)(unsigned char)bytes[i] << (8 * i);
    return value;
}

/* The CRC that a record must have, undone as readers do. */
static void expect_crc(const char *bytes, size_t length, const char *stored)
{
    const uint32_t unmasked = (uint32_t)read_fixed(stored, 4) - UINT32_C(0xa282ead8);
    cr_assert_eq(unmasked >> 17 | unmasked << 15, weft_crc32c(0, bytes, length));
}

/* Returns the records' number; `last` gets the bytes of the last. */
static int32_t expect_records(const char *bytes, size_t length, const char **last, size_t *n_last)
{
    int32_t n = 0;
    for (size_t at = 0; at < length; n++) {
        const size_t inside = (size_t)read_fixed(bytes + at, 8);
        expect_crc(bytes + at, 8, bytes + at + 8);
        *last = bytes + at + 12;
        *n_last = inside;
        expect_crc(*last, inside, *last + inside);
        at += inside + 16;
        cr_assert_leq(at, length);
    }
    return n;
}

/* The bytes of a tag and of its value, 1.5, as the format's definition gives them. */
Test(tensorboard, records_have_their_crcs_and_scalars)
{
    static const char loss[] = "\x0a\x1c"
                               "loss_metrics/global_avg_loss"
                               "\x15\x00\x00\xc0\x3f";
    char folder[] = "/tmp/weft-tensorboard-XXXXXX", *bytes = NULL;
    const char *last = NULL;
    size_t length = 0, n_last = 0;
    struct weft_error err = {0};
    struct weft_tensorboard *board = NULL;
    const struct weft_tensorboard_run run = {.ranks = 2, .limit_bytes = 1 << 20};
    const struct weft_step_line line = {.step = 1,
                                        .loss = 1.5,
                                        .norm = -1,
                                        .mfu = NAN,
                                        .step_ns = 1000,
                                        .run = {.tokens_per_s = NAN, .held_bytes = -1}};
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(weft_tensorboard_open(folder, &run, &board, &err), WEFT_OK, "%s", err.text);
    weft_tensorboard_step(board, &line);
    weft_tensorboard_close(board);
    weft_tensorboard_close(NULL);
    read_events(folder, &bytes, &length);
    cr_assert_eq(expect_records(bytes, length, &last, &n_last), 2);
    cr_assert_not_null(memmem(bytes, length, "brain.Event:2", 13));
    cr_assert_not_null(memmem(last, n_last, loss, sizeof loss - 1));
    cr_assert_null(memmem(last, n_last, "mfu", 3), "an unknown share is no scalar");
    cr_assert_null(memmem(last, n_last, "memory", 6), "an unmeasured size is no scalar");
    free(bytes);
    rmdir(folder);
}

/* A file that begins after step 1 tells readers to drop later scalars of files before it. */
Test(tensorboard, a_resumed_run_begins_a_session)
{
    static const char session[] = "\x10\x05\x3a\x02\x08\x01"; /* step 5, a log: its status 1 */
    char folder[] = "/tmp/weft-tensorboard-XXXXXX", *bytes = NULL;
    const char *last = NULL;
    size_t length = 0, n_last = 0;
    struct weft_error err = {0};
    struct weft_tensorboard *board = NULL;
    const struct weft_tensorboard_run run = {.ranks = 1};
    const struct weft_step_line line = {.step = 5, .loss = 1, .mfu = 0.5, .step_ns = 1};
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(weft_tensorboard_open(folder, &run, &board, &err), WEFT_OK, "%s", err.text);
    weft_tensorboard_step(board, &line);
    weft_tensorboard_close(board);
    read_events(folder, &bytes, &length);
    cr_assert_eq(expect_records(bytes, length, &last, &n_last), 3);
    cr_assert_not_null(memmem(bytes, length, session, sizeof session - 1));
    cr_assert_not_null(memmem(last, n_last, "mfu(%)\x15\x00\x00\x48\x42", 11)); /* 50 */
    free(bytes);
    rmdir(folder);
}
