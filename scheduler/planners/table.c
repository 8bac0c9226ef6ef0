/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/planners/table.h"

#include <stdio.h>
#include <string.h>

#include "problem/early.h"
#include "scheduler/planners/ahead.h"
#include "scheduler/planners/bucket.h"
#include "scheduler/planners/deepcompile.h"
#include "scheduler/planners/deepspeed.h"
#include "scheduler/planners/names.h"
#include "spec/field.h"
#include "spec/names.h"

enum { DISK = 1 << WEFT_LOCATION_DISK, HOST = 1 << WEFT_LOCATION_HOST };

static const struct weft_planner planners[] = {
    {"ilp", "the fastest plan that fits, with a proven bound", .searches = true,
     .all_locations = true, .decide = weft_planner_ilp},
    {"greedy", "from the leanest policies upwards, by gain; no solver", .searches = true,
     .all_locations = true, .settings = weft_greedy_settings, .decide = weft_planner_greedy},
    {"all-fsdp", "every unit fsdp, gathered one use ahead, reduced at once",
     .fixed = &weft_fixed_rules[WEFT_POLICY_FSDP]},
    {"all-sdp", "every unit sdp, gathered once updated, reduced at once",
     .fixed = &weft_fixed_rules[WEFT_POLICY_SDP]},
    {"all-zero1", "every unit zero1, gathered once updated, reduced at once",
     .fixed = &weft_fixed_rules[WEFT_POLICY_ZERO1]},
    {"all-dp", "every unit dp, reduced at once", .fixed = &weft_fixed_rules[WEFT_POLICY_DP]},
    {"all-hsdp", "every unit hsdp, gathered one use ahead in its node, reduced at once",
     .fixed = &weft_fixed_rules[WEFT_POLICY_HSDP]},
    {"all-central", "a synchronous parameter server: rank 0 owns and updates all units",
     .fixed = &weft_fixed_rules[WEFT_POLICY_CENTRAL]},
    {"all-nodes", "every unit nodes, gathered across once updated, one use ahead in its node",
     .fixed = &weft_fixed_rules[WEFT_POLICY_NODES]},
    /* FCDP gathers across nodes in forward and caches that for backward. A plan crosses nodes once,
     * after the update, and gathers in the node from the cache in forward too. */
    {"fcdp", "FCDP: all-nodes, each node's parameters cached in the host's memory",
     .locations = HOST, .fixed = &weft_fixed_cached},
    {"random", "random policies and slots that fit, from a seed", .all_locations = true,
     .decide = weft_planner_random},
    /* DistributedDataParallel shards nothing. A full bucket launches an AllReduce. */
    {"ddp", "PyTorch DDP: every unit dp, AllReduce in buckets", .literal = true,
     .settings = weft_bucket_settings,
     .plain = {.choice = WEFT_PLAIN_DP,
               .gathering = WEFT_PLAIN_NEVER,
               .reducing = WEFT_PLAIN_IN_BUCKETS}},
    /* Its buckets are like ddp's, but ReduceScatters. One AllGather of all parameters follows, and
     * nothing overlaps it. */
    {"zero1", "ZeRO 1: reduced in buckets, gathered all after the update", .literal = true,
     .settings = weft_bucket_settings,
     .plain = {.choice = WEFT_PLAIN_RESIDENT,
               .gathering = WEFT_PLAIN_AFTER_UPDATES,
               .reducing = WEFT_PLAIN_IN_BUCKETS}},
    {"zero2", "ZeRO 2: reduced at once, gathered all after the update", .literal = true,
     .plain = {.choice = WEFT_PLAIN_SDP,
               .gathering = WEFT_PLAIN_AFTER_UPDATES,
               .reducing = WEFT_PLAIN_AT_ONCE}},
    {"fairscale", "FairScale FSDP: gathered on demand, reduced in buckets", .literal = true,
     .settings = weft_bucket_settings,
     .plain = {.choice = WEFT_PLAIN_ROOT,
               .gathering = WEFT_PLAIN_ON_DEMAND,
               .reducing = WEFT_PLAIN_BEFORE_OVERFLOW}},
    {"fsdp2", "PyTorch FSDP2: one unit ahead, one reduction at a time", .literal = true,
     .settings = weft_fsdp2_settings,
     .plain = {.choice = WEFT_PLAIN_AS_SET,
               .gathering = WEFT_PLAIN_AHEAD,
               .reducing = WEFT_PLAIN_ONE_AT_A_TIME}},
    {"fsdp2-mix", "fsdp2, the last units kept after forward while they fit", .literal = true,
     .settings = weft_ahead_settings, .draft = weft_rule_fsdp2_mix},
    {"deepspeed", "DeepSpeed ZeRO 3: prefetched by elements, small units whole", .literal = true,
     .settings = weft_deepspeed_settings, .draft = weft_rule_deepspeed},
    {"deepcompile", "DeepCompile: prefetched by profiled memory, then kept", .literal = true,
     .settings = weft_deepcompile_settings, .draft = weft_rule_deepcompile},
    {"latest-safe", "MagiCompiler: gathered as late as compute still hides it", .literal = true,
     .settings = weft_latest_safe_settings, .draft = weft_rule_latest_safe},
    {"simple-overlap", "PyTorch simple_overlap: ZeRO 3, moved without reordering", .literal = true,
     .draft = weft_rule_simple_overlap},
    {"bytescheduler", "ByteScheduler: AllReduces by priority and credit", .literal = true,
     .settings = weft_bytescheduler_settings, .draft = weft_rule_bytescheduler},
    {"mg-wfbp", "MG-WFBP: AllReduces merged by a cost line", .literal = true,
     .draft = weft_rule_mg_wfbp},
    {"dear", "DeAR: reduced in backward, gathered a group ahead in forward", .literal = true,
     .settings = weft_bucket_settings, .draft = weft_rule_dear},
    {"osdp", "OSDP: dp or fsdp by a knapsack without overlap, then fsdp2", .literal = true,
     .draft = weft_rule_osdp},
    {"fsdp-milp", "PyTorch fsdp_milp: units by exposed time, then fsdp2", .literal = true,
     .draft = weft_rule_fsdp_milp},
    {"recompute-all", "fsdp2, every layer recomputed whole", .literal = true, .recomputes = true,
     .settings = weft_fsdp2_settings, .draft = weft_rule_recompute_all},
    {"recompute-selective", "fsdp2, every layer recomputed selectively", .literal = true,
     .recomputes = true, .settings = weft_fsdp2_settings, .draft = weft_rule_recompute_selective},
    {"checkmate-budget", "Checkmate: least recomputation within the limit, then fsdp2",
     .literal = true, .recomputes = true, .draft = weft_rule_checkmate_budget},
    {"auto-perf-maxing", "PyTorch auto_perf_maxing: knapsack of saved activations, fsdp2",
     .literal = true, .recomputes = true, .settings = weft_fsdp2_settings,
     .draft = weft_rule_auto_perf_maxing},
    {"sac-ilp", "PyTorch sac_ilp for layers, then fsdp_milp for units", .literal = true,
     .recomputes = true, .draft = weft_rule_sac_ilp},
    {"galvatron", "Galvatron: dp or fsdp, kept or recomputed, without overlap", .literal = true,
     .recomputes = true, .draft = weft_rule_galvatron},
    {"auto-micro-batch", "fsdp2, with the largest micro-batch that fits", .literal = true,
     .fills_batch = true, .settings = weft_fsdp2_settings,
     .plain = {.choice = WEFT_PLAIN_AS_SET,
               .gathering = WEFT_PLAIN_AHEAD,
               .reducing = WEFT_PLAIN_ONE_AT_A_TIME}},
    {"zero-infinity", "ZeRO-Infinity: deepspeed, with all state on a disk", .literal = true,
     .locations = DISK, .settings = weft_deepspeed_settings, .draft = weft_rule_zero_infinity},
    /* Fast-LLM runs the last stage forward for all micro-batches before its first backward. A plan
     * runs each micro-step forward and backward there. */
    {"breadth-first", "Fast-LLM: micro-steps take turns by groups of layers, ZeRO 3",
     .literal = true, .turns = true, .settings = weft_breadth_first_settings,
     .draft = weft_rule_breadth_first},
    /* GreedySnake turns the order of micro-batches from layer to layer, so its sums have other
     * bits: only times compare. */
    {"greedysnake", "GreedySnake: turns by layers, state and inputs offloaded", .literal = true,
     .turns = true, .locations = HOST | DISK, .settings = weft_greedysnake_settings,
     .draft = weft_rule_greedysnake},
    {"offload-stream", "fsdp2, with all state in the host's memory", .literal = true,
     .locations = HOST, .settings = weft_ahead_settings,
     .plain = {.choice = WEFT_PLAIN_ROOT,
               .gathering = WEFT_PLAIN_AHEAD,
               .reducing = WEFT_PLAIN_ONE_AT_A_TIME,
               .streams_from_host = true}},
    {"offload-greedy", "fsdp2, state offloaded by bytes freed a second", .literal = true,
     .locations = HOST | DISK, .draft = weft_rule_offload_greedy},
    {"deepcompile-offload", "DeepCompile: on demand, state on the host while forward has no room",
     .literal = true, .locations = HOST, .settings = weft_deepcompile_offload_settings,
     .draft = weft_rule_deepcompile_offload},
    {"zero-offload", "ZeRO-Offload: all state on the host, updated there", .literal = true,
     .locations = HOST, .settings = weft_zero_offload_settings, .draft = weft_rule_zero_offload},
    {"twin-flow", "Twin-Flow: of zero-offload the best share of 16, from an end", .literal = true,
     .locations = HOST, .settings = weft_twin_flow_settings, .decide = weft_planner_twin_flow},
    /* CPUOffloadPolicy: the host updates, and nothing runs meanwhile. The product has the shards of
     * parameters on the host too, and copies them up before each of their gathers. Here shards are
     * always on the device, so a plan copies them up once a step, after their update. */
    {"fsdp2-cpu-offload", "fsdp2, with all state updated on the host", .literal = true,
     .locations = HOST, .settings = weft_ahead_settings,
     .plain = {.choice = WEFT_PLAIN_ROOT,
               .gathering = WEFT_PLAIN_AHEAD,
               .reducing = WEFT_PLAIN_ONE_AT_A_TIME,
               .updated_on_host = true}},
    {"largest-first-offload", "fsdp2, the largest units updated on the host until it fits",
     .literal = true, .locations = HOST, .settings = weft_ahead_settings,
     .draft = weft_rule_largest_first_offload},
    {"two-stage", "policies by a knapsack without overlap, then blocks placed",
     .all_locations = true, .decide = weft_planner_two_stage},
    {"seed-ilp", "blocks in slots for the most overlap, by an integer program", .literal = true,
     .solves = true, .all_locations = true, .settings = weft_seed_settings,
     .decide = weft_planner_seed},
    {.name = NULL},
};
enum { N_PLANNERS = sizeof planners / sizeof *planners - 1 };

