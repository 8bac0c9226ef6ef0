/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/planners/bucket.h"

const struct weft_setting weft_bucket_settings[] = {
    {"25MiB", {25 << 20}},   {"1MiB", {1 << 20}},     {"5MiB", {5 << 20}},
    {"100MiB", {100 << 20}}, {"400MiB", {400 << 20}}, {NULL, {0}},
};

/* The waiting blocks, up to the newest gradient. */
struct bucket {
    struct weft_draft *draft;
    const struct weft_bucket_rule *rule;
    int32_t item, block; /* the first waiting block: position in the list, and block of it */
    int64_t held;
};

static int64_t size_of(const struct bucket *bucket, int32_t item)
{
    if (bucket->rule->in_elements) return weft_draft_block_elements(bucket->draft, item);
    return weft_draft_item(bucket->draft, item)->block_bytes;
}

/* True if the unit is larger than a bucket and does not go through one. */
static bool is_apart(const struct bucket *bucket, int32_t item)
{
    return bucket->rule->before_overflow &&
           weft_draft_item(bucket->draft, item)->n_blocks * size_of(bucket, item) >
               bucket->rule->size;
}

/* Launches the waiting blocks before block `block` of item `end` in the list, in slot `slot`. */
static void launch_blocks(struct bucket *bucket, int32_t end, int32_t block, int32_t slot)
{
    struct weft_draft *draft = bucket->draft;
    while (bucket->item < end || (bucket->item == end && bucket->block < block)) {
        int32_t index = draft->reductions[bucket->item];
        const struct weft_item *item = weft_draft_item(draft, index);
        int32_t n = (bucket->item < end ? item->n_blocks : block) - bucket->block;
        if (!is_apart(bucket, index))
            weft_draft_reduce(draft, index, slot, WEFT_DRAFT_NOT_WAITED_FOR, n);
        bucket->block += n;
        if (bucket->item == end) break;
        bucket->item++;
        bucket->block = 0;
    }
    bucket->held = 0;
}

static void add_reduction(struct bucket *bucket, int32_t position)
{
    int32_t index = bucket->draft->reductions[position];
    const struct weft_item *item = weft_draft_item(bucket->draft, index);
    int64_t size = size_of(bucket, index), whole = item->n_blocks * size;
    if (bucket->rule->before_overflow) {
        if (bucket->held > 0 && bucket->held + whole > bucket->rule->size)
            launch_blocks(bucket, position, 0, item->first);
        bucket->held += whole;
        return;
    }
    for (int32_t b = 0; b < item->n_blocks; b++) {
        bucket->held += size;
        if (bucket->held >= bucket->rule->size) launch_blocks(bucket, position, b + 1, item->first);
    }
}

void weft_bucket_reduce(struct weft_draft *draft, const struct weft_bucket_rule *rule)
{
    struct bucket bucket = {.draft = draft, .rule = rule};
    int32_t ready = -1;
    for (int32_t i = 0; i < draft->n_reductions; i++) {
        int32_t index = draft->reductions[i];
        const struct weft_item *item = weft_draft_item(draft, index);
        if (ready >= 0 && draft->micro[item->first - 1] != draft->micro[ready - 1])
            launch_blocks(&bucket, i, 0, ready);
        ready = item->first;
        if (is_apart(&bucket, index)) {
            weft_draft_reduce_all(draft, index, item->first, WEFT_DRAFT_NOT_WAITED_FOR);
        } else {
            add_reduction(&bucket, i);
        }
    }
    launch_blocks(&bucket, draft->n_reductions, 0, ready);
}
