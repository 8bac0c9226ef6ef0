/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "report/record/record.h"

enum { MOST_LANES = 64, MOST_RANKS = 4096 };

/* The format counts microseconds, and a host's clock those since its start. The limit of 31 years
 * lets sums of nanoseconds fit. */
static int64_t read_us(const struct weft_json_value *event, const char *name)
{
    const double us = weft_record_number(event, name);
    return isfinite(us) && fabs(us) < 1e15 ? (int64_t)llround(us * 1000) : 0;
}

static bool has_word(const struct weft_json_value *event, const char *name, const char *word)
{
    const char *text = "";
    return weft_json_string(weft_json_member(event, name), &text) && strcmp(text, word) == 0;
}

/* The part of a file that a report shows: the last step of the first rank. */
struct shown {
    int64_t process, step, begins_ns;
};

/* A process is named "rank 0, wall clock": after the rank by the clock of its times. */
static void take_clock(struct weft_source *record, const struct weft_json_value *event)
{
    const char *name = weft_record_word(record, weft_json_member(event, "args"), "name");
    const char *comma = strstr(name, ", ");
    if (has_word(event, "name", "process_name") && comma) record->trace->source = comma + 2;
}

static void take_lane(struct weft_source *record, const struct weft_json_value *event)
{
    struct weft_record_trace *trace = record->trace;
    const struct weft_json_value *args = weft_json_member(event, "args");
    const int64_t lane = weft_record_integer(event, "tid");
    if (!has_word(event, "name", "thread_name") || has_word(args, "name", "launches") || lane < 0 ||
        lane >= MOST_LANES)
        return;
    trace->lanes[lane] = weft_record_word(record, args, "name");
    if (lane >= trace->n_lanes) trace->n_lanes = (int32_t)lane + 1;
}

/* An event with a duration: "backward h.3", "all_gather h.3 block 2", "exposed". */
static void take_span(struct weft_source *record, const struct shown *shown,
                      const struct weft_json_value *event)
{
    struct weft_record_trace *trace = record->trace;
    struct weft_record_event *out = &trace->events[trace->n_events];
    const int64_t lane = weft_record_integer(event, "tid");
    const char *name = "";
    weft_json_string(weft_json_member(event, "name"), &name);
    if (lane < 0 || lane >= trace->n_lanes || has_word(event, "name", "wait for data") ||
        weft_record_integer(weft_json_member(event, "args"), "step") != shown->step)
        return;
    const size_t word = strcspn(name, " ");
    const char *op = weft_pool_format(&record->pool, "%.*s", (int)word, name);
    const char *rest = weft_pool_string(&record->pool, name + word + (name[word] == ' '));
    *out = (struct weft_record_event){
        .op = op != NULL ? op : "",
        .name = rest != NULL ? rest : "",
        .lane = (int32_t)lane,
        .from_ns = read_us(event, "ts") - shown->begins_ns,
        .exposed = strcmp(name, "exposed") == 0,
    };
    out->to_ns = out->from_ns + read_us(event, "dur");
    if (out->from_ns < 0 || out->to_ns < out->from_ns) return;
    if (out->to_ns > trace->step_ns) trace->step_ns = out->to_ns;
    trace->n_events++;
}

static void take_live(struct weft_source *record, const struct shown *shown,
                      const struct weft_json_value *event)
{
    struct weft_record_trace *trace = record->trace;
    const int64_t at_ns = read_us(event, "ts") - shown->begins_ns;
    double bytes = 0, one;
    if (at_ns < 0) return; /* of a step before */
    const struct weft_json_value *args = weft_json_member(event, "args");
    for (const struct weft_json_value *at = weft_json_first(args); at != NULL;
         at = weft_json_next(at))
        if (weft_json_number(at, &one) && one >= 0 && one < 9e15) bytes += one;
    trace->lives[trace->n_lives++] = (struct weft_record_live){at_ns, (int64_t)bytes};
}

static int compare_ranks(const void *a, const void *b)
{
    const struct weft_record_rank *one = a, *other = b;
    return (one->rank > other->rank) - (one->rank < other->rank);
}

/* Lists the first MOST_RANKS processes that are ranks: their names begin with "rank ". */
static bool list_ranks(struct weft_source *record, const struct weft_json_value *events)
{
    struct weft_record_trace *trace = record->trace;
    for (const struct weft_json_value *at = weft_json_first(events); at != NULL;
         at = weft_json_next(at)) {
        const char *name = "";
        if (trace->n_ranks == MOST_RANKS) break;
        weft_json_string(weft_json_member(weft_json_member(at, "args"), "name"), &name);
        if (!has_word(at, "name", "process_name") || strncmp(name, "rank ", 5) != 0) continue;
        int64_t *busy_ns = weft_pool_array(&record->pool, MOST_LANES, sizeof *busy_ns);
        if (busy_ns == NULL) return false;
        trace->ranks[trace->n_ranks++] =
            (struct weft_record_rank){weft_record_integer(at, "pid"), busy_ns, 0};
    }
    qsort(trace->ranks, (size_t)trace->n_ranks, sizeof *trace->ranks, compare_ranks);
    return true;
}

/* NULL: the process is no rank. */
static struct weft_record_rank *find_rank(struct weft_record_trace *trace, int64_t process)
{
    if (process >= 0 && process < trace->n_ranks && trace->ranks[process].rank == process)
        return &trace->ranks[process];
    for (int32_t i = 0; i < trace->n_ranks; i++)
        if (trace->ranks[i].rank == process) return &trace->ranks[i];
    return NULL;
}

