/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/comm/local.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

static const int64_t default_timeout_ns = INT64_C(600) * 1000000000;

static void describe_link(struct weft_local_comm *c)
{
    char alpha[WEFT_UNITS_TEXT_BYTES], rate[WEFT_UNITS_TEXT_BYTES];
    if (c->emulate) {
        snprintf(c->comm.description, sizeof c->comm.description, "local, emulated link %s + %s",
                 weft_units_show_ns(c->alpha_ns, alpha),
                 weft_units_show_rate(c->bytes_per_s, rate));
    } else {
        snprintf(c->comm.description, sizeof c->comm.description, "local");
    }
}

static void local_close(struct weft_comm *comm)
{
    struct weft_local_comm *c = weft_local_comm_of(comm);
    weft_local_control_close(c);
    free(c->arena_fds);
    free(c->arenas);
    free(c->operands);
    free(c->peers);
    free(c->peer_fds);
    free(c);
}

/* Takes the tables by rank. Only the trunk has files and views of arenas. */
static enum weft_status take_tables(struct weft_local_comm *c, struct weft_error *err)
{
    const size_t ranks = (size_t)c->comm.ranks;
    const bool is_branch = c->comm.trunk != NULL;
    c->peer_fds = malloc(ranks * sizeof *c->peer_fds);
    c->arenas = calloc(ranks, sizeof *c->arenas);
    c->operands = calloc(ranks, sizeof *c->operands);
    c->arena_fds = is_branch ? NULL : malloc(ranks * sizeof *c->arena_fds);
    c->peers = is_branch ? NULL : calloc(ranks, sizeof *c->peers);
    for (size_t i = 0; c->peer_fds != NULL && i < ranks; i++)
        c->peer_fds[i] = -1;
    if (c->peer_fds == NULL || c->arenas == NULL || c->operands == NULL ||
        (!is_branch && (c->arena_fds == NULL || c->peers == NULL)))
        return weft_fail_memory(err, "a communicator");
    return WEFT_OK;
}

static enum weft_status set_up(struct weft_local_comm *c, const struct weft_comm_options *options,
                               struct weft_error *err)
{
    const struct weft_comm_local_options *own = &options->local;
    const size_t ranks = (size_t)options->ranks;
    if (own->emulate && (own->alpha_ns < 0 || !(own->bytes_per_s > 0))) {
        return weft_fail(err, WEFT_E_USAGE,
                         "an emulated link needs a latency of 0 or more and a rate above 0");
    }
    if ((own->control_fd < 0 || own->arena_fds == NULL) && ranks > 1) {
        return weft_fail(err, WEFT_E_INTERNAL,
                         "%d local ranks need shared memory that their launcher made",
                         options->ranks);
    }
    c->comm.rank = options->rank;
    c->comm.ranks = options->ranks;
    c->timeout_ns = options->timeout_ns > 0 ? options->timeout_ns : default_timeout_ns;
    c->emulate = own->emulate;
    c->own_cores = own->own_cores;
    c->alpha_ns = own->alpha_ns;
    c->bytes_per_s = own->bytes_per_s;
    c->control_fd = own->control_fd;
    describe_link(c);
    WEFT_TRY(take_tables(c, err));
    if (own->arena_fds != NULL) memcpy(c->arena_fds, own->arena_fds, ranks * sizeof *c->arena_fds);
    return weft_local_control_open(c, err);
}

static enum weft_status local_open(const struct weft_comm_options *options, struct weft_comm **out,
                                   struct weft_error *err)
{
    struct weft_local_comm *c = calloc(1, sizeof *c);
    if (c == NULL) return weft_fail_memory(err, "a communicator");
    c->comm.ops = &weft_comm_local;
    c->flag_offset = -1;
    enum weft_status status = set_up(c, options, err);
    if (status != WEFT_OK) {
        local_close(&c->comm);
        return status;
    }
    *out = &c->comm;
    return WEFT_OK;
}

static enum weft_status local_branch(struct weft_comm *trunk, const struct weft_comm_place *place,
                                     int32_t rank, int32_t ranks, struct weft_comm **out,
                                     struct weft_error *err)
{
    const struct weft_local_comm *t = weft_local_comm_of(trunk);
    struct weft_local_comm *c = calloc(1, sizeof *c);
    if (c == NULL) return weft_fail_memory(err, "a communicator");
    c->comm = weft_comm_branch_of(trunk, place, rank, ranks);
    c->flag_offset = t->flag_offset;
    c->timeout_ns = t->timeout_ns;
    c->emulate = t->emulate;
    c->own_cores = t->own_cores;
    c->alpha_ns = t->alpha_ns;
    c->bytes_per_s = t->bytes_per_s;
    c->control_fd = t->control_fd;
    enum weft_status status = take_tables(c, err);
    if (status == WEFT_OK) status = weft_local_control_open(c, err);
    if (status != WEFT_OK) {
        local_close(&c->comm);
        return status;
    }
    *out = &c->comm;
    return WEFT_OK;
}

static enum weft_status local_exchange(struct weft_comm *comm, const void *mine, size_t bytes,
                                       void *all, struct weft_error *err)
{
    struct weft_local_comm *c = weft_local_comm_of(comm);
    const struct weft_comm_call call = {.kind = WEFT_COMM_CALL_EXCHANGE, .count = (int64_t)bytes};
    int64_t latest_ns;
    WEFT_TRY(weft_local_enter(c, &call, 0, mine, bytes, &latest_ns, err));
    for (int32_t rank = 0; rank < comm->ranks && bytes > 0; rank++) {
        memcpy((unsigned char *)all + (size_t)rank * bytes, weft_local_posted(c, rank)->bytes,
               bytes);
    }
    return WEFT_OK;
}

static void local_carry(struct weft_comm *comm, int64_t flag_offset)
{
    weft_local_comm_of(comm)->flag_offset = flag_offset;
}

const struct weft_comm_ops weft_comm_local = {
    .name = "local",
    .open = local_open,
    .close = local_close,
    .attach = weft_local_attach,
    .detach = weft_local_detach,
    .post = weft_comm_push_task,
    .tasks = weft_local_tasks,
    .exchange = local_exchange,
    .carry = local_carry,
    .cancel = weft_local_cancel,
    .branch = local_branch,
    .has_owners = true,
    .takes_host_memory = true,
};
