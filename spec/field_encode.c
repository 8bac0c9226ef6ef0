/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes values as text that decodes to the same bits. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "spec/field.h"

struct unit {
    const char *name;
    double size;
};

static const struct unit time_units[] = {
    {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {NULL, 0}};
static const struct unit rate_units[] = {
    {"TB/s", 1e12}, {"GB/s", 1e9}, {"MB/s", 1e6}, {"kB/s", 1e3}, {"B/s", 1}, {NULL, 0},
};
static const struct unit count_units[] = {
    {"P", 1e15}, {"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}, {"", 1}, {NULL, 0},
};

/* Uses the largest unit that divides the number. */
static void show_time(double number, struct weft_text *out)
{
    const struct unit *unit = time_units;
    int64_t whole = (int64_t)number;
    while (unit[1].name != NULL && (whole == 0 || whole % (int64_t)unit->size != 0))
        unit++;
    weft_text_addf(out, "%" PRId64 "%s", whole / (int64_t)unit->size, unit->name);
}

static bool reads_back(enum weft_field_kind kind, const char *string, double number)
{
    double read;
    enum weft_status status = kind == WEFT_FIELD_RATE ? weft_units_bytes_per_s(string, &read, NULL)
                                                      : weft_units_count(string, &read, NULL);
    return status == WEFT_OK && read == number;
}

/* Uses the largest unit and the fewest decimals that read back to the same number. */
static void show_real(enum weft_field_kind kind, double number, struct weft_text *out)
{
    enum { MOST_DECIMALS = 18 };
    char string[400];
    const struct unit *units = kind == WEFT_FIELD_RATE ? rate_units : count_units;
    for (const struct unit *unit = units; unit->name != NULL; unit++) {
        if (number < unit->size && unit->size != 1) continue;
        for (int decimals = 0; decimals <= MOST_DECIMALS; decimals++) {
            snprintf(string, sizeof string, "%.*f%s", decimals, number / unit->size, unit->name);
            if (!reads_back(kind, string, number)) continue;
            weft_text_add(out, string);
            return;
        }
    }
    snprintf(string, sizeof string, "%.*g%s", 17, number, kind == WEFT_FIELD_RATE ? "B/s" : "");
    weft_text_add(out, string);
}

void weft_field_show(const struct weft_field *field, double number, struct weft_text *out)
{
    struct weft_json_writer writer;
    char bytes[WEFT_UNITS_TEXT_BYTES];
    switch (field->kind) {
    case WEFT_FIELD_BYTES:
        weft_text_add(out, weft_units_write_bytes((int64_t)number, bytes));
        return;
    case WEFT_FIELD_TIME:
        show_time(number, out);
        return;
    case WEFT_FIELD_RATE:
    case WEFT_FIELD_COUNT_UNIT:
        show_real(field->kind, number, out);
        return;
    case WEFT_FIELD_INTEGER:
    case WEFT_FIELD_AUTO:
    case WEFT_FIELD_NAMED:
        weft_text_addf(out, "%.17g", number);
        return;
    case WEFT_FIELD_NUMBER:
    case WEFT_FIELD_BOOL:
    case WEFT_FIELD_STRING:
    case WEFT_FIELD_CHOICE:
    case WEFT_FIELD_CHOICES:
    case WEFT_FIELD_NUMBERS:
    case WEFT_FIELD_OBJECT:
    case WEFT_FIELD_SHORT:
    case WEFT_FIELD_SECTION:
    case WEFT_FIELD_LIST:
    case WEFT_FIELD_ANY:
    case WEFT_FIELD_REFUSED:
    case WEFT_FIELD_KIND_COUNT:
        break;
    }
    weft_json_writer_init(&writer, out, 0);
    weft_json_add_number(&writer, number);
}

/* True for a key with default "null" that is not given. */
static bool is_absent(const struct weft_field *field, const void *value)
{
    if (field->fallback == NULL || strcmp(field->fallback, "null") != 0) return false;
    switch (field->kind) {
    case WEFT_FIELD_INTEGER:
    case WEFT_FIELD_BYTES:
    case WEFT_FIELD_TIME:
        return *(const int64_t *)value == 0;
    case WEFT_FIELD_NUMBER:
    case WEFT_FIELD_RATE:
    case WEFT_FIELD_COUNT_UNIT:
        return *(const double *)value == 0;
    case WEFT_FIELD_STRING:
        return *(const char *const *)value == NULL;
    case WEFT_FIELD_SHORT:
        return *(const char *const *)((const char *)value + field->table->fields[0].offset) == NULL;
    case WEFT_FIELD_CHOICES:
        return *(const int *)value == 0;
    case WEFT_FIELD_OBJECT:
        return !*(const bool *)value;
    case WEFT_FIELD_BOOL:
        return !*(const bool *)value;
    case WEFT_FIELD_AUTO:
    case WEFT_FIELD_NAMED:
    case WEFT_FIELD_CHOICE:
    case WEFT_FIELD_NUMBERS:
    case WEFT_FIELD_SECTION:
    case WEFT_FIELD_LIST:
    case WEFT_FIELD_ANY:
    case WEFT_FIELD_REFUSED:
    case WEFT_FIELD_KIND_COUNT:
        break;
    }
    return false;
}

static void add_shown(const struct weft_field *field, double number,
                      struct weft_json_writer *writer)
{
    struct weft_text text;
    weft_text_init(&text);
    weft_field_show(field, number, &text);
    if (!weft_text_ok(&text)) writer->text->failed = true;
    weft_json_add_string(writer, weft_text_chars(&text));
    weft_text_finish(&text);
}

static void add_choice(const struct weft_field *field, int index, struct weft_json_writer *writer)
{
    struct weft_text text;
    weft_text_init(&text);
    weft_field_choice(field, index, &text);
    if (!weft_text_ok(&text)) writer->text->failed = true;
    weft_json_add_string(writer, weft_text_chars(&text));
    weft_text_finish(&text);
}

/* True if the key has its default. */
static bool is_usual(const struct weft_field *field, const void *target)
{
    struct weft_text is, usual;
    struct weft_json_writer writer;
    weft_text_init(&is);
    weft_text_init(&usual);
    weft_json_writer_init(&writer, &is, 0);
    weft_json_begin_object(&writer);
    weft_field_encode_key(field, target, &writer);
    weft_json_end_object(&writer);
    weft_text_addf(&usual, "{\"%s\": %s}", field->name, field->fallback);
    bool same = strcmp(weft_text_chars(&is), weft_text_chars(&usual)) == 0;
    weft_text_finish(&is);
    weft_text_finish(&usual);
    return same;
}

/* Writes the short form if all other keys have defaults. */
static void encode_short(const struct weft_field_table *table, const void *target,
                         struct weft_json_writer *writer)
{
    for (size_t i = 1; i < table->n_fields; i++) {
        if (is_usual(&table->fields[i], target)) continue;
        weft_field_encode(table, target, writer);
        return;
    }
    const char *first = (const char *)target + table->fields[0].offset;
    weft_json_add_string(writer, *(const char *const *)(const void *)first);
}

void weft_field_encode_key(const struct weft_field *field, const void *target,
                           struct weft_json_writer *writer)
{
    const void *value = (const char *)target + field->offset;
    if (field->kind == WEFT_FIELD_SECTION || field->kind == WEFT_FIELD_LIST ||
        field->kind == WEFT_FIELD_ANY || field->kind == WEFT_FIELD_REFUSED ||
        is_absent(field, value)) {
        return;
    }
    weft_json_key(writer, field->name);
    switch (field->kind) {
    case WEFT_FIELD_INTEGER:
        weft_json_add_integer(writer, *(const int64_t *)value);
        return;
    case WEFT_FIELD_AUTO:
        if (*(const int64_t *)value == 0)
            weft_json_add_string(writer, "auto");
        else
            weft_json_add_integer(writer, *(const int64_t *)value);
        return;
    case WEFT_FIELD_NAMED:
        if (*(const int64_t *)value <= 0)
            weft_json_add_string(writer, field->choices[-*(const int64_t *)value]);
        else
            weft_json_add_integer(writer, *(const int64_t *)value);
        return;
    case WEFT_FIELD_NUMBER:
        weft_json_add_number(writer, *(const double *)value);
        return;
    case WEFT_FIELD_BOOL:
        weft_json_add_bool(writer, *(const bool *)value);
        return;
    case WEFT_FIELD_STRING:
        weft_json_add_string(writer, *(const char *const *)value);
        return;
    case WEFT_FIELD_BYTES:
    case WEFT_FIELD_TIME:
        add_shown(field, (double)*(const int64_t *)value, writer);
        return;
    case WEFT_FIELD_RATE:
    case WEFT_FIELD_COUNT_UNIT:
        add_shown(field, *(const double *)value, writer);
        return;
    case WEFT_FIELD_CHOICE:
        add_choice(field, *(const int *)value, writer);
        return;
    case WEFT_FIELD_CHOICES:
        weft_json_begin_array(writer);
        for (int i = 0; field->choices[i] != NULL; i++)
            if ((*(const int *)value & 1 << i) != 0) add_choice(field, i, writer);
        weft_json_end_array(writer);
        return;
    case WEFT_FIELD_NUMBERS:
        weft_json_begin_array(writer);
        weft_json_add_number(writer, ((const double *)value)[0]);
        weft_json_add_number(writer, ((const double *)value)[1]);
        weft_json_end_array(writer);
        return;
    case WEFT_FIELD_OBJECT:
        weft_field_encode(field->table, value, writer);
        return;
    case WEFT_FIELD_SHORT:
        encode_short(field->table, value, writer);
        return;
    case WEFT_FIELD_SECTION:
    case WEFT_FIELD_LIST:
    case WEFT_FIELD_ANY:
    case WEFT_FIELD_REFUSED:
    case WEFT_FIELD_KIND_COUNT:
        return;
    }
}

void weft_field_encode(const struct weft_field_table *table, const void *target,
                       struct weft_json_writer *writer)
{
    weft_json_begin_object(writer);
    for (size_t i = 0; i < table->n_fields; i++) {
        weft_field_encode_key(&table->fields[i], target, writer);
    }
    weft_json_end_object(writer);
}

void weft_field_put_default(const struct weft_field *field, struct weft_json_writer *writer)
{
    struct weft_json *document = NULL;
    if (field->fallback == NULL || strcmp(field->fallback, "null") == 0) return;
    if (weft_json_parse(field->fallback, strlen(field->fallback), field->name, &document, NULL) !=
        WEFT_OK) {
        writer->text->failed = true;
        return;
    }
    weft_json_key(writer, "default");
    weft_json_add_value(writer, weft_json_root(document));
    weft_json_destroy(document);
}
