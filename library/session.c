/* SPDX-License-Identifier: Apache-2.0 */
#include "library/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/units.h"
#include "problem/target.h"
#include "program/predict.h"
#include "scheduler/planners/fixed.h"
#include "scheduler/planners/table.h"
#include "spec/config_batch.h"
#include "spec/config_recompute.h"

enum { PLAN_MOST_BYTES = 1 << 30 };

enum weft_status weft_session_stage_variant(struct weft_session *session,
                                            const struct weft_variant *variant,
                                            struct weft_error *err)
{
    weft_session_drop_plan(session);
    weft_stages_finish(&session->stages);
    WEFT_TRY(weft_stages_create_variant(session->config, session->profile, variant,
                                        &session->stages, err));
    weft_config_settle(session->config, variant->batch.samples);
    session->inputs = weft_lower_inputs_of(session->config, session->profile, &session->stages);
    return WEFT_OK;
}

bool weft_session_must_measure(const struct weft_session *session)
{
    const struct weft_cluster *cluster = &session->config->cluster;
    if (cluster->profile != NULL) return weft_profile_lacks_network(session->config);
    return cluster->device.flops.f32 == 0 && cluster->device.flops.bf16 == 0 &&
           cluster->device.flops.f16 == 0;
}

enum weft_status weft_session_complete(const struct weft_session *session,
                                       struct weft_profile **profile, struct weft_error *err)
{
    struct weft_profile *measured = *profile;
    if (session->config->cluster.profile == NULL) return WEFT_OK;
    *profile = NULL;
    enum weft_status status = weft_profile_with_network(session->config, measured, profile, err);
    weft_profile_destroy(measured);
    return status;
}

static void drop_stages(struct weft_session *session)
{
    weft_session_drop_plan(session);
    weft_stages_finish(&session->stages);
    weft_profile_destroy(session->profile);
    session->profile = NULL;
}

static enum weft_status stage_first_period(struct weft_session *session, struct weft_error *err)
{
    struct weft_variant variants[WEFT_MOST_VARIANTS];
    (void)weft_variants_list(session->config, variants);
    return weft_session_stage_variant(session, &variants[0], err);
}

/* A run with a profile takes the profile's products, unless WEFT_GEMM names others. */
static enum weft_status take_kernels(const struct weft_session *session, struct weft_error *err)
{
    const char *kernels = session->profile->kernels;
    if (kernels == NULL || strcmp(kernels, "plain") != 0) return WEFT_OK;
    return weft_config_set_plain(session->config, true, err);
}

enum weft_status weft_session_stage(struct weft_session *session, struct weft_profile *profile,
                                    struct weft_error *err)
{
    drop_stages(session);
    /* Resolves a measured profile like its file, so that a plan fits both. */
    enum weft_status status =
        profile ? weft_profile_resolve_measured(session->config, profile, &session->profile, err)
                : weft_profile_resolve(session->config, &session->profile, err);
    weft_profile_destroy(profile);
    if (status == WEFT_OK) status = take_kernels(session, err);
    return status == WEFT_OK ? stage_first_period(session, err) : status;
}

enum weft_status weft_session_stage_for_memory(struct weft_session *session,
                                               struct weft_text *missing, struct weft_error *err)
{
    drop_stages(session);
    WEFT_TRY(weft_profile_resolve_for_memory(session->config, &session->profile, missing, err));
    return stage_first_period(session, err);
}

enum weft_status weft_session_start(struct weft_session *session, const char *path,
                                    struct weft_error *err)
{
    WEFT_TRY(weft_plan_read(path, &session->start, err));
    struct weft_variant variant;
    if (weft_variants_find(session->config, session->start->problem, &variant))
        WEFT_TRY(weft_session_stage_variant(session, &variant, err));
    int32_t theirs = session->start->problem->n_decisions,
            ours = session->stages.problem->n_decisions;
    if (theirs == ours) return WEFT_OK;
    return weft_fail(
        err, WEFT_E_DATA,
        "%s: a plan of %d decisions to start from; this model has %d: give one of the same "
        "model, blocks and tiers",
        path, theirs, ours);
}

