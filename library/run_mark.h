/* A run's directory has a mark, the first file that a run writes there. Without it the names of a
 * run are somebody's own files, and nothing may be written over them. */
#ifndef WEFT_LIBRARY_RUN_MARK_H
#define WEFT_LIBRARY_RUN_MARK_H

#include <stdbool.h>

#include "base/status.h"

/* Looks for the mark and touches nothing. WEFT_OK with *marked false: a run may begin there. A
 * directory of a version before marks counts as marked if its latest checkpoint has a manifest.
 * WEFT_E_CREATE names the first entry that a run would write over. */
WEFT_MUST_USE enum weft_status weft_run_mark_look(const char *directory, bool *marked,
                                                  struct weft_error *err);

/* Writes the mark if it is not there, whole or not at all. For the holder of the run's lock. */
WEFT_MUST_USE enum weft_status weft_run_mark_write(const char *directory, struct weft_error *err);

#endif
