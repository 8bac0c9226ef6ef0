/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* ftruncate */
#include "runtime/comm/nccl/rings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/comm/backend.h"
#include "runtime/comm/branch.h"
#include "runtime/comm/outcome.h"

/* Rings in a file. Pages of rings that are never opened take no memory. */
enum { RINGS = 1 + WEFT_COMM_MOST_BRANCHES };
static const size_t file_bytes = RINGS * sizeof(struct weft_nccl_ring);

static enum weft_status map_ring(const int *fds, int32_t rank, int protection,
                                 struct weft_nccl_rings *out, struct weft_error *err)
{
    void *ring = mmap(NULL, file_bytes, protection, MAP_SHARED, fds[rank], 0);
    if (ring == MAP_FAILED)
        return weft_fail(err, WEFT_E_SYSTEM, "cannot map what rank %d records: %s", rank,
                         strerror(errno));
    out->all[rank] = ring;
    return WEFT_OK;
}

static enum weft_status make_own(const int *fds, struct weft_nccl_rings *out,
                                 struct weft_error *err)
{
    const int32_t rank = weft_comm_rank(out->control);
    out->all = calloc((size_t)weft_comm_ranks(out->control), sizeof *out->all);
    if (out->all == NULL) return weft_fail_memory(err, "what ranks record");
    if (ftruncate(fds[rank], (off_t)file_bytes) != 0)
        return weft_fail(err, WEFT_E_SYSTEM, "no shared memory for what a rank records: %s",
                         strerror(errno));
    return map_ring(fds, rank, PROT_READ | PROT_WRITE, out, err);
}

static enum weft_status map_peers(const int *fds, struct weft_nccl_rings *out,
                                  struct weft_error *err)
{
    for (int32_t rank = 0; rank < weft_comm_ranks(out->control); rank++) {
        if (rank != weft_comm_rank(out->control))
            WEFT_TRY(map_ring(fds, rank, PROT_READ, out, err));
    }
    return WEFT_OK;
}

enum weft_status weft_nccl_rings_open(struct weft_comm *control, const int *fds,
                                      struct weft_nccl_rings *out, struct weft_error *err)
{
    struct weft_error own = {.status = WEFT_OK};
    *out = (struct weft_nccl_rings){.control = control, .maps = true};
    const enum weft_status made = make_own(fds, out, &own);
    enum weft_status status = weft_comm_share_outcome(control, made, &own, err);
    if (status == WEFT_OK) status = map_peers(fds, out, err);
    if (status != WEFT_OK) weft_nccl_rings_close(out);
    return status;
}

enum weft_status weft_nccl_rings_branch(const struct weft_nccl_rings *trunk,
                                        const struct weft_comm *control,
                                        struct weft_nccl_rings *out, struct weft_error *err)
{
    const int32_t ranks = weft_comm_ranks(control);
    *out = (struct weft_nccl_rings){.control = control};
    out->all = calloc((size_t)ranks, sizeof *out->all);
    if (out->all == NULL) return weft_fail_memory(err, "what ranks record");
    for (int32_t rank = 0; rank < ranks; rank++)
        out->all[rank] =
            trunk->all[weft_comm_rank_of_all(control, rank)] + 1 + control->place.number;
    return WEFT_OK;
}

void weft_nccl_rings_close(struct weft_nccl_rings *rings)
{
    const int32_t ranks = rings->maps ? weft_comm_ranks(rings->control) : 0;
    for (int32_t rank = 0; rings->all != NULL && rank < ranks; rank++) {
        if (rings->all[rank] != NULL) munmap(rings->all[rank], file_bytes);
    }
    free(rings->all);
    rings->all = NULL;
}
