/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json/json_keys.h"
#include "plan/placed.h"
#include "plan/placement.h"
#include "plan/plan.h"

static const char format_name[] = "weft-plan";
enum { FORMAT_VERSION = 13, PLACE_BYTES = 256, MOST_FILE_BYTES = 1 << 30 };

static const struct weft_key_table prediction_table = WEFT_KEY_TABLE(
    "Results of the simulator.",
    WEFT_KEY_COUNT(weft_prediction, step_ns, "sum of compute, slowdown and exposed"),
    WEFT_KEY_COUNT(weft_prediction, exposed_ns, "time in which compute waits"),
    WEFT_KEY_COUNT(weft_prediction, compute_ns, "of all slots"),
    WEFT_KEY_COUNT(weft_prediction, slowdown_ns,
                   "time that communication adds to slots while both run"),
    WEFT_KEY_COUNT(weft_prediction, channel_ns, "time in which lanes are busy"),
    WEFT_KEY_COUNT(weft_prediction, peak_bytes, "of the device's fullest row"),
    WEFT_KEY_COUNT(weft_prediction, peak_slot, "slot of the first such row"),
    WEFT_KEY_COUNT(weft_prediction, arena_bytes, "of all pages"),
    WEFT_KEY_COUNT(weft_prediction, total_bytes, "with the base: the limit binds this"));

static const struct weft_key_table bound_table = WEFT_KEY_TABLE(
    "The proven bound.",
    WEFT_KEY_COUNT(weft_plan, bound_ns, "no plan is faster; 0: nothing is proven"),
    WEFT_KEY_VALUE_AS(WEFT_KEY_OR_NULL, "by", WEFT_KEY_SHOWN, weft_plan, bound_by, "for people"),
    WEFT_KEY_COUNT(weft_plan, paged_bound_ns,
                   "no plan in pages of this size is faster; 0: nothing more is proven"));

/* Earlier versions of Weft require the gap, which is null. */
static const struct weft_key_table solver_table = WEFT_KEY_TABLE(
    "The planner's own words.",
    WEFT_KEY_PART_AS(WEFT_KEY_OR_NULL, WEFT_KEY_NUMBER, "gap", NULL,
                     "the solver's own; null: none"),
    WEFT_KEY_VALUE_AS(WEFT_KEY_OR_NULL, "stop", WEFT_KEY_SHOWN, weft_plan, solver_stop,
                      "why planning ended"),
    WEFT_KEY_VALUE_AS(WEFT_KEY_OPTIONAL, "name", WEFT_KEY_SHOWN, weft_plan, solver_name,
                      "of the solver, with its version; left out: GLPK, or none"));

/* A list is pairs of numbers: first page and number of pages of each stretch. */
static void put_stretches(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct weft_page_lists *pages = source;
    (void)context;
    weft_json_key(writer, "stretches");
    weft_json_begin_array(writer);
    for (int32_t l = 0, s = 0; l < pages->n_lists; l++) {
        weft_json_begin_array(writer);
        weft_json_flat(writer);
        for (; s < pages->ends[l]; s++) {
            weft_json_add_integer(writer, pages->stretches[s].first);
            weft_json_add_integer(writer, pages->stretches[s].count);
        }
        weft_json_end_array(writer);
    }
    weft_json_end_array(writer);
}

static const struct weft_key_table pages_table = WEFT_KEY_TABLE(
    "The program's memory.",
    WEFT_KEY_RANGE(weft_page_lists, page_bytes, 0, WEFT_PAGE_LARGE_BYTES, "a power of two"),
    WEFT_KEY_RANGE_AS(WEFT_KEY_NEEDED, "tables", weft_page_lists, n_tables, 0, WEFT_PAGE_TABLES,
                      "1, or 2: for even and odd periods"),
    WEFT_KEY_PUT(WEFT_KEY_LISTS, WEFT_KEY_INT64, "stretches", NULL, put_stretches,
                 "by range and table: first page, count, first page, count ..."));

