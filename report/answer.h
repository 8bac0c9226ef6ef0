/* SPDX-License-Identifier: Apache-2.0 */
/* An answer is the result of a verb without a form: lines, facts and tables, in the order of a
 * reader. It is complete, so a renderer needs nothing more. Renderers write text, JSON and CSV.
 *
 * A cell has a value of its column's unit, or none. Its text follows from value and unit, unless
 * the cell is shown otherwise. A lack of memory is kept until the answer is rendered. */
#ifndef WEFT_REPORT_ANSWER_H
#define WEFT_REPORT_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json/json.h"
#include "base/pool.h"
#include "base/status.h"
#include "base/text.h"
#include "base/units.h"
#include "report/table.h"

/* The unit of a column's values. */
enum weft_figure {
    WEFT_FIGURE_WORD,
    WEFT_FIGURE_BOOL,    /* without text, unless it is shown otherwise */
    WEFT_FIGURE_INTEGER, /* as it is */
    WEFT_FIGURE_BYTES,   /* "1.50 GiB" */
    WEFT_FIGURE_NS,      /* "12.3 ms" */
    WEFT_FIGURE_REAL,    /* "12.34" */
    WEFT_FIGURE_SHORT,   /* "12.3k" */
    WEFT_FIGURE_PERCENT, /* of a share, "1.25 %" */
    WEFT_FIGURE_PERMIL,  /* of a share, "1.250 %" */
};

struct weft_column {
    /* In JSON and CSV; "a.b" is the member b of an object a; NULL: it is in text alone. */
    const char *key;
    const char *head; /* in text; NULL: data alone */
    char align;       /* 'l', 'r' or 'w' as in report/table.h */
    enum weft_figure figure;
    uint32_t flags;
};

/* Flags of a column. */
enum {
    WEFT_COLUMN_NULL = 1,   /* JSON has null for no value, in place of no member */
    WEFT_COLUMN_JSON = 2,   /* in JSON and not in CSV */
    WEFT_COLUMN_CSV = 4,    /* in CSV and not in JSON */
    WEFT_COLUMN_QUOTED = 8, /* CSV has quotes around each word */
};

enum weft_cell_kind { WEFT_CELL_NONE, WEFT_CELL_WORD, WEFT_CELL_INTEGER, WEFT_CELL_REAL };

struct weft_answer_cell {
    enum weft_cell_kind kind;
    enum weft_paint paint;
    const char *word;
    int64_t integer; /* of a bool too */
    double real;
    const char *shown; /* replaces the text of the value; NULL: nothing does */
};

/* A table while it is filled. Functions below change its last row. */
struct weft_rows {
    struct weft_answer *answer;
    const char *key;   /* in JSON: an array of objects; NULL: none but rows with a name */
    const char *title; /* a line above it, which is indented then; NULL: none */
    const char *note;  /* a line below it; NULL: none */
    int32_t n_more;    /* hidden rows that a flag shows; text tells the number */
    int32_t indent;    /* of its text without a title */
    bool is_flat;      /* each row of JSON is on one line */
    /* In JSON rows are series: objects with the first cell and an array `points` of their rows.
     * NULL: rows are no series. */
    const char *points;
    int32_t n_columns, n_rows;
    struct weft_column *columns;
    struct weft_answer_row {
        struct weft_answer_row *next;
        const char *name; /* in JSON: a member, and no element of the array */
        bool is_data;     /* not in text */
        bool begins_series;
        struct weft_answer_cell *cells;
    } * first, *last;
};

struct weft_answer {
    struct weft_pool pool;
    struct weft_answer_part {
        struct weft_answer_part *next;
        enum weft_part {
            WEFT_PART_TEXT,
            WEFT_PART_LIST, /* text with line breaks after commas where a line is full */
            WEFT_PART_FACT,
            WEFT_PART_TABLE,
            WEFT_PART_OPEN, /* of an object in JSON, which a part CLOSE ends */
            WEFT_PART_CLOSE,
            WEFT_PART_OPEN_LIST, /* likewise, of an array */
            WEFT_PART_CLOSE_LIST
        } kind;
        bool is_data;    /* not in text */
        bool is_flat;    /* an object or array on one line */
        const char *key; /* in JSON; NULL: none, or an element of a list */
        const char *text;
        struct weft_answer_cell fact;
        enum weft_figure figure; /* of the fact */
        struct weft_rows *rows;
    } * first, *last;
    bool is_line;   /* its JSON is one line */
    bool is_list;   /* its JSON is an array */
    bool is_hidden; /* parts that are added from now on are not in text */
    bool failed;
};

