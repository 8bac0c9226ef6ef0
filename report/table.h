/* A table for people: rows of cells, columns as wide as their widest cell, numbers to the right. A
 * cell is UTF-8 of any length without line ends; each of its characters is taken to be as wide as a
 * letter. What is wider than the reader's lines is folded: text goes on below itself in its column,
 * and columns that have no room stand in a further table below, behind the first column again. */
#ifndef WEFT_REPORT_TABLE_H
#define WEFT_REPORT_TABLE_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/text.h"

enum { WEFT_TABLE_COLUMNS = 1024 };

struct weft_table {
    struct weft_text cells; /* row by row: a character of its paint, then text and NUL */
    int32_t n_columns, n_cells;
    const char *align;
};

/* What a colour adds to a cell's words; none says anything by itself. */
enum weft_paint { WEFT_PAINT_NONE, WEFT_PAINT_GOOD, WEFT_PAINT_BAD, WEFT_PAINT_FAINT };

/* `align` has one letter a column, "lrw", and at most WEFT_TABLE_COLUMNS of them: left, right, or
 * text to the left that may be broken between its words (the last column alone). It must outlive
 * the table. */
void weft_table_init(struct weft_table *table, const char *align);
void weft_table_finish(struct weft_table *table);
/* The next cell, row by row. Running out of memory is remembered until the table is rendered. */
void weft_table_cell(struct weft_table *table, const char *format, ...) WEFT_PRINTF(2, 3);
void weft_table_cell_painted(struct weft_table *table, enum weft_paint paint, const char *format,
                             ...) WEFT_PRINTF(3, 4);
/* Appends the rows to `out`, each line preceded by `indent` spaces and none ending in any; a row
 * that was begun is ended. The first row is the head. Lines are fitted to out->columns as far as a
 * first column and another fit into them, and painted where out->color is set. Fails `out` when
 * memory ran out before or the table has no columns or too many. */
void weft_table_render(const struct weft_table *table, int32_t indent, struct weft_text *out);

#endif
