/* SPDX-License-Identifier: Apache-2.0 */
#include "problem/pages.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/rng.h"
#include "tests/problem/small_problem.h"

enum { PAGE = 128 };

static struct weft_problem *paged_problem(const struct weft_problem *problem,
                                          enum weft_page_rows rows)
{
    struct weft_problem *paged = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_problem_in_pages(problem, PAGE, rows, &paged, &err), WEFT_OK, "%s", err.text);
    return paged;
}

/* Bytes of sdp's holds of unit a: parameters, full gradient, reduced gradient. */
static void check_holds(const struct weft_problem *paged, int64_t large, int64_t small)
{
    const struct weft_hold *holds = paged->decisions[0].strategies[IS_SDP].holds;
    cr_assert_eq(holds[0].bytes, large);
    cr_assert_eq(holds[1].bytes, large);
    cr_assert_eq(holds[2].bytes, small);
}

Test(problem_pages, least_pages_round_holds_of_a_page_or_more)
{
    struct weft_problem problem = small_problem();
    struct weft_problem_item items[N_SMALL_ITEMS];
    memcpy(items, problem.items, sizeof items);
    problem.items = items;
    problem.tiers[0].limit_bytes = 2000;
    items[A_GATHER].item.n_blocks = 3;     /* 100, 200, 300 bytes: 1, 2, 3 pages */
    items[B_REDUCE].item.stair_bytes = 50; /* 100 bytes, less than a page */
    items[B_GATHER].item.n_blocks = 4;
    items[B_GATHER].item.stair_bytes = 64; /* 2 blocks a page */
    struct weft_problem *paged = paged_problem(&problem, WEFT_PAGES_LEAST);
    check_holds(paged, 256, 100);
    cr_assert_eq(paged->items[A_GATHER].item.stair_bytes, 128);
    cr_assert_eq(paged->items[A_ALL_REDUCE].item.stair_bytes, 0);
    cr_assert_eq(paged->items[B_REDUCE].item.stair_bytes, 50);
    cr_assert_eq(paged->items[B_GATHER].item.stair_bytes, 64);
    /* The base may be 255 bytes less than its hold: room for 9 pages, not 7. */
    cr_assert_eq(paged->tiers[0].limit_bytes, 1000 + 9 * PAGE);
    weft_problem_destroy(paged);
    cr_assert_eq(problem.decisions[0].strategies[IS_SDP].holds[0].bytes, 200, "it is a copy");
}

/* Three blocks of 100 bytes in pages of 128 would be 3 pages; two of 150 are 3 pages, one is 2. */
Test(problem_pages, a_block_counts_the_least_of_any_number_of_blocks)
{
    struct weft_problem problem = small_problem();
    struct weft_problem_item items[N_SMALL_ITEMS];
    memcpy(items, problem.items, sizeof items);
    problem.items = items;
    items[A_GATHER].item.stair_bytes = 150; /* 256 / 1, 384 / 2 */
    items[B_GATHER].item.n_blocks = 3;
    items[B_GATHER].item.stair_bytes = 60; /* 128 / 1, 128 / 2, 256 / 3 */
    struct weft_problem *paged = paged_problem(&problem, WEFT_PAGES_LEAST);
    cr_assert_eq(paged->items[A_GATHER].item.stair_bytes, 192);
    cr_assert_eq(paged->items[B_GATHER].item.stair_bytes, 64);
    cr_assert_eq(paged->tiers[0].limit_bytes, INT64_MAX);
    weft_problem_destroy(paged);
}

Test(problem_pages, what_lasts_all_slots_and_what_is_outside_count_bytes)
{
    struct weft_problem problem = small_problem();
    struct weft_hold common[] = {
        {WEFT_CATEGORY_BASE, 0, N_SMALL_SLOTS - 1, 1000, 0},
        {WEFT_CATEGORY_ACTIVATIONS, 5, 4, 300, 0}, /* all slots, from the fifth on */
        {WEFT_CATEGORY_ACTIVATIONS, 5, 3, 300, 0},
    };
    problem.common = common;
    problem.n_common = 3;
    for (int rows = WEFT_PAGES_LEAST; rows <= WEFT_PAGES_USUAL; rows++) {
        struct weft_problem *paged = paged_problem(&problem, (enum weft_page_rows)rows);
        cr_assert_eq(paged->common[0].bytes, 1000);
        cr_assert_eq(paged->common[1].bytes, 300);
        cr_assert_eq(paged->common[2].bytes, 384);
        weft_problem_destroy(paged);
    }
}