const struct weft_planner *weft_planners(void)
{
    return planners;
}

static enum weft_status decide_draft(const struct weft_planner *planner,
                                     const struct weft_problem *problem,
                                     const struct weft_schedule_options *options,
                                     struct weft_candidate *out, struct weft_error *err)
{
    const int64_t *values = weft_draft_values(options, planner->settings);
    struct weft_draft draft;
    enum weft_status status;
    WEFT_TRY_GOTO(done, weft_draft_init(&draft, planner->name, problem, out, err));
    WEFT_TRY_GOTO(done, planner->draft != NULL
                            ? planner->draft(&draft, values, err)
                            : weft_plain_draft(&planner->plain, &draft, values, err));
    WEFT_TRY_GOTO(done, weft_draft_end(&draft, err));
done:
    weft_draft_finish(&draft);
    return status;
}

/* Refuses a published rule in another order of micro-steps than its own. */
static enum weft_status check_order(const struct weft_planner *planner,
                                    const struct weft_problem *problem,
                                    const struct weft_schedule_options *options,
                                    struct weft_error *err)
{
    char order[16] = "layer";
    const int32_t layers = problem->period.layers;
    if (planner->literal && !planner->turns && layers > 0)
        return weft_fail(err, WEFT_E_INFEASIBLE,
                         "planner %s: its published rule runs one micro-step after the other: set "
                         "plan.micro_step_order to \"step\", or take another planner, such as ilp",
                         planner->name);
    if (!planner->turns) return WEFT_OK;
    const int64_t asked = weft_draft_values(options, planner->settings)[0];
    if (layers > 0 && (asked == 0 || asked == layers)) return WEFT_OK;
    if (asked > 1) snprintf(order, sizeof order, "%d", (int)asked);
    return weft_fail(
        err, WEFT_E_INFEASIBLE,
        "planner %s: its published rule runs all micro-steps through a group of layers "
        "before the next group: set plan.micro_step_order to %s or auto, or take "
        "another planner, such as ilp",
        planner->name, order);
}

