/* SPDX-License-Identifier: Apache-2.0 */
#include "program/order.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/program/random_model.h"

/* Reachability over stream order and dependencies, the slow way, of one period after another. */
static bool *reach(const struct weft_program *program)
{
    int32_t one = program->n_instructions, n = WEFT_ORDER_PERIODS * one;
    bool *before = calloc((size_t)n * (size_t)n, sizeof *before);
    int32_t last[WEFT_MOST_LANES];
    for (int32_t lane = 0; lane < program->n_lanes; lane++)
        last[lane] = -1;
    for (int32_t b = 0; b < n; b++) {
        const struct weft_instruction *at = &program->instructions[b % one];
        int lane = program->instructions[b % one].lane;
        for (int32_t d = -1; d < at->n_dependencies; d++) {
            int32_t a = d < 0 ? last[lane]
                              : program->dependencies[at->first_dependency + d] + b / one * one;
            if (a < 0) continue;
            before[a * n + b] = true;
            for (int32_t c = 0; c < a; c++)
                before[c * n + b] |= before[c * n + a];
        }
        last[lane] = b;
    }
    return before;
}

Test(order, is_reachability)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct random_case random;
        struct weft_error err = {0};
        struct weft_order order;
        random_case_init(&random, seed);
        struct weft_plan *plan = random_plan(&random, 0);
        struct weft_program *program = random_program(&random, plan);
        cr_assert_eq(weft_order_init(&order, program, &err), WEFT_OK);
        bool *before = reach(program);
        int32_t n = WEFT_ORDER_PERIODS * program->n_instructions;
        for (int32_t a = 0; a < n; a++) {
            for (int32_t b = 0; b < n; b++) {
                cr_assert_eq(weft_order_before(&order, a, b), before[a * n + b], "seed %d: %d, %d",
                             (int)seed, a, b);
            }
        }
        free(before);
        weft_order_finish(&order);
        weft_order_finish(&order);
        weft_program_destroy(program);
        weft_plan_destroy(plan);
        random_case_finish(&random);
    }
}
