/* The order in which a checkpoint comes to be:
 *   1. rank 0 makes step-N.tmp-K with all files at full length, and their headers;
 *   2. every rank writes what it owns and syncs each file;
 *   3. all ranks agree that this went well, and on CRCs, made from memory;
 *   4. rank 0 syncs the directory, writes, syncs and renames the manifest, syncs the directory,
 *      renames it to step-N, and syncs the directory above: now it is committed;
 *   5. all ranks learn of it, and only then may an older one go.
 * After each stage all ranks agree, so that a failure anywhere ends the save everywhere. Stages 2
 * and 4 need no other rank, and run in a thread of their own while training goes on. */
#include "runtime/checkpoint/save.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/crc32c.h"
#include "runtime/checkpoint/directory.h"

enum { EXCHANGE_BYTES = 4096, EXCHANGE_WORDS = EXCHANGE_BYTES / 4, VERDICT_TEXT_BYTES = 1000 };
enum { MOST_ATTEMPTS = 2 };

/* What a rank tells the others after a stage. */
struct verdict {
    int32_t status;
    int32_t sync_failed;
    int64_t bytes; /* written by it so far */
    char text[VERDICT_TEXT_BYTES];
};

enum phase { IDLE, WRITING, COMMITTING };

struct weft_saver {
    struct weft_saver_options options;
    int32_t rank, ranks;
    int64_t attempt, precious;
    enum phase phase;
    struct weft_progress progress; /* that is being saved */
    struct weft_save_source source;
    pthread_t thread; /* of the phase, while threaded */
    bool threaded;
    enum weft_status status; /* of the phase on this rank, and its error */
    struct weft_error own;
    struct weft_text path; /* of the temporary directory */
    int fds[WEFT_CHECKPOINT_FILES];
    uint32_t *crcs[WEFT_CHECKPOINT_FILES]; /* this rank's shares, then the CRCs */
    int64_t bytes;                         /* written in this attempt */
    bool sync_failed;                      /* somewhere, in this attempt */
    struct verdict mine;
    void *all; /* [ranks] of EXCHANGE_BYTES */
};

static enum weft_status fail(const struct weft_saver *saver, const char *what, const char *name,
                             int error, struct weft_error *err)
{
    return weft_fail(err, WEFT_E_IO, "cannot %s %s%s%s: %s", what, weft_text_chars(&saver->path),
                     name == NULL ? "" : "/", name == NULL ? "" : name, strerror(error));
}

static void name_file(const struct weft_saver *saver, const char *name, struct weft_text *out)
{
    weft_text_init(out);
    weft_text_addf(out, "%s/%s", weft_text_chars(&saver->path), name);
}

/* Agreement */

/* Collective: the lowest rank's failure, if any, becomes everybody's. */
static enum weft_status agree(struct weft_saver *saver, enum weft_status status,
                              const struct weft_error *own, struct weft_error *err)
{
    struct verdict *all = saver->all;
    saver->mine = (struct verdict){
        .status = status, .sync_failed = saver->sync_failed, .bytes = saver->bytes};
    snprintf(saver->mine.text, VERDICT_TEXT_BYTES, "%.*s", VERDICT_TEXT_BYTES - 1, own->text);
    WEFT_TRY(weft_comm_exchange(saver->options.comm, &saver->mine, sizeof saver->mine, all, err));
    enum weft_status first = WEFT_OK;
    saver->bytes = 0;
    for (int32_t r = 0; r < saver->ranks; r++) {
        saver->bytes += all[r].bytes;
        saver->sync_failed = saver->sync_failed || all[r].sync_failed != 0;
        if (first != WEFT_OK || all[r].status == WEFT_OK) continue;
        first = weft_fail(err, (enum weft_status)all[r].status, "rank %d: %s", r, all[r].text);
    }
    return first;
}

/* The stages' own errors must not stand in *err before all ranks have agreed on one. */
static enum weft_status settle(struct weft_saver *saver, struct weft_error *err)
{
    enum weft_status agreed = agree(saver, saver->status, &saver->own, err);
    saver->own = (struct weft_error){0};
    saver->status = WEFT_OK;
    return agreed;
}

