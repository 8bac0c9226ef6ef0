/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/host_update.h"

#include <stdlib.h>

#include "offload/service.h"
#include "runtime/comm/claims.h"
#include "runtime/exec/host.h"
#include "runtime/exec/parts.h"
#include "runtime/nn/hash.h"

enum { MOST_THREADS = 64 };

/* Elements [from, to) of a unit's state, within one block. */
struct share {
    const struct weft_exec *exec;
    const struct exec_host_update *on_host;
    int64_t from, to;
    bool hashes; /* of the whole block: train.fingerprint asks for it */
};

struct exec_updater {
    struct weft_service *service; /* NULL: the stream's own thread works alone */
    int32_t threads;              /* with the stream's own */
    uint32_t stop;                /* the device's flag when a block's update begins */
    struct weft_hash hash;        /* weft_exec_updater_hash */
};

static int64_t slice_of(const struct weft_exec *exec, const struct exec_unit *unit)
{
    return exec->options.shards->units[unit->index].slice_elements;
}

/* Cuts a piece to elements [from, to) of the unit's state; false if nothing is left. */
static bool cut_piece(struct weft_nn_piece *piece, int64_t from, int64_t to)
{
    const int64_t begin = piece->state_at > from ? piece->state_at : from;
    const int64_t piece_end = piece->state_at + piece->count;
    const int64_t end = piece_end < to ? piece_end : to;
    if (begin >= end) return false;
    piece->parameter_at += begin - piece->state_at;
    piece->first += begin - piece->state_at;
    piece->state_at = begin;
    piece->count = end - begin;
    return true;
}

enum weft_status weft_exec_bind_host_update(struct weft_exec *exec, const struct exec_unit *unit,
                                            int32_t block, void *at, struct exec_host_update **out,
                                            struct weft_error *err)
{
    const int64_t slice = slice_of(exec, unit), from = block * slice;
    struct exec_host_update *on_host = weft_pool_array(&exec->pool, 1, sizeof *on_host);
    struct weft_nn_piece *pieces =
        weft_pool_array(&exec->pool, (size_t)unit->nn.n_own + 1, sizeof *pieces);
    int64_t n = 0;
    if (on_host == NULL || pieces == NULL) return weft_fail_memory(err, "a block of an update");
    for (int64_t i = 0; i < unit->nn.n_own; i++) {
        pieces[n] = unit->nn.own[i];
        n += cut_piece(&pieces[n], from, from + slice);
    }
    *on_host = (struct exec_host_update){.unit = unit, .block = block, .at = at, .part = unit->nn};
    on_host->part.gradient = at;
    on_host->part.own = on_host->part.renew = pieces;
    on_host->part.n_own = on_host->part.n_renew = n;
    *out = on_host;
    return WEFT_OK;
}

static unsigned char *part_at(const struct weft_exec *exec, const struct exec_host_update *on_host,
                              enum exec_host_part part)
{
    return weft_exec_host_part(exec->host, on_host->unit->index, part).at;
}

static float *state_at(const struct weft_exec *exec, const struct exec_host_update *on_host,
                       enum exec_host_part part, int64_t element)
{
    float *state = (float *)(void *)part_at(exec, on_host, part);
    return state == NULL ? NULL : state + element;
}

static void update_piece(const struct weft_exec *exec, const struct exec_host_update *on_host,
                         const struct weft_nn_piece *piece)
{
    const struct weft_nn_unit *nn = &on_host->unit->nn;
    unsigned char *copy = part_at(exec, on_host, EXEC_HOST_PARAMETERS);
    const struct weft_update update = {
        .parameters = state_at(exec, on_host, EXEC_HOST_MASTER, piece->state_at),
        .gradients = part_at(exec, on_host, EXEC_HOST_GRADIENT) +
                     piece->state_at * weft_dtype_bytes(nn->gradient_dtype),
        .gradient_dtype = nn->gradient_dtype,
        .moment1 = state_at(exec, on_host, EXEC_HOST_MOMENT1, piece->state_at),
        .moment2 = state_at(exec, on_host, EXEC_HOST_MOMENT2, piece->state_at),
        .copy = copy == NULL ? NULL : copy + piece->state_at * weft_dtype_bytes(nn->dtype),
        .copy_dtype = nn->dtype,
        .n = piece->count,
    };
    struct weft_optimizer optimizer = exec->pending.optimizer;
    if (exec->means != NULL) optimizer.divisor = exec->means->divisors[piece->tensor];
    weft_optimizer_update(&optimizer, piece->matrix, &update);
}

