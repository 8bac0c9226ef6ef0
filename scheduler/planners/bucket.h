/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets: gradients wait for each other and are launched together. A product merges a bucket into
 * one collective. Here it stays blocks, and the rule decides only when they are launched. */
#ifndef WEFT_SCHEDULER_PLANNERS_BUCKET_H
#define WEFT_SCHEDULER_PLANNERS_BUCKET_H

#include "scheduler/planners/rule.h"

struct weft_bucket_rule {
    int64_t size;     /* of a bucket, in bytes of gradient */
    bool in_elements; /* size counts elements instead */
    /* True: a bucket is launched before a gradient that no longer fits, and a unit larger than a
     * bucket is launched at once by itself. False: a bucket is launched as soon as it is full, even
     * by more than its size. */
    bool before_overflow;
};

/* Places all reductions. Nothing waits for them. Buckets end with a backward. */
void weft_bucket_reduce(struct weft_draft *draft, const struct weft_bucket_rule *rule);

/* values[0]: bytes. The published size is 25 MiB. */
extern const struct weft_setting weft_bucket_settings[];

#endif
