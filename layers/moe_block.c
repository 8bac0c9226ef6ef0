/* SPDX-License-Identifier: Apache-2.0 */
/* Mixtral's block (Jiang et al. 2024). Each token passes through active_experts of the experts.
 * Tokens are assumed to spread evenly, without a capacity limit or dropped tokens. Planning only.
 *
 * Tensors: those of attention (shared/block.h), 6 router [experts, h], 7 gate [experts * ffn, h], 8
 * up, 9 down [experts * h, ffn]. */
#include <stdio.h>

#include "layers/shared/block.h"

static const struct weft_field moe_block_keys[] = {
    WEFT_ROW_HIDDEN,
    WEFT_ROW_HEADS,
    WEFT_ROW_FFN,
    {"experts", WEFT_FIELD_INTEGER, WEFT_KEY_AT(WEFT_BLOCK_EXPERTS), NULL, 1, 65536, NULL, NULL,
     "feed-forward parts that tokens are spread over"},
    WEFT_ROW_KV_HEADS,
    {"active_experts", WEFT_FIELD_INTEGER, WEFT_KEY_AT(WEFT_BLOCK_ACTIVE_EXPERTS), "2", 1, 65536,
     NULL, NULL, "experts that see one token"},
};

static int32_t moe_block_check(const struct weft_layer *layer,
                               struct weft_fault faults[WEFT_FAULTS])
{
    long long experts = weft_block_key(layer, WEFT_BLOCK_EXPERTS);
    long long active = weft_block_key(layer, WEFT_BLOCK_ACTIVE_EXPERTS);
    int32_t n = weft_block_check(layer, faults);
    if (experts < 1 || active <= experts) return n;
    faults[n].key = "active_experts";
    snprintf(faults[n++].text, sizeof faults[0].text,
             "active_experts is %lld; it must be from 1 to %lld", active, experts);
    return n;
}

static enum weft_status moe_block_shape(const struct weft_layer *layer, double residual_std,
                                        struct weft_layer_shape *out, struct weft_error *err)
{
    (void)err;
    int64_t h = layer->hidden, f = weft_block_key(layer, WEFT_BLOCK_FFN);
    int64_t experts = weft_block_key(layer, WEFT_BLOCK_EXPERTS);
    weft_block_add_attention(layer, residual_std, out);
    weft_add_matrix(out, "router.weight", experts, h, WEFT_INIT_STD);
    weft_add_matrix(out, "experts.gate.weight", weft_size(experts, f), h, WEFT_INIT_STD);
    weft_add_matrix(out, "experts.up.weight", weft_size(experts, f), h, WEFT_INIT_STD);
    weft_add_matrix(out, "experts.down.weight", weft_size(experts, h), f, residual_std);
    return WEFT_OK;
}

static enum weft_status moe_block_needs(struct weft_subject *subject, struct weft_layer_work *work,
                                        struct weft_error *err)
{
    (void)err;
    const struct weft_layer *layer = subject->layer;
    struct weft_sizes *sizes = &subject->sizes;
    int64_t f = weft_block_key(layer, WEFT_BLOCK_FFN);
    int64_t experts = weft_block_key(layer, WEFT_BLOCK_EXPERTS);
    int64_t active = weft_block_key(layer, WEFT_BLOCK_ACTIVE_EXPERTS);
    int64_t f3 = weft_times(sizes, 3, f), h2 = weft_times(sizes, 2, layer->hidden);
    double h = subject->h, kv = (double)weft_block_kv_width(layer);
    double outer = h * (2 * h + 2 * kv + (double)experts), expert = 3 * h * (double)f;
    /* Each active expert saves its copy of the row, gate, up, their product and its output. */
    int64_t saved = weft_plus(sizes, weft_block_saved_attention(subject),
                              weft_times(sizes, active, weft_plus(sizes, f3, h2)));
    int64_t inner =
        weft_times(sizes, active, weft_plus(sizes, weft_times(sizes, 2, f), layer->hidden));
    /* rstd of two norms, the logs of row sums, and the router's weights */
    int64_t f32 =
        weft_plus(sizes, weft_plus(sizes, 2, weft_block_key(layer, WEFT_BLOCK_HEADS)), experts);
    weft_block_set_buffers(subject, saved, f32, weft_block_temporary_row(subject, inner), work);
    weft_block_set_flops(subject, outer + (double)active * expert, 2 * subject->t * subject->s * h,
                         work);
    subject->weights = outer + (double)experts * expert;
    return WEFT_OK;
}

static void moe_block_sizes(const struct weft_layer *layer, struct weft_text *out)
{
    weft_block_add_shared_sizes(layer, out);
    weft_text_addf(out, " experts=%lld/%lld",
                   (long long)weft_block_key(layer, WEFT_BLOCK_ACTIVE_EXPERTS),
                   (long long)weft_block_key(layer, WEFT_BLOCK_EXPERTS));
}

const struct weft_kind weft_kind_moe_block = {
    .type = "moe_block",
    .text = "Mixtral block: Llama's attention, and experts of width ffn (planning only)",
    WEFT_KEYS(moe_block_keys),
    .closes_residual = true,
    .complete = weft_block_complete,
    .check = moe_block_check,
    .shape = moe_block_shape,
    .needs = moe_block_needs,
    .add_sizes = moe_block_sizes,
};
