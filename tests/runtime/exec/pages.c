/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/runtime/exec/pages.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "program/lifetime.h"
#include "tests/runtime/comm/ranks.h"

/* Physical pages while they are given out: of each the slots of two periods in which it is held. */
struct maker {
    const struct weft_program *program;
    struct weft_paging *paging;
    uint64_t seed, draws;
    bool shared;
    unsigned char *held; /* [pages * 2 n_slots] */
    int32_t most_pages;
    struct weft_page_mapping *mappings;
    struct weft_page_place *places;
    struct weft_page_range *ranges;
};

/* The slots of two periods in which some piece lies on the page of the buffer's range. */
static void mark_lives(const struct maker *m, int32_t b, int table, int64_t page,
                       unsigned char *slots)
{
    const struct weft_buffer *buffer = &m->program->buffers[b];
    const int64_t page_bytes = m->paging->page_bytes, bytes = buffer->bytes / buffer->n_pieces;
    const int32_t n = m->program->n_slots, all = WEFT_PAGE_TABLES * n;
    memset(slots, 0, (size_t)all);
    for (int32_t p = 0; p < buffer->n_pieces; p++) {
        const struct weft_life life = buffer->lives[p];
        if ((p + 1) * bytes <= page * page_bytes || p * bytes >= (page + 1) * page_bytes) continue;
        const int32_t length = (life.last - life.first + n) % n + 1;
        /* With one table a period's lives are those of every period. */
        for (int t = 0; t < WEFT_PAGE_TABLES; t++) {
            if (m->paging->n_tables == 2 && t != table) continue;
            for (int32_t s = 0; s < length; s++)
                slots[(t * n + life.first + s) % all] = 1;
        }
    }
}

static bool is_free(const struct maker *m, int32_t page, const unsigned char *slots)
{
    const int32_t all = WEFT_PAGE_TABLES * m->program->n_slots;
    for (int32_t s = 0; s < all; s++) {
        if (slots[s] != 0 && m->held[(int64_t)page * all + s] != 0) return false;
    }
    return true;
}

static int32_t draw(struct maker *m, int32_t n)
{
    return (int32_t)weft_rng_below(m->seed, 3, m->draws++, (uint64_t)n);
}

/* A page that nobody holds in these slots, from one at random on; or a new one. */
static int32_t take_page(struct maker *m, const unsigned char *slots)
{
    const int32_t all = WEFT_PAGE_TABLES * m->program->n_slots, n = m->paging->n_pages;
    int32_t page = n;
    const int32_t from = n > 0 ? draw(m, n) : 0;
    for (int32_t i = 0; i < n && m->shared && page == n; i++) {
        if (is_free(m, (from + i) % n, slots)) page = (from + i) % n;
    }
    if (page == n) m->paging->n_pages++;
    CHECK(m->paging->n_pages <= m->most_pages, "more pages than addresses");
    for (int32_t s = 0; s < all; s++)
        m->held[(int64_t)page * all + s] |= slots[s];
    return page;
}

/* Addresses of all that a buffer, or all residents together, have in one table, and a guard. */
static void map_range(struct maker *m, int32_t b, int table, int32_t n_pages)
{
    const int32_t all = WEFT_PAGE_TABLES * m->program->n_slots;
    unsigned char *slots = malloc((size_t)all);
    CHECK(slots != NULL, "out of memory");
    for (int32_t page = 0; page < n_pages; page++) {
        memset(slots, 1, (size_t)all);
        if (b >= 0) mark_lives(m, b, table, page, slots);
        m->mappings[m->paging->n_mappings++] =
            (struct weft_page_mapping){m->paging->span_bytes, {take_page(m, slots), 1}};
        m->paging->span_bytes += m->paging->page_bytes;
    }
    m->paging->span_bytes += m->paging->page_bytes;
    free(slots);
}

static void place_residents(struct maker *m)
{
    int64_t at = 0;
    for (int32_t b = 0; b < m->program->n_buffers; b++) {
        if (!weft_buffer_persists(m->program, &m->program->buffers[b])) continue;
        m->places[b] = (struct weft_page_place){0, {at, at}};
        at += m->program->buffers[b].bytes;
    }
    m->ranges[0].n_pages = (int32_t)((at + m->paging->page_bytes - 1) / m->paging->page_bytes);
    m->paging->n_ranges = 1;
    map_range(m, -1, 0, m->ranges[0].n_pages);
}