static void put_hash(const void *context, const void *source, struct weft_json_writer *writer)
{
    char hash[WEFT_HASH_TEXT_BYTES];
    (void)context;
    weft_json_put_string(writer, "decision_hash",
                         weft_hash_show(weft_plan_decision_hash(source), hash));
}

static void put_certificate(const void *context, const void *source,
                            struct weft_json_writer *writer)
{
    const struct weft_plan *plan = source;
    (void)context;
    weft_json_key(writer, "certificate");
    weft_certificate_write(&plan->certificate, plan->problem, writer);
}

static void put_paged(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct weft_plan *plan = source;
    (void)context;
    weft_json_key(writer, "paged_certificate");
    weft_certificate_write(&plan->paged_certificate, plan->problem, writer);
}

static void put_strategies(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct weft_plan *plan = source;
    (void)context;
    weft_json_key(writer, "strategies");
    weft_json_begin_array(writer);
    for (int32_t u = 0; u < plan->problem->n_decisions; u++)
        weft_json_add_string(writer, weft_plan_chosen(plan, u)->name);
    weft_json_end_array(writer);
}

static void put_problem(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct weft_plan *plan = source;
    (void)context;
    weft_json_key(writer, "problem");
    weft_problem_write(plan->problem, writer);
}

const struct weft_key_table weft_plan_keys = WEFT_KEY_TABLE(
    "What is decided, with its proof: docs/plan-file.md.",
    WEFT_KEY_PART(WEFT_KEY_CONST, "format", format_name, "of this file"),
    WEFT_KEY_VERSION(FORMAT_VERSION),
    WEFT_KEY_PART(WEFT_KEY_TEXT, "weft", WEFT_VERSION, "version of the program that wrote it"),
    WEFT_KEY_VALUE(WEFT_KEY_SHOWN, weft_plan, planner, "that made it"),
    WEFT_KEY_PUT(WEFT_KEY_NEEDED, WEFT_KEY_HASH, "decision_hash", NULL, put_hash,
                 "of strategies, placements, pages and periods"),
    WEFT_KEY_INSIDE(WEFT_KEY_UNREAD, "prediction", weft_plan, prediction, &prediction_table,
                    "of a step"),
    WEFT_KEY_OWN(WEFT_KEY_NEEDED, "bound", &bound_table, "of this period"),
    WEFT_KEY_PUT(WEFT_KEY_OR_NULL, WEFT_KEY_OBJECT, "certificate", &weft_certificate_keys,
                 put_certificate, "of that bound"),
    WEFT_KEY_PUT(WEFT_KEY_OR_NULL, WEFT_KEY_OBJECT, "paged_certificate", &weft_certificate_keys,
                 put_paged, "of the bound in pages"),
    WEFT_KEY_OWN(WEFT_KEY_NEEDED, "solver", &solver_table, "as it ended"),
    WEFT_KEY_PUT(WEFT_KEY_LIST, WEFT_KEY_TEXT, "strategies", NULL, put_strategies,
                 "one for each decision"),
    WEFT_KEY_ARRAY(WEFT_KEY_FLAT | WEFT_KEY_UNREAD, WEFT_KEY_OBJECT, "placements", weft_plan,
                   placements, n_placements, &weft_placement_keys, "in the order of every lane"),
    WEFT_KEY_INSIDE(WEFT_KEY_UNREAD, "pages", weft_plan, pages, &pages_table, "equal on all ranks"),
    WEFT_KEY_PUT(WEFT_KEY_NEEDED, WEFT_KEY_OBJECT, "problem", &weft_problem_keys, put_problem,
                 "that it solves"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_NEEDED, "periods_open", weft_plan, n_open,
                      "that the config allows; 0: not known"),
    WEFT_KEY_ARRAY(WEFT_KEY_UNREAD, WEFT_KEY_OBJECT, "other_periods", weft_plan, others, n_others,
                   &weft_plan_variant_keys, "with their bounds"));

