/* Files that hold no text although they could be read byte by byte: arrays, archives, tables,
 * pictures, tokens without a header. Who trains on one by mistake gets a model of its format. */
#ifndef WEFT_RUNTIME_TRAIN_CORPUS_KIND_H
#define WEFT_RUNTIME_TRAIN_CORPUS_KIND_H

#include <stddef.h>

#include "base/status.h"

enum { WEFT_CORPUS_HEAD_BYTES = 65536 }; /* that are looked at */

/* WEFT_E_DATA when `head`, the first n bytes of the file at `path`, are not those of a text: they
 * begin as another kind of file does, hold a NUL, or are lines of JSON. It names the kind, what to
 * do, and how `key` takes the bytes all the same. */
WEFT_MUST_USE enum weft_status weft_corpus_check_text(const char *path, const char *key,
                                                      const unsigned char *head, size_t n,
                                                      struct weft_error *err);

#endif
