#include "tests/report/small_sweep.h"

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
    int open = count(text, "<svg") + count(text, "<text") + count(text, "<path") +
               count(text, "<rect") + count(text, "<circle");
    int closed = count(text, "</svg>") + count(text, "</text>") + count(text, "/>");
    cr_assert_eq(open, closed, "%d open, %d close:\n%s", open, closed, text);
}

Test(sweep_svg, draws_curves_band_and_legend)
{
    struct small_sweep small;
    struct weft_text out;
    make_small_sweep(&small);
    small.best[1].measured_ns = 230000;
    weft_text_init(&out);
    weft_sweep_svg(&small.sweep, &out);
    const char *text = weft_text_chars(&out);
    cr_assert(weft_text_ok(&out));
    expect_balanced(text);
    cr_assert(strstr(text, "a&lt;b.json, 4 ranks, times analytic"), "%s", text);
    cr_assert_eq(count(text, "<circle"), 5, "four points and one measured");
    cr_assert_eq(count(text, "data-above"), 1, "one off the scale");
    cr_assert_eq(count(text, "l6 6m0-6l-6 6"), 1, "one without a plan");
    cr_assert(strstr(text, ">best</text>") && strstr(text, ">slow</text>"));
    cr_assert(strstr(text, "fill-opacity=\"0.18\" stroke"), "no band");
    cr_assert(strstr(text, "&gt; 600 us"), "the axis does not say that it is cut");
    weft_text_finish(&out);
}

/* A point's element says which it is, under the names of the CSV. */
Test(sweep_svg, elements_carry_their_figures)
{
    struct small_sweep small;
    struct weft_text out;
    make_small_sweep(&small);
    small.curves[1].planner = "a&b";
    small.best[0].measured_ns = 700000;
    weft_text_init(&out);
    weft_sweep_svg(&small.sweep, &out);
    const char *text = weft_text_chars(&out);
    /* From 200 us at the bottom to 700 us at the top. */
    cr_assert(strstr(text, "<circle cx=\"80.00\" cy=\"394.00\" r=\"3.5\" fill=\"#0072b2\" "
                           "data-planner=\"best\" data-memory-limit-bytes=\"1024\" "
                           "data-step-ns=\"300000\"/>"),
              "%s", text);
    cr_assert(strstr(text, "<circle cx=\"80.00\" cy=\"50.00\" r=\"5\" fill=\"none\" "
                           "stroke=\"#0072b2\" data-planner=\"best\" "
                           "data-memory-limit-bytes=\"1024\" data-measured-step-ns=\"700000\"/>"),
              "%s", text);
    cr_assert(strstr(text, "data-above=\"1\" data-planner=\"a&amp;b\" "
                           "data-memory-limit-bytes=\"2048\" data-step-ns=\"900000\"/>"),
              "%s", text);
    cr_assert(strstr(text, "data-fits=\"0\" data-planner=\"a&amp;b\" "
                           "data-memory-limit-bytes=\"1024\"/>"),
              "%s", text);
    weft_text_finish(&out);
}

/* Its curves have colours in an order, and each a row of crosses above the axes. */
Test(sweep_svg, of_a_grid_has_a_curve_a_limit_of_the_host)
{
    struct small_grid small;
    struct weft_text out;
    make_small_grid(&small);
    small.some[0].fits = false;
    weft_text_init(&out);
    weft_sweep_svg(&small.sweep, &out);
    const char *text = weft_text_chars(&out);
    expect_balanced(text);
    cr_assert(strstr(text, "times analytic, planner ilp</text>"), "%s", text);
    cr_assert_eq(count(text, "<circle"), 4);
    cr_assert(strstr(text, "<path d=\"M77.0 38.0l6 6m0-6l-6 6\" stroke=\"#440154\" "
                           "data-fits=\"0\" data-planner=\"ilp\" "
                           "data-memory-limit-bytes=\"1024\" data-host-limit-bytes=\"0\"/>"),
              "%s", text);
    cr_assert(strstr(text, "<path d=\"M77.0 48.0l6 6m0-6l-6 6\" stroke=\"#becd28\" "
                           "data-fits=\"0\" data-planner=\"ilp\" "
                           "data-memory-limit-bytes=\"1024\" data-host-limit-bytes=\"4096\"/>"),
              "%s", text);
    /* From 190 us at the bottom to 300 us at the top, which is lower by a row. */
    cr_assert(strstr(text, "<circle cx=\"370.00\" cy=\"60.00\" r=\"3.5\" fill=\"#440154\" "
                           "data-planner=\"ilp\" data-memory-limit-bytes=\"2048\" "
                           "data-host-limit-bytes=\"0\" data-step-ns=\"300000\"/>"),
              "%s", text);
    cr_assert(strstr(text, ">0 B</text>") && strstr(text, ">4.00 KiB</text>"), "%s", text);
    cr_assert_eq(count(text, "fill-opacity=\"0.18\" stroke"), 2, "a band a curve");
    weft_text_finish(&out);
}

Test(sweep_svg, says_when_nothing_fits)
{
    struct small_sweep small;
    struct weft_text out;
    make_small_sweep(&small);
    for (int i = 0; i < 3; i++)
        small.best[i].fits = small.slow[i].fits = false;
    weft_text_init(&out);
    weft_sweep_svg(&small.sweep, &out);
    expect_balanced(weft_text_chars(&out));
    cr_assert(strstr(weft_text_chars(&out), "no plan fits anywhere"));
    weft_text_finish(&out);
}
