/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "cli/command.h"
#include "cli/report.h"
#include "library/recorded.h"
#include "report/page/report.h"
#include "spec/tiers.h"

enum { LEFT, RIGHT, BOTH };

struct comparison {
    struct weft_page page; /* owns what is derived from the records */
    struct weft_source runs[BOTH];
    struct weft_answer answer;
};

/* Finds the first step of both runs with other bits. */
static void add_bits(struct comparison *comparison, const struct weft_recorded *left,
                     const struct weft_recorded *right)
{
    struct weft_answer *answer = &comparison->answer;
    struct weft_text how;
    int64_t shared = 0, last_equal = 0, first = 0;
    weft_text_init(&how);
    for (int64_t i = 0; i < left->n && first == 0; i++) {
        const struct weft_recorded_step *other = weft_recorded_find(right, left->steps[i].step);
        if (other == NULL) continue;
        shared++;
        if (weft_recorded_compare(&left->steps[i], other, "the second", &how) > 0)
            first = left->steps[i].step;
        else
            last_equal = left->steps[i].step;
    }
    weft_answer_integer(answer, "compared_steps", shared);
    weft_answer_bool(answer, "equal", shared > 0 && first == 0);
    if (first > 0) {
        weft_answer_integer(answer, "differs_at", first);
        weft_answer_word(answer, "differs_in", weft_text_chars(&how));
        weft_answer_say(answer, NULL, "bits      step %" PRId64 " is the first with others: %s\n",
                        first, weft_text_chars(&how));
    } else if (shared == 0) {
        weft_answer_say(answer, NULL, "bits      the runs have no step in common\n");
    } else {
        weft_answer_say(answer, NULL,
                        "bits      equal in all %" PRId64 " common steps, up to step %" PRId64 "\n",
                        shared, last_equal);
    }
    answer->failed |= !weft_text_ok(&how);
    weft_text_finish(&how);
}

static enum weft_status compare_bits(struct comparison *comparison, struct weft_error *err)
{
    struct weft_recorded recorded[BOTH] = {{.n = 0}};
    enum weft_status status = WEFT_OK;
    struct weft_error why = {0};
    int32_t n = 0;
    for (; n < BOTH && status == WEFT_OK; n++) {
        const char *path =
            weft_page_format(&comparison->page, "%s/metrics.jsonl", comparison->runs[n].path);
        status = weft_recorded_read(path, &recorded[n], &why);
    }
    if (status == WEFT_OK)
        add_bits(comparison, &recorded[LEFT], &recorded[RIGHT]);
    else if (status != WEFT_E_SYSTEM)
        weft_answer_say(&comparison->answer, NULL, "bits      not compared: %s\n", why.text);
    for (int32_t i = 0; i < BOTH; i++)
        weft_recorded_finish(&recorded[i]);
    if (status == WEFT_E_SYSTEM) return weft_fail_again(err, &why, "%s", why.text);
    return WEFT_OK;
}

static void add_steps(struct comparison *comparison)
{
    struct weft_answer *answer = &comparison->answer;
    char a[WEFT_UNITS_TEXT_BYTES], b[WEFT_UNITS_TEXT_BYTES];
    const double left = weft_report_step_ns(&comparison->page, &comparison->runs[LEFT]);
    const double right = weft_report_step_ns(&comparison->page, &comparison->runs[RIGHT]);
    if (!isfinite(left) || !isfinite(right)) return;
    weft_answer_integer(answer, "first_step_ns", (int64_t)left);
    weft_answer_integer(answer, "second_step_ns", (int64_t)right);
    weft_answer_say(answer, NULL, "step      %s, then %s: %+.1f %%\n",
                    weft_units_show_ns((int64_t)left, a), weft_units_show_ns((int64_t)right, b),
                    100 * (right / left - 1));
}

/* Settings */

