/* SPDX-License-Identifier: Apache-2.0 */
#include "problem/variants.h"
#include "spec/config_batch.h"
#include "spec/names.h"
#include "spec/target.h"

#include <string.h>

/* Reads names of policies, "dp,sdp", into a bit for each. */
static enum weft_status read_policies(const struct weft_config *config, const char *names,
                                      uint32_t *out, struct weft_error *err)
{
    uint32_t allowed = 0;
    for (const char *at = names; *at != '\0';) {
        char name[32];
        enum weft_policy policy;
        size_t length = strcspn(at, ",");
        if (length >= sizeof name) length = sizeof name - 1;
        memcpy(name, at, length);
        name[length] = '\0';
        const bool known = weft_policy_read(name, &policy);
        const char *refused = known ? NULL : weft_name_refused(name);
        if (refused != NULL)
            return weft_fail(err, WEFT_E_DATA, "%s: $.plan.policies: \"%s\" is no policy: %s",
                             config->source, name, refused);
        if (!known)
            return weft_fail(err, WEFT_E_DATA,
                             "%s: $.plan.policies: \"%s\" is no policy; write some of dp, zero1, "
                             "sdp, fsdp, hsdp, central, nodes, separated by commas",
                             config->source, name);
        allowed |= UINT32_C(1) << policy;
        at += length + (at[length] == ',');
    }
    *out = allowed;
    return WEFT_OK;
}

/* hsdp and nodes need two levels. weft_item_need_levels asks for their times. */
static enum weft_status check_levels(const struct weft_config *config, enum weft_policy policy,
                                     struct weft_error *err)
{
    const struct weft_cluster *cluster = &config->cluster;
    const char *name = weft_policy_name(policy);
    if (cluster->ranks_per_node < 2 || cluster->ranks <= cluster->ranks_per_node)
        return weft_fail(err, WEFT_E_DATA,
                         "%s: $.plan.policies: %s shards within nodes, and needs several nodes of "
                         "several ranks; cluster.ranks is %lld and cluster.ranks_per_node %lld: "
                         "name fsdp, or set cluster.ranks_per_node",
                         config->source, name, (long long)cluster->ranks,
                         (long long)cluster->ranks_per_node);
    if (config->train.delay > 0)
        return weft_fail(err, WEFT_E_DATA,
                         "%s: $.plan.policies: %s has no delayed updates: leave out train.delay, "
                         "or name fsdp",
                         config->source, name);
    if (config->train.every > 0)
        return weft_fail(err, WEFT_E_DATA,
                         "%s: $.plan.policies: %s sums gradients over nodes, which "
                         "train.across.every lets step on their own: leave one of them out",
                         config->source, name);
    return WEFT_OK;
}

/* central sums a gradient in place, once a step, where the next one comes while a delayed one is in
 * use. Its owner is one of all ranks. */
static enum weft_status check_central(const struct weft_config *config, uint32_t allowed,
                                      struct weft_error *err)
{
    const bool averages = config->train.every > 0;
    if ((allowed >> WEFT_POLICY_CENTRAL & 1) == 0 || (config->train.delay == 0 && !averages))
        return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA,
                     "%s: $.plan.policies: central has no %s: leave out %s, or name zero1",
                     config->source, averages ? "owner in each node" : "delayed updates",
                     averages ? "train.across" : "train.delay");
}

uint32_t weft_planner_policies(const struct weft_config *config)
{
    const char *planner = config->plan.planner;
    return planner != NULL && strcmp(planner, "all-central") == 0 ? 1u << WEFT_POLICY_CENTRAL : 0;
}

uint32_t weft_variants_dominated(const struct weft_config *config)
{
    const bool has_state =
        weft_config_moments(config) > 0 || weft_config_batch(config).compute != WEFT_F32;
    return has_state && config->cluster.ranks > 1 && weft_planner_policies(config) == 0
               ? 1u << WEFT_POLICY_CENTRAL
               : 0;
}

