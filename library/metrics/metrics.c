/* SPDX-License-Identifier: Apache-2.0 */
#include "library/metrics/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json/json.h"
#include "base/log.h"
#include "base/text.h"
#include "runtime/checkpoint/checkpoint.h"

struct weft_metrics {
    int fd;
    const char *path;
    off_t length;       /* of the whole lines in the file */
    int64_t lost_lines; /* since the last line that was written */
};

static enum weft_status begin_metrics(const char *path, struct weft_error *err)
{
    if (unlink(path) == 0 || errno == ENOENT) return WEFT_OK;
    return weft_fail(err, WEFT_E_CREATE, "%s: cannot be replaced: %s", path, strerror(errno));
}

/* Whether a whole line is of a step up to `step`. Older versions call it "saved_step" in lines of
 * checkpoints. */
static bool is_kept(const char *line, size_t length, int64_t step)
{
    static const char *const names[] = {"step", "saved_step"};
    struct weft_json *document = NULL;
    if (weft_json_parse(line, length, "metrics", &document, NULL) != WEFT_OK) return false;
    int64_t of = 0;
    bool known = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && !known; i++)
        known = weft_json_integer(weft_json_member(weft_json_root(document), names[i]), &of);
    weft_json_destroy(document);
    return known && of <= step;
}

static enum weft_status cut_metrics(const char *path, int64_t step, struct weft_error *err)
{
    const int64_t most_bytes = INT64_C(1) << 40;
    char *bytes = NULL;
    size_t length = 0;
    struct weft_error why = {0};
    enum weft_status status = weft_file_read(path, most_bytes, &bytes, &length, &why);
    if (status == WEFT_E_NO_INPUT) return WEFT_OK;
    if (status != WEFT_OK) return weft_fail(err, status, "%s", why.text);
    struct weft_text kept;
    weft_text_init(&kept);
    const char *at = bytes, *last = bytes + length, *end;
    while ((end = memchr(at, '\n', (size_t)(last - at))) != NULL) {
        size_t line = (size_t)(end - at);
        if (is_kept(at, line, step)) weft_text_append(&kept, at, line + 1);
        at = end + 1;
    }
    status = weft_text_ok(&kept) ? weft_file_write(path, weft_text_chars(&kept), kept.length, err)
                                 : weft_fail_memory(err, "the metrics");
    weft_text_finish(&kept);
    free(bytes);
    return status;
}

enum weft_status weft_metrics_prepare(const char *run, const char *resume,
                                      char path[WEFT_RUN_FILE_BYTES], struct weft_error *err)
{
    struct weft_checkpoint *checkpoint = NULL;
    snprintf(path, WEFT_RUN_FILE_BYTES, "%s/metrics.jsonl", run);
    if (resume == NULL) return begin_metrics(path, err);
    WEFT_TRY(weft_checkpoint_open(resume, &checkpoint, err));
    int64_t step = checkpoint->manifest->progress.step;
    weft_checkpoint_close(checkpoint);
    return cut_metrics(path, step, err);
}

enum weft_status weft_metrics_open(const char *path, struct weft_metrics **out,
                                   struct weft_error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    off_t length = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    if (length < 0) {
        int reason = errno;
        if (fd >= 0) close(fd);
        return weft_fail(err, WEFT_E_CREATE, "%s: cannot be created: %s", path, strerror(reason));
    }
    struct weft_metrics *metrics = calloc(1, sizeof *metrics);
    if (metrics == NULL) {
        close(fd);
        return weft_fail_memory(err, "the metrics");
    }
    *metrics = (struct weft_metrics){.fd = fd, .path = path, .length = length};
    *out = metrics;
    return WEFT_OK;
}

static bool write_line(const struct weft_metrics *metrics, const struct weft_text *line)
{
    for (size_t written = 0; written < line->length;) {
        ssize_t n = write(metrics->fd, weft_text_chars(line) + written, line->length - written);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = ENOSPC;
        if (n <= 0) return false;
        written += (size_t)n;
    }
    return true;
}

/* Warns once at the beginning and once at the end: a full disk stays full for many steps. */
static void note_lost(struct weft_metrics *metrics, int reason)
{
    if (metrics->lost_lines++ > 0) return;
    weft_log(WEFT_LOG_WARNING,
             "%s cannot be written: %s. Training goes on; the file lacks its lines until it can",
             metrics->path, strerror(reason));
}

static void note_found(struct weft_metrics *metrics)
{
    if (metrics->lost_lines > 0)
        weft_log(WEFT_LOG_WARNING, "%s is written again; it lacks %" PRId64 " lines", metrics->path,
                 metrics->lost_lines);
    metrics->lost_lines = 0;
}

enum weft_status weft_metrics_add(struct weft_metrics *metrics, const struct weft_text *line,
                                  struct weft_error *err)
{
    if (!weft_text_ok(line)) return weft_fail_memory(err, "the metrics");
    if (write_line(metrics, line)) {
        metrics->length = lseek(metrics->fd, 0, SEEK_CUR);
        note_found(metrics);
        return WEFT_OK;
    }
    note_lost(metrics, errno);
    /* Removes the part of a short write; the next line would follow it otherwise. */
    int cut = ftruncate(metrics->fd, metrics->length);
    (void)cut; /* readers skip a torn line */
    return WEFT_OK;
}

void weft_metrics_close(struct weft_metrics *metrics)
{
    if (metrics == NULL) return;
    close(metrics->fd);
    free(metrics);
}

static void put_measured(struct weft_json_writer *writer, const char *name, int64_t value)
{
    weft_json_key(writer, name);
    if (value == WEFT_UNMEASURED)
        weft_json_add_null(writer);
    else
        weft_json_add_integer(writer, value);
}

