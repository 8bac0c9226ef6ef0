/* SPDX-License-Identifier: Apache-2.0 */
#include "program/mappings.h"

#include <stdlib.h>

#include "base/checked.h"
#include "program/lifetime.h"

enum { ENDS = 2 /* guards at both ends */ };

bool weft_buffer_is_read_by_peers(const struct weft_program *program,
                                  const struct weft_buffer *buffer)
{
    switch (buffer->kind) {
    case WEFT_BUFFER_SHARD:
    case WEFT_BUFFER_GRADIENT:
    case WEFT_BUFFER_PARTIAL:
    case WEFT_BUFFER_TENSOR_NORMS:
    case WEFT_BUFFER_RECORD:
        return true;
    case WEFT_BUFFER_FULL:
        return weft_buffer_persists(program, buffer);
    case WEFT_BUFFER_MASTER:
        return program->period.every > 0; /* an average over nodes reads it */
    case WEFT_BUFFER_MOMENT1:
    case WEFT_BUFFER_MOMENT2:
    case WEFT_BUFFER_ANCHOR:
    case WEFT_BUFFER_OUTER:
    case WEFT_BUFFER_REDUCED:
    case WEFT_BUFFER_INPUT:
    case WEFT_BUFFER_TARGETS:
    case WEFT_BUFFER_OUTPUT:
    case WEFT_BUFFER_OUTPUT_GRADIENT:
    case WEFT_BUFFER_SAVED:
    case WEFT_BUFFER_RESTORED:
    case WEFT_BUFFER_RESTORED_OUTPUT:
    case WEFT_BUFFER_FORWARD_TEMPORARY:
    case WEFT_BUFFER_BACKWARD_TEMPORARY:
    case WEFT_BUFFER_TENSOR_NORMS_SUM:
    case WEFT_BUFFER_RECORD_SUM:
    case WEFT_BUFFER_KIND_COUNT:
        break;
    }
    return false;
}

/* Page numbers of addresses [begin, end). */
struct seen {
    int64_t begin, end;
};

static int compare_seen(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Lists reads by address and joins ranges that touch. Returns their number. */
static int64_t list_reads(const struct weft_program *program, const struct weft_paging *paging,
                          struct seen *reads)
{
    const int64_t page_bytes = paging->page_bytes;
    int64_t n = 0, kept = 0;
    for (int32_t b = 0; b < program->n_buffers; b++) {
        const struct weft_buffer *buffer = &program->buffers[b];
        if (!weft_buffer_is_read_by_peers(program, buffer)) continue;
        for (int t = 0; t < paging->n_tables; t++) {
            const int64_t at = paging->places[b].offsets[t];
            reads[n++] =
                (struct seen){at / page_bytes, (at + buffer->bytes + page_bytes - 1) / page_bytes};
        }
    }
    qsort(reads, (size_t)n, sizeof *reads, compare_seen);
    for (int64_t i = 0; i < n; i++) {
        if (kept > 0 && reads[i].begin <= reads[kept - 1].end) {
            if (reads[i].end > reads[kept - 1].end) reads[kept - 1].end = reads[i].end;
        } else {
            reads[kept++] = reads[i];
        }
    }
    return kept;
}

/* Stretches in order of address, and the guards between them. */
struct count {
    int64_t stretches, guards;
    int64_t end, end_page; /* of the last stretch */
};

/* Adds the stretch of address pages [begin, end) with memory from `page` on. It continues the last
 * stretch if it follows it in addresses and memory. */
static void count_stretch(struct count *count, int64_t begin, int64_t end, int64_t page)
{
    const bool first = count->stretches == 0;
    if (first || begin > count->end || page != count->end_page) {
        count->guards += !first && begin > count->end;
        count->stretches++;
    }
    count->end = end;
    count->end_page = page + end - begin;
}

static void count_reads(const struct weft_page_mapping *mapping, int64_t page_bytes,
                        const struct seen *reads, int64_t n_reads, int64_t *next,
                        struct count *count)
{
    const int64_t begin = mapping->at / page_bytes, end = begin + mapping->pages.count;
    while (*next < n_reads && reads[*next].end <= begin)
        ++*next;
    for (int64_t i = *next; i < n_reads && reads[i].begin < end; i++) {
        const int64_t from = reads[i].begin > begin ? reads[i].begin : begin;
        const int64_t to = reads[i].end < end ? reads[i].end : end;
        count_stretch(count, from, to, mapping->pages.first + from - begin);
    }
}

enum weft_status weft_program_count_mappings(const struct weft_program *program,
                                             const struct weft_paging *paging, int64_t ranks,
                                             struct weft_mappings *out, struct weft_error *err)
{
    const size_t most = WEFT_PAGE_TABLES * (size_t)program->n_buffers + 1;
    struct seen *reads = calloc(most, sizeof *reads);
    struct count own = {0}, of_peer = {0};
    int64_t next = 0;
    if (reads == NULL) return weft_fail_memory(err, "what ranks read of one another");
    const int64_t n_reads = list_reads(program, paging, reads);
    for (int32_t i = 0; i < paging->n_mappings; i++) {
        const struct weft_page_mapping *mapping = &paging->mappings[i];
        const int64_t begin = mapping->at / paging->page_bytes;
        count_stretch(&own, begin, begin + mapping->pages.count, mapping->pages.first);
        count_reads(mapping, paging->page_bytes, reads, n_reads, &next, &of_peer);
    }
    free(reads);
    out->own_stretches = own.stretches;
    out->own = own.stretches + own.guards + ENDS;
    out->of_peer_stretches = of_peer.stretches;
    out->of_peer = of_peer.stretches + of_peer.guards + ENDS;
    out->all = out->own + (ranks - 1) * out->of_peer;
    if (!weft_checked_mul(paging->span_bytes, ranks, &out->all_bytes)) out->all_bytes = INT64_MAX;
    return WEFT_OK;
}