/* "24GiB", "150000001B (143 MiB)": as a flag takes it, and readable. */
static const char *show_limit(int64_t bytes, char exact[WEFT_UNITS_TEXT_BYTES],
                              char out[2 * WEFT_UNITS_TEXT_BYTES])
{
    char shown[WEFT_UNITS_TEXT_BYTES];
    weft_units_write_bytes_shortly(bytes, exact);
    if (bytes % 1024 == 0)
        snprintf(out, 2 * WEFT_UNITS_TEXT_BYTES, "%s", exact);
    else
        snprintf(out, 2 * WEFT_UNITS_TEXT_BYTES, "%s (%s)", exact,
                 weft_units_show_bytes(bytes, shown));
    return out;
}

static enum weft_status fail_limit(const struct weft_session *session, const char *source,
                                   int64_t theirs, struct weft_error *err)
{
    char ours[WEFT_UNITS_TEXT_BYTES], exact[WEFT_UNITS_TEXT_BYTES] = "";
    char shown[2 * WEFT_UNITS_TEXT_BYTES], limit[2 * WEFT_UNITS_TEXT_BYTES] = "none";
    const struct weft_config *config = session->config;
    show_limit(config->cluster.memory_limit_bytes, ours, shown);
    if (theirs > 0) show_limit(theirs, exact, limit);
    return weft_fail(err, WEFT_E_DATA,
                     "%s: was made for a memory limit of %s, and %s was given: leave the flag "
                     "out%s%s, or plan again (weft plan %s --memory-limit %s -o %s)",
                     source, limit, shown, theirs > 0 ? " or give --memory-limit " : "", exact,
                     config->source, ours, source);
}

/* A plan's limit counts unless a flag contradicts it. The config's limit is only the default for
 * new plans. */
static enum weft_status take_limit(struct weft_session *session, const char *source, bool *changed,
                                   struct weft_error *err)
{
    struct weft_config *config = session->config;
    int64_t ours = config->cluster.memory_limit_bytes;
    int64_t theirs = session->plan->problem->tiers[0].limit_bytes;
    char exact[WEFT_UNITS_TEXT_BYTES], other[WEFT_UNITS_TEXT_BYTES];
    char limit[2 * WEFT_UNITS_TEXT_BYTES] = "none", said[2 * WEFT_UNITS_TEXT_BYTES] = "none";
    if (theirs == INT64_MAX) theirs = 0;
    *changed = theirs != ours;
    if (theirs == ours) return WEFT_OK;
    if (config->limit_given) return fail_limit(session, source, theirs, err);
    if (theirs > 0) show_limit(theirs, exact, limit);
    if (ours > 0) show_limit(ours, other, said);
    weft_log(WEFT_LOG_INFO, "%s: was made for a memory limit of %s, which counts (%s says %s)",
             source, limit, config->source, said);
    return weft_config_set_memory_limit(config, theirs, err);
}

/* Computes the times anew, which depend on the bytes that attention moves. Measured ones stay. */
static enum weft_status renew_times(struct weft_session *session, struct weft_profile **former,
                                    struct weft_error *err)
{
    struct weft_profile *renewed = NULL;
    if (session->profile->origin.machine != NULL) return WEFT_OK;
    WEFT_TRY(weft_profile_resolve(session->config, &renewed, err));
    *former = session->profile;
    session->profile = renewed;
    return WEFT_OK;
}

/* A plan that saves attention's probabilities counts, and runs with any products. One that saves
 * statistics is refused if products are plain. */
static enum weft_status take_attention(struct weft_session *session, const char *source,
                                       bool *changed, struct weft_error *err)
{
    struct weft_config *config = session->config;
    const struct weft_hash planned = session->plan->problem->config_hash;
    const bool plain = config->plain;
    *changed = false;
    if (weft_hash_equal(planned, config->hash)) return WEFT_OK;
    WEFT_TRY(weft_config_set_plain(config, !plain, err));
    const bool is_other = weft_hash_equal(planned, config->hash);
    *changed = is_other && !plain;
    if (*changed) return WEFT_OK;
    WEFT_TRY(weft_config_set_plain(config, plain, err));
    if (!is_other) return WEFT_OK;
    return weft_fail(
        err, WEFT_E_DATA,
        "%s: was made for attention on tensor cores, which saves statistics, and plain "
        "products (WEFT_GEMM) need room for probabilities: leave WEFT_GEMM=plain out, "
        "or plan again with it (WEFT_GEMM=plain weft plan %s -o %s)",
        source, config->source, source);
}

