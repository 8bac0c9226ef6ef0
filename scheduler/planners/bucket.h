/* Buckets: gradients wait for each other and are launched together. What a bucket merges in a
 * product stays blocks here: only when they are launched is the rule's. */
#ifndef WEFT_SCHEDULER_PLANNERS_BUCKET_H
#define WEFT_SCHEDULER_PLANNERS_BUCKET_H

#include "scheduler/planners/rule.h"

struct weft_bucket_rule {
    int64_t size;     /* of a bucket, in bytes of gradient */
    bool in_elements; /* size counts elements instead */
    /* Launched before what no longer fits, and a unit larger than a bucket at once by itself; else
     * as soon as it is full, be it by more than its size. */
    bool before_overflow;
};

/* Places all reductions, none waited for. Buckets end with a backward. */
void weft_bucket_reduce(struct weft_draft *draft, const struct weft_bucket_rule *rule);

/* values[0]: bytes. 25 MiB is what is published. */
extern const struct weft_setting weft_bucket_settings[];

#endif
