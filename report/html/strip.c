/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html/strip.h"

#include "report/html/html.h"
#include "report/html/timeline.h"

enum { CELL = 24, HALF = CELL / 2, GAP = 6, TOP = 4, FOOT = 24, MOST_CHOICES = 24 };

static double place_member(const struct weft_strip *strip, int32_t member)
{
    const double width = WEFT_TIMELINE_WIDTH - WEFT_TIMELINE_RIGHT - WEFT_TIMELINE_LEFT;
    return WEFT_TIMELINE_LEFT + width * member / strip->n_members;
}

/* Equal neighbours are one cell with one title. */
static void draw_cells(const struct weft_strip *strip, const struct weft_strip_row *row, double y,
                       struct weft_text *out)
{
    const double single = place_member(strip, 1) - place_member(strip, 0);
    for (int32_t first = 0, next; first < strip->n_members; first = next) {
        const struct weft_strip_choice *choice = row->choices[first];
        next = first + 1;
        while (next < strip->n_members && row->choices[next] == choice && single < 14)
            next++;
        if (choice == NULL) continue;
        const double gap = single < 14 ? 0 : 1.5;
        weft_text_addf(out, "<path class=\"f%d\" d=\"M", (int)choice->hue);
        weft_html_add_place(out, place_member(strip, first));
        weft_text_addf(out, " %.0fH", choice->low ? y + HALF : y);
        weft_html_add_place(out, place_member(strip, next) - gap);
        weft_text_addf(out, "v%dH", choice->low ? HALF : CELL);
        weft_html_add_place(out, place_member(strip, first));
        weft_text_add(out, "z\"><title>");
        weft_html_add(out, strip->members[first]);
        if (next > first + 1) weft_text_add(out, " to ");
        if (next > first + 1) weft_html_add(out, strip->members[next - 1]);
        weft_text_add(out, ": ");
        weft_html_add(out, choice->name);
        weft_text_add(out, "</title></path>\n");
    }
}

static void draw_legend(const struct weft_strip *strip, struct weft_text *out)
{
    const struct weft_strip_choice *choices[MOST_CHOICES];
    int32_t n = 0;
    weft_legend_open(out);
    for (int32_t r = 0; r < strip->n_rows; r++) {
        for (int32_t m = 0; m < strip->n_members; m++) {
            const struct weft_strip_choice *choice = strip->rows[r].choices[m];
            int32_t k = 0;
            while (k < n && choices[k] != choice)
                k++;
            if (choice == NULL || k < n || n == MOST_CHOICES) continue;
            choices[n++] = choice;
            weft_legend_add(out, choice->low ? WEFT_SIGN_LOW : WEFT_SIGN_SOLID, choice->hue,
                            choice->name);
        }
    }
    weft_legend_close(out);
}

static void draw_strip(const void *figure, struct weft_text *out)
{
    const struct weft_strip *strip = figure;
    const double end = WEFT_TIMELINE_WIDTH - WEFT_TIMELINE_RIGHT;
    const double height = TOP + strip->n_rows * (CELL + GAP) + FOOT;
    draw_legend(strip, out);
    weft_svg_open(out, WEFT_TIMELINE_WIDTH, height, strip->label);
    for (int32_t r = 0; r < strip->n_rows; r++) {
        const double y = TOP + r * (CELL + GAP);
        weft_text_addf(out, "<text class=\"lane\" x=\"0\" y=\"%.0f\">%s</text>\n", y + 16,
                       strip->rows[r].name);
        weft_text_addf(out, "<g class=\"cells\" data-row=\"%s\">\n", strip->rows[r].name);
        draw_cells(strip, &strip->rows[r], y, out);
        weft_text_add(out, "</g>\n");
    }
    weft_text_addf(out, "<text class=\"tick\" x=\"%d\" y=\"%.0f\">", WEFT_TIMELINE_LEFT,
                   height - 10);
    weft_html_add_cut(out, strip->members[0], 11, 400);
    weft_text_addf(out, "</text><text class=\"tick\" text-anchor=\"end\" x=\"%.0f\" y=\"%.0f\">",
                   end, height - 10);
    if (strip->n_members > 1) weft_html_add_cut(out, strip->members[strip->n_members - 1], 11, 400);
    weft_text_add(out, "</text>\n");
    weft_svg_close(out);
}

static void tell_strip(const void *figure, const char *key, struct weft_answer *data)
{
    static const struct weft_column columns[] = {{"row", NULL, 'l', WEFT_FIGURE_WORD, 0},
                                                 {"member", NULL, 'l', WEFT_FIGURE_WORD, 0},
                                                 {"choice", NULL, 'l', WEFT_FIGURE_WORD, 0}};
    const struct weft_strip *strip = figure;
    struct weft_rows *rows = weft_answer_table(data, key, columns, 3);
    if (rows != NULL) rows->is_flat = true;
    for (int32_t r = 0; r < strip->n_rows; r++) {
        for (int32_t m = 0; m < strip->n_members; m++) {
            if (strip->rows[r].choices[m] == NULL) continue;
            weft_rows_begin(rows, NULL);
            weft_rows_word(rows, 0, strip->rows[r].name);
            weft_rows_word(rows, 1, strip->members[m]);
            weft_rows_word(rows, 2, strip->rows[r].choices[m]->name);
        }
    }
}

const struct weft_drawing_kind weft_drawing_strip = {draw_strip, tell_strip};