/* Whether the plan may recompute, although its config does not say so. */
static bool needs_levels(const struct weft_session *session)
{
    const struct weft_problem *problem = session->plan->problem;
    if (!weft_session_may_recompute(session)) return false;
    for (int32_t d = weft_problem_n_units(problem); d < problem->n_decisions; d++)
        if (weft_decision_deepest(&problem->decisions[d]) > 0) return true;
    return false;
}

/* Stages a variant of the config for the plan, which stays. */
static enum weft_status stage_for_plan(struct weft_session *session,
                                       const struct weft_variant *variant, bool levels,
                                       struct weft_error *err)
{
    struct weft_plan *plan = session->plan;
    session->plan = NULL;
    const enum weft_status status = levels ? weft_session_open_levels(session, variant, err)
                                           : weft_session_stage_variant(session, variant, err);
    session->plan = plan;
    return status;
}

/* Takes the plan's limit, attention, levels and variant, which the config must leave open. */
static enum weft_status take_terms(struct weft_session *session, const char *source,
                                   struct weft_error *err)
{
    struct weft_plan *plan = session->plan;
    struct weft_variant variant = session->stages.variant;
    const char *central = weft_fixed_rules[WEFT_POLICY_CENTRAL].planner;
    struct weft_profile *former = NULL;
    bool changed, attends;
    WEFT_TRY(take_limit(session, source, &changed, err));
    WEFT_TRY(take_attention(session, source, &attends, err));
    if (attends) WEFT_TRY(renew_times(session, &former, err));
    /* Its policy needs no name in the config, so the planner tells of it. */
    if (strcmp(plan->planner, central) == 0 && weft_planner_policies(session->config) == 0) {
        session->config->plan.planner = central;
        changed = true;
    }
    const struct weft_planner *planner = weft_planner_find(plan->planner, NULL);
    if (planner != NULL && planner->turns && weft_config_opens_turns(session->config))
        session->config->plan.micro_step_order = plan->problem->period.layers;
    /* If it is not open, comparing the problems gives the error. */
    (void)weft_variants_find(session->config, plan->problem, &variant);
    const bool levels = needs_levels(session);
    if (!changed && !attends && !levels && weft_variant_same(&session->stages.variant, &variant))
        return WEFT_OK;
    const enum weft_status status = stage_for_plan(session, &variant, levels, err);
    weft_profile_destroy(former);
    return status;
}

/* Refuses a plan for another runtime than the config's. */
static enum weft_status check_target(const struct weft_session *session, const char *source,
                                     struct weft_error *err)
{
    const struct weft_target *planned = weft_problem_target(session->plan->problem);
    const struct weft_target *target = weft_config_target(session->config);
    if (planned == target) return WEFT_OK;
    return weft_fail(
        err, WEFT_E_DATA,
        "%s: is a plan for %s, and %s is for %s (plan.for): check it with --for %s, or "
        "plan again; Weft's executor runs plans for weft alone",
        source, planned->title, session->config->source, target->title, planned->name);
}

static enum weft_status take_plan(struct weft_session *session, const char *bytes, size_t length,
                                  const char *source, struct weft_error *err)
{
    weft_session_drop_plan(session);
    WEFT_TRY(weft_plan_parse(bytes, length, source, &session->plan, err));
    WEFT_TRY(check_target(session, source, err));
    WEFT_TRY(take_terms(session, source, err));
    WEFT_TRY(weft_plan_matches(session->plan->problem, session->stages.problem, err));
    WEFT_TRY(weft_plan_check_rows(session->plan, source, err));
    WEFT_TRY(weft_plan_check_prediction(session->plan, err));
    if (weft_problem_target(session->plan->problem)->is_foreign) return WEFT_OK;
    WEFT_TRY(weft_program_lower(session->plan, &session->inputs, &session->program, err));
    WEFT_TRY(weft_program_check_prediction(session->program, session->plan, err));
    return weft_program_verify(session->program, session->stages.problem->tiers[0].limit_bytes,
                               err);
}

/* Stages another period of the plan; `toggles`: with recomputation if the plan's own periods have
 * none, or without. Sets out->profile if that needs another one. */
