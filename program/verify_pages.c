/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/checked.h"
#include "program/program_text.h"
#include "program/verify.h"

/* A turn in one of the tables, on some pages of its range. */
struct tenancy {
    int32_t first_page, end_page; /* physical */
    int32_t turn;
    int32_t table;  /* 0: the turn begins in an even period; 1: in the next one */
    int32_t tenant; /* its stretch: pieces of one stretch are apart */
};

struct page_checker {
    const struct weft_program *program;
    const struct weft_paging *paging;
    const struct weft_order *order;
    const struct weft_turn *turns;
    int32_t n_turns;
    struct weft_error *err;
    struct tenancy *tenancies;
    int32_t n_tenancies;
    struct tenancy *open; /* on the current pages, in order of their begin */
    int32_t n_open;
};

static enum weft_status refuse_range(const struct page_checker *checker, int32_t range,
                                     const char *what)
{
    return weft_fail(checker->err, WEFT_E_DATA, "program: range %d of the paging %s", range, what);
}

/* Checks that a range's stretches are pages, as many as it has, and mapped at its address. Pages in
 * several tables and ranges, or in none, are found elsewhere. */
static enum weft_status check_range(const struct page_checker *checker, int32_t r, int32_t t,
                                    int32_t *mapping)
{
    const struct weft_paging *paging = checker->paging;
    const struct weft_page_range *range = &paging->ranges[r];
    int64_t at = range->offsets[t], pages = 0;
    if (range->first_stretch[t] < 0 || range->n_stretches[t] < 0 ||
        range->first_stretch[t] > paging->n_stretches - range->n_stretches[t])
        return refuse_range(checker, r, "has stretches that there are not");
    for (int32_t s = 0; s < range->n_stretches[t]; s++) {
        struct weft_page_stretch stretch = paging->stretches[range->first_stretch[t] + s];
        if (stretch.first < 0 || stretch.count < 1 || stretch.count > paging->n_pages ||
            stretch.first > paging->n_pages - stretch.count)
            return refuse_range(checker, r, "has pages outside the arena");
        const struct weft_page_mapping *mapped =
            *mapping < paging->n_mappings ? &paging->mappings[(*mapping)++] : NULL;
        if (mapped == NULL || mapped->at != at || mapped->pages.first != stretch.first ||
            mapped->pages.count != stretch.count)
            return refuse_range(checker, r, "is not mapped once, as its stretches are");
        at += stretch.count * paging->page_bytes;
        pages += stretch.count;
    }
    return pages == range->n_pages ? WEFT_OK
                                   : refuse_range(checker, r, "does not have all of its pages");
}

/* In order of address, a page of no range follows each range. */
static enum weft_status check_ranges(const struct page_checker *checker)
{
    const struct weft_paging *paging = checker->paging;
    int64_t free_from = 0;
    int32_t mapping = 0;
    for (int32_t r = 0; r < paging->n_ranges; r++) {
        const struct weft_page_range *range = &paging->ranges[r];
        bool two = range->offsets[0] != range->offsets[1];
        if (two && paging->n_tables != WEFT_PAGE_TABLES)
            return refuse_range(checker, r, "has two tables where there is one");
        for (int32_t t = 0; t < (two ? WEFT_PAGE_TABLES : 1); t++) {
            int64_t at = range->offsets[t], bytes;
            if (at < free_from || at % paging->page_bytes != 0 || range->n_pages < 0 ||
                !weft_checked_mul(range->n_pages + INT64_C(1), paging->page_bytes, &bytes) ||
                !weft_checked_add(at, bytes, &free_from) || free_from > paging->span_bytes)
                return refuse_range(checker, r, "does not lie apart, with a guard after it");
            WEFT_TRY(check_range(checker, r, t, &mapping));
        }
        if (!two && (range->first_stretch[0] != range->first_stretch[1] ||
                     range->n_stretches[0] != range->n_stretches[1]))
            return refuse_range(checker, r, "has two tables at one address");
    }
    if (mapping == paging->n_mappings) return WEFT_OK;
    return weft_fail(checker->err, WEFT_E_DATA, "program: %d of %d mappings are no range's",
                     paging->n_mappings - mapping, paging->n_mappings);
}

