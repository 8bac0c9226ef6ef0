/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "tests/report/study/small_sweep.h"

static int count(const char *text, const char *part)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
        n++;
    return n;
}

/* Every element that opens closes, in itself or by its end. */
static void expect_balanced(const char *text)
{
    int open =
        count(text, "<svg") + count(text, "<text") + count(text, "<path") + count(text, "<rect");
    int closed = count(text, "</svg>") + count(text, "</text>") + count(text, "/>");
    cr_assert_eq(open, closed, "%d open, %d close:\n%s", open, closed, text);
}

static void draw_sweep(const struct weft_sweep *sweep, struct weft_text *out)
{
    weft_text_init(out);
    weft_sweep_svg(sweep, out);
    cr_assert(weft_text_ok(out));
    expect_balanced(weft_text_chars(out));
}

Test(sweep_svg, has_title_lines_labels_and_notes)
{
    struct small_sweep small;
    struct weft_text out;
    make_small_sweep(&small);
    small.best[1].measured_ns = 230000;
    draw_sweep(&small.sweep, &out);
    const char *text = weft_text_chars(&out);
    cr_assert(strstr(text, ">a&lt;b, 4 ranks</text>"), "%s", text);
    cr_assert(strstr(text, ">times analytic; weft 0.2.0</text>"), "%s", text);
    cr_assert_null(strstr(text, "a&lt;b.json"), "a title has no path");
    cr_assert_eq(count(text, "data-step-ns"), 5, "a mark a plan");
    cr_assert_eq(count(text, "data-measured-step-ns"), 1);
    cr_assert_eq(count(text, "data-above"), 1, "one above the axes");
    cr_assert_eq(count(text, "data-curve"), 2);
    cr_assert(strstr(text, ">best</text>") && strstr(text, ">slow</text>"));
    cr_assert(strstr(text, "memory limit per rank (B)") && strstr(text, "step time (us)"));
    cr_assert(strstr(text, "Arrow: above the axis. In rings: measured."), "%s", text);
    cr_assert_null(strstr(text, "No plan within"));
    weft_text_finish(&out);
}

/* A plan holds from its limit up, and nothing slopes. The second planner begins above the axes at
 * 2 KiB, so that its line begins at their top at 3 KiB. */
Test(sweep_svg, lines_are_stairs)
{
    struct small_sweep small;
    struct weft_text out;
    make_small_sweep(&small);
    draw_sweep(&small.sweep, &out);
    const char *text = weft_text_chars(&out);
    for (const char *at = text; (at = strstr(at, "data-curve"));) {
        const char *path = at;
        while (strncmp(path, "d=\"", 3) != 0)
            path--;
        const size_t length = strcspn(path + 3, "\"");
        cr_assert_geq(strcspn(path + 3, "LlCcQqTtSsAaZz"), length);
        at += strlen("data-curve");
    }
    /* Times from 0 to 600 us, memory from 854 B to 3 KiB. */
    cr_assert(strstr(text, "axis begins at") == NULL, "%s", text);
    small.slow[1].fits = small.slow[2].fits = false;
    weft_text_finish(&out);
    draw_sweep(&small.sweep, &out);
    text = weft_text_chars(&out);
    cr_assert(strstr(text, "step time (us), axis begins at 180</text>"), "%s", text);
    cr_assert(strstr(text, "No plan within these limits: slow."), "%s", text);
    cr_assert_eq(count(text, "data-curve"), 1);
    weft_text_finish(&out);
}

/* The bound is 200 us at every limit, and the best plan takes that long from 3 KiB on. */
Test(sweep_svg, a_bound_is_drawn_where_it_is_not_the_plan)
{
    struct small_sweep small;
    struct weft_text out;
    make_small_sweep(&small);
    draw_sweep(&small.sweep, &out);
    cr_assert_eq(count(weft_text_chars(&out), "data-bound"), 1);
    cr_assert(strstr(weft_text_chars(&out), "Dotted: bound."));
    weft_text_finish(&out);
    for (int i = 0; i < 3; i++)
        small.best[i].step_ns = 200000;
    draw_sweep(&small.sweep, &out);
    cr_assert_eq(count(weft_text_chars(&out), "data-bound"), 0);
    cr_assert_null(strstr(weft_text_chars(&out), "Dotted"));
    cr_assert(strstr(weft_text_chars(&out), "or a bound proves"));
    weft_text_finish(&out);
    for (int i = 0; i < 3; i++)
        small.best[i].bound_ns = 0;
    draw_sweep(&small.sweep, &out);
    cr_assert_null(strstr(weft_text_chars(&out), "or a bound proves"));
    weft_text_finish(&out);
}

/* A mark says which plan it is, under the names of the CSV. */
Test(sweep_svg, marks_carry_their_figures)
{
    struct small_sweep small;
    struct weft_text out;
    make_small_sweep(&small);
    small.curves[1].planner = "a&b";
    small.best[0].measured_ns = 700000;
    draw_sweep(&small.sweep, &out);
    const char *text = weft_text_chars(&out);
    cr_assert(strstr(text, " data-planner=\"best\" data-memory-limit-bytes=\"1024\" "
                           "data-step-ns=\"300000\"/>"),
              "%s", text);
    cr_assert(strstr(text, " data-planner=\"best\" data-memory-limit-bytes=\"1024\" "
                           "data-measured-step-ns=\"700000\"/>"),
              "%s", text);
    cr_assert(strstr(text, "data-above=\"1\" data-planner=\"a&amp;b\" "
                           "data-memory-limit-bytes=\"2048\" data-step-ns=\"900000\"/>"),
              "%s", text);
    weft_text_finish(&out);
}

/* Curves of a grid have colours in an order, marks and dashes. */
Test(sweep_svg, of_a_grid_has_a_curve_a_limit_of_the_host)
{
    struct small_grid small;
    struct weft_text out;
    make_small_grid(&small);
    draw_sweep(&small.sweep, &out);
    const char *text = weft_text_chars(&out);
    cr_assert(strstr(text, "Labels: memory of the host; planner ilp."), "%s", text);
    cr_assert_eq(count(text, "data-step-ns"), 5);
    cr_assert_eq(count(text, "data-host-limit-bytes=\"0\""), 2);
    cr_assert(strstr(text, "stroke=\"#440154\"") && strstr(text, "stroke=\"#5ec962\""), "%s", text);
    cr_assert(strstr(text, ">0 B</text>") && strstr(text, ">4.00 KiB</text>"), "%s", text);
    cr_assert_eq(count(text, "data-bound"), 2, "a bound for each limit of the host");
    weft_text_finish(&out);
}

Test(sweep_svg, says_when_nothing_fits)
{
    struct small_sweep small;
    struct weft_text out;
    make_small_sweep(&small);
    for (int i = 0; i < 3; i++)
        small.best[i].fits = small.slow[i].fits = false;
    draw_sweep(&small.sweep, &out);
    cr_assert(strstr(weft_text_chars(&out), "No plan fits anywhere."));
    weft_text_finish(&out);
}
