/* SPDX-License-Identifier: Apache-2.0 */
/* Layer files are shared objects with layer kinds (struct weft_layers of include/weft.h), opened
 * for --layers. Configs that are read with `known` may use their kinds. */
#ifndef WEFT_CLI_LAYERS_H
#define WEFT_CLI_LAYERS_H

#include "base/pool.h"
#include "base/status.h"
#include "cli/command.h"
#include "spec/kind.h"

enum { WEFT_LAYER_FILE_KINDS = 64 };

struct weft_layer_files {
    struct weft_pool pool;
    const struct weft_kind *kinds[WEFT_LAYER_FILE_KINDS];
    const char *paths[WEFT_CLI_LAYERS]; /* absolute */
    void *handles[WEFT_CLI_LAYERS];
    struct weft_kinds known; /* all kinds of all files; points into this struct */
};

/* Opens one more file, relative to the working directory, and checks its kinds. WEFT_E_NO_INPUT:
 * there is no such file. WEFT_E_PERMISSION: it cannot be read. WEFT_E_DATA: it is no shared object,
 * lacks symbols, exports no weft_layers, has another ABI, or has a kind that is incomplete or of a
 * taken type. WEFT_E_USAGE: there are too many. */
WEFT_MUST_USE enum weft_status weft_layer_files_open(struct weft_layer_files *files,
                                                     const char *path, struct weft_error *err);

/* Closes the files. First destroy all configs that use their kinds. Accepts {0}. */
void weft_layer_files_close(struct weft_layer_files *files);

#endif
