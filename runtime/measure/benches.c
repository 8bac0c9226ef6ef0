/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "runtime/comm/branch.h"
#include "runtime/measure/measure.h"
#include "runtime/measure/parts.h"
#include "runtime/nn/units.h"
#include "shard/shard.h"

enum {
    MOST_ROUNDS = 128, /* enough that a disturbance of a few ms is not the median */
    LEAST_ROUNDS = 3,
    LEAST_COLLECTIVE_BYTES = 1 << 10,
    MOST_COLLECTIVE_BYTES = 1 << 26,
    LEAST_PASS_ELEMENTS = 1 << 10,
    MOST_PASS_ELEMENTS = 1 << 22,
    FUSED_ELEMENTS = 1 << 20, /* small layers may share a unit of about this size */
    PASS_ARRAYS = 4,          /* parameter, gradient, two moments */
    /* In a real step operands are rarely in a cache, so operations walk through memory of this
     * size. */
    WALK_BYTES = 1 << 25,
    /* Memory before the walk: bins, a word, and the scalars of a step. */
    BINS_BYTES = WEFT_NORM_WORDS * 8,
    STEP_AT = BINS_BYTES + 16,
    HEAD_BYTES = BINS_BYTES + 4096,
    UNITS = 2 * WEFT_STREAM_QUEUE /* more than can be pending */
};
/* Time for one size. If one operation takes longer than SLOW_NS, larger sizes are extrapolated. */
#define BUDGET_NS (INT64_C(50) * 1000000)
#define SLOW_NS   (INT64_C(200) * 1000000)
/* A GPU at rest has low clocks, which rise within this time of work. */
#define RISE_NS (INT64_C(300) * 1000000)

struct bench {
    const struct weft_measure_options *options;
    struct weft_stream *stream;
    struct weft_arena *arena;
    unsigned char *base;                        /* its address */
    struct weft_comm *levels[WEFT_GROUP_COUNT]; /* branches of measured levels */
    int64_t walk_bytes;
    struct weft_nn_rule rule;
    struct weft_nn_step step;
    struct weft_nn_piece piece;
    struct weft_nn_unit units[UNITS];
    int64_t turn;                    /* operations so far; selects the next place */
    int64_t stamps[MOST_ROUNDS + 1]; /* before the first, and after each */
};

/* Pushes one operation of size `x` on the stream. */
typedef void push_fn(struct bench *bench, int kind, int64_t x);

/* Offset of the next operation, which needs `bytes` bytes. Places cover the whole walk in turn. */
static int64_t next_place(struct bench *bench, int64_t bytes)
{
    int64_t places = bench->walk_bytes / bytes;
    return HEAD_BYTES + bench->turn++ % places * bytes;
}

static void push_collective(struct bench *bench, int kind, int64_t x)
{
    struct weft_comm *comm = bench->options->comm;
    int64_t slice_bytes = x / weft_comm_ranks(comm);
    const struct weft_train *train = &bench->options->config->train;
    enum weft_dtype dtype = (enum weft_dtype)(kind == WEFT_ALL_GATHER ? train->precision.compute
                                                                      : train->precision.reduce);
    int64_t place = next_place(bench, x + slice_bytes);
    struct weft_comm_block block = {
        .full_offset = place,
        .slice_offset = place + x,
        .slice_elements = slice_bytes / weft_dtype_bytes(dtype),
        .dtype = dtype,
        .slice_dtype = dtype,
    };
    switch ((enum weft_collective)kind) {
    case WEFT_ALL_GATHER:
        weft_comm_all_gather(comm, bench->stream, &block);
        break;
    case WEFT_REDUCE_SCATTER:
        weft_comm_reduce_scatter(comm, bench->stream, &block);
        break;
    case WEFT_ALL_REDUCE:
        weft_comm_all_reduce(comm, bench->stream, &block);
        break;
    case WEFT_COLLECTIVE_COUNT:
        break;
    }
}