void weft_plan_write(const struct weft_plan *plan, struct weft_text *out)
{
    struct weft_json_writer writer;
    weft_json_writer_init(&writer, out, 2);
    weft_json_begin_object(&writer);
    weft_keys_write(&weft_plan_keys, NULL, plan, &writer);
    weft_json_end_object(&writer);
    weft_text_add(out, "\n");
}

struct reader {
    struct weft_plan *plan;
    const char *source;
    struct weft_error *err;
};

static enum weft_status check_format(struct reader *reader, const struct weft_json_value *root)
{
    const char *format = "";
    int64_t version;
    if (!weft_json_string(weft_json_member(root, "format"), &format) ||
        strcmp(format, format_name) != 0)
        return weft_fail(reader->err, WEFT_E_DATA,
                         "%s: is not a plan: its format is \"%.64s\", not \"%s\"; `weft plan "
                         "CONFIG -o FILE` makes one",
                         reader->source, format, format_name);
    WEFT_TRY(weft_json_need_integer(root, reader->source, "version", 0, WEFT_PROBLEM_MOST, &version,
                                    reader->err));
    if (version != FORMAT_VERSION) {
        return weft_fail(reader->err, WEFT_E_DATA,
                         "%s: version %" PRId64
                         " of %s; this is weft %s, which reads version %d%s: "
                         "plan again",
                         reader->source, version, format_name, WEFT_VERSION, FORMAT_VERSION,
                         version > FORMAT_VERSION ? "" : " (older plans have other keys)");
    }
    const char *program;
    return weft_json_need_string(root, reader->source, "weft", &program, reader->err);
}

static enum weft_status read_prediction(struct reader *reader, const struct weft_json_value *root)
{
    const struct weft_json_value *object;
    WEFT_TRY(
        weft_json_need(root, reader->source, "prediction", WEFT_JSON_OBJECT, &object, reader->err));
    struct weft_prediction *to = &reader->plan->prediction;
    char where[PLACE_BYTES];
    snprintf(where, sizeof where, "%s: prediction", reader->source);
    WEFT_TRY(
        weft_keys_read(&prediction_table, object, where, &reader->plan->pool, to, reader->err));
    if (to->peak_slot < reader->plan->problem->n_slots) return WEFT_OK;
    return weft_fail(reader->err, WEFT_E_DATA, "%s: peak_slot %d is not in the period", where,
                     to->peak_slot);
}

/* Checks the gap that plans of earlier versions have, and drops it. */
static enum weft_status check_gap(struct reader *reader, const struct weft_json_value *object)
{
    const struct weft_json_value *value = weft_json_member(object, "gap");
    double gap = -1;
    if (value != NULL && weft_json_kind(value) == WEFT_JSON_NULL) return WEFT_OK;
    if (weft_json_number(value, &gap) && gap >= 0) return WEFT_OK;
    return weft_fail(reader->err, WEFT_E_DATA, "%s: solver: gap is not null or a number from 0",
                     reader->source);
}

static enum weft_status read_certificates(struct reader *reader, const struct weft_json_value *root)
{
    struct weft_plan *plan = reader->plan;
    char where[PLACE_BYTES];
    snprintf(where, sizeof where, "%s: certificate", reader->source);
    WEFT_TRY(weft_certificate_read(weft_json_member(root, "certificate"), where, plan->problem,
                                   &plan->pool, &plan->certificate, reader->err));
    snprintf(where, sizeof where, "%s: paged_certificate", reader->source);
    return weft_certificate_read(weft_json_member(root, "paged_certificate"), where, plan->problem,
                                 &plan->pool, &plan->paged_certificate, reader->err);
}

/* Each variant is in the file once, so that bounds of n periods are bounds of n different ones. */
static enum weft_status check_new(struct reader *reader, const char *where,
                                  const struct weft_problem *problem)
{
    const struct weft_plan *plan = reader->plan;
    bool known = weft_plan_same_variant(plan->problem, problem);
    for (int32_t i = 0; i < plan->n_others; i++)
        known = known || weft_plan_same_variant(plan->others[i].problem, problem);
    if (!known) return WEFT_OK;
    return weft_fail(reader->err, WEFT_E_DATA, "%s: the file has this period already", where);
}

