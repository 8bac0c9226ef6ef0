/* SPDX-License-Identifier: Apache-2.0 */
#include "library/rival.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/units.h"
#include "plan/placed.h"
#include "problem/target.h"
#include "problem/terms.h"
#include "program/predict.h"
#include "scheduler/digest/digest.h"
#include "scheduler/paged.h"
#include "scheduler/planners/table.h"
#include "scheduler/tree/proof.h"

static const char format_name[] = "weft-rival";
enum { FORMAT_VERSION = 1, MOST_BYTES = 1 << 30, NAME_MOST = 48, PLACE_BYTES = 256 };

static const struct weft_key_table rival_plan_keys = WEFT_KEY_TABLE(
    "One plan of a rival.",
    WEFT_KEY_PART_AS(WEFT_KEY_OPTIONAL, WEFT_KEY_OBJECT, "problem", &weft_problem_terms_keys,
                     "the period, as in a plan file; left out: the first of the config"),
    WEFT_KEY_PART_AS(WEFT_KEY_LIST, WEFT_KEY_TEXT, "strategies", NULL, "one for each decision"),
    WEFT_KEY_PART_AS(WEFT_KEY_LIST, WEFT_KEY_OBJECT, "placements", &weft_placement_keys,
                     "in the order of every lane"));

const struct weft_key_table weft_rival_keys = WEFT_KEY_TABLE(
    "Plans by another program: docs/rivals.md.",
    WEFT_KEY_PART(WEFT_KEY_CONST, "format", format_name, "of this file"),
    WEFT_KEY_PART_RANGE(WEFT_KEY_INT64, "version", WEFT_KEY_NEEDED, FORMAT_VERSION, FORMAT_VERSION,
                        NULL, "of the format"),
    WEFT_KEY_PART(WEFT_KEY_SHOWN, "name", NULL, "of the program or rule, for tables"),
    WEFT_KEY_PART_AS(WEFT_KEY_LIST, WEFT_KEY_OBJECT, "plans", &rival_plan_keys,
                     "the fastest that fits counts"));

/* A rival while its plans are judged. */
struct rival {
    struct weft_session *session;
    const char *source;
    char planner[WEFT_RIVAL_PLANNER_BYTES];
    struct weft_variant first; /* of the config */
    int32_t n_plans;
    int64_t least_bytes;    /* of its leanest plan in pages; 0: no rows fit */
    struct weft_error over; /* of the first plan with a row over its limit */
};

bool weft_rival_is(const char *bytes, size_t length)
{
    struct weft_json *document = NULL;
    struct weft_error unread = {0};
    const char *format = "";
    if (weft_json_parse(bytes, length, "", &document, &unread) != WEFT_OK) return false;
    const bool is = weft_json_string(weft_json_member(weft_json_root(document), "format"), &format);
    const bool rival = is && strcmp(format, format_name) == 0;
    weft_json_destroy(document);
    return rival;
}

/* Names stand in tables, files and arguments, so they have few characters. */
static enum weft_status read_name(struct rival *rival, const struct weft_json_value *root,
                                  struct weft_error *err)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    const char *name;
    WEFT_TRY(weft_json_need_string(root, rival->source, "name", &name, err));
    const size_t length = strlen(name);
    if (length == 0 || length > NAME_MOST || strspn(name, allowed) != length)
        return weft_fail(err, WEFT_E_DATA,
                         "%s: name \"%.64s\": 1 to %d letters, digits, \"-\", \"_\" or \".\"",
                         rival->source, name, NAME_MOST);
    snprintf(rival->planner, sizeof rival->planner, "rival:%s", name);
    return WEFT_OK;
}

/* Stages the period of a plan. */
static enum weft_status stage_period(const struct rival *rival, const struct weft_json_value *value,
                                     const char *where, struct weft_error *err)
{
    const struct weft_json_value *terms = weft_json_member(value, "problem");
    struct weft_session *session = rival->session;
    struct weft_variant variant = rival->first;
    struct weft_problem *problem = NULL;
    char place[PLACE_BYTES + sizeof ": problem"];
    snprintf(place, sizeof place, "%s: problem", where);
    if (terms != NULL) {
        WEFT_TRY(weft_problem_read_terms(terms, place, &problem, err));
        const bool open = weft_variants_find(session->config, problem, &variant);
        weft_problem_destroy(problem);
        if (!open)
            return weft_fail(err, WEFT_E_DATA,
                             "%s: no period that %s leaves open: copy period, blocks and "
                             "micro_batch from the problem of a plan of this config",
                             place, session->config->source);
    }
    return weft_session_stage_variant(session, &variant, err);
}