/* Begins a line with the keys that all lines have, and leaves it open. */
static void begin_line(struct weft_json_writer *writer, struct weft_text *out, const char *kind,
                       int64_t step, const struct weft_run_facts *run)
{
    weft_json_writer_init(writer, out, 0);
    weft_json_begin_object(writer);
    weft_json_put_string(writer, "kind", kind);
    weft_json_put_integer(writer, "unix_ms", weft_clock_unix_ms());
    weft_json_put_integer(writer, "step", step);
    weft_json_put_number(writer, "tokens_per_s", run->tokens_per_s);
    put_measured(writer, "held_bytes", run->held_bytes);
    weft_json_put_integer(writer, "predicted_step_ns", run->predicted_step_ns);
    weft_json_put_bool(writer, "emulated", run->emulated);
}

static void end_line(struct weft_json_writer *writer)
{
    weft_json_end_object(writer);
    weft_text_add(writer->text, "\n");
}

static void put_groups(struct weft_json_writer *writer, const struct weft_group_hashes *groups)
{
    const int64_t n = groups->n < WEFT_GROUP_HASHES ? groups->n : WEFT_GROUP_HASHES;
    char hash[17];
    weft_json_key(writer, "gradients");
    weft_json_begin_object(writer);
    weft_json_put_integer(writer, "step", groups->step);
    weft_json_put_integer(writer, "ranks", groups->ranks);
    weft_json_put_integer(writer, "groups", groups->n);
    weft_json_key(writer, "hashes");
    weft_json_begin_array(writer);
    for (int64_t g = 0; g < n; g++) {
        snprintf(hash, sizeof hash, "%016" PRIx64, groups->hashes[g]);
        weft_json_add_string(writer, hash);
    }
    weft_json_end_array(writer);
    weft_json_end_object(writer);
}

void weft_metrics_step(const struct weft_step_line *line, struct weft_text *out)
{
    struct weft_json_writer writer;
    char hash[WEFT_HASH_TEXT_BYTES];
    begin_line(&writer, out, "step", line->step, &line->run);
    weft_json_put_number(&writer, "loss", line->loss);
    if (line->nodes_steps > 0) {
        weft_json_put_number(&writer, "nodes_loss", line->nodes_loss);
        weft_json_put_integer(&writer, "nodes_steps", line->nodes_steps);
    }
    if (line->norm >= 0) weft_json_put_number(&writer, "norm", line->norm);
    weft_json_put_number(&writer, "clip", line->clip);
    weft_json_put_number(&writer, "lr", line->lr);
    weft_json_put_number(&writer, "loss_scale", line->loss_scale);
    weft_json_put_integer(&writer, "step_ns", line->step_ns);
    weft_json_put_integer(&writer, "exposed_ns", line->exposed_ns);
    weft_json_put_integer(&writer, "overlapped_ns", line->overlapped_ns);
    weft_json_put_integer(&writer, "data_wait_ns", line->data_wait_ns);
    weft_json_put_integer(&writer, "tokens", line->tokens);
    weft_json_put_number(&writer, "model_flops_per_s", line->model_flops_per_s);
    weft_json_put_number(&writer, "mfu", line->mfu);
    if (line->parameters.high != 0 || line->parameters.low != 0)
        weft_json_put_string(&writer, "parameters", weft_hash_show(line->parameters, hash));
    if (line->gradients.step > 0) put_groups(&writer, &line->gradients);
    end_line(&writer);
}

void weft_metrics_group(const struct weft_group_line *line, struct weft_text *out)
{
    struct weft_json_writer writer;
    weft_json_writer_init(&writer, out, 0);
    weft_json_begin_object(&writer);
    weft_json_put_string(&writer, "kind", "group");
    weft_json_put_integer(&writer, "step", line->step);
    weft_json_put_integer(&writer, "group", line->group);
    weft_json_put_number(&writer, "loss", line->loss);
    weft_json_put_number(&writer, "norm", line->norm);
    end_line(&writer);
}

void weft_metrics_save(const struct weft_save_line *line, struct weft_text *out)
{
    struct weft_json_writer writer;
    begin_line(&writer, out, "checkpoint", line->step, &line->run);
    weft_json_put_integer(&writer, "saved_bytes", line->bytes);
    weft_json_put_integer(&writer, "save_ns", line->ns);
    end_line(&writer);
}

const char *weft_metrics_loss_of(enum weft_loss_of of)
{
    static const char *const names[] = {[WEFT_LOSS_OF_BYTE] = "byte",
                                        [WEFT_LOSS_OF_TOKEN] = "token",
                                        [WEFT_LOSS_OF_SAMPLE] = "sample"};
    return names[of];
}

void weft_metrics_evaluation(const struct weft_evaluation_line *line, struct weft_text *out)
{
    struct weft_json_writer writer;
    char name[32];
    snprintf(name, sizeof name, "bits_per_%s", weft_metrics_loss_of(line->of));
    begin_line(&writer, out, "validation", line->step, &line->run);
    weft_json_put_number(&writer, "validation_loss", line->loss);
    weft_json_put_number(&writer, name, line->loss / log(2));
    weft_json_put_integer(&writer, "samples", line->samples);
    weft_json_put_integer(&writer, "validation_ns", line->ns);
    end_line(&writer);
}

void weft_metrics_result(const struct weft_train_result *result, const struct weft_run_hosts *hosts,
                         struct weft_text *out)
{
    struct weft_json_writer writer;
    weft_json_writer_init(&writer, out, 0);
    weft_json_begin_object(&writer);
    weft_keys_write(&weft_result_keys, hosts, result, &writer);
    weft_json_end_object(&writer);
    weft_text_add(out, "\n");
}
