/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/corpora.h"

#include <glob.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"

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

static enum weft_status match_paths(struct weft_corpora *corpora, struct weft_error *err)
{
    glob_t found;
    int failure = glob(corpora->path, GLOB_ERR, NULL, &found);
    if (failure == GLOB_NOMATCH)
        return weft_fail(err, WEFT_E_NO_INPUT,
                         "%s: matches no file. %s must be the path of a text or of a token file, "
                         "or a pattern of such paths",
                         corpora->path, corpora->key);
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
    return corpus->samples.n > 0      ? "of samples"
           : corpus->text             ? "a text"
           : corpus->token_bytes == 2 ? "of 16-bit tokens"
                                      : "of 32-bit tokens";
}

/* Open files */

static int32_t count_most_open(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
    rlim_t most = limit.rlim_cur / 8;
    return most > WEFT_CORPORA_OPEN ? WEFT_CORPORA_OPEN : most > 0 ? (int32_t)most : 1;
}

static void close_oldest(struct weft_corpora *corpora)
{
    int32_t oldest = 0;
    for (int32_t i = 1; i < corpora->n_open; i++)
        if (corpora->open[i].read < corpora->open[oldest].read) oldest = i;
    weft_corpus_close(&corpora->all[corpora->open[oldest].file]);
    corpora->open[oldest] = corpora->open[--corpora->n_open];
}

/* At the limit of open files, closes another one first. */
static enum weft_status open_once_more(struct weft_corpora *corpora, int32_t file,
                                       enum weft_data_format format, int64_t vocab,
                                       struct weft_error *err)
{
    struct weft_corpus *corpus = &corpora->all[file];
    for (;;) {
        struct weft_error why = {0};
        enum weft_status status =
            corpus->path != NULL
                ? weft_corpus_reopen(corpus, corpora->key, &why)
                : weft_corpus_open(corpora->paths[file], corpora->key, format, vocab, corpus, &why);
        if (status == WEFT_OK) return WEFT_OK;
        if (status != WEFT_E_SYSTEM || corpora->n_open == 0)
            return weft_fail(err, status, "%s", why.text);
        close_oldest(corpora);
        corpora->most_open = corpora->n_open + 1;
    }
}

/* Opens a file for the first time, or again. */
static enum weft_status need_open(struct weft_corpora *corpora, int32_t file,
                                  enum weft_data_format format, int64_t vocab,
                                  struct weft_error *err)
{
    corpora->reads++;
    for (int32_t i = 0; i < corpora->n_open; i++) {
        if (corpora->open[i].file != file) continue;
        corpora->open[i].read = corpora->reads;
        return WEFT_OK;
    }
    if (corpora->n_open == corpora->most_open) close_oldest(corpora);
    WEFT_TRY(open_once_more(corpora, file, format, vocab, err));
    corpora->open[corpora->n_open++] = (struct weft_corpora_open){file, corpora->reads};
    return WEFT_OK;
}

static enum weft_status open_again(struct weft_corpora *corpora, int32_t file,
                                   struct weft_error *err)
{
    return need_open(corpora, file, WEFT_DATA_AUTO, 0, err);
}

static enum weft_status open_all(struct weft_corpora *corpora, enum weft_data_format format,
                                 int64_t vocab, struct weft_error *err)
{
    char *one = (char *)(uintptr_t)corpora->path; /* only read and copied */
    WEFT_TRY(is_pattern(corpora->path) ? match_paths(corpora, err)
                                       : take_paths(corpora, &one, 1, err));
    for (int32_t i = 0; i < corpora->n; i++) {
        struct weft_corpus *corpus = &corpora->all[i];
        WEFT_TRY(need_open(corpora, i, format, vocab, err));
        if (strcmp(form_of(corpus), form_of(&corpora->all[0])) != 0)
            return weft_fail(
                err, WEFT_E_DATA,
                "%s is %s, and %s, which matches %s too, is %s: give files of one form",
                corpora->paths[i], form_of(corpus), corpora->paths[0], corpora->path,
                form_of(&corpora->all[0]));
        if (!weft_sample_file_alike(&corpus->samples, &corpora->all[0].samples))
            return weft_fail(err, WEFT_E_DATA,
                             "%s has samples of another size than %s, which matches %s too",
                             corpora->paths[i], corpora->paths[0], corpora->path);
        corpora->samples.n += corpus->samples.n;
        corpora->first[i] = corpora->tokens;
        corpora->tokens += corpus->tokens;
    }
    corpora->text = corpora->all[0].text;
    const int64_t n = corpora->samples.n;
    corpora->samples = corpora->all[0].samples;
    corpora->samples.n = n;
    return WEFT_OK;
}

