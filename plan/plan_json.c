#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/chain.h"
#include "plan/placement.h"
#include "plan/plan.h"
#include "problem/decode.h"

static const char format_name[] = "weft-plan";
enum { FORMAT_VERSION = 10, PLACE_BYTES = 256 };

static void write_prediction(const struct weft_plan *plan, struct weft_json_writer *writer)
{
    weft_json_key(writer, "prediction");
    weft_json_begin_object(writer);
    weft_json_put_integer(writer, "step_ns", plan->prediction.step_ns);
    weft_json_put_integer(writer, "exposed_ns", plan->prediction.exposed_ns);
    weft_json_put_integer(writer, "compute_ns", plan->prediction.compute_ns);
    weft_json_put_integer(writer, "slowdown_ns", plan->prediction.slowdown_ns);
    weft_json_put_integer(writer, "channel_ns", plan->prediction.channel_ns);
    weft_json_put_integer(writer, "peak_bytes", plan->prediction.peak_bytes);
    weft_json_put_integer(writer, "peak_slot", plan->prediction.peak_slot);
    weft_json_put_integer(writer, "arena_bytes", plan->prediction.arena_bytes);
    weft_json_put_integer(writer, "total_bytes", plan->prediction.total_bytes);
    weft_json_end_object(writer);
}

static void write_bound(const struct weft_plan *plan, struct weft_json_writer *writer)
{
    weft_json_key(writer, "bound");
    weft_json_begin_object(writer);
    weft_json_put_integer(writer, "bound_ns", plan->bound_ns);
    weft_json_put_string(writer, "by", plan->bound_by);
    weft_json_end_object(writer);
    weft_json_key(writer, "certificate");
    weft_certificate_write(&plan->certificate, plan->problem, writer);
    weft_json_key(writer, "solver");
    weft_json_begin_object(writer);
    weft_json_key(writer, "gap");
    if (plan->solver_gap < 0) {
        weft_json_add_null(writer);
    } else {
        weft_json_add_number(writer, plan->solver_gap);
    }
    weft_json_put_string(writer, "stop", plan->solver_stop);
    weft_json_end_object(writer);
}

static void write_others(const struct weft_plan *plan, struct weft_json_writer *writer)
{
    weft_json_key(writer, "other_periods");
    weft_json_begin_array(writer);
    for (int32_t i = 0; i < plan->n_others; i++) {
        const struct weft_plan_variant *other = &plan->others[i];
        weft_json_begin_object(writer);
        weft_json_put_integer(writer, "bound_ns", other->bound_ns);
        weft_json_key(writer, "certificate");
        weft_certificate_write(&other->certificate, other->problem, writer);
        weft_json_key(writer, "problem");
        weft_problem_write(other->problem, writer);
        weft_json_end_object(writer);
    }
    weft_json_end_array(writer);
}

/* A list is pairs of numbers: first page and number of pages of each stretch. */
static void write_pages(const struct weft_page_lists *pages, struct weft_json_writer *writer)
{
    weft_json_key(writer, "pages");
    weft_json_begin_object(writer);
    weft_json_put_integer(writer, "page_bytes", pages->page_bytes);
    weft_json_put_integer(writer, "tables", pages->n_tables);
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
    weft_json_end_object(writer);
}

