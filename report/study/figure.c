/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "report/study/stairs.h"
#include "report/study/svg.h"
#include "report/study/ticks.h"

/* Tenths of a millimetre at the width of a column, 85 mm. FONT is 6.5 pt there, and no text is
 * smaller. The document is drawn at SCALE times that width. */
enum { WIDTH = 850, LEFT = 112, MARGIN = 14, LEAST_HEIGHT = 400, LINE = 29, LABEL_GAP = 26 };
enum { TICK = 8, TICKS = 6, SCALE = 2, LEADER = 24, SIGN = 9, STRIP = 25 };
#define BOUND_STYLE "fill=\"none\" stroke=\"#000\" stroke-width=\"2.5\" stroke-dasharray=\"2 5\""
static const double font_size = 23, title_size = 26;

/* Distinct for readers with red-green blindness too (Okabe and Ito 2008). */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#000000", "#56b4e9", "#e69f00"};
/* In print without colours, dashes and marks tell lines apart: 40 pairs. */
static const char *const dashes[] = {"", "14 5", "6 4", "14 4 3 4", "22 4 3 4 3 4"};
static const char *const marks[] = {
    "m-7 0a7 7 0 1 0 14 0a7 7 0 1 0-14 0z", /* a disc, a square, a triangle and a diamond */
    "m-6-6h12v12h-12z",
    "m-7 6h14l-7-13z",
    "m0-9l8 9l-8 9l-8-9z",
};
enum { N_COLOURS = 7, N_DASHES = 5, N_MARKS = 4 };

/* A grid's curves are ordered, and so are these colours, for all eyes and in print (viridis, van
 * der Walt and Smith 2015). Its lightest part is left out, since white would hide it. */
static const unsigned char order[][3] = {{68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}};
enum { N_ORDER = 4 };

struct figure {
    const struct weft_sweep *sweep;
    struct weft_text *out;
    struct weft_pool pool;
    int64_t left, right, low, high; /* bytes and ns at the ends of the axes */
    int64_t infeasible;             /* no plan takes less bytes */
    struct weft_ticks bytes, ns;
    double top, bottom, end;     /* of the axes; end: the right one */
    bool above, measured, apart; /* some step is above the axes; was measured; a bound is drawn */
    struct weft_sweep_stairs *stairs; /* [n_curves] */
    struct weft_sweep_stairs best;    /* of all curves; of a grid, the last one's */
};

enum { COLOUR_BYTES = 32 };

/* Returns a curve's colour, such as "#0072b2". */
static const char *show_colour(const struct figure *figure, int32_t which, char text[COLOUR_BYTES])
{
    const int32_t n = figure->sweep->n_curves;
    if (!figure->sweep->grid) return colours[which % N_COLOURS];
    double place = n > 1 ? (double)which / (n - 1) * (N_ORDER - 1) : 0;
    int from = place < N_ORDER - 1 ? (int)place : N_ORDER - 2;
    unsigned rgb[3];
    for (int i = 0; i < 3; i++)
        rgb[i] = (unsigned)(order[from][i] +
                            (place - from) * (order[from + 1][i] - order[from][i]) + 0.5) &
                 255;
    snprintf(text, COLOUR_BYTES, "#%02x%02x%02x", rgb[0], rgb[1], rgb[2]);
    return text;
}

static double x_of(const struct figure *figure, int64_t bytes)
{
    const double share = (double)(bytes - figure->left) / (double)(figure->right - figure->left);
    return LEFT + (figure->end - LEFT) * share;
}

/* Times above the axes are at their top. */
static double y_of(const struct figure *figure, int64_t ns)
{
    const int64_t shown = ns > figure->high ? figure->high : ns;
    const double share = (double)(shown - figure->low) / (double)(figure->high - figure->low);
    return figure->bottom - (figure->bottom - figure->top) * share;
}

/* From the least memory of any plan, with room for the part before it, to the largest limit. */
static void range_bytes(struct figure *figure, const struct weft_sweep_axes *axes)
{
    const int64_t least = figure->sweep->least_bytes;
    const int64_t first = least > 0 && least < axes->left ? least : axes->left;
    figure->right = axes->right > first ? axes->right : first + 1;
    figure->left = first - (figure->right - first) / 12;
    if (figure->left < 0) figure->left = 0;
    figure->infeasible = least > 0 ? first : figure->left;
    figure->bytes = weft_ticks_choose(weft_byte_ticks, figure->left, figure->right, TICKS);
}

