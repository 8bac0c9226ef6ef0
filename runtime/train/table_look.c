/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/table_look.h"

/* States of a reading: before a record, and within one. */
enum { BEGIN_RECORD, BEGIN_FIELD, IN_FIELD, IN_QUOTES, AFTER_QUOTE };

static const struct {
    unsigned char delimiter;
    bool quotes;
    enum weft_table_form form;
} rules[WEFT_TABLE_READINGS] = {
    {',', true, WEFT_TABLE_CSV}, {'\t', true, WEFT_TABLE_TSV}, {'\t', false, WEFT_TABLE_TSV}};

void weft_table_look_init(struct weft_table_look *look)
{
    *look = (struct weft_table_look){.bytes = 0};
}

static void end_field(struct weft_table_reading *reading)
{
    if (reading->fields == 0) reading->is_first_filled = reading->is_filled;
    reading->fields++;
}

static void end_record(struct weft_table_reading *reading)
{
    const bool is_blank = reading->state == BEGIN_RECORD;
    reading->state = BEGIN_RECORD;
    if (is_blank || reading->is_comment) {
        reading->blank_lines += is_blank;
        reading->is_comment = reading->is_spaced = reading->is_filled = false;
        reading->fields = 0;
        return;
    }
    end_field(reading);
    if (reading->records++ == 0) reading->wanted = reading->fields;
    reading->matches += reading->fields == reading->wanted;
    reading->spaced += reading->is_spaced;
    reading->first_filled += reading->is_first_filled;
    reading->last_filled += reading->is_filled;
    reading->is_over = reading->wanted < 2 || reading->records == WEFT_TABLE_RECORDS;
    reading->fields = 0;
    reading->is_spaced = reading->is_filled = false;
}

/* Adds a byte that ends no record. */
static void add_byte(struct weft_table_reading *reading, unsigned char byte,
                     unsigned char delimiter, bool quotes)
{
    const bool begins = reading->state == BEGIN_RECORD || reading->state == BEGIN_FIELD;
    if (reading->state == BEGIN_RECORD && reading->records == 0 && byte == '#')
        reading->is_comment = true;
    if (byte == delimiter) {
        end_field(reading);
        reading->is_filled = false;
        reading->state = BEGIN_FIELD;
        return;
    }
    if (reading->state == BEGIN_FIELD && byte == ' ') reading->is_spaced = true;
    if (byte != ' ') reading->is_filled = true;
    /* A quote within quotes may end them; a second one means the character. */
    if (quotes && byte == '"' && (begins || reading->state == AFTER_QUOTE))
        reading->state = IN_QUOTES;
    else
        reading->state = IN_FIELD;
}

/* No program writes such characters into a table. */
static bool is_control(unsigned char byte)
{
    return byte < ' ' && byte != '\t' && byte != '\n' && byte != '\r';
}

static void read_bytes(struct weft_table_reading *reading, const unsigned char *bytes, size_t n,
                       unsigned char delimiter, bool quotes)
{
    for (size_t i = 0; i < n && !reading->is_over; i++) {
        if (is_control(bytes[i])) {
            reading->is_over = true;
            reading->wanted = 0;
        } else if (reading->state == IN_QUOTES) {
            reading->state = bytes[i] == '"' ? AFTER_QUOTE : IN_QUOTES;
        } else if (bytes[i] == '\n') {
            end_record(reading);
        } else if (bytes[i] != '\r') {
            add_byte(reading, bytes[i], delimiter, quotes);
        }
    }
}

bool weft_table_look_add(struct weft_table_look *look, const unsigned char *bytes, size_t n)
{
    bool goes_on = false;
    look->bytes += (int64_t)n;
    for (int r = 0; r < WEFT_TABLE_READINGS; r++) {
        read_bytes(&look->readings[r], bytes, n, rules[r].delimiter, rules[r].quotes);
        goes_on = goes_on || !look->readings[r].is_over;
    }
    return goes_on && look->bytes < WEFT_TABLE_BYTES;
}

/* Nearly all of the records: one in twenty may be damaged. */
static bool is_nearly_all(int64_t n, int64_t records)
{
    return 20 * n >= 19 * records;
}

static bool is_table(const struct weft_table_reading *reading)
{
    const int64_t n = reading->records;
    return reading->wanted >= 2 && n >= WEFT_TABLE_LEAST_RECORDS &&
           is_nearly_all(reading->matches, n) && is_nearly_all(n - reading->spaced, n) &&
           is_nearly_all(n - reading->blank_lines, n) && 2 * reading->first_filled >= n &&
           2 * reading->last_filled >= n;
}

enum weft_table_form weft_table_look_form(const struct weft_table_look *look)
{
    for (int r = 0; r < WEFT_TABLE_READINGS; r++)
        if (is_table(&look->readings[r])) return rules[r].form;
    return WEFT_TABLE_NONE;
}
