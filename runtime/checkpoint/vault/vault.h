/* SPDX-License-Identifier: Apache-2.0 */
/* Kept checkpoints are in host memory (train.checkpoint.host): the files of two checkpoints, the
 * generations, as memory files without a name. The process that starts ranks owns them, and ranks
 * inherit them. So they outlive ranks that die, and end with their owner. A save writes them by its
 * usual stages over the sink below, and a reader opens them as any other checkpoint.
 *
 * A generation without a manifest is empty. A save takes an empty one, or empties the older one,
 * and writes the manifest after all ranks have written their parts. So the other generation stays
 * whole. */
#ifndef WEFT_RUNTIME_CHECKPOINT_VAULT_VAULT_H
#define WEFT_RUNTIME_CHECKPOINT_VAULT_VAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/failpoint.h"
#include "base/status.h"
#include "base/text.h"
#include "runtime/checkpoint/layout.h"
#include "runtime/checkpoint/sink.h"
#include "spec/tiers.h"

enum { WEFT_VAULT_MANIFEST = WEFT_CHECKPOINT_FILES, WEFT_VAULT_FILES };

struct weft_vault {
    int fds[WEFT_VAULT_GENERATIONS]
           [WEFT_VAULT_FILES]; /* tensor files by layout, then the manifest */
    int64_t manifest_bytes;    /* a manifest is at most as long */
};

/* Makes the memory files and takes all memory of the tensors. WEFT_E_SYSTEM if the system has too
 * little. */
WEFT_MUST_USE enum weft_status weft_vault_create(const struct weft_layout *layout,
                                                 int64_t manifest_bytes, struct weft_vault *out,
                                                 struct weft_error *err);
void weft_vault_close(struct weft_vault *kept);

/* For ranks, which inherit the files under the same numbers: "4096,7,8,9,10,11,12". */
void weft_vault_write(const struct weft_vault *kept, struct weft_text *out);
bool weft_vault_read(const char *text, struct weft_vault *out);

/* Bytes that the system has given to all files. */
int64_t weft_vault_bytes(const struct weft_vault *kept);

/* Finds the newest complete checkpoint, by its manifest and all CRCs: its step and a path for
 * weft_checkpoint_open; the caller frees *path. -1 and NULL: none. A generation that is incomplete
 * is emptied. Call it while no rank runs. */
WEFT_MUST_USE enum weft_status weft_vault_latest(const struct weft_vault *kept, int64_t *step,
                                                 char **path, struct weft_error *err);

/* The sink of a rank's saves, and its failures for tests: "keep_begin" after a generation was
 * emptied, "keep_write" before a rank's first bytes, "keep_manifest" in the middle of the manifest,
 * "keep_commit" after it. The first and the last two are rank 0's. */
struct weft_vault_sink {
    struct weft_sink sink;
    const struct weft_vault *kept;
    const struct weft_failpoint *failpoint; /* or NULL */
    int32_t rank;
    int64_t step;     /* being saved */
    int taken;        /* generation of the save under way; -1: none */
    int manifest_fd;  /* open; -1: not */
    bool has_written; /* bytes of this step */
};
/* `sink` stays at its place, which the saver refers to. */
void weft_vault_sink_init(struct weft_vault_sink *sink, const struct weft_vault *kept,
                          const struct weft_failpoint *failpoint, int32_t rank);
void weft_vault_sink_begin(struct weft_vault_sink *sink, int64_t step);

#endif
