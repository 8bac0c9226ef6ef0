/* SPDX-License-Identifier: Apache-2.0 */
/* A tokenizer turns text into tokens and back, as a tokenizer.json of Hugging Face describes:
 * byte-pair encoding over bytes, as of GPT-2, Llama 3 and Qwen. Tokens equal those of the library
 * "tokenizers" without its post-processor. A feature that is missing here is refused by name. */
#ifndef WEFT_TEXT_TOKENIZER_H
#define WEFT_TEXT_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"
#include "text/merges.h"

struct weft_tokenizer;

/* Reads a file. Errors of weft_json_read and weft_split_create; WEFT_E_DATA for another form, or a
 * file that contradicts itself. Free with weft_tokenizer_destroy, which accepts NULL. */
WEFT_MUST_USE enum weft_status weft_tokenizer_read(const char *path, struct weft_tokenizer **out,
                                                   struct weft_error *err);
/* The same of a text. */
WEFT_MUST_USE enum weft_status weft_tokenizer_parse(const char *bytes, size_t length,
                                                    const char *source, struct weft_tokenizer **out,
                                                    struct weft_error *err);
void weft_tokenizer_destroy(struct weft_tokenizer *tokenizer);

/* Numbers of tokens are below. */
int32_t weft_tokenizer_size(const struct weft_tokenizer *tokenizer);
/* The token between documents, "<|endoftext|>" or "<|end_of_text|>"; -1: there is none. */
int32_t weft_tokenizer_end(const struct weft_tokenizer *tokenizer);

/* Appends a text's tokens; `source` names the text in errors. Added tokens are found in the text
 * too. WEFT_E_DATA names the first byte that is no UTF-8, or a character that NFC might change if
 * the tokenizer asks for that form: with `is_nfc` the text has it. */
WEFT_MUST_USE enum weft_status weft_tokenizer_encode(const struct weft_tokenizer *tokenizer,
                                                     const char *text, size_t length,
                                                     const char *source, bool is_nfc,
                                                     struct weft_tokens *out,
                                                     struct weft_error *err);
/* Appends a token's bytes, which may be a part of a character. False if there is no such token. */
bool weft_tokenizer_decode(const struct weft_tokenizer *tokenizer, int32_t token,
                           struct weft_text *out);

#endif
