/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_model/pages/pages.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "memory_model/pages/colour.h"
#include "memory_model/pages/ranges.h"

struct pager {
    const struct weft_paging_inputs *inputs;
    struct weft_work *work;
    struct weft_pool pool; /* memory needed only while paging */
    struct weft_page_ranges ranges;
    struct weft_colouring colouring;
    const struct weft_page_lists *lists; /* used in place of a colouring; NULL: none */
    struct weft_paging *paging;
};

/* Lists the arcs of every run on a circle of n_tables periods, once a table. */
static enum weft_status list_arcs(struct pager *pager, int32_t n_tables, struct weft_circle *circle,
                                  struct weft_error *err)
{
    int32_t n_slots = pager->inputs->n_slots;
    WEFT_TRY(weft_page_ranges_fill(&pager->ranges, &pager->pool, pager->inputs, n_tables, err));
    size_t n = (size_t)pager->ranges.n_runs;
    struct weft_page_arc *arcs = weft_pool_array(&pager->pool, n, n_tables * sizeof *arcs);
    if (arcs == NULL) return weft_fail_memory(err, "paging");
    for (int32_t t = 0; t < n_tables; t++) {
        for (size_t r = 0; r < n; r++) {
            arcs[(size_t)t * n + r] = pager->ranges.runs[r].arc;
            arcs[(size_t)t * n + r].first += t * n_slots;
        }
    }
    *circle = (struct weft_circle){arcs, (int32_t)n * n_tables, n_tables * n_slots, n_slots};
    return WEFT_OK;
}

static bool is_beyond(const struct pager *pager)
{
    return pager->inputs->most_pages > 0 && pager->paging->row_pages > pager->inputs->most_pages;
}

/* Takes one table if that needs no more pages than the fullest slot, otherwise two. */
static enum weft_status colour_tables(struct pager *pager, struct weft_error *err)
{
    struct weft_paging *paging = pager->paging;
    struct weft_circle circle;
    int32_t row;
    for (int32_t n_tables = 1; n_tables <= WEFT_PAGE_TABLES; n_tables++) {
        WEFT_TRY(list_arcs(pager, n_tables, &circle, err));
        WEFT_TRY(weft_circle_row(&circle, &row, err));
        if (row < 0) {
            return weft_fail(err, WEFT_E_DATA,
                             "the fullest slot has more pages of %lld bytes than can be numbered: "
                             "ask for larger pages",
                             (long long)pager->inputs->page_bytes);
        }
        paging->row_pages = row + pager->ranges.n_resident_pages;
        paging->n_pages = paging->row_pages;
        if (is_beyond(pager)) return WEFT_OK;
        weft_colouring_finish(&pager->colouring);
        WEFT_TRY(weft_colour(&circle, row, pager->work, &pager->colouring, err));
        paging->n_tables = n_tables;
        if (pager->colouring.n_pages == row) break;
    }
    paging->n_pages = pager->colouring.n_pages + pager->ranges.n_resident_pages;
    return WEFT_OK;
}

/* Mutable views of the paging's arrays. */
struct tables {
    struct weft_page_range *ranges;
    struct weft_page_stretch *stretches;
    struct weft_page_mapping *mappings;
    struct weft_page_place *places;
};

static void add_stretch(struct pager *pager, struct tables *tables, int32_t *n,
                        struct weft_page_stretch stretch)
{
    struct weft_page_stretch *before =
        *n > 0 ? &tables->stretches[pager->paging->n_stretches - 1] : NULL;
    if (before != NULL && before->first + before->count == stretch.first) {
        before->count += stretch.count;
        return;
    }
    tables->stretches[pager->paging->n_stretches++] = stretch;
    (*n)++;
}

/* Lists the stretches of all ranges but the residents'. Runs and grants are in the order of ranges
 * and pages. */