void weft_plan_write(const struct weft_plan *plan, struct weft_text *out)
{
    struct weft_json_writer writer;
    weft_json_writer_init(&writer, out, 2);
    weft_json_begin_object(&writer);
    weft_json_put_string(&writer, "format", format_name);
    weft_json_put_integer(&writer, "version", FORMAT_VERSION);
    weft_json_put_string(&writer, "weft", WEFT_VERSION);
    weft_json_put_string(&writer, "planner", plan->planner);
    char hash[WEFT_HASH_TEXT_BYTES];
    weft_json_put_string(&writer, "decision_hash",
                         weft_hash_show(weft_plan_decision_hash(plan), hash));
    write_prediction(plan, &writer);
    write_bound(plan, &writer);
    weft_json_key(&writer, "strategies");
    weft_json_begin_array(&writer);
    for (int32_t u = 0; u < plan->problem->n_decisions; u++)
        weft_json_add_string(&writer, weft_plan_chosen(plan, u)->name);
    weft_json_end_array(&writer);
    weft_json_key(&writer, "placements");
    weft_json_begin_array(&writer);
    for (int32_t i = 0; i < plan->n_placements; i++) {
        const struct weft_placement *at = &plan->placements[i];
        weft_json_begin_object(&writer);
        weft_json_flat(&writer);
        weft_json_put_integer(&writer, "item", at->item);
        weft_json_put_integer(&writer, "block", at->block);
        weft_json_put_integer(&writer, "launch", at->launch);
        weft_json_put_integer(&writer, "deadline", at->deadline);
        weft_json_end_object(&writer);
    }
    weft_json_end_array(&writer);
    write_pages(&plan->pages, &writer);
    weft_json_key(&writer, "problem");
    weft_problem_write(plan->problem, &writer);
    write_others(plan, &writer);
    weft_json_end_object(&writer);
    weft_text_add(out, "\n");
}

static const char *const plan_names[] = {
    "format",     "version", "weft",        "planner",       "decision_hash",
    "prediction", "bound",   "certificate", "solver",        "strategies",
    "placements", "pages",   "problem",     "other_periods", NULL};
static const char *const prediction_names[] = {
    "step_ns",    "exposed_ns", "compute_ns",  "slowdown_ns", "channel_ns",
    "peak_bytes", "peak_slot",  "arena_bytes", "total_bytes", NULL};
static const char *const bound_names[] = {"bound_ns", "by", NULL};
static const char *const other_names[] = {"bound_ns", "certificate", "problem", NULL};
static const char *const pages_names[] = {"page_bytes", "tables", "stretches", NULL};
static const char *const solver_names[] = {"gap", "stop", NULL};
static const char *const placement_names[] = {"item", "block", "launch", "deadline", NULL};

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
                         version > FORMAT_VERSION ? "" : " (what is older has no pages of memory)");
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
    int64_t value, last_slot = reader->plan->problem->n_slots - 1;
    snprintf(where, sizeof where, "%s: prediction", reader->source);
    WEFT_TRY(weft_decode_known(object, where, prediction_names, reader->err));
    WEFT_TRY(weft_json_need_integer(object, where, "peak_slot", 0, last_slot, &value, reader->err));
    to->peak_slot = (int32_t)value;
    const struct {
        const char *name;
        int64_t *out;
    } fields[] = {
        {"step_ns", &to->step_ns},         {"exposed_ns", &to->exposed_ns},
        {"slowdown_ns", &to->slowdown_ns}, {"compute_ns", &to->compute_ns},
        {"channel_ns", &to->channel_ns},   {"peak_bytes", &to->peak_bytes},
        {"arena_bytes", &to->arena_bytes}, {"total_bytes", &to->total_bytes},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        WEFT_TRY(weft_json_need_integer(object, where, fields[i].name, 0, WEFT_PROBLEM_MOST,
                                        fields[i].out, reader->err));
    }
    return WEFT_OK;
}

/* Copies a string that may be null. */
static enum weft_status read_optional(struct reader *reader, const struct weft_json_value *object,
                                      const char *where, const char *name, const char **out)
{
    const struct weft_json_value *value = weft_json_member(object, name);
    if (value != NULL && weft_json_kind(value) == WEFT_JSON_NULL) return WEFT_OK;
    return weft_decode_text(object, where, name, &reader->plan->pool, out, reader->err);
}

static enum weft_status read_gap(struct reader *reader, const struct weft_json_value *object)
{
    const struct weft_json_value *value = weft_json_member(object, "gap");
    reader->plan->solver_gap = -1;
    if (value != NULL && weft_json_kind(value) == WEFT_JSON_NULL) return WEFT_OK;
    if (weft_json_number(value, &reader->plan->solver_gap) && reader->plan->solver_gap >= 0) {
        return WEFT_OK;
    }
    return weft_fail(reader->err, WEFT_E_DATA, "%s: solver: gap is not null or a number from 0",
                     reader->source);
}