static enum weft_status read_other(struct reader *reader, const struct weft_json_value *value)
{
    struct weft_plan *plan = reader->plan;
    struct weft_plan_variant *other = &plan->others[plan->n_others];
    char where[PLACE_BYTES];
    snprintf(where, sizeof where, "%s: other_periods[%d]", reader->source, plan->n_others);
    WEFT_TRY(weft_plan_variant_read(value, where, &plan->pool, other, reader->err));
    enum weft_status status = check_new(reader, where, other->problem);
    plan->n_others++; /* now the plan's destructor frees it */
    return status;
}

static enum weft_status read_others(struct reader *reader, const struct weft_json_value *root)
{
    const struct weft_json_value *array;
    struct weft_plan *plan = reader->plan;
    WEFT_TRY(weft_json_need(root, reader->source, "other_periods", WEFT_JSON_ARRAY, &array,
                            reader->err));
    size_t n = weft_json_count(array);
    if (n >= WEFT_MOST_PLANNED)
        return weft_fail(reader->err, WEFT_E_DATA, "%s: %zu other_periods; there are at most %d",
                         reader->source, n, WEFT_MOST_PLANNED - 1);
    plan->others = weft_pool_array(&plan->pool, n, sizeof *plan->others);
    if (plan->others == NULL) return weft_fail_memory(reader->err, "plan");
    for (const struct weft_json_value *it = weft_json_first(array); it != NULL;
         it = weft_json_next(it))
        WEFT_TRY(read_other(reader, it));
    return WEFT_OK;
}

static enum weft_status read_stretches(struct reader *reader, const char *where,
                                       const struct weft_json_value *list,
                                       struct weft_page_stretch *stretches, int32_t *n)
{
    const struct weft_json_value *it = weft_json_first(list);
    bool good = weft_json_kind(list) == WEFT_JSON_ARRAY;
    while (good && it != NULL) {
        int64_t first = -1, count = 0;
        const struct weft_json_value *other = weft_json_next(it);
        good = other != NULL && weft_json_integer(it, &first) && weft_json_integer(other, &count) &&
               first >= 0 && count >= 1 && first <= INT32_MAX && count <= INT32_MAX - first;
        stretches[(*n)++] = (struct weft_page_stretch){(int32_t)first, (int32_t)count};
        it = other == NULL ? NULL : weft_json_next(other);
    }
    if (good) return WEFT_OK;
    return weft_fail(reader->err, WEFT_E_DATA,
                     "%s: stretches are lists of first pages and how many there are", where);
}

/* weft_program_verify checks later that these are the pages of the program's buffers, and that none
 * is shared. */
static enum weft_status read_pages(struct reader *reader, const struct weft_json_value *root)
{
    struct weft_page_lists *pages = &reader->plan->pages;
    const struct weft_json_value *object, *array;
    char where[PLACE_BYTES];
    snprintf(where, sizeof where, "%s: pages", reader->source);
    WEFT_TRY(weft_json_need(root, reader->source, "pages", WEFT_JSON_OBJECT, &object, reader->err));
    WEFT_TRY(weft_keys_read(&pages_table, object, where, &reader->plan->pool, pages, reader->err));
    WEFT_TRY(weft_json_need(object, where, "stretches", WEFT_JSON_ARRAY, &array, reader->err));
    size_t n = weft_json_count(array), n_numbers = 0;
    for (const struct weft_json_value *it = weft_json_first(array); it; it = weft_json_next(it))
        n_numbers += weft_json_count(it);
    int32_t *ends = weft_pool_array(&reader->plan->pool, n, sizeof *ends);
    struct weft_page_stretch *stretches =
        weft_pool_array(&reader->plan->pool, n_numbers / 2 + n, sizeof *stretches);
    if (ends == NULL || stretches == NULL) return weft_fail_memory(reader->err, "plan");
    bool is_page = pages->page_bytes >= WEFT_PAGE_LEAST_BYTES && pages->n_tables >= 1 &&
                   (pages->page_bytes & (pages->page_bytes - 1)) == 0;
    if ((n > 0 && !is_page) || n > INT32_MAX || n_numbers > INT32_MAX) {
        return weft_fail(reader->err, WEFT_E_DATA,
                         "%s: %zu lists of pages of %" PRId64 " bytes in %d tables", where, n,
                         pages->page_bytes, pages->n_tables);
    }
    int32_t n_stretches = 0;
    for (const struct weft_json_value *it = weft_json_first(array); it; it = weft_json_next(it)) {
        WEFT_TRY(read_stretches(reader, where, it, stretches, &n_stretches));
        ends[pages->n_lists++] = n_stretches;
    }
    pages->ends = ends;
    pages->stretches = stretches;
    if (is_page || reader->plan->paged_certificate.n_nodes == 0) return WEFT_OK;
    return weft_fail(reader->err, WEFT_E_DATA,
                     "%s: a bound in pages of %" PRId64 " bytes: no page has that size", where,
                     pages->page_bytes);
}

