/* SPDX-License-Identifier: Apache-2.0 */
/* The search for the least value that passes: a memory limit, a number of ranks. If a value passes,
 * larger ones pass too. */
#ifndef WEFT_CLI_STUDY_LEAST_H
#define WEFT_CLI_STUDY_LEAST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct weft_least {
    int64_t most;  /* no larger value is tried */
    int64_t unit;  /* at least 1; above it only multiples of it are tried */
    int64_t share; /* the result may be too large by its 1 / share; 0: it is exact */
    enum weft_status (*ask)(void *context, int64_t value, bool *passes, struct weft_error *err);
    void *context;
};

/* Finds the value from *yes on, by doubling and halving; `no` does not pass. *yes is 0 if no value
 * passes. Fails as `ask` does. */
WEFT_MUST_USE enum weft_status weft_least_find(const struct weft_least *least, int64_t no,
                                               int64_t *yes, struct weft_error *err);

/* Lowers *yes, which passes, towards `no`. */
WEFT_MUST_USE enum weft_status weft_least_lower(const struct weft_least *least, int64_t no,
                                                int64_t *yes, struct weft_error *err);

#endif