/* Pushes a collective of one level, as hsdp and nodes have them. */
static void push_level(struct bench *bench, int level, int64_t x)
{
    const struct weft_train *train = &bench->options->config->train;
    const enum weft_collective kind = weft_link_levels[level].kind;
    const bool gathers = kind == WEFT_ALL_GATHER;
    const bool across = weft_link_levels[level].group == WEFT_GROUP_ACROSS;
    struct weft_comm *comm = bench->levels[weft_link_levels[level].group];
    const int64_t slice_bytes = x / weft_comm_ranks(comm);
    const enum weft_dtype dtype =
        (enum weft_dtype)(gathers ? train->precision.compute : train->precision.reduce);
    const int64_t place = next_place(bench, 2 * x);
    const struct weft_comm_block block = {
        .full_offset = place,
        .slice_offset = place + x,
        .slice_elements = slice_bytes / weft_dtype_bytes(across && !gathers ? WEFT_F32 : dtype),
        .dtype = dtype,
        .slice_dtype = gathers ? dtype : WEFT_F32,
        .partial = !gathers && !across,
        .of_partials = across && !gathers,
    };
    if (gathers)
        weft_comm_all_gather(comm, bench->stream, &block);
    else if (kind == WEFT_ALL_REDUCE)
        weft_comm_all_reduce(comm, bench->stream, &block);
    else
        weft_comm_reduce_scatter(comm, bench->stream, &block);
}

enum { PASS_UPDATE, PASS_NORM };

/* Pushes the update, or the norm, of a unit of one piece at the next place. */
static void push_pass(struct bench *bench, int kind, int64_t x)
{
    struct weft_nn *nn = bench->options->nn;
    const int64_t bytes = x * (int64_t)sizeof(float);
    const int32_t moments = weft_config_moments(bench->options->config);
    unsigned char *at = bench->base + next_place(bench, PASS_ARRAYS * bytes);
    void *words = bench->base, *step = bench->base + STEP_AT;
    struct weft_nn_unit *unit = &bench->units[bench->turn % UNITS];
    bench->piece.count = x;
    *unit = (struct weft_nn_unit){
        .parameters = at,
        .gradient = at + bytes,
        .moment1 = moments >= 1 ? at + 2 * bytes : NULL,
        .moment2 = moments >= 2 ? at + 3 * bytes : NULL,
        .own = &bench->piece,
        .n_own = 1,
        .renew = &bench->piece,
        .n_renew = 1,
        .norms = words,
        .norms_sum = words,
    };
    if (kind == PASS_NORM) {
        weft_nn_add_norm(nn, bench->stream, unit, words, bench->base + BINS_BYTES);
    } else if (weft_optimizer_row(bench->rule.type)->agrees) {
        weft_nn_moments(nn, bench->stream, unit, &bench->rule, step);
        weft_nn_apply(nn, bench->stream, unit, &bench->rule, step);
    } else {
        weft_nn_update(nn, bench->stream, unit, &bench->rule, step);
    }
}

/* Writes the scalars of updates, in front of the walk. */
static enum weft_status begin_passes(struct bench *bench, struct weft_error *err)
{
    const struct weft_optimizer first =
        weft_optimizer_at(&bench->options->config->train, 1, 1e-6, 1);
    bench->rule = (struct weft_nn_rule){first.type, first.exempt_vectors, first.decay};
    bench->step = (struct weft_nn_step){.adamw = first.adamw, .sgd = first.sgd, .loss_scale = 1};
    bench->piece.matrix = true;
    weft_arena_write(bench->arena, bench->stream, bench->base + STEP_AT, &bench->step,
                     sizeof bench->step);
    return weft_stream_synchronise(bench->stream, err);
}

static enum weft_status raise_clocks(struct bench *bench, int64_t elements, struct weft_error *err)
{
    const int64_t begin_ns = weft_clock_now_ns(), turn = bench->turn;
    if (bench->options->config->cluster.device.type == WEFT_DEVICE_CPU) return WEFT_OK;
    while (weft_clock_now_ns() - begin_ns < RISE_NS) {
        for (int i = 0; i < UNITS / 4; i++)
            push_pass(bench, PASS_UPDATE, elements);
        WEFT_TRY(weft_stream_synchronise(bench->stream, err));
    }
    bench->turn = turn; /* ranks differ in passes, and their collectives need equal offsets */
    return WEFT_OK;
}