static enum weft_status read_bound(struct reader *reader, const struct weft_json_value *root)
{
    const struct weft_json_value *bound, *solver;
    char where[PLACE_BYTES];
    snprintf(where, sizeof where, "%s: bound", reader->source);
    WEFT_TRY(weft_json_need(root, reader->source, "bound", WEFT_JSON_OBJECT, &bound, reader->err));
    WEFT_TRY(weft_decode_known(bound, where, bound_names, reader->err));
    WEFT_TRY(weft_json_need_integer(bound, where, "bound_ns", 0, WEFT_PROBLEM_MOST,
                                    &reader->plan->bound_ns, reader->err));
    WEFT_TRY(read_optional(reader, bound, where, "by", &reader->plan->bound_by));
    snprintf(where, sizeof where, "%s: certificate", reader->source);
    WEFT_TRY(weft_certificate_read(weft_json_member(root, "certificate"), where,
                                   reader->plan->problem, &reader->plan->pool,
                                   &reader->plan->certificate, reader->err));
    snprintf(where, sizeof where, "%s: solver", reader->source);
    WEFT_TRY(
        weft_json_need(root, reader->source, "solver", WEFT_JSON_OBJECT, &solver, reader->err));
    WEFT_TRY(weft_decode_known(solver, where, solver_names, reader->err));
    WEFT_TRY(read_gap(reader, solver));
    return read_optional(reader, solver, where, "stop", &reader->plan->solver_stop);
}

/* Each period is in the file once, so that bounds of n periods are bounds of n different ones. */
static enum weft_status check_new(struct reader *reader, const char *where,
                                  const struct weft_period_rule *rule)
{
    const struct weft_plan *plan = reader->plan;
    bool known = weft_period_rule_same(&plan->problem->period, rule);
    for (int32_t i = 0; i < plan->n_others; i++)
        known = known || weft_period_rule_same(&plan->others[i].problem->period, rule);
    if (!known) return WEFT_OK;
    return weft_fail(reader->err, WEFT_E_DATA, "%s: the file has this period already", where);
}

static enum weft_status read_other(struct reader *reader, const struct weft_json_value *value)
{
    struct weft_plan *plan = reader->plan;
    struct weft_plan_variant *other = &plan->others[plan->n_others];
    char where[PLACE_BYTES], place[PLACE_BYTES + 32];
    snprintf(where, sizeof where, "%s: other_periods[%d]", reader->source, plan->n_others);
    WEFT_TRY(weft_decode_known(value, where, other_names, reader->err));
    snprintf(place, sizeof place, "%s: problem", where);
    WEFT_TRY(
        weft_problem_read(weft_json_member(value, "problem"), place, &other->problem, reader->err));
    enum weft_status status = check_new(reader, where, &other->problem->period);
    plan->n_others++; /* now the plan's destructor frees it */
    WEFT_TRY(status);
    WEFT_TRY(weft_json_need_integer(value, where, "bound_ns", 0, WEFT_PROBLEM_MOST,
                                    &other->bound_ns, reader->err));
    snprintf(place, sizeof place, "%s: certificate", where);
    return weft_certificate_read(weft_json_member(value, "certificate"), place, other->problem,
                                 &plan->pool, &other->certificate, reader->err);
}

static enum weft_status read_others(struct reader *reader, const struct weft_json_value *root)
{
    const struct weft_json_value *array;
    struct weft_plan *plan = reader->plan;
    WEFT_TRY(weft_json_need(root, reader->source, "other_periods", WEFT_JSON_ARRAY, &array,
                            reader->err));
    size_t n = weft_json_count(array);
    if (n >= WEFT_MOST_VARIANTS)
        return weft_fail(reader->err, WEFT_E_DATA, "%s: %zu other_periods; there are at most %d",
                         reader->source, n, WEFT_MOST_VARIANTS - 1);
    plan->others = weft_pool_array(&plan->pool, n, sizeof *plan->others);
    if (plan->others == NULL) return weft_fail_memory(reader->err, "plan");
    for (const struct weft_json_value *it = weft_json_first(array); it != NULL;
         it = weft_json_next(it))
        WEFT_TRY(read_other(reader, it));
    return WEFT_OK;
}