Test(problem_pages, usual_pages_round_all_holds_and_share_small_common_ones)
{
    struct weft_problem problem = small_problem();
    struct weft_hold common[] = {
        {WEFT_CATEGORY_BASE, 0, N_SMALL_SLOTS - 1, 1000, 0},
        {WEFT_CATEGORY_ACTIVATIONS, 3, 6, 40, 0},
        {WEFT_CATEGORY_ACTIVATIONS, 3, 6, 40, 0}, /* in the first one's page */
        {WEFT_CATEGORY_ACTIVATIONS, 8, 1, 40, 0}, /* at another time */
    };
    problem.common = common;
    problem.n_common = 4;
    problem.tiers[0].limit_bytes = 2000;
    struct weft_problem *paged = paged_problem(&problem, WEFT_PAGES_USUAL);
    check_holds(paged, 256, 128);
    cr_assert_eq(paged->items[A_GATHER].item.stair_bytes, 128, "2 pages for 2 blocks");
    cr_assert_eq(paged->tiers[0].limit_bytes, 1000 + 7 * PAGE);
    cr_assert_eq(paged->n_common, 3);
    cr_assert_eq(paged->common[1].bytes, PAGE);
    cr_assert_eq(paged->common[1].first, 3);
    cr_assert_eq(paged->common[1].last, 6);
    cr_assert_eq(paged->common[2].first, 8);
    cr_assert_eq(paged->common[2].last, 1);
    weft_problem_destroy(paged);
}

static bool lives_in(const struct weft_hold *hold, int32_t slot)
{
    return hold->first <= hold->last ? hold->first <= slot && slot <= hold->last
                                     : slot >= hold->first || slot <= hold->last;
}

static int64_t row_bytes(const struct weft_problem *problem, int32_t slot, int32_t tier)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < problem->n_common; i++)
        if (problem->common[i].tier == tier && lives_in(&problem->common[i], slot))
            bytes += problem->common[i].bytes;
    return bytes;
}

/* Random common holds, some round the period's end. Slot by slot, pages have room for all bytes,
 * and there is at most one page for each small buffer. */
Test(problem_pages, usual_pages_hold_all_bytes_of_every_slot)
{
    enum { MOST_HOLDS = 12, CASES = 500 };
    for (uint64_t seed = 0; seed < CASES; seed++) {
        struct weft_hold holds[MOST_HOLDS];
        struct weft_problem problem = small_problem();
        problem.n_common = 1 + (int32_t)weft_rng_below(seed, 1, 0, MOST_HOLDS);
        problem.common = holds;
        for (int32_t i = 0; i < problem.n_common; i++) {
            const uint64_t at = 8 * (uint64_t)i;
            holds[i] = (struct weft_hold){
                .category = WEFT_CATEGORY_ACTIVATIONS,
                .first = (int32_t)weft_rng_below(seed, 2, at, N_SMALL_SLOTS),
                .last = (int32_t)weft_rng_below(seed, 2, at + 1, N_SMALL_SLOTS),
                .bytes = 1 + (int64_t)weft_rng_below(seed, 2, at + 2, i % 3 == 0 ? 4 * PAGE : PAGE),
            };
        }
        struct weft_problem *paged = paged_problem(&problem, WEFT_PAGES_USUAL);
        for (int32_t s = 0; s < N_SMALL_SLOTS; s++) {
            cr_assert(row_bytes(paged, s, 0) >= row_bytes(&problem, s, 0), "case %llu, slot %d",
                      (unsigned long long)seed, s);
        }
        cr_assert(paged->n_common <= problem.n_common, "case %llu", (unsigned long long)seed);
        for (int32_t i = 0; i < paged->n_common; i++) {
            const struct weft_hold *hold = &paged->common[i];
            cr_assert(hold->first >= 0 && hold->first < N_SMALL_SLOTS && hold->last >= 0 &&
                      hold->last < N_SMALL_SLOTS);
        }
        weft_problem_destroy(paged);
    }
}
