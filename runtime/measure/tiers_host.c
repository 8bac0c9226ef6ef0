/* SPDX-License-Identifier: Apache-2.0 */
/* Measures copies between the arena of a CPU and the host tier, and updates of state in that tier.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "offload/copy.h"
#include "offload/tier.h"
#include "runtime/exec/exec.h"
#include "runtime/measure/tiers.h"
#include "runtime/nn/units.h"

enum {
    PAGE_BYTES = 4096,
    LARGE_PAGE_BYTES = 2 << 20,
    MOST_BYTES = 128 << 20, /* of the tier used for measuring */
    LEAST_BYTES = 1 << 20,
    LEAST_BLOCK_BYTES = 64 << 10,
    BLOCK_STEP = 4, /* factor between block sizes */
    SEATS = 2,      /* one block is moved while the next is queued */
    /* The tier's first half holds blocks of both directions, the second half the updated state. */
    PARTS = 2 * WEFT_COPY_DIRECTIONS * SEATS,
    COPIES = WEFT_COPY_DIRECTIONS,
    MOST_THREADS = MEASURE_SEATS - COPIES,
    ARRAYS = 4,        /* parameter, gradient, two moments */
    UPDATE_BYTES = 12, /* of an element: parameter read and written, gradient read */
    MOMENT_BYTES = 8,
    MOST_ELEMENTS = 1 << 20, /* of an update */
    LEAST_ELEMENTS = 256
};

struct host_bench;

struct copy_context {
    struct host_bench *bench;
    enum weft_copy_direction direction;
    int64_t block_bytes;
};

/* One updating thread. */
struct update_context {
    struct host_bench *bench;
    struct weft_stream *stream;
    unsigned char *at; /* in the tier */
    struct weft_nn_piece piece;
    struct weft_nn_unit units[SEATS];
    _Atomic int64_t done;
};

struct host_bench {
    const struct weft_measure_options *options;
    struct weft_tier *tier;
    unsigned char *host, *device; /* memory of the tier, and of the arena */
    int64_t bytes;                /* of the tier; the arena has half */
    struct weft_copier *copier;
    struct copy_context copies[COPIES];
    struct weft_nn_rule rule;
    _Alignas(16) struct weft_nn_step step;
    int32_t threads;
    struct update_context *updates;
    struct measure_flow flows[COPIES + MOST_THREADS];
};

static enum weft_status submit_copy(void *context, int64_t number, int32_t seat, int64_t *ticket,
                                    struct weft_error *err)
{
    const struct copy_context *c = context;
    const int64_t part = c->bench->bytes / PARTS, at = (c->direction * SEATS + seat) * part;
    const struct weft_memory_span host = {c->bench->host + at, c->block_bytes};
    const struct weft_memory_span device = {c->bench->device + at, c->block_bytes};
    const bool down = c->direction == WEFT_COPY_DOWN;
    (void)number;
    return weft_copier_submit(c->bench->copier, c->direction, down ? &host : &device, 1,
                              down ? &device : &host, 1, ticket, err);
}

static bool copy_is_done(void *context, int64_t ticket)
{
    const struct copy_context *c = context;
    return weft_copier_is_done(c->bench->copier, c->direction, ticket);
}

static enum weft_status wait_for_copy(void *context, int64_t ticket, struct weft_error *err)
{
    const struct copy_context *c = context;
    return weft_copier_wait(c->bench->copier, c->direction, ticket, err);
}

struct done_argument {
    _Atomic int64_t *done;
};

static enum weft_status count_update(struct weft_stream *stream, const void *argument,
                                     struct weft_error *err)
{
    const struct done_argument *a = argument;
    (void)stream;
    (void)err;
    atomic_fetch_add(a->done, 1);
    return WEFT_OK;
}

static enum weft_status submit_update(void *context, int64_t number, int32_t seat, int64_t *ticket,
                                      struct weft_error *err)
{
    struct update_context *u = context;
    const struct host_bench *bench = u->bench;
    const int64_t bytes = u->piece.count * (int64_t)sizeof(float);
    const int32_t moments = weft_config_moments(bench->options->config);
    unsigned char *at = u->at + seat * ARRAYS * bytes;
    struct weft_nn_unit *unit = &u->units[seat];
    (void)err;
    *unit = (struct weft_nn_unit){
        .parameters = at,
        .gradient = at + bytes,
        .moment1 = moments >= 1 ? at + 2 * bytes : NULL,
        .moment2 = moments >= 2 ? at + 3 * bytes : NULL,
        .own = &u->piece,
        .n_own = 1,
        .renew = &u->piece,
        .n_renew = 1,
    };
    weft_nn_update(bench->options->nn, u->stream, unit, &bench->rule, &bench->step);
    const struct done_argument done = {&u->done};
    weft_stream_push(u->stream, count_update, &done, sizeof done);
    *ticket = number;
    return WEFT_OK;
}