/* Adds a span of the shown step to its rank. */
static void add_to_rank(struct weft_record_trace *trace, const struct weft_json_value *event)
{
    struct weft_record_rank *rank = find_rank(trace, weft_record_integer(event, "pid"));
    const int64_t lane = weft_record_integer(event, "tid");
    if (rank == NULL || lane < 0 || lane >= trace->n_lanes ||
        has_word(event, "name", "wait for data") ||
        weft_record_integer(weft_json_member(event, "args"), "step") != trace->step)
        return;
    const int64_t ns = read_us(event, "dur");
    *(has_word(event, "name", "exposed") ? &rank->exposed_ns : &rank->busy_ns[lane]) += ns;
}

/* Processes are ranks, and after them the prediction. Each step has an event with its begin. */
static struct shown find_shown(const struct weft_json_value *events)
{
    struct shown shown = {.process = INT64_MAX, .step = -1};
    const struct weft_json_value *at;
    for (at = weft_json_first(events); at != NULL; at = weft_json_next(at)) {
        const int64_t process = weft_record_integer(at, "pid");
        if (process >= 0 && process < shown.process) shown.process = process;
    }
    for (at = weft_json_first(events); at != NULL; at = weft_json_next(at)) {
        const struct weft_json_value *args = weft_json_member(at, "args");
        const int64_t step = weft_record_integer(args, "step");
        if (weft_record_integer(at, "pid") != shown.process || step < shown.step ||
            !has_word(at, "cat", "user_annotation"))
            continue;
        shown.step = step;
        shown.begins_ns = read_us(args, "begins_us");
    }
    return shown;
}

static void take_events(struct weft_source *record, const struct weft_json_value *events)
{
    const struct shown shown = find_shown(events);
    for (const struct weft_json_value *at = weft_json_first(events); at != NULL;
         at = weft_json_next(at)) {
        if (weft_record_integer(at, "pid") != shown.process) continue;
        if (has_word(at, "ph", "M")) take_clock(record, at);
        if (has_word(at, "ph", "M")) take_lane(record, at);
        if (has_word(at, "ph", "X")) take_span(record, &shown, at);
        if (has_word(at, "ph", "C")) take_live(record, &shown, at);
    }
    record->trace->step = shown.step;
    for (const struct weft_json_value *at = weft_json_first(events); at != NULL;
         at = weft_json_next(at))
        if (has_word(at, "ph", "X")) add_to_rank(record->trace, at);
}

/* Names the forms that --trace writes and this reader does not read. */
static enum weft_status check_form(const char *path, struct weft_error *err)
{
    struct stat about;
    unsigned char magic[2] = {0};
    if (strcmp(path, "-") == 0 || stat(path, &about) != 0) return WEFT_OK;
    if (S_ISDIR(about.st_mode))
        return weft_fail(
            err, WEFT_E_DATA,
            "%s: a folder, of the form --trace DIR/, cannot be read: trace to FILE.json", path);
    FILE *file = S_ISREG(about.st_mode) ? fopen(path, "rb") : NULL;
    if (file == NULL) return WEFT_OK; /* the reader says why */
    const size_t n = fread(magic, 1, sizeof magic, file);
    fclose(file);
    if (n < sizeof magic || magic[0] != 0x1f || magic[1] != 0x8b) return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA, "%s: a compressed trace cannot be read: trace to FILE.json",
                     path);
}

enum weft_status weft_record_read_trace(const char *path, struct weft_source *record,
                                        struct weft_error *err)
{
    struct weft_json *document = NULL;
    WEFT_TRY(check_form(path, err));
    WEFT_TRY(weft_json_read(path, &document, err));
    const struct weft_json_value *root = weft_json_root(document);
    const struct weft_json_value *events = weft_json_member(root, "traceEvents");
    const size_t n = events != NULL ? weft_json_count(events) : 0;
    struct weft_record_trace *trace = weft_pool_array(&record->pool, 1, sizeof *trace);
    enum weft_status status = WEFT_OK;
    if (trace != NULL) {
        trace->lanes = weft_pool_array(&record->pool, MOST_LANES, sizeof *trace->lanes);
        trace->events = weft_pool_array(&record->pool, n, sizeof *trace->events);
        trace->lives = weft_pool_array(&record->pool, n, sizeof *trace->lives);
        trace->ranks = weft_pool_array(&record->pool, n, sizeof *trace->ranks);
    }
    if (trace == NULL || trace->lanes == NULL || trace->events == NULL || trace->lives == NULL ||
        trace->ranks == NULL) {
        status = weft_fail_memory(err, "a trace");
    } else {
        for (int32_t lane = 0; lane < MOST_LANES; lane++)
            trace->lanes[lane] = "";
        trace->source = weft_record_word(record, root, "source");
        record->trace = trace;
        if (list_ranks(record, events))
            take_events(record, events);
        else
            status = weft_fail_memory(err, "a trace");
    }
    if (status == WEFT_OK && trace->n_events == 0) {
        record->trace = NULL;
        status = weft_fail(err, WEFT_E_DATA,
                           "%s: no trace of weft train --trace FILE.json: it has no events", path);
    }
    weft_json_destroy(document);
    return status;
}
