/* Whether the system lets the ranks of this machine map what a session's program needs: half of its
 * mappings, and all of its addresses. Pages that are larger need fewer. */
#ifndef WEFT_LIBRARY_MAPPINGS_H
#define WEFT_LIBRARY_MAPPINGS_H

#include "library/session.h"

/* With a plan that the ranks of this machine are to run. Where there are too many mappings and
 * `may_plan`, plans in the next larger pages that will do, and says so. WEFT_E_SYSTEM naming the
 * limit, and what would work, where none will, or `may_plan` is false; then the plan is gone or not
 * to be run. */
WEFT_MUST_USE enum weft_status weft_session_fit_mappings(struct weft_session *session,
                                                         bool may_plan, struct weft_error *err);

#endif
