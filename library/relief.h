/* SPDX-License-Identifier: Apache-2.0 */
/* Reliefs are settings with which a config needs less memory, such as recomputation, smaller
 * micro-batches, or updates in backward. The error of a limit that no plan fits names each relief
 * with a variant that would fit, and its least limit. If none would fit, it names the relief with
 * the least limit of all. Rows count, without pages. */
#ifndef WEFT_LIBRARY_RELIEF_H
#define WEFT_LIBRARY_RELIEF_H

#include "library/session.h"

/* Fills the error of the only variant, which is staged and has no plan. */
enum weft_status weft_session_refuse(const struct weft_session *session,
                                     const struct weft_variant *variant,
                                     const struct weft_error *refusal, struct weft_error *err);

/* Fills the error if none of n variants has a plan: of the leanest one that the planner applies to.
 * Leaves the session with its stages. */
enum weft_status weft_session_refuse_all(struct weft_session *session, const char *planner,
                                         const struct weft_variant *variants,
                                         const struct weft_error *refusals, int32_t n,
                                         struct weft_error *err);

#endif