static int64_t place_in_range(const struct weft_paging *paging, int32_t buffer, int32_t table)
{
    const struct weft_page_place *place = &paging->places[buffer];
    return place->offsets[table] - paging->ranges[place->range].offsets[table];
}

static enum weft_status refuse_buffer(const struct page_checker *checker, int32_t buffer,
                                      const char *what)
{
    char name[WEFT_PROGRAM_NAME_BYTES];
    return weft_fail(checker->err, WEFT_E_DATA, "program: %s %s",
                     weft_program_piece_name(checker->program, buffer, -1, name), what);
}

static enum weft_status check_place(const struct page_checker *checker, int32_t b)
{
    const struct weft_paging *paging = checker->paging;
    const struct weft_buffer *buffer = &checker->program->buffers[b];
    const struct weft_page_place *place = &paging->places[b];
    if (place->range < 0 || place->range >= paging->n_ranges)
        return refuse_buffer(checker, b, "lies in a range that there is not");
    int64_t range_bytes = paging->ranges[place->range].n_pages * paging->page_bytes;
    for (int32_t t = 0; t < WEFT_PAGE_TABLES; t++) {
        int64_t at = place_in_range(paging, b, t);
        if (at < 0 || buffer->bytes > range_bytes || at > range_bytes - buffer->bytes ||
            at % WEFT_ARENA_ALIGN_BYTES != 0)
            return refuse_buffer(checker, b, "does not lie in its range, aligned");
    }
    if (place_in_range(paging, b, 0) != place_in_range(paging, b, 1))
        return refuse_buffer(checker, b, "lies elsewhere in its range in each table");
    return WEFT_OK;
}

struct placed {
    int32_t range, buffer;
    int64_t at;
};

static int compare_placed(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->range != y->range) return (x->range > y->range) - (x->range < y->range);
    return (x->at > y->at) - (x->at < y->at);
}

/* Checks that buffers of one range are apart. */
static enum weft_status check_places(const struct page_checker *checker)
{
    const struct weft_program *program = checker->program;
    size_t n = (size_t)program->n_buffers;
    if (checker->paging->n_buffers != program->n_buffers) {
        return weft_fail(checker->err, WEFT_E_DATA, "program: %d buffers, of which %d are paged",
                         program->n_buffers, checker->paging->n_buffers);
    }
    struct placed *placed = calloc(n + 1, sizeof *placed);
    if (placed == NULL) return weft_fail_memory(checker->err, "verification");
    enum weft_status status = WEFT_OK;
    for (int32_t b = 0; status == WEFT_OK && b < program->n_buffers; b++) {
        status = check_place(checker, b);
        if (status != WEFT_OK) break;
        placed[b] = (struct placed){checker->paging->places[b].range, b,
                                    place_in_range(checker->paging, b, 0)};
    }
    if (status == WEFT_OK) qsort(placed, n, sizeof *placed, compare_placed);
    for (size_t i = 1; status == WEFT_OK && i < n; i++) {
        int64_t end = placed[i - 1].at + program->buffers[placed[i - 1].buffer].bytes;
        if (placed[i - 1].range == placed[i].range && end > placed[i].at)
            status = refuse_buffer(checker, placed[i].buffer, "lies on another of its range");
    }
    free(placed);
    return status;
}

