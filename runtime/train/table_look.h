/* SPDX-License-Identifier: Apache-2.0 */
/* A look at the form of a table: records of fields, as CSV (RFC 4180) and TSV have them. It decides
 * by the first records, or by those of the whole file.
 *
 * A file is a table if its first record has two fields or more and nearly all records have as many.
 * Fields end with a comma without a space after it, or with a tab. A field in quotes may have
 * delimiters and lines of its own; without quotes a tab ends every field. Lines with # before the
 * first record do not count. Prose has blank lines, and commas with spaces, so it is no table; nor
 * is a file with control characters. */
#ifndef WEFT_RUNTIME_TRAIN_TABLE_LOOK_H
#define WEFT_RUNTIME_TRAIN_TABLE_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WEFT_TABLE_RECORDS = 256,     /* that decide */
    WEFT_TABLE_LEAST_RECORDS = 8, /* of a table */
    WEFT_TABLE_BYTES = 4 << 20,   /* most bytes read of a file */
    WEFT_TABLE_READINGS = 3       /* commas; tabs with quotes; tabs alone */
};

enum weft_table_form { WEFT_TABLE_NONE, WEFT_TABLE_CSV, WEFT_TABLE_TSV, WEFT_TABLE_FORM_COUNT };

/* One reading of the bytes. */
struct weft_table_reading {
    int state; /* of table_look.c */
    bool is_comment, is_spaced, is_first_filled, is_filled, is_over;
    int64_t fields, wanted;   /* of the record under way; of the first record */
    int64_t records, matches; /* that ended; with as many fields as the first */
    int64_t blank_lines, spaced, first_filled, last_filled;
};

struct weft_table_look {
    int64_t bytes;
    struct weft_table_reading readings[WEFT_TABLE_READINGS];
};

void weft_table_look_init(struct weft_table_look *look);
/* Adds bytes. False once the form is known: later bytes change nothing. */
bool weft_table_look_add(struct weft_table_look *look, const unsigned char *bytes, size_t n);
/* The form of the added bytes. They must be the whole file if the last call returned true. */
enum weft_table_form weft_table_look_form(const struct weft_table_look *look);

#endif