/* The value as compact JSON; "-" for none. */
static const char *show_value(struct weft_page *page, const struct weft_json_value *value)
{
    struct weft_text text;
    struct weft_json_writer writer;
    if (value == NULL) return "-";
    weft_text_init(&text);
    weft_json_writer_init(&writer, &text, 0);
    weft_json_add_value(&writer, value);
    const char *copy = weft_page_format(page, "%s", weft_text_chars(&text));
    page->failed |= !weft_text_ok(&text);
    weft_text_finish(&text);
    return copy;
}

static void compare_values(struct weft_page *page, const char *path,
                           const struct weft_json_value *left, const struct weft_json_value *right,
                           struct weft_rows *rows);

/* Compares the members of two objects, first those of the left one. */
static void compare_members(struct weft_page *page, const char *path,
                            const struct weft_json_value *left, const struct weft_json_value *right,
                            struct weft_rows *rows)
{
    const struct weft_json_value *const objects[BOTH] = {left, right};
    for (int32_t side = 0; side < BOTH; side++) {
        for (const struct weft_json_value *at = weft_json_first(objects[side]); at != NULL;
             at = weft_json_next(at)) {
            const char *name = weft_json_name(at);
            const struct weft_json_value *other = weft_json_member(objects[!side], name);
            if (side == RIGHT && other != NULL) continue;
            compare_values(page,
                           weft_page_format(page, "%s%s%s", path, path[0] != '\0' ? "." : "", name),
                           side == LEFT ? at : other, side == LEFT ? other : at, rows);
        }
    }
}

static void compare_values(struct weft_page *page, const char *path,
                           const struct weft_json_value *left, const struct weft_json_value *right,
                           struct weft_rows *rows)
{
    if (left != NULL && right != NULL && weft_json_kind(left) == WEFT_JSON_OBJECT &&
        weft_json_kind(right) == WEFT_JSON_OBJECT) {
        compare_members(page, path, left, right, rows);
        return;
    }
    const char *a = show_value(page, left), *b = show_value(page, right);
    if (strcmp(a, b) == 0) return;
    weft_rows_begin(rows, NULL);
    weft_rows_word(rows, 0, path);
    weft_rows_word(rows, 1, a);
    weft_rows_word(rows, 2, b);
    weft_rows_show(rows, 1, WEFT_PAINT_NONE, "%.40s", a);
    weft_rows_show(rows, 2, WEFT_PAINT_NONE, "%.40s", b);
}

static void add_settings(struct comparison *comparison)
{
    static const struct weft_column columns[] = {{"key", "key", 'l', WEFT_FIGURE_WORD, 0},
                                                 {"first", "first", 'l', WEFT_FIGURE_WORD, 0},
                                                 {"second", "second", 'l', WEFT_FIGURE_WORD, 0}};
    const struct weft_source *left = &comparison->runs[LEFT], *right = &comparison->runs[RIGHT];
    if (left->config == NULL || right->config == NULL) {
        weft_answer_say(&comparison->answer, NULL, "settings  not compared: no config.json\n");
        return;
    }
    struct weft_rows *rows = weft_answer_table(&comparison->answer, "settings", columns, 3);
    weft_rows_title(rows, "settings that differ");
    compare_values(&comparison->page, "", weft_json_root(left->config),
                   weft_json_root(right->config), rows);
    if (rows != NULL && rows->n_rows == 0)
        weft_answer_say(&comparison->answer, NULL, "settings  equal\n");
}

/* Decisions */

/* The strategy of a unit or layer; NULL: the plan has no decision of that name. Plans of one model
 * have most decisions at equal places. */
static const char *find_strategy(const struct weft_plan *plan, const char *name, int32_t place)
{
    const int32_t n = plan->problem->n_decisions;
    for (int32_t k = 0; k < n; k++) {
        const int32_t d = (int32_t)(((int64_t)place + k) % n);
        if (strcmp(plan->problem->decisions[d].name, name) == 0)
            return weft_plan_chosen(plan, d)->name;
    }
    return NULL;
}

/* Adds a row for each decision of plans[side] that the other plan makes otherwise. A layer without
 * a decision keeps all on the device. Decisions of both plans are rows of the left one. */
