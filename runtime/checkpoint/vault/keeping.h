/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping is saving to host memory (runtime/checkpoint/vault/vault.h), every train.checkpoint.host
 * steps.
 */
#ifndef WEFT_RUNTIME_CHECKPOINT_VAULT_KEEPING_H
#define WEFT_RUNTIME_CHECKPOINT_VAULT_KEEPING_H

#include <stdint.h>

#include "base/failpoint.h"
#include "base/status.h"
#include "runtime/checkpoint/save.h"
#include "runtime/checkpoint/vault/vault.h"

struct weft_keeping;

/* Collective. `options` are those of the run's other saves; its sink and directory do not count.
 * All must outlive it. */
WEFT_MUST_USE enum weft_status weft_keeping_open(const struct weft_saver_options *options,
                                                 const struct weft_vault *kept,
                                                 const struct weft_failpoint *failpoint,
                                                 struct weft_keeping **out, struct weft_error *err);
void weft_keeping_close(struct weft_keeping *keeping);

/* Collective. As weft_saver_save, and returns once it is done. */
WEFT_MUST_USE enum weft_status weft_keeping_save(struct weft_keeping *keeping,
                                                 const struct weft_progress *progress,
                                                 const struct weft_save_source *source,
                                                 struct weft_error *err);

#endif
