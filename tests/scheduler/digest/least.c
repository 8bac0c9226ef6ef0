/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "scheduler/digest/digest.h"
#include "scheduler/schedule.h"
#include "tests/scheduler/enumerate.h"
#include "tests/scheduler/tiny.h"

Test(least, is_the_least_of_all_plans)
{
    int n_proven = 0, n = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct tiny_shape shape = {.n_units = 2 + (int32_t)(seed % 2),
                                   .most_blocks = 1,
                                   .policies = seed % 3 ? 15 : 12,
                                   .load = 0.5};
        struct weft_problem *problem = tiny_problem(&shape, seed);
        struct weft_digest *table = NULL;
        int64_t least = enumerate_least_limit(problem);
        int32_t slot = -1;
        cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
        cr_assert_eq(weft_least_limit(problem, 0, &slot), least, "seed %d", (int)seed);
        cr_assert_eq(slot, table->least_row);
        cr_assert_leq(table->least_proven_bytes, least);
        n++;
        n_proven += table->least_proven_bytes == least;
        weft_digest_destroy(table);
        weft_problem_destroy(problem);
    }
    cr_log_info("proven for %d of %d", n_proven, n);
}