/* Adds the pages of a turn's bytes in a table: counts them, or fills them in if there is room. */
static void add_tenancies(struct page_checker *checker, int32_t turn, int32_t table)
{
    const struct weft_paging *paging = checker->paging;
    int32_t b = checker->turns[turn].buffer;
    const struct weft_buffer *buffer = &checker->program->buffers[b];
    const struct weft_page_range *range = &paging->ranges[paging->places[b].range];
    int64_t bytes = buffer->bytes / buffer->n_pieces;
    int64_t begin = place_in_range(paging, b, table) + checker->turns[turn].piece * bytes;
    int64_t from = begin / paging->page_bytes, to = (begin + bytes - 1) / paging->page_bytes + 1;
    int64_t before = 0;
    for (int32_t s = 0; s < range->n_stretches[table] && before < to; s++) {
        struct weft_page_stretch stretch = paging->stretches[range->first_stretch[table] + s];
        int64_t low = from > before ? from - before : 0;
        int64_t high = to - before < stretch.count ? to - before : stretch.count;
        before += stretch.count;
        if (low >= high) continue;
        if (checker->tenancies != NULL) {
            checker->tenancies[checker->n_tenancies] = (struct tenancy){
                .first_page = stretch.first + (int32_t)low,
                .end_page = stretch.first + (int32_t)high,
                .turn = turn,
                .table = table,
                .tenant = range->first_stretch[table] + s,
            };
        }
        checker->n_tenancies++;
    }
}

static void list_tenancies(struct page_checker *checker)
{
    checker->n_tenancies = 0;
    for (int32_t turn = 0; turn < checker->n_turns; turn++) {
        for (int32_t t = 0; t < WEFT_PAGE_TABLES; t++)
            add_tenancies(checker, turn, t);
    }
}

static int compare_tenancies(const void *a, const void *b)
{
    const struct tenancy *x = a, *y = b;
    if (x->first_page != y->first_page)
        return (x->first_page > y->first_page) - (x->first_page < y->first_page);
    if (x->turn != y->turn) return (x->turn > y->turn) - (x->turn < y->turn);
    return (x->table > y->table) - (x->table < y->table);
}

static int64_t tenancy_begin(const struct page_checker *checker, const struct tenancy *tenancy)
{
    return checker->turns[tenancy->turn].first +
           (int64_t)tenancy->table * checker->program->n_instructions;
}

static void enter_tenancy(struct page_checker *checker, const struct tenancy *tenancy)
{
    int64_t begin = tenancy_begin(checker, tenancy);
    int32_t at = checker->n_open++;
    for (; at > 0 && tenancy_begin(checker, &checker->open[at - 1]) > begin; at--)
        checker->open[at] = checker->open[at - 1];
    checker->open[at] = *tenancy;
}

static void leave_page(struct page_checker *checker, int32_t page)
{
    int32_t n = 0;
    for (int32_t i = 0; i < checker->n_open; i++) {
        if (checker->open[i].end_page > page) checker->open[n++] = checker->open[i];
    }
    checker->n_open = n;
}

/* True if a's turn is over before b's turn begins, `periods` later, in any timing. */
static bool is_turn_before(const struct weft_order *order, const struct weft_turn *a,
                           const struct weft_turn *b, int32_t periods)
{
    const int32_t *over = weft_order_over(order, b->first + periods * order->n_instructions);
    for (int32_t s = 0; s < order->n_lanes; s++)
        if (a->over[s] > over[s]) return false;
    return true;
}

/* Checks that a is over before b begins, in the tables' distance or two periods later. */
static enum weft_status check_turns(const struct page_checker *checker, const struct tenancy *a,
                                    const struct tenancy *b, bool next_two)
{
    const struct weft_turn *one = &checker->turns[a->turn], *other = &checker->turns[b->turn];
    int32_t periods = b->table - a->table + (next_two ? WEFT_PAGE_TABLES : 0);
    if (!one->persists && !other->persists && is_turn_before(checker->order, one, other, periods))
        return WEFT_OK;
    char name[WEFT_PROGRAM_NAME_BYTES], behind[WEFT_PROGRAM_NAME_BYTES];
    return weft_fail(checker->err, WEFT_E_DATA,
                     "program: %s and %s share page %d and may be in use together",
                     weft_program_piece_name(checker->program, one->buffer, one->piece, name),
                     weft_program_piece_name(checker->program, other->buffer, other->piece, behind),
                     a->first_page > b->first_page ? a->first_page : b->first_page);
}