/* From a tick to a tick. The axis begins at 0 where that leaves more than half of it to the lines,
 * otherwise less than two steps below the least time. */
static void range_ns(struct figure *figure, const struct weft_sweep_axes *axes)
{
    const int64_t low = axes->low < axes->high / 5 * 2 ? 0 : axes->low;
    struct weft_ticks *ticks = &figure->ns;
    *ticks = weft_ticks_choose(weft_time_ticks, low, axes->high, TICKS);
    figure->low = low / ticks->step * ticks->step;
    if (low - figure->low < ticks->step / 4 && figure->low > 0) figure->low -= ticks->step;
    figure->high = axes->high / ticks->step * ticks->step;
    if (figure->high < axes->high) figure->high += ticks->step;
    ticks->first = figure->low;
    ticks->n = (int32_t)((figure->high - figure->low) / ticks->step) + 1;
}

static void add_axes(const struct figure *figure)
{
    struct weft_text *out = figure->out;
    const struct weft_ticks *bytes = &figure->bytes, *ns = &figure->ns;
    const double middle = (figure->top + figure->bottom) / 2;
    for (int32_t i = 0; i < ns->n; i++) {
        const int64_t value = ns->first + i * ns->step;
        const double y = y_of(figure, value);
        weft_text_addf(out,
                       "<path d=\"M%d %.2fH%.2f\" stroke=\"#bbb\" stroke-width=\"1\" "
                       "data-ns=\"%lld\"/><text x=\"%d\" y=\"%.2f\" "
                       "text-anchor=\"end\">%lld</text>\n",
                       LEFT - TICK, y, figure->end, (long long)value, LEFT - TICK - 5, y + 8,
                       (long long)(value / ns->unit->size));
    }
    for (int32_t i = 0; i < bytes->n; i++) {
        const int64_t value = bytes->first + i * bytes->step;
        const double x = x_of(figure, value);
        weft_text_addf(out,
                       "<path d=\"M%.2f %.2fv%d\" stroke=\"#000\" stroke-width=\"2\" "
                       "data-bytes=\"%lld\"/><text x=\"%.2f\" y=\"%.2f\" "
                       "text-anchor=\"middle\">%lld</text>\n",
                       x, figure->bottom, TICK, (long long)value, x, figure->bottom + 33,
                       (long long)(value / bytes->unit->size));
    }
    weft_text_addf(out,
                   "<path d=\"M%d %.2fV%.2fH%.2f\" fill=\"none\" stroke=\"#000\" "
                   "stroke-width=\"2\"/>\n",
                   LEFT, figure->top, figure->bottom, figure->end);
    weft_text_addf(out, "<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"middle\">%s (%s)</text>\n",
                   (LEFT + figure->end) / 2, figure->bottom + 64,
                   figure->sweep->split ? "memory that policies were chosen within"
                                        : "memory limit per rank",
                   bytes->unit->name);
    weft_text_addf(out,
                   "<text x=\"24\" y=\"%.2f\" text-anchor=\"middle\" transform=\"rotate(-90 24 "
                   "%.2f)\">step time (%s)",
                   middle, middle, ns->unit->name);
    if (figure->low > 0)
        weft_text_addf(out, ", axis begins at %lld", (long long)(figure->low / ns->unit->size));
    weft_text_add(out, "</text>\n");
}

/* The bound for a curve's plans within a limit; 0: none is proven. A split has one limit. */
static int64_t bound_within(const struct figure *figure, int32_t which, int64_t bytes)
{
    const struct weft_sweep_curve *curve = &figure->sweep->curves[which];
    for (int32_t i = 0; i < curve->n_points; i++)
        if (figure->sweep->split || curve->points[i].limit_bytes >= bytes)
            return weft_sweep_bound(figure->sweep, &curve->points[i]);
    return 0;
}

/* The step of the plans that take at most so much; 0: there is none. */
static int64_t step_within(const struct weft_sweep_stairs *stairs, int64_t bytes)
{
    int64_t ns = 0;
    for (int32_t i = 0; i < stairs->n && stairs->corners[i].bytes <= bytes; i++)
        ns = stairs->corners[i].ns;
    return ns;
}

