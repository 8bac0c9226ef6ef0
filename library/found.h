/* SPDX-License-Identifier: Apache-2.0 */
/* The findings of planning several periods: the best plan so far, and bounds of the others. */
#ifndef WEFT_LIBRARY_FOUND_H
#define WEFT_LIBRARY_FOUND_H

#include "library/session.h"
#include "scheduler/schedule.h"
#include "scheduler/tree/proof.h"

/* A plan with its stages and its program, which move together. */
struct weft_staged {
    struct weft_stages stages;
    struct weft_plan *plan;
    struct weft_program *program;
};

/* Exchanges the session's staged plan with another one. */
void weft_staged_swap(struct weft_session *session, struct weft_staged *other);
void weft_staged_drop(struct weft_staged *staged); /* accepts {0} */

struct weft_found {
    struct weft_staged staged;
    bool has_start; /* the initial plan's variant has a plan, and is not planned again */
    struct weft_variant start;
    int32_t n_others;
    struct weft_plan_variant others[WEFT_MOST_PLANNED];
    struct weft_ascent ascent;   /* for a period that is not searched: towards the best step */
    struct weft_outcome refused; /* of the present period, if pages refuse it */
    struct weft_outcome refused_paged; /* likewise, of plans in pages */
    struct weft_pool pool;             /* owns its certificate */
    int64_t more_bytes, more_ns; /* the best step of a period with more memory; 0: not known */
};

/* Moves the bounds of one period among the others. A period that is planned twice is there once,
 * with the larger ones. WEFT_E_INTERNAL if there is no room. */
WEFT_MUST_USE enum weft_status weft_found_keep_bound(struct weft_found *best,
                                                     struct weft_plan_variant *bound,
                                                     struct weft_error *err);

/* Keeps the session's plan if it is the fastest so far, and stores the bounds of the slower one's
 * period. Drops the session's stages. */
WEFT_MUST_USE enum weft_status weft_found_keep_faster(struct weft_session *session,
                                                      struct weft_found *best,
                                                      struct weft_error *err);

/* Moves the bounds of the other periods into the best plan. */
WEFT_MUST_USE enum weft_status weft_found_hand_over(struct weft_found *best, struct weft_plan *plan,
                                                    struct weft_error *err);

/* Frees the bounds. */
void weft_found_drop(struct weft_found *best);

/* Remembers the best step that a period has with more memory. */
void weft_found_take_hint(struct weft_found *best, const struct weft_plan *plan);

/* Logs how much more memory allows a faster plan than the present one; more_ns 0: none known. */
void weft_found_tell_hint(int64_t more_bytes, int64_t more_ns, const struct weft_plan *plan);

/* Whether the planner takes the largest micro-batch that fits, not the fastest. */
bool weft_found_fills_batch(const char *name);

#endif