static enum weft_status exchange_crcs(struct weft_saver *saver, uint32_t *crcs, int64_t n,
                                      struct weft_error *err)
{
    const uint32_t *all = saver->all;
    for (int64_t done = 0; done < n; done += EXCHANGE_WORDS) {
        int64_t words = n - done < EXCHANGE_WORDS ? n - done : EXCHANGE_WORDS;
        WEFT_TRY(weft_comm_exchange(saver->options.comm, crcs + done, (size_t)words * sizeof *crcs,
                                    saver->all, err));
        for (int64_t w = 0; w < words; w++) {
            uint32_t sum = 0;
            for (int32_t r = 0; r < saver->ranks; r++)
                sum ^= all[r * words + w];
            crcs[done + w] = sum;
        }
    }
    return WEFT_OK;
}

/* Files */

static void close_all(struct weft_saver *saver)
{
    const struct weft_sink *sink = saver->options.sink;
    for (int f = 0; f < WEFT_CHECKPOINT_FILES; f++) {
        if (saver->fds[f] >= 0) sink->close(sink->context, saver->fds[f]);
        saver->fds[f] = -1;
    }
}

static enum weft_status open_file(struct weft_saver *saver, int f, bool create,
                                  struct weft_error *err)
{
    const struct weft_sink *sink = saver->options.sink;
    const struct weft_layout_file *file = &saver->options.layout->files[f];
    struct weft_text path;
    name_file(saver, file->name, &path);
    int error = !weft_text_ok(&path) ? ENOMEM
                : create ? sink->create(sink->context, weft_text_chars(&path), &saver->fds[f])
                         : sink->open(sink->context, weft_text_chars(&path), &saver->fds[f]);
    weft_text_finish(&path);
    if (error != 0) return fail(saver, create ? "create" : "open", file->name, error, err);
    if (create) error = sink->reserve(sink->context, saver->fds[f], file->bytes);
    return error == 0 ? WEFT_OK : fail(saver, "make room for", file->name, error, err);
}

/* Bytes of one file, with their share in the CRC of every chunk that they touch. */
static enum weft_status write_run(struct weft_saver *saver, int f, const void *bytes,
                                  int64_t length, int64_t offset, struct weft_error *err)
{
    const struct weft_layout_file *file = &saver->options.layout->files[f];
    const char *at = bytes;
    while (length > 0) {
        int64_t chunk = offset / WEFT_CHECKPOINT_CHUNK_BYTES;
        int64_t inside = offset - chunk * WEFT_CHECKPOINT_CHUNK_BYTES;
        int64_t room = weft_checkpoint_chunk_bytes(file->bytes, chunk) - inside;
        int64_t n = length < room ? length : room;
        saver->crcs[f][chunk] ^= weft_crc32c_share(at, (size_t)n, room - n);
        int error = weft_sink_write(saver->options.sink, saver->fds[f], at, (size_t)n, offset);
        if (error != 0) return fail(saver, "write", file->name, error, err);
        saver->bytes += n;
        at += n;
        offset += n;
        length -= n;
    }
    return WEFT_OK;
}

static enum weft_status write_header(struct weft_saver *saver, int f, struct weft_error *err)
{
    struct weft_text header;
    weft_text_init(&header);
    weft_layout_header(saver->options.layout, f, &header);
    enum weft_status status = weft_text_ok(&header)
                                  ? write_run(saver, f, header.data, (int64_t)header.length, 0, err)
                                  : weft_fail_memory(err, "a checkpoint's header");
    weft_text_finish(&header);
    return status;
}

static int64_t all_bytes(const struct weft_layout *layout)
{
    int64_t bytes = 0;
    for (int f = 0; f < WEFT_CHECKPOINT_FILES; f++)
        bytes += layout->files[f].bytes;
    return bytes;
}

static enum weft_status check_room(const struct weft_saver *saver, struct weft_error *err)
{
    const struct weft_saver_options *o = &saver->options;
    int64_t free_bytes = 0, needed = all_bytes(o->layout);
    int error = o->sink->free_bytes(o->sink->context, o->directory, &free_bytes);
    if (error != 0 || free_bytes >= needed) return WEFT_OK; /* if unknown, writing will tell */
    return weft_fail(err, WEFT_E_IO,
                     "%s: a checkpoint takes %" PRId64 " bytes, and the disk has %" PRId64
                     " left: make room",
                     o->directory, needed, free_bytes);
}