static enum weft_status stage_other(const struct weft_session *session,
                                    const struct weft_variant *variant, bool toggles,
                                    struct weft_session *out, struct weft_error *err)
{
    struct weft_config *config = session->config;
    const uint8_t *own = config->recomputes;
    struct weft_error why = {0};
    if (!toggles)
        return weft_stages_create_variant(config, session->profile, variant, &out->stages, err);
    uint8_t *levels =
        weft_pool_array(&config->pool, (size_t)config->model->n_layers, sizeof *levels);
    if (levels == NULL) return weft_fail_memory(err, "levels of recomputation");
    weft_config_restorable(config, levels);
    config->recomputes = own == NULL ? levels : NULL;
    /* Planning without levels came before another profile had to be found for them. */
    const bool has_other =
        own != NULL && weft_profile_resolve(config, &out->profile, &why) == WEFT_OK;
    enum weft_status status = weft_stages_create_variant(
        config, has_other ? out->profile : session->profile, variant, &out->stages, &why);
    if (status == WEFT_E_DATA && own == NULL) {
        status = weft_profile_resolve(config, &out->profile, &why);
        if (status == WEFT_OK)
            status = weft_stages_create_variant(config, out->profile, variant, &out->stages, &why);
    }
    config->recomputes = own;
    return status == WEFT_OK ? WEFT_OK : weft_fail_again(err, &why, "%s", why.text);
}

/* Checks another period of the plan against its problem. */
static enum weft_status check_other(const struct weft_session *session,
                                    const struct weft_plan_variant *planned,
                                    const struct weft_variant *variant, bool toggles,
                                    struct weft_error *err)
{
    struct weft_session other = {0};
    enum weft_status status = stage_other(session, variant, toggles, &other, err);
    if (status == WEFT_OK) status = weft_plan_variant_check(planned, other.stages.problem, err);
    weft_stages_finish(&other.stages);
    weft_profile_destroy(other.profile);
    return status;
}

enum weft_status weft_session_take(struct weft_session *session, const char *bytes, size_t length,
                                   const char *source, struct weft_error *err)
{
    struct weft_error why = {0};
    const enum weft_status status = take_plan(session, bytes, length, source, &why);
    return status == WEFT_OK ? WEFT_OK : weft_fail_in(err, &why, source);
}

enum weft_status weft_session_check_others(const struct weft_session *session, const char *source,
                                           struct weft_error *err)
{
    const struct weft_config *config = session->config;
    const struct weft_plan *plan = session->plan;
    const int32_t n_open = weft_variants_count(config);
    if (plan->n_open != n_open)
        return weft_fail(err, WEFT_E_DATA,
                         "%s: periods_open is %d, and this config allows %d: plan again", source,
                         plan->n_open, n_open);
    for (int32_t i = 0; i < plan->n_others; i++) {
        const struct weft_problem *planned = plan->others[i].problem;
        struct weft_variant variant;
        struct weft_error why = {0}, unsaid = {0};
        if (!weft_variants_find(config, planned, &variant))
            return weft_fail(
                err, WEFT_E_DATA,
                "%s: number %d of the plan's other_periods is none that this config leaves "
                "open: plan again",
                source, i);
        enum weft_status status = check_other(session, &plan->others[i], &variant, false, &why);
        /* Each order of micro-steps recomputes if nothing fits in it without that. */
        const bool toggles = weft_config_recomputes_if_needed(config) &&
                             planned->period.layers != plan->problem->period.layers;
        if (status == WEFT_E_DATA && toggles &&
            check_other(session, &plan->others[i], &variant, true, &unsaid) == WEFT_OK)
            status = WEFT_OK;
        if (status != WEFT_OK)
            return weft_fail(err, status, "%s: other_periods[%d]: %s", source, i, why.text);
    }
    return WEFT_OK;
}

enum weft_status weft_session_load(struct weft_session *session, const char *path,
                                   struct weft_error *err)
{
    char *bytes = NULL;
    size_t length = 0;
    WEFT_TRY(weft_file_read(path, PLAN_MOST_BYTES, &bytes, &length, err));
    enum weft_status status = weft_session_take(session, bytes, length, path, err);
    free(bytes);
    return status;
}

void weft_session_drop_plan(struct weft_session *session)
{
    weft_program_destroy(session->program);
    weft_plan_destroy(session->plan);
    session->program = NULL;
    session->plan = NULL;
}

void weft_session_close(struct weft_session *session)
{
    weft_session_drop_plan(session);
    weft_plan_destroy(session->start);
    weft_stages_finish(&session->stages);
    weft_profile_destroy(session->profile);
    weft_config_destroy(session->config);
    *session = (struct weft_session){0};
}
