/* SPDX-License-Identifier: Apache-2.0 */
/* The stages of a save:
 *   1. rank 0 makes step-N.tmp-K with all files at full length, and their headers;
 *   2. every rank writes its own pieces and syncs each file;
 *      with several hosts rank 0 writes the pages that a rank fills only in part;
 *   3. all ranks agree on success, and on CRCs, which come from memory;
 *   4. rank 0 syncs the directory, writes, syncs and renames the manifest, syncs the directory,
 *      renames it to step-N, and syncs the directory above: now it is committed;
 *   5. all ranks learn of it, and only then may an older checkpoint go.
 * After each stage all ranks agree, so a failure anywhere ends the save everywhere. Stages 2 and 4
 * need no other rank. They run in a thread while training goes on. */
#include "runtime/checkpoint/save.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "runtime/checkpoint/directory.h"
#include "runtime/checkpoint/save_parts.h"

enum { EXCHANGE_BYTES = 4096, EXCHANGE_WORDS = EXCHANGE_BYTES / 4 };
enum { MOST_ATTEMPTS = 2 };

/* Agreement */

/* Collective: all ranks return the lowest rank's failure, with its rank if there are several. */
static enum weft_status agree_on_status(struct weft_saver *saver, enum weft_status status,
                                        const struct weft_error *own, struct weft_error *err)
{
    struct save_verdict *all = saver->all;
    saver->mine = (struct save_verdict){.status = status,
                                        .sync_failed = saver->sync_failed,
                                        .no_space = saver->no_space,
                                        .bytes = saver->bytes};
    snprintf(saver->mine.text, SAVE_VERDICT_TEXT_BYTES, "%.*s", SAVE_VERDICT_TEXT_BYTES - 1,
             own->text);
    WEFT_TRY(weft_comm_exchange(saver->options.comm, &saver->mine, sizeof saver->mine, all, err));
    enum weft_status first = WEFT_OK;
    saver->bytes = 0;
    for (int32_t r = 0; r < saver->ranks; r++) {
        saver->bytes += all[r].bytes;
        saver->sync_failed = saver->sync_failed || all[r].sync_failed != 0;
        saver->no_space = saver->no_space || all[r].no_space != 0;
        if (first != WEFT_OK || all[r].status == WEFT_OK) continue;
        first = (enum weft_status)all[r].status;
        if (saver->ranks == 1)
            weft_fail(err, first, "%s", all[r].text);
        else
            weft_fail_of_rank(err, first, r, all[r].text);
    }
    return first;
}

/* A stage's own error enters *err only after all ranks have agreed on one. */
static enum weft_status settle_stage(struct weft_saver *saver, struct weft_error *err)
{
    enum weft_status agreed = agree_on_status(saver, saver->status, &saver->own, err);
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

static enum weft_status combine_crcs(struct weft_saver *saver, struct weft_error *err)
{
    for (int f = 0; f < WEFT_CHECKPOINT_FILES; f++) {
        const struct weft_layout_file *file = &saver->options.layout->files[f];
        WEFT_TRY(exchange_crcs(saver, saver->crcs[f], file->n_chunks, err));
        for (int64_t c = 0; c < file->n_chunks; c++)
            saver->crcs[f][c] ^= weft_crc32c_frame(
                weft_checkpoint_chunk_length(file->bytes, saver->options.layout->chunk_bytes, c));
    }
    return WEFT_OK;
}

/* Phases */

static void work_phase(struct weft_saver *saver)
{
    if (saver->phase == SAVE_WRITING) {
        saver->status = weft_save_write_own(saver, &saver->own);
    } else if (saver->rank == 0) {
        saver->status = weft_save_commit(saver, &saver->own);
        if (saver->status == WEFT_OK) weft_save_retain(saver, saver->progress.step);
    }
}

static void *run_thread(void *argument)
{
    work_phase(argument);
    return NULL;
}

/* Blocks all signals in the thread: they belong to the caller's threads. Without a thread the work
 * is done here. */
static void start_phase(struct weft_saver *saver, enum save_phase phase, bool background)
{
    enum { STACK_BYTES = 512 * 1024 };
    sigset_t all, before;
    pthread_attr_t attributes;
    saver->phase = phase;
    saver->threaded = false;
    bool wanted = background && (phase == SAVE_WRITING || saver->rank == 0);
    if (wanted && pthread_attr_init(&attributes) == 0) {
        pthread_attr_setstacksize(&attributes, STACK_BYTES);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        saver->threaded = pthread_create(&saver->thread, &attributes, run_thread, saver) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&attributes);
    }
    if (!saver->threaded) work_phase(saver);
}

static void join_thread(struct weft_saver *saver)
{
    if (saver->threaded) pthread_join(saver->thread, NULL);
    saver->threaded = false;
}

static enum weft_status reset_attempt(struct weft_saver *saver, struct weft_error *err)
{
    saver->attempt++;
    saver->bytes = 0;
    saver->sync_failed = saver->no_space = false;
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
    join_thread(saver);
    WEFT_TRY(settle_stage(saver, err));
    if (saver->bytes != weft_save_bytes(saver->options.layout))
        return weft_fail(err, WEFT_E_INTERNAL,
                         "ranks have written %" PRId64 " bytes of a checkpoint of %" PRId64,
                         saver->bytes, weft_save_bytes(saver->options.layout));
    WEFT_TRY(weft_save_share_pages(saver, err));
    if (saver->options.page_bytes > 0) WEFT_TRY(settle_stage(saver, err));
    WEFT_TRY(combine_crcs(saver, err));
    start_phase(saver, SAVE_COMMITTING, background);
    return WEFT_OK;
}

