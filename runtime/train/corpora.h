/* SPDX-License-Identifier: Apache-2.0 */
/* Corpora are the files of one path, read in order as one: a single file, or all files that match a
 * pattern ("train_*.bin"), by name. All have one form. A sample may begin in one file and end in
 * the next. Only the files read last stay open: an eighth of the limit of open files, and fewer
 * when the process reaches that limit. */
#ifndef WEFT_RUNTIME_TRAIN_CORPORA_H
#define WEFT_RUNTIME_TRAIN_CORPORA_H

#include "runtime/train/corpus.h"

enum {
    WEFT_CORPORA_OPEN = 128,     /* most files open at a time */
    WEFT_CORPORA_CHECKED = 1024, /* pieces to check: 16 MiB, or one per file */
    WEFT_CORPORA_HASHED = 1024   /* pieces to hash: 64 MiB, or one per file */
};

struct weft_corpora {
    const char *path; /* the caller's: a file or a pattern */
    const char *key;  /* the caller's: config key, for messages */
    bool text;
    struct weft_sample_file samples; /* of all files; n is 0 for other forms */
    int64_t tokens;                  /* of all files */
    int32_t n;
    struct weft_corpus *all; /* [n] */
    int64_t *first;          /* [n]: tokens of the files before */
    char **paths;            /* [n] */
    int32_t n_open, most_open;
    int64_t reads; /* number so far */
    struct weft_corpora_open {
        int32_t file;
        int64_t read; /* number of its last read */
    } open[WEFT_CORPORA_OPEN];
};

/* A file of exactly this name is preferred to the pattern (*, ? and [...], as in a shell). Errors
 * are those of weft_corpus_open for any file. WEFT_E_NO_INPUT if a pattern matches no file,
 * WEFT_E_DATA if two files have different forms. Close accepts {0}. */
WEFT_MUST_USE enum weft_status weft_corpora_open(const char *path, const char *key,
                                                 enum weft_data_format format, int64_t vocab,
                                                 struct weft_corpora *out, struct weft_error *err);
void weft_corpora_close(struct weft_corpora *corpora);

/* Like the functions of one corpus. They reopen closed files. One caller at a time. */
WEFT_MUST_USE enum weft_status weft_corpora_read(struct weft_corpora *corpora, int64_t at,
                                                 int64_t n, int32_t *out, struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_corpora_check(struct weft_corpora *corpora,
                                                  struct weft_error *err);
/* The path of the file with token *at, which becomes its number there. For messages. */
const char *weft_corpora_locate(const struct weft_corpora *corpora, int64_t *at);
/* The hash of one file is its own; of several it combines theirs in order. */
WEFT_MUST_USE enum weft_status weft_corpora_hash(struct weft_corpora *corpora,
                                                 struct weft_hash *out, struct weft_error *err);

/* Tokens [first, end) of corpora. */
struct weft_corpora_part {
    const struct weft_corpora *of;
    int64_t first, end;
};

/* WEFT_E_DATA names a file with tokens in both parts under any of its names, also links. Two parts
 * of one corpora must be ranges that do not overlap. A file cut by both is then no error. */
WEFT_MUST_USE enum weft_status weft_corpora_apart(const struct weft_corpora_part *training,
                                                  const struct weft_corpora_part *held_out,
                                                  struct weft_error *err);

#endif
