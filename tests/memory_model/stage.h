/* SPDX-License-Identifier: Apache-2.0 */
/* A model with its shards, period and weights. */
#ifndef WEFT_TESTS_MEMORY_MODEL_STAGE_H
#define WEFT_TESTS_MEMORY_MODEL_STAGE_H

#include "memory_model/life.h"
#include "memory_model/weigh.h"
#include "tests/shard/models.h"

static const struct weft_period_rule plain_train = {.n_micro = 1, .group = 1};

struct stage {
    struct weft_model *model;
    struct weft_shards *shards;
    struct weft_period *period;
    struct weft_weights *weights;
};

static inline void cut(struct stage *stage, int64_t ranks, const struct weft_block_rule *rule)
{
    cr_assert_eq(weft_shards_create(stage->model, ranks, rule, &stage->shards, NULL), WEFT_OK);
    cr_assert_eq(
        weft_period_create(stage->model, stage->shards, &plain_train, &stage->period, NULL),
        WEFT_OK);
}

static inline void weigh(struct stage *stage, const struct weft_weigh_options *options)
{
    struct weft_error err = {0};
    enum weft_status status = weft_weights_create(stage->model, stage->shards, stage->period,
                                                  options, &stage->weights, &err);
    cr_assert_eq(status, WEFT_OK, "%s", err.text);
    cr_assert_eq(stage->weights->n_slots, stage->period->n_slots);
    cr_assert_eq(stage->weights->n_units, stage->shards->n_units);
}

static inline void finish(struct stage *stage)
{
    weft_weights_destroy(stage->weights);
    weft_period_destroy(stage->period);
    weft_shards_destroy(stage->shards);
    weft_model_destroy(stage->model);
}

static const struct weft_weigh_options single = {
    .batch = {.samples = 1, .seq_len = 1, .compute = WEFT_F32},
    .reduce = WEFT_F32,
    .accumulate = WEFT_F32,
    .n_moments = 2,
    .base_bytes = 5000,
};

static inline int64_t in_tier(const struct weft_weighed_strategy *of, int32_t tier,
                              enum weft_category category, int32_t slot)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < of->n_holds; i++) {
        const struct weft_hold *hold = &of->holds[i];
        const struct weft_life life = {hold->first, hold->last};
        if (hold->tier == tier && hold->category == category && weft_life_has(life, slot))
            bytes += hold->bytes;
    }
    return bytes;
}

#endif
