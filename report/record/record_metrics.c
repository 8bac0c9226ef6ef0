/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "report/record/record.h"

static void read_step(const struct weft_json_value *line, struct weft_record_step *out)
{
    *out = (struct weft_record_step){
        .step = weft_record_integer(line, "step"),
        .loss = weft_record_number(line, "loss"),
        .norm = weft_record_number(line, "norm"),
        .lr = weft_record_number(line, "lr"),
        .tokens_per_s = weft_record_number(line, "tokens_per_s"),
        .held_bytes = weft_record_number(line, "held_bytes"),
        .step_ns = weft_record_number(line, "step_ns"),
        .exposed_ns = weft_record_number(line, "exposed_ns"),
        .overlapped_ns = weft_record_number(line, "overlapped_ns"),
        .data_wait_ns = weft_record_number(line, "data_wait_ns"),
        .predicted_step_ns = weft_record_number(line, "predicted_step_ns"),
    };
}

/* Adds one line. Lines of kinds that this version does not know are passed over. */
static void take_line(const struct weft_json_value *line, struct weft_record_metrics *metrics)
{
    const char *kind = "";
    bool is_emulated = false;
    weft_json_string(weft_json_member(line, "kind"), &kind);
    weft_json_bool(weft_json_member(line, "emulated"), &is_emulated);
    metrics->is_emulated |= is_emulated;
    if (strcmp(kind, "step") == 0) {
        read_step(line, &metrics->steps[metrics->n_steps++]);
    } else if (strcmp(kind, "validation") == 0) {
        metrics->validations[metrics->n_validations++] = (struct weft_record_validation){
            weft_record_integer(line, "step"), weft_record_number(line, "validation_loss")};
    } else if (strcmp(kind, "checkpoint") == 0) {
        const double ns = weft_record_number(line, "save_ns");
        metrics->n_saves++;
        if (isfinite(ns)) metrics->save_ns += ns;
    }
}

/* A run that was killed repeats the steps after its checkpoint: the last line of a step counts. */
static void order_steps(struct weft_record_metrics *metrics)
{
    int64_t n = 0;
    for (int64_t i = 0; i < metrics->n_steps; i++) {
        while (n > 0 && metrics->steps[n - 1].step >= metrics->steps[i].step)
            n--;
        metrics->steps[n++] = metrics->steps[i];
    }
    metrics->n_steps = n;
}

static enum weft_status take_lines(const char *bytes, size_t length, struct weft_source *record,
                                   struct weft_error *err)
{
    struct weft_record_metrics *metrics = &record->metrics;
    size_t n_lines = 1;
    for (size_t i = 0; i < length; i++)
        n_lines += bytes[i] == '\n';
    metrics->steps = weft_pool_array(&record->pool, n_lines, sizeof *metrics->steps);
    metrics->validations = weft_pool_array(&record->pool, n_lines, sizeof *metrics->validations);
    if (metrics->steps == NULL || metrics->validations == NULL)
        return weft_fail_memory(err, "the steps of a run");
    for (const char *at = bytes, *last = bytes + length; at < last;) {
        struct weft_json *document = NULL;
        const char *end = memchr(at, '\n', (size_t)(last - at));
        const size_t line = (size_t)((end != NULL ? end : last) - at);
        struct weft_error ignored = {0};
        const enum weft_status status =
            weft_json_parse(at, line, "metrics.jsonl", &document, &ignored);
        if (status == WEFT_E_SYSTEM) return weft_fail_memory(err, "the steps of a run");
        if (status == WEFT_OK) take_line(weft_json_root(document), metrics);
        metrics->n_torn += status != WEFT_OK && line > 0;
        weft_json_destroy(document);
        at += line + 1;
    }
    order_steps(metrics);
    return WEFT_OK;
}

enum weft_status weft_record_read_metrics(const char *path, struct weft_source *record,
                                          struct weft_error *err)
{
    char *bytes = NULL;
    size_t length = 0;
    WEFT_TRY(weft_file_read(path, INT64_C(1) << 34, &bytes, &length, err));
    enum weft_status status = take_lines(bytes, length, record, err);
    free(bytes);
    if (status == WEFT_OK && record->metrics.n_steps == 0)
        status = weft_fail(err, WEFT_E_DATA, "%s: no step is recorded yet", path);
    return status;
}
