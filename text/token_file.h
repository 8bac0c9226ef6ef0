/* SPDX-License-Identifier: Apache-2.0 */
/* Writes token files with llm.c's header (runtime/train/corpus.h): 16 bits a token if all numbers
 * fit, otherwise 32. The file is written as PATH.part and gets its name when it is whole. */
#ifndef WEFT_TEXT_TOKEN_FILE_H
#define WEFT_TEXT_TOKEN_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct weft_token_file;

/* Begins a file for tokens below `size`. WEFT_E_CREATE if it cannot be made. */
WEFT_MUST_USE enum weft_status weft_token_file_create(const char *path, int32_t size,
                                                      struct weft_token_file **out,
                                                      struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_token_file_add(struct weft_token_file *file,
                                                   const int32_t *tokens, size_t n,
                                                   struct weft_error *err);
/* Writes the header, syncs and names the file. WEFT_E_IO if the disk is full or fails. */
WEFT_MUST_USE enum weft_status weft_token_file_finish(struct weft_token_file *file,
                                                      struct weft_error *err);
int64_t weft_token_file_count(const struct weft_token_file *file);
/* Removes a file that was not finished. Accepts NULL. */
void weft_token_file_destroy(struct weft_token_file *file);

#endif
