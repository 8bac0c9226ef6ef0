/* SPDX-License-Identifier: Apache-2.0 */
#include "library/metrics/tensorboard.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"

/* Fields of the messages Event, Summary, Summary.Value and SessionLog, and types on the wire. */
enum {
    EVENT_WALL_TIME = 1,
    EVENT_STEP = 2,
    EVENT_FILE_VERSION = 3,
    EVENT_SUMMARY = 5,
    EVENT_SESSION_LOG = 7,
    SUMMARY_VALUE = 1,
    VALUE_TAG = 1,
    VALUE_SIMPLE = 2,
    LOG_STATUS = 1,
    LOG_START = 1,
};
enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };
enum { PATH_BYTES = 4096, NAME_BYTES = 256 };

struct weft_tensorboard {
    int fd;
    struct weft_tensorboard_run run;
    int64_t steps; /* in this file */
    bool is_lost;  /* a write failed */
    char path[PATH_BYTES];
};

static void put_varint(struct weft_text *out, uint64_t value)
{
    char bytes[10];
    size_t n = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[n++] = (char)(value | 0x80);
    bytes[n++] = (char)value;
    weft_text_append(out, bytes, n);
}

static void put_key(struct weft_text *out, unsigned field, unsigned wire)
{
    put_varint(out, field << 3 | wire);
}

/* Little-endian, as all numbers of the format are. */
static void put_fixed(struct weft_text *out, uint64_t value, size_t n_bytes)
{
    char bytes[8];
    for (size_t i = 0; i < n_bytes; i++)
        bytes[i] = (char)(value >> (8 * i));
    weft_text_append(out, bytes, n_bytes);
}

static void put_double(struct weft_text *out, unsigned field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(out, field, WIRE_64);
    put_fixed(out, bits, sizeof bits);
}

static void put_float(struct weft_text *out, unsigned field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(out, field, WIRE_32);
    put_fixed(out, bits, sizeof bits);
}

static void put_integer(struct weft_text *out, unsigned field, int64_t value)
{
    put_key(out, field, WIRE_VARINT);
    put_varint(out, (uint64_t)value);
}

static void put_bytes(struct weft_text *out, unsigned field, const char *bytes, size_t length)
{
    put_key(out, field, WIRE_BYTES);
    put_varint(out, length);
    weft_text_append(out, bytes, length);
}

/* Puts a message into another one and frees it. */
static void put_message(struct weft_text *out, unsigned field, struct weft_text *message)
{
    put_bytes(out, field, weft_text_chars(message), message->length);
    if (!weft_text_ok(message)) out->failed = true;
    weft_text_finish(message);
}

static void put_scalar(struct weft_text *summary, const char *tag, double value)
{
    struct weft_text scalar;
    if (!isfinite(value)) return;
    weft_text_init(&scalar);
    put_bytes(&scalar, VALUE_TAG, tag, strlen(tag));
    put_float(&scalar, VALUE_SIMPLE, (float)value);
    put_message(summary, SUMMARY_VALUE, &scalar);
}

