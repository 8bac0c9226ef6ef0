/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/comm/comm.h"

#include <string.h>

#include "base/text.h"
#include "runtime/comm/backend.h"
#include "runtime/comm/branch.h"
#include "runtime/comm/meter.h"
#include "runtime/device/module.h"

static const struct weft_comm_ops *const backends[] = {&weft_comm_local, &weft_comm_mpi};
enum { BACKENDS = sizeof backends / sizeof backends[0] };

static enum weft_status find_back_end(const char *name, const struct weft_comm_ops **out,
                                      struct weft_error *err)
{
    for (int i = 0; i < BACKENDS; i++) {
        if (strcmp(backends[i]->name, name) != 0) continue;
        *out = backends[i];
        return WEFT_OK;
    }
    if (weft_module_has(name)) {
        const void *ops = NULL;
        WEFT_TRY(weft_module_find("comm", name, &ops, err));
        *out = ops;
        return WEFT_OK;
    }
    struct weft_text known;
    weft_text_init(&known);
    for (int i = 0; i < BACKENDS; i++) {
        weft_text_addf(&known, "%s\"%s\"", i > 0 ? ", " : "", backends[i]->name);
    }
    weft_fail(err, WEFT_E_ENVIRONMENT, "no communicator \"%s\" in this build: it has %s", name,
              weft_text_chars(&known));
    weft_text_finish(&known);
    return WEFT_E_ENVIRONMENT;
}

enum weft_status weft_comm_open(const char *name, const struct weft_comm_options *options,
                                struct weft_comm **out, struct weft_error *err)
{
    const struct weft_comm_ops *ops = NULL;
    struct weft_arena *arena = NULL;
    if (options->ranks < 1 || options->rank < 0 || options->rank >= options->ranks) {
        return weft_fail(err, WEFT_E_INTERNAL, "rank %d of %d ranks: ranks count from 0",
                         options->rank, options->ranks);
    }
    const int32_t per_node = options->ranks_per_node > 0 ? options->ranks_per_node : options->ranks;
    if (options->ranks % per_node != 0) {
        return weft_fail(err, WEFT_E_INTERNAL, "%d ranks are no nodes of %d ranks", options->ranks,
                         per_node);
    }
    WEFT_TRY(find_back_end(name, &ops, err));
    const int *files = ops->takes_host_memory ? options->local.arena_fds : NULL;
    WEFT_TRY(weft_arena_open(options->device != NULL ? options->device : "cpu",
                             files != NULL ? files[options->rank] : -1, &arena, err));
    const enum weft_status status = ops->open(options, out, err);
    if (status != WEFT_OK) {
        weft_arena_close(arena);
        return status;
    }
    (*out)->arena = arena;
    (*out)->ranks_per_node = per_node;
    return WEFT_OK;
}

void weft_comm_close(struct weft_comm *comm)
{
    if (comm == NULL) return;
    const bool branches_do = weft_comm_detach_branches(comm);
    const bool gives_back = (!comm->is_mapped || comm->ops->detach(comm)) && branches_do;
    struct weft_arena *arena = comm->arena;
    weft_comm_close_branches(comm);
    comm->ops->close(comm);
    if (arena != NULL) weft_arena_unmap(arena, gives_back);
    weft_arena_close(arena);
}

int32_t weft_comm_rank(const struct weft_comm *comm)
{
    return comm->rank;
}

int32_t weft_comm_ranks(const struct weft_comm *comm)
{
    return comm->ranks;
}

int64_t weft_comm_staging_bytes(const struct weft_comm *comm)
{
    return comm->staging_bytes;
}

int64_t weft_comm_all_staging_bytes(const struct weft_comm *comm)
{
    int64_t bytes = comm->staging_bytes;
    for (int32_t i = 0; i < comm->n_branches; i++)
        bytes += comm->branches[i]->staging_bytes;
    return bytes;
}

const char *weft_comm_describe(const struct weft_comm *comm)
{
    return comm->description;
}