/* Each tenant of the current pages must be over before the next one begins. Later tenants then
 * follow that one. */
static enum weft_status check_pages_in_hand(const struct page_checker *checker)
{
    int32_t n = checker->n_open;
    for (int32_t i = 0; i < n; i++) {
        const struct tenancy *at = &checker->open[i];
        int32_t next_tenant = at->tenant;
        for (int32_t k = 1; k < n; k++) {
            const struct tenancy *behind = &checker->open[(i + k) % n];
            if (next_tenant != at->tenant && behind->tenant != next_tenant) break;
            if (behind->tenant == at->tenant) continue;
            next_tenant = behind->tenant;
            WEFT_TRY(check_turns(checker, at, behind, i + k >= n));
        }
    }
    return WEFT_OK;
}

static enum weft_status check_tenancies(struct page_checker *checker)
{
    int32_t next = 0, page = 0;
    while (next < checker->n_tenancies || checker->n_open > 0) {
        if (checker->n_open == 0) page = checker->tenancies[next].first_page;
        for (; next < checker->n_tenancies && checker->tenancies[next].first_page == page; next++)
            enter_tenancy(checker, &checker->tenancies[next]);
        WEFT_TRY(check_pages_in_hand(checker));
        int32_t then =
            next < checker->n_tenancies ? checker->tenancies[next].first_page : INT32_MAX;
        for (int32_t i = 0; i < checker->n_open; i++)
            if (checker->open[i].end_page < then) then = checker->open[i].end_page;
        page = then;
        leave_page(checker, page);
    }
    return WEFT_OK;
}

static enum weft_status check_size(const struct page_checker *checker)
{
    const struct weft_paging *paging = checker->paging;
    int64_t page_bytes = paging->page_bytes;
    if (page_bytes >= WEFT_PAGE_LEAST_BYTES && page_bytes <= WEFT_PAGE_LARGE_BYTES &&
        (page_bytes & (page_bytes - 1)) == 0 && paging->n_pages >= 0 && paging->n_tables >= 1 &&
        paging->n_tables <= WEFT_PAGE_TABLES)
        return WEFT_OK;
    return weft_fail(checker->err, WEFT_E_DATA,
                     "program: %d tables of %d pages of %" PRId64 " bytes: out of range",
                     paging->n_tables, paging->n_pages, page_bytes);
}

static enum weft_status check_paging(struct page_checker *checker)
{
    WEFT_TRY(check_size(checker));
    WEFT_TRY(check_ranges(checker));
    WEFT_TRY(check_places(checker));
    list_tenancies(checker);
    size_t n = (size_t)checker->n_tenancies + 1;
    checker->tenancies = calloc(n, sizeof *checker->tenancies);
    checker->open = calloc(n, sizeof *checker->open);
    if (checker->tenancies == NULL || checker->open == NULL)
        return weft_fail_memory(checker->err, "verification");
    list_tenancies(checker);
    qsort(checker->tenancies, n - 1, sizeof *checker->tenancies, compare_tenancies);
    return check_tenancies(checker);
}

enum weft_status weft_verify_pages(const struct weft_program *program,
                                   const struct weft_order *order, const struct weft_turn *turns,
                                   int32_t n_turns, struct weft_error *err)
{
    struct page_checker checker = {.program = program,
                                   .paging = program->paging,
                                   .order = order,
                                   .turns = turns,
                                   .n_turns = n_turns,
                                   .err = err};
    enum weft_status status = check_paging(&checker);
    free(checker.tenancies);
    free(checker.open);
    return status;
}