static bool update_is_done(void *context, int64_t ticket)
{
    struct update_context *u = context;
    return atomic_load(&u->done) > ticket;
}

static enum weft_status wait_for_update(void *context, int64_t ticket, struct weft_error *err)
{
    struct update_context *u = context;
    return update_is_done(u, ticket) ? WEFT_OK : weft_stream_synchronise(u->stream, err);
}

static struct weft_copy_link link_of(const struct weft_link *link, bool emulated)
{
    return (struct weft_copy_link){emulated, link->alpha_ns,
                                   link->bytes_per_s > 0 ? link->bytes_per_s : 1};
}

static enum weft_status open_copier(struct host_bench *bench, struct weft_error *err)
{
    const struct weft_cluster *cluster = &bench->options->config->cluster;
    const struct weft_copier_options options = {
        .links = {[WEFT_COPY_DOWN] = link_of(&cluster->host.down, cluster->emulate_link),
                  [WEFT_COPY_UP] = link_of(&cluster->host.up, cluster->emulate_link)},
        .requests = SEATS,
        .spans = 1,
        .timeout_ns = weft_cluster_timeout_ns(cluster),
    };
    WEFT_TRY(weft_copier_create(&options, &bench->copier, err));
    for (int direction = 0; direction < WEFT_COPY_DIRECTIONS; direction++) {
        bench->copies[direction] =
            (struct copy_context){bench, (enum weft_copy_direction)direction, 0};
        bench->flows[direction] = (struct measure_flow){.context = &bench->copies[direction],
                                                        .submit = submit_copy,
                                                        .is_done = copy_is_done,
                                                        .wait = wait_for_copy,
                                                        .seats = SEATS,
                                                        .least = 2 * SEATS};
    }
    return WEFT_OK;
}

static enum weft_status open_updates(struct host_bench *bench, struct weft_error *err)
{
    const struct weft_config *config = bench->options->config;
    const struct weft_optimizer first = weft_optimizer_at(&config->train, 1, 1e-6, 1);
    bench->rule = (struct weft_nn_rule){first.type, first.exempt_vectors, first.decay};
    bench->step = (struct weft_nn_step){.adamw = first.adamw, .sgd = first.sgd, .loss_scale = 1};
    int32_t threads;
    WEFT_TRY(weft_exec_update_threads(config, bench->options->comm, &threads, err));
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    int64_t own_bytes = bench->bytes / 2 / threads;
    own_bytes -= own_bytes % PAGE_BYTES;
    int64_t elements = own_bytes / (SEATS * ARRAYS * (int64_t)sizeof(float));
    elements -= elements % LEAST_ELEMENTS;
    if (elements > MOST_ELEMENTS) elements = MOST_ELEMENTS;
    bench->updates = calloc((size_t)threads, sizeof *bench->updates);
    if (bench->updates == NULL) return weft_fail_memory(err, "the measurement");
    for (int32_t t = 0; t < threads; t++) {
        struct update_context *u = &bench->updates[t];
        *u = (struct update_context){.bench = bench,
                                     .at = bench->host + bench->bytes / 2 + t * own_bytes,
                                     .piece = {.count = elements, .matrix = true}};
        WEFT_TRY(weft_stream_create(bench->options->device, "update", 0, &u->stream, err));
        bench->threads++;
        bench->flows[COPIES + t] = (struct measure_flow){.context = u,
                                                         .submit = submit_update,
                                                         .is_done = update_is_done,
                                                         .wait = wait_for_update,
                                                         .seats = SEATS,
                                                         .least = 2 * SEATS};
    }
    return WEFT_OK;
}

static enum weft_status open_tier(struct host_bench *bench, struct weft_error *err)
{
    const int64_t limit = bench->options->config->cluster.host.memory_limit_bytes;
    int64_t bytes = limit < MOST_BYTES ? limit : MOST_BYTES;
    WEFT_TRY(weft_measure_check_host(bench->options->config, LEAST_BYTES, err));
    const int64_t page = bytes >= PARTS * LARGE_PAGE_BYTES ? LARGE_PAGE_BYTES : PAGE_BYTES;
    bench->bytes = bytes - bytes % (PARTS * page);
    const struct weft_tier_options options = {
        .name = "host", .page_bytes = page, .pages = bench->bytes / page};
    WEFT_TRY(weft_tier_create(&options, &bench->tier, err));
    bench->host = weft_tier_memory(bench->tier).at;
    return WEFT_OK;
}

static enum weft_status open_bench(struct host_bench *bench, struct weft_error *err)
{
    struct weft_arena *arena;
    WEFT_TRY(open_tier(bench, err));
    const struct weft_arena_shape shape = weft_arena_whole(bench->bytes / 2);
    WEFT_TRY(weft_comm_map_arena(bench->options->comm, &shape, NULL, &arena, err));
    bench->device = weft_arena_memory(arena);
    WEFT_TRY(open_copier(bench, err));
    return open_updates(bench, err);
}

