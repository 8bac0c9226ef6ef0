/* SPDX-License-Identifier: Apache-2.0 */
#include "problem/item_times.h"

#include <math.h>

int32_t weft_problem_lane_of(const struct weft_problem *problem, enum weft_lane_role role)
{
    static const enum weft_lane_kind kinds[WEFT_ROLE_COUNT] = {
        [WEFT_ROLE_GATHERS] = WEFT_LANE_KIND_NETWORK, [WEFT_ROLE_REDUCES] = WEFT_LANE_KIND_NETWORK,
        [WEFT_ROLE_DOWN] = WEFT_LANE_KIND_DOWN,       [WEFT_ROLE_UP] = WEFT_LANE_KIND_UP,
        [WEFT_ROLE_HOST] = WEFT_LANE_KIND_HOST,       [WEFT_ROLE_READS] = WEFT_LANE_KIND_READ,
        [WEFT_ROLE_WRITES] = WEFT_LANE_KIND_WRITE,    [WEFT_ROLE_ACROSS] = WEFT_LANE_KIND_ACROSS,
    };
    if (role == WEFT_ROLE_GATHERS) return WEFT_LANE_FIRST;
    if (role == WEFT_ROLE_REDUCES) return weft_problem_agree_lane(problem);
    int32_t lane = problem->n_lanes - 1;
    while (problem->lanes[lane].kind != kinds[role] && lane > WEFT_LANE_FIRST)
        lane--;
    return problem->lanes[lane].kind == kinds[role] ? lane : problem->n_lanes - 1;
}

/* The times by bytes of a kind that moves them between tiers. */
static const struct weft_curve *copy_curve(const struct weft_profile_tiers *tiers,
                                           enum weft_lane_role role)
{
    switch (role) {
    case WEFT_ROLE_DOWN:
        return &tiers->host.down;
    case WEFT_ROLE_UP:
        return &tiers->host.up;
    case WEFT_ROLE_READS:
        return &tiers->disk.read;
    case WEFT_ROLE_WRITES:
        return &tiers->disk.write;
    case WEFT_ROLE_GATHERS:
    case WEFT_ROLE_REDUCES:
    case WEFT_ROLE_HOST:
    case WEFT_ROLE_ACROSS:
    case WEFT_ROLE_COUNT:
        break;
    }
    return NULL;
}

/* Time of a pass over a link. Each of the members sends all parts of the bytes except its own. */
static int64_t pass_ns(const struct weft_link *link, int64_t members, double bytes)
{
    const double share = bytes * (double)(members - 1) / (double)members;
    return link->alpha_ns + (int64_t)ceil(1e9 * share / link->bytes_per_s);
}

static bool measured_levels(const struct weft_profile *profile, const struct weft_cluster *cluster)
{
    return weft_profile_has_levels(&profile->network) &&
           profile->network.ranks_per_node == cluster->ranks_per_node;
}

enum weft_status weft_item_need_levels(const struct weft_profile *profile,
                                       const struct weft_config *config, struct weft_error *err)
{
    const struct weft_cluster *cluster = &config->cluster;
    if (measured_levels(profile, cluster)) return WEFT_OK;
    if (cluster->link.intra.bytes_per_s > 0 && cluster->link.inter.bytes_per_s > 0) return WEFT_OK;
    return weft_fail(
        err, WEFT_E_DATA,
        "%s: $.plan.policies: hsdp and nodes need times of each level, and the profile has none "
        "for %lld ranks a node: give cluster.link.intra and cluster.link.inter, or "
        "measure all hosts with `weft profile`",
        config->source, (long long)cluster->ranks_per_node);
}

int64_t weft_item_level_ns(const struct weft_profile *profile, const struct weft_cluster *cluster,
                           enum weft_rank_group group, const struct weft_item *item)
{
    const enum weft_collective kind = weft_item_kind_collective(item->kind);
    const int64_t passes = kind == WEFT_ALL_REDUCE ? 2 : 1;
    if (measured_levels(profile, cluster)) {
        const struct weft_curve *curves = profile->network.levels[group];
        if (curves[kind].n > 0) return weft_curve_at(&curves[kind], item->block_bytes);
        /* An older profile has an AllReduce across nodes alone, of two passes. */
        const int64_t ns = weft_curve_at(&curves[WEFT_ALL_REDUCE], item->block_bytes);
        return passes == 2 ? ns : (ns + 1) / 2;
    }
    const int64_t per_node = cluster->ranks_per_node, nodes = cluster->ranks / per_node;
    const struct weft_link inter = weft_cluster_inter(cluster);
    if (group == WEFT_GROUP_NODE)
        return pass_ns(&cluster->link.intra, per_node, (double)item->block_bytes);
    return passes * pass_ns(&inter, nodes, (double)item->block_bytes * (double)per_node);
}

int64_t weft_item_pair_ns(const struct weft_profile *profile, const struct weft_cluster *cluster,
                          const struct weft_item *item)
{
    const int64_t per_node = cluster->ranks_per_node, nodes = cluster->ranks / per_node;
    const struct weft_link inter = weft_cluster_inter(cluster);
    if (!measured_levels(profile, cluster))
        return 2 * pass_ns(&inter, 2, (double)item->block_bytes * (double)per_node);
    /* A rank sends half of a block's bytes twice, in place of (nodes - 1) / nodes. */
    const double ns = (double)weft_item_level_ns(profile, cluster, WEFT_GROUP_ACROSS, item);
    return (int64_t)ceil(ns * (double)nodes / (2 * (double)(nodes - 1)));
}

enum weft_status weft_average_need(const struct weft_profile *profile,
                                   const struct weft_config *config, struct weft_error *err)
{
    if (measured_levels(profile, &config->cluster) || config->cluster.link.inter.bytes_per_s > 0)
        return WEFT_OK;
    const bool may_measure = config->cluster.ranks_per_node > 1;
    return weft_fail(err, WEFT_E_DATA,
                     "%s: $.train.across.every: an average has no time: give cluster.link.inter%s",
                     config->source,
                     may_measure ? ", or measure all hosts with `weft profile`" : "");
}

int64_t weft_item_ns(const struct weft_profile *profile, const struct weft_period_rule *rule,
                     enum weft_dtype accumulate, const struct weft_item *item)
{
    const struct weft_item_kind *kind = weft_item_kind_of(item);
    if (kind->role == WEFT_ROLE_HOST)
        return (int64_t)ceil(1e9 * (double)item->block_bytes /
                             (double)profile->tiers.host.update_bytes_per_s);
    const struct weft_curve *curve = copy_curve(&profile->tiers, kind->role);
    if (curve == NULL)
        return weft_curve_at(&profile->collectives[weft_item_kind_collective(item->kind)],
                             item->block_bytes);
    int64_t ns = weft_curve_at(curve, item->block_bytes);
    if (item->kind == WEFT_GRADIENT_DOWN && !rule->rotated)
        ns += weft_curve_at(&profile->norm, item->block_bytes / weft_dtype_bytes(accumulate));
    return ns;
}
