/* SPDX-License-Identifier: Apache-2.0 */
/* The mark of a run's directory is the first file that a run writes there. Without it, files with a
 * run's names belong to the user, and nothing may overwrite them. */
#ifndef WEFT_LIBRARY_RUN_MARK_H
#define WEFT_LIBRARY_RUN_MARK_H

#include <stdbool.h>

#include "base/status.h"

/* Looks for the mark without touching any file. WEFT_OK with *marked false: a run may begin there.
 * A directory from a version without marks counts as marked if its latest checkpoint has a
 * manifest. WEFT_E_CREATE names the first entry that a run would overwrite. */
WEFT_MUST_USE enum weft_status weft_run_mark_look(const char *directory, bool *marked,
                                                  struct weft_error *err);

/* Writes the mark, whole or not at all, if it is missing. The caller holds the run's lock. */
WEFT_MUST_USE enum weft_status weft_run_mark_write(const char *directory, struct weft_error *err);

#endif
