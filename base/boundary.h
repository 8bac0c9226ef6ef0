/* The boundary of a need: the largest whole number whose need is within a limit, where needs grow
 * with the number. They are expensive to ask for and nearly a line, so lines through what was asked
 * guess what to ask next. */
#ifndef WEFT_BASE_BOUNDARY_H
#define WEFT_BASE_BOUNDARY_H

#include "base/status.h"

struct weft_boundary {
    int64_t guess, most; /* asked first, 1..most; the largest that is asked */
    int64_t limit;
    /* The need of a value; INT64_MAX where there can be none. */
    enum weft_status (*ask)(void *context, int64_t value, int64_t *need, struct weft_error *err);
    void *context;
};

/* *value is in 1..most; 0 where not even 1 is within the limit. Fails as `ask` does. */
WEFT_MUST_USE enum weft_status weft_boundary_find(const struct weft_boundary *boundary,
                                                  int64_t *value, struct weft_error *err);

#endif