enum weft_status weft_comm_exchange(struct weft_comm *comm, const void *mine, size_t bytes,
                                    void *all, struct weft_error *err)
{
    if (bytes > WEFT_COMM_EXCHANGE_BYTES) {
        return weft_fail(err, WEFT_E_INTERNAL, "an exchange of %zu bytes: at most %d a rank", bytes,
                         WEFT_COMM_EXCHANGE_BYTES);
    }
    return comm->ops->exchange(comm, mine, bytes, all, err);
}

const char *weft_comm_host(const struct weft_comm *comm, int32_t rank)
{
    return comm->hosts != NULL ? comm->hosts[rank] : "";
}

bool weft_comm_swaps(const struct weft_comm *comm)
{
    return comm->ops->swap != NULL;
}

enum weft_status weft_comm_swap(struct weft_comm *comm, int32_t peer, const void *mine,
                                int64_t bytes, void *theirs, struct weft_error *err)
{
    if (!weft_comm_swaps(comm))
        return weft_fail(err, WEFT_E_ENVIRONMENT, "the communicator \"%s\" has only collectives",
                         comm->ops->name);
    if (peer < 0 || peer >= comm->ranks || peer == comm->rank)
        return weft_fail(err, WEFT_E_INTERNAL, "rank %d of %d cannot swap with rank %d", comm->rank,
                         comm->ranks, peer);
    return comm->ops->swap(comm, peer, mine, bytes, theirs, err);
}

static void add_traffic(struct weft_comm *comm, struct weft_comm_traffic *traffic,
                        int64_t *moving_ns)
{
    struct weft_comm_meter *meter = comm->meter;
    for (int32_t r = 0; r < comm->ranks; r++) {
        struct weft_comm_traffic *of = &traffic[weft_comm_rank_of_all(comm, r)];
        of->bytes += atomic_exchange_explicit(&meter->peers[r].bytes, 0, memory_order_relaxed);
        of->ns += atomic_exchange_explicit(&meter->peers[r].ns, 0, memory_order_relaxed);
    }
    *moving_ns += atomic_exchange_explicit(&meter->moving_ns, 0, memory_order_relaxed);
}

void weft_comm_take_traffic(struct weft_comm *comm, struct weft_comm_traffic *traffic,
                            int64_t *moving_ns)
{
    memset(traffic, 0, (size_t)comm->ranks * sizeof *traffic);
    *moving_ns = 0;
    if (comm->meter == NULL) return;
    add_traffic(comm, traffic, moving_ns);
    for (int32_t i = 0; i < comm->n_branches; i++)
        add_traffic(comm->branches[i], traffic, moving_ns);
}

void weft_comm_carry(struct weft_comm *comm, int64_t flag_offset)
{
    comm->ops->carry(comm, flag_offset);
    for (int32_t i = 0; i < comm->n_branches; i++)
        comm->branches[i]->ops->carry(comm->branches[i], flag_offset);
}

void weft_comm_expect(struct weft_comm *comm, int64_t longest_ns)
{
    static const int64_t least_ns = INT64_C(10000000000), most_ns = INT64_MAX / 2;
    enum { TIMES = 20 };
    const int64_t wanted_ns = longest_ns < most_ns / TIMES ? TIMES * longest_ns : most_ns;
    comm->patience_ns = longest_ns <= 0 ? 0 : wanted_ns > least_ns ? wanted_ns : least_ns;
}

int64_t weft_comm_patience_ns(const struct weft_comm *comm, bool in_collective, int64_t timeout_ns)
{
    const struct weft_comm *all = comm->trunk != NULL ? comm->trunk : comm;
    if (!in_collective) return timeout_ns + comm->longer_ns;
    return all->patience_ns > 0 ? all->patience_ns : timeout_ns;
}

void weft_comm_wait_longer(struct weft_comm *comm, int64_t ns)
{
    comm->longer_ns = ns;
}

void weft_comm_cancel(struct weft_comm *comm)
{
    struct weft_comm *trunk = comm->trunk != NULL ? comm->trunk : comm;
    trunk->ops->cancel(trunk);
    for (int32_t i = 0; i < trunk->n_branches; i++)
        trunk->branches[i]->ops->cancel(trunk->branches[i]);
}

int32_t weft_comm_lost(const struct weft_comm *comm)
{
    return comm->ops->lost != NULL ? comm->ops->lost(comm) : -1;
}
