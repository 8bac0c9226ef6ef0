/* Saving is collective: every rank writes what it owns into the same files, and the checkpoint is
 * there when all ranks have synced and rank 0 has renamed its directory; before, it is not. The
 * order of calls and what they protect from is in save.c. */
#ifndef WEFT_RUNTIME_CHECKPOINT_SAVE_H
#define WEFT_RUNTIME_CHECKPOINT_SAVE_H

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
    int32_t tensor; /* of the model */
    enum weft_state state;
    int64_t first, count;
    enum weft_dtype dtype; /* that layers compute with; elements are given in f32 */
};

/* All that this rank owns. Over all ranks every element of every entry of the layout comes once. */
struct weft_save_source {
    void *context;
    void (*rewind)(void *context);
    bool (*next)(void *context, struct weft_save_piece *out); /* false at the end */
    /* Elements [from, from + n) of the piece that next gave last. */
    enum weft_status (*read)(void *context, int64_t from, int64_t n, float *out,
                             struct weft_error *err);
};

struct weft_saver_options {
    const struct weft_layout *layout;
    struct weft_comm *comm;
    const struct weft_sink *sink;
    const char *directory; /* of all checkpoints; made when it is missing */
    int64_t keep;          /* checkpoints that stay, 2 at least */
    int64_t precious;      /* step that stays anyway until a newer one was read back; -1: none */
    const char *settings, *kernels, *products; /* for manifests */
    const char *device;                        /* likewise; NULL: "cpu" */
    const struct weft_origin *origin;          /* likewise; may be NULL */
};

struct weft_saver;

/* All options must outlive the saver. Allocates everything that a save needs. */
WEFT_MUST_USE enum weft_status weft_saver_create(const struct weft_saver_options *options,
                                                 struct weft_saver **out, struct weft_error *err);
void weft_saver_destroy(struct weft_saver *saver);

/* Collective, and done when it returns. WEFT_OK on all ranks: the checkpoint of progress->step is
 * committed. Else it is not there, the one before it is, nothing of it is left if that can be
 * helped, and status and text are the same on all ranks; after WEFT_E_LOST and WEFT_E_HANG no
 * collective call makes sense any more. A sync that fails loses what was written, so everything is
 * written once more, to new files. A dead model (finite.h) is not saved: WEFT_E_NUMERIC. Errors may
 * be those of a save that was begun before. Without room, the oldest checkpoints go first, if the
 * newest one is complete. */
WEFT_MUST_USE enum weft_status weft_saver_save(struct weft_saver *saver,
                                               const struct weft_progress *progress,
                                               const struct weft_save_source *source,
                                               struct weft_error *err);

/* The same in the background. Collective: begins a save, after finishing the one that is under way.
 * What the source gives must not change until weft_saver_catch_up has returned; then the commit may
 * still be under way. */
WEFT_MUST_USE enum weft_status weft_saver_begin(struct weft_saver *saver,
                                                const struct weft_progress *progress,
                                                const struct weft_save_source *source,
                                                struct weft_error *err);
/* Collective: takes the save that is under way, if there is one, as far as all ranks have written,
 * or, when they had, or with `finish`, to its end. Its failure comes out here, on all ranks. */
WEFT_MUST_USE enum weft_status weft_saver_catch_up(struct weft_saver *saver, bool finish,
                                                   struct weft_error *err);
/* Whether no save is under way: the last one was committed, or has failed. The same on all ranks.
 */
bool weft_saver_is_idle(const struct weft_saver *saver);

#endif
