/* SPDX-License-Identifier: Apache-2.0 */
/* Measures copies between the host tier and a device that copies by itself, as a GPU does: pinned
 * memory, a stream each way, and times by the device's own clock. */
#include <stdlib.h>

#include "offload/tier.h"
#include "runtime/arena/copy.h"
#include "runtime/measure/measure.h"
#include "runtime/measure/tiers.h"

enum {
    LARGE_PAGE_BYTES = 2 << 20,
    MOST_BYTES = 256 << 20, /* of the tier used for measuring; a half each way */
    LEAST_BYTES = WEFT_COPY_DIRECTIONS * LARGE_PAGE_BYTES,
    LEAST_BLOCK_BYTES = 64 << 10,
    BLOCK_STEP = 4, /* factor between block sizes */
    LEAST_ROUNDS = 4,
    MOST_ROUNDS = 64,
    DIRECTIONS = WEFT_COPY_DIRECTIONS
};
/* Time for one block size. */
#define BUDGET_NS (INT64_C(50) * 1000000)

struct device_bench {
    const struct weft_measure_options *options;
    struct weft_tier *tier;
    struct weft_arena *arena;
    bool pinned;
    unsigned char *host, *device;
    int64_t half_bytes; /* of the tier and of the arena, for each direction */
    struct weft_stream *streams[DIRECTIONS];
    int64_t stamps[DIRECTIONS][MOST_ROUNDS + 1]; /* before the first copy, and after each */
};

static enum weft_status open_device_bench(struct device_bench *bench, struct weft_error *err)
{
    static const char *const names[DIRECTIONS] = {[WEFT_COPY_DOWN] = "down", [WEFT_COPY_UP] = "up"};
    const int64_t limit = bench->options->config->cluster.host.memory_limit_bytes;
    const int64_t bytes = limit < MOST_BYTES ? limit : MOST_BYTES;
    const struct weft_tier_options tier = {.name = "host",
                                           .page_bytes = LARGE_PAGE_BYTES,
                                           .pages =
                                               bytes / LARGE_PAGE_BYTES / DIRECTIONS * DIRECTIONS};
    const struct weft_arena_shape shape = weft_arena_whole(tier.pages * LARGE_PAGE_BYTES);
    bench->half_bytes = tier.pages / DIRECTIONS * LARGE_PAGE_BYTES;
    WEFT_TRY(weft_measure_check_host(bench->options->config, LEAST_BYTES, err));
    WEFT_TRY(weft_tier_create(&tier, &bench->tier, err));
    bench->host = weft_tier_memory(bench->tier).at;
    WEFT_TRY(weft_comm_map_arena(bench->options->comm, &shape, NULL, &bench->arena, err));
    bench->device = weft_arena_address(bench->arena);
    WEFT_TRY(weft_arena_pin(bench->arena, weft_tier_memory(bench->tier), err));
    bench->pinned = true;
    for (int d = 0; d < DIRECTIONS; d++)
        WEFT_TRY(weft_stream_create(bench->options->device, names[d], 0, &bench->streams[d], err));
    return WEFT_OK;
}

static void close_device_bench(struct device_bench *bench)
{
    for (int d = 0; d < DIRECTIONS; d++)
        if (bench->streams[d] != NULL) weft_stream_destroy(bench->streams[d]);
    if (bench->pinned) weft_arena_unpin(bench->arena, weft_tier_memory(bench->tier));
    if (bench->arena != NULL) weft_comm_unmap_arena(bench->options->comm);
    weft_tier_destroy(bench->tier);
    free(bench);
}

/* Copies a block of a direction's half. Successive rounds use successive places. */
static void push_block(struct device_bench *bench, int direction, int64_t bytes, int64_t round)
{
    const int64_t places = bench->half_bytes / bytes;
    const int64_t at = direction * bench->half_bytes + round % places * bytes;
    const struct weft_arena_copy copy = {.direction = (enum weft_copy_direction)direction,
                                         .n = 1,
                                         .at = {bench->device + at},
                                         .outside = {{bench->host + at, bytes}}};
    weft_arena_copy(bench->arena, bench->streams[direction], &copy);
    weft_stream_stamp(bench->streams[direction], &bench->stamps[direction][round + 1]);
}

/* Copies `rounds` blocks in each direction of the mask (1 << direction), in turns, and writes each
 * one's median time of a block. */
