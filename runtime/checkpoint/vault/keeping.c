/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/vault/keeping.h"

#include <stdlib.h>

#include "runtime/checkpoint/directory.h"

struct weft_keeping {
    struct weft_vault_sink sink;
    struct weft_saver *saver;
};

enum weft_status weft_keeping_open(const struct weft_saver_options *options,
                                   const struct weft_vault *kept,
                                   const struct weft_failpoint *failpoint,
                                   struct weft_keeping **out, struct weft_error *err)
{
    struct weft_keeping *keeping = calloc(1, sizeof *keeping);
    if (keeping == NULL) return weft_fail_memory(err, "saving");
    struct weft_saver_options of_memory = *options;
    weft_vault_sink_init(&keeping->sink, kept, failpoint, weft_comm_rank(options->comm));
    of_memory.sink = &keeping->sink.sink;
    of_memory.directory = WEFT_CHECKPOINT_MEMORY;
    of_memory.precious = -1;
    const enum weft_status status = weft_saver_create(&of_memory, &keeping->saver, err);
    if (status == WEFT_OK)
        *out = keeping;
    else
        weft_keeping_close(keeping);
    return status;
}

void weft_keeping_close(struct weft_keeping *keeping)
{
    if (keeping == NULL) return;
    weft_saver_destroy(keeping->saver);
    free(keeping);
}

enum weft_status weft_keeping_save(struct weft_keeping *keeping,
                                   const struct weft_progress *progress,
                                   const struct weft_save_source *source, struct weft_error *err)
{
    weft_vault_sink_begin(&keeping->sink, progress->step);
    return weft_saver_save(keeping->saver, progress, source, err);
}
