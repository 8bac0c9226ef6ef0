/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/study/run_as.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "problem/target.h"
#include "problem/unit_layers.h"
#include "problem/variants.h"
#include "report/export/fsdp2_run.h"

/* The plan's limit as the config has it: 0 is none. */
static int64_t limit_of(const struct weft_problem *planned)
{
    const int64_t bytes = planned->tiers[0].limit_bytes;
    return bytes == INT64_MAX ? 0 : bytes;
}

enum weft_status weft_run_as_open(const struct weft_cli *cli, const struct weft_problem *planned,
                                  struct weft_session *session, struct weft_error *err)
{
    WEFT_TRY(weft_cli_read_config(cli, cli->config, session, err));
    return weft_config_set_memory_limit(session->config, limit_of(planned), err);
}

enum weft_status weft_run_as_check_config(const struct weft_cli *cli,
                                          const struct weft_problem *planned,
                                          struct weft_error *err)
{
    struct weft_session session = {0};
    struct weft_variant variant;
    enum weft_status status = weft_run_as_open(cli, planned, &session, err);
    if (status == WEFT_OK && weft_session_must_measure(&session))
        status = weft_cli_refuse_plan(cli->operands[0], cli->config, err);
    if (status == WEFT_OK) status = weft_session_stage(&session, NULL, err);
    /* If it is not open, comparing the problems gives the error. */
    if (status == WEFT_OK && weft_variants_find(session.config, planned, &variant))
        status = weft_session_stage_variant(&session, &variant, err);
    if (status == WEFT_OK) status = weft_plan_matches(planned, session.stages.problem, err);
    weft_session_close(&session);
    return status;
}

/* Tells the config the first layer of the unit of each layer, and the units that reduce late. */
static enum weft_status join_layers(const struct weft_fsdp2 *fsdp2, struct weft_config *config,
                                    struct weft_error *err)
{
    const int32_t n_layers = config->model->n_layers;
    int32_t *joins = weft_pool_array(&config->pool, (size_t)n_layers, sizeof *joins);
    bool *late = weft_pool_array(&config->pool, (size_t)n_layers, sizeof *late);
    if (!joins || !late) return weft_fail_memory(err, "units");
    for (int32_t l = 0; l < n_layers; l++)
        joins[l] = l;
    for (int32_t u = 0; u < fsdp2->n_units; u++) {
        const struct weft_fsdp2_unit *unit = &fsdp2->units[u];
        late[unit->layers[0]] = unit->ends_late;
        if (!weft_problem_is_fused(fsdp2->plan->problem, u)) continue;
        for (int32_t i = 0; i < unit->n_layers; i++)
            joins[unit->layers[i]] = unit->layers[0];
    }
    config->joins = joins;
    config->late = late;
    return WEFT_OK;
}

enum weft_status weft_run_as_stage(struct weft_session *session, const struct weft_problem *planned,
                                   int32_t more_inputs, struct weft_error *err)
{
    struct weft_variant variants[WEFT_MOST_VARIANTS];
    WEFT_TRY(weft_session_stage(session, NULL, err));
    const int32_t n = weft_variants_list(session->config, variants);
    for (int32_t v = 0; v < n; v++) {
        struct weft_period_rule *rule = &variants[v].rule;
        if (rule->n_micro != planned->period.n_micro || rule->group != planned->period.group)
            continue;
        rule->late = false; /* those of the plan alone */
        rule->more_inputs = more_inputs;
        return weft_session_stage_variant(session, &variants[v], err);
    }
    return weft_fail(err, WEFT_E_DATA, "%s: has no period of %d micro-steps for %s",
                     session->config->source, planned->period.n_micro,
                     weft_config_target(session->config)->title);
}

/* The target that --as names; export has no --as, and runs a plan on its own clock. */
static enum weft_target_id target_of(const struct weft_cli *cli, enum weft_target_id own)
{
    const bool blocks = cli->as && strcmp(cli->as, weft_targets[WEFT_FOR_FSDP2_BLOCKING].name) == 0;
    const bool all = weft_targets[own].gathers_all;
    if (!cli->as) return own;
    if (blocks) return all ? WEFT_FOR_FSDP2_DEFAULT_BLOCKING : WEFT_FOR_FSDP2_BLOCKING;
    return all ? WEFT_FOR_FSDP2_DEFAULT : WEFT_FOR_FSDP2;
}

enum weft_status weft_run_as_fsdp2(const struct weft_cli *cli, const struct weft_fsdp2 *fsdp2,
                                   struct weft_run_as *out, struct weft_error *err)
{
    const struct weft_problem *planned = fsdp2->plan->problem;
    const char *source = cli->operands[0];
    struct weft_cli as = *cli;
    const bool foreign = weft_problem_target(planned)->is_foreign;
    char name[64];
    const enum weft_target_id target =
        target_of(cli, foreign ? (enum weft_target_id)planned->target : WEFT_FOR_FSDP2);
    if (foreign && !cli->config) {
        out->own = *planned;
        out->own.target = (int32_t)target;
        return weft_fsdp2_run(fsdp2, source, &out->own, &out->plan, err);
    }
    if (!cli->config)
        return weft_fail(err, WEFT_E_USAGE,
                         "%s: was made for %s: give its --config, so that FSDP2's memory and "
                         "messages are known, or plan with --for fsdp2",
                         source, weft_problem_target(planned)->title);
    /* A plan for FSDP2 may run in the memory of another config: with pools, or without. */
    if (!foreign) WEFT_TRY(weft_run_as_check_config(cli, planned, err));
    if (as.n_overrides >= WEFT_CLI_OVERRIDES)
        return weft_fail(err, WEFT_E_USAGE, "--as, --to: too many --set");
    snprintf(name, sizeof name, "plan.for=%s", weft_targets[target].name);
    as.overrides[as.n_overrides++] = name;
    WEFT_TRY(weft_run_as_open(&as, planned, &out->session, err));
    WEFT_TRY(join_layers(fsdp2, out->session.config, err));
    WEFT_TRY(weft_run_as_stage(&out->session, planned, fsdp2->most_inputs - 1, err));
    return weft_fsdp2_run(fsdp2, source, out->session.stages.problem, &out->plan, err);
}

void weft_run_as_finish(struct weft_run_as *run)
{
    weft_plan_destroy(run->plan);
    weft_session_close(&run->session);
    run->plan = NULL;
}

enum weft_status weft_run_as_check(const struct weft_run_as *run, const char *source,
                                   struct weft_error *err)
{
    char needs[WEFT_UNITS_TEXT_BYTES], limit[WEFT_UNITS_TEXT_BYTES];
    const struct weft_problem *problem = run->plan->problem;
    const struct weft_prediction *said = &run->plan->prediction;
    if (said->peak_bytes <= problem->tiers[0].limit_bytes) return WEFT_OK;
    return weft_fail(
        err, WEFT_E_INFEASIBLE,
        "%s: FSDP2 needs %s (%lld bytes) to run it, in slot %s, and its limit is %s (%lld bytes): "
        "plan with --for fsdp2, or force it with --force",
        source, weft_units_show_bytes(said->peak_bytes, needs), (long long)said->peak_bytes,
        problem->slot_names[said->peak_slot],
        weft_units_show_bytes(problem->tiers[0].limit_bytes, limit),
        (long long)problem->tiers[0].limit_bytes);
}
