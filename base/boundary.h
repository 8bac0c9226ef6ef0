/* SPDX-License-Identifier: Apache-2.0 */
/* The boundary of a need: the largest integer with a need within a limit. Needs grow with the
 * integer. They are expensive to compute and nearly linear, so lines through known points give the
 * next guess. */
#ifndef WEFT_BASE_BOUNDARY_H
#define WEFT_BASE_BOUNDARY_H

#include "base/status.h"

struct weft_boundary {
    int64_t guess, most; /* first value, 1..most; largest value */
    int64_t limit;
    /* The need of a value; INT64_MAX: not possible. */
    enum weft_status (*ask)(void *context, int64_t value, int64_t *need, struct weft_error *err);
    void *context;
};

/* Finds *value in 1..most; 0 if not even 1 is within the limit. Fails as `ask` does. */
WEFT_MUST_USE enum weft_status weft_boundary_find(const struct weft_boundary *boundary,
                                                  int64_t *value, struct weft_error *err);

#endif
