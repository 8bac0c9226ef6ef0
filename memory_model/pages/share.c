/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_model/pages/share.h"

#include <stdlib.h>

/* Slots of one period's pieces, from `first` to before `end`, which may be in the next period. */
struct shared_page {
    int64_t bytes;
    int32_t first, end;
};

static struct shared_page with_buffer(struct shared_page page,
                                      const struct weft_small_buffer *small, int32_t n_slots)
{
    int32_t wrapped = small->life.last < small->life.first ? n_slots : 0;
    int32_t end = small->life.last + 1 + wrapped;
    if (page.bytes == 0) return (struct shared_page){small->bytes, small->life.first, end};
    page.bytes += small->bytes;
    if (small->life.first < page.first) page.first = small->life.first;
    if (end > page.end) page.end = end;
    return page;
}

enum weft_status weft_share_pages(struct weft_small_buffer *buffers, int32_t n_buffers,
                                  int32_t n_slots, int64_t page_bytes, int32_t *n_pages,
                                  struct weft_error *err)
{
    struct shared_page *pages = calloc((size_t)n_buffers + 1, sizeof *pages);
    if (pages == NULL) return weft_fail_memory(err, "paging");
    int32_t n = 0;
    for (int32_t b = 0; b < n_buffers; b++) {
        struct weft_small_buffer *small = &buffers[b];
        struct shared_page alone = with_buffer((struct shared_page){0}, small, n_slots);
        int32_t best = n, best_cost = alone.end - alone.first;
        for (int32_t p = 0; p < n; p++) {
            if (pages[p].bytes + small->bytes > page_bytes) continue;
            struct shared_page with = with_buffer(pages[p], small, n_slots);
            int32_t cost = (with.end - with.first) - (pages[p].end - pages[p].first);
            if (cost >= best_cost) continue;
            best = p;
            best_cost = cost;
        }
        small->shares = best;
        pages[best] = with_buffer(pages[best], small, n_slots);
        if (best == n) n++;
    }
    *n_pages = n;
    free(pages);
    return WEFT_OK;
}
