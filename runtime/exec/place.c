/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/place.h"

#include <stdlib.h>
#include <string.h>

#include "program/mappings.h"
#include "runtime/exec/options.h"

static enum weft_status fill_offsets(const struct weft_program *program, bool at_end,
                                     struct exec_places *out, struct weft_error *err)
{
    const struct weft_paging *paging = program->paging;
    int32_t *tenants = calloc((size_t)paging->n_ranges + 1, sizeof *tenants);
    if (tenants == NULL) return weft_fail_memory(err, "places of buffers");
    for (int32_t b = 0; b < program->n_buffers; b++)
        tenants[paging->places[b].range]++;
    for (int32_t b = 0; b < program->n_buffers; b++) {
        const struct weft_buffer *buffer = &program->buffers[b];
        const struct weft_page_place *place = &paging->places[b];
        int64_t up = 0;
        out->sole[b] = tenants[place->range] == 1;
        if (at_end && out->sole[b] && buffer->n_pieces == 1)
            up = paging->ranges[place->range].n_pages * paging->page_bytes - buffer->bytes;
        for (int t = 0; t < EXEC_TABLES; t++)
            out->offsets[t][b] = place->offsets[t] + up;
    }
    free(tenants);
    return WEFT_OK;
}

enum weft_status weft_exec_places_fill(const struct weft_program *program, bool at_end,
                                       struct weft_pool *pool, struct exec_places *out,
                                       struct weft_error *err)
{
    const size_t n_buffers = (size_t)program->n_buffers;
    *out = (struct exec_places){.program = program, .paging = program->paging};
    out->n_tables = program->paging->n_tables;
    for (int t = 0; t < EXEC_TABLES; t++)
        out->offsets[t] = weft_pool_array(pool, n_buffers, sizeof *out->offsets[t]);
    out->sole = weft_pool_array(pool, n_buffers, sizeof *out->sole);
    if (out->offsets[0] == NULL || out->offsets[1] == NULL || out->sole == NULL)
        return weft_fail_memory(err, "places of buffers");
    return fill_offsets(program, at_end, out, err);
}

static int compare_ranges(const void *a, const void *b)
{
    const struct weft_range *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

int32_t weft_exec_join_ranges(struct weft_range *ranges, int32_t n)
{
    qsort(ranges, (size_t)n, sizeof *ranges, compare_ranges);
    int32_t kept = 0;
    for (int32_t i = 0; i < n; i++) {
        if (kept > 0 && ranges[i].begin <= ranges[kept - 1].end) {
            if (ranges[i].end > ranges[kept - 1].end) ranges[kept - 1].end = ranges[i].end;
        } else {
            ranges[kept++] = ranges[i];
        }
    }
    return kept;
}

static enum weft_status list_reads(const struct exec_places *places, struct weft_pool *pool,
                                   struct weft_ranges *out, struct weft_error *err)
{
    const struct weft_program *program = places->program;
    struct weft_range *ranges =
        weft_pool_array(pool, EXEC_TABLES * (size_t)program->n_buffers, sizeof *ranges);
    if (ranges == NULL) return weft_fail_memory(err, "what ranks read of one another");
    int32_t n = 0;
    for (int t = 0; t < places->n_tables; t++) {
        for (int32_t b = 0; b < program->n_buffers; b++) {
            const int64_t begin = places->offsets[t][b];
            if (weft_buffer_is_read_by_peers(program, &program->buffers[b]))
                ranges[n++] = (struct weft_range){begin, begin + program->buffers[b].bytes};
        }
    }
    *out = (struct weft_ranges){ranges, weft_exec_join_ranges(ranges, n)};
    return WEFT_OK;
}

static enum weft_status list_mappings(const struct weft_paging *paging, struct weft_pool *pool,
                                      struct weft_arena_shape *out, struct weft_error *err)
{
    struct weft_arena_mapping *mappings =
        weft_pool_array(pool, (size_t)paging->n_mappings, sizeof *mappings);
    if (mappings == NULL) return weft_fail_memory(err, "the arena's shape");
    for (int32_t i = 0; i < paging->n_mappings; i++) {
        const struct weft_page_mapping *from = &paging->mappings[i];
        mappings[i] = (struct weft_arena_mapping){from->at, from->pages.first, from->pages.count};
    }
    *out = (struct weft_arena_shape){paging->span_bytes, paging->page_bytes, paging->n_pages,
                                     mappings, paging->n_mappings};
    return WEFT_OK;
}

enum weft_status weft_exec_map_arena(struct weft_comm *comm, const struct weft_program *program,
                                     bool poison, struct weft_arena **out, struct weft_error *err)
{
    struct weft_pool pool = {0};
    struct exec_places places;
    struct weft_arena_shape shape = {0};
    struct weft_ranges reads = {0};
    enum weft_status status = weft_exec_places_fill(program, poison, &pool, &places, err);
    if (status == WEFT_OK) status = list_reads(&places, &pool, &reads, err);
    if (status == WEFT_OK) status = list_mappings(program->paging, &pool, &shape, err);
    if (status == WEFT_OK) status = weft_comm_map_arena(comm, &shape, &reads, out, err);
    weft_pool_finish(&pool);
    return status;
}