/* The next memory at which a curve's bound or the stairs (NULL: none) change, or the right end. */
static int64_t find_corner(const struct figure *figure, int32_t which,
                           const struct weft_sweep_stairs *stairs, int64_t from)
{
    const struct weft_sweep_curve *curve = &figure->sweep->curves[which];
    int64_t to = figure->right;
    for (int32_t i = 0; i < curve->n_points && !figure->sweep->split; i++)
        if (curve->points[i].limit_bytes > from && curve->points[i].limit_bytes < to)
            to = curve->points[i].limit_bytes;
    for (int32_t i = 0; stairs && i < stairs->n; i++)
        if (stairs->corners[i].bytes > from && stairs->corners[i].bytes < to)
            to = stairs->corners[i].bytes;
    return to;
}

/* Adds upright words on the grey ground, which keep lines away from them. The ground is a text of
 * its own below the words, since not every renderer knows paint-order. */
static void add_on_ground(const struct figure *figure, double x, double y, const char *words)
{
    static const char *const styles[] = {
        " stroke=\"#e4e4e4\" stroke-width=\"6\" aria-hidden=\"true\"", ""};
    for (int i = 0; i < 2; i++)
        weft_text_addf(figure->out,
                       "<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"middle\"%s "
                       "transform=\"rotate(-90 %.2f %.2f)\">%s</text>\n",
                       x, y, styles[i], x, y, words);
}

/* Shades the part where no plan can be: less memory than any plan takes, and steps below the
 * curve's bound. */
static void add_infeasible(const struct figure *figure, int32_t which)
{
    struct weft_text *out = figure->out;
    const double x = x_of(figure, figure->infeasible);
    weft_text_addf(out, "<path d=\"M%d %.2fH%.2f", LEFT, figure->top, x);
    for (int64_t from = figure->infeasible, to; from < figure->right; from = to) {
        to = find_corner(figure, which, NULL, from);
        const int64_t ns = bound_within(figure, which, to);
        weft_text_addf(out, "V%.2fH%.2f", ns > 0 ? y_of(figure, ns) : figure->bottom,
                       x_of(figure, to));
    }
    weft_text_addf(out, "V%.2fH%dZ\" fill=\"#e4e4e4\" data-infeasible-bytes=\"%lld\"/>\n",
                   figure->bottom, LEFT, (long long)figure->infeasible);
    if (x - LEFT < STRIP) return;
    add_on_ground(figure, (x + LEFT) / 2 + 8, (figure->top + figure->bottom) / 2, "no plan fits");
}

/* Adds a dotted line where the curve's bound can be told from the stairs above it. Returns the y at
 * which it ends at the right edge; negative if it ends before. */
static double add_bound(struct figure *figure, int32_t which,
                        const struct weft_sweep_stairs *stairs)
{
    static const double told_apart = 4;
    struct weft_text *out = figure->out;
    double ends = -1;
    int64_t before = -1, from = stairs->n > 0 ? stairs->corners[0].bytes : figure->right;
    for (int64_t to; from < figure->right; from = to) {
        to = find_corner(figure, which, stairs, from);
        const int64_t bound_ns = bound_within(figure, which, to);
        const double y = y_of(figure, bound_ns);
        if (bound_ns == 0 || y - y_of(figure, step_within(stairs, from)) < told_apart) continue;
        if (before < 0) weft_text_add(out, "<path d=\"");
        if (before != from) weft_text_addf(out, "M%.2f ", x_of(figure, from));
        weft_text_addf(out, "%s%.2fH%.2f", before == from ? "V" : "", y, x_of(figure, to));
        before = to;
        if (to == figure->right) ends = y;
    }
    if (before >= 0) weft_text_add(out, "\" " BOUND_STYLE " data-bound=\"1\"/>\n");
    figure->apart |= before >= 0;
    return ends;
}

/* The shape of a curve's marks, and their fill. */
static void add_mark(const struct figure *figure, int32_t which, double x, double y)
{
    char text[COLOUR_BYTES];
    const char *colour = show_colour(figure, which, text);
    weft_text_addf(figure->out,
                   "<path transform=\"translate(%.2f %.2f)\" d=\"%s\" fill=\"%s\" stroke=\"%s\" "
                   "stroke-width=\"2\"",
                   x, y, marks[which % N_MARKS], which / N_MARKS % 2 == 1 ? "#fff" : colour,
                   colour);
}

