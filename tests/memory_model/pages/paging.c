/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_model/pages/pages.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "tests/effort.h"
#include "tests/program/dice.h"

enum { PAGE_BYTES = 4096, PAGED_CASES = TEST_CASES(3000, 150), MOST_ARCS = 8 };

/* Buffers, and the arrays for their lives. */
struct paged_case {
    struct weft_pool pool;
    struct weft_paging_inputs inputs;
    struct weft_paged_buffer *buffers;
};

static struct paged_case paged_case_of(int32_t n_slots, int32_t room)
{
    struct paged_case in = {.inputs = {.n_slots = n_slots, .page_bytes = PAGE_BYTES}};
    in.buffers = weft_pool_array(&in.pool, (size_t)room, sizeof *in.buffers);
    in.inputs.buffers = in.buffers;
    return in;
}

static struct weft_life *add_paged(struct paged_case *in, int64_t bytes, int32_t n_pieces)
{
    struct weft_life *lives = weft_pool_array(&in->pool, (size_t)n_pieces, sizeof *lives);
    in->buffers[in->inputs.n_buffers++] = (struct weft_paged_buffer){
        .bytes = bytes, .n_pieces = n_pieces, .lives = lives, .shares = -1};
    return lives;
}

static void add_paged_one(struct paged_case *in, int64_t bytes, int32_t first, int32_t last)
{
    *add_paged(in, bytes, 1) = (struct weft_life){first, last};
}

static struct weft_paging *page_case(const struct paged_case *in)
{
    struct weft_paging *paging = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_paging_create(&in->inputs, NULL, &paging, &err), WEFT_OK, "%s", err.text);
    return paging;
}

/* The physical page of a virtual offset, -1 in a guard. */
static int32_t page_behind(const struct weft_paging *paging, int64_t at)
{
    int32_t found = -1;
    for (int32_t m = 0; m < paging->n_mappings; m++) {
        const struct weft_page_mapping *mapping = &paging->mappings[m];
        int64_t page = (at - mapping->at) / paging->page_bytes;
        if (at < mapping->at || page >= mapping->pages.count) continue;
        cr_assert_eq(found, -1, "two mappings cover an address");
        found = mapping->pages.first + (int32_t)page;
    }
    return found;
}

/* By slot of two periods and page: the range and table that hold it, and one more; 0: nobody. */
struct holders {
    int32_t *of;
    int32_t n_slots, n_pages;
};

static void hold_page(struct holders *holders, int32_t slot, int32_t page, int32_t holder)
{
    int32_t *at = &holders->of[(slot % holders->n_slots) * holders->n_pages + page];
    cr_assert(*at == 0 || *at == holder, "page %d has two holders in slot %d", page, slot);
    *at = holder;
}

static void hold_piece(struct holders *holders, const struct weft_paging *paging, int64_t begin,
                       int64_t end, int32_t first, int32_t last, int32_t holder)
{
    for (int64_t at = begin / PAGE_BYTES * PAGE_BYTES; at < end; at += PAGE_BYTES) {
        int32_t page = page_behind(paging, at);
        cr_assert(page >= 0 && page < paging->n_pages, "byte %lld has no page", (long long)at);
        for (int32_t s = first; s <= last; s++)
            hold_page(holders, s, page, holder);
    }
}

static void hold_buffer(struct holders *holders, const struct paged_case *in,
                        const struct weft_paging *paging, int32_t b)
{
    const struct weft_paged_buffer *buffer = &in->buffers[b];
    const struct weft_page_place *place = &paging->places[b];
    int64_t piece_bytes = buffer->bytes / buffer->n_pieces;
    int32_t n = in->inputs.n_slots;
    for (int32_t t = 0; t < WEFT_PAGE_TABLES; t++) {
        int32_t holder =
            1 + place->range * WEFT_PAGE_TABLES +
            (paging->ranges[place->range].offsets[0] == paging->ranges[place->range].offsets[1]
                 ? 0
                 : t);
        for (int32_t p = 0; p < buffer->n_pieces; p++) {
            struct weft_life life =
                buffer->is_resident ? (struct weft_life){0, n - 1} : buffer->lives[p];
            int32_t last = life.last < life.first ? life.last + n : life.last;
            int64_t begin = place->offsets[t] + p * piece_bytes;
            hold_piece(holders, paging, begin, begin + piece_bytes, life.first + t * n,
                       last + t * n, holder);
        }
    }
}

/* Every piece has pages of its own in every slot in which it lives, of either period; residents
 * and each range end in a guard. */
