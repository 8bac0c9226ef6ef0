/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/report/study/small_sweep.h"

static void show(const struct weft_sweep *sweep, bool unicode, struct weft_text *out)
{
    weft_text_init(out);
    weft_sweep_chart(sweep, 40, unicode, out);
}

Test(sweep_chart, is_plain_letters_without_unicode)
{
    struct small_sweep small;
    struct weft_text out;
    make_small_sweep(&small);
    show(&small.sweep, false, &out);
    expect_text(&out, "  > 600 us |              B\n"
                      "           |\n"
                      "           |\n"
                      "           |\n"
                      "    506 us |\n"
                      "           |\n"
                      "           |\n"
                      "           |\n"
                      "    412 us |                           B\n"
                      "           |\n"
                      "           |\n"
                      "           |\n"
                      "    318 us |\n"
                      "           |A\n"
                      "           |\n"
                      "           |\n"
                      "    224 us |              A\n"
                      "    200 us |...........................A\n"
                      "           +----------------------------\n"
                      "            1.00 KiB            3.00 KiB\n"
                      "            A best  B slow\n"
                      "            . proven bound\n");
}

Test(sweep_chart, has_a_mark_a_planner_with_unicode)
{
    struct small_sweep small;
    struct weft_text out;
    make_small_sweep(&small);
    show(&small.sweep, true, &out);
    cr_assert(strstr(weft_text_chars(&out), "● best  ○ slow\n"
                                            "            · proven bound\n"),
              "%s", weft_text_chars(&out));
    cr_assert(strstr(weft_text_chars(&out), "│●\n"), "%s", weft_text_chars(&out));
    weft_text_finish(&out);
}

Test(sweep_chart, shows_nothing_where_nothing_fits)
{
    struct small_sweep small;
    struct weft_text out;
    make_small_sweep(&small);
    for (int i = 0; i < 3; i++)
        small.best[i].fits = small.slow[i].fits = false;
    show(&small.sweep, false, &out);
    expect_text(&out, "");
}

/* The bound is the lowest one, that of the largest host limit. If more host memory gains no time,
 * the mark belongs to the least limit. */
Test(sweep_chart, of_a_grid_has_a_mark_a_limit_of_the_host)
{
    struct small_grid small;
    struct weft_text out;
    make_small_grid(&small);
    show(&small.sweep, false, &out);
    const char *text = weft_text_chars(&out);
    cr_assert(strstr(text, "    400 us |B\n"), "%s", text);
    cr_assert(strstr(text, " .             A\n    190 us |              ...."), "%s", text);
    cr_assert(strstr(text, "            host limit:  A 0 B\n"
                           "            B 4.00 KiB  . proven bound\n"),
              "%s", text);
    weft_text_finish(&out);
}

Test(sweep_chart, draws_the_joint_plan_of_a_split_across)
{
    struct weft_sweep_point parts[2] = {
        {.limit_bytes = 4096, .policy_limit_bytes = 1024, .fits = true, .step_ns = 5000},
        {.limit_bytes = 4096, .policy_limit_bytes = 4096, .fits = true, .step_ns = 4000}};
    struct weft_sweep_point joint = {.limit_bytes = 4096, .fits = true, .step_ns = 3000};
    struct weft_sweep_curve curves[2] = {{"two-stage", 2, parts}, {"ilp", 1, &joint}};
    struct weft_sweep sweep = {.config = "c",
                               .times = "analytic",
                               .ranks = 2,
                               .split = true,
                               .n_curves = 2,
                               .curves = curves};
    struct weft_text out;
    show(&sweep, false, &out);
    cr_assert(strstr(weft_text_chars(&out), "3.00 us |B B  B B  B B  B B  B B  B B"), "%s",
              weft_text_chars(&out));
    weft_text_finish(&out);
}