/* The curve's mark, or an arrow at the top of the axes if the step lies above. A ring has a small
 * mark where the step was measured. */
static void add_point(struct figure *figure, int32_t which, const struct weft_sweep_point *point)
{
    struct weft_text *out = figure->out;
    char text[COLOUR_BYTES];
    const char *colour = show_colour(figure, which, text);
    const double x = x_of(figure, weft_sweep_x(figure->sweep, point));
    const bool above = point->step_ns > figure->high;
    if (above)
        weft_text_addf(out,
                       "<path transform=\"translate(%.2f %.2f)\" d=\"m-7 14l7-12l7 12m-7-12v22\" "
                       "fill=\"none\" stroke=\"%s\" stroke-width=\"2\" data-above=\"1\"",
                       x, figure->top, colour);
    else
        add_mark(figure, which, x, y_of(figure, point->step_ns));
    weft_sweep_add_data(figure->sweep, which, point, "step_ns", out);
    weft_text_add(out, "/>\n");
    figure->above |= above;
    if (point->measured_ns == 0) return;
    weft_text_addf(out,
                   "<path transform=\"translate(%.2f %.2f)\" d=\"m-11 0a11 11 0 1 0 22 0a11 11 0 1 "
                   "0-22 0z\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"",
                   x, y_of(figure, point->measured_ns), colour);
    weft_sweep_add_data(figure->sweep, which, point, "measured_step_ns", out);
    weft_text_addf(out,
                   "/><path transform=\"translate(%.2f %.2f) scale(0.6)\" d=\"%s\" "
                   "fill=\"%s\"/>\n",
                   x, y_of(figure, point->measured_ns), marks[which % N_MARKS], colour);
    figure->measured = true;
}

/* The staircase of a curve, from its first step within the axes to their right end. */
static void add_stairs(const struct figure *figure, int32_t which)
{
    const struct weft_sweep_stairs *stairs = &figure->stairs[which];
    struct weft_text *out = figure->out;
    char colour[COLOUR_BYTES];
    int32_t first = 0;
    while (first < stairs->n && stairs->corners[first].ns > figure->high)
        first++;
    if (first == stairs->n) return;
    weft_text_addf(out, "<path d=\"M%.2f %.2f", x_of(figure, stairs->corners[first].bytes),
                   first > 0 ? figure->top : y_of(figure, stairs->corners[first].ns));
    for (int32_t i = first; i < stairs->n; i++) {
        if (i > first) weft_text_addf(out, "H%.2f", x_of(figure, stairs->corners[i].bytes));
        if (i > 0) weft_text_addf(out, "V%.2f", y_of(figure, stairs->corners[i].ns));
    }
    weft_text_addf(out, "H%.2f\" fill=\"none\" stroke=\"%s\" stroke-width=\"%d\"", figure->end,
                   show_colour(figure, which, colour), which == 0 ? 5 : 3);
    if (dashes[which % N_DASHES][0])
        weft_text_addf(out, " stroke-dasharray=\"%s\"", dashes[which % N_DASHES]);
    weft_text_add(out, " data-curve=\"");
    weft_svg_add_escaped(out, figure->sweep->curves[which].planner);
    weft_text_add(out, "\"/>\n");
}

/* The name at the end of a line. */
struct label {
    double y;
    int32_t curve; /* n_curves: the bound */
};

static int compare_labels(const void *left, const void *right)
{
    const struct label *a = left, *b = right;
    if (a->y != b->y) return a->y < b->y ? -1 : 1;
    return a->curve - b->curve;
}

static const char bound_name[] = "bound";

/* Width of the labels, at most two fifths of the page. */
static double width_of_labels(const struct weft_sweep *sweep)
{
    char text[WEFT_UNITS_TEXT_BYTES];
    double width = weft_svg_width(bound_name, font_size);
    for (int32_t c = 0; c < sweep->n_curves; c++) {
        const double one = weft_svg_width(weft_sweep_name(sweep, c, text), font_size);
        if (one > width) width = one;
    }
    width += LEADER + 2 * SIGN + MARGIN + 6;
    return width < WIDTH * 0.4 ? width : WIDTH * 0.4;
}