static void update_share(const struct share *share)
{
    for (int64_t i = 0; i < share->on_host->part.n_renew; i++) {
        struct weft_nn_piece piece = share->on_host->part.renew[i];
        if (cut_piece(&piece, share->from, share->to))
            update_piece(share->exec, share->on_host, &piece);
    }
}

/* Hashes the master of a block, in the stream's own thread. */
static void hash_block(const struct share *share, struct weft_hash *sum)
{
    for (int64_t i = 0; i < share->on_host->part.n_own; i++) {
        struct weft_nn_piece piece = share->on_host->part.own[i];
        if (cut_piece(&piece, share->from, share->to))
            weft_nn_hash_elements(
                sum, piece.name, piece.first,
                state_at(share->exec, share->on_host, EXEC_HOST_MASTER, piece.state_at),
                piece.count);
    }
}

const struct weft_hash *weft_exec_updater_hash(const struct exec_updater *updater)
{
    return &updater->hash;
}

void weft_exec_updater_forget(struct exec_updater *updater)
{
    if (updater != NULL) updater->hash = (struct weft_hash){0};
}

static enum weft_status serve_share(void *context, int32_t lane, void *request,
                                    struct weft_error *err)
{
    (void)context;
    (void)lane;
    (void)err;
    update_share(request);
    return WEFT_OK;
}

static enum weft_status say_hang(void *context, int32_t lane, const void *request,
                                 struct weft_error *err)
{
    const struct share *share = request;
    (void)context;
    (void)lane;
    return weft_fail(err, WEFT_E_HANG, "an update of unit %s on the host has not ended in time",
                     share->exec->options.shards->units[share->on_host->unit->index].name);
}

enum weft_status weft_exec_updater_create(const struct weft_exec *exec, struct exec_updater **out,
                                          struct weft_error *err)
{
    bool any = false;
    for (int32_t u = 0; u < exec->options.program->n_units; u++)
        any |= weft_program_updates_on_host(exec->options.program, u);
    if (!any) return WEFT_OK;
    int32_t threads;
    WEFT_TRY(weft_exec_update_threads(exec->options.config, exec->options.comm, &threads, err));
    struct exec_updater *updater = calloc(1, sizeof *updater);
    if (updater == NULL) return weft_fail_memory(err, "updates on the host");
    updater->threads = threads;
    const struct weft_service_options options = {
        .name = "weft-update",
        .lanes = 1,
        .threads = threads - 1,
        .requests = MOST_THREADS,
        .request_bytes = sizeof(struct share),
        .timeout_ns = weft_cluster_timeout_ns(&exec->options.config->cluster),
        .serve = serve_share,
        .hang = say_hang,
    };
    if (threads > 1) {
        const enum weft_status status = weft_service_create(&options, &updater->service, err);
        if (status != WEFT_OK) {
            weft_exec_updater_destroy(updater);
            return status;
        }
    }
    *out = updater;
    return WEFT_OK;
}

void weft_exec_updater_destroy(struct exec_updater *updater)
{
    if (updater == NULL) return;
    weft_service_destroy(updater->service);
    free(updater);
}

enum weft_status weft_exec_update_threads(const struct weft_config *config, struct weft_comm *comm,
                                          int32_t *threads, struct weft_error *err)
{
    enum { COPIES = WEFT_COPY_DIRECTIONS }; /* one thread each */
    const struct weft_cluster *cluster = &config->cluster;
    int64_t n = cluster->host.threads;
    if (n == 0 && cluster->threads > 0) {
        WEFT_TRY(weft_comm_share_cores(comm, &n, err));
        n -= cluster->threads + COPIES;
    }
    *threads = n < 1 ? 1 : n > MOST_THREADS ? MOST_THREADS : (int32_t)n;
    return WEFT_OK;
}

/* Like the device, updates nothing after a rank has found a gradient that is not finite. Shares are
 * whole cache lines. */
