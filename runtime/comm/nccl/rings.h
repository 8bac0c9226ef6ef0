/* SPDX-License-Identifier: Apache-2.0 */
/* The rings of all ranks of a machine, each in a file of shared memory that all ranks inherit. So a
 * killed rank still shows its last operations. */
#ifndef WEFT_RUNTIME_COMM_NCCL_RINGS_H
#define WEFT_RUNTIME_COMM_NCCL_RINGS_H

#include "runtime/comm/comm.h"
#include "runtime/comm/nccl/recorder.h"

struct weft_nccl_rings {
    int32_t rank, ranks;
    struct weft_nccl_ring **all; /* [ranks]; this rank writes only all[rank] */
};

/* Maps the rings; every rank must call it. `fds` [ranks] are the launcher's files for arenas, which
 * GPU memory does not use. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_nccl_rings_open(struct weft_comm *control, const int *fds,
                                                    struct weft_nccl_rings *out,
                                                    struct weft_error *err);
void weft_nccl_rings_close(struct weft_nccl_rings *rings); /* accepts zeros */

#endif
