/* SPDX-License-Identifier: Apache-2.0 */
/* MAP_ANONYMOUS is neither C nor POSIX. */
#define _DEFAULT_SOURCE

#include "tests/runtime/checkpoint/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "tests/runtime/comm/ranks.h"

enum { SECTOR_BYTES = 512, MOST_FDS = 1024, MOST_FILE_BYTES = 1 << 17, PATH_BYTES = 512 };

struct journal {
    char root[PATH_BYTES];
    atomic_int length, n_nodes;
    atomic_llong data_bytes;
    uint64_t inodes[JOURNAL_NODES]; /* of each node, of those with the same one the last counts */
    struct journal_entry entries[JOURNAL_ENTRIES];
    unsigned char data[JOURNAL_DATA_BYTES];
};

/* One rank's. */
struct recorder {
    struct journal *journal;
    int32_t nodes[MOST_FDS];            /* by descriptor */
    struct journal_faults faults, done; /* calls that fail; calls so far */
};

struct journal *journal_create(const char *root)
{
    struct journal *journal =
        mmap(NULL, sizeof *journal, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct stat about;
    CHECK(journal != MAP_FAILED, "no memory");
    CHECK(stat(root, &about) == 0, "%s is not there", root);
    snprintf(journal->root, PATH_BYTES, "%s", root);
    journal->inodes[JOURNAL_ROOT] = about.st_ino;
    atomic_store(&journal->n_nodes, 1);
    return journal;
}

/* The system gives an inode's number to another file when it is free again. */
static int32_t node_of_inode(const struct journal *journal, uint64_t inode)
{
    for (int32_t n = atomic_load(&journal->n_nodes) - 1; n >= 0; n--) {
        if (journal->inodes[n] == inode) return n;
    }
    check_failed(__FILE__, __LINE__, "node", "an unknown inode");
}

static int32_t node_of_path(const struct journal *journal, const char *path)
{
    struct stat about;
    CHECK(stat(path, &about) == 0, "%s: %s", path, strerror(errno));
    return node_of_inode(journal, about.st_ino);
}

static int32_t new_node(struct journal *journal, const char *path)
{
    struct stat about;
    CHECK(stat(path, &about) == 0, "%s: %s", path, strerror(errno));
    int32_t node = atomic_fetch_add(&journal->n_nodes, 1);
    CHECK(node < JOURNAL_NODES, "too many files");
    journal->inodes[node] = about.st_ino;
    return node;
}

static void note(struct journal *journal, const struct journal_entry *entry)
{
    int32_t i = atomic_fetch_add(&journal->length, 1);
    CHECK(i < JOURNAL_ENTRIES, "too many calls");
    journal->entries[i] = *entry;
}

static const char *last_name(const char *path)
{
    return strrchr(path, '/') + 1;
}

static struct journal_entry entry_of(const struct recorder *r, enum journal_kind kind,
                                     const char *path)
{
    struct journal_entry entry = {.kind = kind};
    char parent[PATH_BYTES];
    snprintf(parent, sizeof parent, "%s", path);
    *strrchr(parent, '/') = '\0';
    entry.parent = node_of_path(r->journal, parent);
    snprintf(entry.name, sizeof entry.name, "%s", last_name(path));
    return entry;
}

static int make_directory(void *context, const char *path)
{
    struct recorder *r = context;
    int error = weft_sink_system.make_directory(NULL, path);
    if (error != 0) return error;
    struct journal_entry entry = entry_of(r, JOURNAL_CREATE, path);
    entry.directory = true;
    entry.node = new_node(r->journal, path);
    note(r->journal, &entry);
    return 0;
}

static int create(void *context, const char *path, int *fd)
{
    struct recorder *r = context;
    int error = weft_sink_system.create(NULL, path, fd);
    if (error != 0) return error;
    struct journal_entry entry = entry_of(r, JOURNAL_CREATE, path);
    entry.node = new_node(r->journal, path);
    r->nodes[*fd] = entry.node;
    note(r->journal, &entry);
    return 0;
}

static int open_existing(void *context, const char *path, int *fd)
{
    struct recorder *r = context;
    int error = weft_sink_system.open(NULL, path, fd);
    if (error == 0) r->nodes[*fd] = node_of_path(r->journal, path);
    return error;
}

static int reserve(void *context, int fd, int64_t bytes)
{
    struct recorder *r = context;
    note(r->journal,
         &(struct journal_entry){.kind = JOURNAL_RESERVE, .node = r->nodes[fd], .bytes = bytes});
    return weft_sink_system.reserve(NULL, fd, bytes);
}

/* Short every now and then, as the system's may be. */
static int write_some(void *context, int fd, const void *bytes, size_t length, int64_t offset,
                      size_t *written)
{
    struct recorder *r = context;
    if (length > 1000 && offset % 3 == 0) length -= 777;
    int64_t at = atomic_fetch_add(&r->journal->data_bytes, (int64_t)length);
    CHECK(at + (int64_t)length <= JOURNAL_DATA_BYTES, "too many bytes");
    memcpy(r->journal->data + at, bytes, length);
    note(r->journal, &(struct journal_entry){.kind = JOURNAL_WRITE,
                                             .node = r->nodes[fd],
                                             .offset = offset,
                                             .bytes = (int64_t)length,
                                             .data = at});
    return weft_sink_system.write(NULL, fd, bytes, length, offset, written);
}

static int sync_file(void *context, int fd)
{
    struct recorder *r = context;
    if (++r->done.sync == r->faults.sync) return EIO;
    note(r->journal, &(struct journal_entry){.kind = JOURNAL_SYNC, .node = r->nodes[fd]});
    return 0;
}

static int close_file(void *context, int fd)
{
    (void)context;
    return weft_sink_system.close(NULL, fd);
}

static int rename_path(void *context, const char *from, const char *to)
{
    struct recorder *r = context;
    struct journal_entry entry = entry_of(r, JOURNAL_RENAME, from);
    CHECK(last_name(from) - from == last_name(to) - to &&
              strncmp(from, to, (size_t)(last_name(to) - to)) == 0,
          "%s goes to another directory: %s", from, to);
    entry.node = node_of_path(r->journal, from);
    snprintf(entry.other, sizeof entry.other, "%s", last_name(to));
    int error = weft_sink_system.rename(NULL, from, to);
    if (error == 0) note(r->journal, &entry);
    return error;
}

static int sync_directory(void *context, const char *path)
{
    struct recorder *r = context;
    int32_t behind = ++r->done.sync_directory - r->faults.sync_directory;
    if (r->faults.sync_directory > 0 && behind >= 0 && behind <= r->faults.more) return EIO;
    note(r->journal, &(struct journal_entry){.kind = JOURNAL_SYNC_DIRECTORY,
                                             .node = node_of_path(r->journal, path)});
    return 0;
}

static int remove_any(struct recorder *r, const char *path, int error)
{
    struct journal_entry entry = entry_of(r, JOURNAL_REMOVE, path);
    if (error == 0) note(r->journal, &entry);
    return error;
}

static int remove_file(void *context, const char *path)
{
    return remove_any(context, path, weft_sink_system.remove(NULL, path));
}

static int remove_directory(void *context, const char *path)
{
    return remove_any(context, path, weft_sink_system.remove_directory(NULL, path));
}

static int free_bytes(void *context, const char *path, int64_t *bytes, int64_t *block_bytes)
{
    (void)context;
    return weft_sink_system.free_bytes(NULL, path, bytes, block_bytes);
}

struct weft_sink journal_sink(struct journal *journal, struct journal_faults faults)
{
    struct recorder *r = calloc(1, sizeof *r);
    CHECK(r != NULL, "no memory");
    r->journal = journal;
    r->faults = faults;
    return (struct weft_sink){
        .context = r,
        .make_directory = make_directory,
        .create = create,
        .open = open_existing,
        .reserve = reserve,
        .write = write_some,
        .sync = sync_file,
        .close = close_file,
        .rename = rename_path,
        .sync_directory = sync_directory,
        .remove = remove_file,
        .remove_directory = remove_directory,
        .free_bytes = free_bytes,
    };
}

int32_t journal_length(const struct journal *journal)
{
    return atomic_load(&journal->length);
}

const struct journal_entry *journal_at(const struct journal *journal, int32_t i)
{
    return &journal->entries[i];
}

/* The state after a crash */

struct draw {
    uint64_t seed, counter;
    double share; /* share of unsynced data that survives */
};

static bool survives(struct draw *draw)
{
    return weft_rng_uniform(draw->seed, 1, draw->counter++) < draw->share;
}

/* The last call before the crash that made everything of a node durable; -1: none. */
static int32_t last_sync(const struct journal *journal, const struct journal_crash *crash,
                         int32_t node, enum journal_kind kind)
{
    bool ignored = kind == JOURNAL_SYNC ? crash->without_sync : crash->without_sync_dir;
    for (int32_t i = crash->length - 1; i >= 0 && !ignored; i--) {
        if (journal->entries[i].kind == kind && journal->entries[i].node == node) return i;
    }
    return -1;
}

static void apply_write(const struct journal *journal, const struct journal_entry *entry,
                        bool durable, struct draw *draw, unsigned char *bytes, int64_t *length)
{
    for (int64_t at = entry->offset, end = entry->offset + entry->bytes; at < end;) {
        int64_t next = (at / SECTOR_BYTES + 1) * SECTOR_BYTES;
        if (next > end) next = end;
        if (durable || survives(draw)) {
            CHECK(next <= MOST_FILE_BYTES, "a file is too long");
            memcpy(bytes + at, journal->data + entry->data + (at - entry->offset),
                   (size_t)(next - at));
            if (*length < next) *length = next;
        }
        at = next;
    }
}

static void make_file(const struct journal *journal, const struct journal_crash *crash,
                      int32_t node, struct draw *draw, const char *path)
{
    static unsigned char bytes[MOST_FILE_BYTES];
    int64_t length = 0;
    int32_t synced = last_sync(journal, crash, node, JOURNAL_SYNC);
    memset(bytes, 0, sizeof bytes);
    for (int32_t i = 0; i < crash->length; i++) {
        const struct journal_entry *entry = &journal->entries[i];
        bool durable = i < synced;
        if (entry->node != node) continue;
        if (entry->kind == JOURNAL_WRITE)
            apply_write(journal, entry, durable, draw, bytes, &length);
        if (entry->kind == JOURNAL_RESERVE && (durable || survives(draw)) && length < entry->bytes)
            length = entry->bytes;
    }
    FILE *out = fopen(path, "w");
    CHECK(out != NULL, "%s: %s", path, strerror(errno));
    CHECK(fwrite(bytes, 1, (size_t)length, out) == (size_t)length, "%s is not written", path);
    fclose(out);
}

struct listing {
    int32_t n;
    struct {
        char name[JOURNAL_NAME_BYTES];
        int32_t node;
    } entries[64];
};

static void unlist(struct listing *list, const char *name)
{
    for (int32_t i = 0; i < list->n; i++) {
        if (strcmp(list->entries[i].name, name) == 0) list->entries[i--] = list->entries[--list->n];
    }
}

static void enlist(struct listing *list, const char *name, int32_t node)
{
    unlist(list, name);
    CHECK(list->n < 64, "too many entries");
    snprintf(list->entries[list->n].name, JOURNAL_NAME_BYTES, "%s", name);
    list->entries[list->n++].node = node;
}

static void list_directory(const struct journal *journal, const struct journal_crash *crash,
                           int32_t node, struct draw *draw, struct listing *list)
{
    int32_t synced = last_sync(journal, crash, node, JOURNAL_SYNC_DIRECTORY);
    for (int32_t i = 0; i < crash->length; i++) {
        const struct journal_entry *entry = &journal->entries[i];
        bool changes = entry->kind == JOURNAL_CREATE || entry->kind == JOURNAL_RENAME ||
                       entry->kind == JOURNAL_REMOVE;
        if (!changes || entry->parent != node || !(i < synced || survives(draw))) continue;
        if (entry->kind != JOURNAL_CREATE) unlist(list, entry->name);
        if (entry->kind == JOURNAL_CREATE) enlist(list, entry->name, entry->node);
        if (entry->kind == JOURNAL_RENAME) enlist(list, entry->other, entry->node);
    }
}

static bool is_directory(const struct journal *journal, int32_t node)
{
    for (int32_t i = 0; i < journal_length(journal); i++) {
        const struct journal_entry *entry = &journal->entries[i];
        if (entry->kind == JOURNAL_CREATE && entry->node == node) return entry->directory;
    }
    return false;
}

static void make_node(const struct journal *journal, const struct journal_crash *crash,
                      int32_t node, struct draw *draw, const char *path)
{
    struct listing list = {0};
    list_directory(journal, crash, node, draw, &list);
    for (int32_t i = 0; i < list.n; i++) {
        char below[PATH_BYTES];
        snprintf(below, sizeof below, "%s/%s", path, list.entries[i].name);
        if (!is_directory(journal, list.entries[i].node)) {
            make_file(journal, crash, list.entries[i].node, draw, below);
            continue;
        }
        CHECK(mkdir(below, 0700) == 0, "%s: %s", below, strerror(errno));
        make_node(journal, crash, list.entries[i].node, draw, below);
    }
}

void journal_make_state(const struct journal *journal, const struct journal_crash *crash,
                        const char *path)
{
    static const double shares[] = {0, 0.1, 0.5, 0.9, 0.98, 1};
    uint64_t which = weft_rng_below(crash->seed, 0, 0, sizeof shares / sizeof shares[0]);
    struct draw draw = {.seed = crash->seed, .share = shares[which]};
    make_node(journal, crash, JOURNAL_ROOT, &draw, path);
}
