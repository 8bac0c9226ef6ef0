/* Layer files are shared objects with layer kinds (struct weft_layers of include/weft.h), opened
 * for
 * --layers. Their kinds are known to every config that is read with `known`. */
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
    struct weft_kinds known; /* all kinds of all files; refers to this struct */
};

/* Opens one more file, relative to the working directory, and checks its kinds. WEFT_E_NO_INPUT
 * without the file, WEFT_E_PERMISSION when it cannot be read, WEFT_E_DATA when it is no shared
 * object, needs missing symbols, exports no weft_layers, has another ABI or a kind that is
 * incomplete or of a taken type, WEFT_E_USAGE when there are too many. */
WEFT_MUST_USE enum weft_status weft_layer_files_open(struct weft_layer_files *files,
                                                     const char *path, struct weft_error *err);

/* After the last config that uses a kind is destroyed. Accepts {0}. */
void weft_layer_files_close(struct weft_layer_files *files);

#endif
