/* SPDX-License-Identifier: Apache-2.0 */
/* Reliefs are settings with which a config needs less memory: recomputation and smaller
 * micro-batches. The error of a limit that no plan fits names them. */
#ifndef WEFT_LIBRARY_RELIEF_H
#define WEFT_LIBRARY_RELIEF_H

#include <stddef.h>

#include "library/session.h"

/* Writes the settings with which this variant, which is staged, would fit its limit, each with its
 * least limit. If none would, writes those with the least of all. "" if the config allows all or
 * none lowers the least limit. Counts rows, without pages. */
void weft_session_tell_reliefs(const struct weft_session *session,
                               const struct weft_variant *variant, char *out, size_t capacity);

#endif
