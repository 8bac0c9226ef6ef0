/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/way.h"

#include <string.h>

#define KEEPS(name, end)                                                                           \
    {                                                                                              \
        [WEFT_KEEP_DEVICE] = name end, [WEFT_KEEP_HOST] = name "+host" end,                        \
        [WEFT_KEEP_DISK] = name "+disk" end, [WEFT_KEEP_HOST_UPDATE] = name "+host-update" end,    \
    }
#define NAMES(id, name, aliases, text, parameters, state, releases)                                \
    [WEFT_POLICY_##id] = {KEEPS(name, ""), KEEPS(name, "+host-parameters")},

/* By policy, location of the shard and keep. */
static const char *const names[WEFT_POLICY_COUNT][2][WEFT_KEEP_COUNT] = {WEFT_POLICY_MAP(NAMES)};

struct weft_way weft_way_at(int number)
{
    const int rest = number / WEFT_POLICY_COUNT;
    return (struct weft_way){(enum weft_policy)(number % WEFT_POLICY_COUNT),
                             (enum weft_keep)(rest % WEFT_KEEP_COUNT),
                             (enum weft_location)(rest / WEFT_KEEP_COUNT)};
}

int weft_way_number(struct weft_way way)
{
    return ((int)way.parameters * WEFT_KEEP_COUNT + (int)way.keep) * WEFT_POLICY_COUNT +
           (int)way.policy;
}

bool weft_way_allowed(struct weft_way way)
{
    const struct weft_policy_groups groups = weft_policy_groups[way.policy];
    const bool on_host = way.keep == WEFT_KEEP_HOST_UPDATE;
    if (groups.state == WEFT_GROUP_NODE || groups.state == WEFT_GROUP_OWNER)
        return way.parameters == WEFT_LOCATION_DEVICE && way.keep == WEFT_KEEP_DEVICE;
    if (groups.parameters == WEFT_GROUP_NODE)
        return !on_host || way.parameters == WEFT_LOCATION_DEVICE;
    if (way.parameters == WEFT_LOCATION_DEVICE) return groups.state != WEFT_GROUP_NONE || !on_host;
    return weft_policy_gathers(way.policy) && !on_host;
}

const char *weft_way_name(struct weft_way way)
{
    return names[way.policy][way.parameters][way.keep];
}

bool weft_way_read(const char *name, struct weft_way *out)
{
    for (int number = 0; number < WEFT_WAYS; number++) {
        const struct weft_way way = weft_way_at(number);
        if (strcmp(weft_way_name(way), name) != 0) continue;
        *out = way;
        return true;
    }
    return false;
}