/* Reads the decision of a plan, in normal form. */
static enum weft_status read_decision(const struct rival *rival,
                                      const struct weft_json_value *value, const char *where,
                                      struct weft_plan *plan, struct weft_error *err)
{
    plan->problem = rival->session->stages.problem;
    plan->planner = weft_pool_string(&plan->pool, rival->planner);
    plan->solver_stop = weft_pool_string(&plan->pool, "by another program");
    if (plan->planner == NULL || plan->solver_stop == NULL) return weft_fail_memory(err, "a plan");
    WEFT_TRY(weft_plan_read_placed(value, where, plan, err));
    int32_t *scratch = calloc((size_t)plan->n_placements + 1, sizeof *scratch);
    if (scratch == NULL) return weft_fail_memory(err, "a plan");
    weft_placements_normalise(plan->problem, plan->placements, plan->n_placements, scratch);
    free(scratch);
    return weft_placements_check(plan->problem, plan->strategies, plan->placements,
                                 plan->n_placements, where, err);
}

/* Lowers the plan of the session in pages of this size, and fills its bytes. */
static enum weft_status lower_in(struct weft_session *session, int64_t page_bytes,
                                 struct weft_error *err)
{
    struct weft_lower_inputs inputs = session->inputs;
    struct weft_prediction *prediction = &session->plan->prediction;
    weft_program_destroy(session->program);
    session->program = NULL;
    inputs.page_bytes = page_bytes;
    WEFT_TRY(weft_program_lower(session->plan, &inputs, &session->program, err));
    prediction->arena_bytes = session->program->arena_bytes;
    prediction->total_bytes =
        weft_program_outside_bytes(session->program) + session->program->arena_bytes;
    return WEFT_OK;
}

/* Finds pages as for a planner's plan: of the size for the problem, and of the least size if these
 * exceed the limit. */
static enum weft_status find_pages(struct weft_session *session, struct weft_error *err)
{
    struct weft_prediction *prediction = &session->plan->prediction;
    const int64_t limit_bytes = session->stages.problem->tiers[0].limit_bytes;
    int64_t page_bytes = session->inputs.page_bytes;
    const bool open = page_bytes == 0;
    struct weft_digest *table = NULL;
    prediction->total_bytes = prediction->peak_bytes;
    if (weft_problem_target(session->stages.problem)->is_foreign) return WEFT_OK;
    if (open) {
        WEFT_TRY(weft_digest_create(session->stages.problem, &table, err));
        page_bytes = weft_page_of_least(table);
        weft_digest_destroy(table);
    }
    WEFT_TRY(lower_in(session, page_bytes, err));
    if (open && prediction->total_bytes > limit_bytes && page_bytes > WEFT_PAGE_LEAST_BYTES)
        WEFT_TRY(lower_in(session, WEFT_PAGE_LEAST_BYTES, err));
    return WEFT_OK;
}

/* Judges a plan, which becomes the session's. Sets *fits. */
static enum weft_status judge_plan(struct rival *rival, const struct weft_json_value *value,
                                   int32_t number, bool *fits, struct weft_error *err)
{
    struct weft_session *session = rival->session;
    struct weft_error over = {0};
    char where[PLACE_BYTES];
    *fits = false;
    snprintf(where, sizeof where, "%s: plans[%d]", rival->source, number);
    WEFT_TRY(weft_keys_read(&rival_plan_keys, value, where, NULL, NULL, err));
    WEFT_TRY(stage_period(rival, value, where, err));
    session->plan = calloc(1, sizeof *session->plan);
    if (session->plan == NULL) return weft_fail_memory(err, "a plan");
    WEFT_TRY(read_decision(rival, value, where, session->plan, err));
    if (weft_plan_check_rows(session->plan, where, &over) != WEFT_OK) {
        if (rival->over.text[0] == '\0') rival->over = over;
        return WEFT_OK;
    }
    WEFT_TRY(weft_plan_predict(session->plan, err));
    WEFT_TRY(find_pages(session, err));
    const int64_t bytes = session->plan->prediction.total_bytes;
    if (rival->least_bytes == 0 || bytes < rival->least_bytes) rival->least_bytes = bytes;
    *fits = bytes <= session->stages.problem->tiers[0].limit_bytes;
    return WEFT_OK;
}

/* Adds the pages and the number of open periods. If only one is open, a bound of its problem is one
 * of the config, and the plan gets the bound that needs no search. */
static enum weft_status finish_plan(const struct rival *rival, struct weft_error *err)
{
    struct weft_session *session = rival->session;
    struct weft_plan *plan = session->plan;
    struct weft_outcome outcome = {.pool = &plan->pool};
    plan->n_open = weft_variants_count(session->config);
    if (plan->n_open == 1) WEFT_TRY(weft_prove(plan->problem, NULL, &plan->pool, &outcome, err));
    plan->bound_ns = outcome.bound_ns;
    plan->bound_by = outcome.bound_by;
    plan->certificate = outcome.certificate;
    if (session->program == NULL) return WEFT_OK;
    WEFT_TRY(weft_paging_list(session->program->paging, &plan->pool, &plan->pages, err));
    return weft_program_verify(session->program, plan->problem->tiers[0].limit_bytes, err);
}

