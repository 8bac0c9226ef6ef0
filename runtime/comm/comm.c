#include "runtime/comm/comm.h"

#include <string.h>

#include "base/text.h"
#include "runtime/comm/backend.h"
#include "runtime/device/module.h"

static const struct weft_comm_ops *const backends[] = {&weft_comm_local};
enum { BACKENDS = sizeof backends / sizeof backends[0] };

static enum weft_status check_options(const struct weft_comm_options *options,
                                      struct weft_error *err)
{
    if (options->ranks < 1 || options->rank < 0 || options->rank >= options->ranks) {
        return weft_fail(err, WEFT_E_INTERNAL, "rank %d of %d ranks: ranks count from 0",
                         options->rank, options->ranks);
    }
    if (options->emulate && (options->alpha_ns < 0 || !(options->bytes_per_s > 0))) {
        return weft_fail(err, WEFT_E_USAGE,
                         "an emulated link needs a latency of 0 or more and a rate above 0");
    }
    return WEFT_OK;
}

enum weft_status weft_comm_open(const char *name, const struct weft_comm_options *options,
                                struct weft_comm **out, struct weft_error *err)
{
    WEFT_TRY(check_options(options, err));
    for (int i = 0; i < BACKENDS; i++) {
        if (strcmp(backends[i]->name, name) == 0) return backends[i]->open(options, out, err);
    }
    if (weft_module_has(name)) {
        const void *ops = NULL;
        WEFT_TRY(weft_module_find("comm", name, &ops, err));
        return ((const struct weft_comm_ops *)ops)->open(options, out, err);
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

void weft_comm_close(struct weft_comm *comm)
{
    if (comm != NULL) comm->ops->close(comm);
}

int32_t weft_comm_rank(const struct weft_comm *comm)
{
    return comm->rank;
}

int32_t weft_comm_ranks(const struct weft_comm *comm)
{
    return comm->ranks;
}

const char *weft_comm_describe(const struct weft_comm *comm)
{
    return comm->description;
}

enum weft_status weft_comm_map_arena(struct weft_comm *comm, const struct weft_arena_shape *shape,
                                     const struct weft_ranges *reads, struct weft_arena **out,
                                     struct weft_error *err)
{
    return comm->ops->map_arena(comm, shape, reads, out, err);
}

void weft_comm_unmap_arena(struct weft_comm *comm)
{
    comm->ops->unmap_arena(comm);
}

void weft_comm_all_gather(struct weft_comm *comm, struct weft_stream *channel,
                          const struct weft_comm_block *block)
{
    comm->ops->all_gather(comm, channel, block);
}

void weft_comm_reduce_scatter(struct weft_comm *comm, struct weft_stream *channel,
                              const struct weft_comm_block *block)
{
    comm->ops->reduce_scatter(comm, channel, block);
}

void weft_comm_all_reduce(struct weft_comm *comm, struct weft_stream *channel,
                          const struct weft_comm_block *block)
{
    comm->ops->all_reduce(comm, channel, block);
}

void weft_comm_agree(struct weft_comm *comm, struct weft_stream *channel, int64_t from_offset,
                     int64_t to_offset, int64_t words, int64_t ns)
{
    comm->ops->agree(comm, channel, from_offset, to_offset, words, ns);
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

void weft_comm_carry(struct weft_comm *comm, int64_t flag_offset)
{
    comm->ops->carry(comm, flag_offset);
}

void weft_comm_cancel(struct weft_comm *comm)
{
    comm->ops->cancel(comm);
}
