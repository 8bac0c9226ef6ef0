/* Times are foreign where they were measured on another machine, or with other threads a rank, than
 * those of the session's ranks. To plan for another machine is no fault; to train there is. */
#ifndef WEFT_LIBRARY_FOREIGN_H
#define WEFT_LIBRARY_FOREIGN_H

#include <stdbool.h>

#include "base/text.h"
#include "library/session.h"

struct weft_foreign {
    bool machine, threads, ranks; /* that differ */
};

/* After stage. With a config that leaves threads to the machine they are compared on the machine
 * that was measured alone. Nothing differs from figures, nor from a profile that does not say. */
struct weft_foreign weft_session_compare_origin(const struct weft_session *session);

/* Logs the difference, if there is one: other threads, and where `runs_here` another machine, as a
 * warning; another machine to plan for as information. */
void weft_session_tell_origin(const struct weft_session *session, bool runs_here);

/* Warns of a profile that was measured while other programs ran. Not for one that is new: measuring
 * tells it. */
void weft_session_tell_load(const struct weft_session *session);

#endif
