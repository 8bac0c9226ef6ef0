/* Times are foreign if they were measured on another machine than the session's ranks, or with
 * other threads per rank. Planning for another machine is correct; training with its times is
 * not. */
#ifndef WEFT_LIBRARY_FOREIGN_H
#define WEFT_LIBRARY_FOREIGN_H

#include <stdbool.h>

#include "base/text.h"
#include "library/session.h"

struct weft_foreign {
    bool machine, threads, ranks; /* which of them differ */
};

/* Call it after stage. If the config leaves threads to the machine, they are compared only on the
 * measured machine. Figures, and a profile without an origin, never differ. */
struct weft_foreign weft_session_compare_origin(const struct weft_session *session);

/* Logs the difference, if any. Other threads are a warning, and so is another machine if
 * `runs_here`. Otherwise another machine is information. */
void weft_session_tell_origin(const struct weft_session *session, bool runs_here);

/* Warns of a profile that was measured while other programs ran. A new profile needs no such
 * warning: measuring gives it. */
void weft_session_tell_load(const struct weft_session *session);

#endif
