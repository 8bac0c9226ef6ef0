#include <stdio.h>

#include "base/units.h"
#include "report/sweep.h"

/* In pixels of the document. A point without a plan is a cross above the axes. A grid has a row of
 * crosses a curve, so that each is seen: ROWS for all of them, as LINES is for the legend's. */
enum { WIDTH = 900, HEIGHT = 540, LEFT = 80, RIGHT = 660, TOP = 50, BOTTOM = 480, TICKS = 5 };
enum { ROW = 10, ROWS = 120, LINE = 18, LINES = 360 };

/* Told apart also by those who do not see red and green alike (Okabe and Ito 2008). */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#e69f00", "#56b4e9", "#000000", "#7f7f00"};
enum { N_COLOURS = sizeof colours / sizeof *colours };
static const char *const dashes[] = {"", " stroke-dasharray=\"7 3\"", " stroke-dasharray=\"2 3\""};
enum { N_DASHES = sizeof dashes / sizeof *dashes };

/* A grid's curves are in an order, which these have too, for all eyes and in print (viridis, van
 * der Walt and Smith 2015); the lightest of it would not be seen on white. */
static const unsigned char order[][3] = {
    {68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {190, 205, 40}};
enum { N_ORDER = sizeof order / sizeof *order };

struct picture {
    const struct weft_sweep *sweep;
    struct weft_sweep_axes axes;
    struct weft_text *out;
    int top; /* of the axes: below the crosses; TOP without a grid */
};

/* From one row of crosses to the next. */
static double row_height(const struct weft_sweep *sweep)
{
    if (!sweep->grid) return 0;
    return sweep->n_curves * ROW <= ROWS ? ROW : (double)ROWS / sweep->n_curves;
}

struct colour {
    char text[32]; /* "#0072b2" */
};

static struct colour colour_of(const struct picture *picture, int32_t which)
{
    const int32_t n = picture->sweep->n_curves;
    struct colour colour;
    if (!picture->sweep->grid) {
        snprintf(colour.text, sizeof colour.text, "%s", colours[which % N_COLOURS]);
        return colour;
    }
    double place = n > 1 ? (double)which / (n - 1) * (N_ORDER - 1) : 0;
    int from = place < N_ORDER - 1 ? (int)place : N_ORDER - 2;
    unsigned rgb[3];
    for (int i = 0; i < 3; i++)
        rgb[i] = (unsigned)(order[from][i] +
                            (place - from) * (order[from + 1][i] - order[from][i]) + 0.5) &
                 255;
    snprintf(colour.text, sizeof colour.text, "#%02x%02x%02x", rgb[0], rgb[1], rgb[2]);
    return colour;
}

/* The order of a grid is told by its colours alone. */
static const char *dash_of(const struct picture *picture, int32_t which)
{
    return dashes[picture->sweep->grid ? 0 : which / N_COLOURS % N_DASHES];
}

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
    double share = (double)(shown - axes->low) / (double)(axes->high - axes->low);
    return BOTTOM - (BOTTOM - picture->top) * share;
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
    weft_text_addf(out, "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"#333\"/>\n", LEFT,
                   picture->top, BOTTOM, RIGHT);
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
                   (picture->top + BOTTOM) / 2, (picture->top + BOTTOM) / 2);
}

/* Between the bound and a curve's steps: what better planning could still gain. */
static void add_band(const struct picture *picture, int32_t which)
{
    const struct weft_sweep *sweep = picture->sweep;
    const struct weft_sweep_curve *curve = &sweep->curves[which];
    const struct colour colour = colour_of(picture, which);
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
        weft_text_addf(picture->out,
                       "Z\" fill=\"%s\" fill-opacity=\"0.18\" stroke=\"%s\" "
                       "stroke-opacity=\"0.3\"/>\n",
                       colour.text, colour.text);
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
    if (picture->sweep->grid)
        weft_text_addf(out, " data-host-limit-bytes=\"%lld\"", (long long)point->host_limit_bytes);
}

/* A disc; a triangle at the top of what lies above; a cross above all where no plan fits; and a
 * ring where it was measured. */