static enum weft_status read_strategies(struct reader *reader, const struct weft_json_value *root)
{
    struct weft_plan *plan = reader->plan;
    const struct weft_problem *problem = plan->problem;
    const struct weft_json_value *array;
    WEFT_TRY(
        weft_json_need(root, reader->source, "strategies", WEFT_JSON_ARRAY, &array, reader->err));
    size_t n = weft_json_count(array);
    if (n != (size_t)problem->n_decisions) {
        return weft_fail(reader->err, WEFT_E_DATA, "%s: %zu strategies for %d decisions",
                         reader->source, n, problem->n_decisions);
    }
    plan->strategies = weft_pool_array(&plan->pool, n, sizeof *plan->strategies);
    if (plan->strategies == NULL) return weft_fail_memory(reader->err, "plan");
    int32_t u = 0;
    for (const struct weft_json_value *it = weft_json_first(array); it != NULL;
         it = weft_json_next(it), u++) {
        const char *name = "";
        bool is_text = weft_json_string(it, &name);
        plan->strategies[u] = is_text ? weft_decision_of_name(&problem->decisions[u], name) : -1;
        if (plan->strategies[u] < 0) {
            return weft_fail(reader->err, WEFT_E_DATA,
                             "%s: strategies[%d]: \"%.64s\" is no strategy of %s", reader->source,
                             u, name, problem->decisions[u].name);
        }
    }
    return WEFT_OK;
}

static enum weft_status read_placement(struct reader *reader, const struct weft_json_value *value,
                                       int32_t index)
{
    struct weft_plan *plan = reader->plan;
    char where[PLACE_BYTES];
    int64_t item, block, launch, deadline, last_slot = plan->problem->n_slots - 1;
    snprintf(where, sizeof where, "%s: placements[%d]", reader->source, index);
    WEFT_TRY(weft_decode_known(value, where, placement_names, reader->err));
    WEFT_TRY(weft_json_need_integer(value, where, "item", 0, (int64_t)plan->problem->n_items - 1,
                                    &item, reader->err));
    int64_t last_block = plan->problem->items[item].item.n_blocks - 1;
    WEFT_TRY(weft_json_need_integer(value, where, "block", 0, last_block, &block, reader->err));
    WEFT_TRY(weft_json_need_integer(value, where, "launch", 0, last_slot, &launch, reader->err));
    WEFT_TRY(
        weft_json_need_integer(value, where, "deadline", 0, last_slot, &deadline, reader->err));
    plan->placements[index] = (struct weft_placement){(int32_t)item, (int32_t)block,
                                                      (int32_t)launch, (int32_t)deadline, -1};
    return WEFT_OK;
}

