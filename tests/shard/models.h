/* Small models for the tests of shard/ and memory_model/. */
#ifndef WEFT_TESTS_SHARD_MODELS_H
#define WEFT_TESTS_SHARD_MODELS_H

#include <criterion/criterion.h>

#include "spec/model.h"

/* A layer that is nothing but parameters. */
static inline struct weft_layer custom_layer(const char *name, int64_t parameters, bool frozen)
{
    return (struct weft_layer){.name = name,
                               .type = WEFT_LAYER_CUSTOM,
                               .frozen = frozen,
                               .tie = -1,
                               .parameters = parameters};
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
         .type = WEFT_LAYER_EMBEDDING,
         .frozen = frozen_embedding,
         .tie = -1,
         .vocab = 10,
         .positions = 4,
         .hidden = 16,
         .outputs = 16},
        {.name = "h.0",
         .type = WEFT_LAYER_TRANSFORMER_BLOCK,
         .tie = -1,
         .hidden = 16,
         .outputs = 16,
         .heads = 2,
         .kv_heads = 2,
         .ffn = 64},
        {.name = "ln_f", .type = WEFT_LAYER_LAYER_NORM, .tie = -1, .hidden = 16, .outputs = 16},
        {.name = "head",
         .type = WEFT_LAYER_LM_HEAD,
         .frozen = frozen_embedding,
         .tie = 0,
         .vocab = 10,
         .hidden = 16,
         .outputs = 10},
    };
    return make_model(layers, 4);
}

#endif
