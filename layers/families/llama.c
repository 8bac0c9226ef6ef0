/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/families/llama.h"

#include <stdio.h>

const struct weft_field weft_llama_keys[WEFT_LLAMA_KEYS] = {WEFT_ROWS_LLAMA};

/* hidden / heads, or 0 if heads do not divide it. */
static int64_t usual_head_dim(const struct weft_layer *layer)
{
    const int64_t heads = weft_block_key(layer, WEFT_BLOCK_HEADS);
    return heads > 0 && layer->hidden % heads == 0 ? layer->hidden / heads : 0;
}

int32_t weft_llama_check(const struct weft_layer *layer, struct weft_fault faults[WEFT_FAULTS])
{
    const union weft_key *keys = layer->keys;
    const long long head_dim = keys[WEFT_BLOCK_HEAD_DIM].integer;
    const double factor = keys[WEFT_BLOCK_ROPE_FACTOR].number;
    const double low = keys[WEFT_BLOCK_ROPE_LOW].number, high = keys[WEFT_BLOCK_ROPE_HIGH].number;
    struct weft_layer of_one_size = *layer;
    if (head_dim > 0) of_one_size.hidden = head_dim * keys[WEFT_BLOCK_HEADS].integer;
    int32_t n = weft_block_check(&of_one_size, faults);
    if (head_dim > 0 && (head_dim % 2 != 0 || head_dim > WEFT_ROPE_MOST_SIZE)) {
        faults[n].key = "head_dim";
        snprintf(faults[n++].text, sizeof faults[0].text,
                 "heads have %lld columns; rotary positions turn pairs, so it must be an even "
                 "number, at most %d",
                 head_dim, WEFT_ROPE_MOST_SIZE);
    }
    if (factor == 0) return n;
    if (factor < 1) {
        faults[n].key = "rope_factor";
        snprintf(faults[n++].text, sizeof faults[0].text,
                 "rope_factor is %g; it must be at least 1, or 0 for no scaling", factor);
    } else if (!(low > 0 && low < high) || keys[WEFT_BLOCK_ROPE_ORIGINAL].integer < 1) {
        faults[n].key = "rope_low";
        snprintf(
            faults[n++].text, sizeof faults[0].text,
            "rope_low %g, rope_high %g and rope_original %lld: with a rope_factor they must be "
            "above 0, and rope_low below rope_high",
            low, high, (long long)keys[WEFT_BLOCK_ROPE_ORIGINAL].integer);
    }
    return n;
}

void weft_llama_add_sizes(const struct weft_layer *layer, struct weft_text *out)
{
    const int64_t head_dim = weft_block_key(layer, WEFT_BLOCK_HEAD_DIM);
    weft_block_add_shared_sizes(layer, out);
    if (head_dim != usual_head_dim(layer))
        weft_text_addf(out, " head_dim=%lld", (long long)head_dim);
    if (weft_block_key(layer, WEFT_BLOCK_WINDOW) > 0)
        weft_text_addf(out, " window=%lld", (long long)weft_block_key(layer, WEFT_BLOCK_WINDOW));
    if (layer->keys[WEFT_BLOCK_ATTENTION_CAP].number > 0) weft_text_add(out, " capped");
    if (layer->keys[WEFT_BLOCK_QKV_BIAS].flag) weft_text_add(out, " qkv_bias");
}