/* Names at the ends of the lines, apart from one another, each after its mark. */
static void add_labels(struct figure *figure, double bound_y)
{
    const struct weft_sweep *sweep = figure->sweep;
    struct weft_text *out = figure->out;
    char name[WEFT_UNITS_TEXT_BYTES];
    const size_t most = (size_t)sweep->n_curves + 1;
    struct label *labels = weft_pool_array(&figure->pool, most, sizeof *labels);
    double *places = weft_pool_array(&figure->pool, most, sizeof *places);
    int32_t n = 0;
    if (!labels || !places) {
        out->failed = true;
        return;
    }
    for (int32_t c = 0; c < sweep->n_curves; c++) {
        const struct weft_sweep_stairs *stairs = &figure->stairs[c];
        if (stairs->n > 0)
            labels[n++] = (struct label){y_of(figure, stairs->corners[stairs->n - 1].ns), c};
    }
    if (bound_y >= 0) labels[n++] = (struct label){bound_y, sweep->n_curves};
    qsort(labels, (size_t)n, sizeof *labels, compare_labels);
    for (int32_t i = 0; i < n; i++)
        places[i] = labels[i].y;
    weft_sweep_spread(places, n, LABEL_GAP, figure->top, figure->bottom);
    for (int32_t i = 0; i < n; i++) {
        const int32_t c = labels[i].curve;
        const double x = figure->end + LEADER + SIGN, text_x = x + SIGN + 4;
        weft_text_addf(out,
                       "<path d=\"M%.2f %.2fL%.2f %.2f\" fill=\"none\" stroke=\"#888\" "
                       "stroke-width=\"1.5\"/>\n",
                       figure->end + SIGN, labels[i].y, x - SIGN, places[i]);
        if (c < sweep->n_curves) {
            add_mark(figure, c, x, places[i]);
            weft_text_add(out, "/>");
        } else {
            weft_text_addf(out, "<path d=\"M%.2f %.2fh%d\" " BOUND_STYLE "/>", x - SIGN, places[i],
                           2 * SIGN);
        }
        weft_text_addf(out, "<text x=\"%.2f\" y=\"%.2f\">", text_x, places[i] + 8);
        weft_svg_add_cut(out, c < sweep->n_curves ? weft_sweep_name(sweep, c, name) : bound_name,
                         font_size, WIDTH - text_x);
        weft_text_add(out, "</text>\n");
    }
}

/* Explains the signs and names the planners without a line. */
static void write_notes(const struct figure *figure, struct weft_text *notes)
{
    const struct weft_sweep *sweep = figure->sweep;
    int32_t n = 0;
    weft_text_addf(notes, "Shaded: no plan fits%s",
                   weft_sweep_bound(sweep, &sweep->curves[0].points[0]) > 0
                       ? ", or a bound proves that none is as fast"
                       : "");
    if (figure->apart) weft_text_add(notes, ". Dotted: bound");
    if (figure->above) weft_text_add(notes, ". Arrow: above the axis");
    if (figure->measured)
        weft_text_addf(notes, ". In rings: measured%s", sweep->emulated ? ", emulated link" : "");
    if (sweep->grid)
        weft_text_addf(notes, ". Labels: memory of the host; planner %s", sweep->curves[0].planner);
    for (int32_t c = 0; c < sweep->n_curves; c++)
        if (figure->stairs[c].n == 0 && !sweep->grid)
            weft_text_addf(notes, "%s%s", n++ == 0 ? ". No plan within these limits: " : ", ",
                           sweep->curves[c].planner);
    weft_text_add(notes, ".");
}

static void add_figure(struct figure *figure)
{
    const struct weft_sweep *sweep = figure->sweep;
    const int32_t judged = sweep->grid ? sweep->n_curves - 1 : 0;
    double bound_y = -1;
    add_infeasible(figure, judged);
    add_axes(figure);
    for (int32_t c = 0; c <= judged; c++) {
        const struct weft_sweep_stairs *plans = sweep->grid ? &figure->stairs[c] : &figure->best;
        bound_y = fmax(bound_y, add_bound(figure, c, plans));
    }
    for (int32_t c = sweep->n_curves - 1; c >= 0; c--)
        add_stairs(figure, c);
    for (int32_t c = sweep->n_curves - 1; c >= 0; c--)
        for (int32_t i = 0; i < sweep->curves[c].n_points; i++)
            if (sweep->curves[c].points[i].fits) add_point(figure, c, &sweep->curves[c].points[i]);
    add_labels(figure, bound_y);
}

