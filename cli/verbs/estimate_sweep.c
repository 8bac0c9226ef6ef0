/* `weft estimate --sweep` over the values of one key, or all pairs of two. */
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "base/watch.h"
#include "cli/verbs/estimate.h"
#include "report/study/needs.h"
#include "report/table.h"

enum { MOST_VALUES = 64, SETTING_BYTES = 256 };

/* The values of one key, as overrides. */
struct axis {
    char key[SETTING_BYTES];
    int32_t n;
    char settings[MOST_VALUES][SETTING_BYTES];
};

static const char *value_of(const struct axis *axis, int32_t i)
{
    return axis->settings[i] + strlen(axis->key) + 1;
}

static enum weft_status read_axis(const char *text, struct axis *out, struct weft_error *err)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return weft_fail(err, WEFT_E_USAGE, "--sweep %s: write --sweep path.key=a,b,c", text);
    int key = (int)(equals - text);
    snprintf(out->key, sizeof out->key, "%.*s", key, text);
    for (const char *value = equals + 1;; value++) {
        int length = (int)strcspn(value, ",");
        if (out->n == MOST_VALUES)
            return weft_fail(err, WEFT_E_USAGE, "--sweep %s: at most %d values", text, MOST_VALUES);
        int written =
            snprintf(out->settings[out->n++], SETTING_BYTES, "%.*s=%.*s", key, text, length, value);
        if (length == 0 || written < 0 || written >= SETTING_BYTES)
            return weft_fail(err, WEFT_E_USAGE, "--sweep %s: an empty or over-long value", text);
        value += length;
        if (*value == '\0') return WEFT_OK;
    }
}

/* One place of a sweep: one setting per axis. */
struct place {
    const char *settings[2];
    int32_t n;
};

static enum weft_status estimate_place(const struct weft_cli *cli, const struct place *place,
                                       uint32_t asked, struct weft_estimate *out,
                                       struct weft_json_writer *writer, struct weft_error *err)
{
    WEFT_TRY(weft_estimate_at(cli, place->settings, place->n, asked, out, err));
    weft_json_begin_object(writer);
    weft_json_key(writer, "set");
    weft_json_begin_array(writer);
    for (int32_t i = 0; i < place->n; i++)
        weft_json_add_string(writer, place->settings[i]);
    weft_json_end_array(writer);
    weft_estimate_put(out, writer);
    weft_json_end_object(writer);
    return WEFT_OK;
}

static enum weft_status sweep_list(const struct weft_cli *cli, const struct axis *axis,
                                   struct weft_text *out, struct weft_json_writer *writer,
                                   struct weft_error *err)
{
    for (int32_t i = 0; i < axis->n; i++) {
        weft_watch_count(cli->watch, "value", i, axis->n);
        struct weft_estimate estimate;
        struct place place = {{axis->settings[i]}, 1};
        enum weft_status status =
            estimate_place(cli, &place, WEFT_ESTIMATE_ALL, &estimate, writer, err);
        if (status == WEFT_OK) {
            weft_text_addf(out, "%s%s\n", i > 0 ? "\n" : "", axis->settings[i]);
            weft_report_needs(estimate.rows, WEFT_ESTIMATE_ROWS, estimate.limit_bytes, out);
        }
        weft_estimate_finish(&estimate);
        WEFT_TRY(status);
    }
    return WEFT_OK;
}

/* Chooses a cell's row: the first published rule that fits, which communicates least; otherwise the
 * smallest just-in-time row. */
static const struct weft_need *choose_row(const struct weft_estimate *estimate)
{
    const struct weft_need *least = NULL;
    for (int i = 0; i < WEFT_ESTIMATE_ROWS; i++) {
        const struct weft_need *row = &estimate->rows[i];
        if (!row->applies) continue;
        if (row->way == WEFT_NEED_PUBLISHED && row->bytes <= estimate->limit_bytes) return row;
        if (row->way == WEFT_NEED_JUST_IN_TIME && (!least || row->bytes < least->bytes))
            least = row;
    }
    return least;
}

