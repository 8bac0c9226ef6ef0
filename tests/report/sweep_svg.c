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
    cr_assert_eq(count(text, "<circle"), 6, "five points and one measured");
    cr_assert_eq(count(text, "l6 6m0-6l-6 6"), 1, "one without a plan");
    cr_assert(strstr(text, ">best</text>") && strstr(text, ">slow</text>"));
    cr_assert(strstr(text, "fill-opacity=\"0.18\" stroke"), "no band");
    cr_assert(strstr(text, "&gt; 600 us"), "the axis does not say that it is cut");
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
