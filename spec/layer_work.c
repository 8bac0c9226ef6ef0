/* SPDX-License-Identifier: Apache-2.0 */
#include "base/checked.h"
#include "spec/kind.h"
#include "spec/model.h"

static double bytes_of(const struct weft_subject *subject, double elements)
{
    return elements * (double)subject->element_bytes;
}

/* Least traffic: weights, input, output and saved activations move once each. Backward moves the
 * gradients of these, and everything that it reads again. */
static void moved_work(const struct weft_subject *subject, struct weft_layer_work *work)
{
    const struct weft_layer *layer = subject->layer;
    bool tokens = layer->kind->input == WEFT_READS_TOKENS;
    double input = tokens ? 4 * subject->t : bytes_of(subject, subject->t * subject->h);
    double input_gradient = tokens ? 0 : input, output = (double)work->output_bytes;
    double saved = (double)work->saved_bytes, weight_bytes = bytes_of(subject, subject->weights);
    double gradient = subject->gradients < 0 ? weight_bytes : bytes_of(subject, subject->gradients);

    work->forward_moved_bytes = weight_bytes + input + output + saved;
    const bool tables = tokens && !layer->kind->reads_tensors;
    work->backward_moved_bytes = (tables ? 0 : weight_bytes) + (layer->frozen ? 0 : gradient) +
                                 saved + output + input_gradient +
                                 (work->backward_reads_input ? input : 0) +
                                 (work->backward_reads_output ? output : 0);
}

/* Unless the kind tells, restoring reads the input and the kept bytes, and writes the dropped ones.
 * Then only whole recomputation repeats products with weights, which it reads. */
static void restored_work(const struct weft_subject *subject, struct weft_layer_work *work)
{
    const double input = bytes_of(subject, subject->t * subject->h);
    for (int level = 0; level < WEFT_RECOMPUTE_COUNT; level++) {
        const struct weft_layer_split *split = &work->splits[level];
        const double weights =
            level == WEFT_RECOMPUTE_WHOLE ? bytes_of(subject, subject->weights) : 0;
        if (split->possible)
            work->restore_moved_bytes[level] =
                split->moved_bytes > 0
                    ? split->moved_bytes
                    : input + weights + (double)split->kept_bytes + (double)split->dropped_bytes;
    }
}

static bool fits_dropped(int64_t temporary_bytes, int64_t dropped_bytes)
{
    int64_t sum;
    return temporary_bytes <= INT64_MAX - 2 * WEFT_DROPPED_ALIGN_BYTES &&
           weft_checked_add(weft_dropped_offset(temporary_bytes), dropped_bytes, &sum);
}

/* Whether sizes of every level fit into 63 bits. */
static bool splits_fit(const struct weft_layer_work *work)
{
    for (int level = 0; level < WEFT_RECOMPUTE_COUNT; level++) {
        const struct weft_layer_split *split = &work->splits[level];
        if (!split->possible) continue;
        if (split->kept_bytes < 0 || split->dropped_bytes < 0 ||
            !fits_dropped(work->forward_temporary_bytes, split->dropped_bytes) ||
            !fits_dropped(work->backward_temporary_bytes, split->dropped_bytes))
            return false;
    }
    return true;
}

int64_t weft_dropped_offset(int64_t temporary_bytes)
{
    return (temporary_bytes + WEFT_DROPPED_ALIGN_BYTES - 1) / WEFT_DROPPED_ALIGN_BYTES *
           WEFT_DROPPED_ALIGN_BYTES;
}

struct weft_layer_work weft_layer_work_at(const struct weft_layer_work *work,
                                          enum weft_recompute level)
{
    struct weft_layer_work out = *work;
    const struct weft_layer_split *split = &work->splits[level];
    if (level == WEFT_RECOMPUTE_NONE || !split->possible) return out;
    out.saved_bytes = split->kept_bytes;
    out.forward_temporary_bytes =
        weft_dropped_offset(work->forward_temporary_bytes) + split->dropped_bytes;
    out.backward_temporary_bytes =
        weft_dropped_offset(work->backward_temporary_bytes) + split->dropped_bytes;
    return out;
}