static void place_buffer(struct maker *m, int32_t b)
{
    const int64_t page_bytes = m->paging->page_bytes;
    const int32_t r = m->paging->n_ranges++;
    struct weft_page_range *range = &m->ranges[r];
    range->n_pages = (int32_t)((m->program->buffers[b].bytes + page_bytes - 1) / page_bytes);
    for (int t = 0; t < m->paging->n_tables; t++) {
        range->offsets[t] = m->paging->span_bytes;
        map_range(m, b, t, range->n_pages);
    }
    if (m->paging->n_tables == 1) range->offsets[1] = range->offsets[0];
    m->places[b] = (struct weft_page_place){r, {range->offsets[0], range->offsets[1]}};
}

static struct maker begin_paging(const struct weft_program *program, int64_t page_bytes, int tables)
{
    struct weft_paging *paging = calloc(1, sizeof *paging);
    const size_t n_buffers = (size_t)program->n_buffers;
    int64_t most = 0;
    for (int32_t b = 0; b < program->n_buffers; b++)
        most += WEFT_PAGE_TABLES * (program->buffers[b].bytes / page_bytes + 1);
    CHECK(paging != NULL && most < INT32_MAX, "out of memory");
    paging->page_bytes = page_bytes;
    paging->n_tables = tables;
    paging->n_buffers = program->n_buffers;
    struct maker m = {.program = program, .paging = paging, .most_pages = (int32_t)most};
    m.held = calloc((size_t)most, WEFT_PAGE_TABLES * (size_t)program->n_slots);
    m.mappings = weft_pool_array(&paging->pool, (size_t)most, sizeof *m.mappings);
    m.places = weft_pool_array(&paging->pool, n_buffers, sizeof *m.places);
    m.ranges = weft_pool_array(&paging->pool, n_buffers + 1, sizeof *m.ranges);
    CHECK(m.held != NULL && m.mappings != NULL && m.places != NULL && m.ranges != NULL,
          "out of memory");
    place_residents(&m);
    return m;
}

static struct weft_paging *end_paging(struct maker *m)
{
    free(m->held);
    m->paging->mappings = m->mappings;
    m->paging->places = m->places;
    m->paging->ranges = m->ranges;
    return m->paging;
}

struct weft_paging *pages_make(const struct weft_program *program, int64_t page_bytes, int tables,
                               bool shared, uint64_t seed)
{
    struct maker m = begin_paging(program, page_bytes, tables);
    m.seed = seed;
    m.shared = shared;
    for (int32_t b = program->n_buffers - 1; b >= 0; b--) {
        if (!weft_buffer_persists(program, &program->buffers[b])) place_buffer(&m, b);
    }
    return end_paging(&m);
}

/* Whether nobody holds these pages while the buffer does; or, to be `taken`, holds them. */
static bool fits_in_line(const struct maker *m, int32_t b, int32_t first, int32_t n, bool taken)
{
    const int32_t all = WEFT_PAGE_TABLES * m->program->n_slots;
    unsigned char *slots = malloc((size_t)all);
    bool fits = true;
    CHECK(slots != NULL && first + n <= m->most_pages, "out of memory");
    for (int32_t page = 0; page < n && fits; page++) {
        mark_lives(m, b, 0, page, slots);
        fits = taken || is_free(m, first + page, slots);
        for (int32_t s = 0; s < all && taken; s++)
            m->held[(int64_t)(first + page) * all + s] |= slots[s];
    }
    free(slots);
    return fits;
}

struct weft_paging *pages_make_in_line(const struct weft_program *program)
{
    struct maker m = begin_paging(program, WEFT_PAGE_LEAST_BYTES, 1);
    struct weft_paging *paging = m.paging;
    for (int32_t b = 0; b < program->n_buffers; b++) {
        if (weft_buffer_persists(program, &program->buffers[b])) continue;
        const int64_t bytes = program->buffers[b].bytes + paging->page_bytes - 1;
        const int32_t n = (int32_t)(bytes / paging->page_bytes), r = paging->n_ranges++;
        int32_t first = 0;
        while (!fits_in_line(&m, b, first, n, false))
            first++;
        fits_in_line(&m, b, first, n, true);
        const int64_t at = first * paging->page_bytes;
        m.ranges[r] = (struct weft_page_range){.n_pages = n, .offsets = {at, at}};
        m.places[b] = (struct weft_page_place){r, {at, at}};
        if (first + n > paging->n_pages) paging->n_pages = first + n;
    }
    m.mappings[0] = (struct weft_page_mapping){0, {0, paging->n_pages}};
    paging->n_mappings = 1;
    paging->span_bytes = paging->n_pages * paging->page_bytes;
    return end_paging(&m);
}
