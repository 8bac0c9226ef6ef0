#include "report/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/shown.h"

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

void weft_table_cell(struct weft_table *table, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *cell = length < 0 ? NULL : malloc((size_t)length + 1);
    if (cell == NULL) {
        table->cells.failed = true;
        return;
    }
    va_start(arguments, format);
    vsnprintf(cell, (size_t)length + 1, format, arguments);
    va_end(arguments);
    weft_text_add_shown(&table->cells, cell, (size_t)length, WEFT_SHOWN_LINE);
    weft_text_append(&table->cells, "", 1);
    table->n_cells++;
    free(cell);
}

/* Columns that a terminal shows: bytes of UTF-8 that do not continue a character. */
static size_t shown_width(const char *cell)
{
    size_t width = 0;
    for (; *cell; cell++)
        width += ((unsigned char)*cell & 0xC0) != 0x80;
    return width;
}

/* Spaces wait until something is written behind them, so that no line ends in any. */
static void add_cell(struct weft_text *out, const char *cell, size_t width, bool right,
                     size_t *spaces)
{
    size_t pad = width - shown_width(cell);
    if (right) *spaces += pad;
    if (cell[0] != '\0') {
        for (; *spaces > 0; --*spaces)
            weft_text_append(out, " ", 1);
        weft_text_add(out, cell);
    }
    if (!right) *spaces += pad;
}

void weft_table_render(const struct weft_table *table, int32_t indent, struct weft_text *out)
{
    if (!weft_text_ok(&table->cells)) {
        out->failed = true;
        return;
    }
    size_t widths[WEFT_TABLE_COLUMNS] = {0};
    const char *cell = weft_text_chars(&table->cells);
    for (int32_t i = 0; i < table->n_cells; i++, cell += strlen(cell) + 1) {
        size_t width = shown_width(cell);
        if (width > widths[i % table->n_columns]) widths[i % table->n_columns] = width;
    }
    cell = weft_text_chars(&table->cells);
    size_t spaces = 0;
    for (int32_t i = 0; i < table->n_cells; i++, cell += strlen(cell) + 1) {
        int32_t column = i % table->n_columns;
        spaces = column == 0 ? (size_t)indent : spaces + 2;
        add_cell(out, cell, widths[column], table->align[column] == 'r', &spaces);
        if (column == table->n_columns - 1 || i == table->n_cells - 1) weft_text_add(out, "\n");
    }
}