/* Stages */

static enum weft_status prepare(struct weft_saver *saver, struct weft_error *err)
{
    const struct weft_sink *sink = saver->options.sink;
    WEFT_TRY(check_room(saver, err));
    int error = sink->make_directory(sink->context, weft_text_chars(&saver->path));
    if (error != 0) return fail(saver, "create", NULL, error, err);
    for (int f = 0; f < WEFT_CHECKPOINT_FILES; f++) {
        WEFT_TRY(open_file(saver, f, true, err));
        WEFT_TRY(write_header(saver, f, err));
    }
    return WEFT_OK;
}

static enum weft_status write_pieces(struct weft_saver *saver, struct weft_error *err)
{
    const struct weft_save_source *source = &saver->source;
    struct weft_save_piece piece;
    source->rewind(source->context);
    while (source->next(source->context, &piece)) {
        int32_t f = 0;
        const struct weft_layout_entry *entry =
            weft_layout_find(saver->options.layout, piece.tensor, piece.state, &f);
        int64_t begin = piece.first * (int64_t)sizeof(float);
        int64_t bytes = piece.count * (int64_t)sizeof(float);
        if (entry == NULL || begin < 0 || bytes < 0 || begin + bytes > entry->bytes)
            return weft_fail(err, WEFT_E_INTERNAL, "a piece that is not in the layout");
        WEFT_TRY(write_run(saver, f, piece.values, bytes, entry->begin + begin, err));
    }
    return WEFT_OK;
}

static enum weft_status sync_file(struct weft_saver *saver, int fd, const char *name,
                                  struct weft_error *err)
{
    const struct weft_sink *sink = saver->options.sink;
    int error;
    do {
        error = sink->sync(sink->context, fd);
    } while (error == EINTR);
    if (error == 0) return WEFT_OK;
    saver->sync_failed = true;
    return fail(saver, "sync", name, error, err);
}

static enum weft_status write_own(struct weft_saver *saver, struct weft_error *err)
{
    const struct weft_sink *sink = saver->options.sink;
    for (int f = 0; f < WEFT_CHECKPOINT_FILES; f++) {
        if (saver->fds[f] < 0) WEFT_TRY(open_file(saver, f, false, err));
    }
    WEFT_TRY(write_pieces(saver, err));
    for (int f = 0; f < WEFT_CHECKPOINT_FILES; f++) {
        const char *name = saver->options.layout->files[f].name;
        WEFT_TRY(sync_file(saver, saver->fds[f], name, err));
        int error = sink->close(sink->context, saver->fds[f]);
        saver->fds[f] = -1;
        if (error != 0) return fail(saver, "close", name, error, err);
    }
    return WEFT_OK;
}

static enum weft_status write_manifest(struct weft_saver *saver, const struct weft_text *text,
                                       struct weft_error *err)
{
    static const char temporary[] = WEFT_MANIFEST_NAME ".tmp";
    const struct weft_sink *sink = saver->options.sink;
    struct weft_text from, to;
    enum weft_status status = WEFT_OK;
    int fd = -1, error;
    name_file(saver, temporary, &from);
    name_file(saver, WEFT_MANIFEST_NAME, &to);
    error = weft_text_ok(&from) && weft_text_ok(&to)
                ? sink->create(sink->context, weft_text_chars(&from), &fd)
                : ENOMEM;
    if (error == 0) error = weft_sink_write(sink, fd, text->data, text->length, 0);
    if (error != 0) status = fail(saver, "write", temporary, error, err);
    if (status == WEFT_OK) status = sync_file(saver, fd, temporary, err);
    if (fd >= 0) error = sink->close(sink->context, fd);
    if (status == WEFT_OK && error == 0)
        error = sink->rename(sink->context, weft_text_chars(&from), weft_text_chars(&to));
    if (status == WEFT_OK && error != 0) status = fail(saver, "rename", temporary, error, err);
    weft_text_finish(&to);
    weft_text_finish(&from);
    return status;
}