static void check_pages(const struct paged_case *in, const struct weft_paging *paging)
{
    struct holders holders = {.n_slots = 2 * in->inputs.n_slots, .n_pages = paging->n_pages};
    holders.of = calloc((size_t)holders.n_slots * (size_t)paging->n_pages + 1, sizeof(int32_t));
    for (int32_t b = 0; b < in->inputs.n_buffers; b++)
        hold_buffer(&holders, in, paging, b);
    int32_t most = 0;
    for (int32_t s = 0; s < holders.n_slots; s++) {
        int32_t held = 0;
        for (int32_t p = 0; p < paging->n_pages; p++)
            held += holders.of[s * paging->n_pages + p] != 0;
        if (held > most) most = held;
    }
    cr_assert_geq(paging->row_pages, most);
    cr_assert_geq(paging->n_pages, paging->row_pages);
    for (int32_t r = 0; r < paging->n_ranges; r++) {
        for (int32_t t = 0; t < WEFT_PAGE_TABLES; t++) {
            int64_t end = paging->ranges[r].offsets[t] +
                          (int64_t)paging->ranges[r].n_pages * paging->page_bytes;
            cr_assert_eq(page_behind(paging, end), -1, "no guard behind range %d", r);
            cr_assert_leq(end + paging->page_bytes, paging->span_bytes);
        }
    }
    for (int32_t m = 1; m < paging->n_mappings; m++)
        cr_assert_gt(paging->mappings[m].at, paging->mappings[m - 1].at);
    free(holders.of);
}

static bool crosses_end(const struct paged_case *in)
{
    for (int32_t b = 0; b < in->inputs.n_buffers; b++) {
        const struct weft_paged_buffer *buffer = &in->buffers[b];
        for (int32_t p = 0; p < buffer->n_pieces && !buffer->is_resident; p++)
            if (buffer->lives[p].last < buffer->lives[p].first) return true;
    }
    return false;
}

static struct paged_case draw_paged(struct dice *dice)
{
    int32_t n_slots = (int32_t)roll(dice, 1, 60), n_buffers = (int32_t)roll(dice, 0, 200);
    if (chance(dice, 70)) n_buffers %= 20;
    int64_t crossing_percent = chance(dice, 30) ? 0 : roll(dice, 0, 60);
    bool whole_pages = chance(dice, 30);
    struct paged_case in = paged_case_of(n_slots, 200);
    for (int32_t b = 0; b < n_buffers; b++) {
        int32_t n_pieces = (int32_t)roll(dice, 1, 8);
        int64_t unit = whole_pages ? PAGE_BYTES : 256;
        int64_t piece_bytes = unit * roll(dice, 1, whole_pages ? 3 : 40);
        struct weft_life *lives = add_paged(&in, piece_bytes * n_pieces, n_pieces);
        in.buffers[b].is_resident = chance(dice, 10);
        if (piece_bytes * n_pieces < PAGE_BYTES / 2)
            in.buffers[b].shares = (int32_t)roll(dice, -1, 3);
        for (int32_t p = 0; p < n_pieces; p++) {
            int32_t one = (int32_t)roll(dice, 0, n_slots - 1);
            int32_t other = (int32_t)roll(dice, 0, n_slots - 1);
            bool wraps = chance(dice, crossing_percent);
            if (wraps != (other < one)) {
                int32_t swapped = one;
                one = other;
                other = swapped;
            }
            lives[p] = (struct weft_life){one, other};
        }
    }
    return in;
}

Test(paging, no_page_is_given_to_two_that_live_together)
{
    int32_t n_exact = 0, n_two = 0;
    for (uint64_t seed = 0; seed < PAGED_CASES; seed++) {
        struct dice dice = dice_of(seed, "pages");
        struct paged_case in = draw_paged(&dice);
        struct weft_paging *paging = page_case(&in);
        check_pages(&in, paging);
        if (!crosses_end(&in)) {
            cr_assert_eq(paging->n_pages, paging->row_pages, "seed %llu: %d pages for a row of %d",
                         (unsigned long long)seed, paging->n_pages, paging->row_pages);
            cr_assert_eq(paging->n_tables, 1);
        }
        n_exact += paging->n_pages == paging->row_pages;
        n_two += paging->n_tables == 2;
        weft_paging_destroy(paging);
        weft_pool_finish(&in.pool);
    }
    cr_assert_gt(n_two, 0);
    cr_assert_gt(n_exact * 100, PAGED_CASES * 80);
}

/* The least number of pages for arcs of a page each on the circle of two periods, by trying all:
 * arc by arc, each page taken so far or the next one. */
static void try_colours(const uint64_t *slots, int32_t n_arcs, int32_t at, uint64_t *taken,
                        int32_t n_taken, int32_t *best)
{
    if (n_taken >= *best) return;
    if (at == n_arcs) {
        *best = n_taken;
        return;
    }
    for (int32_t page = 0; page <= n_taken && page < *best - 1; page++) {
        if ((taken[page] & slots[at]) != 0) continue;
        taken[page] |= slots[at];
        try_colours(slots, n_arcs, at + 1, taken, page == n_taken ? n_taken + 1 : n_taken, best);
        taken[page] &= ~slots[at];
    }
}

