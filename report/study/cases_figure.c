/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "report/study/case_look.h"
#include "report/study/svg.h"

/* In tenths of a millimetre of a column of 85 mm, drawn twice as wide. */
enum { WIDTH = 1700, LEFT = 170, TOP = 60, PANEL = 560, BETWEEN = 90, LINE = 34, TICKS = 5 };
static const double font_size = 28, end_share = 0.97;

/* The limit of a case that the panels show: in the middle of its limits, rounded up. */
static int32_t shown_limit(const struct weft_case *one)
{
    return one->n_limits > 2 ? one->n_limits / 2 + 1 - (one->n_limits == 3) : one->n_limits - 1;
}

/* A point of both panels. */
struct mark {
    double share;   /* of the memory between the least limit and the shown one, for policies */
    double slower;  /* step over the first planner's */
    double overlap; /* share of communication */
    const struct weft_sweep_point *point;
};

/* Finds a division of the shown limit; false if it or the first planner has no plan. */
static bool find_mark(const struct weft_case *one, enum weft_clock_of_case clock, int32_t from,
                      struct mark *out)
{
    const int32_t limit = shown_limit(one);
    const struct weft_sweep_point *first = &one->curves[0].points[limit];
    const struct weft_sweep_point *point = weft_case_division(one, from, limit);
    const int64_t first_ns = weft_case_step(first, clock), step_ns = weft_case_step(point, clock);
    if (first_ns == 0 || step_ns == 0) return false;
    *out = (struct mark){.share = limit > 0 ? (double)from / limit : 0,
                         .slower = (double)step_ns / (double)first_ns,
                         .overlap = weft_case_overlap(point, clock),
                         .point = point};
    return true;
}

/* The figure while it is drawn. */
struct panels {
    const struct weft_cases *cases;
    enum weft_clock_of_case clock;
    struct weft_text *out;
    double right;       /* end of the x axis */
    double low, high;   /* of the upper panel */
    double least, most; /* of the lower panel */
};

static double y_of(const struct panels *panels, int panel, double value)
{
    const double low = panel == 0 ? panels->low : panels->least;
    const double high = panel == 0 ? panels->high : panels->most;
    return TOP + panel * (PANEL + BETWEEN) + PANEL * (high - value) / (high - low);
}

static double x_of(const struct panels *panels, double share)
{
    return LEFT + (panels->right - LEFT) * end_share * share;
}

static void find_ranges(struct panels *panels)
{
    panels->low = panels->high = 1;
    panels->least = panels->most = -1;
    for (int32_t k = 0; k < panels->cases->n; k++) {
        const struct weft_case *one = &panels->cases->cases[k];
        for (int32_t from = 0; from <= shown_limit(one); from++) {
            struct mark mark;
            if (!find_mark(one, panels->clock, from, &mark)) continue;
            panels->low = fmin(panels->low, mark.slower);
            panels->high = fmax(panels->high, mark.slower);
            panels->least = panels->least < 0 ? mark.overlap : fmin(panels->least, mark.overlap);
            panels->most = fmax(panels->most, mark.overlap);
        }
    }
    panels->low = floor(panels->low * 50) / 50;
    panels->high = ceil(panels->high * 50 + 0.5) / 50;
    panels->least = floor(fmax(panels->least, 0) * 20) / 20;
    panels->most = ceil(panels->most * 20) / 20;
    if (panels->most <= panels->least) panels->most = panels->least + 0.05;
}

static void add_axis(const struct panels *panels, int panel, const char *title)
{
    struct weft_text *out = panels->out;
    const double top = TOP + panel * (PANEL + BETWEEN), bottom = top + PANEL;
    weft_text_addf(out, "<path d=\"M%d %.1fV%.1fH%.1f\" fill=\"none\" stroke=\"#000\"/>\n", LEFT,
                   top, bottom, panels->right);
    weft_text_addf(out, "<text x=\"%d\" y=\"%.1f\">%s</text>\n", LEFT, top - 18, title);
    for (int k = 0; k <= TICKS; k++) {
        const double low = panel == 0 ? panels->low : panels->least;
        const double high = panel == 0 ? panels->high : panels->most;
        const double value = low + (high - low) * k / TICKS, y = y_of(panels, panel, value);
        weft_text_addf(out, "<path d=\"M%d %.1fh-8\" stroke=\"#000\"/>", LEFT, y);
        weft_text_addf(out,
                       "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\" data-tick=\"%.4f\">%.*f%s"
                       "</text>\n",
                       LEFT - 14, y + 9, value, panel == 0 ? 3 : 0,
                       panel == 0 ? value : 100 * value, panel == 0 ? "" : " %");
    }
}

