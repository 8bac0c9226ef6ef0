/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "shard/shard.h"

static const struct {
    const char *name;
    const char *aliases; /* separated by '=' */
    const char *text;
} policies[WEFT_POLICY_COUNT] = {
#define WEFT_POLICY_ENTRY(id, name, aliases, text, parameters, state, releases)                    \
    [WEFT_POLICY_##id] = {name, aliases, text},
    WEFT_POLICY_MAP(WEFT_POLICY_ENTRY)
#undef WEFT_POLICY_ENTRY
};

const struct weft_policy_groups weft_policy_groups[WEFT_POLICY_COUNT] = {
#define WEFT_POLICY_ENTRY(id, name, aliases, text, parameters, state, releases)                    \
    [WEFT_POLICY_##id] = {WEFT_GROUP_##parameters, WEFT_GROUP_##state, releases},
    WEFT_POLICY_MAP(WEFT_POLICY_ENTRY)
#undef WEFT_POLICY_ENTRY
};

uint32_t weft_policies_sharing(enum weft_rank_group parameters)
{
    uint32_t sharing = 0;
    for (int p = 0; p < WEFT_POLICY_COUNT; p++)
        sharing |= (uint32_t)(weft_policy_groups[p].parameters == parameters) << p;
    return sharing;
}

const char *weft_policy_name(enum weft_policy policy)
{
    return policies[policy].name;
}

const char *weft_policy_aliases(enum weft_policy policy)
{
    return policies[policy].aliases;
}

const char *weft_policy_text(enum weft_policy policy)
{
    return policies[policy].text;
}

static bool is_alias(const char *aliases, const char *name)
{
    size_t length = strlen(name);
    while (*aliases != '\0') {
        size_t span = strcspn(aliases, "=");
        if (span == length && memcmp(aliases, name, length) == 0) return true;
        aliases += span;
        aliases += *aliases == '=';
    }
    return false;
}

bool weft_policy_read(const char *name, enum weft_policy *out)
{
    for (int p = 0; p < WEFT_POLICY_COUNT; p++) {
        if (strcmp(policies[p].name, name) != 0 && !is_alias(policies[p].aliases, name)) continue;
        *out = (enum weft_policy)p;
        return true;
    }
    return false;
}