/* TFRecord masks its CRCs, since records may hold CRCs themselves. */
static uint32_t masked_crc(const char *bytes, size_t length)
{
    const uint32_t crc = weft_crc32c(0, bytes, length);
    return (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
}

static bool write_bytes(int fd, const struct weft_text *text)
{
    for (size_t written = 0; written < text->length;) {
        const ssize_t n = write(fd, weft_text_chars(text) + written, text->length - written);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = ENOSPC;
        if (n <= 0) return false;
        written += (size_t)n;
    }
    return true;
}

/* Appends a record: length, CRC of the length, bytes, CRC of the bytes. Readers stop at a torn
 * record, so nothing may follow one. */
static void add_record(struct weft_tensorboard *board, const struct weft_text *event)
{
    struct weft_text record;
    weft_text_init(&record);
    put_fixed(&record, event->length, 8);
    put_fixed(&record, masked_crc(weft_text_chars(&record), 8), 4);
    weft_text_append(&record, weft_text_chars(event), event->length);
    put_fixed(&record, masked_crc(weft_text_chars(event), event->length), 4);
    const bool whole = weft_text_ok(event) && weft_text_ok(&record);
    if (!board->is_lost && !(whole && write_bytes(board->fd, &record))) {
        board->is_lost = true;
        weft_log(WEFT_LOG_WARNING,
                 "%s cannot be written: %s. Training goes on without lines for TensorBoard",
                 board->path, whole ? strerror(errno) : "memory is exhausted");
    }
    weft_text_finish(&record);
}

static void begin_event(struct weft_text *event, int64_t step)
{
    weft_text_init(event);
    put_double(event, EVENT_WALL_TIME, (double)weft_clock_unix_ms() / 1000);
    if (step > 0) put_integer(event, EVENT_STEP, step);
}

static void add_version(struct weft_tensorboard *board)
{
    static const char version[] = "brain.Event:2";
    struct weft_text event;
    begin_event(&event, 0);
    put_bytes(&event, EVENT_FILE_VERSION, version, strlen(version));
    add_record(board, &event);
    weft_text_finish(&event);
}

/* The start of a session: readers drop scalars of its step and later ones. */
static void add_start(struct weft_tensorboard *board, int64_t step)
{
    struct weft_text event, log;
    begin_event(&event, step);
    weft_text_init(&log);
    put_integer(&log, LOG_STATUS, LOG_START);
    put_message(&event, EVENT_SESSION_LOG, &log);
    add_record(board, &event);
    weft_text_finish(&event);
}

static void add_summary(struct weft_tensorboard *board, int64_t step, struct weft_text *summary)
{
    struct weft_text event;
    begin_event(&event, step);
    put_message(&event, EVENT_SUMMARY, summary);
    add_record(board, &event);
    weft_text_finish(&event);
}

enum weft_status weft_tensorboard_open(const char *folder, const struct weft_tensorboard_run *run,
                                       struct weft_tensorboard **out, struct weft_error *err)
{
    char host[NAME_BYTES] = "";
    WEFT_TRY(weft_file_make_directory(folder, err));
    struct weft_tensorboard *board = calloc(1, sizeof *board);
    if (board == NULL) return weft_fail_memory(err, "the events of TensorBoard");
    if (gethostname(host, sizeof host - 1) != 0) snprintf(host, sizeof host, "localhost");
    board->run = *run;
    snprintf(board->path, sizeof board->path, "%s/events.out.tfevents.%lld.%s.%lld", folder,
             (long long)(weft_clock_unix_ms() / 1000), host, (long long)getpid());
    board->fd = open(board->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (board->fd < 0) {
        const int reason = errno;
        const enum weft_status status = weft_fail(err, WEFT_E_CREATE, "%s: cannot be created: %s",
                                                  board->path, strerror(reason));
        free(board);
        return status;
    }
    add_version(board);
    *out = board;
    return WEFT_OK;
}

static void put_memory(const struct weft_tensorboard *board, const char *prefix, int64_t held_bytes,
                       struct weft_text *summary)
{
    char tag[NAME_BYTES];
    if (held_bytes < 0) return; /* not measured yet */
    snprintf(tag, sizeof tag, "%smemory/max_active(GiB)", prefix);
    put_scalar(summary, tag, (double)held_bytes / (double)(INT64_C(1) << 30));
    if (board->run.limit_bytes <= 0 || board->run.limit_bytes == INT64_MAX) return;
    snprintf(tag, sizeof tag, "%smemory/max_active(%%)", prefix);
    put_scalar(summary, tag, 100 * (double)held_bytes / (double)board->run.limit_bytes);
}

void weft_tensorboard_step(struct weft_tensorboard *board, const struct weft_step_line *line)
{
    const double ranks = (double)board->run.ranks, step_s = (double)line->step_ns / 1e9,
                 wait_s = (double)line->data_wait_ns / 1e9, s = step_s + wait_s;
    struct weft_text summary;
    if (board->steps++ == 0 && line->step > 1) add_start(board, line->step);
    weft_text_init(&summary);
    put_scalar(&summary, "loss_metrics/global_avg_loss", line->loss);
    if (line->norm >= 0) put_scalar(&summary, "grad_norm", line->norm);
    put_scalar(&summary, "lr", line->lr);
    put_scalar(&summary, "throughput(tps)", line->run.tokens_per_s / ranks);
    put_scalar(&summary, "tflops", line->model_flops_per_s / ranks / 1e12);
    put_scalar(&summary, "mfu(%)", 100 * line->mfu);
    put_scalar(&summary, "time_metrics/end_to_end(s)", s);
    put_scalar(&summary, "time_metrics/data_loading(s)", wait_s);
    if (s > 0) put_scalar(&summary, "time_metrics/data_loading(%)", 100 * wait_s / s);
    put_memory(board, "", line->run.held_bytes, &summary);
    put_scalar(&summary, "weft/exposed(s)", (double)line->exposed_ns / 1e9);
    put_scalar(&summary, "weft/overlapped(s)", (double)line->overlapped_ns / 1e9);
    put_scalar(&summary, "weft/predicted(s)", (double)line->run.predicted_step_ns / 1e9);
    add_summary(board, line->step, &summary);
}

void weft_tensorboard_evaluation(struct weft_tensorboard *board,
                                 const struct weft_evaluation_line *line)
{
    struct weft_text summary;
    weft_text_init(&summary);
    put_scalar(&summary, "validation_metrics/loss", line->loss);
    put_memory(board, "validation_metrics/", line->run.held_bytes, &summary);
    add_summary(board, line->step, &summary);
}

void weft_tensorboard_close(struct weft_tensorboard *board)
{
    if (board == NULL) return;
    close(board->fd);
    free(board);
}
