/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/comm/outcome.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/comm/branch.h"

enum { REASON_BYTES = 1024 };

struct outcome {
    int32_t status;
    char reason[REASON_BYTES];
};

static enum weft_status find_failure(const struct weft_comm *comm, const struct outcome *all,
                                     struct weft_error *err)
{
    for (int32_t i = 0; i < weft_comm_ranks(comm); i++) {
        if (all[i].status == WEFT_OK) continue;
        return weft_fail_of_rank(err, (enum weft_status)all[i].status,
                                 weft_comm_rank_of_all(comm, i), all[i].reason);
    }
    return WEFT_OK;
}

enum weft_status weft_comm_share_outcome(struct weft_comm *comm, enum weft_status status,
                                         const struct weft_error *own, struct weft_error *err)
{
    const int32_t ranks = weft_comm_ranks(comm);
    struct outcome mine = {.status = (int32_t)status};
    struct outcome *all = calloc((size_t)ranks, sizeof *all);
    if (all == NULL) return weft_fail_memory(err, "what ranks tell each other");
    snprintf(mine.reason, sizeof mine.reason, "%.*s", REASON_BYTES - 1, own->text);
    enum weft_status shared = weft_comm_exchange(comm, &mine, sizeof mine, all, err);
    if (shared == WEFT_OK) shared = find_failure(comm, all, err);
    free(all);
    return shared;
}

struct weft_hash weft_comm_hash_shape(const struct weft_arena_shape *shape)
{
    const size_t bytes = (size_t)shape->n_mappings * sizeof *shape->mappings;
    const struct weft_hash mappings = weft_hash_bytes(shape->mappings, bytes);
    const uint64_t all[] = {(uint64_t)shape->span_bytes, (uint64_t)shape->page_bytes,
                            (uint64_t)shape->n_pages, mappings.high, mappings.low};
    return weft_hash_bytes(all, sizeof all);
}
