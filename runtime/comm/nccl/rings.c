/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* ftruncate */
#include "runtime/comm/nccl/rings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/comm/outcome.h"

static enum weft_status map_ring(const int *fds, int32_t rank, int protection,
                                 struct weft_nccl_rings *out, struct weft_error *err)
{
    void *ring = mmap(NULL, sizeof **out->all, protection, MAP_SHARED, fds[rank], 0);
    if (ring == MAP_FAILED)
        return weft_fail(err, WEFT_E_SYSTEM, "cannot map what rank %d records: %s", rank,
                         strerror(errno));
    out->all[rank] = ring;
    return WEFT_OK;
}

static enum weft_status make_own(const int *fds, struct weft_nccl_rings *out,
                                 struct weft_error *err)
{
    out->all = calloc((size_t)out->ranks, sizeof *out->all);
    if (out->all == NULL) return weft_fail_memory(err, "what ranks record");
    if (ftruncate(fds[out->rank], (off_t)sizeof **out->all) != 0)
        return weft_fail(err, WEFT_E_SYSTEM, "no shared memory for what a rank records: %s",
                         strerror(errno));
    return map_ring(fds, out->rank, PROT_READ | PROT_WRITE, out, err);
}

static enum weft_status map_peers(const int *fds, struct weft_nccl_rings *out,
                                  struct weft_error *err)
{
    for (int32_t rank = 0; rank < out->ranks; rank++) {
        if (rank != out->rank) WEFT_TRY(map_ring(fds, rank, PROT_READ, out, err));
    }
    return WEFT_OK;
}

enum weft_status weft_nccl_rings_open(struct weft_comm *control, const int *fds,
                                      struct weft_nccl_rings *out, struct weft_error *err)
{
    struct weft_error own = {.status = WEFT_OK};
    *out = (struct weft_nccl_rings){weft_comm_rank(control), weft_comm_ranks(control), NULL};
    const enum weft_status made = make_own(fds, out, &own);
    enum weft_status status = weft_comm_share_outcome(control, made, &own, err);
    if (status == WEFT_OK) status = map_peers(fds, out, err);
    if (status != WEFT_OK) weft_nccl_rings_close(out);
    return status;
}

void weft_nccl_rings_close(struct weft_nccl_rings *rings)
{
    for (int32_t rank = 0; rings->all != NULL && rank < rings->ranks; rank++) {
        if (rings->all[rank] != NULL) munmap(rings->all[rank], sizeof **rings->all);
    }
    free(rings->all);
    rings->all = NULL;
}
