/* SPDX-License-Identifier: Apache-2.0 */
/* Renderers of answers: text, JSON, CSV. */
#include <stdio.h>
#include <string.h>

#include "report/answer.h"

const char *weft_answer_count(double count, char out[WEFT_UNITS_TEXT_BYTES])
{
    static const char *const prefixes[] = {"", "k", "M", "G"};
    int p = 0;
    for (; count >= 999.5 && p < 3; p++)
        count /= 1000;
    snprintf(out, WEFT_UNITS_TEXT_BYTES, "%.*f%s",
             count < 9.995   ? 2
             : count < 99.95 ? 1
                             : 0,
             count, prefixes[p]);
    return out;
}

const char *weft_answer_cell_text(enum weft_figure figure, const struct weft_answer_cell *cell,
                                  char out[WEFT_UNITS_TEXT_BYTES])
{
    const int64_t integer = cell->integer;
    const bool is_known = cell->kind != WEFT_CELL_NONE && figure != WEFT_FIGURE_BOOL;
    snprintf(out, WEFT_UNITS_TEXT_BYTES, "-");
    switch (is_known ? figure : WEFT_FIGURE_BOOL) {
    case WEFT_FIGURE_WORD:
        return cell->word;
    case WEFT_FIGURE_BOOL:
        break;
    case WEFT_FIGURE_INTEGER:
        snprintf(out, WEFT_UNITS_TEXT_BYTES, "%lld", (long long)integer);
        break;
    case WEFT_FIGURE_BYTES:
        weft_units_show_bytes(integer, out);
        break;
    case WEFT_FIGURE_NS:
        weft_units_show_ns(integer, out);
        break;
    case WEFT_FIGURE_REAL:
        snprintf(out, WEFT_UNITS_TEXT_BYTES, "%.2f", cell->real);
        break;
    case WEFT_FIGURE_SHORT:
        weft_answer_count(cell->real, out);
        break;
    case WEFT_FIGURE_PERCENT:
        snprintf(out, WEFT_UNITS_TEXT_BYTES, "%.2f %%", 100 * cell->real);
        break;
    case WEFT_FIGURE_PERMIL:
        snprintf(out, WEFT_UNITS_TEXT_BYTES, "%.3f %%", 100 * cell->real);
        break;
    }
    return out;
}

static void render_table(const struct weft_rows *rows, struct weft_text *out)
{
    char align[WEFT_TABLE_COLUMNS + 1] = "", text[WEFT_UNITS_TEXT_BYTES];
    struct weft_table table;
    int32_t n = 0;
    bool has_heads = false;
    for (int32_t c = 0; c < rows->n_columns && n < WEFT_TABLE_COLUMNS; c++) {
        if (rows->columns[c].head == NULL) continue;
        align[n++] = rows->columns[c].align;
        has_heads |= rows->columns[c].head[0] != '\0';
    }
    const struct weft_answer_row *shown = rows->first;
    while (shown != NULL && shown->is_data)
        shown = shown->next;
    if (n == 0 || shown == NULL) return;
    weft_table_init(&table, align);
    for (int32_t c = 0; c < rows->n_columns && has_heads; c++)
        if (rows->columns[c].head != NULL) weft_table_cell(&table, "%s", rows->columns[c].head);
    for (const struct weft_answer_row *row = rows->first; row; row = row->next) {
        for (int32_t c = 0; c < rows->n_columns && !row->is_data; c++) {
            const struct weft_answer_cell *cell = &row->cells[c];
            if (rows->columns[c].head == NULL) continue;
            if (cell->shown != NULL)
                weft_table_cell_painted(&table, cell->paint, "%s", cell->shown);
            else
                weft_table_cell_painted(&table, cell->paint, "%s",
                                        weft_answer_cell_text(rows->columns[c].figure, cell, text));
        }
    }
    if (rows->title != NULL) weft_text_addf(out, "%s\n", rows->title);
    weft_table_render(&table, rows->title != NULL ? 2 : rows->indent, out);
    weft_table_finish(&table);
    if (rows->n_more > 0) weft_text_addf(out, "  %d more, --all\n", rows->n_more);
    if (rows->note != NULL) weft_text_addf(out, "%s\n", rows->note);
}

