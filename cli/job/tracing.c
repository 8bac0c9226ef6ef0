/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* for memfd_create */
#include "cli/job/tracing.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "cli/flags.h"
#include "cli/gzip.h"
#include "program/trace_chrome.h"
#include "program/works.h"

static bool read_range(const char **at, struct weft_tracing_range *out)
{
    char *end = NULL;
    out->first = out->last = strtoll(*at, &end, 10);
    if (end == *at || out->first < 1) return false;
    *at = end;
    if (strncmp(end, "..", 2) == 0) {
        const char *second = end + 2;
        out->last = strtoll(second, &end, 10);
        if (end == second || out->last < out->first) return false;
        *at = end;
    }
    return **at == ',' || **at == '\0';
}

enum weft_status weft_tracing_read_steps(const char *text, int64_t most,
                                         struct weft_tracing_steps *out, struct weft_error *err)
{
    struct weft_tracing_steps steps = {0};
    int64_t n_steps = 0;
    for (const char *at = text; at != NULL; at = *at == ',' ? at + 1 : NULL) {
        struct weft_tracing_range range = {0};
        const char *begun = at;
        if (steps.n == WEFT_TRACING_RANGES || !read_range(&at, &range))
            return weft_fail(err, WEFT_E_USAGE,
                             "--trace-steps %s: at \"%s\": write steps and ranges with commas "
                             "between them, such as 3,10..12, at most %d of them",
                             text, begun, WEFT_TRACING_RANGES);
        if (most > 0 && range.last > most)
            return weft_fail(err, WEFT_E_USAGE,
                             "--trace-steps %s: the run has no step %lld; train.steps is %lld",
                             text, (long long)range.last, (long long)most);
        if (range.last - range.first >= WEFT_TRACING_MOST_STEPS - n_steps)
            return weft_fail(err, WEFT_E_USAGE, "--trace-steps %s: more than %d steps", text,
                             WEFT_TRACING_MOST_STEPS);
        n_steps += range.last - range.first + 1;
        steps.ranges[steps.n++] = range;
    }
    *out = steps;
    return WEFT_OK;
}

bool weft_tracing_is_folder(const char *path)
{
    struct stat at;
    const size_t length = strlen(path);
    if (length > 0 && path[length - 1] == '/') return true;
    return stat(path, &at) == 0 && S_ISDIR(at.st_mode);
}

enum weft_status weft_tracing_check(const char *path, struct weft_error *err)
{
    struct stat at;
    if (!weft_tracing_is_folder(path)) {
        if (weft_gzip_is_asked(path) && !weft_gzip_is_there())
            return weft_fail(err, WEFT_E_SYSTEM,
                             "--trace %s: this program was built without zlib: leave .gz out of "
                             "the name",
                             path);
        return weft_flag_check_folder("--trace", path, err);
    }
    if (stat(path, &at) != 0) WEFT_TRY(weft_file_make_directory(path, err));
    if (access(path, W_OK) == 0) return WEFT_OK;
    return weft_fail(err, WEFT_E_CREATE, "--trace %s: %s", path, strerror(errno));
}

static enum weft_status make_memory_file(int *out, struct weft_error *err)
{
    *out = memfd_create("WEFT_TRACE", MFD_CLOEXEC);
    if (*out >= 0) return WEFT_OK;
    return weft_fail(err, WEFT_E_SYSTEM, "a memory file for the trace cannot be made: %s",
                     strerror(errno));
}

/* Ranks share the file's offset, so a lock keeps the parts of their writes together. */
static enum weft_status append_events(int fd, const struct weft_text *text, struct weft_error *err)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (!weft_text_ok(text)) return weft_fail_memory(err, "the trace");
    while (fcntl(fd, F_SETLKW, &lock) != 0)
        if (errno != EINTR)
            return weft_fail(err, WEFT_E_SYSTEM, "the trace's memory file cannot be locked: %s",
                             strerror(errno));
    enum weft_status status = WEFT_OK;
    for (size_t written = 0; written < text->length && status == WEFT_OK;) {
        ssize_t n = write(fd, weft_text_chars(text) + written, text->length - written);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            status = weft_fail(err, WEFT_E_SYSTEM, "the trace does not fit in memory: %s",
                               strerror(errno));
        else
            written += (size_t)n;
    }
    lock.l_type = F_UNLCK;
    if (fcntl(fd, F_SETLK, &lock) != 0 && status == WEFT_OK)
        status = weft_fail(err, WEFT_E_SYSTEM, "the trace's memory file cannot be unlocked: %s",
                           strerror(errno));
    return status;
}

