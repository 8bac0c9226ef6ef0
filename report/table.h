/* A table for people: rows of cells, columns as wide as their widest cell, numbers to the right. A
 * cell is UTF-8 of any length without line ends; each of its characters is taken to be as wide as a
 * letter. */
#ifndef WEFT_REPORT_TABLE_H
#define WEFT_REPORT_TABLE_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/text.h"

enum { WEFT_TABLE_COLUMNS = 16 };

struct weft_table {
    struct weft_text cells; /* NUL-separated, row by row */
    int32_t n_columns, n_cells;
    const char *align; /* 'l' or 'r' a column */
};

/* `align` has one letter a column, "lrr", and at most WEFT_TABLE_COLUMNS of them; it must outlive
 * the table. */
void weft_table_init(struct weft_table *table, const char *align);
void weft_table_finish(struct weft_table *table);
/* The next cell, row by row. Running out of memory is remembered until the table is rendered. */
void weft_table_cell(struct weft_table *table, const char *format, ...) WEFT_PRINTF(2, 3);
/* Appends the rows to `out`, each line preceded by `indent` spaces and none ending in any; a row
 * that was begun is ended. The first row is the head. Fails `out` when memory ran out before or the
 * table has no columns or too many. */
void weft_table_render(const struct weft_table *table, int32_t indent, struct weft_text *out);

#endif
