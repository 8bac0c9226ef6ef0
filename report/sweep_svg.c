#include "base/units.h"
#include "report/sweep.h"

/* In pixels of the document. */
enum { WIDTH = 900, HEIGHT = 540, LEFT = 80, RIGHT = 660, TOP = 50, BOTTOM = 480, TICKS = 5 };

/* Told apart also by those who do not see red and green alike (Okabe and Ito 2008). */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#e69f00", "#56b4e9", "#000000", "#7f7f00"};
enum { N_COLOURS = sizeof colours / sizeof *colours };
static const char *const dashes[] = {"", " stroke-dasharray=\"7 3\"", " stroke-dasharray=\"2 3\""};
enum { N_DASHES = sizeof dashes / sizeof *dashes };

struct picture {
    const struct weft_sweep *sweep;
    struct weft_sweep_axes axes;
    struct weft_text *out;
};

static double x_of(const struct picture *picture, int64_t bytes)
{
    const struct weft_sweep_axes *axes = &picture->axes;
    return LEFT +
           (RIGHT - LEFT) * (double)(bytes - axes->left) / (double)(axes->right - axes->left);
}

static double y_of(const struct picture *picture, int64_t ns)
{
    const struct weft_sweep_axes *axes = &picture->axes;
    int64_t shown = ns > axes->high ? axes->high : ns < axes->low ? axes->low : ns;
    return BOTTOM - (BOTTOM - TOP) * (double)(shown - axes->low) / (double)(axes->high - axes->low);
}

static void add_escaped(struct weft_text *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            weft_text_add(out, "&lt;");
        else if (*text == '&')
            weft_text_add(out, "&amp;");
        else
            weft_text_append(out, text, 1);
    }
}

static void add_axes(const struct picture *picture)
{
    struct weft_text *out = picture->out;
    const struct weft_sweep_axes *axes = &picture->axes;
    char text[WEFT_UNITS_TEXT_BYTES];
    weft_text_addf(out, "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"#333\"/>\n", LEFT, TOP,
                   BOTTOM, RIGHT);
    for (int i = 0; i <= TICKS; i++) {
        int64_t bytes = axes->left + (axes->right - axes->left) / TICKS * i;
        int64_t ns = axes->low + (axes->high - axes->low) / TICKS * i;
        double x = x_of(picture, bytes), y = y_of(picture, ns);
        weft_text_addf(out,
                       "<path d=\"M%.2f %dv5\" stroke=\"#333\"/><text x=\"%.2f\" y=\"%d\" "
                       "text-anchor=\"middle\" data-bytes=\"%lld\">%s</text>\n",
                       x, BOTTOM, x, BOTTOM + 20, (long long)bytes,
                       weft_units_show_bytes(bytes, text));
        weft_text_addf(out,
                       "<path d=\"M%d %.2fH%d\" stroke=\"#ddd\"/><text x=\"%d\" y=\"%.2f\" "
                       "text-anchor=\"end\" data-ns=\"%lld\">%s%s</text>\n",
                       LEFT, y, RIGHT, LEFT - 8, y + 4, (long long)ns,
                       axes->cut && i == TICKS ? "&gt; " : "", weft_units_show_ns(ns, text));
    }
    weft_text_addf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                   (LEFT + RIGHT) / 2, BOTTOM + 44,
                   picture->sweep->split ? "memory that policies were chosen within"
                                         : "memory limit of a rank");
    weft_text_addf(out,
                   "<text x=\"20\" y=\"%d\" text-anchor=\"middle\" transform=\"rotate(-90 20 "
                   "%d)\">step time</text>\n",
                   (TOP + BOTTOM) / 2, (TOP + BOTTOM) / 2);
}

/* Between the bound and the first planner's steps: what better planning could still gain. */
static void add_band(const struct picture *picture)
{
    const struct weft_sweep *sweep = picture->sweep;
    const struct weft_sweep_curve *curve = &sweep->curves[0];
    int32_t n = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t k = 0; k < curve->n_points; k++) {
            int32_t i = pass == 0 ? k : curve->n_points - 1 - k;
            const struct weft_sweep_point *point = &curve->points[i];
            int64_t bound_ns = weft_sweep_bound(sweep, point);
            if (!point->fits || bound_ns <= 0) continue;
            weft_text_addf(picture->out, "%s%.1f %.1f", n++ == 0 ? "<path d=\"M" : "L",
                           x_of(picture, weft_sweep_x(sweep, point)),
                           y_of(picture, pass == 0 ? point->step_ns : bound_ns));
        }
    }
    if (n > 0)
        weft_text_add(picture->out, "Z\" fill=\"#0072b2\" fill-opacity=\"0.18\" "
                                    "stroke=\"#0072b2\" stroke-opacity=\"0.3\"/>\n");
}

/* Which point of the CSV an element is. */
static void add_data(const struct picture *picture, int32_t which,
                     const struct weft_sweep_point *point)
{
    struct weft_text *out = picture->out;
    weft_text_add(out, " data-planner=\"");
    add_escaped(out, picture->sweep->curves[which].planner);
    weft_text_addf(out, "\" data-memory-limit-bytes=\"%lld\"", (long long)point->limit_bytes);
    if (point->policy_limit_bytes > 0)
        weft_text_addf(out, " data-policy-limit-bytes=\"%lld\"",
                       (long long)point->policy_limit_bytes);
}