static void add_line(const struct panels *panels, int panel, int32_t which)
{
    const struct weft_case *one = &panels->cases->cases[which];
    struct weft_text *out = panels->out;
    int32_t n = 0;
    const struct weft_case_look look = weft_case_look(panels->cases, which);
    struct mark mark;
    weft_text_add(out, "<path d=\"");
    for (int32_t from = 0; from <= shown_limit(one); from++)
        if (find_mark(one, panels->clock, from, &mark))
            weft_text_addf(out, "%c%.2f %.2f", n++ == 0 ? 'M' : 'L', x_of(panels, mark.share),
                           y_of(panels, panel, panel == 0 ? mark.slower : mark.overlap));
    weft_text_addf(out,
                   "%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"4\" stroke-dasharray=\"%s\"/>"
                   "\n",
                   n == 0 ? "M0 0" : "", look.colour, look.dashes);
    for (int32_t from = 0; from <= shown_limit(one); from++) {
        if (!find_mark(one, panels->clock, from, &mark)) continue;
        weft_text_addf(out, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"7\" fill=\"%s\" data-model=\"",
                       x_of(panels, mark.share),
                       y_of(panels, panel, panel == 0 ? mark.slower : mark.overlap), look.colour);
        weft_svg_add_escaped(out, one->model);
        weft_text_addf(out,
                       "\" data-network=\"%s\" data-policy-limit-bytes=\"%lld\" "
                       "data-step-ns=\"%lld\" data-overlap=\"%.6f\"/>\n",
                       one->network, (long long)mark.point->policy_limit_bytes,
                       (long long)weft_case_step(mark.point, panels->clock), mark.overlap);
    }
}

/* Names of the lines, in columns below the panels. Returns the y after them. */
static double add_legend(const struct panels *panels, double y)
{
    enum { COLUMNS = 3 };
    for (int32_t k = 0; k < panels->cases->n; k++) {
        const struct weft_case *one = &panels->cases->cases[k];
        const struct weft_case_look look = weft_case_look(panels->cases, k);
        const double x = LEFT + (panels->right - LEFT) / COLUMNS * (k % COLUMNS);
        if (k > 0 && k % COLUMNS == 0) y += LINE;
        char limit[WEFT_UNITS_TEXT_BYTES];
        weft_units_show_bytes(one->curves[0].points[shown_limit(one)].limit_bytes, limit);
        weft_text_addf(panels->out,
                       "<path d=\"M%.1f %.1fh60\" stroke=\"%s\" stroke-width=\"4\" "
                       "stroke-dasharray=\"%s\"/><text x=\"%.1f\" y=\"%.1f\">",
                       x, y - 9, look.colour, look.dashes, x + 70, y);
        weft_svg_add_cut(panels->out, one->model, font_size, 200);
        weft_text_addf(panels->out, " x%s, %s</text>\n", one->network, limit);
    }
    return y + LINE;
}

void weft_cases_svg(const struct weft_cases *cases, enum weft_clock_of_case clock,
                    struct weft_text *out)
{
    struct weft_text body;
    struct panels panels = {.cases = cases, .clock = clock, .out = &body, .right = WIDTH - 30};
    weft_text_init(&body);
    find_ranges(&panels);
    add_axis(&panels, 0,
             clock == WEFT_CASE_MEASURED ? "measured step, as a multiple of the joint plan's"
                                         : "step, as a multiple of the joint plan's");
    add_axis(&panels, 1, "communication next to compute");
    for (int panel = 0; panel < 2; panel++)
        for (int32_t k = 0; k < cases->n; k++)
            add_line(&panels, panel, k);
    const double bottom = TOP + 2 * PANEL + BETWEEN;
    weft_text_addf(&body,
                   "<text x=\"%d\" y=\"%.1f\">least memory for policies</text>"
                   "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">all</text>\n",
                   LEFT, bottom + 40, x_of(&panels, 1), bottom + 40);
    const double height = add_legend(&panels, bottom + 100) + 10;
    weft_text_addf(out,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"85mm\" height=\"%.1fmm\" "
                   "viewBox=\"0 0 %d %.0f\" font-family=\"Helvetica,Arial,sans-serif\" "
                   "font-size=\"%.0f\">\n<rect width=\"%d\" height=\"%.0f\" fill=\"#fff\"/>\n",
                   85 * height / WIDTH, WIDTH, height, font_size, WIDTH, height);
    weft_text_append(out, weft_text_chars(&body), body.length);
    weft_text_add(out, "</svg>\n");
    out->failed |= !weft_text_ok(&body);
    weft_text_finish(&body);
}

void weft_cases_gnuplot(const struct weft_cases *cases, struct weft_text *out)
{
    weft_text_add(out, "# gnuplot study.gp writes study.pdf\n"
                       "set terminal pdfcairo size 85mm,110mm font 'Helvetica,7'\n"
                       "set output 'study.pdf'\n"
                       "$study << END\n");
    for (int32_t k = 0; k < cases->n; k++) {
        const struct weft_case *one = &cases->cases[k];
        weft_text_addf(out, "\"%s x%s\"\n", one->model, one->network);
        for (int32_t from = 0; from <= shown_limit(one); from++) {
            struct mark mark;
            if (find_mark(one, WEFT_CASE_SIMULATED, from, &mark))
                weft_text_addf(out, "%.4f %.6f %.6f\n", mark.share, mark.slower,
                               100 * mark.overlap);
        }
        weft_text_add(out, "\n\n");
    }
    weft_text_addf(out,
                   "END\n"
                   "set multiplot layout 2,1\n"
                   "set key outside bottom columns 3\n"
                   "set xlabel 'share of memory for policies'\n"
                   "set ylabel 'step / joint plan'\n"
                   "plot for [i=0:%d] $study index i using 1:2 with linespoints title "
                   "columnheader(1)\n"
                   "set ylabel 'communication next to compute, %%'\n"
                   "plot for [i=0:%d] $study index i using 1:3 with linespoints title "
                   "columnheader(1)\n"
                   "unset multiplot\n",
                   (int)cases->n - 1, (int)cases->n - 1);
}
