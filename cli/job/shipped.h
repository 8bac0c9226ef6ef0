/* Shipped configs come with the program: configs/runs next to the sources, or in PREFIX/share/weft.
 * A verb accepts their names in place of a file: "gpt2-xl". */
#ifndef WEFT_CLI_JOB_SHIPPED_H
#define WEFT_CLI_JOB_SHIPPED_H

#include "base/status.h"
#include "base/text.h"

/* Appends the path to read: `path` if it names a file or looks like one (has a slash or ends in
 * .json), otherwise that of the shipped config. WEFT_E_NO_INPUT lists the shipped names if there is
 * none. */
WEFT_MUST_USE enum weft_status weft_shipped_find(const char *path, struct weft_text *out,
                                                 struct weft_error *err);

#endif
