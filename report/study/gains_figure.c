/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "report/study/case_look.h"
#include "report/study/svg.h"

/* In tenths of a millimetre of a column of 85 mm, drawn twice as wide. */
enum {
    WIDTH = 1700,
    LEFT = 170,
    RIGHT = WIDTH - 30,
    TOP = 60,
    PANEL = 480,
    LINE = 34,
    TICKS = 5,
    COLUMNS = 3,
    GAP = 60,
    BAND = 200 /* height of the bands of a case */
};
static const double font_size = 28;

/* Gain of the first planner over the best rule at a limit; false if one has no plan. */
static bool find_gain(const struct weft_case *one, int32_t limit, double *gain)
{
    const struct weft_sweep_point *own = &one->curves[0].points[limit];
    const struct weft_sweep_point *rule = weft_case_best_rule(one, limit, WEFT_CASE_SIMULATED);
    if (!own->fits || rule == NULL) return false;
    *gain = (double)rule->step_ns / (double)own->step_ns - 1;
    return true;
}

/* The highest gain of all, rounded up to 5 %. */
static double find_most(const struct weft_cases *cases)
{
    double most = 0.05, gain;
    for (int32_t k = 0; k < cases->n; k++)
        for (int32_t i = 0; i < cases->cases[k].n_limits; i++)
            if (find_gain(&cases->cases[k], i, &gain)) most = fmax(most, gain);
    return ceil(most * 20 - 1e-9) / 20;
}

static double share_of(const struct weft_case *one, int32_t limit)
{
    return one->n_limits > 1 ? (double)limit / (one->n_limits - 1) : 0;
}

static double x_of(double share)
{
    return LEFT + (RIGHT - LEFT) * 0.97 * share;
}

static double y_of(double gain, double most)
{
    return TOP + PANEL * (1 - gain / most);
}

static void add_axis(double most, const char *first, struct weft_text *out)
{
    weft_text_addf(out, "<path d=\"M%d %dv%dH%d\" fill=\"none\" stroke=\"#000\"/>\n", LEFT, TOP,
                   PANEL, RIGHT);
    weft_text_addf(out, "<text x=\"%d\" y=\"%d\">the best rule takes longer than ", LEFT, TOP - 18);
    weft_svg_add_escaped(out, first);
    weft_text_add(out, " by</text>\n");
    for (int k = 0; k <= TICKS; k++) {
        const double gain = most * k / TICKS, y = y_of(gain, most);
        weft_text_addf(out,
                       "<path d=\"M%d %.1fh-8\" stroke=\"#000\"/><text x=\"%d\" y=\"%.1f\" "
                       "text-anchor=\"end\" data-tick=\"%.4f\">%.0f %%</text>\n",
                       LEFT, y, LEFT - 14, y + 9, gain, 100 * gain);
    }
    weft_text_addf(out,
                   "<text x=\"%d\" y=\"%d\">least limit</text><text x=\"%.1f\" y=\"%d\" "
                   "text-anchor=\"end\">limit that helps last</text>\n",
                   LEFT, TOP + PANEL + 40, x_of(1), TOP + PANEL + 40);
}

/* A line that is cut where no rule has a plan. */
static void add_line(const struct weft_cases *cases, int32_t which, double most,
                     struct weft_text *out)
{
    const struct weft_case *one = &cases->cases[which];
    const struct weft_case_look look = weft_case_look(cases, which);
    double gain;
    bool begun = false;
    weft_text_add(out, "<path d=\"M0 0");
    for (int32_t i = 0; i < one->n_limits; i++) {
        const bool known = find_gain(one, i, &gain);
        if (known)
            weft_text_addf(out, "%c%.2f %.2f", begun ? 'L' : 'M', x_of(share_of(one, i)),
                           y_of(gain, most));
        begun = known;
    }
    weft_text_addf(out,
                   "\" fill=\"none\" stroke=\"%s\" stroke-width=\"4\" stroke-dasharray=\"%s\"/>\n",
                   look.colour, look.dashes);
    for (int32_t i = 0; i < one->n_limits; i++) {
        if (!find_gain(one, i, &gain)) continue;
        weft_text_addf(out, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"7\" fill=\"%s\" data-model=\"",
                       x_of(share_of(one, i)), y_of(gain, most), look.colour);
        weft_svg_add_escaped(out, one->model);
        weft_text_addf(out,
                       "\" data-network=\"%s\" data-memory-limit-bytes=\"%lld\" "
                       "data-gain=\"%.6f\"/>\n",
                       one->network, (long long)one->curves[0].points[i].limit_bytes, gain);
    }
}

