/* SPDX-License-Identifier: Apache-2.0 */
/* Branches of a communicator: for another lane, for a group of ranks, or both. */
#include <string.h>

#include "runtime/comm/backend.h"
#include "runtime/comm/branch.h"

const char *weft_comm_group_name(enum weft_rank_group group)
{
    static const char *const names[WEFT_GROUP_COUNT] = {
        [WEFT_GROUP_ALL] = "all", [WEFT_GROUP_NODE] = "node", [WEFT_GROUP_ACROSS] = "across"};
    return names[group];
}

int32_t weft_comm_rank_of_all(const struct weft_comm *comm, int32_t rank)
{
    return comm->place.first + rank * (1 + comm->place.gap);
}

void weft_comm_show_place(const struct weft_comm *comm, struct weft_text *out)
{
    if (comm->trunk == NULL) return;
    weft_text_addf(out, " (lane %s", comm->place.lane);
    if (comm->place.group != WEFT_GROUP_ALL)
        weft_text_addf(out, ", group %s", weft_comm_group_name(comm->place.group));
    weft_text_add(out, ")");
}

static struct weft_comm *find_branch(const struct weft_comm *comm, const char *lane,
                                     enum weft_rank_group group, int32_t round)
{
    for (int32_t i = 0; i < comm->n_branches; i++) {
        const struct weft_comm_place *place = &comm->branches[i]->place;
        if (place->group == group && place->round == round && strcmp(place->lane, lane) == 0)
            return comm->branches[i];
    }
    return NULL;
}

/* The place of the group that this rank is in. */
static struct weft_comm_place place_of(const struct weft_comm *comm, enum weft_rank_group group)
{
    const int32_t per_node = comm->ranks_per_node;
    struct weft_comm_place place = {.group = group, .round = -1, .number = comm->n_branches};
    if (group == WEFT_GROUP_NODE) place.index = comm->rank / per_node;
    if (group == WEFT_GROUP_NODE) place.first = place.index * per_node;
    if (group == WEFT_GROUP_ACROSS) place.first = place.index = comm->rank % per_node;
    if (group == WEFT_GROUP_ACROSS) place.gap = per_node - 1;
    return place;
}

/* The other node of a node's pair in a round; the node itself if it is alone. */
static int32_t neighbour_of(int32_t node, int32_t nodes, int32_t round)
{
    const bool next = (node - round) % 2 == 0;
    const int32_t other = next ? node + 1 : node - 1;
    if (nodes % 2 == 0) return (other + nodes) % nodes;
    return other < 0 || other == nodes ? node : other;
}

/* The same for a pair. A rank that is alone has the last places of controls. */
static struct weft_comm_place place_of_pair(const struct weft_comm *comm, int32_t round)
{
    const int32_t per_node = comm->ranks_per_node, nodes = comm->ranks / per_node;
    const int32_t node = comm->rank / per_node, place = comm->rank % per_node;
    const int32_t other = neighbour_of(node, nodes, round);
    const int32_t low = other < node ? other : node, high = other < node ? node : other;
    const int32_t pair = high - low > 1 ? nodes / 2 - 1 : (low - round + 1) / 2;
    return (struct weft_comm_place){
        .group = WEFT_GROUP_ACROSS,
        .round = round,
        .number = comm->n_branches,
        .index = other == node ? comm->ranks - per_node + place : pair * per_node + place,
        .first = low * per_node + place,
        .gap = other == node ? 0 : (high - low) * per_node - 1,
    };
}

static int32_t ranks_of(const struct weft_comm *comm, enum weft_rank_group group)
{
    if (group == WEFT_GROUP_ALL) return comm->ranks;
    return group == WEFT_GROUP_NODE ? comm->ranks_per_node : comm->ranks / comm->ranks_per_node;
}

static enum weft_status open_branch(struct weft_comm *comm, const char *lane,
                                    struct weft_comm_place place, int32_t ranks,
                                    struct weft_comm **out, struct weft_error *err)
{
    struct weft_comm *branch = find_branch(comm, lane, place.group, place.round);
    if (branch == NULL) {
        if (comm->ops->branch == NULL)
            return weft_fail(err, WEFT_E_ENVIRONMENT,
                             "the communicator \"%s\" runs one lane of the network, and the plan "
                             "has more: plan again with cluster.channels=1, without hsdp and nodes",
                             comm->ops->name);
        if (comm->n_branches == WEFT_COMM_MOST_BRANCHES || strlen(lane) >= sizeof place.lane)
            return weft_fail(err, WEFT_E_INTERNAL, "there is no room for lane %s, group %s", lane,
                             weft_comm_group_name(place.group));
        memcpy(place.lane, lane, strlen(lane) + 1);
        WEFT_TRY(comm->ops->branch(comm, &place, (comm->rank - place.first) / (1 + place.gap),
                                   ranks, &branch, err));
        branch->ranks_per_node =
            place.group == WEFT_GROUP_ALL ? comm->ranks_per_node : branch->ranks;
        comm->branches[comm->n_branches] = branch;
        comm->n_branches++;
    }
    if (comm->is_mapped && !branch->is_mapped) {
        WEFT_TRY(branch->ops->attach(branch, NULL, NULL, err));
        branch->is_mapped = true;
    }
    *out = branch;
    return WEFT_OK;
}

enum weft_status weft_comm_branch(struct weft_comm *comm, const char *lane,
                                  enum weft_rank_group group, struct weft_comm **out,
                                  struct weft_error *err)
{
    return open_branch(comm, lane, place_of(comm, group), ranks_of(comm, group), out, err);
}

enum weft_status weft_comm_pair(struct weft_comm *comm, const char *lane, int32_t round,
                                struct weft_comm **out, struct weft_error *err)
{
    const struct weft_comm_place place = place_of_pair(comm, round);
    const bool alone = place.first == comm->rank && place.gap == 0 &&
                       place.index >= comm->ranks - comm->ranks_per_node;
    return open_branch(comm, lane, place, alone ? 1 : 2, out, err);
}

bool weft_comm_detach_branches(struct weft_comm *comm)
{
    bool gives_back = true;
    for (int32_t i = 0; i < comm->n_branches; i++) {
        struct weft_comm *branch = comm->branches[i];
        if (branch->is_mapped) gives_back = branch->ops->detach(branch) && gives_back;
        branch->is_mapped = false;
    }
    return gives_back;
}

void weft_comm_close_branches(struct weft_comm *comm)
{
    while (comm->n_branches > 0) {
        struct weft_comm *branch = comm->branches[comm->n_branches - 1];
        comm->n_branches--;
        branch->ops->close(branch);
    }
}
