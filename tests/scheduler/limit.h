/* SPDX-License-Identifier: Apache-2.0 */
/* The limit of a problem that a test has made. */
#ifndef WEFT_TESTS_SCHEDULER_LIMIT_H
#define WEFT_TESTS_SCHEDULER_LIMIT_H

#include "scheduler/digest/digest.h"

/* The table, whose problem has this limit from now on. */
static inline const struct weft_digest *with_limit(const struct weft_digest *table, int64_t bytes)
{
    ((struct weft_problem *)table->problem)->tiers[0].limit_bytes = bytes;
    return table;
}

#endif