const char *weft_layer_type_of(const struct weft_layer *layer)
{
    return layer->kind->type;
}

static struct weft_subject subject_of(const struct weft_layer *layer,
                                      const struct weft_batch *batch)
{
    struct weft_subject subject = {.layer = layer, .batch = batch, .gradients = -1};
    subject.rows = weft_times(&subject.sizes, batch->samples, batch->seq_len);
    subject.element_bytes = weft_dtype_bytes(batch->compute);
    subject.t = (double)subject.rows;
    subject.s = (double)batch->seq_len;
    subject.h = (double)layer->hidden;
    subject.backward_products = layer->frozen ? 1 : 2;
    return subject;
}

enum weft_status weft_layer_work(const struct weft_layer *layer, const struct weft_batch *batch,
                                 struct weft_layer_work *out, struct weft_error *err)
{
    if (batch->samples < 1 || batch->seq_len < 1)
        return weft_layer_refuse(err, layer,
                                 "a batch of %lld samples of %lld; train.micro_batch and "
                                 "train.seq_len must be at least 1",
                                 (long long)batch->samples, (long long)batch->seq_len);
    struct weft_subject subject = subject_of(layer, batch);
    struct weft_sizes *sizes = &subject.sizes;

    /* Includes the input, so that weft_model_input_bytes cannot overflow for a layer that passed.
     */
    int64_t row_bytes = weft_times(sizes, layer->hidden, subject.element_bytes);
    weft_times(sizes, subject.rows, row_bytes > 4 ? row_bytes : 4);

    struct weft_layer_work work = {0};
    if (layer->kind->loss == WEFT_NO_LOSS)
        work.output_bytes = weft_times(sizes, weft_times(sizes, subject.rows, layer->outputs),
                                       subject.element_bytes);
    WEFT_TRY(layer->kind->needs(&subject, &work, err));
    moved_work(&subject, &work);
    restored_work(&subject, &work);
    if (sizes->overflowed || work.saved_bytes < 0 || work.backward_temporary_bytes < 0 ||
        !splits_fit(&work))
        return weft_layer_refuse(err, layer,
                                 "its buffers for %lld samples of %lld do not fit in 63 bits; make "
                                 "the layer, train.micro_batch or train.seq_len smaller",
                                 (long long)batch->samples, (long long)batch->seq_len);
    *out = work;
    return WEFT_OK;
}

/* On a GPU attention takes another time then. */
static bool hides_padding(const struct weft_layer *layer, const struct weft_batch *batch)
{
    struct weft_layer_work work;
    struct weft_error ignored = {0};
    return batch->hides && weft_layer_work(layer, batch, &work, &ignored) == WEFT_OK &&
           work.reads_padding;
}

bool weft_model_hides_padding(const struct weft_model *model, const struct weft_batch *batch)
{
    for (int32_t l = 0; l < model->n_layers; l++)
        if (hides_padding(&model->layers[l], batch)) return true;
    return false;
}

char *weft_layer_key(struct weft_pool *pool, const struct weft_layer *layer,
                     const struct weft_batch *batch)
{
    struct weft_text text;
    weft_text_init(&text);
    weft_text_add(&text, weft_layer_type_of(layer));
    if (layer->kind->add_sizes != NULL)
        layer->kind->add_sizes(layer, &text);
    else
        weft_text_addf(&text, " hidden=%lld", (long long)layer->hidden);
    if (layer->bias) weft_text_add(&text, " bias");
    /* A frozen layer computes no gradients of its weights. */
    if (layer->frozen) weft_text_add(&text, " frozen");
    if (hides_padding(layer, batch)) weft_text_add(&text, " padding");
    weft_text_addf(&text, " samples=%lld seq=%lld %s", (long long)batch->samples,
                   (long long)batch->seq_len, weft_dtype_name(batch->compute));
    char *key = weft_text_ok(&text) ? weft_pool_string(pool, weft_text_chars(&text)) : NULL;
    weft_text_finish(&text);
    return key;
}