static enum weft_status sync_directory(struct weft_saver *saver, const char *path,
                                       struct weft_error *err)
{
    const struct weft_sink *sink = saver->options.sink;
    int error;
    do {
        error = sink->sync_directory(sink->context, path);
    } while (error == EINTR);
    if (error == 0) return WEFT_OK;
    saver->sync_failed = true;
    return weft_fail(err, WEFT_E_IO, "cannot sync the directory %s: %s", path, strerror(error));
}

static enum weft_status publish(struct weft_saver *saver, int64_t step, struct weft_error *err)
{
    const struct weft_sink *sink = saver->options.sink;
    const char *temporary = weft_text_chars(&saver->path);
    struct weft_text path;
    weft_text_init(&path);
    weft_checkpoint_path(saver->options.directory, step, &path);
    int error = weft_text_ok(&path) ? sink->rename(sink->context, temporary, weft_text_chars(&path))
                                    : ENOMEM;
    enum weft_status status = WEFT_OK;
    if (error != 0) {
        status = weft_fail(err, WEFT_E_IO, "cannot rename %s to step-%" PRId64 ": %s", temporary,
                           step, strerror(error));
    } else {
        status = sync_directory(saver, saver->options.directory, err);
        /* Nobody knows which name lasts: it takes back the one that is no checkpoint's. */
        if (status != WEFT_OK) sink->rename(sink->context, weft_text_chars(&path), temporary);
    }
    weft_text_finish(&path);
    return status;
}

static enum weft_status commit(struct weft_saver *saver, struct weft_error *err)
{
    const struct weft_layout *layout = saver->options.layout;
    struct weft_manifest manifest = {
        .progress = saver->progress,
        .model = weft_manifest_model_hash(layout),
        .settings = saver->options.settings,
        .kernels = saver->options.kernels,
        .n_files = WEFT_CHECKPOINT_FILES,
    };
    for (int f = 0; f < WEFT_CHECKPOINT_FILES; f++) {
        const struct weft_layout_file *file = &layout->files[f];
        manifest.files[f] =
            (struct weft_manifest_file){file->name, file->bytes, file->n_chunks, saver->crcs[f]};
    }
    struct weft_text text;
    weft_text_init(&text);
    weft_manifest_write(&manifest, &text);
    const char *path = weft_text_chars(&saver->path);
    enum weft_status status =
        weft_text_ok(&text) ? WEFT_OK : weft_fail_memory(err, "a checkpoint's manifest");
    if (status == WEFT_OK) status = sync_directory(saver, path, err);
    if (status == WEFT_OK) status = write_manifest(saver, &text, err);
    if (status == WEFT_OK) status = sync_directory(saver, path, err);
    if (status == WEFT_OK) status = publish(saver, saver->progress.step, err);
    weft_text_finish(&text);
    return status;
}

static enum weft_status combine_crcs(struct weft_saver *saver, struct weft_error *err)
{
    for (int f = 0; f < WEFT_CHECKPOINT_FILES; f++) {
        const struct weft_layout_file *file = &saver->options.layout->files[f];
        WEFT_TRY(exchange_crcs(saver, saver->crcs[f], file->n_chunks, err));
        for (int64_t c = 0; c < file->n_chunks; c++)
            saver->crcs[f][c] ^= weft_crc32c_frame(weft_checkpoint_chunk_bytes(file->bytes, c));
    }
    return WEFT_OK;
}

/* The one resumed from may go when a newer one was read back, CRCs and all, not only written. */
static void retain(struct weft_saver *saver, int64_t step)
{
    const struct weft_saver_options *o = &saver->options;
    if (saver->precious >= 0) {
        struct weft_text path;
        struct weft_checkpoint *written = NULL;
        weft_text_init(&path);
        weft_checkpoint_path(o->directory, step, &path);
        enum weft_status status = weft_text_ok(&path)
                                      ? weft_checkpoint_open(weft_text_chars(&path), &written, NULL)
                                      : WEFT_E_SYSTEM;
        if (status == WEFT_OK) status = weft_checkpoint_verify(written, 0, 1, NULL);
        if (status == WEFT_OK) saver->precious = -1;
        weft_checkpoint_close(written);
        weft_text_finish(&path);
    }
    weft_checkpoint_retain(o->sink, o->directory, o->keep, saver->precious);
}

/* Phases */

