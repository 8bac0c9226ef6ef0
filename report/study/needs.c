#include "report/study/needs.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "report/table.h"

static const char *show_way(const struct weft_need *need)
{
    static const char *const texts[WEFT_NEED_WAYS] = {
        [WEFT_NEED_JUST_IN_TIME] = "just in time",
        [WEFT_NEED_PUBLISHED] = "published",
        [WEFT_NEED_FASTEST] = "fastest",
        [WEFT_NEED_EARLIEST] = "earliest",
    };
    return need->rule ? need->rule : texts[need->way];
}

void weft_need_show_fit(const struct weft_need *need, int64_t limit_bytes,
                        char out[WEFT_UNITS_TEXT_BYTES + 8])
{
    char bytes[WEFT_UNITS_TEXT_BYTES];
    int64_t over = need->bytes - limit_bytes;
    if (limit_bytes <= 0)
        out[0] = '\0';
    else if (over <= 0)
        snprintf(out, WEFT_UNITS_TEXT_BYTES + 8, "fits");
    else
        snprintf(out, WEFT_UNITS_TEXT_BYTES + 8, "+%s", weft_units_show_bytes(over, bytes));
}

void weft_need_add_name(const struct weft_need *row, const struct weft_need *before,
                        struct weft_table *table)
{
    const bool same = before && before->policy == row->policy;
    weft_table_cell(table, "%s", same ? "" : weft_policy_name(row->policy));
    weft_table_cell(table, "%s", show_way(row));
}

void weft_need_put_name(const struct weft_need *row, struct weft_json_writer *writer)
{
    weft_json_put_string(writer, "policy", weft_policy_name(row->policy));
    weft_json_put_string(writer, "way", row->rule ? "published" : show_way(row));
    if (row->rule) weft_json_put_string(writer, "rule", row->rule);
}

/* A long name keeps its end, which tells layers apart. */
static void add_name(struct weft_table *table, const char *name, size_t most)
{
    size_t length = strlen(name);
    if (length <= most)
        weft_table_cell(table, "%s", length > 0 ? name : "-");
    else
        weft_table_cell(table, "..%s", name + length - (most - 2));
}

void weft_report_needs(const struct weft_need *rows, int32_t n, int64_t limit_bytes,
                       struct weft_text *out)
{
    enum { SLOT_COLUMNS = 14, UNIT_COLUMNS = 10 }; /* room in 80 columns */
    struct weft_table table;
    char shown[WEFT_UNITS_TEXT_BYTES + 8];
    const struct weft_need *before = NULL;
    weft_table_init(&table, limit_bytes > 0 ? "llrrrll" : "llrrll");
    weft_table_cell(&table, "policy");
    weft_table_cell(&table, "schedule");
    weft_table_cell(&table, "needs");
    if (limit_bytes > 0)
        weft_table_cell(&table, "of %s", weft_units_show_bytes(limit_bytes, shown));
    weft_table_cell(&table, "step");
    weft_table_cell(&table, "peak slot");
    weft_table_cell(&table, "most by");
    for (int32_t i = 0; i < n; i++) {
        const struct weft_need *row = &rows[i];
        if (!row->applies) continue;
        weft_need_add_name(row, before, &table);
        weft_table_cell(&table, "%s", weft_units_show_bytes(row->bytes, shown));
        weft_need_show_fit(row, limit_bytes, shown);
        if (limit_bytes > 0)
            weft_table_cell_painted(
                &table, row->bytes <= limit_bytes ? WEFT_PAINT_GOOD : WEFT_PAINT_BAD, "%s", shown);
        weft_table_cell(&table, "%s",
                        row->step_ns > 0 ? weft_units_show_ns(row->step_ns, shown) : "-");
        add_name(&table, row->slot_name, SLOT_COLUMNS);
        add_name(&table, row->unit_shown ? row->unit_shown : row->unit_name, UNIT_COLUMNS);
        before = row;
    }
    weft_table_render(&table, 0, out);
    weft_table_finish(&table);
}

void weft_report_needs_memory(const struct weft_need *rows, int32_t n, struct weft_text *out)
{
    enum { MOST_RULES = 14 };
    const struct weft_need *rules[MOST_RULES];
    struct weft_table table;
    char align[MOST_RULES + 2] = "l", shown[WEFT_UNITS_TEXT_BYTES];
    int32_t n_rules = 0;
    bool staged = false; /* some rule holds a ring */
    for (int32_t i = 0; i < n && n_rules < MOST_RULES; i++) {
        if (!rows[i].applies || rows[i].way != WEFT_NEED_PUBLISHED) continue;
        staged |= rows[i].categories[WEFT_CATEGORY_STAGING] > 0;
        rules[n_rules++] = &rows[i];
        align[n_rules] = 'r';
    }
    if (n_rules == 0) return;
    weft_table_init(&table, align);
    weft_table_cell(&table, "at the peak of");
    for (int32_t i = 0; i < n_rules; i++)
        weft_table_cell(&table, "%s", rules[i]->rule);
    for (int c = 0; c < WEFT_CATEGORY_COUNT; c++) {
        if (c == WEFT_CATEGORY_STAGING && !staged) continue;
        weft_table_cell(&table, "%s", weft_category_text((enum weft_category)c));
        for (int32_t i = 0; i < n_rules; i++)
            weft_table_cell(&table, "%s", weft_units_show_bytes(rules[i]->categories[c], shown));
    }
    weft_table_render(&table, 0, out);
    weft_table_finish(&table);
}

static void put_need(const struct weft_need *row, int64_t limit_bytes, bool timed,
                     struct weft_json_writer *writer)
{
    static const char *const names[] = {"step_ns", "exposed_ns", "communication_ns"};
    const int64_t times_ns[] = {row->step_ns, row->exposed_ns, row->channel_ns};
    weft_json_begin_object(writer);
    weft_need_put_name(row, writer);
    weft_json_put_integer(writer, "needs_bytes", row->bytes);
    if (limit_bytes > 0) weft_json_put_bool(writer, "fits", row->bytes <= limit_bytes);
    weft_json_put_string(writer, "peak_slot", row->slot_name);
    weft_json_put_string(writer, "peak_unit", row->unit_name);
    weft_json_key(writer, "peak_memory_bytes");
    weft_json_begin_object(writer);
    for (int c = 0; c < WEFT_CATEGORY_COUNT; c++)
        weft_json_put_integer(writer, weft_category_key((enum weft_category)c), row->categories[c]);
    weft_json_end_object(writer);
    weft_json_put_string(writer, "reduce", weft_cadence_name(weft_period_cadence(&row->period)));
    weft_json_put_integer(writer, "update_ahead", row->period.update_ahead);
    for (int i = 0; i < 3; i++) {
        weft_json_key(writer, names[i]);
        if (timed)
            weft_json_add_integer(writer, times_ns[i]);
        else
            weft_json_add_null(writer);
    }
    weft_json_end_object(writer);
}

void weft_report_needs_json(const struct weft_need *rows, int32_t n, int64_t limit_bytes,
                            bool timed, struct weft_json_writer *writer)
{
    weft_json_begin_array(writer);
    for (int32_t i = 0; i < n; i++)
        if (rows[i].applies) put_need(&rows[i], limit_bytes, timed, writer);
    weft_json_end_array(writer);
}
