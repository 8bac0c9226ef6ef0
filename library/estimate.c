/* SPDX-License-Identifier: Apache-2.0 */
#include "library/estimate.h"

#include "problem/names.h"
#include "scheduler/digest/digest.h"
#include "spec/config_recompute.h"

/* Whether `a` is shown instead of `b`. Just-in-time rows take the leanest. All others take the
 * fastest, like `weft plan`; with equal or unknown times, the leanest. */
static bool is_better(const struct weft_need *a, const struct weft_need *b)
{
    if (!a->applies || !b->applies) return a->applies;
    if (a->way != WEFT_NEED_JUST_IN_TIME && a->step_ns != b->step_ns)
        return a->step_ns < b->step_ns;
    return a->bytes < b->bytes;
}

/* Keeps the better rows of one more period, with its own copies of names. */
static enum weft_status merge_rows(struct weft_estimate *estimate,
                                   const struct weft_problem *problem, const struct weft_need *rows,
                                   struct weft_error *err)
{
    for (int i = 0; i < WEFT_ESTIMATE_ROWS; i++) {
        struct weft_need *row = &estimate->rows[i];
        if (!is_better(&rows[i], row)) continue;
        char shown[WEFT_NAMES_BYTES];
        *row = rows[i];
        row->slot_name = weft_pool_string(&estimate->pool, rows[i].slot_name);
        row->unit_name = weft_pool_string(&estimate->pool, rows[i].unit_name);
        row->unit_shown = row->unit_name;
        if (row->unit >= 0)
            row->unit_shown = weft_pool_string(&estimate->pool,
                                               weft_problem_show_name(problem, row->unit, shown));
        if (!row->slot_name || !row->unit_name || !row->unit_shown)
            return weft_fail_memory(err, "an estimate");
    }
    return WEFT_OK;
}

static enum weft_status estimate_periods(struct weft_session *session, uint32_t asked,
                                         struct weft_estimate *out, struct weft_error *err)
{
    struct weft_variant variants[WEFT_MOST_VARIANTS];
    int32_t n = weft_variants_list(session->config, variants);
    weft_estimate_init(out->rows);
    for (int32_t v = 0; v < n; v++) {
        struct weft_need rows[WEFT_ESTIMATE_ROWS];
        if (v > 0) WEFT_TRY(weft_session_stage_variant(session, &variants[v], err));
        weft_estimate_init(rows);
        WEFT_TRY(
            weft_estimate_fill(session->stages.problem, out->times[0] != '\0', asked, rows, err));
        WEFT_TRY(merge_rows(out, session->stages.problem, rows, err));
    }
    return WEFT_OK;
}

/* The least bytes that the state of all units needs in a tier. */
static int64_t least_held(const struct weft_problem *problem, int32_t tier)
{
    int64_t bytes = 0;
    for (int32_t d = 0; d < problem->n_decisions; d++) {
        int64_t least = INT64_MAX;
        for (int32_t k = 0; k < problem->decisions[d].n_strategies; k++) {
            const struct weft_problem_strategy *of = &problem->decisions[d].strategies[k];
            int64_t held = 0;
            for (int32_t h = 0; h < of->n_holds; h++)
                if (of->holds[h].tier == tier) held += of->holds[h].bytes;
            if (held < least) least = held;
        }
        bytes += least;
    }
    return bytes;
}

static enum weft_status estimate_location(struct weft_session *session, enum weft_location location,
                                          struct weft_estimate_location *out,
                                          struct weft_error *err)
{
    struct weft_variant variants[WEFT_MOST_VARIANTS];
    const int32_t n = weft_variants_list(session->config, variants);
    *out = (struct weft_estimate_location){.least_bytes = INT64_MAX};
    for (int32_t v = 0; v < n; v++) {
        WEFT_TRY(weft_session_stage_variant(session, &variants[v], err));
        const struct weft_problem *problem = session->stages.problem;
        const int64_t least_bytes = weft_least_limit(problem, 0, NULL);
        int32_t tier = 0;
        while (tier < problem->n_tiers && problem->tiers[tier].kind != location)
            tier++;
        if (least_bytes < 0) return weft_fail_memory(err, "the least limit");
        if (tier == problem->n_tiers) return WEFT_OK; /* its figures are not known */
        out->given = true;
        if (least_bytes < out->least_bytes) out->least_bytes = least_bytes;
        out->limit_bytes = problem->tiers[tier].limit_bytes;
        out->held_bytes = least_held(problem, tier);
        const struct weft_hold *ring = weft_problem_ring(problem);
        if (ring != NULL) out->ring_bytes = ring->tier == 0 ? ring->bytes : 0;
    }
    return WEFT_OK;
}