static uint64_t slots_of_life(struct weft_life life, int32_t n_slots, int32_t table)
{
    int32_t last = life.last < life.first ? life.last + n_slots : life.last;
    uint64_t slots = 0;
    for (int32_t s = life.first; s <= last; s++)
        slots |= UINT64_C(1) << (s + table * n_slots) % (2 * n_slots);
    return slots;
}

static int32_t least_pages(const struct paged_case *in)
{
    uint64_t slots[2 * MOST_ARCS], taken[2 * MOST_ARCS + 1] = {0};
    int32_t n = 0, best = 2 * MOST_ARCS + 1;
    for (int32_t b = 0; b < in->inputs.n_buffers; b++) {
        for (int32_t t = 0; t < 2; t++)
            slots[n++] = slots_of_life(in->buffers[b].lives[0], in->inputs.n_slots, t);
    }
    try_colours(slots, n, 0, taken, 0, &best);
    return best;
}

/* Arcs that crowd: lives of a third of the circle to all of it, most across the end. */
Test(paging, few_small_cases_take_more_than_the_least)
{
    enum { SMALL = TEST_CASES(2000, 200) };
    int32_t n_more = 0, n_over_row = 0;
    for (uint64_t seed = 0; seed < SMALL; seed++) {
        struct dice dice = dice_of(seed, "small pages");
        int32_t n_slots = (int32_t)roll(&dice, 3, 12), n = (int32_t)roll(&dice, 1, MOST_ARCS);
        struct paged_case in = paged_case_of(n_slots, MOST_ARCS);
        for (int32_t b = 0; b < n; b++) {
            int32_t first = (int32_t)roll(&dice, 0, n_slots - 1);
            int32_t length = (int32_t)roll(&dice, n_slots / 3, n_slots);
            add_paged_one(&in, PAGE_BYTES, first, (first + length - 1) % n_slots);
        }
        struct weft_paging *paging = page_case(&in);
        int32_t least = least_pages(&in);
        check_pages(&in, paging);
        cr_assert_geq(paging->n_pages, least);
        cr_assert_leq(paging->n_pages, least + 1);
        n_more += paging->n_pages > least;
        n_over_row += paging->n_pages > paging->row_pages;
        weft_paging_destroy(paging);
        weft_pool_finish(&in.pool);
    }
    printf("%d of %d take more pages than the least, %d more than the row\n", n_more, SMALL,
           n_over_row);
    cr_assert_leq(n_more * 100, SMALL * 5);
}

/* Three lives of two thirds of the circle, each begun a third later: any two of them meet, so one
 * table would need three pages. */
Test(paging, two_tables_take_the_row_where_one_cannot)
{
    struct paged_case in = paged_case_of(6, 3);
    for (int32_t b = 0; b < 3; b++)
        add_paged_one(&in, PAGE_BYTES, 2 * b, (2 * b + 3) % 6);
    struct weft_paging *paging = page_case(&in);
    check_pages(&in, paging);
    cr_assert_eq(paging->row_pages, 2);
    cr_assert_eq(paging->n_pages, 2);
    cr_assert_eq(paging->n_tables, 2);
    for (int32_t b = 0; b < 3; b++)
        cr_assert_neq(paging->places[b].offsets[0], paging->places[b].offsets[1]);
    weft_paging_destroy(paging);
    weft_pool_finish(&in.pool);
}

/* Updates of three layers in slots 0 to 2, gathers from slot 0 on, backward in 9, 8 and 7.
 * Gradients that wait for their update cross the end. */
Test(paging, reduced_gradients_leave_their_pages_to_gathers)
{
    struct paged_case in = paged_case_of(11, 8);
    for (int32_t l = 0; l < 3; l++) {
        add_paged_one(&in, 2 * PAGE_BYTES, 9 - l, l); /* reduced */
        add_paged_one(&in, 4 * PAGE_BYTES, l, 4 + l); /* gathered for its forward */
    }
    add_paged_one(&in, 3 * PAGE_BYTES, 0, 3); /* gathered before the first update */
    add_paged_one(&in, 5 * PAGE_BYTES, 0, 10);
    in.buffers[in.inputs.n_buffers - 1].is_resident = true;
    struct weft_paging *paging = page_case(&in);
    check_pages(&in, paging);
    cr_assert_eq(paging->n_pages, paging->row_pages);
    cr_assert_eq(paging->places[7].range, 0);
    cr_assert_eq(paging->places[7].offsets[0], 0);
    cr_assert_eq(paging->places[7].offsets[1], 0);
    weft_paging_destroy(paging);
    weft_pool_finish(&in.pool);
}