static void work(struct weft_saver *saver)
{
    if (saver->phase == WRITING) {
        saver->status = write_own(saver, &saver->own);
    } else if (saver->rank == 0) {
        saver->status = commit(saver, &saver->own);
        if (saver->status == WEFT_OK) retain(saver, saver->progress.step);
    }
}

static void *run_thread(void *argument)
{
    work(argument);
    return NULL;
}

/* Signals are for the threads that know what to do with them. Without a thread the work is done
 * here and now. */
static void start(struct weft_saver *saver, enum phase phase, bool background)
{
    enum { STACK_BYTES = 512 * 1024 };
    sigset_t all, before;
    pthread_attr_t attributes;
    saver->phase = phase;
    saver->threaded = false;
    bool wanted = background && (phase == WRITING || saver->rank == 0);
    if (wanted && pthread_attr_init(&attributes) == 0) {
        pthread_attr_setstacksize(&attributes, STACK_BYTES);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        saver->threaded = pthread_create(&saver->thread, &attributes, run_thread, saver) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&attributes);
    }
    if (!saver->threaded) work(saver);
}

static void join(struct weft_saver *saver)
{
    if (saver->threaded) pthread_join(saver->thread, NULL);
    saver->threaded = false;
}

static enum weft_status reset(struct weft_saver *saver, struct weft_error *err)
{
    saver->attempt++;
    saver->bytes = 0;
    saver->sync_failed = false;
    for (int f = 0; f < WEFT_CHECKPOINT_FILES; f++)
        memset(saver->crcs[f], 0,
               (size_t)saver->options.layout->files[f].n_chunks * sizeof *saver->crcs[f]);
    weft_text_finish(&saver->path);
    weft_text_init(&saver->path);
    weft_checkpoint_temporary(saver->options.directory, saver->progress.step, saver->attempt,
                              &saver->path);
    return weft_text_ok(&saver->path) ? WEFT_OK : weft_fail_memory(err, "a path");
}

static enum weft_status finish_writing(struct weft_saver *saver, bool background,
                                       struct weft_error *err)
{
    join(saver);
    WEFT_TRY(settle(saver, err));
    if (saver->bytes != all_bytes(saver->options.layout))
        return weft_fail(err, WEFT_E_INTERNAL,
                         "ranks have written %" PRId64 " bytes of a checkpoint of %" PRId64,
                         saver->bytes, all_bytes(saver->options.layout));
    WEFT_TRY(combine_crcs(saver, err));
    start(saver, COMMITTING, background);
    return WEFT_OK;
}

static enum weft_status finish_commit(struct weft_saver *saver, struct weft_error *err)
{
    join(saver);
    saver->phase = IDLE;
    return settle(saver, err);
}

static void abandon(struct weft_saver *saver)
{
    join(saver);
    close_all(saver);
    if (saver->phase != IDLE && saver->rank == 0)
        weft_checkpoint_remove(saver->options.sink, weft_text_chars(&saver->path));
    saver->phase = IDLE;
    saver->status = WEFT_OK;
    saver->own = (struct weft_error){0};
}

static enum weft_status begin(struct weft_saver *saver, bool background, struct weft_error *err)
{
    WEFT_TRY(reset(saver, err));
    saver->phase = WRITING; /* from here on there is something to remove */
    if (saver->rank == 0) saver->status = prepare(saver, &saver->own);
    WEFT_TRY(settle(saver, err));
    if (saver->rank != 0) saver->bytes = 0; /* rank 0 counts its headers itself */
    start(saver, WRITING, background);
    return WEFT_OK;
}

/* All stages, one after the other. */
static enum weft_status save_once(struct weft_saver *saver, struct weft_error *err)
{
    enum weft_status status = begin(saver, false, err);
    if (status == WEFT_OK) status = finish_writing(saver, false, err);
    if (status == WEFT_OK) status = finish_commit(saver, err);
    if (status != WEFT_OK) {
        saver->phase = WRITING;
        abandon(saver);
    }
    return status;
}

/* Agreed on by all ranks, so all try again or none. */
static bool may_try_again(const struct weft_saver *saver, enum weft_status status)
{
    return status == WEFT_E_IO && saver->sync_failed;
}

