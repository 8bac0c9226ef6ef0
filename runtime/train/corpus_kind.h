/* Kinds of files that hold no text, although they could be read byte by byte: arrays, archives,
 * tables, pictures, records of JSON, tokens without a header. A model that is trained on one learns
 * its format. */
#ifndef WEFT_RUNTIME_TRAIN_CORPUS_KIND_H
#define WEFT_RUNTIME_TRAIN_CORPUS_KIND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "runtime/train/json_stream.h"

enum { WEFT_CORPUS_PIECE_BYTES = 65536 }; /* that a look at a file takes at a time */

/* A look at a file from its beginning, piece after piece. */
struct weft_corpus_look {
    const struct weft_corpus_kind *kind; /* that it has; NULL: none yet */
    struct weft_json_stream json;
};

void weft_corpus_look_init(struct weft_corpus_look *look);
/* Reads on. The first piece has WEFT_CORPUS_PIECE_BYTES, or all of the file. False when no more
 * need be added. */
bool weft_corpus_look_add(struct weft_corpus_look *look, const char *path,
                          const unsigned char *bytes, size_t n);

/* WEFT_E_DATA when the pieces, which are the whole file or all that was asked for, are not those of
 * a text: they begin as another kind of file does, hold a NUL, or are JSON (json_stream.h). The
 * error names the kind, the cure, and how `key` takes the bytes as they are. */
WEFT_MUST_USE enum weft_status weft_corpus_look_end(const struct weft_corpus_look *look,
                                                    const char *path, const char *key,
                                                    struct weft_error *err);

#endif
