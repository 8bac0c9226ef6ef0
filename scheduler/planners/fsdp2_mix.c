/* FSDP2 with the last k units not resharded after forward, k as large as the limit allows. */
#include "scheduler/planners/ahead.h"
#include "scheduler/planners/planners.h"

/* The last k units that could be resharded are kept. */
static enum weft_status choose(struct weft_draft *draft, int32_t k, struct weft_error *err)
{
    static const enum weft_policy kept[] = {WEFT_POLICY_SDP, WEFT_POLICY_COUNT};
    WEFT_TRY(weft_ahead_choose(draft, err));
    for (int32_t u = draft->problem->n_decisions - 1; u >= 0 && k > 0; u--) {
        if (weft_draft_policy(draft, u) != WEFT_POLICY_FSDP) continue;
        WEFT_TRY(weft_draft_choose(draft, u, kept, err));
        k--;
    }
    return WEFT_OK;
}

static enum weft_status place(struct weft_draft *draft, int32_t k, int32_t depth,
                              struct weft_error *err)
{
    WEFT_TRY(choose(draft, k, err));
    weft_ahead_place(draft, depth);
    return WEFT_OK;
}

enum weft_status weft_planner_fsdp2_mix(const struct weft_problem *problem,
                                        const struct weft_schedule_options *options,
                                        struct weft_candidate *out, struct weft_outcome *outcome,
                                        struct weft_error *err)
{
    int32_t depth = (int32_t)weft_draft_values(options, weft_ahead_settings)[0];
    /* Keeping one more never holds less in any slot: k fits, k + 1 and more do not. */
    int32_t fits = 0, too_many = problem->n_decisions + 1;
    struct weft_draft draft;
    enum weft_status status;
    (void)outcome;
    WEFT_TRY_GOTO(done, weft_draft_init(&draft, "fsdp2-mix", problem, out, err));
    while (too_many - fits > 1) {
        int32_t k = fits + (too_many - fits) / 2;
        WEFT_TRY_GOTO(done, place(&draft, k, depth, err));
        if (weft_draft_peak(&draft, NULL) <= problem->tiers[0].limit_bytes) {
            fits = k;
        } else {
            too_many = k;
        }
    }
    WEFT_TRY_GOTO(done, place(&draft, fits, depth, err));
    WEFT_TRY_GOTO(done, weft_draft_end(&draft, err));
done:
    weft_draft_finish(&draft);
    return status;
}