bool weft_policies_are_whole(uint32_t policies)
{
    for (int p = 0; p < WEFT_POLICY_COUNT; p++)
        if ((policies >> p & 1) != 0 && !weft_policy_is_whole((enum weft_policy)p)) return false;
    return true;
}

enum weft_status weft_variants_policies(const struct weft_config *config, uint32_t *out,
                                        struct weft_error *err)
{
    const struct weft_target *target = weft_config_target(config);
    uint32_t allowed = 0, had = UINT32_MAX;
    WEFT_TRY(read_policies(config, config->plan.policies, &allowed, err));
    allowed |= weft_planner_policies(config);
    if (allowed == 0)
        return weft_fail(err, WEFT_E_DATA,
                         "%s: $.plan.policies: names none; write some of dp, zero1, sdp, fsdp",
                         config->source);
    if (target->policies != NULL) WEFT_TRY(read_policies(config, target->policies, &had, err));
    if ((allowed & had) == 0)
        return weft_fail(err, WEFT_E_DATA,
                         "%s: $.plan.policies: \"%s\" has no policy of a plan for %s: name one of "
                         "%s, or leave it out",
                         config->source, config->plan.policies, target->title, target->policies);
    const uint32_t of_levels = allowed & weft_policies_sharing(WEFT_GROUP_NODE);
    for (int p = 0; p < WEFT_POLICY_COUNT; p++)
        if ((of_levels >> p & 1) != 0) WEFT_TRY(check_levels(config, (enum weft_policy)p, err));
    WEFT_TRY(check_central(config, allowed, err));
    *out = allowed & had;
    return WEFT_OK;
}

/* The layers between a unit's update and its uses, of struct weft_period_rule. */
struct distance {
    int32_t ahead, after;
};

static void add_distance(struct distance distance, struct distance *out, int32_t *n)
{
    bool known = false;
    for (int32_t k = 0; k < *n; k++)
        known |= out[k].ahead == distance.ahead && out[k].after == distance.after;
    if (!known) out[(*n)++] = distance;
}

/* Lists distances before the first use. Small ones leave gathers little time. With clipping all
 * updates come before fill; with offloading a second variant lets state arrive during compute. */
static void list_ahead(const struct weft_config *config, bool rotated, bool offloaded,
                       struct distance *out, int32_t *n)
{
    static const int32_t ahead_rotated[] = {2, 1, 4, INT32_MAX}, ahead_clipped[] = {0, 2};
    /* A delayed update has its place in backward. */
    const int32_t most = config->train.delay > 0 ? 1
                         : rotated               ? (int32_t)(sizeof ahead_rotated / sizeof(int32_t))
                         : offloaded             ? 2
                                                 : 1,
                  n_layers = config->model->n_layers;
    for (int32_t i = 0; i < most; i++) {
        int64_t ahead = rotated ? ahead_rotated[i] : ahead_clipped[i];
        if (config->plan.update_ahead > 0 && most > 1) ahead = config->plan.update_ahead;
        if (ahead > n_layers) ahead = n_layers;
        add_distance((struct distance){(int32_t)ahead, 0}, out, n);
    }
}

/* Lists distances after a unit's own backward. After 2 layers reduced gradients end soon, and 4
 * give reductions and copies of state more time. */
static void list_after(const struct weft_config *config, struct distance *out, int32_t *n)
{
    static const int32_t usual[] = {2, 4};
    const int32_t n_layers = config->model->n_layers;
    const int64_t asked = config->plan.update_in;
    int64_t ahead = config->plan.update_ahead > 0 ? config->plan.update_ahead : 2;
    if (ahead > n_layers) ahead = n_layers;
    for (int32_t i = 0; i < 2; i++) {
        int64_t after = asked > 0 ? asked : usual[i];
        if (after >= n_layers) after = n_layers - 1;
        if (after > 0) add_distance((struct distance){(int32_t)ahead, (int32_t)after}, out, n);
    }
}

