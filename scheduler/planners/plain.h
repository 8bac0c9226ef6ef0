/* SPDX-License-Identifier: Apache-2.0 */
/* Plain rules are members of their planner's row: which units shard, when they are gathered and how
 * gradients are reduced. */
#ifndef WEFT_SCHEDULER_PLANNERS_PLAIN_H
#define WEFT_SCHEDULER_PLANNERS_PLAIN_H

#include <stdbool.h>

#include "scheduler/planners/rule.h"

struct weft_plain_rule {
    enum {
        WEFT_PLAIN_DP,
        WEFT_PLAIN_SDP,
        WEFT_PLAIN_RESIDENT, /* zero1; a frozen unit has no state to shard and stays whole */
        WEFT_PLAIN_ROOT,     /* fsdp, and the root stays gathered */
        WEFT_PLAIN_AS_SET    /* the same, or all stay gathered if values[1] is not 0 */
    } choice;
    enum {
        WEFT_PLAIN_NEVER,
        WEFT_PLAIN_AFTER_UPDATES,
        WEFT_PLAIN_ON_DEMAND,
        WEFT_PLAIN_AHEAD /* values[0] units */
    } gathering;
    enum {
        WEFT_PLAIN_AT_ONCE,
        WEFT_PLAIN_IN_BUCKETS, /* of values[0] bytes; so is the next */
        WEFT_PLAIN_BEFORE_OVERFLOW,
        WEFT_PLAIN_ONE_AT_A_TIME
    } reducing;
    bool streams_from_host; /* all state is on the host and is copied for its update */
    bool updated_on_host;   /* all state is on the host, which updates it */
};

/* Applies the rule to a new draft. The values of settings are in the order above. */
WEFT_MUST_USE enum weft_status weft_plain_draft(const struct weft_plain_rule *rule,
                                                struct weft_draft *draft, const int64_t *values,
                                                struct weft_error *err);

/* values[0]: units ahead; values[1]: whether all units stay gathered after forward. */
extern const struct weft_setting weft_fsdp2_settings[];

#endif