static enum weft_status read_hash(struct reader *reader, const struct weft_json_value *root)
{
    struct weft_hash *hash = weft_pool_array(&reader->plan->pool, 1, sizeof *hash);
    if (hash == NULL) return weft_fail_memory(reader->err, "plan");
    reader->plan->decision_hash = hash;
    return weft_keys_hash(root, reader->source, "decision_hash", hash, reader->err);
}

static enum weft_status read_all(struct reader *reader, const struct weft_json_value *root)
{
    struct weft_plan *plan = reader->plan;
    WEFT_TRY(check_format(reader, root));
    WEFT_TRY(weft_keys_read(&weft_plan_keys, root, reader->source, &plan->pool, plan, reader->err));
    const struct weft_json_value *value;
    char where[PLACE_BYTES];
    struct weft_problem *problem;
    snprintf(where, sizeof where, "%s: problem", reader->source);
    WEFT_TRY(
        weft_json_need(root, reader->source, "problem", WEFT_JSON_OBJECT, &value, reader->err));
    WEFT_TRY(weft_problem_read(value, where, &problem, reader->err));
    plan->problem = problem;
    plan->owns_problem = true;
    WEFT_TRY(read_hash(reader, root));
    WEFT_TRY(read_prediction(reader, root));
    WEFT_TRY(read_certificates(reader, root));
    WEFT_TRY(check_gap(reader, weft_json_member(root, "solver")));
    WEFT_TRY(weft_plan_read_placed(root, reader->source, plan, reader->err));
    WEFT_TRY(read_pages(reader, root));
    WEFT_TRY(read_others(reader, root));
    return weft_placements_check(plan->problem, plan->strategies, plan->placements,
                                 plan->n_placements, reader->source, reader->err);
}

enum weft_status weft_plan_parse(const char *bytes, size_t length, const char *source,
                                 struct weft_plan **out, struct weft_error *err)
{
    struct weft_json *document;
    WEFT_TRY(weft_json_parse(bytes, length, source, &document, err));
    struct reader reader = {.plan = calloc(1, sizeof *reader.plan), .source = source, .err = err};
    enum weft_status status = reader.plan == NULL ? weft_fail_memory(err, "plan")
                                                  : read_all(&reader, weft_json_root(document));
    weft_json_destroy(document);
    if (status != WEFT_OK) {
        weft_plan_destroy(reader.plan);
        return status;
    }
    *out = reader.plan;
    return WEFT_OK;
}

enum weft_status weft_plan_read(const char *path, struct weft_plan **out, struct weft_error *err)
{
    char *bytes = NULL;
    size_t length = 0;
    WEFT_TRY(weft_file_read(path, MOST_FILE_BYTES, &bytes, &length, err));
    const enum weft_status status = weft_plan_parse(bytes, length, path, out, err);
    free(bytes);
    return status;
}
