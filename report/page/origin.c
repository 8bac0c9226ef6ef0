/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "report/page/report.h"
#include "report/plan_report.h"

/* Origin of the figures: inputs, versions, hashes, bits. */

/* One fact of a record, "" for none. */
typedef const char *fact_of(struct weft_page *page, const struct weft_source *record);

static const struct weft_json_value *result_of(const struct weft_source *record)
{
    return record->result != NULL ? weft_json_root(record->result) : NULL;
}

static const char *show_path(struct weft_page *page, const struct weft_source *record)
{
    (void)page;
    return record->path;
}

static const char *show_version(struct weft_page *page, const struct weft_source *record)
{
    const char *version = "";
    weft_json_string(weft_json_member(result_of(record), "weft"), &version);
    return weft_page_format(page, "%s%s", version[0] != '\0' ? "weft " : "", version);
}

static const char *show_planner(struct weft_page *page, const struct weft_source *record)
{
    (void)page;
    return record->plan != NULL ? record->plan->planner : "";
}

static const char *show_times(struct weft_page *page, const struct weft_source *record)
{
    (void)page;
    if (record->sweep != NULL) return record->sweep->times;
    if (record->best != NULL) return record->best->times;
    return record->plan != NULL ? record->plan->problem->profile_source : "";
}

static const char *show_machine(struct weft_page *page, const struct weft_source *record)
{
    (void)page;
    const struct weft_profile *profile = record->profile;
    return profile != NULL && profile->origin.machine != NULL ? profile->origin.machine : "";
}

/* The load of the busiest host. */
static const char *show_load(struct weft_page *page, const struct weft_source *record)
{
    double cores = NAN;
    for (int32_t h = 0; h < record->hosts.n_hosts; h++)
        cores = fmax(cores, record->hosts.hosts[h].others_cores);
    if (!isfinite(cores)) return "";
    return weft_page_format(page, "other programs used %.2f cores%s", cores,
                            record->hosts.n_hosts > 1 ? " of the busiest host" : "");
}

static const char *show_bound(struct weft_page *page, const struct weft_source *record)
{
    char text[WEFT_UNITS_TEXT_BYTES];
    if (record->plan == NULL || record->plan->bound_ns == 0) return "";
    return weft_page_format(page, "%s, %s", weft_units_show_ns(record->plan->bound_ns, text),
                            record->plan->bound_by);
}

static const char *show_hash(struct weft_page *page, struct weft_hash hash)
{
    char text[WEFT_HASH_TEXT_BYTES];
    return weft_page_format(page, "%s", weft_hash_show(hash, text));
}

static const char *show_config(struct weft_page *page, const struct weft_source *record)
{
    if (record->sweep != NULL) return record->sweep->config;
    if (record->best != NULL) return record->best->config;
    return record->plan != NULL ? show_hash(page, record->plan->problem->config_hash) : "";
}

static const char *show_profile(struct weft_page *page, const struct weft_source *record)
{
    return record->plan != NULL ? show_hash(page, record->plan->problem->profile_hash) : "";
}

static const char *show_decision(struct weft_page *page, const struct weft_source *record)
{
    return record->plan != NULL ? show_hash(page, weft_plan_decision_hash(record->plan)) : "";
}

static const char *show_steps(struct weft_page *page, const struct weft_source *record)
{
    const struct weft_record_metrics *metrics = &record->metrics;
    if (metrics->n_steps == 0) return "";
    bool stopped = false;
    weft_json_bool(weft_json_member(result_of(record), "stopped"), &stopped);
    return weft_page_format(page, "%lld to %lld%s", (long long)metrics->steps[0].step,
                            (long long)metrics->steps[metrics->n_steps - 1].step,
                            record->result == NULL ? ", not ended: it goes on, or it was killed"
                            : stopped              ? ", stopped by a signal"
                                                   : "");
}

