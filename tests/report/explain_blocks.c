/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "report/explain.h"
#include "tests/report/answer_text.h"
#include "tests/report/small_plan.h"

/* Expects this text about the blocks of the small problem. */
static void expect_explain_blocks(struct weft_problem_blocks blocks, const char *text)
{
    struct weft_problem problem = small_problem();
    problem.blocks = blocks;
    struct weft_plan *plan = small_plan(&problem);
    struct weft_text out;
    weft_text_init(&out);
    ADD_TEXT(&out, weft_explain_blocks(plan, &answer));
    cr_assert_str_eq(weft_text_chars(&out), text);
    weft_text_finish(&out);
    weft_plan_destroy(plan);
}

Test(explain_blocks, says_where_the_size_comes_from)
{
    expect_explain_blocks(
        (struct weft_problem_blocks){.least_bytes = 4096, .efficiency_ppm = 900000, .fused = 1},
        "how units are cut into blocks\n"
        "  a block is 4.00 KiB or more: the smallest AllGather that reaches 0.9 of the best "
        "bandwidth in the profile (by hand)\n"
        "  2 units, 0 of several layers, each smaller than that or next to one that is; "
        "2 split into 2 blocks\n\n");
    expect_explain_blocks((struct weft_problem_blocks){.least_bytes = 100},
                          "how units are cut into blocks\n"
                          "  a block is 100 B or more: plan.block_size says so\n"
                          "  2 units; small neighbours are not fused; 2 split into 2 blocks\n\n");
    expect_explain_blocks((struct weft_problem_blocks){.count = 2},
                          "how units are cut into blocks\n"
                          "  every unit is cut into 2, as plan.blocks says\n"
                          "  2 units; small neighbours are not fused; 2 split into 2 blocks\n\n");
}

Test(explain_blocks, says_nothing_that_it_does_not_know)
{
    expect_explain_blocks((struct weft_problem_blocks){0}, "");
}

Test(explain_blocks, knows_fused_units_by_their_layers)
{
    struct weft_problem problem = small_problem();
    problem.blocks = (struct weft_problem_blocks){.least_bytes = 1, .fused = 1};
    static struct weft_unit_layers unit_layers[2] = {{.first = 0, .last = 1},
                                                     {.first = 1, .last = 1}};
    problem.names.unit_layers = unit_layers;
    problem.items[A_GATHER].item.n_blocks = problem.items[A_REDUCE].item.n_blocks = 2;
    struct weft_plan *plan = small_plan(&problem);
    struct weft_text out;
    weft_text_init(&out);
    ADD_TEXT(&out, weft_explain_blocks(plan, &answer));
    cr_assert(strstr(weft_text_chars(&out), "2 units, 1 of several layers"), "%s",
              weft_text_chars(&out));
    weft_text_finish(&out);
    weft_plan_destroy(plan);
}
