/* What a program differs in from the one that was solved before it: bounds, and rows at its end. A
 * solver that still has that one's basis needs only these, and few steps.
 *
 * RESULTS.md: planner-ideas/kept-basis. */
#ifndef WEFT_SCHEDULER_SOLVER_MIP_CHANGES_H
#define WEFT_SCHEDULER_SOLVER_MIP_CHANGES_H

#include "scheduler/solver/mip.h"

struct weft_mip_bounds {
    int32_t n;
    int32_t *index; /* [n], increasing; and their new bounds: */
    double *lower, *upper;
};

struct weft_mip_changes {
    int32_t n_columns, n_rows; /* of the program before */
    struct weft_mip_bounds columns, rows;
    struct weft_mip_rows added; /* behind its rows */
};

/* Finds them. False when the two differ in anything else, `after` has incumbents, or there is no
 * memory. Bounds are in the pool, what is added refers to `after`. */
bool weft_mip_changes_find(const struct weft_mip *before, const struct weft_mip *after,
                           struct weft_pool *pool, struct weft_mip_changes *out);

/* A copy without incumbents, in the pool, to compare the next program with. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_mip_copy(const struct weft_mip *mip, struct weft_pool *pool,
                                             struct weft_mip *out, struct weft_error *err);

/* The document of the protocol. Reading needs the sizes of the program before: the changes must be
 * those of such a one, and of its relaxation (limits.nodes -1). WEFT_E_DATA, WEFT_E_SYSTEM. */
void weft_mip_changes_write(const struct weft_mip_changes *changes,
                            const struct weft_mip_limits *limits, struct weft_text *out);
WEFT_MUST_USE enum weft_status weft_mip_changes_parse(
    const char *bytes, size_t length, int32_t n_columns, int32_t n_rows, struct weft_pool *pool,
    struct weft_mip_changes *changes, struct weft_mip_limits *limits, struct weft_error *err);

/* True of a document that begins as one of changes does. */
bool weft_mip_is_changes(const char *bytes, size_t length);

#endif