static enum weft_status finish_commit(struct weft_saver *saver, struct weft_error *err)
{
    join_thread(saver);
    saver->phase = SAVE_IDLE;
    return settle_stage(saver, err);
}

static void abandon_save(struct weft_saver *saver)
{
    join_thread(saver);
    weft_save_close_files(saver);
    if (saver->phase != SAVE_IDLE && saver->rank == 0 && saver->options.sink->is_memory)
        (void)saver->options.sink->remove_directory(saver->options.sink->context,
                                                    weft_text_chars(&saver->path));
    else if (saver->phase != SAVE_IDLE && saver->rank == 0)
        weft_checkpoint_discard(saver->options.sink, saver->options.directory,
                                weft_text_chars(&saver->path));
    saver->phase = SAVE_IDLE;
    saver->status = WEFT_OK;
    saver->own = (struct weft_error){0};
}

static enum weft_status begin_save(struct weft_saver *saver, bool background,
                                   struct weft_error *err)
{
    WEFT_TRY(reset_attempt(saver, err));
    saver->phase = SAVE_WRITING; /* from here on there are files to remove */
    if (saver->rank == 0) saver->status = weft_save_prepare(saver, &saver->own);
    WEFT_TRY(settle_stage(saver, err));
    if (saver->rank != 0) saver->bytes = 0; /* rank 0 alone counts the headers */
    start_phase(saver, SAVE_WRITING, background);
    return WEFT_OK;
}

/* Runs all stages in order, without a thread. */
static enum weft_status save_once(struct weft_saver *saver, struct weft_error *err)
{
    enum weft_status status = begin_save(saver, false, err);
    if (status == WEFT_OK) status = finish_writing(saver, false, err);
    if (status == WEFT_OK) status = finish_commit(saver, err);
    if (status != WEFT_OK) {
        saver->phase = SAVE_WRITING;
        abandon_save(saver);
    }
    return status;
}

/* Collective: rank 0 removes the oldest checkpoint if a complete newer one stays. One is enough to
 * try again: a quota's size is unknown until it is hit. */
static bool make_room(struct weft_saver *saver)
{
    struct weft_error unheard = {0};
    const int32_t *all = saver->all;
    int32_t made = saver->rank == 0 && weft_save_make_room(saver, 1, 1) > 0;
    return weft_comm_exchange(saver->options.comm, &made, sizeof made, saver->all, &unheard) ==
               WEFT_OK &&
           all[0] != 0;
}

/* Collective, after a failed attempt was removed: whether all ranks try again. */
static bool may_try_again(struct weft_saver *saver, enum weft_status status)
{
    if (status != WEFT_E_IO) return false;
    return saver->no_space ? make_room(saver) : saver->sync_failed;
}

/* Earlier failures are dropped: *why tells the last one. */
static enum weft_status save_again(struct weft_saver *saver, int attempts, struct weft_error *why)
{
    for (;;) {
        *why = (struct weft_error){0};
        enum weft_status status = save_once(saver, why);
        if (--attempts == 0 || !may_try_again(saver, status)) return status;
    }
}

static enum weft_status tell_failure(const struct weft_saver *saver, enum weft_status status,
                                     struct weft_error *why, struct weft_error *err)
{
    if (status != WEFT_OK)
        weft_fail_again(err, why, "step %" PRId64 " cannot be saved: %s", saver->progress.step,
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
    return tell_failure(saver, save_again(saver, MOST_ATTEMPTS, why), why, err);
}

enum weft_status weft_saver_begin(struct weft_saver *saver, const struct weft_progress *progress,
                                  const struct weft_save_source *source, struct weft_error *err)
{
    WEFT_TRY(weft_saver_catch_up(saver, true, err));
    struct weft_error *why = calloc(1, sizeof *why);
    if (why == NULL) return weft_fail_memory(err, "an error");
    saver->progress = *progress;
    saver->source = *source;
    enum weft_status status = begin_save(saver, true, why);
    if (status != WEFT_OK) {
        abandon_save(saver);
        if (may_try_again(saver, status)) status = save_again(saver, 1, why);
    }
    return tell_failure(saver, status, why, err);
}

enum weft_status weft_saver_catch_up(struct weft_saver *saver, bool finish, struct weft_error *err)
{
    if (saver->phase == SAVE_IDLE) return WEFT_OK;
    struct weft_error *why = calloc(1, sizeof *why);
    if (why == NULL) return weft_fail_memory(err, "an error");
    enum weft_status status = WEFT_OK;
    bool written = saver->phase == SAVE_WRITING;
    if (written) status = finish_writing(saver, !finish, why);
    if (status == WEFT_OK && (finish || !written)) status = finish_commit(saver, why);
    if (status != WEFT_OK) {
        saver->phase = SAVE_WRITING;
        abandon_save(saver);
        /* The source has not changed yet. */
        if (written && may_try_again(saver, status)) status = save_again(saver, 1, why);
    }
    return tell_failure(saver, status, why, err);
}

bool weft_saver_is_idle(const struct weft_saver *saver)
{
    return saver->phase == SAVE_IDLE;
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
    if (status == WEFT_OK && saver->rank == 0 && !options->sink->is_memory) {
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
    abandon_save(saver);
    for (int f = 0; f < WEFT_CHECKPOINT_FILES; f++)
        free(saver->crcs[f]);
    weft_text_finish(&saver->path);
    free(saver->pages.parts);
    free(saver->all);
    free(saver);
}