static void close_bench(struct host_bench *bench)
{
    for (int32_t t = 0; t < bench->threads; t++)
        weft_stream_destroy(bench->updates[t].stream);
    free(bench->updates);
    weft_copier_destroy(bench->copier);
    if (bench->device != NULL) weft_comm_unmap_arena(bench->options->comm);
    weft_tier_destroy(bench->tier);
    free(bench);
}

/* Times blocks of each size, one direction alone. The largest block's time comes last. */
static enum weft_status time_copies(struct host_bench *bench, enum weft_copy_direction direction,
                                    struct weft_pool *pool, struct weft_curve *out,
                                    struct weft_error *err)
{
    struct measure_flow *flow = &bench->flows[direction];
    int64_t *x = weft_pool_array(pool, MEASURE_POINTS, sizeof *x);
    int64_t *ns = weft_pool_array(pool, MEASURE_POINTS, sizeof *ns);
    if (x == NULL || ns == NULL) return weft_fail_memory(err, "a profile");
    int32_t n = 0;
    for (int64_t size = LEAST_BLOCK_BYTES; size <= bench->bytes / PARTS; size *= BLOCK_STEP) {
        bench->copies[direction].block_bytes = x[n] = size;
        WEFT_TRY(weft_measure_together(bench->options, &flow, 1, &ns[n], err));
        if (ns[n++] > MEASURE_SLOW_NS) break;
    }
    *out = (struct weft_curve){.n = n, .x = x, .ns = ns};
    return WEFT_OK;
}

static void list_flows(struct host_bench *bench, struct measure_flow **out)
{
    for (int32_t i = 0; i < COPIES + bench->threads; i++)
        out[i] = &bench->flows[i];
}

/* Times updates by all threads, in bytes per second: alone, and during copies both ways. */
static enum weft_status time_updates(struct host_bench *bench, struct weft_profile_host *out,
                                     struct weft_error *err)
{
    struct measure_flow *flows[COPIES + MOST_THREADS];
    int64_t alone_ns[MOST_THREADS], beside_ns[COPIES + MOST_THREADS];
    const int64_t bytes =
        bench->updates[0].piece.count *
        (UPDATE_BYTES + MOMENT_BYTES * weft_config_moments(bench->options->config));
    double alone = 0, beside = 0; /* bytes a ns */
    list_flows(bench, flows);
    WEFT_TRY(weft_measure_together(bench->options, flows + COPIES, bench->threads, alone_ns, err));
    for (int32_t t = 0; t < bench->threads; t++)
        atomic_store(&bench->updates[t].done, 0);
    WEFT_TRY(weft_measure_together(bench->options, flows, COPIES + bench->threads, beside_ns, err));
    for (int32_t t = 0; t < bench->threads; t++) {
        alone += (double)bytes / (double)alone_ns[t];
        beside += (double)bytes / (double)beside_ns[COPIES + t];
    }
    out->threads = bench->threads;
    out->update_bytes_per_s = (int64_t)(1e9 * alone);
    out->updates_beside =
        beside < alone ? (int64_t)(WEFT_RATE_ONE * (beside / alone)) : WEFT_RATE_ONE;
    if (out->updates_beside < 1) out->updates_beside = 1;
    return WEFT_OK;
}

static enum weft_status run_bench(struct host_bench *bench, struct weft_pool *pool,
                                  struct weft_profile_host *out, struct weft_error *err)
{
    struct measure_flow *flows[COPIES + MOST_THREADS];
    int64_t beside_ns[COPIES];
    WEFT_TRY(time_copies(bench, WEFT_COPY_DOWN, pool, &out->down, err));
    WEFT_TRY(time_copies(bench, WEFT_COPY_UP, pool, &out->up, err));
    list_flows(bench, flows);
    WEFT_TRY(weft_measure_together(bench->options, flows, COPIES, beside_ns, err));
    out->down_beside = weft_measure_share(out->down.ns[out->down.n - 1], beside_ns[WEFT_COPY_DOWN]);
    out->up_beside = weft_measure_share(out->up.ns[out->up.n - 1], beside_ns[WEFT_COPY_UP]);
    WEFT_TRY(time_updates(bench, out, err));
    out->given = true;
    return WEFT_OK;
}

enum weft_status weft_measure_host(const struct weft_measure_options *options,
                                   struct weft_pool *pool, struct weft_profile_host *out,
                                   struct weft_error *err)
{
    struct host_bench *bench = calloc(1, sizeof *bench);
    if (bench == NULL) return weft_fail_memory(err, "the measurement");
    bench->options = options;
    enum weft_status status = open_bench(bench, err);
    if (status == WEFT_OK) status = run_bench(bench, pool, out, err);
    if (status == WEFT_OK) weft_tier_warn(bench->tier);
    close_bench(bench);
    return status;
}
