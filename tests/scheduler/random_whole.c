/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/scheduler/random_whole.h"

#include "scheduler/digest/digest.h"
#include "scheduler/schedule.h"

double fsdp_ratio(const struct weft_problem *problem)
{
    double channel_ns = 0, compute_ns = 0;
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_problem_item *of = &problem->items[i];
        const struct weft_problem_decision *unit = &problem->decisions[of->item.decision];
        if ((of->item.strategies & weft_decision_policies(unit, 1u << WEFT_POLICY_FSDP)) != 0)
            channel_ns += (double)of->block_ns * (double)of->item.n_blocks;
    }
    for (int32_t s = 0; s < problem->n_slots; s++)
        compute_ns += (double)problem->slot_ns[s];
    return compute_ns > 0 ? channel_ns / compute_ns : 0;
}

/* A config with some figures, and what is made of it. */
struct draft {
    struct weft_config *config;
    struct weft_profile *profile;
};

static void draft_finish(struct draft *draft)
{
    weft_profile_destroy(draft->profile);
    weft_config_destroy(draft->config);
}

static enum weft_status draft_open(uint64_t seed, const struct random_whole *figures,
                                   struct draft *out, struct weft_error *err)
{
    struct weft_text text;
    *out = (struct draft){0};
    weft_text_init(&text);
    random_whole_config(seed, figures, &text);
    enum weft_status status = weft_config_parse(weft_text_chars(&text), text.length, "random.json",
                                                ".", NULL, 0, &out->config, err);
    weft_text_finish(&text);
    return status == WEFT_OK ? weft_profile_analytic(out->config, &out->profile, err) : status;
}

static enum weft_status find_scale(uint64_t seed, struct random_whole *figures,
                                   struct weft_error *err)
{
    struct draft draft;
    struct weft_stages stages = {0};
    enum weft_status status = draft_open(seed, figures, &draft, err);
    if (status == WEFT_OK) status = weft_stages_create(draft.config, draft.profile, &stages, err);
    if (status == WEFT_OK) {
        double ratio = fsdp_ratio(stages.problem);
        if (ratio > 0) figures->link_scale *= random_whole_ratio(seed) / ratio;
    }
    weft_stages_finish(&stages);
    draft_finish(&draft);
    return status;
}

/* The stages of that of the config's periods whose plans can hold least, before layout. */
static enum weft_status stage_leanest(const struct draft *draft, struct weft_stages *out,
                                      struct weft_error *err)
{
    struct weft_variant rules[WEFT_MOST_VARIANTS];
    int32_t n = weft_variants_list(draft->config, rules);
    int64_t least = INT64_MAX;
    for (int32_t v = 0; v < n; v++) {
        struct weft_stages stages = {0};
        WEFT_TRY(
            weft_stages_create_variant(draft->config, draft->profile, &rules[v], &stages, err));
        int64_t bytes = weft_least_limit(stages.problem, 0, NULL);
        struct weft_stages worse = bytes < least ? *out : stages;
        if (bytes < least) *out = stages;
        if (bytes < least) least = bytes;
        weft_stages_finish(&worse);
    }
    return WEFT_OK;
}

static enum weft_status find_limit(uint64_t seed, struct random_whole *figures,
                                   struct weft_error *err)
{
    struct weft_schedule_options options = {.planner = "all-zero1", .draft = true};
    struct draft draft;
    struct weft_stages stages = {0};
    struct weft_plan *plan = NULL;
    int64_t least = 0, ample = 0;
    enum weft_status status = draft_open(seed, figures, &draft, err);
    if (status == WEFT_OK) status = stage_leanest(&draft, &stages, err);
    if (status == WEFT_OK) {
        struct weft_lower_inputs inputs =
            weft_lower_inputs_of(draft.config, draft.profile, &stages);
        status = weft_least_paged_limit(stages.problem, &inputs, &least, err);
    }
    if (status == WEFT_OK) status = weft_schedule(stages.problem, NULL, &options, &plan, NULL, err);
    if (status == WEFT_OK) ample = plan->prediction.total_bytes;
    if (ample < least) ample = least;
    figures->limit_bytes = least + (int64_t)((double)(ample - least) * random_whole_share(seed));
    weft_plan_destroy(plan);
    weft_stages_finish(&stages);
    draft_finish(&draft);
    return status;
}

enum weft_status random_whole_write(uint64_t seed, struct weft_text *out, struct weft_error *err)
{
    struct random_whole figures = {.link_scale = 1};
    WEFT_TRY(find_scale(seed, &figures, err));
    WEFT_TRY(find_limit(seed, &figures, err));
    random_whole_config(seed, &figures, out);
    return weft_text_ok(out) ? WEFT_OK : weft_fail_memory(err, "a random config");
}
