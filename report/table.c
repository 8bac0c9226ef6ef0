#include "report/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void weft_table_init(struct weft_table *table, const char *align)
{
    *table = (struct weft_table){.align = align, .n_columns = (int32_t)strlen(align)};
    weft_text_init(&table->cells);
}

void weft_table_finish(struct weft_table *table)
{
    weft_text_finish(&table->cells);
}

void weft_table_cell(struct weft_table *table, const char *format, ...)
{
    char cell[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(cell, sizeof cell, format, arguments);
    va_end(arguments);
    weft_text_append(&table->cells, cell, strlen(cell) + 1);
    table->n_cells++;
}

/* Columns that a terminal shows: bytes of UTF-8 that do not continue a character. */
static size_t shown_width(const char *cell)
{
    size_t width = 0;
    for (; *cell; cell++)
        width += ((unsigned char)*cell & 0xC0) != 0x80;
    return width;
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
    for (int32_t i = 0; i < table->n_cells; i++, cell += strlen(cell) + 1) {
        int32_t column = i % table->n_columns;
        bool last = column == table->n_columns - 1;
        int pad = (int)(widths[column] - shown_width(cell));
        if (column == 0) weft_text_addf(out, "%*s", indent, "");
        if (table->align[column] == 'r') weft_text_addf(out, "%*s", pad, "");
        weft_text_add(out, cell);
        if (table->align[column] == 'l' && !last) weft_text_addf(out, "%*s", pad, "");
        weft_text_add(out, last ? "\n" : "  ");
    }
}