/* Breaks a list after its commas into lines of the width of `out`. */
static void render_list(const char *list, size_t indent, struct weft_text *out)
{
    const size_t width = out->columns > 0 ? (size_t)out->columns : SIZE_MAX;
    size_t column = indent;
    for (;;) {
        const char *end = strstr(list, ", ");
        size_t word = end ? (size_t)(end - list) + 1 : strlen(list);
        if (column > indent && column + 1 + word > width) {
            weft_text_addf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            weft_text_add(out, " ");
            column++;
        }
        weft_text_append(out, list, word);
        column += word;
        if (!end) break;
        list = end + 2;
    }
    weft_text_add(out, "\n");
}

void weft_answer_text(const struct weft_answer *answer, struct weft_text *out)
{
    out->failed |= answer->failed;
    if (answer->failed) return;
    for (const struct weft_answer_part *part = answer->first; part; part = part->next) {
        if (part->is_data) continue;
        if (part->kind == WEFT_PART_TEXT && part->text != NULL) weft_text_add(out, part->text);
        if (part->kind == WEFT_PART_LIST && part->text != NULL) render_list(part->text, 10, out);
        if (part->rows != NULL) render_table(part->rows, out);
    }
}

static void put_value(enum weft_figure figure, const struct weft_answer_cell *cell,
                      struct weft_json_writer *writer)
{
    if (cell->kind == WEFT_CELL_NONE)
        weft_json_add_null(writer);
    else if (cell->kind == WEFT_CELL_WORD)
        weft_json_add_string(writer, cell->word);
    else if (cell->kind == WEFT_CELL_REAL)
        weft_json_add_number(writer, cell->real);
    else if (figure == WEFT_FIGURE_BOOL)
        weft_json_add_bool(writer, cell->integer != 0);
    else
        weft_json_add_integer(writer, cell->integer);
}

/* Whether JSON has the row's value of a column. */
static bool is_put(const struct weft_rows *rows, const struct weft_answer_row *row, int32_t column)
{
    const struct weft_column *of = &rows->columns[column];
    if (of->key == NULL || (of->flags & WEFT_COLUMN_CSV) != 0) return false;
    if (rows->points != NULL && column == 0) return false;
    return row->cells[column].kind != WEFT_CELL_NONE || (of->flags & WEFT_COLUMN_NULL) != 0;
}

/* Closes the inner objects of `open` that `key` is not in, and opens those of `key`. The result is
 * the last part of the key. Keys of one object follow one another. */
static const char *enter_objects(const char *open, const char *key, struct weft_json_writer *writer)
{
    size_t same = 0; /* characters of the objects that both are in */
    for (size_t i = 0; open[i] != '\0' && open[i] == key[i]; i++)
        if (key[i] == '.') same = i + 1;
    for (const char *at = open + same; (at = strchr(at, '.')) != NULL; at++)
        weft_json_end_object(writer);
    const char *last = key + same;
    for (const char *dot; (dot = strchr(last, '.')) != NULL; last = dot + 1) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)(dot - last), last);
        weft_json_key(writer, name);
        weft_json_begin_object(writer);
    }
    return last;
}

/* Writes the object of a row. */
static void put_row(const struct weft_rows *rows, const struct weft_answer_row *row,
                    struct weft_json_writer *writer)
{
    const char *open = ""; /* key of the column before */
    weft_json_begin_object(writer);
    if (rows->is_flat) weft_json_flat(writer);
    for (int32_t c = 0; c < rows->n_columns; c++) {
        const struct weft_column *column = &rows->columns[c];
        if (!is_put(rows, row, c)) continue;
        weft_json_key(writer, enter_objects(open, column->key, writer));
        put_value(column->figure, &row->cells[c], writer);
        open = column->key;
    }
    enter_objects(open, "", writer);
    weft_json_end_object(writer);
}

/* Writes rows with a name as members, or rows without a name as elements. */
static void put_rows(const struct weft_rows *rows, bool named, struct weft_json_writer *writer)
{
    for (const struct weft_answer_row *row = rows->first; row; row = row->next) {
        if ((row->name != NULL) != named) continue;
        if (named) weft_json_key(writer, row->name);
        put_row(rows, row, writer);
    }
}

/* Writes an object for each series. */
static void put_series(const struct weft_rows *rows, struct weft_json_writer *writer)
{
    for (const struct weft_answer_row *row = rows->first; row != NULL;) {
        weft_json_begin_object(writer);
        weft_json_key(writer, rows->columns[0].key);
        put_value(rows->columns[0].figure, &row->cells[0], writer);
        weft_json_key(writer, rows->points);
        weft_json_begin_array(writer);
        do {
            put_row(rows, row, writer);
            row = row->next;
        } while (row != NULL && !row->begins_series);
        weft_json_end_array(writer);
        weft_json_end_object(writer);
    }
}