/* {0} is an answer too. */
void weft_answer_finish(struct weft_answer *answer);

/* Adds text as it is, which may be a part of a line. With `key` it is also a member in JSON,
 * without its last line end. */
void weft_answer_say(struct weft_answer *answer, const char *key, const char *format, ...)
    WEFT_PRINTF(3, 4);

/* Puts a line before all parts, in text alone. */
void weft_answer_lead(struct weft_answer *answer, const char *format, ...) WEFT_PRINTF(2, 3);

/* Adds a line: a head of ten columns and a list, such as "a dp, b fsdp". Nothing for "". */
void weft_answer_list(struct weft_answer *answer, const char *head, const char *list);

/* Adds facts that only data has. The word NULL is null. Keys are copied; NULL: an element of the
 * open list. */
void weft_answer_word(struct weft_answer *answer, const char *key, const char *word);
void weft_answer_bool(struct weft_answer *answer, const char *key, bool boolean);
void weft_answer_integer(struct weft_answer *answer, const char *key, int64_t integer);
void weft_answer_real(struct weft_answer *answer, const char *key, double real);

/* Facts and tables between open and close are members of an object in data, or elements of a list
 * (an array). The key is NULL in a list. Flat: data is on one line. */
void weft_answer_open(struct weft_answer *answer, const char *key);
void weft_answer_close(struct weft_answer *answer);
void weft_answer_open_list(struct weft_answer *answer, const char *key);
void weft_answer_close_list(struct weft_answer *answer);
void weft_answer_flat(struct weft_answer *answer);

/* Adds a table with a copy of the columns. NULL without memory; the functions below accept that. */
struct weft_rows *weft_answer_table(struct weft_answer *answer, const char *key,
                                    const struct weft_column *columns, int32_t n_columns);
/* Replaces a column's head; NULL format: the column is in data alone. */
void weft_rows_head(struct weft_rows *rows, int32_t column, const char *format, ...)
    WEFT_PRINTF(3, 4);

/* Set the line above the table, and the line below. */
void weft_rows_title(struct weft_rows *rows, const char *format, ...) WEFT_PRINTF(2, 3);
void weft_rows_note(struct weft_rows *rows, const char *format, ...) WEFT_PRINTF(2, 3);

/* Begins a row. `name`: the row is that member in JSON; NULL: it is an element of the table. */
void weft_rows_begin(struct weft_rows *rows, const char *name);
/* The last row is not in text. */
void weft_rows_hide(struct weft_rows *rows);
/* Text tells of so many more rows that a flag shows; nothing if there is none. */
void weft_rows_more(struct weft_rows *rows, int32_t n_more);
/* The last row begins a series. */
void weft_rows_begin_series(struct weft_rows *rows);

/* Fill a cell of the last row. The words are copied; NULL is no value. */
void weft_rows_word(struct weft_rows *rows, int32_t column, const char *word);
void weft_rows_integer(struct weft_rows *rows, int32_t column, int64_t integer);
void weft_rows_real(struct weft_rows *rows, int32_t column, double real);
/* Sets the cell's text, which replaces the text of its value. */
void weft_rows_show(struct weft_rows *rows, int32_t column, enum weft_paint paint,
                    const char *format, ...) WEFT_PRINTF(4, 5);

/* Paints the text of a cell. */
void weft_rows_paint(struct weft_rows *rows, int32_t column, enum weft_paint paint);

/* Adds the object "error" to data: exit code, status and text, and the typed reason if there is
 * one.
 */
void weft_answer_error(struct weft_answer *answer, const struct weft_error *error);

/* Renderers. CSV has the tables with a key: a head and a line per row. Text has
 * no table without rows. */
void weft_answer_text(const struct weft_answer *answer, struct weft_text *out);
void weft_answer_json(const struct weft_answer *answer, struct weft_json_writer *writer);
void weft_answer_csv(const struct weft_answer *answer, struct weft_text *out);
/* The members of an open object, or the elements of an open list. */
void weft_answer_members(const struct weft_answer *answer, struct weft_json_writer *writer);

/* The text of a cell's value in its unit, "-" for none: a word as it is, or `out`. */
const char *weft_answer_cell_text(enum weft_figure figure, const struct weft_answer_cell *cell,
                                  char out[WEFT_UNITS_TEXT_BYTES]);

/* "12.3k" with three digits and a prefix. */
const char *weft_answer_count(double count, char out[WEFT_UNITS_TEXT_BYTES]);

#endif