static enum weft_status refuse_plans(const struct rival *rival, struct weft_error *err)
{
    char limit[WEFT_UNITS_TEXT_BYTES], least[WEFT_UNITS_TEXT_BYTES];
    const int64_t limit_bytes = rival->session->stages.problem->tiers[0].limit_bytes;
    if (rival->least_bytes == 0)
        return weft_fail(err, WEFT_E_INFEASIBLE, "none of the %d plans of %s fits: %s",
                         (int)rival->n_plans, rival->planner, rival->over.text);
    return weft_fail(err, WEFT_E_INFEASIBLE,
                     "%s: none of the %d plans of %s fits in pages: the leanest takes %s (%lld "
                     "bytes), and the limit is %s (%lld)",
                     rival->source, (int)rival->n_plans, rival->planner,
                     weft_units_show_bytes(rival->least_bytes, least),
                     (long long)rival->least_bytes, weft_units_show_bytes(limit_bytes, limit),
                     (long long)limit_bytes);
}

/* Judges all plans, and the fastest that fits once more. */
static enum weft_status judge_all(struct rival *rival, const struct weft_json_value *plans,
                                  struct weft_error *err)
{
    const struct weft_json_value *best = NULL;
    struct weft_session *session = rival->session;
    int64_t least_ns = INT64_MAX;
    int32_t at = 0, best_at = 0;
    bool fits;
    for (const struct weft_json_value *it = weft_json_first(plans); it != NULL;
         it = weft_json_next(it), at++) {
        WEFT_TRY(judge_plan(rival, it, at, &fits, err));
        if (!fits || session->plan->prediction.step_ns >= least_ns) continue;
        least_ns = session->plan->prediction.step_ns;
        best = it;
        best_at = at;
    }
    if (best == NULL) return refuse_plans(rival, err);
    if (best_at != at - 1) WEFT_TRY(judge_plan(rival, best, best_at, &fits, err));
    return finish_plan(rival, err);
}

static enum weft_status read_head(struct rival *rival, const struct weft_json_value *root,
                                  struct weft_error *err)
{
    const char *format = "";
    int64_t version;
    if (!weft_json_string(weft_json_member(root, "format"), &format) ||
        strcmp(format, format_name) != 0)
        return weft_fail(err, WEFT_E_DATA, "%s: is no rival: its format is \"%.64s\", not \"%s\"",
                         rival->source, format, format_name);
    WEFT_TRY(weft_keys_read(&weft_rival_keys, root, rival->source, NULL, NULL, err));
    WEFT_TRY(weft_json_need_integer(root, rival->source, "version", FORMAT_VERSION, FORMAT_VERSION,
                                    &version, err));
    return read_name(rival, root, err);
}

static enum weft_status read_rival(struct rival *rival, const struct weft_json_value *root,
                                   struct weft_error *err)
{
    const struct weft_json_value *plans;
    WEFT_TRY(read_head(rival, root, err));
    WEFT_TRY(weft_json_need(root, rival->source, "plans", WEFT_JSON_ARRAY, &plans, err));
    const size_t n = weft_json_count(plans);
    if (n == 0 || n > INT32_MAX)
        return weft_fail(err, WEFT_E_DATA, "%s: plans is empty: give at least one", rival->source);
    rival->n_plans = (int32_t)n;
    return judge_all(rival, plans, err);
}

enum weft_status weft_rival_name(const char *bytes, size_t length, const char *source,
                                 char out[WEFT_RIVAL_PLANNER_BYTES], struct weft_error *err)
{
    struct rival rival = {.source = source};
    struct weft_json *document;
    WEFT_TRY(weft_json_parse(bytes, length, source, &document, err));
    const enum weft_status status = read_head(&rival, weft_json_root(document), err);
    weft_json_destroy(document);
    if (status == WEFT_OK) memcpy(out, rival.planner, sizeof rival.planner);
    return status;
}

enum weft_status weft_rival_take(struct weft_session *session, const char *bytes, size_t length,
                                 const char *source, struct weft_error *err)
{
    struct rival rival = {.session = session, .source = source, .first = session->stages.variant};
    struct weft_json *document;
    WEFT_TRY(weft_json_parse(bytes, length, source, &document, err));
    const enum weft_status status = read_rival(&rival, weft_json_root(document), err);
    weft_json_destroy(document);
    if (status != WEFT_OK) weft_session_drop_plan(session);
    return status;
}

enum weft_status weft_rival_load(struct weft_session *session, const char *path,
                                 struct weft_error *err)
{
    char *bytes = NULL;
    size_t length = 0;
    WEFT_TRY(weft_file_read(path, MOST_BYTES, &bytes, &length, err));
    const enum weft_status status = weft_rival_take(session, bytes, length, path, err);
    free(bytes);
    return status;
}
