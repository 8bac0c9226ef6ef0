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
                                     enum weft_rank_group group)
{
    for (int32_t i = 0; i < comm->n_branches; i++) {
        const struct weft_comm_place *place = &comm->branches[i]->place;
        if (place->group == group && strcmp(place->lane, lane) == 0) return comm->branches[i];
    }
    return NULL;
}

/* The place of the group that this rank is in. */
static struct weft_comm_place place_of(const struct weft_comm *comm, enum weft_rank_group group)
{
    const int32_t per_node = comm->ranks_per_node;
    struct weft_comm_place place = {.group = group, .number = comm->n_branches};
    if (group == WEFT_GROUP_NODE) place.first = comm->rank / per_node * per_node;
    if (group == WEFT_GROUP_ACROSS) place.first = comm->rank % per_node;
    if (group == WEFT_GROUP_ACROSS) place.gap = per_node - 1;
    return place;
}

static int32_t ranks_of(const struct weft_comm *comm, enum weft_rank_group group)
{
    if (group == WEFT_GROUP_ALL) return comm->ranks;
    return group == WEFT_GROUP_NODE ? comm->ranks_per_node : comm->ranks / comm->ranks_per_node;
}

enum weft_status weft_comm_branch(struct weft_comm *comm, const char *lane,
                                  enum weft_rank_group group, struct weft_comm **out,
                                  struct weft_error *err)
{
    struct weft_comm *branch = find_branch(comm, lane, group);
    if (branch == NULL) {
        struct weft_comm_place place = place_of(comm, group);
        if (comm->ops->branch == NULL)
            return weft_fail(err, WEFT_E_ENVIRONMENT,
                             "the communicator \"%s\" runs one lane of the network, and the plan "
                             "has more: plan again with cluster.channels=1, without hsdp and nodes",
                             comm->ops->name);
        if (comm->n_branches == WEFT_COMM_MOST_BRANCHES || strlen(lane) >= sizeof place.lane)
            return weft_fail(err, WEFT_E_INTERNAL, "there is no room for lane %s, group %s", lane,
                             weft_comm_group_name(group));
        memcpy(place.lane, lane, strlen(lane) + 1);
        WEFT_TRY(comm->ops->branch(comm, &place, (comm->rank - place.first) / (1 + place.gap),
                                   ranks_of(comm, group), &branch, err));
        branch->ranks_per_node = group == WEFT_GROUP_ALL ? comm->ranks_per_node : branch->ranks;
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
