/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that the system allows the mappings of a session's program: half of the limit of mappings,
 * and all addresses. Larger pages need fewer mappings. */
#ifndef WEFT_LIBRARY_MAPPINGS_H
#define WEFT_LIBRARY_MAPPINGS_H

#include "library/session.h"

/* Needs a plan that this machine's ranks will run. `mapped_ranks` map one another's arenas: all
 * local ranks, or 1, since ranks of an MPI launcher map their own alone. If there are too many
 * mappings and `may_plan`, plans again in the next larger pages that suffice, and logs it.
 * WEFT_E_SYSTEM names the limit and a cure if no pages suffice, or without `may_plan`. The plan is
 * then dropped or must not run. */
WEFT_MUST_USE enum weft_status weft_session_fit_mappings(struct weft_session *session,
                                                         int64_t mapped_ranks, bool may_plan,
                                                         struct weft_error *err);

#endif
