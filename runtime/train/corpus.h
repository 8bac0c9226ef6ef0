/* SPDX-License-Identifier: Apache-2.0 */
/* A corpus is a file of tokens, read in place, piece by piece. It is a text with bytes as tokens,
 * or a token file with llm.c's header of 256 little-endian int32: magic, version, number of tokens.
 * Magic 20240520 with version 1 has tokens of 16 bits, and 20240801 with version 7 of 32 bits. The
 * first bytes decide. The header counts modulo 2^32, so a file of 2^31 tokens or more takes their
 * number from its length.
 *
 * A corpus may also be samples with labels (sample_file.h). Its tokens are then words of 8 or 32
 * bits, and every record has as many.
 *
 * Files are treated as hostile: every claim is checked, and a file that changes during a run is an
 * error, never a signal. */
#ifndef WEFT_RUNTIME_TRAIN_CORPUS_H
#define WEFT_RUNTIME_TRAIN_CORPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/hash.h"
#include "base/status.h"
#include "runtime/train/samples/sample_file.h"
#include "spec/config.h"

enum {
    WEFT_CORPUS_CHECKED_BYTES = 16384, /* of a piece to check */
    WEFT_CORPUS_HASHED_BYTES = 65536   /* of a piece to hash */
};

struct weft_corpus {
    const char *path; /* the caller's, for messages */
    int fd;           /* -1: closed */
    dev_t device;     /* identifies the file, with the inode, under any name */
    ino_t inode;
    bool text;          /* tokens are bytes */
    int64_t tokens;     /* in the file */
    int64_t first_byte; /* of token 0 */
    int32_t token_bytes;
    int64_t vocab;                   /* every token must be below it; of samples any word is read */
    struct weft_sample_file samples; /* {0}: no samples */
};

/* Opens a file. WEFT_E_NO_INPUT if it does not exist; WEFT_E_PERMISSION; WEFT_E_SYSTEM at the limit
 * of open files. WEFT_E_DATA if it is no plain file, if header, length and vocabulary contradict
 * each other, or if it is no text (corpus_kind.h). WEFT_E_DATA also for a text with a vocabulary
 * below 256. `key` is the config key of `path`, for messages. Close accepts a failed open or {.fd =
 * -1}. */
WEFT_MUST_USE enum weft_status weft_corpus_open(const char *path, const char *key,
                                                enum weft_data_format format, int64_t vocab,
                                                struct weft_corpus *out, struct weft_error *err);
void weft_corpus_close(struct weft_corpus *corpus);
/* Opens the file of a closed corpus again. Errors as above, and WEFT_E_DATA if the file or its
 * length is another one. */
WEFT_MUST_USE enum weft_status weft_corpus_reopen(struct weft_corpus *corpus, const char *key,
                                                  struct weft_error *err);

/* WEFT_E_DATA if a file that begins with these `n` bytes is packed already, as tokens or samples,
 * or if it is binary. The error tells what to give instead. At most WEFT_CORPUS_PIECE_BYTES are
 * read.
 */
WEFT_MUST_USE enum weft_status weft_corpus_check_unpacked(const char *path,
                                                          const unsigned char *head, size_t n,
                                                          struct weft_error *err);

/* Reads tokens [at, at + n), which must be within the file as opened. WEFT_E_DATA if it has become
 * shorter or a token is not in the vocabulary, WEFT_E_IO if it cannot be read. */
WEFT_MUST_USE enum weft_status weft_corpus_read(const struct weft_corpus *corpus, int64_t at,
                                                int64_t n, int32_t *out, struct weft_error *err);

/* Reads at most `pieces` of a token file, evenly spaced. WEFT_E_DATA names the first token outside
 * the vocabulary, or says that tokens are halves of wider ones. A text cannot have such tokens. */
WEFT_MUST_USE enum weft_status weft_corpus_check(const struct weft_corpus *corpus, int64_t pieces,
                                                 struct weft_error *err);

/* Hashes length, form, and the bytes of at most `pieces`, evenly spaced. A file with fewer pieces
 * is hashed whole. */
WEFT_MUST_USE enum weft_status weft_corpus_hash(const struct weft_corpus *corpus, int64_t pieces,
                                                struct weft_hash *out, struct weft_error *err);

#endif
