/* Corpora are the files that a path names, read one behind the other as a single one: one file, or
 * all that a pattern matches ("train_*.bin"), in order of name. All are of one form. A sample may
 * begin in one file and end in the next. */
#ifndef WEFT_RUNTIME_TRAIN_CORPORA_H
#define WEFT_RUNTIME_TRAIN_CORPORA_H

#include "runtime/train/corpus.h"

struct weft_corpora {
    const char *path; /* the caller's: a file, or a pattern */
    bool text;
    int64_t tokens; /* of all */
    int32_t n;
    struct weft_corpus *all; /* [n] */
    int64_t *first;          /* [n]: tokens of those before */
    char **paths;            /* [n] */
};

/* A file of that very name comes before what it matches as a pattern (*, ? and [...], as in a
 * shell). Errors of weft_corpus_open for any of them; WEFT_E_NO_INPUT when a pattern matches none,
 * WEFT_E_DATA when two are of different forms. Close accepts {0}. */
WEFT_MUST_USE enum weft_status weft_corpora_open(const char *path, const char *key,
                                                 enum weft_data_format format, int64_t vocab,
                                                 struct weft_corpora *out, struct weft_error *err);
void weft_corpora_close(struct weft_corpora *corpora);

/* As of one corpus. */
WEFT_MUST_USE enum weft_status weft_corpora_read(const struct weft_corpora *corpora, int64_t at,
                                                 int64_t n, int32_t *out, struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_corpora_check(const struct weft_corpora *corpora,
                                                  struct weft_error *err);
/* The hash of one file is its own; of several it is that of theirs in order. */
WEFT_MUST_USE enum weft_status weft_corpora_hash(const struct weft_corpora *corpora,
                                                 struct weft_hash *out, struct weft_error *err);

#endif
