/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html/html.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Mean width of a letter in the page's fonts, as a share of the font's size. */
static const double letter_width = 0.58;

static void add_escaped(struct weft_text *out, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        switch (bytes[i]) {
        case '<':
            weft_text_add(out, "&lt;");
            break;
        case '>':
            weft_text_add(out, "&gt;");
            break;
        case '&':
            weft_text_add(out, "&amp;");
            break;
        case '"':
            weft_text_add(out, "&quot;");
            break;
        case '\'':
            weft_text_add(out, "&#39;");
            break;
        default:
            weft_text_append(out, &bytes[i], 1);
        }
    }
}

void weft_html_add(struct weft_text *out, const char *text)
{
    char piece[WEFT_SHOWN_PIECE_BYTES];
    for (size_t left = strlen(text), taken; left > 0; text += taken, left -= taken) {
        const size_t length = weft_shown_next(text, left, WEFT_SHOWN_TEXT, &taken, piece);
        add_escaped(out, piece, length);
    }
}

/* Letters of one character as it is shown. */
static size_t count_letters(const char *bytes, size_t length)
{
    size_t letters = 0;
    for (size_t i = 0; i < length; i++)
        letters += ((unsigned char)bytes[i] & 0xc0) != 0x80;
    return letters;
}

double weft_html_width(const char *text, double font)
{
    char piece[WEFT_SHOWN_PIECE_BYTES];
    size_t letters = 0;
    for (size_t left = strlen(text), taken; left > 0; text += taken, left -= taken)
        letters +=
            count_letters(piece, weft_shown_next(text, left, WEFT_SHOWN_LINE, &taken, piece));
    return (double)letters * font * letter_width;
}

void weft_html_add_cut(struct weft_text *out, const char *text, double font, double width)
{
    char piece[WEFT_SHOWN_PIECE_BYTES];
    const bool is_cut = weft_html_width(text, font) > width;
    double room = width - (is_cut ? font * letter_width : 0);
    for (size_t left = strlen(text), taken; left > 0; text += taken, left -= taken) {
        const size_t length = weft_shown_next(text, left, WEFT_SHOWN_LINE, &taken, piece);
        room -= (double)count_letters(piece, length) * font * letter_width;
        if (is_cut && room < 0) break;
        add_escaped(out, piece, length);
    }
    if (is_cut) weft_text_add(out, "\u2026");
}

void weft_html_add_place(struct weft_text *out, double place)
{
    const double tenths = round(place * 10);
    if (fmod(tenths, 10) == 0)
        weft_text_addf(out, "%.0f", tenths / 10 + 0.0);
    else
        weft_text_addf(out, "%.1f", tenths / 10);
}

static const char *const paint_classes[] = {[WEFT_PAINT_NONE] = "",
                                            [WEFT_PAINT_GOOD] = " good",
                                            [WEFT_PAINT_BAD] = " bad",
                                            [WEFT_PAINT_FAINT] = " faint"};

static void add_cell(const struct weft_rows *rows, const struct weft_answer_row *row,
                     int32_t column, struct weft_text *out)
{
    char text[WEFT_UNITS_TEXT_BYTES];
    const struct weft_answer_cell *cell = &row->cells[column];
    const struct weft_column *of = &rows->columns[column];
    weft_text_addf(out, "<td class=\"%s%s\">", of->align == 'r' ? "r" : "l",
                   paint_classes[cell->paint]);
    weft_html_add(out, cell->shown != NULL ? cell->shown
                                           : weft_answer_cell_text(of->figure, cell, text));
    weft_text_add(out, "</td>");
}

static void add_head_cell(const struct weft_rows *rows, int32_t column, struct weft_text *out)
{
    weft_text_addf(out, "<th class=\"%s\">", rows->columns[column].align == 'r' ? "r" : "l");
    weft_html_add(out, rows->columns[column].head);
    weft_text_add(out, "</th>");
}

/* A line of the page for each row. */
static void add_rows(const struct weft_rows *rows, struct weft_text *out)
{
    weft_text_add(out, "<thead><tr>");
    for (int32_t c = 0; c < rows->n_columns; c++)
        if (rows->columns[c].head != NULL) add_head_cell(rows, c, out);
    weft_text_add(out, "</tr></thead><tbody>\n");
    for (const struct weft_answer_row *row = rows->first; row != NULL; row = row->next) {
        if (row->is_data) continue;
        weft_text_add(out, "<tr>");
        for (int32_t c = 0; c < rows->n_columns; c++)
            if (rows->columns[c].head != NULL) add_cell(rows, row, c, out);
        weft_text_add(out, "</tr>\n");
    }
}

/* A line of the page for each column: a page has no end, and paper has a width. */
static void add_columns(const struct weft_rows *rows, struct weft_text *out)
{
    bool begun = false;
    weft_text_add(out, "<thead>");
    for (int32_t c = 0; c < rows->n_columns; c++) {
        if (rows->columns[c].head == NULL) continue;
        weft_text_add(out, "<tr>");
        add_head_cell(rows, c, out);
        for (const struct weft_answer_row *row = rows->first; row != NULL; row = row->next)
            if (!row->is_data) add_cell(rows, row, c, out);
        weft_text_add(out, begun ? "</tr>\n" : "</tr></thead><tbody>\n");
        begun = true;
    }
}

static void add_table(const struct weft_rows *rows, struct weft_text *out)
{
    enum { MOST_COLUMNS = 12 };
    int32_t n_rows = 0, n_columns = 0;
    for (const struct weft_answer_row *row = rows->first; row != NULL; row = row->next)
        n_rows += !row->is_data;
    for (int32_t c = 0; c < rows->n_columns; c++)
        n_columns += rows->columns[c].head != NULL;
    if (n_rows == 0) return;
    weft_text_add(out, "<div class=\"wide\"><table>");
    if (rows->title != NULL) {
        weft_text_add(out, "<caption>");
        weft_html_add(out, rows->title);
        weft_text_add(out, "</caption>");
    }
    if (n_columns > MOST_COLUMNS && n_rows < n_columns)
        add_columns(rows, out);
    else
        add_rows(rows, out);
    weft_text_add(out, "</tbody></table></div>\n");
    if (rows->note == NULL) return;
    weft_text_add(out, "<p class=\"note\">");
    weft_html_add(out, rows->note);
    weft_text_add(out, "</p>\n");
}

void weft_html_tables(const struct weft_answer *answer, struct weft_text *out)
{
    out->failed |= answer->failed;
    if (answer->failed) return;
    for (const struct weft_answer_part *part = answer->first; part != NULL; part = part->next) {
        bool has_heads = false;
        for (int32_t c = 0; part->rows != NULL && c < part->rows->n_columns; c++)
            has_heads |= part->rows->columns[c].head != NULL;
        if (has_heads) add_table(part->rows, out);
    }
}
