/* SPDX-License-Identifier: Apache-2.0 */
/* The rings of all ranks of a machine, in a file of shared memory for each rank, which all ranks
 * inherit. So a killed rank still shows its last operations. A file has a ring for the communicator
 * and one for each branch. */
#ifndef WEFT_RUNTIME_COMM_NCCL_RINGS_H
#define WEFT_RUNTIME_COMM_NCCL_RINGS_H

#include "runtime/comm/comm.h"
#include "runtime/comm/nccl/recorder.h"

struct weft_nccl_rings {
    const struct weft_comm *control; /* its ranks, by their numbers in a group */
    struct weft_nccl_ring **all;     /* [ranks]; this rank writes only its own */
    bool maps;                       /* false: a branch, in the files of its trunk */
};

/* Maps the rings; every rank must call it. `fds` [ranks] are the launcher's files for arenas, which
 * GPU memory does not use. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_nccl_rings_open(struct weft_comm *control, const int *fds,
                                                    struct weft_nccl_rings *out,
                                                    struct weft_error *err);
/* The rings of a branch, with the ranks of its control's group. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_nccl_rings_branch(const struct weft_nccl_rings *trunk,
                                                      const struct weft_comm *control,
                                                      struct weft_nccl_rings *out,
                                                      struct weft_error *err);
static inline struct weft_nccl_ring *weft_nccl_own_ring(const struct weft_nccl_rings *rings)
{
    return rings->all[weft_comm_rank(rings->control)];
}
void weft_nccl_rings_close(struct weft_nccl_rings *rings); /* accepts zeros */

#endif
