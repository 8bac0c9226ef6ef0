/* Configs that come with the program: configs/runs next to the sources, or in PREFIX/share/weft. A
 * config that is no file may be one of them by name: "gpt2-xl". */
#ifndef WEFT_CLI_JOB_SHIPPED_H
#define WEFT_CLI_JOB_SHIPPED_H

#include "base/status.h"
#include "base/text.h"

/* Appends the path to read: `path` where it names a file, or looks like one (it has a slash or ends
 * in .json), otherwise that of the shipped config of this name. WEFT_E_NO_INPUT where there is
 * none, naming those that there are. */
WEFT_MUST_USE enum weft_status weft_shipped_find(const char *path, struct weft_text *out,
                                                 struct weft_error *err);

#endif