/* Whatever has failed before is told only if this fails too. */
static enum weft_status save_again(struct weft_saver *saver, int attempts, struct weft_error *why)
{
    enum weft_status status = WEFT_OK;
    for (int i = 0; i < attempts; i++) {
        *why = (struct weft_error){0};
        status = save_once(saver, why);
        if (!may_try_again(saver, status)) break;
    }
    return status;
}

static enum weft_status tell(const struct weft_saver *saver, enum weft_status status,
                             struct weft_error *why, struct weft_error *err)
{
    if (status != WEFT_OK)
        weft_fail(err, status, "step %" PRId64 " cannot be saved: %s", saver->progress.step,
                  why->text);
    free(why);
    return status;
}

enum weft_status weft_saver_save(struct weft_saver *saver, const struct weft_progress *progress,
                                 const struct weft_save_source *source, struct weft_error *err)
{
    WEFT_TRY(weft_saver_catch_up(saver, true, err));
    struct weft_error *why = calloc(1, sizeof *why);
    if (why == NULL) return weft_fail_memory(err, "an error");
    saver->progress = *progress;
    saver->source = *source;
    return tell(saver, save_again(saver, MOST_ATTEMPTS, why), why, err);
}

enum weft_status weft_saver_begin(struct weft_saver *saver, const struct weft_progress *progress,
                                  const struct weft_save_source *source, struct weft_error *err)
{
    WEFT_TRY(weft_saver_catch_up(saver, true, err));
    struct weft_error *why = calloc(1, sizeof *why);
    if (why == NULL) return weft_fail_memory(err, "an error");
    saver->progress = *progress;
    saver->source = *source;
    enum weft_status status = begin(saver, true, why);
    if (status != WEFT_OK) abandon(saver);
    return tell(saver, status, why, err);
}

enum weft_status weft_saver_catch_up(struct weft_saver *saver, bool finish, struct weft_error *err)
{
    if (saver->phase == IDLE) return WEFT_OK;
    struct weft_error *why = calloc(1, sizeof *why);
    if (why == NULL) return weft_fail_memory(err, "an error");
    enum weft_status status = WEFT_OK;
    bool written = saver->phase == WRITING;
    if (written) status = finish_writing(saver, !finish, why);
    if (status == WEFT_OK && (finish || !written)) status = finish_commit(saver, why);
    if (status != WEFT_OK) {
        saver->phase = WRITING;
        abandon(saver);
        /* What was to be saved has not changed yet. */
        if (written && may_try_again(saver, status)) status = save_again(saver, 1, why);
    }
    return tell(saver, status, why, err);
}

bool weft_saver_is_idle(const struct weft_saver *saver)
{
    return saver->phase == IDLE;
}

enum weft_status weft_saver_create(const struct weft_saver_options *options,
                                   struct weft_saver **out, struct weft_error *err)
{
    struct weft_saver *saver = calloc(1, sizeof *saver);
    if (saver == NULL) return weft_fail_memory(err, "saving");
    saver->options = *options;
    saver->rank = weft_comm_rank(options->comm);
    saver->ranks = weft_comm_ranks(options->comm);
    saver->precious = options->precious;
    saver->all = calloc((size_t)saver->ranks, EXCHANGE_BYTES);
    bool complete = saver->all != NULL;
    for (int f = 0; f < WEFT_CHECKPOINT_FILES; f++) {
        saver->fds[f] = -1;
        saver->crcs[f] = calloc((size_t)options->layout->files[f].n_chunks, sizeof *saver->crcs[f]);
        complete = complete && saver->crcs[f] != NULL;
    }
    enum weft_status status = complete ? WEFT_OK : weft_fail_memory(err, "saving");
    if (status == WEFT_OK && saver->rank == 0) {
        status = weft_file_make_directory(options->directory, err);
        if (status == WEFT_OK) weft_checkpoint_clear(options->sink, options->directory);
    }
    if (status != WEFT_OK) {
        weft_saver_destroy(saver);
        return status;
    }
    *out = saver;
    return WEFT_OK;
}

void weft_saver_destroy(struct weft_saver *saver)
{
    if (saver == NULL) return;
    abandon(saver);
    for (int f = 0; f < WEFT_CHECKPOINT_FILES; f++)
        free(saver->crcs[f]);
    weft_text_finish(&saver->path);
    free(saver->all);
    free(saver);
}
