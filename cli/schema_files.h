/* Schemas of the files that the program writes: a profile, the metrics and the result of a run, the
 * manifest of a checkpoint. They have no field tables, because nobody writes them by hand; each has
 * an example from a run instead, and tests hold both to files of new runs. */
#ifndef WEFT_CLI_SCHEMA_FILES_H
#define WEFT_CLI_SCHEMA_FILES_H

#include <stdbool.h>

#include "base/status.h"
#include "base/text.h"

/* What there are schemas of: "config" and what else people write, then the files; NULL at the end.
 */
extern const char *const weft_schema_kinds[];

bool weft_schema_is_file(const char *kind);

/* JSON Schema (draft-07) of one of them, with its example. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_schema_file(const char *kind, struct weft_text *out,
                                                struct weft_error *err);

#endif
