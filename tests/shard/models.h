/* SPDX-License-Identifier: Apache-2.0 */
/* Small models for the tests of shard/ and memory_model/. */
#ifndef WEFT_TESTS_SHARD_MODELS_H
#define WEFT_TESTS_SHARD_MODELS_H

#include <criterion/criterion.h>

#include "layers/custom.h"
#include "layers/embedding.h"
#include "layers/shared/block.h"
#include "spec/model.h"

/* A layer that is nothing but parameters. */
static inline struct weft_layer custom_layer(const char *name, int64_t parameters, bool frozen)
{
    return (struct weft_layer){.name = name,
                               .kind = &weft_kind_custom,
                               .frozen = frozen,
                               .tie = -1,
                               .keys[WEFT_CUSTOM_PARAMETERS].integer = parameters};
}

static inline struct weft_model *make_model(const struct weft_layer *layers, int32_t n_layers)
{
    struct weft_error err = {0};
    struct weft_model *model = NULL;
    enum weft_status status = weft_model_create(layers, n_layers, &model, &err);
    cr_assert_eq(status, WEFT_OK, "%s", err.text);
    return model;
}

/* wte, h.0, ln_f, head; the head is tied to wte's tokens. */
static inline struct weft_model *make_tied_model(bool frozen_embedding)
{
    struct weft_layer layers[] = {
        {.name = "wte",
         .kind = &weft_kind_embedding,
         .frozen = frozen_embedding,
         .tie = -1,
         .vocab = 10,
         .keys[WEFT_EMBEDDING_POSITIONS].integer = 4,
         .hidden = 16,
         .outputs = 16},
        {.name = "h.0",
         .kind = &weft_kind_transformer_block,
         .tie = -1,
         .hidden = 16,
         .outputs = 16,
         .keys[WEFT_BLOCK_HEADS].integer = 2,
         .keys[WEFT_BLOCK_KV_HEADS].integer = 2,
         .keys[WEFT_BLOCK_FFN].integer = 64},
        {.name = "ln_f", .kind = &weft_kind_layer_norm, .tie = -1, .hidden = 16, .outputs = 16},
        {.name = "head",
         .kind = &weft_kind_lm_head,
         .frozen = frozen_embedding,
         .tie = 0,
         .vocab = 10,
         .hidden = 16,
         .outputs = 10},
    };
    return make_model(layers, 4);
}

#endif
