/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/custom.h"

#include "layers/shared/keys.h"

/* Keys of a custom layer. Hidden 0 means that the layer does not state its widths. */
static const struct weft_field custom_keys[] = {
    {"hidden", WEFT_FIELD_INTEGER, WEFT_LAYER_AT(hidden), NULL, 0, WEFT_WIDTH_MOST, NULL, NULL,
     "width of what flows in and out; 0: it does not say"},
    {"forward_flops", WEFT_FIELD_COUNT_UNIT, WEFT_KEY_AT(WEFT_CUSTOM_FORWARD_FLOPS), NULL, 0, 1e24,
     NULL, NULL, "operations of the forward pass, a sample of seq_len tokens"},
    {"backward_flops", WEFT_FIELD_COUNT_UNIT, WEFT_KEY_AT(WEFT_CUSTOM_BACKWARD_FLOPS), NULL, 0,
     1e24, NULL, NULL, "operations of the backward pass, a sample of seq_len tokens"},
    {"parameters", WEFT_FIELD_INTEGER, WEFT_KEY_AT(WEFT_CUSTOM_PARAMETERS), "0", 0, WEFT_LARGE,
     NULL, NULL, "number of parameters"},
    {"frozen_parameters", WEFT_FIELD_INTEGER, WEFT_KEY_AT(WEFT_CUSTOM_FROZEN), "null", 0,
     WEFT_LARGE, NULL, NULL, "further parameters that are not trained, as under an adapter"},
    {"output", WEFT_FIELD_BYTES, WEFT_KEY_AT(WEFT_CUSTOM_OUTPUT), "\"0B\"", 0, WEFT_LARGE, NULL,
     NULL, "output read by the next layer, a sample of seq_len tokens"},
    {"saved", WEFT_FIELD_BYTES, WEFT_KEY_AT(WEFT_CUSTOM_SAVED), "\"0B\"", 0, WEFT_LARGE, NULL, NULL,
     "saved activations, a sample of seq_len tokens"},
    {"temporary", WEFT_FIELD_BYTES, WEFT_KEY_AT(WEFT_CUSTOM_TEMPORARY), "\"0B\"", 0, WEFT_LARGE,
     NULL, NULL, "work space of either pass, a sample of seq_len tokens"},
    {"freed", WEFT_FIELD_BYTES, WEFT_KEY_AT(WEFT_CUSTOM_FREED), "\"0B\"", 0, WEFT_LARGE, NULL, NULL,
     "bytes of saved that backward has freed when it holds most; only for FSDP2"},
    {"kept", WEFT_FIELD_BYTES, WEFT_KEY_AT(WEFT_CUSTOM_KEPT), "null", 0, WEFT_LARGE, NULL, NULL,
     "saved activations of a layer that recomputes, besides its input"},
    {"restored", WEFT_FIELD_BYTES, WEFT_KEY_AT(WEFT_CUSTOM_RESTORED), "null", 0, WEFT_LARGE, NULL,
     NULL,
     "bytes that backward of a layer that recomputes holds more; left out: saved without kept"},
    {"frees_input", WEFT_FIELD_BOOL, WEFT_KEY_AT(WEFT_CUSTOM_FREES_INPUT), "null", 0, 0, NULL, NULL,
     "no backward reads its input, so the input is free after its forward"},
    {"reads_output", WEFT_FIELD_BOOL, WEFT_KEY_AT(WEFT_CUSTOM_READS_OUTPUT), "false", 0, 0, NULL,
     NULL, "backward reads its output, as a ReLU's does; otherwise only the next layer's may"},
    {"table", WEFT_FIELD_BOOL, WEFT_KEY_AT(WEFT_CUSTOM_TABLE), "false", 0, 0, NULL, NULL,
     "backward reads none of its parameters, as an embedding's does not"},
    {"checkpoints", WEFT_FIELD_BOOL, WEFT_KEY_AT(WEFT_CUSTOM_CHECKPOINTS), "null", 0, 0, NULL, NULL,
     "backward may run its forward again (plan.recompute)"},
    {"host_sync", WEFT_FIELD_BOOL, WEFT_KEY_AT(WEFT_CUSTOM_HOST_SYNC), "null", 0, 0, NULL, NULL,
     "the host waits for its forward, as for the routes of experts; only for FSDP2"},
    WEFT_ROW_TIE,
};

/* The tensor of parameters that are not trained. */
#define CUSTOM_BASE "base"

static int64_t integer_of(const struct weft_layer *layer, int key)
{
    return layer->keys[key].integer;
}

static void custom_complete(struct weft_layer *layer)
{
    layer->outputs = layer->outputs ? layer->outputs : layer->hidden;
    layer->is_table = layer->keys[WEFT_CUSTOM_TABLE].flag;
    layer->syncs_host = layer->keys[WEFT_CUSTOM_HOST_SYNC].flag;
}