/* The title, each of its lines broken where the page ends; the first is larger. */
static void add_title(const struct figure *figure, double *y)
{
    const char *line = figure->sweep->title;
    *y = MARGIN + title_size * 0.8;
    for (bool first = true; *line; first = false) {
        char one[512];
        const size_t length = strcspn(line, "\n");
        snprintf(one, sizeof one, "%.*s", (int)length, line);
        weft_svg_add_lines(figure->out, one, first ? 1.1 * title_size : font_size,
                           WIDTH - 2 * MARGIN, MARGIN, y, LINE,
                           first ? " font-size=\"26\" font-weight=\"bold\"" : "");
        line += length + (line[length] == '\n');
    }
}

/* The joint plan of a split holds for the whole limit. */
static void spread_joint(struct figure *figure)
{
    const struct weft_sweep *sweep = figure->sweep;
    for (int32_t c = 0; sweep->split && c < sweep->n_curves; c++)
        if (sweep->curves[c].n_points == 1 && figure->stairs[c].n == 1)
            figure->stairs[c].corners[0].bytes = figure->left;
    if (sweep->split && figure->best.n == 1) figure->best.corners[0].bytes = figure->left;
}

/* All that is drawn; *height is that of the page. */
static void draw_figure(struct figure *figure, double *height)
{
    const struct weft_sweep *sweep = figure->sweep;
    struct weft_sweep_axes axes;
    struct weft_text notes;
    double y;
    weft_text_init(&notes);
    add_title(figure, &y);
    if (weft_sweep_axes(sweep, true, &axes)) {
        range_bytes(figure, &axes);
        range_ns(figure, &axes);
        spread_joint(figure);
        figure->top = y + MARGIN - LINE / 2.0;
        figure->bottom =
            figure->top + fmax(LEAST_HEIGHT, (double)(sweep->n_curves + 1) * LABEL_GAP);
        figure->end = WIDTH - width_of_labels(sweep);
        add_figure(figure);
        write_notes(figure, &notes);
        y = figure->bottom + 64 + LINE + MARGIN / 2.0;
    } else {
        weft_text_add(&notes, "No plan fits anywhere.");
    }
    weft_svg_add_lines(figure->out, weft_text_chars(&notes), font_size, WIDTH - 2 * MARGIN, MARGIN,
                       &y, LINE, "");
    figure->out->failed |= !weft_text_ok(&notes);
    weft_text_finish(&notes);
    *height = y - LINE + MARGIN;
}

void weft_sweep_svg(const struct weft_sweep *sweep, struct weft_text *out)
{
    struct weft_text body;
    struct figure figure = {.sweep = sweep, .out = &body};
    double height = 0;
    weft_text_init(&body);
    figure.stairs = weft_pool_array(&figure.pool, (size_t)sweep->n_curves, sizeof *figure.stairs);
    bool made = figure.stairs != NULL;
    for (int32_t c = 0; c < sweep->n_curves && made; c++)
        made = weft_sweep_climb(sweep, c, c + 1, &figure.pool, &figure.stairs[c]);
    made =
        made && weft_sweep_climb(sweep, sweep->split, sweep->n_curves, &figure.pool, &figure.best);
    if (made) draw_figure(&figure, &height);
    weft_text_addf(out,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.1fmm\" "
                   "height=\"%.1fmm\" viewBox=\"0 0 %d %.0f\" "
                   "font-family=\"Helvetica,Arial,sans-serif\" font-size=\"23\">\n"
                   "<rect width=\"%d\" height=\"%.0f\" fill=\"#fff\"/>\n",
                   WIDTH * SCALE / 10.0, ceil(height) * SCALE / 10.0, WIDTH, ceil(height), WIDTH,
                   ceil(height));
    weft_text_add(out, weft_text_chars(&body));
    weft_text_add(out, "</svg>\n");
    out->failed |= !made || !weft_text_ok(&body);
    weft_text_finish(&body);
    weft_pool_finish(&figure.pool);
}
