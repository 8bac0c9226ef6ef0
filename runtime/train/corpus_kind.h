/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of files that hold no text, although they could be read as bytes: arrays, archives, tables
 * (also CSV and TSV), pictures, JSON records, tokens without a header. A model trained on one
 * learns its format. */
#ifndef WEFT_RUNTIME_TRAIN_CORPUS_KIND_H
#define WEFT_RUNTIME_TRAIN_CORPUS_KIND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "runtime/train/json_stream.h"
#include "runtime/train/table_look.h"

enum { WEFT_CORPUS_PIECE_BYTES = 65536 }; /* of a file at a time */

/* A look examines a file from its beginning, piece by piece. */
struct weft_corpus_look {
    const char *path;
    int64_t vocab;                       /* of the model: tokens are below it */
    const struct weft_corpus_kind *kind; /* of the file; NULL: none found yet */
    int32_t token_bytes;                 /* of tokens without a header; 0: not known */
    struct weft_json_stream json;
    struct weft_table_look table;
};

/* The path must outlive the look. */
void weft_corpus_look_init(struct weft_corpus_look *look, const char *path, int64_t vocab);
/* Adds the next piece. The first has WEFT_CORPUS_PIECE_BYTES, or the whole file. Returns false once
 * no more is needed. */
bool weft_corpus_look_add(struct weft_corpus_look *look, const unsigned char *bytes, size_t n);

/* Judges the added pieces: the whole file, or all that was asked for. WEFT_E_DATA if they begin
 * like another kind of file, hold a NUL, or are JSON (json_stream.h) or a table (by the path's
 * suffix, or table_look.h). The error names the kind, the cure, and, except for tokens, the setting
 * of `key` that takes the bytes as they are. */
WEFT_MUST_USE enum weft_status weft_corpus_look_end(const struct weft_corpus_look *look,
                                                    const char *key, struct weft_error *err);

#endif
