/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a saver, and the source of its tensors. */
#ifndef WEFT_RUNTIME_CHECKPOINT_SAVE_OPTIONS_H
#define WEFT_RUNTIME_CHECKPOINT_SAVE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/numbers.h"
#include "base/status.h"
#include "runtime/checkpoint/layout.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/sink.h"
#include "runtime/comm/comm.h"

/* Elements of one tensor. */
struct weft_save_piece {
    int32_t tensor; /* index in the model */
    enum weft_state state;
    int64_t first, count;
    enum weft_dtype dtype; /* of compute; elements are given in f32 */
};

/* All pieces that this rank owns. Over all ranks, every element of every entry of the layout comes
 * once. */
struct weft_save_source {
    void *context;
    void (*rewind)(void *context);
    bool (*next)(void *context, struct weft_save_piece *out); /* false at the end */
    /* Elements [from, from + n) of the last piece from next. */
    enum weft_status (*read)(void *context, int64_t from, int64_t n, float *out,
                             struct weft_error *err);
};

enum { WEFT_SAVE_PAGE_BYTES = 4096 };

struct weft_saver_options {
    const struct weft_layout *layout;
    struct weft_comm *comm;
    /* Several hosts write on a shared file system, which may write whole pages of this size back:
     * never two hosts into one. At most WEFT_SAVE_PAGE_BYTES; 0: one host. */
    int64_t page_bytes;
    const struct weft_sink *sink;
    const char *directory; /* of all checkpoints; created if missing */
    int64_t keep;          /* number of checkpoints to keep, at least 2 */
    int64_t keep_multiple; /* steps that are its multiples stay for good; 0: none */
    int64_t precious;      /* step to keep until a newer one was read back; -1: none */
    const char *settings, *kernels, *products, *bits; /* for manifests */
    const char *device;                               /* the same; NULL: "cpu" */
    struct weft_manifest_split split;                 /* the same */
    const struct weft_origin *origin;                 /* the same; may be NULL */
};

#endif
