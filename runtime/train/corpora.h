/* Corpora are the files that a path names, read one after another as a single one: one file, or
 * all that a pattern matches ("train_*.bin"), in order of name. All have one form. A sample may
 * begin in one file and end in the next. Some files are open at a time, those that were read last:
 * an eighth of the limit of open files, and fewer when the process is at that limit. */
#ifndef WEFT_RUNTIME_TRAIN_CORPORA_H
#define WEFT_RUNTIME_TRAIN_CORPORA_H

#include "runtime/train/corpus.h"

enum {
    WEFT_CORPORA_OPEN = 128,     /* most files that are open at a time */
    WEFT_CORPORA_CHECKED = 1024, /* pieces that are checked: 16 MiB, or one of every file */
    WEFT_CORPORA_HASHED = 1024   /* pieces that are hashed: 64 MiB, or one of every file */
};

struct weft_corpora {
    const char *path; /* the caller's: a file, or a pattern */
    const char *key;  /* the caller's: of the config, for messages */
    bool text;
    int64_t tokens; /* of all */
    int32_t n;
    struct weft_corpus *all; /* [n] */
    int64_t *first;          /* [n]: tokens of those before */
    char **paths;            /* [n] */
    int32_t n_open, most_open;
    int64_t reads; /* so far */
    struct weft_corpora_open {
        int32_t file;
        int64_t read; /* number of the last read */
    } open[WEFT_CORPORA_OPEN];
};

/* A file of that very name comes before what it matches as a pattern (*, ? and [...], as in a
 * shell). Errors of weft_corpus_open for any of them; WEFT_E_NO_INPUT when a pattern matches none,
 * WEFT_E_DATA when two are of different forms. Close accepts {0}. */
WEFT_MUST_USE enum weft_status weft_corpora_open(const char *path, const char *key,
                                                 enum weft_data_format format, int64_t vocab,
                                                 struct weft_corpora *out, struct weft_error *err);
void weft_corpora_close(struct weft_corpora *corpora);

/* As of one corpus; a file that is not open is opened again. One caller at a time. */
WEFT_MUST_USE enum weft_status weft_corpora_read(struct weft_corpora *corpora, int64_t at,
                                                 int64_t n, int32_t *out, struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_corpora_check(struct weft_corpora *corpora,
                                                  struct weft_error *err);
/* The hash of one file is its own; of several it is that of theirs in order. */
WEFT_MUST_USE enum weft_status weft_corpora_hash(struct weft_corpora *corpora,
                                                 struct weft_hash *out, struct weft_error *err);

/* Tokens [first, end) of corpora. */
struct weft_corpora_part {
    const struct weft_corpora *of;
    int64_t first, end;
};

/* WEFT_E_DATA when a file has tokens in both parts under any of its names (links too), naming it.
 * Parts of one corpora are ranges that do not overlap, so that a file that is cut by both is none
 * of these. */
WEFT_MUST_USE enum weft_status weft_corpora_apart(const struct weft_corpora_part *training,
                                                  const struct weft_corpora_part *held_out,
                                                  struct weft_error *err);

#endif