/* Pushes `rounds` operations on all ranks at once. Differences of stamps are their times. */
static enum weft_status push_rounds(struct bench *bench, push_fn *push, int kind, int64_t x,
                                    int32_t rounds, struct weft_error *err)
{
    WEFT_TRY(weft_comm_exchange(bench->options->comm, NULL, 0, NULL, err));
    weft_stream_stamp(bench->stream, &bench->stamps[0]);
    for (int32_t r = 0; r < rounds; r++) {
        push(bench, kind, x);
        weft_stream_stamp(bench->stream, &bench->stamps[r + 1]);
    }
    return weft_stream_synchronise(bench->stream, err);
}

/* Writes the median over rounds, of the slowest rank. All ranks do the same number of rounds. */
static enum weft_status time_one(struct bench *bench, push_fn *push, int kind, int64_t x,
                                 int64_t *ns, struct weft_error *err)
{
    int32_t most = bench->options->rounds > 0 ? bench->options->rounds : MOST_ROUNDS;
    if (most > MOST_ROUNDS) most = MOST_ROUNDS;
    WEFT_TRY(push_rounds(bench, push, kind, x, 2, err));
    int64_t warm_ns = bench->stamps[2] - bench->stamps[1];
    WEFT_TRY(weft_measure_most(bench->options->comm, &warm_ns, 1, err));
    int64_t rounds = BUDGET_NS / (warm_ns > 0 ? warm_ns : 1);
    if (rounds > most) rounds = most;
    if (rounds < LEAST_ROUNDS) rounds = LEAST_ROUNDS;
    WEFT_TRY(push_rounds(bench, push, kind, x, (int32_t)rounds, err));
    int64_t times[MOST_ROUNDS];
    for (int64_t r = 0; r < rounds; r++)
        times[r] = bench->stamps[r + 1] - bench->stamps[r];
    *ns = weft_measure_median(times, rounds);
    return weft_measure_most(bench->options->comm, ns, 1, err);
}

/* Times sizes from `least`, doubling, until `most`. It stops early if one operation takes longer
 * than SLOW_NS: the curve's last slope then continues. Sizes are multiples of `unit`. */
static enum weft_status time_sizes(struct bench *bench, push_fn *push, int kind, int64_t least,
                                   int64_t most, int64_t unit, struct measure_curve *out,
                                   struct weft_error *err)
{
    out->n = 0;
    for (int64_t size = least; out->n < MEASURE_POINTS; size *= 2) {
        int64_t x = (size + unit - 1) / unit * unit, ns = 0;
        WEFT_TRY(time_one(bench, push, kind, x, &ns, err));
        out->x[out->n] = x;
        out->ns[out->n++] = ns;
        if (size >= most || (ns > SLOW_NS && out->n > 1)) break;
    }
    return WEFT_OK;
}