/* Lists the distances that the config allows, and returns their number. */
static int32_t list_distances(const struct weft_config *config, bool rotated, bool offloaded,
                              struct distance out[WEFT_MOST_DISTANCES])
{
    const int64_t asked = config->plan.update_in;
    const bool backward = rotated && asked != WEFT_UPDATE_IN_FORWARD &&
                          config->model->n_layers > 1 &&
                          weft_config_refuses_backward(config, NULL) == NULL;
    int32_t n = 0;
    if (!backward || asked == WEFT_UPDATE_IN_AUTO) list_ahead(config, rotated, offloaded, out, &n);
    if (backward) list_after(config, out, &n);
    return n;
}

/* One split of a step's batch. */
struct split {
    int32_t n_micro, idle;
    struct weft_batch batch;
};

static int32_t list_splits(const struct weft_config *config, struct split out[WEFT_MOST_SPLITS])
{
    int64_t micro_batches[WEFT_MOST_SPLITS];
    const int32_t n = weft_config_splits(config, micro_batches);
    for (int32_t i = 0; i < n; i++) {
        int64_t idle;
        const int64_t n_micro = weft_config_micro_steps(config, micro_batches[i], &idle);
        out[i] = (struct split){(int32_t)n_micro, (int32_t)idle, weft_config_batch(config)};
        out[i].batch.samples = micro_batches[i];
    }
    return n;
}

/* Lists the sizes of rounds that the config allows, in micro-steps, increasing, and returns their
 * number. If units may have dp or central alone, or micro-steps take turns by layers, gradients
 * must be reduced once a step. */
static int32_t list_groups(const struct weft_config *config, int32_t n_micro, int32_t out[2])
{
    const enum weft_cadence asked = (enum weft_cadence)config->train.cadence;
    const int64_t kept = asked == WEFT_CADENCE_AUTO ? config->kept.group : 0;
    const int64_t group = config->train.group > 0 ? config->train.group : kept;
    uint32_t policies = 0;
    out[0] = group > 0 && n_micro % group == 0 ? (int32_t)group : 1;
    if (config->train.delay > 0 || asked == WEFT_CADENCE_STEP) out[0] = n_micro;
    if (weft_config_turn_layers(config) > 0 && weft_config_refuses_turns(config, n_micro) == NULL) {
        out[0] = n_micro;
        return 1;
    }
    if (group > 0 || asked != WEFT_CADENCE_AUTO || out[0] == n_micro) return 1;
    out[1] = n_micro;
    if (weft_variants_policies(config, &policies, NULL) != WEFT_OK ||
        (!weft_policies_are_whole(policies) && weft_planner_policies(config) == 0))
        return 2;
    out[0] = n_micro;
    return 1;
}

/* Lists the layers of a group that all micro-steps run through in turn, 0 for one micro-step after
 * the other. Returns their number. */
static int32_t list_orders(const struct weft_config *config, int32_t n_micro, int32_t out[2])
{
    const bool turns =
        config->model->n_layers > 1 && weft_config_refuses_turns(config, n_micro) == NULL;
    out[0] = turns ? weft_config_turn_layers(config) : 0;
    out[1] = 1;
    return turns && weft_config_opens_turns(config) ? 2 : 1;
}

/* The first size of blocks. */
static enum weft_block_scale first_scale(const struct weft_config *config)
{
    const enum weft_block_scale asked = (enum weft_block_scale)config->plan.block_scale;
    return asked == WEFT_BLOCKS_AUTO ? WEFT_BLOCKS_USUAL : asked;
}

