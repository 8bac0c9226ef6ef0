/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of several hosts write one checkpoint together, so they must see one directory. */
#ifndef WEFT_RUNTIME_CHECKPOINT_SHARED_H
#define WEFT_RUNTIME_CHECKPOINT_SHARED_H

#include "base/status.h"
#include "runtime/comm/comm.h"

/* All ranks: proves that `directory` is the same one for all. Rank 0 makes it if it is missing, and
 * a file in it with random content, which the others read. Names may reach other hosts late, so
 * they try for a few seconds. All ranks return WEFT_E_IO, with the same text, if one cannot read
 * it; the text names those ranks and their hosts. The file is removed. */
WEFT_MUST_USE enum weft_status weft_checkpoint_prove_shared(struct weft_comm *comm,
                                                            const char *directory,
                                                            struct weft_error *err);

/* Waits until this host sees the checkpoint that rank 0 has found, about a minute at most. */
void weft_checkpoint_await(const char *path);

#endif
