/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints in host memory (train.checkpoint.host): two whole ones, the generations, each shared
 * by all ranks in equal parts. The bytes are those of a checkpoint's files, each in whole pages. */
#ifndef WEFT_MEMORY_MODEL_VAULT_H
#define WEFT_MEMORY_MODEL_VAULT_H

#include "spec/config.h"

enum { WEFT_VAULT_PAGE_BYTES = 4096 };

/* Largest size of a file of tensors, of parameters or of all other states: data, and a header that
 * has at most so many bytes. INT64_MAX if it overflows. */
int64_t weft_vault_tensors_bytes(const struct weft_config *config, bool parameters);
/* Largest size of a manifest that is kept. */
int64_t weft_vault_manifest_bytes(const struct weft_config *config);

/* Bytes of host memory that a rank's part of both generations takes at most; 0: none are kept.
 * INT64_MAX if it overflows. */
int64_t weft_config_kept_bytes(const struct weft_config *config);

#endif
