/* SPDX-License-Identifier: Apache-2.0 */
#include "report/answer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void weft_answer_finish(struct weft_answer *answer)
{
    weft_pool_finish(&answer->pool);
    *answer = (struct weft_answer){0};
}

static const char *format_words(struct weft_answer *answer, const char *format, va_list values)
{
    va_list again;
    va_copy(again, values);
    const int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *out = length < 0 ? NULL : weft_pool_array(&answer->pool, (size_t)length + 1, 1);
    if (out == NULL)
        answer->failed = true;
    else
        vsnprintf(out, (size_t)length + 1, format, values);
    return out;
}

static const char *copy_word(struct weft_answer *answer, const char *word)
{
    const char *out = word == NULL ? NULL : weft_pool_string(&answer->pool, word);
    if (word != NULL && out == NULL) answer->failed = true;
    return out;
}

/* Adds an empty part; NULL without memory. */
static struct weft_answer_part *add_part(struct weft_answer *answer, enum weft_part kind,
                                         const char *key)
{
    struct weft_answer_part *part = weft_pool_array(&answer->pool, 1, sizeof *part);
    if (part == NULL) {
        answer->failed = true;
        return NULL;
    }
    part->kind = kind;
    part->is_data = answer->is_hidden;
    part->key = copy_word(answer, key);
    *(answer->last ? &answer->last->next : &answer->first) = part;
    answer->last = part;
    return part;
}

void weft_answer_say(struct weft_answer *answer, const char *key, const char *format, ...)
{
    struct weft_answer_part *part = add_part(answer, WEFT_PART_TEXT, key);
    va_list values;
    if (part == NULL) return;
    va_start(values, format);
    part->text = format_words(answer, format, values);
    va_end(values);
}

void weft_answer_lead(struct weft_answer *answer, const char *format, ...)
{
    struct weft_answer_part *part = weft_pool_array(&answer->pool, 1, sizeof *part);
    va_list values;
    if (part == NULL) {
        answer->failed = true;
        return;
    }
    part->kind = WEFT_PART_TEXT;
    va_start(values, format);
    part->text = format_words(answer, format, values);
    va_end(values);
    part->next = answer->first;
    answer->first = part;
    if (answer->last == NULL) answer->last = part;
}

void weft_answer_list(struct weft_answer *answer, const char *head, const char *list)
{
    if (*list == '\0') return;
    weft_answer_say(answer, NULL, "%-10s", head);
    struct weft_answer_part *part = add_part(answer, WEFT_PART_LIST, NULL);
    if (part != NULL) part->text = copy_word(answer, list);
}

static void add_fact(struct weft_answer *answer, const char *key, enum weft_figure figure,
                     struct weft_answer_cell fact)
{
    struct weft_answer_part *part = add_part(answer, WEFT_PART_FACT, key);
    if (part == NULL) return;
    part->figure = figure;
    part->fact = fact;
}

void weft_answer_word(struct weft_answer *answer, const char *key, const char *word)
{
    add_fact(answer, key, WEFT_FIGURE_WORD,
             (struct weft_answer_cell){.kind = WEFT_CELL_WORD, .word = copy_word(answer, word)});
}

void weft_answer_bool(struct weft_answer *answer, const char *key, bool boolean)
{
    add_fact(answer, key, WEFT_FIGURE_BOOL,
             (struct weft_answer_cell){.kind = WEFT_CELL_INTEGER, .integer = boolean});
}

void weft_answer_integer(struct weft_answer *answer, const char *key, int64_t integer)
{
    add_fact(answer, key, WEFT_FIGURE_INTEGER,
             (struct weft_answer_cell){.kind = WEFT_CELL_INTEGER, .integer = integer});
}

void weft_answer_real(struct weft_answer *answer, const char *key, double real)
{
    add_fact(answer, key, WEFT_FIGURE_REAL,
             (struct weft_answer_cell){.kind = WEFT_CELL_REAL, .real = real});
}

void weft_answer_open(struct weft_answer *answer, const char *key)
{
    (void)add_part(answer, WEFT_PART_OPEN, key);
}

void weft_answer_close(struct weft_answer *answer)
{
    (void)add_part(answer, WEFT_PART_CLOSE, NULL);
}

void weft_answer_open_list(struct weft_answer *answer, const char *key)
{
    (void)add_part(answer, WEFT_PART_OPEN_LIST, key);
}

void weft_answer_close_list(struct weft_answer *answer)
{
    (void)add_part(answer, WEFT_PART_CLOSE_LIST, NULL);
}

void weft_answer_flat(struct weft_answer *answer)
{
    if (answer->last != NULL) answer->last->is_flat = true;
}