/* Lists the variants of one split with or without offloading, of at most `most` distances. */
static int32_t list_periods(const struct weft_config *config, const struct split *split,
                            bool offloaded, int32_t most, struct weft_variant *out)
{
    const bool agreed = weft_optimizer_row(config->train.optimizer.type)->agrees;
    const bool delayed = config->train.delay > 0;
    const bool rotated = (config->train.clip_norm == 0 || delayed) && !agreed &&
                         !weft_config_means(config) && !weft_config_target(config)->updates_first;
    const bool drains = weft_config_target(config)->drains && split->n_micro > 1;
    int32_t orders[2];
    const int32_t n_orders = list_orders(config, split->n_micro, orders);
    struct distance distances[WEFT_MOST_DISTANCES];
    int32_t n = 0;
    const int32_t n_distances = list_distances(config, rotated, offloaded, distances);
    int32_t groups[2];
    const int32_t n_groups = list_groups(config, split->n_micro, groups);
    for (int32_t i = 0; i < n_groups * n_orders; i++) {
        const int32_t group = groups[i % n_groups], layers = orders[i / n_groups];
        if (layers > 0 && group != split->n_micro) continue;
        for (int32_t d = 0; d < n_distances && d < most; d++)
            out[n++] = (struct weft_variant){
                .rule = {.n_micro = split->n_micro,
                         .group = group,
                         .layers = layers,
                         .idle = split->idle,
                         .rotated = rotated,
                         .update_ahead = distances[d].ahead,
                         .update_after = distances[d].after,
                         .agreed_updates = agreed,
                         .offloaded = offloaded,
                         .delayed = delayed,
                         .every = config->train.every,
                         .gossip = config->train.every > 0 &&
                                   config->train.across_rule == WEFT_AVERAGE_GOSSIP,
                         .means = weft_config_means(config),
                         .drains = drains},
                .scale = first_scale(config),
                .batch = split->batch};
    }
    return n;
}

static bool may_offload(const struct weft_config *config)
{
    return !weft_optimizer_row(config->train.optimizer.type)->agrees &&
           weft_config_moves_state(config);
}

/* Lists all variants of one split. */
static int32_t list_split(const struct weft_config *config, const struct split *split,
                          struct weft_variant *out)
{
    const bool offloaded = may_offload(config);
    const int32_t n = list_periods(config, split, offloaded, WEFT_MOST_DISTANCES, out);
    if (!offloaded || (weft_config_state_locations(config) & 1 << WEFT_LOCATION_DEVICE) == 0)
        return n;
    return n + list_periods(config, split, false, WEFT_MOST_DISTANCES, out + n);
}

_Static_assert(WEFT_MOST_VARIANTS >= WEFT_MOST_SPLITS * WEFT_MOST_WAYS, "a list holds all splits");

int32_t weft_variants_list(const struct weft_config *config,
                           struct weft_variant out[WEFT_MOST_VARIANTS])
{
    struct split splits[WEFT_MOST_SPLITS];
    const int32_t n_splits = list_splits(config, splits);
    int32_t n = 0;
    if (n_splits == 1) return list_split(config, &splits[0], out);
    for (int32_t i = 0; i < n_splits; i++)
        n += list_periods(config, &splits[i], may_offload(config), 1, out + n);
    return n;
}

/* Lists other ends of backward for a variant: two reductions under way, and all reductions late.
 * Returns their number. */
static int32_t list_ends(const struct weft_variant *of, struct weft_variant *out)
{
    int32_t n = 0;
    out[n] = *of;
    out[n++].rule.more_inputs = 1;
    if (weft_period_reductions(&of->rule) > 1) return n;
    out[n] = *of;
    out[n++].rule.late = true;
    return n;
}

int32_t weft_variants_list_scales(const struct weft_config *config,
                                  const struct weft_variant *chosen,
                                  struct weft_variant out[WEFT_MOST_VARIANTS])
{
    int32_t n = 0;
    if (weft_config_target(config)->finalizes) return list_ends(chosen, out);
    if (config->plan.block_scale != WEFT_BLOCKS_AUTO || weft_config_target(config)->whole_layers)
        return 0;
    for (int scale = WEFT_BLOCKS_USUAL; scale < WEFT_BLOCKS_AUTO; scale++) {
        if (scale == (int)chosen->scale) continue;
        out[n] = *chosen;
        out[n++].scale = (enum weft_block_scale)scale;
    }
    return n;
}