static enum weft_status time_rounds(struct device_bench *bench, int directions, int64_t bytes,
                                    int64_t rounds, int64_t ns[DIRECTIONS], struct weft_error *err)
{
    WEFT_TRY(weft_comm_exchange(bench->options->comm, NULL, 0, NULL, err));
    for (int d = 0; d < DIRECTIONS; d++)
        if ((directions & 1 << d) != 0) weft_stream_stamp(bench->streams[d], &bench->stamps[d][0]);
    for (int64_t r = 0; r < rounds; r++)
        for (int d = 0; d < DIRECTIONS; d++)
            if ((directions & 1 << d) != 0) push_block(bench, d, bytes, r);
    for (int d = 0; d < DIRECTIONS; d++) {
        int64_t times[MOST_ROUNDS];
        if ((directions & 1 << d) == 0) continue;
        WEFT_TRY(weft_stream_synchronise(bench->streams[d], err));
        for (int64_t r = 0; r < rounds; r++)
            times[r] = bench->stamps[d][r + 1] - bench->stamps[d][r];
        ns[d] = weft_measure_median(times, rounds);
        if (ns[d] < 1) ns[d] = 1;
    }
    return weft_measure_most(bench->options->comm, ns, DIRECTIONS, err);
}

/* Times as many blocks as fit into the budget, after one that warms up. */
static enum weft_status time_block(struct device_bench *bench, int directions, int64_t bytes,
                                   int64_t ns[DIRECTIONS], struct weft_error *err)
{
    int64_t warm_ns[DIRECTIONS] = {0};
    WEFT_TRY(time_rounds(bench, directions, bytes, 1, warm_ns, err));
    const int64_t slower =
        warm_ns[0] > warm_ns[DIRECTIONS - 1] ? warm_ns[0] : warm_ns[DIRECTIONS - 1];
    int64_t rounds = BUDGET_NS / (slower > 0 ? slower : 1);
    int64_t most = bench->options->rounds > 0 ? bench->options->rounds : MOST_ROUNDS;
    if (most > MOST_ROUNDS) most = MOST_ROUNDS;
    if (rounds < LEAST_ROUNDS) rounds = LEAST_ROUNDS;
    return time_rounds(bench, directions, bytes, rounds < most ? rounds : most, ns, err);
}

static enum weft_status time_direction(struct device_bench *bench, int direction,
                                       struct weft_pool *pool, struct weft_curve *out,
                                       struct weft_error *err)
{
    int64_t *x = weft_pool_array(pool, MEASURE_POINTS, sizeof *x);
    int64_t *ns = weft_pool_array(pool, MEASURE_POINTS, sizeof *ns);
    if (x == NULL || ns == NULL) return weft_fail_memory(err, "a profile");
    int32_t n = 0;
    for (int64_t size = LEAST_BLOCK_BYTES; size <= bench->half_bytes && n < MEASURE_POINTS;
         size *= BLOCK_STEP) {
        int64_t times[DIRECTIONS] = {0};
        WEFT_TRY(time_block(bench, 1 << direction, size, times, err));
        x[n] = size;
        ns[n++] = times[direction];
    }
    *out = (struct weft_curve){.n = n, .x = x, .ns = ns};
    return WEFT_OK;
}

static enum weft_status run_device_bench(struct device_bench *bench, struct weft_pool *pool,
                                         struct weft_profile_host *out, struct weft_error *err)
{
    int64_t beside_ns[DIRECTIONS] = {0};
    WEFT_TRY(time_direction(bench, WEFT_COPY_DOWN, pool, &out->down, err));
    WEFT_TRY(time_direction(bench, WEFT_COPY_UP, pool, &out->up, err));
    const int32_t last = out->down.n - 1;
    WEFT_TRY(time_block(bench, 1 << WEFT_COPY_DOWN | 1 << WEFT_COPY_UP, out->down.x[last],
                        beside_ns, err));
    out->down_beside = weft_measure_share(out->down.ns[last], beside_ns[WEFT_COPY_DOWN]);
    out->up_beside = weft_measure_share(out->up.ns[last], beside_ns[WEFT_COPY_UP]);
    out->updates_beside = WEFT_RATE_ONE; /* a GPU's host updates nothing: the rate stays unknown */
    out->given = true;
    return WEFT_OK;
}

enum weft_status weft_measure_device_copies(const struct weft_measure_options *options,
                                            struct weft_pool *pool, struct weft_profile_host *out,
                                            struct weft_error *err)
{
    struct device_bench *bench = calloc(1, sizeof *bench);
    if (bench == NULL) return weft_fail_memory(err, "the measurement");
    bench->options = options;
    enum weft_status status = open_device_bench(bench, err);
    if (status == WEFT_OK) status = run_device_bench(bench, pool, out, err);
    close_device_bench(bench);
    return status;
}
