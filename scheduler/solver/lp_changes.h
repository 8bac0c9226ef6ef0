/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of a program to the one solved before it: other bounds, and rows at its end. A solver
 * that still has the basis of that one needs only these, and few iterations.
 *
 * RESULTS.md: planner-ideas/kept-basis. */
#ifndef WEFT_SCHEDULER_SOLVER_LP_CHANGES_H
#define WEFT_SCHEDULER_SOLVER_LP_CHANGES_H

#include "scheduler/solver/lp.h"

struct weft_lp_bounds {
    int32_t n;
    int32_t *index;        /* [n], increasing */
    double *lower, *upper; /* [n]: the new bounds */
};

struct weft_lp_changes {
    int32_t n_columns, n_rows; /* of the program before */
    struct weft_lp_bounds columns, rows;
    struct weft_lp_rows added; /* after its rows */
};

/* Finds the changes. False if the two differ in more or have integer columns, or without memory.
 * Bounds are in the pool; added rows refer to `after`. */
bool weft_lp_changes_find(const struct weft_lp *before, const struct weft_lp *after,
                          struct weft_pool *pool, struct weft_lp_changes *out);

/* A copy of a program without integer columns, for weft_lp_changes_find. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_lp_copy(const struct weft_lp *lp, struct weft_pool *pool,
                                            struct weft_lp *out, struct weft_error *err);

/* The document of the protocol. Reading needs the sizes of the program before, and refuses changes
 * to one of other sizes. WEFT_E_DATA, WEFT_E_SYSTEM. */
void weft_lp_changes_write(const struct weft_lp_changes *changes,
                           const struct weft_lp_limits *limits, struct weft_text *out);
WEFT_MUST_USE enum weft_status weft_lp_changes_parse(
    const char *bytes, size_t length, int32_t n_columns, int32_t n_rows, struct weft_pool *pool,
    struct weft_lp_changes *changes, struct weft_lp_limits *limits, struct weft_error *err);

/* True if a document begins like one of changes. */
bool weft_lp_is_changes(const char *bytes, size_t length);

#endif
