/* SPDX-License-Identifier: Apache-2.0 */
/* A pattern cuts a text into pieces before merges: each match is one, and so is the text between
 * two matches. Patterns are those of tokenizer.json, for example of GPT-2 or Llama 3; classes such
 * as \p{L} are Unicode's. PCRE2 matches them. */
#ifndef WEFT_TEXT_SPLIT_H
#define WEFT_TEXT_SPLIT_H

#include <stddef.h>

#include "base/status.h"

struct weft_split;

/* Compiles a pattern; `source` names it in errors. WEFT_E_DATA if PCRE2 refuses it,
 * WEFT_E_ENVIRONMENT if this build has no PCRE2. Free accepts NULL. */
WEFT_MUST_USE enum weft_status weft_split_create(const char *pattern, const char *source,
                                                 struct weft_split **out, struct weft_error *err);
void weft_split_destroy(struct weft_split *split);

typedef enum weft_status weft_split_fn(void *context, const unsigned char *piece, size_t length,
                                       struct weft_error *err);
/* Calls `take` with each piece of a valid UTF-8 text, in order, until it fails. WEFT_E_DATA, naming
 * `source`, if the pattern needs too many steps. */
WEFT_MUST_USE enum weft_status weft_split_text(const struct weft_split *split,
                                               const unsigned char *text, size_t length,
                                               const char *source, weft_split_fn *take,
                                               void *context, struct weft_error *err);

#endif
