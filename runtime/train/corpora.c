#include "runtime/train/corpora.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_pattern(const char *path)
{
    return strpbrk(path, "*?[") != NULL && access(path, F_OK) != 0;
}

static enum weft_status take_paths(struct weft_corpora *corpora, char *const *paths, size_t n,
                                   struct weft_error *err)
{
    corpora->paths = calloc(n, sizeof *corpora->paths);
    corpora->all = calloc(n, sizeof *corpora->all);
    corpora->first = calloc(n, sizeof *corpora->first);
    if (corpora->paths == NULL || corpora->all == NULL || corpora->first == NULL)
        return weft_fail_memory(err, "the names of the data");
    for (; (size_t)corpora->n < n; corpora->n++) {
        corpora->all[corpora->n].fd = -1;
        corpora->paths[corpora->n] = strdup(paths[corpora->n]);
        if (corpora->paths[corpora->n] == NULL)
            return weft_fail_memory(err, "the names of the data");
    }
    return WEFT_OK;
}

static enum weft_status match(struct weft_corpora *corpora, const char *key, struct weft_error *err)
{
    glob_t found;
    int failure = glob(corpora->path, GLOB_ERR, NULL, &found);
    if (failure == GLOB_NOMATCH)
        return weft_fail(err, WEFT_E_NO_INPUT,
                         "%s: matches no file. %s must be the path of a text or of a token file, "
                         "or a pattern of such paths",
                         corpora->path, key);
    if (failure == GLOB_ABORTED)
        return weft_fail(err, WEFT_E_IO, "%s: a directory of this pattern cannot be read",
                         corpora->path);
    if (failure != 0) return weft_fail_memory(err, "the names of the data");
    enum weft_status status =
        found.gl_pathc <= INT32_MAX
            ? take_paths(corpora, found.gl_pathv, found.gl_pathc, err)
            : weft_fail(err, WEFT_E_DATA, "%s: matches %zu files", corpora->path, found.gl_pathc);
    globfree(&found);
    return status;
}

static const char *form_of(const struct weft_corpus *corpus)
{
    return corpus->text               ? "a text"
           : corpus->token_bytes == 2 ? "of 16-bit tokens"
                                      : "of 32-bit tokens";
}

static enum weft_status open_all(struct weft_corpora *corpora, const char *key,
                                 enum weft_data_format format, int64_t vocab,
                                 struct weft_error *err)
{
    char *one = (char *)(uintptr_t)corpora->path; /* copied, not written to */
    WEFT_TRY(is_pattern(corpora->path) ? match(corpora, key, err)
                                       : take_paths(corpora, &one, 1, err));
    for (int32_t i = 0; i < corpora->n; i++) {
        struct weft_corpus *corpus = &corpora->all[i];
        WEFT_TRY(weft_corpus_open(corpora->paths[i], key, format, vocab, corpus, err));
        if (strcmp(form_of(corpus), form_of(&corpora->all[0])) != 0)
            return weft_fail(
                err, WEFT_E_DATA,
                "%s is %s, and %s, which matches %s too, is %s: give files of one form",
                corpora->paths[i], form_of(corpus), corpora->paths[0], corpora->path,
                form_of(&corpora->all[0]));
        corpora->first[i] = corpora->tokens;
        corpora->tokens += corpus->tokens;
    }
    corpora->text = corpora->all[0].text;
    return WEFT_OK;
}

enum weft_status weft_corpora_open(const char *path, const char *key, enum weft_data_format format,
                                   int64_t vocab, struct weft_corpora *out, struct weft_error *err)
{
    struct weft_corpora corpora = {.path = path};
    enum weft_status status = open_all(&corpora, key, format, vocab, err);
    if (status != WEFT_OK) {
        weft_corpora_close(&corpora);
        return status;
    }
    *out = corpora;
    return WEFT_OK;
}

void weft_corpora_close(struct weft_corpora *corpora)
{
    for (int32_t i = 0; i < corpora->n; i++) {
        weft_corpus_close(&corpora->all[i]);
        free(corpora->paths[i]);
    }
    free(corpora->paths);
    free(corpora->all);
    free(corpora->first);
    *corpora = (struct weft_corpora){0};
}

/* The last file that begins at or before a token. */
static int32_t file_of(const struct weft_corpora *corpora, int64_t token)
{
    int32_t low = 0, high = corpora->n;
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (corpora->first[middle] <= token) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

enum weft_status weft_corpora_read(const struct weft_corpora *corpora, int64_t at, int64_t n,
                                   int32_t *out, struct weft_error *err)
{
    for (int32_t i = file_of(corpora, at); n > 0; i++) {
        int64_t begin = at - corpora->first[i], left = corpora->all[i].tokens - begin;
        int64_t count = n < left ? n : left;
        WEFT_TRY(weft_corpus_read(&corpora->all[i], begin, count, out, err));
        at += count;
        out += count;
        n -= count;
    }
    return WEFT_OK;
}

enum weft_status weft_corpora_check(const struct weft_corpora *corpora, struct weft_error *err)
{
    for (int32_t i = 0; i < corpora->n; i++)
        WEFT_TRY(weft_corpus_check(&corpora->all[i], err));
    return WEFT_OK;
}

enum weft_status weft_corpora_hash(const struct weft_corpora *corpora, struct weft_hash *out,
                                   struct weft_error *err)
{
    struct weft_hash hashes[2];
    WEFT_TRY(weft_corpus_hash(&corpora->all[0], &hashes[0], err));
    for (int32_t i = 1; i < corpora->n; i++) {
        WEFT_TRY(weft_corpus_hash(&corpora->all[i], &hashes[1], err));
        hashes[0] = weft_hash_bytes(hashes, sizeof hashes);
    }
    *out = hashes[0];
    return WEFT_OK;
}