/* Place and size of a case's bands. */
struct box {
    double x, y, width;
};

/* The band of a policy between two limits next to each other. */
static void add_band(const struct weft_case *one, int32_t limit, int policy, double low[2],
                     const struct box *box, struct weft_text *out)
{
    const struct weft_sweep_point *ends = &one->curves[0].points[limit];
    double high[2], x[2];
    for (int k = 0; k < 2; k++) {
        high[k] = low[k] + ends[k].shares.policies[policy];
        x[k] = box->x + box->width * share_of(one, limit + k);
    }
    if (high[0] > low[0] || high[1] > low[1])
        weft_text_addf(out, "<path d=\"M%.2f %.2fL%.2f %.2fV%.2fL%.2f %.2fZ\" fill=\"%s\"/>\n",
                       x[0], box->y + BAND * (1 - low[0]), x[1], box->y + BAND * (1 - low[1]),
                       box->y + BAND * (1 - high[1]), x[0], box->y + BAND * (1 - high[0]),
                       weft_case_colour(policy));
    low[0] = high[0];
    low[1] = high[1];
}

/* Shares of the first planner's policies. The title has the case's line as a legend. */
static void add_bands(const struct weft_cases *cases, int32_t which, const struct box *box,
                      struct weft_text *out)
{
    const struct weft_case *one = &cases->cases[which];
    const struct weft_case_look look = weft_case_look(cases, which);
    weft_text_addf(out,
                   "<path d=\"M%.1f %.1fh60\" stroke=\"%s\" stroke-width=\"4\" "
                   "stroke-dasharray=\"%s\"/><text x=\"%.1f\" y=\"%.1f\">",
                   box->x, box->y - 23, look.colour, look.dashes, box->x + 70, box->y - 14);
    weft_svg_add_cut(out, one->model, font_size, box->width - 170);
    weft_text_addf(out, " x%s</text>\n<g data-model=\"", one->network);
    weft_svg_add_escaped(out, one->model);
    weft_text_addf(out, "\" data-network=\"%s\">\n", one->network);
    for (int32_t i = 0; i + 1 < one->n_limits; i++) {
        double low[2] = {0, 0};
        if (!one->curves[0].points[i].fits || !one->curves[0].points[i + 1].fits) continue;
        for (int p = WEFT_POLICY_COUNT - 1; p >= 0; p--)
            add_band(one, i, p, low, box, out);
    }
    weft_text_addf(out,
                   "<path d=\"M%.2f %.2fh%.2fv%dh-%.2fz\" fill=\"none\" stroke=\"#000\"/></g>\n",
                   box->x, box->y, box->width, BAND, box->width);
}

static void add_policies(double y, struct weft_text *out)
{
    const double step = (double)(RIGHT - LEFT) / WEFT_POLICY_COUNT;
    for (int p = 0; p < WEFT_POLICY_COUNT; p++)
        weft_text_addf(out,
                       "<path d=\"M%.1f %.1fh24v24h-24z\" fill=\"%s\"/><text x=\"%.1f\" "
                       "y=\"%.1f\">%s</text>\n",
                       LEFT + step * p, y - 22, weft_case_colour(p), LEFT + step * p + 34, y,
                       weft_policy_name((enum weft_policy)p));
}

void weft_cases_gains_svg(const struct weft_cases *cases, struct weft_text *out)
{
    const double most = find_most(cases), top = TOP + PANEL + 130;
    const char *first = cases->cases[0].curves[0].planner;
    struct weft_text body;
    struct box box = {.width = (double)(RIGHT - LEFT - GAP * (COLUMNS - 1)) / COLUMNS};
    weft_text_init(&body);
    add_axis(most, first, &body);
    for (int32_t k = 0; k < cases->n; k++)
        add_line(cases, k, most, &body);
    weft_text_addf(&body, "<text x=\"%d\" y=\"%.1f\">share of parameters by policy of ", LEFT, top);
    weft_svg_add_escaped(&body, first);
    weft_text_add(&body, "</text>\n");
    add_policies(top + LINE + 10, &body);
    for (int32_t k = 0; k < cases->n; k++) {
        box.x = LEFT + (box.width + GAP) * (k % COLUMNS);
        box.y = top + 3 * LINE + (BAND + 2 * LINE) * (int)(k / COLUMNS);
        box.y += LINE;
        add_bands(cases, k, &box, &body);
    }
    const double height = box.y + BAND + 20;
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
