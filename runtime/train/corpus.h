/* A corpus is a file of tokens that is read in place, a piece at a time: a text, whose bytes are
 * the tokens, or a token file with llm.c's header (256 little-endian int32: magic, version, number
 * of tokens; then tokens of 16 bits after magic 20240520 and version 1, of 32 bits after 20240801
 * and 7). The first bytes say which. The header counts with 32 bits: a file with 2^31 tokens or
 * more has their number modulo 2^32 there, and its length gives the number. Files are taken as
 * hostile: each claim is checked, and a file that changes during a run is an error, never a signal.
 */
#ifndef WEFT_RUNTIME_TRAIN_CORPUS_H
#define WEFT_RUNTIME_TRAIN_CORPUS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/hash.h"
#include "base/status.h"
#include "spec/config.h"

enum {
    WEFT_CORPUS_CHECKED_BYTES = 16384, /* of a piece that is checked */
    WEFT_CORPUS_HASHED_BYTES = 65536   /* of a piece that is hashed */
};

struct weft_corpus {
    const char *path; /* the caller's, for messages */
    int fd;           /* -1: closed */
    dev_t device;     /* with the inode: the file, by any of its names */
    ino_t inode;
    bool text;          /* tokens are bytes */
    int64_t tokens;     /* in the file */
    int64_t first_byte; /* of token 0 */
    int32_t token_bytes;
    int64_t vocab; /* every token that is read must be below */
};

/* WEFT_E_NO_INPUT when the file is not there, WEFT_E_PERMISSION, WEFT_E_SYSTEM at the limit of open
 * files; WEFT_E_DATA when it is no plain file, when its header contradicts itself or the file's
 * length, when it holds no text (corpus_kind.h), or when a text is to be read by a vocabulary of
 * less than 256. `key` names what `path` was given as, for messages. Close accepts what open left
 * or {.fd = -1}. */
WEFT_MUST_USE enum weft_status weft_corpus_open(const char *path, const char *key,
                                                enum weft_data_format format, int64_t vocab,
                                                struct weft_corpus *out, struct weft_error *err);
void weft_corpus_close(struct weft_corpus *corpus);
/* Opens the file of a closed corpus again: errors as above, and WEFT_E_DATA when another file, or
 * another length, is there. */
WEFT_MUST_USE enum weft_status weft_corpus_reopen(struct weft_corpus *corpus, const char *key,
                                                  struct weft_error *err);

/* Tokens [at, at + n), which lie in the file as it was opened. WEFT_E_DATA when it has become
 * shorter or a token is not in the vocabulary, WEFT_E_IO when it cannot be read. */
WEFT_MUST_USE enum weft_status weft_corpus_read(const struct weft_corpus *corpus, int64_t at,
                                                int64_t n, int32_t *out, struct weft_error *err);

/* Reads at most `pieces` of a token file, at even distances: WEFT_E_DATA naming the first token
 * there that is not in the vocabulary. A text cannot have one. */
WEFT_MUST_USE enum weft_status weft_corpus_check(const struct weft_corpus *corpus, int64_t pieces,
                                                 struct weft_error *err);

/* Names the contents: length and form, and the bytes of at most `pieces` at even distances, which
 * are all bytes of a file that has no more. */
WEFT_MUST_USE enum weft_status weft_corpus_hash(const struct weft_corpus *corpus, int64_t pieces,
                                                struct weft_hash *out, struct weft_error *err);

#endif