static void add_point(const struct picture *picture, int32_t which,
                      const struct weft_sweep_point *point)
{
    struct weft_text *out = picture->out;
    const struct colour colour = colour_of(picture, which);
    double x = x_of(picture, weft_sweep_x(picture->sweep, point));
    if (!point->fits) {
        weft_text_addf(out, "<path d=\"M%.1f %.1fl6 6m0-6l-6 6\" stroke=\"%s\" data-fits=\"0\"",
                       x - 3, TOP - 12 + which * row_height(picture->sweep), colour.text);
        add_data(picture, which, point);
        weft_text_add(out, "/>\n");
        return;
    }
    if (point->step_ns > picture->axes.high)
        weft_text_addf(out, "<path d=\"M%.1f %dh8l-4-7z\" fill=\"%s\" data-above=\"1\"", x - 4,
                       picture->top + 4, colour.text);
    else
        weft_text_addf(out, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"3.5\" fill=\"%s\"", x,
                       y_of(picture, point->step_ns), colour.text);
    add_data(picture, which, point);
    weft_text_addf(out, " data-step-ns=\"%lld\"/>\n", (long long)point->step_ns);
    if (point->measured_ns == 0) return;
    weft_text_addf(out, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"5\" fill=\"none\" stroke=\"%s\"", x,
                   y_of(picture, point->measured_ns), colour.text);
    add_data(picture, which, point);
    weft_text_addf(out, " data-measured-step-ns=\"%lld\"/>\n", (long long)point->measured_ns);
}

static void add_curve(const struct picture *picture, int32_t which)
{
    const struct weft_sweep *sweep = picture->sweep;
    const struct weft_sweep_curve *curve = &sweep->curves[which];
    struct weft_text *out = picture->out;
    const struct colour colour = colour_of(picture, which);
    bool joined = false;
    if (sweep->split && curve->n_points == 1 && curve->points[0].fits)
        weft_text_addf(out, "<path d=\"M%d %.1fH%d\" stroke=\"%s\" stroke-width=\"2\"/>\n", LEFT,
                       y_of(picture, curve->points[0].step_ns), RIGHT, colour.text);
    for (int32_t i = 0; i < curve->n_points; i++) {
        const struct weft_sweep_point *point = &curve->points[i];
        if (!point->fits) continue;
        weft_text_addf(out, "%s%.1f %.1f", joined ? "L" : "<path d=\"M",
                       x_of(picture, weft_sweep_x(sweep, point)), y_of(picture, point->step_ns));
        joined = true;
    }
    if (joined)
        weft_text_addf(out, "\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s/>\n", colour.text,
                       dash_of(picture, which));
    for (int32_t i = 0; i < curve->n_points; i++)
        add_point(picture, which, &curve->points[i]);
}

/* A line for each curve on the right, and what the other signs are. */
static void add_legend(const struct picture *picture)
{
    const struct weft_sweep *sweep = picture->sweep;
    struct weft_text *out = picture->out;
    char name[WEFT_UNITS_TEXT_BYTES];
    const int32_t n = sweep->n_curves;
    const double line = n * LINE <= LINES ? LINE : (double)LINES / n;
    const int x = RIGHT + 30;
    double y = TOP + 10;
    if (sweep->grid) {
        weft_text_addf(out, "<text x=\"%d\" y=\"%.1f\">limit of the host's memory</text>\n", x,
                       y + 4);
        y += LINE;
    }
    for (int32_t c = 0; c < n; c++, y += line) {
        weft_text_addf(out,
                       "<path d=\"M%d %.1fh24\" stroke=\"%s\" stroke-width=\"2\"%s/><text "
                       "x=\"%d\" y=\"%.1f\">",
                       x, y, colour_of(picture, c).text, dash_of(picture, c), x + 32, y + 4);
        add_escaped(out, weft_sweep_name(sweep, c, name));
        weft_text_add(out, "</text>\n");
    }
    weft_text_addf(out,
                   "<path d=\"M%d %.1fh24v10h-24z\" fill=\"%s\" fill-opacity=\"0.18\"/><text "
                   "x=\"%d\" y=\"%.1f\">above the proven bound</text>\n",
                   x, y - 5, colour_of(picture, 0).text, x + 32, y + 4);
    weft_text_addf(out,
                   "<text x=\"%d\" y=\"%.1f\">x&#160; no plan fits</text>\n"
                   "<text x=\"%d\" y=\"%.1f\">o&#160; measured%s</text>\n",
                   x, y + 22, x, y + 40, sweep->emulated ? ", emulated link" : "");
}

void weft_sweep_svg(const struct weft_sweep *sweep, struct weft_text *out)
{
    struct picture picture = {.sweep = sweep, .out = out};
    picture.top = TOP + (int)((sweep->n_curves - 1) * row_height(sweep));
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
    if (sweep->grid) weft_text_add(out, ", planner ");
    if (sweep->grid) add_escaped(out, sweep->curves[0].planner);
    weft_text_add(out, "</text>\n");
    if (any) {
        add_axes(&picture);
        for (int32_t c = sweep->grid ? sweep->n_curves - 1 : 0; c >= 0; c--)
            add_band(&picture, c);
        for (int32_t c = sweep->n_curves - 1; c >= 0; c--)
            add_curve(&picture, c);
        add_legend(&picture);
    } else {
        weft_text_addf(out, "<text x=\"%d\" y=\"%d\">no plan fits anywhere</text>\n", LEFT, TOP);
    }
    weft_text_add(out, "</svg>\n");
}