/* A rotated period with three micro-steps. Backward of the last is in slots 0 and 1, updates and
 * forwards of the first in 2 to 5. Two whole micro-steps follow, with the last forward in 12 and
 * 13; its activations cross the end. */
Test(paging, activations_of_a_rotated_period_cross_its_end)
{
    struct paged_case in = paged_case_of(14, 8);
    for (int32_t micro = 0; micro < 3; micro++) {
        int32_t forward = micro == 0 ? 3 : 4 + 4 * micro;
        for (int32_t l = 0; l < 2; l++)
            add_paged_one(&in, 3 * PAGE_BYTES, forward + l, (forward + 3 - l) % 14);
    }
    add_paged_one(&in, 2 * PAGE_BYTES, 0, 2);
    add_paged_one(&in, 2 * PAGE_BYTES, 13, 0);
    struct weft_paging *paging = page_case(&in);
    check_pages(&in, paging);
    cr_assert_eq(paging->n_pages, paging->row_pages);
    weft_paging_destroy(paging);
    weft_pool_finish(&in.pool);
}

/* Blocks of a page and a half: the page across two lives as long as either. */
Test(paging, a_page_across_two_blocks_lives_with_both)
{
    struct paged_case in = paged_case_of(8, 2);
    struct weft_life *lives = add_paged(&in, 3 * PAGE_BYTES, 2);
    lives[0] = (struct weft_life){1, 6};
    lives[1] = (struct weft_life){4, 6};
    add_paged_one(&in, PAGE_BYTES, 1, 3);
    struct weft_paging *paging = page_case(&in);
    check_pages(&in, paging);
    cr_assert_eq(paging->n_pages, 3);
    cr_assert_eq(page_behind(paging, paging->places[1].offsets[0]),
                 page_behind(paging, paging->places[0].offsets[0] + 2 * PAGE_BYTES),
                 "the page of the second block alone is free until it comes");
    weft_paging_destroy(paging);
    weft_pool_finish(&in.pool);
}

Test(paging, a_buffer_of_256_bytes_takes_a_page)
{
    struct paged_case in = paged_case_of(4, 3);
    add_paged_one(&in, 256, 1, 2);
    add_paged_one(&in, 512, 1, 1);
    add_paged_one(&in, 256, 2, 2);
    for (int32_t b = 0; b < 2; b++)
        in.buffers[b].shares = 7;
    struct weft_paging *paging = page_case(&in);
    check_pages(&in, paging);
    cr_assert_eq(paging->n_pages, 2);
    cr_assert_eq(paging->n_ranges, 2);
    cr_assert_eq(paging->places[1].offsets[0], paging->places[0].offsets[0] + 256);
    cr_assert_eq(paging->span_bytes, 4 * PAGE_BYTES);
    weft_paging_destroy(paging);
    weft_pool_finish(&in.pool);
}

Test(paging, nothing_takes_nothing)
{
    struct paged_case in = paged_case_of(3, 1);
    struct weft_paging *paging = page_case(&in);
    cr_assert_eq(paging->n_pages, 0);
    cr_assert_eq(paging->span_bytes, 0);
    cr_assert_eq(paging->n_mappings, 0);
    weft_paging_destroy(paging);
    weft_pool_finish(&in.pool);
}

Test(paging, refuses_what_cannot_be_numbered)
{
    struct paged_case in = paged_case_of(3, 2);
    struct weft_paging *paging = NULL;
    struct weft_error err = {0};
    add_paged_one(&in, INT64_C(1) << 60, 0, 1);
    cr_assert_eq(weft_paging_create(&in.inputs, NULL, &paging, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "larger pages"));
    cr_assert_null(paging);
    weft_pool_finish(&in.pool);
}

/* A stretch of large pages lies where the system can map them as such. */
Test(paging, long_stretches_begin_where_large_pages_may)
{
    struct paged_case in = paged_case_of(6, 3);
    add_paged_one(&in, 3 * PAGE_BYTES, 0, 5);
    in.buffers[0].is_resident = true;
    add_paged_one(&in, 4 * WEFT_PAGE_LARGE_BYTES, 1, 2);
    add_paged_one(&in, 3 * WEFT_PAGE_LARGE_BYTES, 2, 4);
    struct weft_paging *paging = page_case(&in);
    check_pages(&in, paging);
    for (int32_t m = 0; m < paging->n_mappings; m++) {
        const struct weft_page_mapping *mapping = &paging->mappings[m];
        if (mapping->pages.count * (int64_t)PAGE_BYTES < WEFT_PAGE_LARGE_BYTES) continue;
        cr_assert_eq(
            (mapping->at - (int64_t)mapping->pages.first * PAGE_BYTES) % WEFT_PAGE_LARGE_BYTES, 0);
    }
    weft_paging_destroy(paging);
    weft_pool_finish(&in.pool);
}