static enum weft_status update_block(struct weft_stream *stream, const void *argument,
                                     struct weft_error *err)
{
    enum { LINE = 64 / sizeof(float) };
    const struct share *whole = argument;
    struct share share = *whole;
    struct exec_updater *updater = share.exec->updater;
    const int64_t end = share.to, lines = (end - share.from + LINE - 1) / LINE;
    const int64_t each = (lines + updater->threads - 1) / updater->threads * LINE;
    int64_t tickets[MOST_THREADS];
    int32_t n = 0;
    (void)stream;
    if (updater->stop != 0) return WEFT_OK;
    for (share.to = share.from + each; share.to < end; share.to += each) {
        const struct weft_service_part part = {&share, sizeof share};
        WEFT_TRY(weft_service_submit(updater->service, 0, &part, 1, &tickets[n++], err));
        share.from = share.to;
    }
    share.to = end;
    update_share(&share);
    for (int32_t i = 0; i < n; i++)
        WEFT_TRY(weft_service_wait(updater->service, 0, tickets[i], err));
    if (whole->hashes) hash_block(whole, &updater->hash);
    return WEFT_OK;
}

void weft_exec_push_host_update(struct weft_exec *exec, struct weft_stream *stream,
                                const struct exec_host_update *on_host)
{
    const int64_t slice = slice_of(exec, on_host->unit), from = on_host->block * slice;
    const struct share share = {exec, on_host, from, from + slice, exec->hashes};
    weft_arena_read(exec->arena, stream, EXEC_OWN(exec, step.stop), sizeof exec->updater->stop,
                    &exec->updater->stop);
    weft_stream_push(stream, update_block, &share, sizeof share);
}

void weft_exec_push_gradient_down(struct weft_exec *exec, struct weft_stream *stream,
                                  const struct exec_host_update *on_host)
{
    const struct weft_nn_unit *nn = &on_host->unit->nn;
    const int64_t bytes = slice_of(exec, on_host->unit) * weft_dtype_bytes(nn->gradient_dtype);
    const int64_t from = on_host->block * bytes;
    if (!exec->options.program->period.rotated)
        weft_exec_push_norm_of(exec, stream, on_host->unit->index, &on_host->part);
    weft_exec_push_host_copy(
        exec, stream, WEFT_COPY_DOWN, on_host->at + from,
        (struct weft_memory_span){part_at(exec, on_host, EXEC_HOST_GRADIENT) + from, bytes});
}

/* Index of this rank's slice of a block in the unit's parameters: of all ranks' slices, of the
 * slices of its place on all nodes, or of its own. */
static int64_t place_of(const struct weft_exec *exec, const struct exec_unit *unit, int64_t block)
{
    const int64_t per_node = exec->options.shards->ranks_per_node;
    if (unit->resident) return block * exec->ranks + exec->rank;
    return unit->in_node ? block * (exec->ranks / per_node) + exec->rank / per_node : block;
}

void weft_exec_push_parameters_up(struct weft_exec *exec, struct weft_stream *stream,
                                  const struct exec_host_update *on_host)
{
    const struct exec_unit *unit = on_host->unit;
    const enum exec_host_part part =
        unit->nn.dtype == WEFT_F32 ? EXEC_HOST_MASTER : EXEC_HOST_PARAMETERS;
    const int64_t bytes = slice_of(exec, unit) * weft_dtype_bytes(unit->nn.dtype);
    weft_exec_push_host_copy(
        exec, stream, WEFT_COPY_UP, on_host->at + place_of(exec, unit, on_host->block) * bytes,
        (struct weft_memory_span){part_at(exec, on_host, part) + on_host->block * bytes, bytes});
}

void weft_exec_push_rounded(struct weft_exec *exec, struct weft_stream *stream,
                            const struct exec_unit *unit)
{
    const struct weft_memory_span to =
        weft_exec_host_part(exec->host, unit->index, EXEC_HOST_PARAMETERS);
    const int64_t bytes = slice_of(exec, unit) * weft_dtype_bytes(unit->nn.dtype);
    for (int64_t block = 0; block * bytes < to.bytes; block++)
        weft_arena_read(exec->arena, stream,
                        (unsigned char *)unit->nn.parameters + place_of(exec, unit, block) * bytes,
                        bytes, to.at + block * bytes);
}
