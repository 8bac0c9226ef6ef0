/* SPDX-License-Identifier: Apache-2.0 */
#include "proof/milestones.h"

#include <criterion/criterion.h>

#include "base/rng.h"
#include "tests/problem/small_problem.h"

static void init_milestones(struct weft_milestones *all, struct weft_problem *problem,
                            struct weft_pool *pool)
{
    *problem = small_problem();
    cr_assert(weft_milestones_init(all, problem, pool));
}

/* The window of b's reduction is slots 6 and 7, of its all-reduce too; a's gather has 1 and 2. */
Test(milestones, are_of_an_item_and_its_window)
{
    struct weft_problem problem = small_problem();
    const struct {
        struct weft_milestone at;
        bool is_of;
    } cases[] = {
        {{A_GATHER, 1, 1, true, WEFT_PLACED}, true},
        {{A_GATHER, 2, 2, true, WEFT_PLACED}, true},
        {{A_GATHER, 3, 2, true, WEFT_PLACED}, false},
        {{A_GATHER, 0, 2, true, WEFT_PLACED}, false},
        {{A_GATHER, 1, 0, true, WEFT_PLACED}, false},
        {{A_GATHER, 1, 3, true, WEFT_PLACED}, false},
        {{B_REDUCE, 1, 6, true, WEFT_PLACED}, true},
        {{B_REDUCE, 1, 7, true, WEFT_PLACED}, false},
        {{N_SMALL_ITEMS, 1, 1, true, WEFT_PLACED}, false},
        {{-1, 1, 1, true, WEFT_PLACED}, false},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
        cr_assert_eq(weft_milestone_is_of(&cases[k].at, &problem), cases[k].is_of, "case %zu", k);
}

Test(milestones, say_at_least_and_at_most)
{
    struct weft_milestones all;
    struct weft_problem problem;
    struct weft_pool pool = {0};
    init_milestones(&all, &problem, &pool);
    cr_assert_eq(weft_milestones_least(&all, A_GATHER, 2), 0);
    cr_assert_eq(weft_milestones_most(&all, A_GATHER, 0), 2);
    (void)weft_milestones_tell(&all, &(struct weft_milestone){A_GATHER, 2, 2, true, WEFT_PLACED});
    (void)weft_milestones_tell(&all, &(struct weft_milestone){A_GATHER, 1, 1, false, WEFT_PLACED});
    weft_milestones_settle(&all);
    cr_assert_eq(weft_milestones_least(&all, A_GATHER, 1), 0);
    cr_assert_eq(weft_milestones_least(&all, A_GATHER, 2), 2);
    cr_assert_eq(weft_milestones_most(&all, A_GATHER, 1), 0);
    cr_assert_eq(weft_milestones_most(&all, A_GATHER, 2), 2);
    weft_milestones_forget(&all);
    weft_milestones_settle(&all);
    cr_assert_eq(weft_milestones_least(&all, A_GATHER, 2), 0);
    cr_assert_eq(weft_milestones_most(&all, A_GATHER, 1), 2);
    weft_pool_finish(&pool);
}

/* After any sequence of tell and take back, the remaining milestones answer like a fresh set. */
Test(milestones, are_taken_back)
{
    enum { MOST = 12 };
    int n_taken = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct weft_milestones walked, fresh;
        struct weft_problem problem;
        struct weft_milestone left[MOST];
        struct weft_told told[MOST];
        struct weft_pool pool = {0};
        int32_t n = 0;
        init_milestones(&walked, &problem, &pool);
        init_milestones(&fresh, &problem, &pool);
        for (uint64_t k = 0; k < 40; k++) {
            struct weft_milestone at = {.item = (int32_t)weft_rng_below(seed, k, 0, N_SMALL_ITEMS),
                                        .n_blocks = 1 + (int32_t)weft_rng_below(seed, k, 1, 2),
                                        .slot = (int32_t)weft_rng_below(seed, k, 2, N_SMALL_SLOTS),
                                        .reached = weft_rng_below(seed, k, 3, 2) == 0};
            if (n == MOST || (n > 0 && weft_rng_below(seed, k, 4, 2) == 0)) {
                weft_milestones_take_back(&told[--n]);
                n_taken++;
            } else if (weft_milestone_is_of(&at, &problem)) {
                left[n] = at;
                told[n++] = weft_milestones_tell(&walked, &at);
            }
        }
        for (int32_t k = 0; k < n; k++)
            (void)weft_milestones_tell(&fresh, &left[k]);
        weft_milestones_settle(&walked);
        weft_milestones_settle(&fresh);
        for (int32_t i = 0; i < N_SMALL_ITEMS; i++) {
            for (int32_t s = 0; s < N_SMALL_SLOTS; s++) {
                cr_assert_eq(weft_milestones_least(&walked, i, s),
                             weft_milestones_least(&fresh, i, s), "seed %d", (int)seed);
                cr_assert_eq(weft_milestones_most(&walked, i, s),
                             weft_milestones_most(&fresh, i, s), "seed %d", (int)seed);
            }
        }
        weft_pool_finish(&pool);
    }
    cr_assert_gt(n_taken, 500);
}
