/* SPDX-License-Identifier: Apache-2.0 */
#include "report/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/shown.h"
#include "base/wrap.h"

/* Wrapped text gets at least this much room, or the rest of the line. */
enum { LEAST_WRAPPED = 16, BETWEEN = 2 };

void weft_table_init(struct weft_table *table, const char *align)
{
    *table = (struct weft_table){.align = align, .n_columns = (int32_t)strlen(align)};
    weft_text_init(&table->cells);
    table->cells.failed = table->n_columns < 1 || table->n_columns > WEFT_TABLE_COLUMNS;
}

void weft_table_finish(struct weft_table *table)
{
    weft_text_finish(&table->cells);
}

static void add_cell(struct weft_table *table, enum weft_paint paint, const char *format,
                     va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *cell = length < 0 ? NULL : malloc((size_t)length + 1);
    if (cell == NULL) {
        table->cells.failed = true;
        return;
    }
    vsnprintf(cell, (size_t)length + 1, format, arguments);
    char mark = (char)('0' + paint);
    weft_text_append(&table->cells, &mark, 1);
    weft_text_add_shown(&table->cells, cell, (size_t)length, WEFT_SHOWN_LINE);
    weft_text_append(&table->cells, "", 1);
    table->n_cells++;
    free(cell);
}

void weft_table_cell(struct weft_table *table, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_cell(table, WEFT_PAINT_NONE, format, arguments);
    va_end(arguments);
}

void weft_table_cell_painted(struct weft_table *table, enum weft_paint paint, const char *format,
                             ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_cell(table, paint, format, arguments);
    va_end(arguments);
}

/* A table while it is rendered. The first column is in every part. */
struct rendering {
    const struct weft_table *table;
    const char **cells; /* [n_cells], each with its paint first */
    size_t *widths;     /* [n_columns] */
    size_t indent, columns;
    struct weft_text *out;
    size_t spaces; /* pending until text follows, so no line ends in spaces */
};

static const char *text_of(const struct rendering *r, int32_t index)
{
    return r->cells[index] + 1;
}

static const char *code_of(const struct rendering *r, int32_t index)
{
    static const char *const codes[] = {NULL, "\033[32m", "\033[31m", "\033[2m"};
    return r->out->color ? codes[r->cells[index][0] - '0'] : NULL;
}

/* Appends `length` bytes of a cell, padded to its column's width. */
static void add_text(struct rendering *r, int32_t index, const char *text, size_t length)
{
    int32_t column = index % r->table->n_columns;
    size_t shown = weft_shown_columns(text, length);
    size_t pad = shown < r->widths[column] ? r->widths[column] - shown : 0;
    bool right = r->table->align[column] == 'r';
    const char *code = code_of(r, index);
    if (right) r->spaces += pad;
    if (length > 0) {
        for (; r->spaces > 0; r->spaces--)
            weft_text_append(r->out, " ", 1);
        if (code) weft_text_add_escape(r->out, code);
        weft_text_append(r->out, text, length);
        if (code) weft_text_add_escape(r->out, "\033[0m");
    }
    if (!right) r->spaces += pad;
}

/* Appends one line of a row: the first column, and columns [first, end). *rest is the unwritten
 * rest of wrapped text; NULL: none. */
static void add_line(struct rendering *r, int32_t row, int32_t first, int32_t end,
                     const char **rest)
{
    const char *from = *rest;
    *rest = NULL;
    r->spaces = r->indent;
    for (int32_t column = 0; column < end; column = column == 0 ? first : column + 1) {
        int32_t index = row * r->table->n_columns + column;
        if (index >= r->table->n_cells) break;
        bool wraps = r->table->align[column] == 'w';
        const char *text = from == NULL ? text_of(r, index) : wraps ? from : "";
        size_t length = strlen(text);
        if (wraps) length = weft_wrap_at(text, length, r->widths[column]);
        add_text(r, index, text, length);
        text += length;
        text += strspn(text, " ");
        if (wraps && *text != '\0') *rest = text;
        r->spaces += BETWEEN;
    }
    weft_text_add(r->out, "\n");
}

