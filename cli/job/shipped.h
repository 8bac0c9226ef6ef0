/* SPDX-License-Identifier: Apache-2.0 */
/* Files that come with the program: {runs,models,clusters} in $WEFT_CONFIGS, in configs/ next to
 * the sources, or in PREFIX/share/weft/configs. Verbs accept their names in place of a file:
 * "gpt2-xl", --cluster h100-8. */
#ifndef WEFT_CLI_JOB_SHIPPED_H
#define WEFT_CLI_JOB_SHIPPED_H

#include "base/status.h"
#include "base/text.h"

enum weft_shipped { WEFT_SHIPPED_RUNS, WEFT_SHIPPED_MODELS, WEFT_SHIPPED_CLUSTERS };

/* Appends the path to read: `path` if it names a file or looks like one (has a slash or ends in
 * .json), otherwise that of the shipped file. WEFT_E_NO_INPUT lists the shipped names if there is
 * none, or names the nearest file of a path without a model or cluster. */
WEFT_MUST_USE enum weft_status weft_shipped_find(enum weft_shipped kind, const char *path,
                                                 struct weft_text *out, struct weft_error *err);

/* Appends the shipped names of a kind, with ", " between them. */
void weft_shipped_list(enum weft_shipped kind, struct weft_text *out);

#endif