static void add_cell(struct weft_table *table, const struct weft_estimate *estimate)
{
    char bytes[WEFT_UNITS_TEXT_BYTES], fit[WEFT_UNITS_TEXT_BYTES + 8];
    const struct weft_need *row = choose_row(estimate);
    if (!row) {
        weft_table_cell(table, "-");
        return;
    }
    const char *policy = weft_policy_name(row->policy);
    weft_units_show_bytes(row->bytes, bytes);
    weft_need_show_fit(row, estimate->limit_bytes, fit);
    if (row->way == WEFT_NEED_PUBLISHED)
        weft_table_cell_painted(table, WEFT_PAINT_GOOD, "%s %s", policy, bytes);
    else if (row->bytes <= estimate->limit_bytes)
        weft_table_cell(table, "(%s) %s", policy, bytes);
    else
        weft_table_cell_painted(table, WEFT_PAINT_BAD, "%s", fit);
}

static enum weft_status sweep_grid(const struct weft_cli *cli, const struct axis axes[2],
                                   struct weft_text *out, struct weft_json_writer *writer,
                                   struct weft_error *err)
{
    const uint32_t asked =
        weft_estimate_rows_of(1u << WEFT_NEED_JUST_IN_TIME | 1u << WEFT_NEED_PUBLISHED);
    char align[MOST_VALUES + 2] = "r", limit[WEFT_UNITS_TEXT_BYTES];
    struct weft_table table;
    enum weft_status status = WEFT_OK;
    memset(align + 1, 'r', (size_t)axes[1].n);
    weft_table_init(&table, align);
    weft_table_cell(&table, "%s", axes[0].key);
    for (int32_t c = 0; c < axes[1].n; c++)
        weft_table_cell(&table, "%s", value_of(&axes[1], c));
    int64_t limit_bytes = 0;
    for (int32_t r = 0; r < axes[0].n && status == WEFT_OK; r++) {
        weft_table_cell(&table, "%s", value_of(&axes[0], r));
        for (int32_t c = 0; c < axes[1].n && status == WEFT_OK; c++) {
            weft_watch_count(cli->watch, "place", r * axes[1].n + c, axes[0].n * axes[1].n);
            struct weft_estimate estimate;
            struct place place = {{axes[0].settings[r], axes[1].settings[c]}, 2};
            status = estimate_place(cli, &place, asked, &estimate, writer, err);
            if (status == WEFT_OK && estimate.limit_bytes == 0)
                status = weft_fail(err, WEFT_E_USAGE,
                                   "--sweep twice asks what fits: give --memory-limit, or "
                                   "cluster.memory_limit");
            if (status == WEFT_OK) add_cell(&table, &estimate);
            limit_bytes = estimate.limit_bytes;
            weft_estimate_finish(&estimate);
        }
    }
    weft_text_addf(out, "what fits in %s a rank: %s down, %s across\n",
                   weft_units_show_bytes(limit_bytes, limit), axes[0].key, axes[1].key);
    weft_table_render(&table, 0, out);
    weft_table_finish(&table);
    weft_text_add(out, "the first of dp, zero1, sdp, fsdp that fits as its rule issues; (in "
                       "brackets): just in time alone; +: what is lacking for any\n");
    return status;
}

enum weft_status weft_estimate_sweep(const struct weft_cli *cli, struct weft_text *out,
                                     struct weft_text *json, struct weft_error *err)
{
    struct axis axes[2] = {{.n = 0}, {.n = 0}};
    struct weft_json_writer writer;
    for (int32_t i = 0; i < cli->n_sweeps; i++)
        WEFT_TRY(read_axis(cli->sweeps[i], &axes[i], err));
    if (cli->n_sweeps == 2 && strcmp(axes[0].key, axes[1].key) == 0)
        return weft_fail(err, WEFT_E_USAGE, "--sweep %s: the same key twice", axes[0].key);
    weft_json_writer_init(&writer, json, 2);
    weft_json_begin_array(&writer);
    WEFT_TRY((cli->n_sweeps == 2) ? sweep_grid(cli, axes, out, &writer, err)
                                  : sweep_list(cli, &axes[0], out, &writer, err));
    weft_json_end_array(&writer);
    return WEFT_OK;
}
