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

/* The text of a value in its unit; "-" for none. */
static void add_value(struct weft_table *table, enum weft_figure figure,
                      const struct weft_answer_cell *cell)
{
    char text[WEFT_UNITS_TEXT_BYTES] = "-";
    const int64_t integer = cell->integer;
    const bool is_known = cell->kind != WEFT_CELL_NONE && figure != WEFT_FIGURE_BOOL;
    switch (is_known ? figure : WEFT_FIGURE_BOOL) {
    case WEFT_FIGURE_WORD:
        weft_table_cell_painted(table, cell->paint, "%s", cell->word);
        return;
    case WEFT_FIGURE_BOOL:
        break;
    case WEFT_FIGURE_INTEGER:
        snprintf(text, sizeof text, "%lld", (long long)integer);
        break;
    case WEFT_FIGURE_BYTES:
        weft_units_show_bytes(integer, text);
        break;
    case WEFT_FIGURE_NS:
        weft_units_show_ns(integer, text);
        break;
    case WEFT_FIGURE_REAL:
        snprintf(text, sizeof text, "%.2f", cell->real);
        break;
    case WEFT_FIGURE_SHORT:
        weft_answer_count(cell->real, text);
        break;
    case WEFT_FIGURE_PERCENT:
        snprintf(text, sizeof text, "%.2f %%", 100 * cell->real);
        break;
    case WEFT_FIGURE_PERMIL:
        snprintf(text, sizeof text, "%.3f %%", 100 * cell->real);
        break;
    }
    weft_table_cell(table, "%s", text);
}

static void render_table(const struct weft_rows *rows, struct weft_text *out)
{
    char align[WEFT_TABLE_COLUMNS + 1] = "";
    struct weft_table table;
    int32_t n = 0;
    for (int32_t c = 0; c < rows->n_columns && n < WEFT_TABLE_COLUMNS; c++)
        if (rows->columns[c].head != NULL) align[n++] = rows->columns[c].align;
    if (n == 0) return;
    weft_table_init(&table, align);
    for (int32_t c = 0; c < rows->n_columns; c++)
        if (rows->columns[c].head != NULL) weft_table_cell(&table, "%s", rows->columns[c].head);
    for (const struct weft_answer_row *row = rows->first; row; row = row->next) {
        for (int32_t c = 0; c < rows->n_columns && !row->is_data; c++) {
            const struct weft_answer_cell *cell = &row->cells[c];
            if (rows->columns[c].head == NULL) continue;
            if (cell->shown != NULL)
                weft_table_cell_painted(&table, cell->paint, "%s", cell->shown);
            else
                add_value(&table, rows->columns[c].figure, cell);
        }
    }
    weft_table_render(&table, rows->indent, out);
    weft_table_finish(&table);
}

void weft_answer_text(const struct weft_answer *answer, struct weft_text *out)
{
    for (const struct weft_answer_part *part = answer->first; part; part = part->next) {
        if (part->text != NULL) weft_text_add(out, part->text);
        if (part->rows != NULL) render_table(part->rows, out);
    }
    if (answer->failed) out->failed = true;
}

static void put_cell(const char *key, enum weft_figure figure, bool is_null,
                     const struct weft_answer_cell *cell, struct weft_json_writer *writer)
{
    if (cell->kind == WEFT_CELL_NONE && !is_null) return;
    weft_json_key(writer, key);
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

/* Writes the members of a row. Columns "a.b" of one a follow one another. */
static void put_row(const struct weft_rows *rows, const struct weft_answer_row *row,
                    struct weft_json_writer *writer)
{
    const char *open = NULL; /* key of the first column in the open inner object */
    size_t length = 0;       /* of the inner object's name */
    weft_json_begin_object(writer);
    if (rows->is_flat) weft_json_flat(writer);
    for (int32_t c = 0; c < rows->n_columns; c++) {
        const struct weft_column *column = &rows->columns[c];
        if (column->key == NULL) continue;
        if (row->cells[c].kind == WEFT_CELL_NONE && !column->is_null) continue;
        const char *dot = strchr(column->key, '.');
        if (open != NULL && strncmp(open, column->key, length + 1) != 0) {
            weft_json_end_object(writer);
            open = NULL;
        }
        if (open == NULL && dot != NULL) {
            char name[64];
            length = (size_t)(dot - column->key);
            snprintf(name, sizeof name, "%.*s", (int)length, column->key);
            weft_json_key(writer, name);
            weft_json_begin_object(writer);
            open = column->key;
        }
        put_cell(dot ? dot + 1 : column->key, column->figure, column->is_null, &row->cells[c],
                 writer);
    }
    if (open != NULL) weft_json_end_object(writer);
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

static void put_table(const struct weft_rows *rows, struct weft_json_writer *writer)
{
    if (rows->key != NULL) weft_json_key(writer, rows->key);
    if (rows->key != NULL && rows->is_object) {
        weft_json_begin_object(writer);
        put_rows(rows, true, writer);
        weft_json_end_object(writer);
        return;
    }
    if (rows->key != NULL) {
        weft_json_begin_array(writer);
        put_rows(rows, false, writer);
        weft_json_end_array(writer);
    }
    put_rows(rows, true, writer);
}

static void put_text(const char *key, const char *text, struct weft_json_writer *writer)
{
    struct weft_text line;
    weft_text_init(&line);
    weft_text_append(&line, text, strcspn(text, "\n"));
    weft_json_put_string(writer, key, weft_text_chars(&line));
    weft_text_finish(&line);
}

void weft_answer_members(const struct weft_answer *answer, struct weft_json_writer *writer)
{
    for (const struct weft_answer_part *part = answer->first; part; part = part->next) {
        if (part->rows != NULL)
            put_table(part->rows, writer);
        else if (part->key != NULL && part->text != NULL)
            put_text(part->key, part->text, writer);
        else if (part->key != NULL)
            put_cell(part->key, WEFT_FIGURE_WORD, true, &part->fact, writer);
    }
    if (answer->failed) writer->text->failed = true;
}

void weft_answer_json(const struct weft_answer *answer, struct weft_json_writer *writer)
{
    weft_json_begin_object(writer);
    weft_answer_members(answer, writer);
    weft_json_end_object(writer);
}

/* A word in quotes if it needs them. */
static void add_word(const char *word, struct weft_text *out)
{
    if (strpbrk(word, ",\"\n\r") == NULL) {
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
        if (rows->columns[c].key == NULL) continue;
        if (!is_first) weft_text_add(out, ",");
        is_first = false;
        if (row == NULL)
            weft_text_add(out, rows->columns[c].key);
        else if (row->cells[c].kind == WEFT_CELL_WORD)
            add_word(row->cells[c].word, out);
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