static void add_columns(struct rendering *r, int32_t first, int32_t end)
{
    int32_t n_columns = r->table->n_columns, n_cells = r->table->n_cells;
    for (int32_t row = 0; row * n_columns < n_cells; row++) {
        const char *rest = NULL;
        do
            add_line(r, row, first, end, &rest);
        while (rest);
    }
}

/* Least width of a column, with the space before it. */
static size_t least_width(const struct rendering *r, int32_t column)
{
    size_t width = r->widths[column];
    if (r->table->align[column] == 'w' && width > LEAST_WRAPPED) width = LEAST_WRAPPED;
    return width + BETWEEN;
}

/* End of the columns from `first` on that fit into `room`; at least one. */
static int32_t find_end(const struct rendering *r, int32_t first, size_t room)
{
    size_t width = 0;
    int32_t end = first;
    while (end < r->table->n_columns && (end == first || width + least_width(r, end) <= room))
        width += least_width(r, end++);
    return end;
}

static int32_t count_parts(const struct rendering *r, size_t room)
{
    int32_t parts = 0;
    for (int32_t at = 1; at < r->table->n_columns; parts++)
        at = find_end(r, at, room);
    return parts;
}

/* The least room for the columns after the first that needs no more parts. So no part gets one
 * column while others have many. */
static size_t find_room(const struct rendering *r)
{
    size_t first = r->indent + r->widths[0];
    size_t high = r->columns > first ? r->columns - first : 0, low = 0;
    int32_t parts = count_parts(r, high);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (count_parts(r, middle) > parts)
            low = middle + 1;
        else
            high = middle;
    }
    return high;
}

/* Wrapped text gets the room that columns from `first` on leave. */
static void give_rest(struct rendering *r, int32_t first)
{
    int32_t last = r->table->n_columns - 1;
    size_t taken = r->indent + (last > 0 ? r->widths[0] + BETWEEN : 0);
    if (r->table->align[last] != 'w') return;
    for (int32_t column = first; column < last; column++)
        taken += r->widths[column] + BETWEEN;
    size_t rest = r->columns > taken ? r->columns - taken : 0;
    if (rest < r->widths[last]) r->widths[last] = rest;
}

static void fold_columns(struct rendering *r)
{
    int32_t n_columns = r->table->n_columns, first = 1;
    size_t room = find_room(r);
    do {
        int32_t end = find_end(r, first, room);
        if (first > 1) weft_text_add(r->out, "\n");
        if (end >= n_columns) give_rest(r, first);
        add_columns(r, first, end);
        first = end;
    } while (first < n_columns);
}

static void find_widths(struct rendering *r)
{
    const char *cell = weft_text_chars(&r->table->cells);
    for (int32_t i = 0; i < r->table->n_cells; i++, cell += strlen(cell) + 1) {
        size_t width = weft_shown_columns(cell + 1, strlen(cell + 1));
        size_t *widest = &r->widths[i % r->table->n_columns];
        r->cells[i] = cell;
        if (width > *widest) *widest = width;
    }
}

void weft_table_render(const struct weft_table *table, int32_t indent, struct weft_text *out)
{
    if (!weft_text_ok(&table->cells)) {
        out->failed = true;
        return;
    }
    struct rendering r = {.table = table,
                          .cells = calloc((size_t)table->n_cells + 1, sizeof *r.cells),
                          .widths = calloc((size_t)table->n_columns, sizeof *r.widths),
                          .indent = (size_t)indent,
                          .columns = out->columns > 0 ? (size_t)out->columns : SIZE_MAX / 2,
                          .out = out};
    if (r.cells && r.widths) {
        find_widths(&r);
        fold_columns(&r);
    } else {
        out->failed = true;
    }
    free(r.cells);
    free(r.widths);
}