static void add_decisions_of(const struct weft_plan *const plans[BOTH], int32_t side,
                             struct weft_rows *rows)
{
    enum { MOST_SHOWN = 12 };
    for (int32_t d = 0; d < plans[side]->problem->n_decisions; d++) {
        const struct weft_problem_decision *decision = &plans[side]->problem->decisions[d];
        const char *own = weft_plan_chosen(plans[side], d)->name;
        const char *other = find_strategy(plans[!side], decision->name, d);
        if (side == RIGHT && other != NULL) continue;
        if (other == NULL)
            other = decision->is_of_layer ? weft_location_names[WEFT_LOCATION_DEVICE] : "-";
        if (strcmp(own, other) == 0) continue;
        weft_rows_begin(rows, NULL);
        weft_rows_word(rows, 0, decision->name);
        weft_rows_word(rows, 1 + side, own);
        weft_rows_word(rows, 1 + !side, other);
        if (rows != NULL && rows->n_rows > MOST_SHOWN) weft_rows_hide(rows);
    }
}

/* Compares strategies: of units their policy and location, of layers the level of recomputation and
 * the locations of saved activations and input. */
static void add_decisions(struct comparison *comparison)
{
    static const struct weft_column columns[] = {
        {"name", "unit or layer", 'l', WEFT_FIGURE_WORD, 0},
        {"first", "first", 'l', WEFT_FIGURE_WORD, 0},
        {"second", "second", 'l', WEFT_FIGURE_WORD, 0}};
    const struct weft_plan *plans[BOTH];
    for (int32_t i = 0; i < BOTH; i++) {
        const struct weft_source *run = &comparison->runs[i];
        plans[i] = run->plan;
        if (plans[i] != NULL) continue;
        weft_answer_say(&comparison->answer, NULL, "plan      not compared: %s\n",
                        run->lacks_plan != NULL ? run->lacks_plan : "no plan.json");
        return;
    }
    struct weft_rows *rows = weft_answer_table(&comparison->answer, "decisions", columns, 3);
    weft_rows_title(rows, "units and layers with other strategies");
    add_decisions_of(plans, LEFT, rows);
    add_decisions_of(plans, RIGHT, rows);
    if (rows != NULL && rows->n_rows == 0)
        weft_answer_say(&comparison->answer, NULL,
                        "plan      equal strategies of all units and layers\n");
}

/* Instructions */

enum { KIND, NAME, FIRST, SECOND, GROWTH, N_COLUMNS, MOST_ROWS = 12 };

static void add_pairs(struct comparison *comparison, const struct weft_spans *left,
                      const struct weft_spans *right, bool named)
{
    static const struct weft_column columns[N_COLUMNS] = {
        [KIND] = {"kind", "kind", 'l', WEFT_FIGURE_WORD, 0},
        [NAME] = {"name", "unit or layer", 'l', WEFT_FIGURE_WORD, 0},
        [FIRST] = {"first_ns", "first", 'r', WEFT_FIGURE_NS, 0},
        [SECOND] = {"second_ns", "second", 'r', WEFT_FIGURE_NS, 0},
        [GROWTH] = {"growth", "growth", 'r', WEFT_FIGURE_PERCENT, 0}};
    struct weft_span_pair *pairs = NULL;
    const int32_t n = named ? weft_spans_by_name(&comparison->page, left, right, &pairs)
                            : weft_spans_by_kind(&comparison->page, left, right, &pairs);
    struct weft_rows *rows = weft_answer_table(
        &comparison->answer, named ? "instructions" : "kinds", columns, N_COLUMNS);
    weft_rows_title(rows, named ? "largest changes by unit or layer" : "by kind of instruction");
    if (!named) weft_rows_head(rows, NAME, NULL);
    for (int32_t i = 0; i < n; i++) {
        weft_rows_begin(rows, NULL);
        weft_rows_word(rows, KIND, pairs[i].kind->name);
        if (named) weft_rows_word(rows, NAME, pairs[i].name);
        weft_rows_integer(rows, FIRST, (int64_t)pairs[i].left);
        weft_rows_integer(rows, SECOND, (int64_t)pairs[i].right);
        if (pairs[i].left > 0) {
            const double growth = pairs[i].right / pairs[i].left - 1;
            weft_rows_real(rows, GROWTH, growth);
            weft_rows_show(rows, GROWTH, growth > 0.1 ? WEFT_PAINT_BAD : WEFT_PAINT_NONE,
                           "%+.1f %%", 100 * growth);
        }
        if (named && i >= MOST_ROWS) weft_rows_hide(rows);
    }
}

