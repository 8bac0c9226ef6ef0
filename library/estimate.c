#include "library/estimate.h"

/* True when `a` is what is shown and not `b`: of the just-in-time the leanest, of rules and of the
 * fastest the faster, as `weft plan` takes it; of what is as fast, as without times, the leaner. */
static bool is_better(const struct weft_need *a, const struct weft_need *b)
{
    if (!a->applies || !b->applies) return a->applies;
    if (a->way != WEFT_NEED_JUST_IN_TIME && a->step_ns != b->step_ns)
        return a->step_ns < b->step_ns;
    return a->bytes < b->bytes;
}

/* Keeps what is better in one more period, with names of its own. */
static enum weft_status merge(struct weft_estimate *estimate, const struct weft_need *rows,
                              struct weft_error *err)
{
    for (int i = 0; i < WEFT_ESTIMATE_ROWS; i++) {
        struct weft_need *row = &estimate->rows[i];
        if (!is_better(&rows[i], row)) continue;
        *row = rows[i];
        row->slot_name = weft_pool_string(&estimate->pool, rows[i].slot_name);
        row->unit_name = weft_pool_string(&estimate->pool, rows[i].unit_name);
        if (!row->slot_name || !row->unit_name) return weft_fail_memory(err, "an estimate");
    }
    return WEFT_OK;
}

static enum weft_status estimate_periods(struct weft_session *session, uint32_t asked,
                                         struct weft_estimate *out, struct weft_error *err)
{
    struct weft_period_rule variants[WEFT_MOST_VARIANTS];
    int32_t n = weft_stages_variants(session->config, variants);
    weft_estimate_init(out->rows);
    for (int32_t v = 0; v < n; v++) {
        struct weft_need rows[WEFT_ESTIMATE_ROWS];
        if (v > 0) WEFT_TRY(weft_session_stage_period(session, &variants[v], err));
        weft_estimate_init(rows);
        WEFT_TRY(
            weft_estimate_fill(session->stages.problem, out->times[0] != '\0', asked, rows, err));
        WEFT_TRY(merge(out, rows, err));
    }
    return WEFT_OK;
}

enum weft_status weft_estimate_create(struct weft_session *session, uint32_t asked,
                                      struct weft_estimate *out, struct weft_error *err)
{
    struct weft_text missing;
    weft_text_init(&missing);
    session->config->plan.policies = "dp,zero1,sdp,fsdp";
    enum weft_status status = weft_session_stage_for_memory(session, &missing, err);
    if (status == WEFT_OK) {
        const struct weft_problem *problem = session->stages.problem;
        *out = (struct weft_estimate){
            .ranks = problem->ranks,
            .limit_bytes = session->config->cluster.memory_limit_bytes,
            .base_bytes = session->profile->base_bytes,
            .block_bytes = problem->blocks.least_bytes,
        };
        out->missing = weft_pool_string(&out->pool, weft_text_chars(&missing));
        out->times =
            weft_pool_string(&out->pool, missing.length > 0 ? "" : problem->profile_source);
        if (!out->missing || !out->times || !weft_text_ok(&missing))
            status = weft_fail_memory(err, "an estimate");
    }
    weft_text_finish(&missing);
    return status == WEFT_OK ? estimate_periods(session, asked, out, err) : status;
}

void weft_estimate_finish(struct weft_estimate *estimate)
{
    weft_pool_finish(&estimate->pool);
    *estimate = (struct weft_estimate){0};
}