static void list_stretches(struct pager *pager, struct tables *tables)
{
    const struct weft_colouring *colouring = &pager->colouring;
    const struct weft_page_ranges *ranges = &pager->ranges;
    int32_t run = 0, grants[WEFT_PAGE_TABLES] = {0};
    while (grants[1] < colouring->n_grants &&
           colouring->grants[grants[1]].arc < pager->ranges.n_runs)
        grants[1]++;
    for (int32_t r = ranges->n_resident_pages > 0 ? 1 : 0; r < ranges->n_ranges; r++) {
        struct weft_page_range *range = &tables->ranges[r];
        int32_t end = run;
        while (end < ranges->n_runs && ranges->runs[end].range == r)
            end++;
        for (int32_t t = 0; t < pager->paging->n_tables; t++) {
            range->first_stretch[t] = pager->paging->n_stretches;
            for (; grants[t] < colouring->n_grants; grants[t]++) {
                struct weft_page_grant grant = colouring->grants[grants[t]];
                if (grant.arc >= end + t * ranges->n_runs) break;
                grant.pages.first += ranges->n_resident_pages;
                add_stretch(pager, tables, &range->n_stretches[t], grant.pages);
            }
        }
        run = end;
    }
}

/* The first address from `at` on at which the range's longest stretch fits large pages: virtual
 * address and physical place are then equal modulo a large page. */
static int64_t large_pages_from(const struct pager *pager,
                                const struct weft_page_stretch *stretches, int32_t n, int64_t at)
{
    int64_t page_bytes = pager->inputs->page_bytes, behind = 0, best_behind = 0;
    int32_t best = -1;
    for (int32_t s = 0; s < n; s++) {
        if (best < 0 || stretches[s].count > stretches[best].count) {
            best = s;
            best_behind = behind;
        }
        behind += stretches[s].count * page_bytes;
    }
    if (best < 0 || stretches[best].count * page_bytes < WEFT_PAGE_LARGE_BYTES) return at;
    int64_t off = stretches[best].first * page_bytes - (at + best_behind);
    off %= WEFT_PAGE_LARGE_BYTES;
    return at + (off < 0 ? off + WEFT_PAGE_LARGE_BYTES : off);
}

/* Gives a range its addresses in a table, and maps its pages there. */
static bool map_range(struct pager *pager, struct tables *tables, int32_t r, int32_t t)
{
    struct weft_paging *paging = pager->paging;
    struct weft_page_range *range = &tables->ranges[r];
    const struct weft_page_stretch *stretches = &tables->stretches[range->first_stretch[t]];
    int64_t at = large_pages_from(pager, stretches, range->n_stretches[t], paging->span_bytes);
    range->offsets[t] = at;
    for (int32_t s = 0; s < range->n_stretches[t]; s++) {
        tables->mappings[paging->n_mappings++] = (struct weft_page_mapping){at, stretches[s]};
        if (!weft_checked_add(at, stretches[s].count * paging->page_bytes, &at)) return false;
    }
    return weft_checked_add(at, paging->page_bytes, &paging->span_bytes);
}

static bool map_ranges(struct pager *pager, struct tables *tables)
{
    const struct weft_page_ranges *ranges = &pager->ranges;
    for (int32_t r = 0; r < ranges->n_ranges; r++) {
        struct weft_page_range *range = &tables->ranges[r];
        bool is_resident = r == 0 && ranges->n_resident_pages > 0;
        int32_t n_tables = is_resident ? 1 : pager->paging->n_tables;
        range->n_pages = ranges->n_pages[r];
        for (int32_t t = 0; t < n_tables; t++)
            if (!map_range(pager, tables, r, t)) return false;
        if (n_tables == 1) {
            range->offsets[1] = range->offsets[0];
            range->first_stretch[1] = range->first_stretch[0];
            range->n_stretches[1] = range->n_stretches[0];
        }
    }
    for (int32_t b = 0; b < pager->inputs->n_buffers; b++) {
        struct weft_page_place *place = &tables->places[b];
        place->range = ranges->range[b];
        for (int t = 0; t < WEFT_PAGE_TABLES; t++)
            place->offsets[t] = tables->ranges[place->range].offsets[t] + ranges->at[b];
    }
    return true;
}

static enum weft_status refuse_lists(const struct pager *pager, struct weft_error *err)
{
    return weft_fail(err, WEFT_E_DATA,
                     "pages are given to %d lists of %d tables, the program has %d ranges, or "
                     "others: plan again",
                     pager->lists->n_lists, pager->lists->n_tables, pager->ranges.n_ranges);
}