static enum weft_status custom_shape(const struct weft_layer *layer, double residual_std,
                                     struct weft_layer_shape *out, struct weft_error *err)
{
    (void)residual_std, (void)err;
    const int64_t parameters = integer_of(layer, WEFT_CUSTOM_PARAMETERS);
    if (layer->tie >= 0) weft_add_vector(out, "shared", 1, WEFT_INIT_ZERO); /* the other layer's */
    const int64_t frozen = integer_of(layer, WEFT_CUSTOM_FROZEN);
    if (parameters > 0) weft_add_vector(out, "parameters", parameters, WEFT_INIT_ZERO);
    if (frozen > 0) weft_add_vector(out, CUSTOM_BASE, frozen, WEFT_INIT_ZERO);
    return WEFT_OK;
}

/* Recomputation repeats the whole forward. */
static void set_split(struct weft_subject *subject, struct weft_layer_work *work)
{
    struct weft_sizes *sizes = &subject->sizes;
    const int64_t samples = subject->batch->samples;
    int64_t kept = weft_times(sizes, samples, integer_of(subject->layer, WEFT_CUSTOM_KEPT));
    int64_t restored = weft_times(sizes, samples, integer_of(subject->layer, WEFT_CUSTOM_RESTORED));
    if (kept > work->saved_bytes) kept = work->saved_bytes;
    if (restored == 0) restored = work->saved_bytes - kept;
    work->splits[WEFT_RECOMPUTE_WHOLE] =
        (struct weft_layer_split){true, kept, restored, work->forward_flops, 0};
}

static enum weft_status custom_needs(struct weft_subject *subject, struct weft_layer_work *work,
                                     struct weft_error *err)
{
    (void)err;
    const struct weft_layer *layer = subject->layer;
    struct weft_sizes *sizes = &subject->sizes;
    int64_t samples = subject->batch->samples;
    work->output_bytes = weft_times(sizes, samples, integer_of(layer, WEFT_CUSTOM_OUTPUT));
    work->saved_bytes = weft_times(sizes, samples, integer_of(layer, WEFT_CUSTOM_SAVED));
    work->freed_bytes = weft_times(sizes, samples, integer_of(layer, WEFT_CUSTOM_FREED));
    if (work->freed_bytes > work->saved_bytes) work->freed_bytes = work->saved_bytes;
    work->forward_temporary_bytes =
        weft_times(sizes, samples, integer_of(layer, WEFT_CUSTOM_TEMPORARY));
    work->backward_temporary_bytes = work->forward_temporary_bytes;
    work->backward_reads_input = !layer->keys[WEFT_CUSTOM_FREES_INPUT].flag;
    work->backward_reads_output = layer->keys[WEFT_CUSTOM_READS_OUTPUT].flag;
    work->forward_flops = (double)samples * layer->keys[WEFT_CUSTOM_FORWARD_FLOPS].number;
    work->backward_flops = (double)samples * layer->keys[WEFT_CUSTOM_BACKWARD_FLOPS].number;
    if (layer->keys[WEFT_CUSTOM_CHECKPOINTS].flag) set_split(subject, work);
    subject->gradients = (double)integer_of(layer, WEFT_CUSTOM_PARAMETERS);
    subject->weights = subject->gradients + (double)integer_of(layer, WEFT_CUSTOM_FROZEN);
    return WEFT_OK;
}

static void custom_sizes(const struct weft_layer *layer, struct weft_text *out)
{
    weft_text_addf(out, " flops=%.17g,%.17g hidden=%lld parameters=%lld output=%lld saved=%lld",
                   layer->keys[WEFT_CUSTOM_FORWARD_FLOPS].number,
                   layer->keys[WEFT_CUSTOM_BACKWARD_FLOPS].number, (long long)layer->hidden,
                   (long long)integer_of(layer, WEFT_CUSTOM_PARAMETERS),
                   (long long)integer_of(layer, WEFT_CUSTOM_OUTPUT),
                   (long long)integer_of(layer, WEFT_CUSTOM_SAVED));
    if (integer_of(layer, WEFT_CUSTOM_FROZEN) > 0)
        weft_text_addf(out, " frozen_parameters=%lld",
                       (long long)integer_of(layer, WEFT_CUSTOM_FROZEN));
}

const struct weft_kind weft_kind_custom = {
    .type = "custom",
    .text = "anything, by its figures (planning only)",
    WEFT_KEYS(custom_keys),
    .ties = &weft_kind_custom,
    .frozen_tensor = CUSTOM_BASE,
    .complete = custom_complete,
    .shape = custom_shape,
    .needs = custom_needs,
    .add_sizes = custom_sizes,
};