/* A disc; a triangle at the top of what lies above; a cross above all where no plan fits; and a
 * ring where it was measured. */
static void add_point(const struct picture *picture, int32_t which,
                      const struct weft_sweep_point *point)
{
    struct weft_text *out = picture->out;
    const char *colour = colours[which % N_COLOURS];
    double x = x_of(picture, weft_sweep_x(picture->sweep, point));
    if (!point->fits) {
        weft_text_addf(out, "<path d=\"M%.1f %dl6 6m0-6l-6 6\" stroke=\"%s\" data-fits=\"0\"",
                       x - 3, TOP - 12, colour);
        add_data(picture, which, point);
        weft_text_add(out, "/>\n");
        return;
    }
    if (point->step_ns > picture->axes.high)
        weft_text_addf(out, "<path d=\"M%.1f %dh8l-4-7z\" fill=\"%s\" data-above=\"1\"", x - 4,
                       TOP + 4, colour);
    else
        weft_text_addf(out, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"3.5\" fill=\"%s\"", x,
                       y_of(picture, point->step_ns), colour);
    add_data(picture, which, point);
    weft_text_addf(out, " data-step-ns=\"%lld\"/>\n", (long long)point->step_ns);
    if (point->measured_ns == 0) return;
    weft_text_addf(out, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"5\" fill=\"none\" stroke=\"%s\"", x,
                   y_of(picture, point->measured_ns), colour);
    add_data(picture, which, point);
    weft_text_addf(out, " data-measured-step-ns=\"%lld\"/>\n", (long long)point->measured_ns);
}

static void add_curve(const struct picture *picture, int32_t which)
{
    const struct weft_sweep *sweep = picture->sweep;
    const struct weft_sweep_curve *curve = &sweep->curves[which];
    struct weft_text *out = picture->out;
    const char *colour = colours[which % N_COLOURS];
    bool joined = false;
    if (sweep->split && curve->n_points == 1 && curve->points[0].fits)
        weft_text_addf(out, "<path d=\"M%d %.1fH%d\" stroke=\"%s\" stroke-width=\"2\"/>\n", LEFT,
                       y_of(picture, curve->points[0].step_ns), RIGHT, colour);
    for (int32_t i = 0; i < curve->n_points; i++) {
        const struct weft_sweep_point *point = &curve->points[i];
        if (!point->fits) continue;
        weft_text_addf(out, "%s%.1f %.1f", joined ? "L" : "<path d=\"M",
                       x_of(picture, weft_sweep_x(sweep, point)), y_of(picture, point->step_ns));
        joined = true;
    }
    if (joined)
        weft_text_addf(out, "\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s/>\n", colour,
                       dashes[which / N_COLOURS % N_DASHES]);
    for (int32_t i = 0; i < curve->n_points; i++)
        add_point(picture, which, &curve->points[i]);
}

/* A line for each curve on the right, and what the other signs are. */
static void add_legend(const struct picture *picture)
{
    struct weft_text *out = picture->out;
    int y = TOP + 10, x = RIGHT + 30;
    for (int32_t c = 0; c < picture->sweep->n_curves; c++, y += 18) {
        weft_text_addf(out,
                       "<path d=\"M%d %dh24\" stroke=\"%s\" stroke-width=\"2\"%s/><text x=\"%d\" "
                       "y=\"%d\">",
                       x, y, colours[c % N_COLOURS], dashes[c / N_COLOURS % N_DASHES], x + 32,
                       y + 4);
        add_escaped(out, picture->sweep->curves[c].planner);
        weft_text_add(out, "</text>\n");
    }
    weft_text_addf(out,
                   "<path d=\"M%d %dh24v10h-24z\" fill=\"#0072b2\" fill-opacity=\"0.18\"/><text "
                   "x=\"%d\" y=\"%d\">above the proven bound</text>\n",
                   x, y - 5, x + 32, y + 4);
    weft_text_addf(out,
                   "<text x=\"%d\" y=\"%d\">x&#160; no plan fits</text>\n"
                   "<text x=\"%d\" y=\"%d\">o&#160; measured%s</text>\n",
                   x, y + 22, x, y + 40, picture->sweep->emulated ? ", emulated link" : "");
}

void weft_sweep_svg(const struct weft_sweep *sweep, struct weft_text *out)
{
    struct picture picture = {.sweep = sweep, .out = out};
    bool any = weft_sweep_axes(sweep, true, &picture.axes);
    weft_text_addf(out,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                   "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
                   "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n<text x=\"%d\" y=\"24\" "
                   "font-size=\"15\">",
                   WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT);
    add_escaped(out, sweep->config);
    weft_text_addf(out, ", %lld ranks, times ", (long long)sweep->ranks);
    add_escaped(out, sweep->times);
    weft_text_add(out, "</text>\n");
    if (any) {
        add_axes(&picture);
        add_band(&picture);
        for (int32_t c = sweep->n_curves - 1; c >= 0; c--)
            add_curve(&picture, c);
        add_legend(&picture);
    } else {
        weft_text_addf(out, "<text x=\"%d\" y=\"%d\">no plan fits anywhere</text>\n", LEFT, TOP);
    }
    weft_text_add(out, "</svg>\n");
}