/* Takes the stretches of a list, which must have as many pages as the range. */
static enum weft_status take_list(struct pager *pager, struct tables *tables, int32_t list,
                                  int32_t r, int32_t t, struct weft_error *err)
{
    const struct weft_page_lists *lists = pager->lists;
    struct weft_paging *paging = pager->paging;
    struct weft_page_range *range = &tables->ranges[r];
    int64_t pages = 0;
    range->first_stretch[t] = paging->n_stretches;
    for (int32_t s = list == 0 ? 0 : lists->ends[list - 1]; s < lists->ends[list]; s++) {
        struct weft_page_stretch stretch = lists->stretches[s];
        if (stretch.first < 0 || stretch.count < 1 || stretch.first > INT32_MAX - stretch.count)
            return refuse_lists(pager, err);
        int32_t end = stretch.first + stretch.count;
        if (end > paging->n_pages) paging->n_pages = end;
        pages += stretch.count;
        tables->stretches[paging->n_stretches++] = stretch;
        range->n_stretches[t]++;
    }
    return pages == pager->ranges.n_pages[r] ? WEFT_OK : refuse_lists(pager, err);
}

static enum weft_status take_lists(struct pager *pager, struct tables *tables,
                                   struct weft_error *err)
{
    const struct weft_page_ranges *ranges = &pager->ranges;
    int32_t list = 0;
    for (int32_t r = 0; r < ranges->n_ranges; r++) {
        bool is_resident = r == 0 && ranges->n_resident_pages > 0;
        for (int32_t t = 0; t < (is_resident ? 1 : pager->lists->n_tables); t++, list++) {
            if (list == pager->lists->n_lists) return refuse_lists(pager, err);
            WEFT_TRY(take_list(pager, tables, list, r, t, err));
        }
    }
    return list == pager->lists->n_lists ? WEFT_OK : refuse_lists(pager, err);
}

static enum weft_status fill_tables(struct pager *pager, struct weft_error *err)
{
    struct weft_paging *paging = pager->paging;
    const struct weft_page_ranges *ranges = &pager->ranges;
    size_t n_ranges = (size_t)ranges->n_ranges, n_buffers = (size_t)pager->inputs->n_buffers;
    const struct weft_page_lists *lists = pager->lists;
    size_t n_stretches = (size_t)pager->colouring.n_grants + 1;
    if (lists != NULL && lists->n_lists > 0) n_stretches += (size_t)lists->ends[lists->n_lists - 1];
    struct tables tables = {
        weft_pool_array(&paging->pool, n_ranges, sizeof *tables.ranges),
        weft_pool_array(&paging->pool, n_stretches, sizeof *tables.stretches),
        weft_pool_array(&paging->pool, n_stretches, sizeof *tables.mappings),
        weft_pool_array(&paging->pool, n_buffers, sizeof *tables.places),
    };
    if (tables.ranges == NULL || tables.stretches == NULL || tables.mappings == NULL ||
        tables.places == NULL)
        return weft_fail_memory(err, "paging");
    if (lists != NULL) {
        WEFT_TRY(take_lists(pager, &tables, err));
    } else if (ranges->n_resident_pages > 0) {
        add_stretch(pager, &tables, &tables.ranges[0].n_stretches[0],
                    (struct weft_page_stretch){0, ranges->n_resident_pages});
    }
    if (lists == NULL) list_stretches(pager, &tables);
    if (!map_ranges(pager, &tables)) {
        return weft_fail(err, WEFT_E_DATA,
                         "the buffers of a program need more addresses than "
                         "there are");
    }
    paging->n_buffers = pager->inputs->n_buffers;
    paging->n_ranges = ranges->n_ranges;
    paging->ranges = tables.ranges;
    paging->stretches = tables.stretches;
    paging->mappings = tables.mappings;
    paging->places = tables.places;
    return WEFT_OK;
}

enum weft_status weft_paging_create(const struct weft_paging_inputs *inputs, struct weft_work *work,
                                    struct weft_paging **out, struct weft_error *err)
{
    enum weft_status status;
    struct pager pager = {.inputs = inputs, .work = work};
    pager.paging = calloc(1, sizeof *pager.paging);
    if (pager.paging == NULL) return weft_fail_memory(err, "paging");
    pager.paging->page_bytes = inputs->page_bytes;
    WEFT_TRY_GOTO(done, colour_tables(&pager, err));
    if (!is_beyond(&pager)) WEFT_TRY_GOTO(done, fill_tables(&pager, err));
    *out = pager.paging;
    pager.paging = NULL;
done:
    weft_paging_destroy(pager.paging);
    weft_colouring_finish(&pager.colouring);
    weft_pool_finish(&pager.pool);
    return status;
}