static void put_table(const struct weft_rows *rows, struct weft_json_writer *writer)
{
    if (rows->key != NULL) weft_json_key(writer, rows->key);
    if (rows->key != NULL) {
        weft_json_begin_array(writer);
        if (rows->points != NULL)
            put_series(rows, writer);
        else
            put_rows(rows, false, writer);
        weft_json_end_array(writer);
    }
    put_rows(rows, true, writer);
}

void weft_answer_members(const struct weft_answer *answer, struct weft_json_writer *writer)
{
    /* A word whose copy failed is NULL, even a key. */
    writer->text->failed |= answer->failed;
    if (answer->failed) return;
    for (const struct weft_answer_part *part = answer->first; part; part = part->next) {
        const char *text = part->text != NULL ? part->text : "";
        struct weft_text line;
        switch (part->kind) {
        case WEFT_PART_TEXT:
            if (part->key == NULL) break;
            weft_text_init(&line);
            weft_text_append(&line, text, strcspn(text, "\n"));
            weft_json_put_string(writer, part->key, weft_text_chars(&line));
            weft_text_finish(&line);
            break;
        case WEFT_PART_LIST:
            break;
        case WEFT_PART_FACT:
            if (part->key != NULL) weft_json_key(writer, part->key);
            put_value(part->figure, &part->fact, writer);
            break;
        case WEFT_PART_TABLE:
            if (part->rows != NULL) put_table(part->rows, writer);
            break;
        case WEFT_PART_OPEN:
            if (part->key != NULL) weft_json_key(writer, part->key);
            weft_json_begin_object(writer);
            if (part->is_flat) weft_json_flat(writer);
            break;
        case WEFT_PART_CLOSE:
            weft_json_end_object(writer);
            break;
        case WEFT_PART_OPEN_LIST:
            if (part->key != NULL) weft_json_key(writer, part->key);
            weft_json_begin_array(writer);
            if (part->is_flat) weft_json_flat(writer);
            break;
        case WEFT_PART_CLOSE_LIST:
            weft_json_end_array(writer);
            break;
        }
    }
}

void weft_answer_json(const struct weft_answer *answer, struct weft_json_writer *writer)
{
    if (answer->is_list)
        weft_json_begin_array(writer);
    else
        weft_json_begin_object(writer);
    weft_answer_members(answer, writer);
    if (answer->is_list)
        weft_json_end_array(writer);
    else
        weft_json_end_object(writer);
}

/* A word, in quotes if it needs them. */
static void add_word(const char *word, bool quoted, struct weft_text *out)
{
    if (!quoted && strpbrk(word, ",\"\n\r") == NULL) {
        weft_text_add(out, word);
        return;
    }
    weft_text_add(out, "\"");
    for (; *word != '\0'; word++)
        weft_text_append(out, *word == '"' ? "\"\"" : word, *word == '"' ? 2 : 1);
    weft_text_add(out, "\"");
}

static void add_csv_row(const struct weft_rows *rows, const struct weft_answer_row *row,
                        struct weft_text *out)
{
    bool is_first = true;
    for (int32_t c = 0; c < rows->n_columns; c++) {
        const struct weft_column *column = &rows->columns[c];
        if (column->key == NULL || (column->flags & WEFT_COLUMN_JSON) != 0) continue;
        if (!is_first) weft_text_add(out, ",");
        is_first = false;
        if (row == NULL)
            weft_text_add(out, column->key);
        else if (row->cells[c].kind == WEFT_CELL_WORD)
            add_word(row->cells[c].word, (column->flags & WEFT_COLUMN_QUOTED) != 0, out);
        else if (row->cells[c].kind == WEFT_CELL_INTEGER)
            weft_text_addf(out, "%lld", (long long)row->cells[c].integer);
        else if (row->cells[c].kind == WEFT_CELL_REAL)
            weft_text_addf(out, "%.17g", row->cells[c].real);
    }
    weft_text_add(out, "\n");
}

void weft_answer_csv(const struct weft_answer *answer, struct weft_text *out)
{
    for (const struct weft_answer_part *part = answer->first; part; part = part->next) {
        if (part->rows == NULL || part->key == NULL) continue;
        add_csv_row(part->rows, NULL, out);
        for (const struct weft_answer_row *row = part->rows->first; row; row = row->next)
            if (!row->is_data) add_csv_row(part->rows, row, out);
    }
    if (answer->failed) out->failed = true;
}