static enum weft_status read_placements(struct reader *reader, const struct weft_json_value *root)
{
    struct weft_plan *plan = reader->plan;
    const struct weft_json_value *array;
    WEFT_TRY(
        weft_json_need(root, reader->source, "placements", WEFT_JSON_ARRAY, &array, reader->err));
    size_t n = weft_json_count(array);
    int64_t needed = 0;
    for (int32_t i = 0; i < plan->problem->n_items; i++) {
        if (weft_problem_needs(plan->problem, plan->strategies, i))
            needed += plan->problem->items[i].item.n_blocks;
    }
    if ((int64_t)n != needed) {
        return weft_fail(reader->err, WEFT_E_DATA,
                         "%s: %zu placements; the strategies need %" PRId64, reader->source, n,
                         needed);
    }
    plan->placements = weft_pool_array(&plan->pool, n, sizeof *plan->placements);
    if (plan->placements == NULL) return weft_fail_memory(reader->err, "plan");
    plan->n_placements = (int32_t)n;
    int32_t i = 0;
    for (const struct weft_json_value *it = weft_json_first(array); it != NULL;
         it = weft_json_next(it), i++) {
        WEFT_TRY(read_placement(reader, it, i));
    }
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
    int64_t n_tables;
    snprintf(where, sizeof where, "%s: pages", reader->source);
    WEFT_TRY(weft_json_need(root, reader->source, "pages", WEFT_JSON_OBJECT, &object, reader->err));
    WEFT_TRY(weft_decode_known(object, where, pages_names, reader->err));
    WEFT_TRY(weft_json_need_integer(object, where, "page_bytes", 0, WEFT_PAGE_LARGE_BYTES,
                                    &pages->page_bytes, reader->err));
    WEFT_TRY(weft_json_need_integer(object, where, "tables", 0, WEFT_PAGE_TABLES, &n_tables,
                                    reader->err));
    WEFT_TRY(weft_json_need(object, where, "stretches", WEFT_JSON_ARRAY, &array, reader->err));
    size_t n = weft_json_count(array), n_numbers = 0;
    for (const struct weft_json_value *it = weft_json_first(array); it; it = weft_json_next(it))
        n_numbers += weft_json_count(it);
    int32_t *ends = weft_pool_array(&reader->plan->pool, n, sizeof *ends);
    struct weft_page_stretch *stretches =
        weft_pool_array(&reader->plan->pool, n_numbers / 2 + n, sizeof *stretches);
    if (ends == NULL || stretches == NULL) return weft_fail_memory(reader->err, "plan");
    bool is_page = pages->page_bytes >= WEFT_PAGE_LEAST_BYTES && n_tables >= 1 &&
                   (pages->page_bytes & (pages->page_bytes - 1)) == 0;
    if ((n > 0 && !is_page) || n > INT32_MAX || n_numbers > INT32_MAX) {
        return weft_fail(reader->err, WEFT_E_DATA,
                         "%s: %zu lists of pages of %" PRId64 " bytes in %" PRId64 " tables", where,
                         n, pages->page_bytes, n_tables);
    }
    int32_t n_stretches = 0;
    for (const struct weft_json_value *it = weft_json_first(array); it; it = weft_json_next(it)) {
        WEFT_TRY(read_stretches(reader, where, it, stretches, &n_stretches));
        ends[pages->n_lists++] = n_stretches;
    }
    pages->n_tables = (int32_t)n_tables;
    pages->ends = ends;
    pages->stretches = stretches;
    return WEFT_OK;
}

static enum weft_status read_hash(struct reader *reader, const struct weft_json_value *root)
{
    struct weft_hash *hash = weft_pool_array(&reader->plan->pool, 1, sizeof *hash);
    if (hash == NULL) return weft_fail_memory(reader->err, "plan");
    reader->plan->decision_hash = hash;
    return weft_decode_hash(root, reader->source, "decision_hash", hash, reader->err);
}

static enum weft_status read_all(struct reader *reader, const struct weft_json_value *root)
{
    struct weft_plan *plan = reader->plan;
    WEFT_TRY(check_format(reader, root));
    WEFT_TRY(weft_decode_known(root, reader->source, plan_names, reader->err));
    const struct weft_json_value *value;
    char where[PLACE_BYTES];
    struct weft_problem *problem;
    snprintf(where, sizeof where, "%s: problem", reader->source);
    WEFT_TRY(
        weft_json_need(root, reader->source, "problem", WEFT_JSON_OBJECT, &value, reader->err));
    WEFT_TRY(weft_problem_read(value, where, &problem, reader->err));
    plan->problem = problem;
    plan->owns_problem = true;
    WEFT_TRY(weft_decode_text(root, reader->source, "planner", &plan->pool, &plan->planner,
                              reader->err));
    WEFT_TRY(read_hash(reader, root));
    WEFT_TRY(read_prediction(reader, root));
    WEFT_TRY(read_bound(reader, root));
    WEFT_TRY(read_strategies(reader, root));
    WEFT_TRY(read_placements(reader, root));
    WEFT_TRY(read_pages(reader, root));
    WEFT_TRY(read_others(reader, root));
    WEFT_TRY(weft_placements_chain(plan->problem, plan->placements, plan->n_placements,
                                   reader->source, WEFT_E_DATA, reader->err));
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