bool weft_planner_knows_updates(const struct weft_planner *planner,
                                const struct weft_problem *problem)
{
    return !planner->literal || problem->period.update_after == 0;
}

enum weft_status weft_planner_decide(const struct weft_planner *planner,
                                     const struct weft_problem *problem,
                                     const struct weft_schedule_options *options,
                                     struct weft_candidate *out, struct weft_outcome *outcome,
                                     struct weft_error *err)
{
    WEFT_TRY(check_order(planner, problem, options, err));
    if (planner->decide != NULL && weft_problem_is_early(problem))
        return weft_events_decide(planner->decide, planner->searches, problem, options, out,
                                  outcome, err);
    if (planner->decide != NULL) return planner->decide(problem, options, out, outcome, err);
    if (planner->fixed != NULL) return weft_fixed_decide(planner->fixed, problem, out, err);
    return decide_draft(planner, problem, options, out, err);
}

bool weft_planner_uses(const struct weft_planner *planner, enum weft_location location)
{
    return planner->all_locations || location == WEFT_LOCATION_DEVICE ||
           (planner->locations >> location & 1) != 0;
}

static bool may_recompute(const struct weft_problem *problem)
{
    for (int32_t d = 0; d < problem->n_decisions; d++)
        for (int32_t k = 0; k < problem->decisions[d].n_strategies; k++)
            if (problem->decisions[d].strategies[k].recompute != WEFT_RECOMPUTE_NONE) return true;
    return false;
}