static int64_t clamp_value(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* Elements of the largest unit for any choice of blocks. */
static enum weft_status largest_unit(const struct weft_config *config, int64_t *elements,
                                     struct weft_error *err)
{
    struct weft_block_rule rule = {.blocks = 1, .element_bytes = sizeof(float)};
    struct weft_shards *shards;
    WEFT_TRY(weft_shards_create(config->model, config->cluster.ranks, &rule, &shards, err));
    *elements = 0;
    for (int32_t u = 0; u < shards->n_units; u++) {
        if (shards->units[u].padded_elements > *elements)
            *elements = shards->units[u].padded_elements;
    }
    int64_t fused = config->model->parameters;
    if (fused > FUSED_ELEMENTS) fused = FUSED_ELEMENTS;
    if (fused > *elements) *elements = fused;
    weft_shards_destroy(shards);
    return WEFT_OK;
}

/* An emulated link has one level. */
static bool has_levels(const struct weft_measure_options *options)
{
    const struct weft_cluster *cluster = &options->config->cluster;
    return cluster->ranks_per_node > 1 && cluster->ranks > cluster->ranks_per_node &&
           !cluster->emulate_link;
}

static enum weft_status time_levels(struct bench *bench, int64_t most_bytes,
                                    struct measure_curve out[WEFT_LINK_LEVELS],
                                    struct weft_error *err)
{
    struct weft_comm *all = bench->options->comm;
    if (!has_levels(bench->options)) return WEFT_OK;
    for (int level = 0; level < WEFT_LINK_LEVELS; level++) {
        const enum weft_rank_group group = weft_link_levels[level].group;
        WEFT_TRY(weft_comm_branch(all, "measure", group, &bench->levels[group], err));
        const struct weft_comm *comm = bench->levels[group];
        const int64_t unit =
            weft_comm_ranks(comm) * WEFT_SLICE_ALIGN_ELEMENTS * (int64_t)sizeof(float);
        WEFT_TRY(time_sizes(bench, push_level, level,
                            unit > LEAST_COLLECTIVE_BYTES ? unit : LEAST_COLLECTIVE_BYTES,
                            most_bytes, unit, &out[level], err));
    }
    return WEFT_OK;
}

static enum weft_status run_all(struct bench *bench, int64_t elements, struct measure_benches *out,
                                struct weft_error *err)
{
    int64_t ranks = weft_comm_ranks(bench->options->comm);
    int64_t slice_unit = ranks * WEFT_SLICE_ALIGN_ELEMENTS * (int64_t)sizeof(float);
    int64_t most_bytes = clamp_value(elements * (int64_t)sizeof(float), LEAST_COLLECTIVE_BYTES,
                                     MOST_COLLECTIVE_BYTES);
    int64_t most_elements = clamp_value(elements, LEAST_PASS_ELEMENTS, MOST_PASS_ELEMENTS);
    struct weft_watch *watch = bench->options->watch;
    int64_t done = 0, n = WEFT_COLLECTIVE_COUNT + 3;
    WEFT_TRY(raise_clocks(bench, most_elements, err));
    for (int kind = 0; kind < WEFT_COLLECTIVE_COUNT; kind++) {
        weft_watch_count(watch, "operation", done++, n);
        WEFT_TRY(
            time_sizes(bench, push_collective, kind,
                       slice_unit > LEAST_COLLECTIVE_BYTES ? slice_unit : LEAST_COLLECTIVE_BYTES,
                       most_bytes, slice_unit, &out->collectives[kind], err));
    }
    weft_watch_count(watch, "operation", done++, n);
    WEFT_TRY(time_levels(bench, most_bytes, out->levels, err));
    weft_watch_count(watch, "operation", done++, n);
    WEFT_TRY(time_sizes(bench, push_pass, PASS_UPDATE, LEAST_PASS_ELEMENTS, most_elements, 1,
                        &out->update, err));
    weft_watch_count(watch, "operation", done, n);
    return time_sizes(bench, push_pass, PASS_NORM, LEAST_PASS_ELEMENTS, most_elements, 1,
                      &out->norm, err);
}

enum weft_status weft_measure_run_benches(const struct weft_measure_options *options,
                                          struct measure_benches *out, struct weft_error *err)
{
    int64_t elements;
    WEFT_TRY(largest_unit(options->config, &elements, err));
    struct bench *bench = calloc(1, sizeof *bench);
    if (bench == NULL) return weft_fail_memory(err, "the measurement");
    bench->options = options;
    /* The last size may be twice the wanted one, and a collective needs block and slice. */
    int64_t pass_bytes = 2 * PASS_ARRAYS * (int64_t)sizeof(float) *
                         clamp_value(elements, LEAST_PASS_ELEMENTS, MOST_PASS_ELEMENTS);
    int64_t ranks = weft_comm_ranks(options->comm);
    int64_t block_bytes =
        4 * clamp_value(elements * (int64_t)sizeof(float),
                        ranks * WEFT_SLICE_ALIGN_ELEMENTS * (int64_t)sizeof(float),
                        MOST_COLLECTIVE_BYTES);
    bench->walk_bytes = pass_bytes > block_bytes ? pass_bytes : block_bytes;
    if (bench->walk_bytes < WALK_BYTES) bench->walk_bytes = WALK_BYTES;
    const struct weft_arena_shape whole = weft_arena_whole(HEAD_BYTES + bench->walk_bytes);
    enum weft_status status = weft_comm_map_arena(options->comm, &whole, NULL, &bench->arena, err);
    if (status == WEFT_OK) bench->base = weft_arena_address(bench->arena);
    if (status == WEFT_OK)
        status = weft_stream_create(options->device, "measure", 0, &bench->stream, err);
    if (status == WEFT_OK) status = begin_passes(bench, err);
    if (status == WEFT_OK) status = run_all(bench, elements, out, err);
    if (bench->stream != NULL) weft_stream_destroy(bench->stream);
    if (bench->arena != NULL) weft_comm_unmap_arena(options->comm);
    free(bench);
    return status;
}
