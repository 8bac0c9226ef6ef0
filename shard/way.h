/* SPDX-License-Identifier: Apache-2.0 */
/* A unit's way is one alternative of the planner: policy, way to keep state, and location of its
 * shard. A way has a number and a name, which are built here and looked up. */
#ifndef WEFT_SHARD_WAY_H
#define WEFT_SHARD_WAY_H

#include <stdbool.h>

#include "shard/shard.h"
#include "spec/tiers.h"

struct weft_way {
    enum weft_policy policy;
    enum weft_keep keep;           /* of its state */
    enum weft_location parameters; /* location of its shard: the device or the host */
};

/* Number of ways, with ways that no config allows. The policy varies fastest, then the keep. */
enum { WEFT_WAYS = WEFT_POLICY_COUNT * WEFT_KEEP_COUNT * 2 };
struct weft_way weft_way_at(int number);
int weft_way_number(struct weft_way way);

/* Whether policy and locations go together. Units with their state in a node, and of one owner, are
 * on the device. An update on the host has its parameters there already: a rank's slice, and not
 * the node's. */
bool weft_way_allowed(struct weft_way way);

/* "fsdp", "fsdp+disk", "fsdp+disk+host-parameters". Static. */
const char *weft_way_name(struct weft_way way);
/* Looks a name up. False for any other text. */
bool weft_way_read(const char *name, struct weft_way *out);

#endif