enum weft_status weft_tracing_open(const char *path, const char *steps, int32_t rank, int32_t ranks,
                                   int fd, struct weft_tracing *out, struct weft_error *err)
{
    struct weft_tracing tracing = {.path = path, .rank = rank, .ranks = ranks, .fd = -1};
    WEFT_TRY(weft_tracing_read_steps(steps, 0, &tracing.steps, err));
    if (weft_tracing_is_folder(path)) {
        WEFT_TRY(make_memory_file(&tracing.fd, err));
    } else {
        tracing.predicts = rank == 0;
        tracing.fd = fd;
        /* Ranks of other hosts share no memory with the launcher. */
        if (fd < 0) tracing.path = NULL;
    }
    *out = tracing;
    return WEFT_OK;
}

static bool is_traced(const struct weft_tracing_steps *steps, int64_t step, int64_t last)
{
    if (steps->n == 0) return step == last;
    for (int32_t i = 0; i < steps->n; i++)
        if (step >= steps->ranges[i].first && step <= steps->ranges[i].last) return true;
    return false;
}

/* Whether the periods with the updates of two steps take the same time: without averages over nodes
 * all with an update do. */
static bool is_alike(const struct weft_program *program, int64_t a, int64_t b)
{
    if (a == b) return true;
    return program->period.every == 0 && a != WEFT_STEP_OF_NO_UPDATE && b != WEFT_STEP_OF_NO_UPDATE;
}

static enum weft_status forecast_step(struct weft_tracing *tracing,
                                      const struct weft_program *program, int64_t updated,
                                      struct weft_error *err)
{
    if (tracing->forecast != NULL && is_alike(program, tracing->forecast->updated, updated))
        return WEFT_OK;
    weft_trace_destroy(tracing->forecast);
    tracing->forecast = NULL;
    return weft_simulate_step(program, updated, &tracing->forecast, err);
}

static void add_forecast(const struct weft_tracing *tracing, const struct weft_program *program,
                         const struct weft_plan *plan, int64_t step, int64_t zero_ns,
                         struct weft_text *out)
{
    const struct weft_chrome_process process = {
        .number = tracing->ranks, .order = -1, .title = "prediction, of any rank"};
    if (!tracing->has_names) weft_chrome_add_names(&process, program, out);
    weft_chrome_add_step(&process, program, plan, tracing->forecast, step, zero_ns, out);
}

enum weft_status weft_tracing_add(struct weft_tracing *tracing, const struct weft_program *program,
                                  const struct weft_plan *plan, const struct weft_trace *trace,
                                  int64_t step, int64_t steps, struct weft_error *err)
{
    char title[96];
    const struct weft_chrome_process process = {.number = tracing->rank,
                                                .order = tracing->rank,
                                                .title = title,
                                                .names_kernels =
                                                    tracing->path != NULL && !tracing->predicts &&
                                                    weft_tracing_is_folder(tracing->path)};
    struct weft_text text;
    if (tracing->path == NULL || !is_traced(&tracing->steps, step, steps)) return WEFT_OK;
    if (tracing->predicts) WEFT_TRY(forecast_step(tracing, program, trace->updated, err));
    snprintf(tracing->source, sizeof tracing->source, "%s", trace->source);
    snprintf(title, sizeof title, "rank %d, %s", tracing->rank, trace->source);
    weft_text_init(&text);
    if (tracing->predicts) add_forecast(tracing, program, plan, step, trace->zero_ns, &text);
    if (!tracing->has_names) weft_chrome_add_names(&process, program, &text);
    tracing->has_names = true;
    weft_chrome_add_step(&process, program, plan, trace, step, trace->zero_ns, &text);
    const enum weft_status status = append_events(tracing->fd, &text, err);
    weft_text_finish(&text);
    return status;
}