enum weft_status weft_paging_restore(const struct weft_paging_inputs *inputs,
                                     const struct weft_page_lists *lists, struct weft_paging **out,
                                     struct weft_error *err)
{
    enum weft_status status;
    struct pager pager = {.inputs = inputs, .lists = lists};
    struct weft_circle circle;
    pager.paging = calloc(1, sizeof *pager.paging);
    if (pager.paging == NULL) return weft_fail_memory(err, "paging");
    pager.paging->page_bytes = inputs->page_bytes;
    pager.paging->n_tables = lists->n_tables;
    WEFT_TRY_GOTO(done, list_arcs(&pager, WEFT_PAGE_TABLES, &circle, err));
    WEFT_TRY_GOTO(done, weft_circle_row(&circle, &pager.paging->row_pages, err));
    pager.paging->row_pages += pager.ranges.n_resident_pages;
    WEFT_TRY_GOTO(done, fill_tables(&pager, err));
    *out = pager.paging;
    pager.paging = NULL;
done:
    weft_paging_destroy(pager.paging);
    weft_pool_finish(&pager.pool);
    return status;
}

enum weft_status weft_paging_list(const struct weft_paging *paging, struct weft_pool *pool,
                                  struct weft_page_lists *out, struct weft_error *err)
{
    size_t most = (size_t)paging->n_ranges * WEFT_PAGE_TABLES, n = (size_t)paging->n_stretches;
    int32_t *ends = weft_pool_array(pool, most, sizeof *ends);
    struct weft_page_stretch *stretches = weft_pool_array(pool, n, sizeof *stretches);
    if (ends == NULL || stretches == NULL) return weft_fail_memory(err, "paging");
    *out = (struct weft_page_lists){paging->page_bytes, paging->n_tables, 0, ends, stretches};
    for (int32_t r = 0; r < paging->n_ranges; r++) {
        const struct weft_page_range *range = &paging->ranges[r];
        bool one = range->offsets[0] == range->offsets[1];
        for (int32_t t = 0; t < (one ? 1 : WEFT_PAGE_TABLES); t++)
            ends[out->n_lists++] = range->first_stretch[t] + range->n_stretches[t];
    }
    for (size_t s = 0; s < n; s++)
        stretches[s] = paging->stretches[s];
    return WEFT_OK;
}

static int compare_stretches(const void *a, const void *b)
{
    const struct weft_page_stretch *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/* True if each range has as many pages in both tables. The first list is the residents', for both
 * tables. */
static bool tables_are_alike(const struct weft_page_lists *lists)
{
    int64_t pages[WEFT_PAGE_TABLES] = {0};
    for (int32_t l = 1; lists->n_tables == WEFT_PAGE_TABLES && l < lists->n_lists; l++) {
        int64_t *own = &pages[(l - 1) % WEFT_PAGE_TABLES];
        *own = 0;
        for (int32_t s = lists->ends[l - 1]; s < lists->ends[l]; s++)
            *own += lists->stretches[s].count;
        if (l % WEFT_PAGE_TABLES == 0 && pages[0] != pages[1]) return false;
    }
    return true;
}

int64_t weft_page_lists_count(const struct weft_page_lists *lists)
{
    int64_t n = 0, end = 0;
    size_t n_stretches = lists->n_lists > 0 ? (size_t)lists->ends[lists->n_lists - 1] : 0;
    struct weft_page_stretch *sorted = calloc(n_stretches + 1, sizeof *sorted);
    if (sorted == NULL) return -2;
    if (n_stretches > 0) memcpy(sorted, lists->stretches, n_stretches * sizeof *sorted);
    qsort(sorted, n_stretches, sizeof *sorted, compare_stretches);
    for (size_t s = 0; s < n_stretches && n >= 0; s++) {
        end = (int64_t)sorted[s].first + sorted[s].count;
        n = sorted[s].first > n ? -1 : end > n ? end : n;
    }
    free(sorted);
    return tables_are_alike(lists) ? n : -1;
}

void weft_paging_destroy(struct weft_paging *paging)
{
    if (paging == NULL) return;
    weft_pool_finish(&paging->pool);
    free(paging);
}
