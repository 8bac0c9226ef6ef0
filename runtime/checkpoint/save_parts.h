/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of saving, private to this folder: one rank's work on files (save_files.c), the commit
 * (save_commit.c), and the collective phases (save.c). */
#ifndef WEFT_RUNTIME_CHECKPOINT_SAVE_PARTS_H
#define WEFT_RUNTIME_CHECKPOINT_SAVE_PARTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "runtime/checkpoint/save_options.h"

enum { SAVE_VERDICT_TEXT_BYTES = 1000, SAVE_BUFFER_ELEMENTS = 1 << 16 };

/* A rank's report to the others after a stage. */
struct save_verdict {
    int32_t status;
    int32_t sync_failed, no_space;
    int64_t bytes; /* written so far by this rank */
    char text[SAVE_VERDICT_TEXT_BYTES];
};

/* With several hosts, on ranks other than 0: the page that is being filled, and parts of pages for
 * rank 0 (save_pages.c). */
struct save_pages {
    int32_t file;
    int64_t from, to; /* of the open page's bytes in the file; equal: none is open */
    unsigned char open[WEFT_SAVE_PAGE_BYTES];
    unsigned char *parts; /* owned */
    size_t n, room;
};

enum save_phase { SAVE_IDLE, SAVE_WRITING, SAVE_COMMITTING };

struct weft_saver {
    struct weft_saver_options options;
    int32_t rank, ranks;
    int64_t attempt, precious;
    enum save_phase phase;
    struct weft_progress progress; /* of the current save */
    struct weft_save_source source;
    pthread_t thread; /* of the phase, if threaded */
    bool threaded;
    enum weft_status status; /* of the phase on this rank, with its error */
    struct weft_error own;
    struct weft_text path; /* of the temporary directory */
    int fds[WEFT_CHECKPOINT_FILES];
    uint32_t *crcs[WEFT_CHECKPOINT_FILES]; /* this rank's shares, then the CRCs */
    int64_t bytes;                         /* written in this attempt */
    int64_t waiting_bytes;                 /* written since the last begin_sync */
    bool sync_failed, no_space;            /* on some rank in this attempt */
    bool made_room;                        /* at least once, as told on rank 0 */
    struct save_pages pages;
    struct save_verdict mine;
    void *all; /* [ranks], each of the largest exchange */
    float buffer[SAVE_BUFFER_ELEMENTS];
};

/* WEFT_E_IO: "cannot VERB .../step-N.tmp-K/NAME: ERROR"; name NULL: the directory. ENOSPC and
 * EDQUOT set saver->no_space. */
enum weft_status weft_save_fail(struct weft_saver *saver, const char *what, const char *name,
                                int error, struct weft_error *err);
/* Path of a file in the temporary directory. */
void weft_save_name_file(const struct weft_saver *saver, const char *name, struct weft_text *out);
/* Total bytes of all tensor files. */
int64_t weft_save_bytes(const struct weft_layout *layout);
/* Appends the manifest of the save under way, with the CRCs known so far. */
void weft_save_add_manifest(const struct weft_saver *saver, struct weft_text *out);

/* Rank 0: checks the room for the checkpoint, and makes room if there is too little. WEFT_E_IO. */
WEFT_MUST_USE enum weft_status weft_save_check_room(struct weft_saver *saver,
                                                    struct weft_error *err);
/* Rank 0: removes the oldest checkpoints until `bytes` of files are gone, but never the newest.
 * Counts files in blocks of `block_bytes`. Removes none if the newest is incomplete or the others
 * have too few bytes. Returns the bytes removed. */
int64_t weft_save_make_room(struct weft_saver *saver, int64_t bytes, int64_t block_bytes);
/* Whether a checkpoint is complete by its manifest and all CRCs. */
bool weft_save_read_back(const struct weft_saver *saver, int64_t step);

/* Rank 0: checks room, and creates the temporary directory and files at full length with their
 * headers. */
WEFT_MUST_USE enum weft_status weft_save_prepare(struct weft_saver *saver, struct weft_error *err);
/* Writes and syncs this rank's pieces, and closes its files. */
WEFT_MUST_USE enum weft_status weft_save_write_own(struct weft_saver *saver,
                                                   struct weft_error *err);
/* Creates a file in rank 0's new directory. With several hosts it tries again after EEXIST: only a
 * lost reply can leave a file there. Returns 0 or an errno. */
int weft_save_create_file(const struct weft_saver *saver, const char *path, int *fd);
/* Opens this rank's files that are not open. On other hosts names may appear late, so it waits for
 * them. */
WEFT_MUST_USE enum weft_status weft_save_open_files(struct weft_saver *saver,
                                                    struct weft_error *err);
/* Syncs and closes all files; errors of both count. */
WEFT_MUST_USE enum weft_status weft_save_finish_files(struct weft_saver *saver,
                                                      struct weft_error *err);
/* Writes bytes to an open file. With several hosts, parts of pages are kept for rank 0. Returns 0
 * or an errno. */
int weft_save_put(struct weft_saver *saver, int f, const void *bytes, int64_t length,
                  int64_t offset);
/* After the last weft_save_put. */
int weft_save_end_page(struct weft_saver *saver);
/* Collective, after all ranks have written: rank 0 writes the parts of pages that others kept, and
 * syncs. Its failure is in saver->status. Does nothing with one host. */
WEFT_MUST_USE enum weft_status weft_save_share_pages(struct weft_saver *saver,
                                                     struct weft_error *err);
void weft_save_close_files(struct weft_saver *saver);
/* Tries again after EINTR; another failure sets saver->sync_failed. */
WEFT_MUST_USE enum weft_status weft_save_sync_file(struct weft_saver *saver, int fd,
                                                   const char *name, struct weft_error *err);

/* Rank 0, after all have written: manifest, renames, syncs. */
WEFT_MUST_USE enum weft_status weft_save_commit(struct weft_saver *saver, struct weft_error *err);
/* Removes checkpoints that need not stay next to the committed one of `step`. */
void weft_save_retain(struct weft_saver *saver, int64_t step);

#endif