/* DIR/rank-3.json.gz; without zlib DIR/rank-3.json. */
static void show_rank_path(const char *folder, int32_t rank, struct weft_text *out)
{
    const size_t length = strlen(folder);
    const char *slash = length > 0 && folder[length - 1] == '/' ? "" : "/";
    weft_text_addf(out, "%s%srank-%d.json%s", folder, slash, rank,
                   weft_gzip_is_there() ? ".gz" : "");
}

static enum weft_status write_events(const char *path, int32_t rank, int32_t ranks,
                                     const char *source, const struct weft_text *events,
                                     struct weft_error *err)
{
    struct weft_text file;
    weft_text_init(&file);
    weft_chrome_add_file(rank, ranks, source, events, &file);
    const enum weft_status status = weft_gzip_write(path, &file, err);
    weft_text_finish(&file);
    return status;
}

/* In a folder's form; a rank without a traced step writes no file. */
static enum weft_status write_own(const char *folder, int32_t rank, int32_t ranks,
                                  const char *source, const struct weft_text *events,
                                  struct weft_error *err)
{
    struct weft_text path;
    weft_text_init(&path);
    show_rank_path(folder, rank, &path);
    enum weft_status status =
        weft_text_ok(&path) ? write_events(weft_text_chars(&path), rank, ranks, source, events, err)
                            : weft_fail_memory(err, "a path");
    weft_text_finish(&path);
    return status;
}

enum weft_status weft_tracing_end(struct weft_tracing *tracing, struct weft_error *err)
{
    struct weft_text events;
    if (tracing->path == NULL || !weft_tracing_is_folder(tracing->path)) return WEFT_OK;
    if (tracing->source[0] == '\0') {
        if (tracing->rank == 0)
            weft_log(WEFT_LOG_WARNING,
                     "--trace %s: none of its steps was run, so there is no trace", tracing->path);
        return WEFT_OK;
    }
    weft_text_init(&events);
    enum weft_status status = weft_file_read_open(tracing->fd, "the trace", &events, err);
    if (status == WEFT_OK)
        status =
            write_own(tracing->path, tracing->rank, tracing->ranks, tracing->source, &events, err);
    weft_text_finish(&events);
    return status;
}

void weft_tracing_close(struct weft_tracing *tracing)
{
    if (tracing->path != NULL && weft_tracing_is_folder(tracing->path)) close(tracing->fd);
    weft_trace_destroy(tracing->forecast);
    *tracing = (struct weft_tracing){.fd = -1};
}

enum weft_status weft_tracing_join(const char *path, int fd, int32_t ranks, struct weft_error *err)
{
    struct weft_text events;
    if (weft_tracing_is_folder(path)) return WEFT_OK;
    weft_text_init(&events);
    enum weft_status status = weft_file_read_open(fd, "the trace", &events, err);
    if (status == WEFT_OK && events.length == 0)
        weft_log(WEFT_LOG_WARNING, "--trace %s: none of its steps was run, so there is no trace",
                 path);
    else if (status == WEFT_OK)
        status = write_events(path, 0, ranks, "weft train", &events, err);
    weft_text_finish(&events);
    return status;
}

enum weft_status weft_tracing_simulate(const char *path, const struct weft_program *program,
                                       const struct weft_plan *plan, struct weft_error *err)
{
    const bool folder = weft_tracing_is_folder(path);
    const struct weft_chrome_process process = {.title = "prediction, of any rank",
                                                .names_kernels = folder};
    struct weft_trace *trace = NULL;
    struct weft_text events;
    /* The first step with the updates of a step that nodes average. */
    const int64_t averaged = program->period.every;
    WEFT_TRY(weft_tracing_check(path, err));
    WEFT_TRY(weft_simulate_step(program, averaged, &trace, err));
    weft_text_init(&events);
    weft_chrome_add_names(&process, program, &events);
    weft_chrome_add_step(&process, program, plan, trace, averaged + 1, 0, &events);
    const int32_t ranks = plan->problem->ranks > 0 ? (int32_t)plan->problem->ranks : 1;
    const enum weft_status status = folder
                                        ? write_own(path, 0, ranks, trace->source, &events, err)
                                        : write_events(path, 0, ranks, trace->source, &events, err);
    weft_text_finish(&events);
    weft_trace_destroy(trace);
    return status;
}