/* Estimates each tier as if plan.offload allowed no other. */
static enum weft_status estimate_locations(struct weft_session *session, struct weft_estimate *out,
                                           struct weft_error *err)
{
    struct weft_offload_spec *offload = &session->config->plan.offload;
    const struct weft_offload_spec before = *offload;
    const int locations = weft_config_state_locations(session->config);
    enum weft_status status = WEFT_OK;
    if (!weft_config_moves_state(session->config)) return WEFT_OK;
    for (int location = 0; location < WEFT_LOCATION_COUNT && status == WEFT_OK; location++) {
        if ((locations >> location & 1) == 0) continue;
        offload->state = 1 << location;
        status = estimate_location(session, (enum weft_location)location, &out->locations[location],
                                   err);
    }
    *offload = before;
    return status;
}

/* The policies that the config's target has. */
static const char *all_policies(const struct weft_config *config)
{
    const char *policies = weft_config_target(config)->policies;
    return policies ? policies : "dp,zero1,sdp,fsdp";
}

enum weft_status weft_estimate_create(struct weft_session *session, uint32_t asked,
                                      struct weft_estimate *out, struct weft_error *err)
{
    struct weft_text missing;
    weft_text_init(&missing);
    session->config->plan.policies = all_policies(session->config);
    enum weft_status status = weft_session_stage_for_memory(session, &missing, err);
    if (status == WEFT_OK) {
        const struct weft_problem *problem = session->stages.problem;
        *out = (struct weft_estimate){
            .ranks = problem->ranks,
            .parameters = session->config->model->parameters,
            .ranks_per_node = session->config->cluster.ranks_per_node,
            .limit_bytes = session->config->cluster.memory_limit_bytes,
            .base_bytes =
                weft_profile_base_of(session->profile, session->config->train.micro_batch),
            .block_bytes = problem->blocks.least_bytes,
        };
        out->missing = weft_pool_string(&out->pool, weft_text_chars(&missing));
        out->times =
            weft_pool_string(&out->pool, missing.length > 0 ? "" : problem->profile_source);
        if (!out->missing || !out->times || !weft_text_ok(&missing))
            status = weft_fail_memory(err, "an estimate");
    }
    weft_text_finish(&missing);
    if (status == WEFT_OK) status = estimate_periods(session, asked, out, err);
    return status == WEFT_OK ? estimate_locations(session, out, err) : status;
}

/* Lets every layer recompute that can. */
static enum weft_status open_levels(struct weft_config *config, struct weft_error *err)
{
    uint8_t *levels =
        weft_pool_array(&config->pool, (size_t)config->model->n_layers, sizeof *levels);
    if (levels == NULL) return weft_fail_memory(err, "an estimate");
    weft_config_restorable(config, levels);
    config->recomputes = levels;
    return WEFT_OK;
}

enum weft_status weft_estimate_recomputed(struct weft_session *session, int64_t *bytes,
                                          struct weft_error *err)
{
    struct weft_text missing;
    struct weft_error refusal = {0};
    *bytes = 0;
    if (!weft_session_may_recompute(session)) return WEFT_OK;
    session->config->plan.policies = all_policies(session->config);
    WEFT_TRY(open_levels(session->config, err));
    weft_text_init(&missing);
    enum weft_status status = weft_session_stage_for_memory(session, &missing, &refusal);
    if (status == WEFT_OK) status = weft_session_find_least(session, bytes, &refusal);
    weft_text_finish(&missing);
    if (*bytes == INT64_MAX) *bytes = 0;
    return status == WEFT_OK || status == WEFT_E_DATA
               ? WEFT_OK
               : weft_fail_again(err, &refusal, "%s", refusal.text);
}

enum weft_status weft_estimate_stage_ways(struct weft_session *session, struct weft_error *err)
{
    struct weft_config *config = session->config;
    const uint8_t *levels = config->recomputes;
    struct weft_text missing;
    struct weft_error refusal = {0};
    config->plan.policies = all_policies(config);
    config->plan.offload = (struct weft_offload_spec){.inputs = config->plan.offload.inputs};
    if (weft_config_target(config)->recomputes) WEFT_TRY(open_levels(config, err));
    weft_text_init(&missing);
    enum weft_status status = weft_session_stage_for_memory(session, &missing, &refusal);
    if (status == WEFT_E_DATA) {
        config->recomputes = levels;
        status = weft_session_stage_for_memory(session, &missing, &refusal);
    }
    weft_text_finish(&missing);
    return status == WEFT_OK ? status : weft_fail(err, status, "%s", refusal.text);
}

void weft_estimate_finish(struct weft_estimate *estimate)
{
    weft_pool_finish(&estimate->pool);
    *estimate = (struct weft_estimate){0};
}
