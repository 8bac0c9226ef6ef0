#include "problem/item_times.h"

#include <math.h>

int32_t weft_problem_lane_of(const struct weft_problem *problem, enum weft_lane_role role)
{
    static const enum weft_lane_kind kinds[WEFT_ROLE_COUNT] = {
        [WEFT_ROLE_GATHERS] = WEFT_LANE_KIND_NETWORK, [WEFT_ROLE_REDUCES] = WEFT_LANE_KIND_NETWORK,
        [WEFT_ROLE_DOWN] = WEFT_LANE_KIND_DOWN,       [WEFT_ROLE_UP] = WEFT_LANE_KIND_UP,
        [WEFT_ROLE_HOST] = WEFT_LANE_KIND_HOST,       [WEFT_ROLE_READS] = WEFT_LANE_KIND_READ,
        [WEFT_ROLE_WRITES] = WEFT_LANE_KIND_WRITE,
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
    case WEFT_ROLE_COUNT:
        break;
    }
    return NULL;
}

int64_t weft_item_ns(const struct weft_profile *profile, const struct weft_period_rule *rule,
                     enum weft_dtype accumulate, const struct weft_item *item)
{
    const struct weft_item_kind *kind = weft_item_kind_of(item);
    if (kind->role == WEFT_ROLE_HOST)
        return (int64_t)ceil(1e9 * (double)item->block_bytes /
                             (double)profile->tiers.host.update_bytes_per_s);
    const struct weft_curve *curve = copy_curve(&profile->tiers, kind->role);
    if (curve == NULL) return weft_curve_at(&profile->collectives[item->kind], item->block_bytes);
    int64_t ns = weft_curve_at(curve, item->block_bytes);
    if (item->kind == WEFT_GRADIENT_DOWN && !rule->rotated)
        ns += weft_curve_at(&profile->norm, item->block_bytes / weft_dtype_bytes(accumulate));
    return ns;
}