bool weft_planner_is_rule_for(const struct weft_planner *planner,
                              const struct weft_problem *problem)
{
    bool has = planner->locations == 0;
    if (planner->literal && planner->turns != (problem->period.layers > 0)) return false;
    if (planner->fills_batch && problem->micro_batch == 0) return false;
    const bool may_hybrid = problem->ranks_per_node > 0 && problem->period.every == 0;
    const bool in_node =
        planner->fixed != NULL &&
        weft_policy_groups[planner->fixed->policies[0]].parameters == WEFT_GROUP_NODE;
    if (in_node && (!may_hybrid || !weft_fixed_is_for(planner->fixed, problem))) return false;
    if (planner->recomputes && !may_recompute(problem)) return false;
    for (int32_t t = 1; t < problem->n_tiers; t++)
        has |= (planner->locations >> problem->tiers[t].kind & 1) != 0;
    return !planner->searches && !planner->solves && has;
}

static const struct weft_setting *find_setting(const struct weft_setting *settings,
                                               const char *name)
{
    for (; settings && settings->name; settings++)
        if (strcmp(settings->name, name) == 0) return settings;
    return NULL;
}

const struct weft_planner *weft_planner_find(const char *name, const struct weft_setting **setting)
{
    size_t length = strcspn(name, ":");
    for (const struct weft_planner *planner = planners; planner->name; planner++) {
        const struct weft_setting *found = NULL;
        if (strlen(planner->name) != length || memcmp(planner->name, name, length) != 0) continue;
        if (name[length] != '\0') {
            found = find_setting(planner->settings, name + length + 1);
            if (!found) return NULL;
        }
        if (setting) *setting = found;
        return planner;
    }
    return NULL;
}

/* Refuses a name. The message explains a policy's name, suggests a planner with a similar name, or
 * lists all planners. */
static enum weft_status refuse_planner(const char *name, struct weft_error *err)
{
    const char *names[N_PLANNERS];
    enum weft_policy policy;
    for (int i = 0; i < N_PLANNERS; i++)
        names[i] = planners[i].name;
    if (weft_policy_read(name, &policy))
        return weft_fail(err, WEFT_E_USAGE,
                         "no planner \"%s\": it is a policy. Planner all-%s gives it to every "
                         "unit; plan.policies says which ones ilp may choose from (--set "
                         "plan.policies=%s)",
                         name, weft_policy_name(policy), weft_policy_name(policy));
    const char *refused = weft_name_refused(name);
    if (refused != NULL)
        return weft_fail(err, WEFT_E_USAGE, "no planner \"%s\": %s", name, refused);
    const char *near = weft_field_nearest(name, names, N_PLANNERS);
    if (near)
        return weft_fail(err, WEFT_E_USAGE,
                         "no planner \"%s\"; did you mean %s? `weft help plan` tells of all", name,
                         near);
    return weft_fail(err, WEFT_E_USAGE, "no planner \"%s\"; there are " WEFT_PLANNER_NAMES, name);
}

enum weft_status weft_planner_need(const char *name, struct weft_error *err)
{
    char meant[64], settings[512] = "";
    if (weft_planner_find(name, NULL)) return WEFT_OK;
    snprintf(meant, sizeof meant, "%.*s", (int)strcspn(name, ":"), name);
    const struct weft_planner *planner = weft_planner_find(meant, NULL);
    if (!planner) return refuse_planner(meant, err);
    const struct weft_setting *setting = planner->settings;
    if (!setting)
        return weft_fail(err, WEFT_E_USAGE, "planner %s has no settings; write \"%s\"", meant,
                         meant);
    for (; setting->name; setting++) {
        size_t length = strlen(settings);
        snprintf(settings + length, sizeof settings - length, " %s", setting->name);
    }
    return weft_fail(err, WEFT_E_USAGE, "planner %s has no setting \"%s\"; there are%s", meant,
                     name + strlen(meant) + 1, settings);
}