int32_t weft_variants_list_more(const struct weft_config *config, const struct weft_variant *chosen,
                                struct weft_variant out[WEFT_MOST_VARIANTS])
{
    struct split splits[WEFT_MOST_SPLITS];
    struct weft_variant all[WEFT_MOST_VARIANTS];
    const struct split split = {chosen->rule.n_micro, chosen->rule.idle, chosen->batch};
    int32_t n = 0;
    /* With one split, all variants with usual blocks are planned already. */
    if (list_splits(config, splits) == 1 && chosen->scale == WEFT_BLOCKS_USUAL) return 0;
    const int32_t n_all = list_split(config, &split, all);
    for (int32_t v = 0; v < n_all; v++) {
        all[v].scale = chosen->scale;
        if (all[v].rule.group == chosen->rule.group && !weft_variant_same(&all[v], chosen))
            out[n++] = all[v];
    }
    return n;
}

int32_t weft_variants_count(const struct weft_config *config)
{
    struct split splits[WEFT_MOST_SPLITS];
    struct weft_variant all[WEFT_MOST_VARIANTS], ends[WEFT_MOST_VARIANTS];
    const int32_t n_splits = list_splits(config, splits);
    const bool whole = config->plan.offload.block_bytes == 0;
    int32_t n = 0;
    for (int32_t i = 0; i < n_splits; i++) {
        const int32_t n_split = list_split(config, &splits[i], all);
        for (int32_t v = 0; v < n_split && whole; v++)
            n += all[v].rule.offloaded || weft_config_moves_layers(config);
        for (int32_t v = 0; v < n_split && weft_config_target(config)->finalizes; v++)
            n += list_ends(&all[v], ends);
        n += n_split;
    }
    const bool scales =
        config->plan.block_scale == WEFT_BLOCKS_AUTO && !weft_config_target(config)->whole_layers;
    return scales ? n * WEFT_BLOCKS_AUTO : n;
}

bool weft_variant_same(const struct weft_variant *a, const struct weft_variant *b)
{
    return weft_period_rule_same(&a->rule, &b->rule) && a->scale == b->scale &&
           a->batch.samples == b->batch.samples;
}

bool weft_variants_find(const struct weft_config *config, const struct weft_problem *problem,
                        struct weft_variant *out)
{
    struct split splits[WEFT_MOST_SPLITS];
    struct weft_variant all[WEFT_MOST_VARIANTS];
    const int32_t n_splits = list_splits(config, splits);
    const enum weft_block_scale scale = (enum weft_block_scale)problem->blocks.scale;
    struct weft_period_rule rule = problem->period;
    if (rule.whole_copies && config->plan.offload.block_bytes > 0) return false;
    rule.whole_copies = false;
    if (weft_config_target(config)->finalizes && rule.more_inputs <= 1 &&
        !(rule.late && rule.more_inputs > 0)) {
        rule.late = false;
        rule.more_inputs = 0;
    }
    if (config->plan.block_scale != WEFT_BLOCKS_AUTO && scale != first_scale(config)) return false;
    for (int32_t i = 0; i < n_splits; i++) {
        const int32_t n = list_split(config, &splits[i], all);
        for (int32_t v = 0; v < n; v++) {
            if (!weft_period_rule_same(&all[v].rule, &rule)) continue;
            *out = all[v];
            out->scale = scale;
            out->rule.whole_copies = problem->period.whole_copies;
            out->rule.late = problem->period.late;
            out->rule.more_inputs = problem->period.more_inputs;
            return true;
        }
    }
    return false;
}
