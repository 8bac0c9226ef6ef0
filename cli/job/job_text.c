/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json/json.h"
#include "base/units.h"
#include "cli/job/job.h"
#include "library/metrics/metrics.h"
#include "report/parts.h"
#include "spec/kind.h"

static void put_text(struct weft_json_writer *writer, const char *name, struct weft_text *text)
{
    weft_json_put_string(writer, name, weft_text_chars(text));
    if (!weft_text_ok(text)) writer->text->failed = true;
    weft_text_finish(text);
    weft_text_init(text);
}

void weft_job_write(const struct weft_job *job, struct weft_text *out)
{
    struct weft_json_writer writer;
    struct weft_text part;
    weft_text_init(&part);
    weft_json_writer_init(&writer, out, 0);
    weft_json_begin_object(&writer);
    weft_json_put_integer(&writer, "kind", job->kind);
    weft_json_put_bool(&writer, "virtual_clock", job->virtual_clock);
    weft_json_put_bool(&writer, "poison", job->poison);
    weft_json_put_bool(&writer, "contention", job->contention);
    weft_json_put_integer(&writer, "rounds", job->rounds);
    weft_json_put_integer(&writer, "kept_micro_batch", job->config->kept.micro_batch);
    weft_json_put_integer(&writer, "kept_group", job->config->kept.group);
    if (job->config->kept.turns)
        weft_json_put_integer(&writer, "kept_layers", job->config->kept.layers);
    weft_json_put_integer(&writer, "steps", job->steps);
    weft_json_put_integer(&writer, "replay_to", job->replay_to);
    weft_json_put_bool(&writer, "groups", job->groups);
    weft_json_put_integer(&writer, "replay_from", job->replay_from);
    if (job->dump) weft_json_put_string(&writer, "dump", job->dump);
    if (job->dump_to) weft_json_put_string(&writer, "dump_to", job->dump_to);
    if (job->replay_bits) weft_json_put_string(&writer, "replay_bits", job->replay_bits);
    if (job->replay_data) weft_json_put_string(&writer, "replay_data", job->replay_data);
    if (job->metrics) weft_json_put_string(&writer, "metrics", job->metrics);
    if (job->checkpoints) weft_json_put_string(&writer, "checkpoints", job->checkpoints);
    if (job->resume) weft_json_put_string(&writer, "resume", job->resume);
    if (job->from) weft_json_put_string(&writer, "from", job->from);
    if (job->kept != NULL) {
        weft_vault_write(job->kept, &part);
        put_text(&writer, "kept", &part);
    }
    if (job->trace) weft_json_put_string(&writer, "trace", job->trace);
    if (job->trace_steps) weft_json_put_string(&writer, "trace_steps", job->trace_steps);
    if (job->tensorboard) weft_json_put_string(&writer, "tensorboard", job->tensorboard);
    const struct weft_kinds *kinds = job->config->kinds;
    if (kinds != NULL) {
        weft_json_key(&writer, "layers");
        weft_json_begin_array(&writer);
        for (int32_t i = 0; i < kinds->n_files; i++)
            weft_json_add_string(&writer, kinds->files[i]);
        weft_json_end_array(&writer);
    }
    weft_config_write(job->config, &part);
    put_text(&writer, "config", &part);
    if (job->profile) {
        weft_profile_write(job->profile, &part);
        put_text(&writer, "profile", &part);
    }
    if (job->plan) {
        weft_plan_write(job->plan, &part);
        put_text(&writer, "plan", &part);
    }
    weft_json_end_object(&writer);
    weft_text_finish(&part);
}

enum weft_status weft_job_read_result(const struct weft_text *text, struct weft_train_result *out,
                                      struct weft_error *err)
{
    static const char where[] = "rank 0's result";
    const struct weft_tier_use use = {.measured_bytes = WEFT_UNMEASURED};
    struct weft_json *document = NULL;
    /* Nulls of the text stay unmeasured. */
    struct weft_train_result result = {
        .first_loss = NAN,
        .last_loss = NAN,
        .validation_loss = NAN,
        .step_ns = WEFT_UNMEASURED,
        .exposed_ns = WEFT_UNMEASURED,
        .overlapped_ns = WEFT_UNMEASURED,
        .data_wait_ns = WEFT_UNMEASURED,
        .tiers = {use, use, use},
        .outside = use,
    };
    WEFT_TRY(weft_json_parse(weft_text_chars(text), text->length, where, &document, err));
    enum weft_status status =
        weft_keys_read(&weft_result_keys, weft_json_root(document), where, NULL, &result, err);
    weft_json_destroy(document);
    if (status == WEFT_OK) *out = result;
    return status;
}

/* Puts the parts that fit the width. The metrics have all of them. */
void weft_job_step_line(const struct weft_step_line *line, struct weft_text *out)
{
    enum { STEP, LOSS, NORM, RATE, TIME, EXPOSED, SPEED, N_PARTS };
    static const int32_t worth[N_PARTS] = {STEP, LOSS, TIME, NORM, SPEED, EXPOSED, RATE};
    struct weft_parts parts = {.between = "  ", .worth = worth, .n = N_PARTS, .always = 3};
    char time[WEFT_UNITS_TEXT_BYTES], norm[32] = "-";
    if (line->norm >= 0) snprintf(norm, sizeof norm, "%.4f", line->norm);
    snprintf(parts.texts[STEP], WEFT_PART_BYTES, "step %*lld/%lld", line->steps >= 1000 ? 5 : 3,
             (long long)line->step, (long long)line->steps);
    snprintf(parts.texts[LOSS], WEFT_PART_BYTES, "loss %.4f", weft_units_unsigned_nan(line->loss));
    snprintf(parts.texts[NORM], WEFT_PART_BYTES, "norm %7s", norm);
    snprintf(parts.texts[RATE], WEFT_PART_BYTES, "lr %.2e", line->lr);
    snprintf(parts.texts[TIME], WEFT_PART_BYTES, "%7s%s", weft_units_show_ns(line->step_ns, time),
             line->run.emulated ? " emulated" : "");
    snprintf(parts.texts[EXPOSED], WEFT_PART_BYTES, "exposed %7s",
             weft_units_show_ns(line->exposed_ns, time));
    snprintf(parts.texts[SPEED], WEFT_PART_BYTES, "%6.0f tokens/s", line->run.tokens_per_s);
    weft_parts_render(&parts, out->columns, out);
    weft_text_add(out, "\n");
}

void weft_job_save_line(const struct weft_save_line *line, struct weft_text *out)
{
    char bytes[WEFT_UNITS_TEXT_BYTES], time[WEFT_UNITS_TEXT_BYTES];
    weft_text_addf(out, "saved %s/step-%lld, %s; training waited %s\n", line->directory,
                   (long long)line->step, weft_units_show_bytes(line->bytes, bytes),
                   weft_units_show_ns(line->ns, time));
}

void weft_job_evaluation_line(const struct weft_evaluation_line *line, struct weft_text *out)
{
    char time[WEFT_UNITS_TEXT_BYTES];
    const double loss = weft_units_unsigned_nan(line->loss);
    weft_text_addf(out,
                   "validation after step %lld  loss %.4f, %.4f bits a %s  %lld samples, %s%s\n",
                   (long long)line->step, loss, loss / log(2), weft_metrics_loss_of(line->of),
                   (long long)line->samples, weft_units_show_ns(line->ns, time),
                   line->run.emulated ? " emulated" : "");
}