static const char *show_saves(struct weft_page *page, const struct weft_source *record)
{
    char text[WEFT_UNITS_TEXT_BYTES];
    const struct weft_record_metrics *metrics = &record->metrics;
    if (metrics->n_saves == 0) return "";
    return weft_page_format(page, "%lld, %s in all", (long long)metrics->n_saves,
                            weft_units_show_ns((int64_t)metrics->save_ns, text));
}

static const char *show_bits(struct weft_page *page, const struct weft_source *record)
{
    const char *bits = "";
    weft_json_string(weft_json_member(result_of(record), "fingerprint"), &bits);
    return weft_page_format(page, "%s", bits);
}

static const char *show_trace(struct weft_page *page, const struct weft_source *record)
{
    (void)page;
    return record->trace != NULL ? record->trace->source : "";
}

static const struct {
    const char *name;
    fact_of *show;
} facts[] = {
    {"input", show_path},
    {"version", show_version},
    {"planner", show_planner},
    {"predicted times", show_times},
    {"measured times", show_trace},
    {"machine of the profile", show_machine},
    {"load", show_load},
    {"bound", show_bound},
    {"steps", show_steps},
    {"checkpoints", show_saves},
    {"parameters after the last step", show_bits},
    {"config", show_config},
    {"profile", show_profile},
    {"decisions", show_decision},
};
enum { N_FACTS = sizeof facts / sizeof *facts };

static void add_facts(struct weft_report *report, struct weft_answer *body)
{
    struct weft_column columns[WEFT_REPORT_RECORDS + 1] = {{"fact", "", 'l', WEFT_FIGURE_WORD, 0}};
    for (int32_t i = 0; i < report->n; i++)
        columns[1 + i] = (struct weft_column){
            weft_page_format(report->page, "value%s", i == 0 ? "" : weft_report_key(report, i, "")),
            report->records[i].name, 'l', WEFT_FIGURE_WORD, 0};
    struct weft_rows *rows = weft_answer_table(body, "facts", columns, 1 + report->n);
    for (int32_t f = 0; f < N_FACTS; f++) {
        const char *values[WEFT_REPORT_RECORDS];
        bool any = false;
        for (int32_t i = 0; i < report->n; i++) {
            values[i] = facts[f].show(report->page, &report->records[i]);
            any |= values[i][0] != '\0';
        }
        if (!any) continue;
        weft_rows_begin(rows, NULL);
        weft_rows_word(rows, 0, facts[f].name);
        for (int32_t i = 0; i < report->n; i++)
            if (values[i][0] != '\0') weft_rows_word(rows, 1 + i, values[i]);
    }
}

static void fold_plan(struct weft_report *report, int32_t i, struct weft_page_section *section)
{
    struct weft_answer answer = {0};
    struct weft_text text;
    weft_text_init(&text);
    text.columns = 100;
    weft_report_plan(report->records[i].plan, &answer);
    weft_answer_text(&answer, &text);
    weft_section_fold(
        section, weft_page_format(report->page, "The plan in words%s", weft_report_of(report, i)),
        weft_text_chars(&text));
    section->page->failed |= !weft_text_ok(&text);
    weft_answer_finish(&answer);
    weft_text_finish(&text);
}

void weft_report_add_origin(struct weft_report *report)
{
    enum { MOST_CONFIG = 24 << 10, MOST_UNITS = 200 };
    struct weft_page_section *section =
        weft_page_section(report->page, "origin", "Where the figures come from");
    if (section == NULL) return;
    add_facts(report, &section->body);
    for (int32_t i = 0; i < report->n; i++) {
        const struct weft_source *record = &report->records[i];
        if (record->plan != NULL && weft_problem_n_units(record->plan->problem) <= MOST_UNITS)
            fold_plan(report, i, section);
        if (record->config_text != NULL && strlen(record->config_text) <= MOST_CONFIG)
            weft_section_fold(
                section, weft_page_format(report->page, "config.json%s", weft_report_of(report, i)),
                record->config_text);
    }
}