static void add_instructions(struct comparison *comparison)
{
    const struct weft_spans *spans[BOTH] = {NULL, NULL};
    for (int32_t i = 0; i < BOTH; i++) {
        const struct weft_source *run = &comparison->runs[i];
        if (run->trace == NULL) {
            weft_answer_say(&comparison->answer, NULL,
                            "times     not compared by instruction: %s: %s\n", run->name,
                            run->lacks_trace != NULL ? run->lacks_trace : "no trace");
            return;
        }
        spans[i] = weft_spans_of_trace(&comparison->page, run->trace);
        if (spans[i] == NULL) return;
    }
    add_pairs(comparison, spans[LEFT], spans[RIGHT], false);
    add_pairs(comparison, spans[LEFT], spans[RIGHT], true);
}

static enum weft_status emit_comparison(const struct weft_cli *cli, struct comparison *comparison,
                                        struct weft_error *err)
{
    enum weft_status status = WEFT_OK;
    comparison->answer.failed |= comparison->page.failed;
    if (cli->csv != NULL) {
        struct weft_text text;
        weft_text_init(&text);
        weft_answer_csv(&comparison->answer, &text);
        status = weft_text_ok(&text)
                     ? weft_file_write(cli->csv, weft_text_chars(&text), text.length, err)
                     : weft_fail_memory(err, "the comparison");
        weft_text_finish(&text);
    }
    return status == WEFT_OK ? weft_cli_emit_answer(cli, &comparison->answer, err) : status;
}

static enum weft_status run_compare(const struct weft_cli *cli, struct weft_error *err)
{
    struct comparison comparison = {.page = {.title = NULL}};
    enum weft_status status = WEFT_OK;
    int32_t n = 0;
    WEFT_TRY(weft_report_check_outputs(cli, err));
    for (; n < BOTH && status == WEFT_OK; n++) {
        status = weft_source_read(cli->operands[n], NULL, &comparison.runs[n], err);
        if (status == WEFT_OK && comparison.runs[n].kind != WEFT_SOURCE_RUN)
            status = weft_fail(err, WEFT_E_DATA,
                               "%s: no run's directory: compare takes two runs (weft train --run "
                               "DIR)",
                               cli->operands[n]);
    }
    if (status == WEFT_OK) {
        weft_answer_word(&comparison.answer, "first", comparison.runs[LEFT].path);
        weft_answer_word(&comparison.answer, "second", comparison.runs[RIGHT].path);
        status = compare_bits(&comparison, err);
    }
    if (status == WEFT_OK) {
        add_steps(&comparison);
        add_settings(&comparison);
        add_decisions(&comparison);
        add_instructions(&comparison);
        status = emit_comparison(cli, &comparison, err);
    }
    for (int32_t i = 0; i < n; i++)
        weft_source_finish(&comparison.runs[i]);
    weft_answer_finish(&comparison.answer);
    weft_page_finish(&comparison.page);
    return status;
}

const struct weft_command weft_command_compare = {
    .name = "compare",
    .usage = "RUN RUN",
    .summary = "the first step of two runs with other bits, and slower work",
    .details =
        "Compares two runs by their files: loss, norm, learning rate and all recorded hashes of\n"
        "the steps that both have, and names the first step with other bits. Then it lists the\n"
        "settings that differ, the units and layers with other strategies, and the kinds, units\n"
        "and layers with other times in the last step of both, if both have a RUN/trace.json "
        "(weft\n"
        "train --report keeps it).\n"
        "--json prints all rows, and --csv FILE writes them.",
    .flags = "--csv",
    .least_operands = 2,
    .most_operands = 2,
    .run = run_compare,
};