enum weft_status weft_corpora_open(const char *path, const char *key, enum weft_data_format format,
                                   int64_t vocab, struct weft_corpora *out, struct weft_error *err)
{
    struct weft_corpora corpora = {.path = path, .key = key, .most_open = count_most_open()};
    enum weft_status status = open_all(&corpora, format, vocab, err);
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

/* Index of the last file that begins at or before a token. */
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

const char *weft_corpora_locate(const struct weft_corpora *corpora, int64_t *at)
{
    const int32_t file = file_of(corpora, *at);
    *at -= corpora->first[file];
    return corpora->paths[file];
}

enum weft_status weft_corpora_read(struct weft_corpora *corpora, int64_t at, int64_t n,
                                   int32_t *out, struct weft_error *err)
{
    for (int32_t i = file_of(corpora, at); n > 0; i++) {
        int64_t begin = at - corpora->first[i], left = corpora->all[i].tokens - begin;
        int64_t count = n < left ? n : left;
        if (count == 0) continue;
        WEFT_TRY(open_again(corpora, i, err));
        WEFT_TRY(weft_corpus_read(&corpora->all[i], begin, count, out, err));
        at += count;
        out += count;
        n -= count;
    }
    return WEFT_OK;
}

/* Pieces per file if all files share `pieces`. */
static int64_t share_pieces(const struct weft_corpora *corpora, int64_t pieces)
{
    return pieces > corpora->n ? pieces / corpora->n : 1;
}

enum weft_status weft_corpora_check(struct weft_corpora *corpora, struct weft_error *err)
{
    int64_t pieces = share_pieces(corpora, WEFT_CORPORA_CHECKED);
    for (int32_t i = 0; i < corpora->n; i++) {
        const struct weft_corpus *corpus = &corpora->all[i];
        if (corpus->text || corpus->samples.n > 0) continue;
        WEFT_TRY(open_again(corpora, i, err));
        WEFT_TRY(weft_corpus_check(corpus, pieces, err));
        if (corpus->tokens > UINT32_MAX)
            weft_log(WEFT_LOG_INFO,
                     "%s: %" PRId64 " tokens by its length; its header has that number modulo 2^32",
                     corpus->path, corpus->tokens);
    }
    return WEFT_OK;
}

enum weft_status weft_corpora_hash(struct weft_corpora *corpora, struct weft_hash *out,
                                   struct weft_error *err)
{
    int64_t pieces = share_pieces(corpora, WEFT_CORPORA_HASHED);
    struct weft_hash hashes[2];
    for (int32_t i = 0; i < corpora->n; i++) {
        WEFT_TRY(open_again(corpora, i, err));
        WEFT_TRY(weft_corpus_hash(&corpora->all[i], pieces, &hashes[i > 0], err));
        if (i > 0) hashes[0] = weft_hash_bytes(hashes, sizeof hashes);
    }
    *out = hashes[0];
    return WEFT_OK;
}

/* Files in two parts */

struct entry {
    dev_t device;
    ino_t inode;
    int32_t file;
};

static int compare_files(const struct entry *a, const struct entry *b)
{
    if (a->device != b->device) return a->device < b->device ? -1 : 1;
    return a->inode == b->inode ? 0 : a->inode < b->inode ? -1 : 1;
}

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = compare_files(x, y);
    return order != 0 ? order : x->file - y->file;
}

/* Lists the files that have a token in the part, by file. Returns their number. */
static int32_t list_entries(const struct weft_corpora_part *part, struct entry *out)
{
    int32_t n = 0;
    for (int32_t i = 0; i < part->of->n; i++) {
        const struct weft_corpus *corpus = &part->of->all[i];
        int64_t first = part->of->first[i], end = first + corpus->tokens;
        if (end > first && first < part->end && end > part->first)
            out[n++] = (struct entry){corpus->device, corpus->inode, i};
    }
    qsort(out, (size_t)n, sizeof *out, compare_entries);
    return n;
}

static enum weft_status fail_both(const struct weft_corpora *training, int32_t trained,
                                  const struct weft_corpora *held_out, int32_t held,
                                  struct weft_error *err)
{
    const char *one = training->paths[trained], *other = held_out->paths[held];
    bool same_name = strcmp(one, other) == 0;
    if (training == held_out)
        return weft_fail(err, WEFT_E_DATA,
                         "%s and %s, which match %s of %s, are the same file, so that samples held "
                         "out of one are trained on in the other: remove one of the two names",
                         one, other, training->path, training->key);
    return weft_fail(err, WEFT_E_DATA,
                     "%s of %s is a file of %s too%s%s%s: it would be trained on and validated on. "
                     "Name another file, or give %s a pattern that does not match it, or leave %s "
                     "out and set train.validation.share",
                     other, held_out->key, training->key, same_name ? "" : " (as ",
                     same_name ? "" : one, same_name ? "" : ")", training->key, held_out->key);
}

/* Finds the first two entries that are one file. A file cut by both parts of one corpora does not
 * count. */
static bool find_both(const struct entry *a, int32_t n, const struct entry *b, int32_t m,
                      bool of_one, int32_t both[2])
{
    for (int32_t i = 0, j = 0; i < n && j < m;) {
        int order = compare_files(&a[i], &b[j]);
        bool cut = order == 0 && of_one && a[i].file == b[j].file;
        bool more_of_a = cut && i + 1 < n && compare_files(&a[i + 1], &b[j]) == 0;
        bool more_of_b = cut && j + 1 < m && compare_files(&a[i], &b[j + 1]) == 0;
        if (order == 0 && (!cut || more_of_a || more_of_b)) {
            both[0] = a[more_of_a ? i + 1 : i].file;
            both[1] = b[more_of_b && !more_of_a ? j + 1 : j].file;
            return true;
        }
        if (order <= 0) i++;
        if (order >= 0) j++;
    }
    return false;
}

enum weft_status weft_corpora_apart(const struct weft_corpora_part *training,
                                    const struct weft_corpora_part *held_out,
                                    struct weft_error *err)
{
    struct entry *a = calloc((size_t)training->of->n, sizeof *a);
    struct entry *b = calloc((size_t)held_out->of->n, sizeof *b);
    enum weft_status status = WEFT_OK;
    int32_t both[2];
    if (a == NULL || b == NULL) {
        status = weft_fail_memory(err, "the names of the data");
    } else if (find_both(a, list_entries(training, a), b, list_entries(held_out, b),
                         training->of == held_out->of, both)) {
        status = fail_both(training->of, both[0], held_out->of, both[1], err);
    }
    free(b);
    free(a);
    return status;
}
