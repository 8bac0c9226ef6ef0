/* A table for people: rows of cells, columns as wide as their widest cell, numbers to the right. */
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

/* `align` has one letter a column, "lrr"; it must outlive the table. */
void weft_table_init(struct weft_table *table, const char *align);
void weft_table_finish(struct weft_table *table);
/* The next cell, row by row. */
void weft_table_cell(struct weft_table *table, const char *format, ...) WEFT_PRINTF(2, 3);
/* Appends the rows to `out`, each line preceded by `indent` spaces. The first row is the head. */
void weft_table_render(const struct weft_table *table, int32_t indent, struct weft_text *out);

#endif