void weft_answer_error(struct weft_answer *answer, const struct weft_error *error)
{
    const char *lack = weft_lack_name(error->lacks);
    const char *status = weft_status_text(error->status);
    weft_answer_open(answer, "error");
    weft_answer_integer(answer, "exit_code", weft_status_exit_code(error->status));
    weft_answer_word(answer, "status", status);
    weft_answer_word(answer, "text", error->text[0] != '\0' ? error->text : status);
    if (lack != NULL) weft_answer_word(answer, "lacks", lack);
    if (error->needs_bytes > 0) weft_answer_integer(answer, "needs_bytes", error->needs_bytes);
    weft_answer_close(answer);
}

struct weft_rows *weft_answer_table(struct weft_answer *answer, const char *key,
                                    const struct weft_column *columns, int32_t n_columns)
{
    const size_t n = (size_t)n_columns;
    struct weft_answer_part *part = add_part(answer, WEFT_PART_TABLE, key);
    if (part == NULL) return NULL;
    struct weft_rows *rows = weft_pool_array(&answer->pool, 1, sizeof *rows);
    struct weft_column *own = weft_pool_array(&answer->pool, n, sizeof *own);
    if (rows == NULL || own == NULL) {
        answer->failed = true;
        return NULL;
    }
    memcpy(own, columns, n * sizeof *own);
    *rows =
        (struct weft_rows){.answer = answer, .key = key, .n_columns = n_columns, .columns = own};
    part->rows = rows;
    return rows;
}

void weft_rows_head(struct weft_rows *rows, int32_t column, const char *format, ...)
{
    va_list values;
    if (rows == NULL) return;
    rows->columns[column].head = NULL;
    if (format == NULL) return;
    va_start(values, format);
    rows->columns[column].head = format_words(rows->answer, format, values);
    va_end(values);
}

void weft_rows_title(struct weft_rows *rows, const char *format, ...)
{
    va_list values;
    if (rows == NULL) return;
    va_start(values, format);
    rows->title = format_words(rows->answer, format, values);
    va_end(values);
}

void weft_rows_note(struct weft_rows *rows, const char *format, ...)
{
    va_list values;
    if (rows == NULL) return;
    va_start(values, format);
    rows->note = format_words(rows->answer, format, values);
    va_end(values);
}

void weft_rows_begin(struct weft_rows *rows, const char *name)
{
    if (rows == NULL) return;
    struct weft_pool *pool = &rows->answer->pool;
    struct weft_answer_row *row = weft_pool_array(pool, 1, sizeof *row);
    struct weft_answer_cell *cells = weft_pool_array(pool, (size_t)rows->n_columns, sizeof *cells);
    if (row == NULL || cells == NULL) {
        rows->answer->failed = true;
        return;
    }
    row->name = copy_word(rows->answer, name);
    row->cells = cells;
    *(rows->last ? &rows->last->next : &rows->first) = row;
    rows->last = row;
    rows->n_rows++;
}

void weft_rows_hide(struct weft_rows *rows)
{
    if (rows != NULL && rows->last != NULL) rows->last->is_data = true;
}

void weft_rows_more(struct weft_rows *rows, int32_t n_more)
{
    if (rows != NULL) rows->n_more = n_more;
}

void weft_rows_begin_series(struct weft_rows *rows)
{
    if (rows != NULL && rows->last != NULL) rows->last->begins_series = true;
}

/* A cell of the last row; NULL if memory was short. */
static struct weft_answer_cell *find_cell(struct weft_rows *rows, int32_t column)
{
    return rows == NULL || rows->last == NULL ? NULL : &rows->last->cells[column];
}

void weft_rows_word(struct weft_rows *rows, int32_t column, const char *word)
{
    struct weft_answer_cell *cell = find_cell(rows, column);
    if (cell == NULL || word == NULL) return;
    cell->kind = WEFT_CELL_WORD;
    cell->word = copy_word(rows->answer, word);
}

void weft_rows_integer(struct weft_rows *rows, int32_t column, int64_t integer)
{
    struct weft_answer_cell *cell = find_cell(rows, column);
    if (cell == NULL) return;
    cell->kind = WEFT_CELL_INTEGER;
    cell->integer = integer;
}

void weft_rows_real(struct weft_rows *rows, int32_t column, double real)
{
    struct weft_answer_cell *cell = find_cell(rows, column);
    if (cell == NULL) return;
    cell->kind = WEFT_CELL_REAL;
    cell->real = real;
}

void weft_rows_show(struct weft_rows *rows, int32_t column, enum weft_paint paint,
                    const char *format, ...)
{
    struct weft_answer_cell *cell = find_cell(rows, column);
    va_list values;
    if (cell == NULL) return;
    va_start(values, format);
    cell->shown = format_words(rows->answer, format, values);
    va_end(values);
    cell->paint = paint;
}

void weft_rows_paint(struct weft_rows *rows, int32_t column, enum weft_paint paint)
{
    struct weft_answer_cell *cell = find_cell(rows, column);
    if (cell != NULL) cell->paint = paint;
}
