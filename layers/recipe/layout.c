/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/recipe/layout.h"

#include <string.h>

#include "layers/recipe/walk.h"

/* A walk, with offsets by name. Names are those of the kind's steps. */
struct named {
    const struct weft_walk *walk;
    bool fits;
};

static struct named named_of(const struct weft_walk *walk)
{
    return (struct named){walk, !walk->fits.overflowed};
}

/* Derives a walk; one that cannot be derived has no layout. */
static const struct weft_walk *derive_named(const struct weft_layer *layer,
                                            const struct weft_batch *batch,
                                            enum weft_recompute level, struct weft_walk *own)
{
    struct weft_error unsaid = {0};
    if (weft_walk_derive(layer, batch, level, own, &unsaid) != WEFT_OK) own->fits.overflowed = true;
    return own;
}

static int64_t bytes_if(const struct named *named, int64_t bytes)
{
    return named->fits ? bytes : -1;
}

static const struct weft_value *find_named(const struct named *named, const char *name,
                                           const char *suffix)
{
    return named->fits ? weft_walk_find(named->walk, name, suffix) : NULL;
}

static int64_t saved_at(const struct named *named, const char *name, const char *suffix)
{
    const struct weft_value *value = find_named(named, name, suffix);
    return value != NULL ? value->offset : -1;
}

static int64_t gradient_at(const struct named *named, const char *name)
{
    const struct weft_walk *walk = named->walk;
    for (int32_t i = WEFT_GRADIENT_GIVEN; named->fits && i < walk->n_gradients; i++)
        if (strcmp(walk->values[walk->gradients[i].value].name, name) == 0)
            return walk->gradients[i].offset;
    return -1;
}

static int64_t gap_of(const struct named *named, const char *name)
{
    const struct weft_value *value = find_named(named, name, NULL);
    return value != NULL ? value->gap : -1;
}

struct weft_transformer_block_layout weft_layout_transformer_block_of(const struct weft_walk *walk)
{
    const struct named at = named_of(walk);
    return (struct weft_transformer_block_layout){
        .saved = {.ln1_mean = saved_at(&at, "ln1", "mean"),
                  .ln1_rstd = saved_at(&at, "ln1", "rstd"),
                  .ln1_out = saved_at(&at, "ln1", NULL),
                  .qkv = saved_at(&at, "qkv", NULL),
                  .probabilities = saved_at(&at, "attention", "probabilities"),
                  .attention = saved_at(&at, "attention", NULL),
                  .residual = saved_at(&at, "residual", NULL),
                  .ln2_mean = saved_at(&at, "ln2", "mean"),
                  .ln2_rstd = saved_at(&at, "ln2", "rstd"),
                  .ln2_out = saved_at(&at, "ln2", NULL),
                  .fc = saved_at(&at, "fc", NULL),
                  .gelu = saved_at(&at, "gelu", NULL),
                  .bytes = bytes_if(&at, at.walk->kept_bytes),
                  .dropped_bytes = bytes_if(&at, at.walk->dropped_bytes)},
        .backward = {.d_fc = gradient_at(&at, "gelu"),
                     .d_qkv = gradient_at(&at, "qkv"),
                     .d_ln2 = gradient_at(&at, "ln2"),
                     .d_attention = gradient_at(&at, "attention"),
                     .d_ln1 = gradient_at(&at, "ln1"),
                     .d_residual = gradient_at(&at, "residual"),
                     .d_scores = bytes_if(&at, at.walk->scores),
                     .sums = bytes_if(&at, at.walk->sums),
                     .bytes = bytes_if(&at, at.walk->backward_bytes)}};
}

struct weft_layer_norm_layout weft_layout_layer_norm_of(const struct weft_walk *walk)
{
    const struct named at = named_of(walk);
    return (struct weft_layer_norm_layout){
        .saved = {saved_at(&at, "y", "mean"), saved_at(&at, "y", "rstd"),
                  bytes_if(&at, at.walk->kept_bytes)},
        .backward = {bytes_if(&at, at.walk->sums), bytes_if(&at, at.walk->backward_bytes)}};
}

struct weft_linear_layout weft_layout_linear_of(const struct weft_walk *walk)
{
    const struct named at = named_of(walk);
    return (struct weft_linear_layout){
        .backward = {bytes_if(&at, at.walk->sums), bytes_if(&at, at.walk->backward_bytes)}};
}

struct weft_lm_head_layout weft_layout_lm_head_of(const struct weft_walk *walk)
{
    const struct named at = named_of(walk);
    return (struct weft_lm_head_layout){
        .gap = gap_of(&at, "d_logits"),
        .saved = {saved_at(&at, "d_logits", NULL), bytes_if(&at, at.walk->kept_bytes)},
        .backward = {bytes_if(&at, at.walk->sums), bytes_if(&at, at.walk->backward_bytes)}};
}

struct weft_classifier_layout weft_layout_classifier_of(const struct weft_walk *walk)
{
    const struct named at = named_of(walk);
    return (struct weft_classifier_layout){
        .gap = gap_of(&at, "d_logits"),
        .saved = {saved_at(&at, "pooled", NULL), saved_at(&at, "d_logits", NULL),
                  bytes_if(&at, at.walk->kept_bytes)},
        .backward = {gradient_at(&at, "pooled"), bytes_if(&at, at.walk->sums),
                     bytes_if(&at, at.walk->backward_bytes)}};
}

struct weft_transformer_block_layout weft_layout_transformer_block(const struct weft_layer *layer,
                                                                   const struct weft_batch *batch,
                                                                   enum weft_recompute level)
{
    struct weft_walk own;
    return weft_layout_transformer_block_of(derive_named(layer, batch, level, &own));
}

#define WEFT_LAYOUT_DERIVED(kind)                                                                  \
    struct weft_##kind##_layout weft_layout_##kind(const struct weft_layer *layer,                 \
                                                   const struct weft_batch *batch)                 \
    {                                                                                              \
        struct weft_walk own;                                                                      \
        return weft_layout_##kind##_of(derive_named(layer, batch, WEFT_RECOMPUTE_NONE, &own));     \
    }

WEFT_LAYOUT_DERIVED(layer_norm)
WEFT_LAYOUT_DERIVED(linear)
WEFT_LAYOUT_DERIVED(lm_head)
WEFT_LAYOUT_DERIVED(classifier)
