/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/shared.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/sink.h"
#include "runtime/comm/host.h"

enum { NONCE_BYTES = 16, PATH_BYTES = 4096 };

static const int64_t patience_ns = INT64_C(5000) * 1000000;
static const int64_t pause_ns = INT64_C(20) * 1000000;

/* Rank 0's file. */
struct nonce {
    int32_t is_there;
    unsigned char bytes[NONCE_BYTES];
};

struct sight {
    int32_t sees;
    char host[WEFT_HOST_NAME_BYTES];
};

static void nonce_path(const char *directory, const struct nonce *nonce, char out[PATH_BYTES])
{
    int n = snprintf(out, PATH_BYTES, "%s/shared-", directory);
    for (int i = 0; i < NONCE_BYTES && n < PATH_BYTES; i++)
        n += snprintf(out + n, (size_t)(PATH_BYTES - n), "%02x", nonce->bytes[i]);
}

static enum weft_status leave_nonce(const char *directory, struct nonce *nonce,
                                    struct weft_error *err)
{
    char path[PATH_BYTES];
    WEFT_TRY(weft_file_make_directory(directory, err));
    if (getrandom(nonce->bytes, sizeof nonce->bytes, 0) != (ssize_t)sizeof nonce->bytes)
        return weft_fail(err, WEFT_E_SYSTEM, "getrandom: %s", strerror(errno));
    nonce_path(directory, nonce, path);
    WEFT_TRY(weft_file_write(path, (const char *)nonce->bytes, sizeof nonce->bytes, err));
    nonce->is_there = 1;
    return WEFT_OK;
}

static bool reads_nonce(const char *path, const struct nonce *nonce)
{
    struct weft_error unsaid = {.status = WEFT_OK};
    char *bytes = NULL;
    size_t length = 0;
    if (weft_file_read(path, NONCE_BYTES, &bytes, &length, &unsaid) != WEFT_OK) return false;
    const bool same = length == NONCE_BYTES && memcmp(bytes, nonce->bytes, NONCE_BYTES) == 0;
    free(bytes);
    return same;
}

static bool sees_nonce(const char *directory, const struct nonce *nonce)
{
    char path[PATH_BYTES];
    nonce_path(directory, nonce, path);
    const int64_t end_ns = weft_clock_now_ns() + patience_ns;
    while (!reads_nonce(path, nonce)) {
        if (weft_clock_now_ns() >= end_ns) return false;
        weft_clock_sleep_until_ns(weft_clock_now_ns() + pause_ns);
    }
    return true;
}

static enum weft_status judge_sights(const struct sight *all, int32_t ranks, const char *directory,
                                     struct weft_error *err)
{
    struct weft_text blind;
    enum weft_status status = WEFT_OK;
    weft_text_init(&blind);
    for (int32_t r = 0; r < ranks; r++)
        if (!all[r].sees)
            weft_text_addf(&blind, "%srank %d (host %s)", blind.length > 0 ? ", " : "", r,
                           all[r].host);
    if (blind.length > 0)
        status = weft_fail(err, WEFT_E_IO,
                           "%s of rank 0 (host %s) is another directory for %s: give a directory "
                           "of a file system that all hosts share (--run)",
                           directory, all[0].host, weft_text_chars(&blind));
    weft_text_finish(&blind);
    return status;
}

static enum weft_status compare_sights(struct weft_comm *comm, const char *directory,
                                       const struct nonce *nonce, struct weft_error *err)
{
    const int32_t ranks = weft_comm_ranks(comm);
    struct sight mine = {.sees = sees_nonce(directory, nonce)};
    weft_host_name(mine.host);
    struct sight *all = calloc((size_t)ranks, sizeof *all);
    if (all == NULL) return weft_fail_memory(err, "the ranks' sight of a directory");
    enum weft_status status = weft_comm_exchange(comm, &mine, sizeof mine, all, err);
    if (status == WEFT_OK) status = judge_sights(all, ranks, directory, err);
    free(all);
    return status;
}

static void remove_nonce(const char *directory, const struct nonce *nonce)
{
    char path[PATH_BYTES];
    nonce_path(directory, nonce, path);
    (void)unlink(path);
}

enum weft_status weft_checkpoint_prove_shared(struct weft_comm *comm, const char *directory,
                                              struct weft_error *err)
{
    const bool leads = weft_comm_rank(comm) == 0;
    struct nonce nonce = {.is_there = 0};
    struct nonce *all = calloc((size_t)weft_comm_ranks(comm), sizeof *all);
    if (all == NULL) return weft_fail_memory(err, "the ranks' sight of a directory");
    const enum weft_status left = leads ? leave_nonce(directory, &nonce, err) : WEFT_OK;
    struct weft_error unheard = {.status = WEFT_OK};
    enum weft_status status = weft_comm_exchange(comm, &nonce, sizeof nonce, all, &unheard);
    if (status == WEFT_OK) nonce = all[0];
    free(all);
    if (left != WEFT_OK) return left;
    if (status != WEFT_OK) return weft_fail(err, status, "%s", unheard.text);
    if (!nonce.is_there)
        return weft_fail_of_rank(err, WEFT_E_LOST, 0, "it could not make a file for all ranks");
    status = compare_sights(comm, directory, &nonce, err);
    if (leads) remove_nonce(directory, &nonce);
    return status;
}

void weft_checkpoint_await(const char *path)
{
    char manifest[PATH_BYTES];
    const int64_t end_ns = weft_clock_now_ns() + WEFT_SINK_PATIENCE_NS;
    if (snprintf(manifest, sizeof manifest, "%s/%s", path, WEFT_MANIFEST_NAME) >= PATH_BYTES)
        return;
    while (access(manifest, R_OK) != 0 && (errno == ENOENT || errno == ESTALE) &&
           weft_clock_now_ns() < end_ns)
        weft_clock_sleep_until_ns(weft_clock_now_ns() + pause_ns);
}
