/* SPDX-License-Identifier: Apache-2.0 */
#include "report/study/needs.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"

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

void weft_need_put_name(struct weft_rows *rows, const struct weft_need *row,
                        const struct weft_need *before)
{
    weft_rows_word(rows, WEFT_NEED_POLICY, weft_policy_name(row->policy));
    if (before != NULL && before->policy == row->policy)
        weft_rows_show(rows, WEFT_NEED_POLICY, WEFT_PAINT_NONE, "%s", "");
    weft_rows_word(rows, WEFT_NEED_SHOWN, show_way(row));
    weft_rows_word(rows, WEFT_NEED_WAY, row->rule ? "published" : show_way(row));
    weft_rows_word(rows, WEFT_NEED_RULE, row->rule);
}

/* A long name keeps its end, which tells layers apart. */
static void put_end(struct weft_rows *rows, int32_t column, const char *name, size_t most)
{
    const size_t length = strlen(name);
    weft_rows_show(rows, column, WEFT_PAINT_NONE, "%s%s", length > most ? ".." : "",
                   length == 0      ? "-"
                   : length <= most ? name
                                    : name + length - (most - 2));
}

enum { NEEDS = WEFT_NEED_COLUMNS, FITS, SHOWN_STEP, SLOT, UNIT, MEMORY };
enum { REDUCE = MEMORY + WEFT_CATEGORY_OF_DEVICE, AHEAD, TIMES, N_COLUMNS = TIMES + 3 };

static void put_need(struct weft_rows *rows, const struct weft_need *row, int64_t limit_bytes,
                     bool timed)
{
    enum { SLOT_COLUMNS = 14, UNIT_COLUMNS = 10 }; /* room in 80 columns */
    const int64_t times_ns[] = {row->step_ns, row->exposed_ns, row->channel_ns};
    char shown[WEFT_UNITS_TEXT_BYTES + 8];
    weft_rows_integer(rows, NEEDS, row->bytes);
    if (limit_bytes > 0) weft_rows_integer(rows, FITS, row->bytes <= limit_bytes);
    weft_need_show_fit(row, limit_bytes, shown);
    weft_rows_show(rows, FITS, row->bytes <= limit_bytes ? WEFT_PAINT_GOOD : WEFT_PAINT_BAD, "%s",
                   shown);
    if (row->step_ns > 0) weft_rows_integer(rows, SHOWN_STEP, row->step_ns);
    weft_rows_word(rows, SLOT, row->slot_name);
    put_end(rows, SLOT, row->slot_name, SLOT_COLUMNS);
    weft_rows_word(rows, UNIT, row->unit_name);
    put_end(rows, UNIT, row->unit_shown ? row->unit_shown : row->unit_name, UNIT_COLUMNS);
    for (int c = 0; c < WEFT_CATEGORY_OF_DEVICE; c++)
        weft_rows_integer(rows, MEMORY + c, row->categories[c]);
    weft_rows_word(rows, REDUCE, weft_cadence_name(weft_period_cadence(&row->period)));
    weft_rows_integer(rows, AHEAD, row->period.update_ahead);
    for (int i = 0; i < 3 && timed; i++)
        weft_rows_integer(rows, TIMES + i, times_ns[i]);
}

void weft_report_needs(const struct weft_need *needs, int32_t n, int64_t limit_bytes, bool timed,
                       struct weft_answer *answer)
{
    struct weft_column columns[N_COLUMNS] = {
        WEFT_NEED_NAMES,
        [NEEDS] = {"needs_bytes", "needs", 'r', WEFT_FIGURE_BYTES, 0},
        [FITS] = {"fits", NULL, 'r', WEFT_FIGURE_BOOL, 0},
        [SHOWN_STEP] = {NULL, "step", 'r', WEFT_FIGURE_NS, 0},
        [SLOT] = {"peak_slot", "peak slot", 'l', WEFT_FIGURE_WORD, 0},
        [UNIT] = {"peak_unit", "most by", 'l', WEFT_FIGURE_WORD, 0},
        [REDUCE] = {"reduce", NULL, 'l', WEFT_FIGURE_WORD, 0},
        [AHEAD] = {"update_ahead", NULL, 'r', WEFT_FIGURE_INTEGER, 0},
        [TIMES] = {"step_ns", NULL, 'r', WEFT_FIGURE_NS, WEFT_COLUMN_NULL},
        [TIMES + 1] = {"exposed_ns", NULL, 'r', WEFT_FIGURE_NS, WEFT_COLUMN_NULL},
        [TIMES + 2] = {"communication_ns", NULL, 'r', WEFT_FIGURE_NS, WEFT_COLUMN_NULL},
    };
    char limit[WEFT_UNITS_TEXT_BYTES];
    const struct weft_need *before = NULL;
    for (int c = 0; c < WEFT_CATEGORY_OF_DEVICE; c++)
        columns[MEMORY + c] =
            (struct weft_column){weft_pool_format(&answer->pool, "peak_memory_bytes.%s",
                                                  weft_category_key((enum weft_category)c)),
                                 NULL, 'r', WEFT_FIGURE_BYTES, 0};
    struct weft_rows *rows = weft_answer_table(answer, "rows", columns, N_COLUMNS);
    if (limit_bytes > 0)
        weft_rows_head(rows, FITS, "of %s", weft_units_show_bytes(limit_bytes, limit));
    for (int32_t i = 0; i < n; i++) {
        if (!needs[i].applies) continue;
        weft_rows_begin(rows, NULL);
        weft_need_put_name(rows, &needs[i], before);
        put_need(rows, &needs[i], limit_bytes, timed);
        before = &needs[i];
    }
}

void weft_report_needs_memory(const struct weft_need *needs, int32_t n, struct weft_answer *answer)
{
    enum { MOST_RULES = 14 };
    const struct weft_need *rules[MOST_RULES];
    struct weft_column columns[MOST_RULES + 1] = {
        {NULL, "at the peak of", 'l', WEFT_FIGURE_WORD, 0}};
    int32_t n_rules = 0;
    bool staged = false; /* some rule holds a ring */
    for (int32_t i = 0; i < n && n_rules < MOST_RULES; i++) {
        if (!needs[i].applies || needs[i].way != WEFT_NEED_PUBLISHED) continue;
        staged |= needs[i].categories[WEFT_CATEGORY_STAGING] > 0;
        rules[n_rules++] = &needs[i];
        columns[n_rules] = (struct weft_column){NULL, needs[i].rule, 'r', WEFT_FIGURE_BYTES, 0};
    }
    if (n_rules == 0) return;
    struct weft_rows *rows = weft_answer_table(answer, NULL, columns, n_rules + 1);
    for (int c = 0; c < WEFT_CATEGORY_OF_DEVICE; c++) {
        if (c == WEFT_CATEGORY_STAGING && !staged) continue;
        weft_rows_begin(rows, NULL);
        weft_rows_word(rows, 0, weft_category_text((enum weft_category)c));
        for (int32_t i = 0; i < n_rules; i++)
            weft_rows_integer(rows, 1 + i, rules[i]->categories[c]);
    }
}
