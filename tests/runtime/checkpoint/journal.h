/* SPDX-License-Identifier: Apache-2.0 */
/* A journal is a sink that works like the system's and records the calls of all ranks in order.
 * From it tests build every disk state that a power failure may leave: each unsynced 512 bytes and
 * each unsynced change of a directory survives or not, independently. */
#ifndef WEFT_TESTS_RUNTIME_CHECKPOINT_JOURNAL_H
#define WEFT_TESTS_RUNTIME_CHECKPOINT_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/checkpoint/sink.h"

enum journal_kind {
    JOURNAL_CREATE, /* a file or directory: entry `name` of `parent` is now `node` */
    JOURNAL_RESERVE,
    JOURNAL_WRITE,
    JOURNAL_SYNC,
    JOURNAL_RENAME, /* entry `name` of `parent` becomes `other` */
    JOURNAL_SYNC_DIRECTORY,
    JOURNAL_REMOVE, /* entry `name` of `parent` is gone */
};

enum { JOURNAL_NAME_BYTES = 48, JOURNAL_ENTRIES = 20000, JOURNAL_NODES = 1000 };
enum { JOURNAL_DATA_BYTES = 64 << 20, JOURNAL_ROOT = 0 };

struct journal_entry {
    enum journal_kind kind;
    int32_t node, parent;
    bool directory;
    char name[JOURNAL_NAME_BYTES], other[JOURNAL_NAME_BYTES];
    int64_t offset, bytes, data; /* WRITE: bytes at data of the journal's; RESERVE: bytes */
};

struct journal; /* in shared memory */

/* `root` is the directory that everything happens in; it is there before, and lasts. */
struct journal *journal_create(const char *root);
/* The sink of one rank. A nonzero fault is the number of this rank's sync that fails with EIO and
 * keeps no data. For directories the `more` syncs after it fail too. */
struct journal_faults {
    int32_t sync, sync_directory, more;
};
struct weft_sink journal_sink(struct journal *journal, struct journal_faults faults);

int32_t journal_length(const struct journal *journal);
const struct journal_entry *journal_at(const struct journal *journal, int32_t i);

struct journal_crash {
    int32_t length;        /* calls that were made before the power failed */
    uint64_t seed;         /* chooses the unsynced data that survives */
    bool without_sync;     /* as if syncs of files did nothing: a check of the check */
    bool without_sync_dir; /* likewise of directories */
};

/* Makes the state below `path`, an empty directory. */
void journal_make_state(const struct journal *journal, const struct journal_crash *crash,
                        const char *path);

#endif
