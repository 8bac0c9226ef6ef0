/* SPDX-License-Identifier: Apache-2.0 */
/* A table for people: rows of cells, columns as wide as their widest cell, numbers to the right. A
 * cell is UTF-8 of any length without line ends; each character counts one column. A table wider
 * than the reader's lines is folded. Text continues below itself in its column. Columns without
 * room follow in a further table below, after the first column again. */
#ifndef WEFT_REPORT_TABLE_H
#define WEFT_REPORT_TABLE_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/text.h"

enum { WEFT_TABLE_COLUMNS = 1024 };

struct weft_table {
    struct weft_text cells; /* row by row: a character of paint, then text and NUL */
    int32_t n_columns, n_cells;
    const char *align;
};

/* Colours repeat the message of a cell's words. None carries a message alone. */
enum weft_paint { WEFT_PAINT_NONE, WEFT_PAINT_GOOD, WEFT_PAINT_BAD, WEFT_PAINT_FAINT };

/* `align` has one letter per column, at most WEFT_TABLE_COLUMNS: 'l' left, 'r' right, 'w' left and
 * wrapped between words (last column only). It must outlive the table. */
void weft_table_init(struct weft_table *table, const char *align);
void weft_table_finish(struct weft_table *table);
/* Adds the next cell, row by row. A lack of memory is kept until the table is rendered. */
void weft_table_cell(struct weft_table *table, const char *format, ...) WEFT_PRINTF(2, 3);
void weft_table_cell_painted(struct weft_table *table, enum weft_paint paint, const char *format,
                             ...) WEFT_PRINTF(3, 4);
/* Appends the rows to `out`. Each line begins with `indent` spaces and ends without spaces; a begun
 * row is ended. The first row is the head. Lines fit out->columns if the first column and one more
 * do. Paint is used if out->color. Fails `out` if memory ran out, or the number of columns is 0 or
 * too large. */
void weft_table_render(const struct weft_table *table, int32_t indent, struct weft_text *out);

#endif
