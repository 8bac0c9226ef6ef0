/* SPDX-License-Identifier: Apache-2.0 */
/* Measures reads and writes of a store at several block sizes and numbers of threads, and chooses
 * the best. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "offload/store.h"
#include "offload/tier.h"
#include "runtime/measure/tiers.h"

enum {
    PAGE_BYTES = 4096,
    LARGE_PAGE_BYTES = 2 << 20,
    MOST_RING_BYTES = 128 << 20, /* one half for each direction */
    MOST_FILE_BYTES = 256 << 20,
    LEAST_BLOCK_BYTES = 64 << 10,
    FIRST_BLOCK_BYTES = 1 << 20, /* for the choice of threads */
    MOST_BLOCK_BYTES = 16 << 20,
    BLOCK_STEP = 4,
    MOST_THREADS = 16,
    LEAST_BLOCKS = 8 /* in the file; each direction has half of them */
};
#define ENOUGH 0.95 /* share of the best speed */

struct disk_bench {
    const struct weft_measure_options *options;
    struct weft_tier *tier;
    unsigned char *rings[WEFT_STORE_DIRECTIONS];
    int64_t ring_bytes, file_bytes;
    bool told; /* the disk's warnings were reported */
    char file_system[24];
};

/* A store with one block size and number of threads. */
struct disk_try {
    struct disk_bench *bench;
    int64_t block_bytes, threads, seats;
    struct weft_store *store;
    int64_t n_blocks;
};

struct store_context {
    const struct disk_try *of;
    enum weft_store_direction direction;
    int64_t first, n; /* its blocks */
};

static enum weft_status submit_block(void *context, int64_t number, int32_t seat, int64_t *ticket,
                                     struct weft_error *err)
{
    const struct store_context *c = context;
    const struct disk_try *t = c->of;
    const int64_t block = c->first + number % c->n;
    const struct weft_memory_span span = {t->bench->rings[c->direction] + seat * t->block_bytes,
                                          t->block_bytes};
    return c->direction == WEFT_STORE_READ
               ? weft_store_submit_read(t->store, block, &span, 1, ticket, err)
               : weft_store_submit_write(t->store, block, 1, &span, 1, ticket, err);
}

static bool block_is_done(void *context, int64_t ticket)
{
    const struct store_context *c = context;
    return weft_store_is_done(c->of->store, c->direction, ticket);
}

static enum weft_status wait_for_block(void *context, int64_t ticket, struct weft_error *err)
{
    const struct store_context *c = context;
    return weft_store_wait(c->of->store, c->direction, ticket, err);
}

static struct measure_flow flow_of(struct store_context *context)
{
    const int32_t seats = (int32_t)context->of->seats;
    return (struct measure_flow){.context = context,
                                 .submit = submit_block,
                                 .is_done = block_is_done,
                                 .wait = wait_for_block,
                                 .seats = seats,
                                 .least = 2 * seats};
}

/* Writes all blocks once, so that reads find data. */
static enum weft_status write_all(const struct disk_try *t, struct weft_error *err)
{
    struct store_context context = {t, WEFT_STORE_WRITE, 0, t->n_blocks};
    struct measure_flow flow = flow_of(&context), *one = &flow;
    flow.least = t->n_blocks;
    return weft_measure_flows(&one, 1, 0, err);
}

static enum weft_status open_try(struct disk_try *t, struct weft_error *err)
{
    struct disk_bench *bench = t->bench;
    const struct weft_cluster *cluster = &bench->options->config->cluster;
    const struct weft_store_options options = {
        .directory = cluster->disk.path,
        .threads = (int32_t)t->threads,
        .requests = (int32_t)t->seats,
        .spans = 1,
        .timeout_ns = weft_cluster_timeout_ns(cluster),
        .unverified = !cluster->disk.verify,
        .quiet = bench->told,
    };
    t->n_blocks = bench->file_bytes / t->block_bytes;
    struct weft_store_block *blocks = calloc((size_t)t->n_blocks, sizeof *blocks);
    if (blocks == NULL) return weft_fail_memory(err, "the measurement");
    for (int64_t i = 0; i < t->n_blocks; i++)
        blocks[i] = (struct weft_store_block){.bytes = t->block_bytes, .index = (int32_t)i};
    enum weft_status status = weft_store_open(&options, &t->store, err);
    bench->told = true;
    if (status == WEFT_OK) status = weft_store_reserve(t->store, blocks, t->n_blocks, err);
    free(blocks);
    return status == WEFT_OK ? write_all(t, err) : status;
}

/* Writes a block's time for each direction alone. */
static enum weft_status time_alone(const struct disk_try *t, int64_t ns[WEFT_STORE_DIRECTIONS],
                                   struct weft_error *err)
{
    for (int direction = 0; direction < WEFT_STORE_DIRECTIONS; direction++) {
        struct store_context context = {t, (enum weft_store_direction)direction, 0, t->n_blocks};
        struct measure_flow flow = flow_of(&context), *one = &flow;
        WEFT_TRY(weft_measure_together(t->bench->options, &one, 1, &ns[direction], err));
    }
    return WEFT_OK;
}

/* Writes a block's time while both directions work, each in one half of the file. */
static enum weft_status time_beside(const struct disk_try *t, int64_t ns[WEFT_STORE_DIRECTIONS],
                                    struct weft_error *err)
{
    const int64_t half = t->n_blocks / 2;
    struct store_context contexts[WEFT_STORE_DIRECTIONS];
    struct measure_flow flows[WEFT_STORE_DIRECTIONS], *list[WEFT_STORE_DIRECTIONS];
    for (int direction = 0; direction < WEFT_STORE_DIRECTIONS; direction++) {
        contexts[direction] =
            (struct store_context){t, (enum weft_store_direction)direction, direction * half, half};
        flows[direction] = flow_of(&contexts[direction]);
        list[direction] = &flows[direction];
    }
    return weft_measure_together(t->bench->options, list, WEFT_STORE_DIRECTIONS, ns, err);
}

static bool does_fit(const struct disk_bench *bench, int64_t block_bytes, int64_t seats)
{
    return seats * block_bytes <= bench->ring_bytes &&
           LEAST_BLOCKS * block_bytes <= bench->file_bytes;
}

/* Time in ns a byte to read and write a block. */
static double block_cost(const int64_t ns[WEFT_STORE_DIRECTIONS], int64_t bytes)
{
    return (double)(ns[WEFT_STORE_READ] + ns[WEFT_STORE_WRITE]) / (double)bytes;
}

/* The smallest size with a cost near the best. costs[i] is of sizes[i]. */
static int64_t choose_size(const int64_t *sizes, const double *costs, int32_t n)
{
    double best = costs[0];
    for (int32_t i = 1; i < n; i++)
        if (costs[i] < best) best = costs[i];
    for (int32_t i = 0; i < n; i++)
        if (costs[i] <= best / ENOUGH) return sizes[i];
    return sizes[n - 1];
}

static enum weft_status try_alone(struct disk_bench *bench, int64_t block_bytes, int64_t threads,
                                  int64_t ns[WEFT_STORE_DIRECTIONS], struct weft_error *err)
{
    struct disk_try t = {
        .bench = bench, .block_bytes = block_bytes, .threads = threads, .seats = 2 * threads};
    enum weft_status status = open_try(&t, err);
    if (status == WEFT_OK) status = time_alone(&t, ns, err);
    weft_store_destroy(t.store);
    return status;
}

static enum weft_status count_threads(struct disk_bench *bench, int64_t *threads,
                                      struct weft_error *err)
{
    int64_t sizes[MEASURE_POINTS], ns[WEFT_STORE_DIRECTIONS], block = FIRST_BLOCK_BYTES;
    double costs[MEASURE_POINTS];
    int32_t n = 0;
    while (block > LEAST_BLOCK_BYTES && !does_fit(bench, block, 2 * MOST_THREADS))
        block /= BLOCK_STEP;
    for (int64_t count = 1; count <= MOST_THREADS && does_fit(bench, block, 2 * count);
         count *= 2) {
        WEFT_TRY(try_alone(bench, block, count, ns, err));
        sizes[n] = count;
        costs[n++] = block_cost(ns, block);
    }
    *threads = choose_size(sizes, costs, n);
    return WEFT_OK;
}

static enum weft_status time_sizes(struct disk_bench *bench, struct weft_pool *pool,
                                   struct weft_profile_disk *out, struct weft_error *err)
{
    int64_t *x = weft_pool_array(pool, MEASURE_POINTS, sizeof *x), both[WEFT_STORE_DIRECTIONS];
    int64_t *read_ns = weft_pool_array(pool, MEASURE_POINTS, sizeof *read_ns);
    int64_t *write_ns = weft_pool_array(pool, MEASURE_POINTS, sizeof *write_ns);
    double costs[MEASURE_POINTS];
    int32_t n = 0;
    if (x == NULL || read_ns == NULL || write_ns == NULL) return weft_fail_memory(err, "a profile");
    for (int64_t size = LEAST_BLOCK_BYTES;
         size <= MOST_BLOCK_BYTES && does_fit(bench, size, 2 * out->threads); size *= BLOCK_STEP) {
        WEFT_TRY(try_alone(bench, size, out->threads, both, err));
        x[n] = size;
        read_ns[n] = both[WEFT_STORE_READ];
        write_ns[n] = both[WEFT_STORE_WRITE];
        costs[n++] = block_cost(both, size);
        if (both[WEFT_STORE_READ] + both[WEFT_STORE_WRITE] > MEASURE_SLOW_NS) break;
    }
    out->block_bytes = choose_size(x, costs, n);
    out->read = (struct weft_curve){.n = n, .x = x, .ns = read_ns};
    out->write = (struct weft_curve){.n = n, .x = x, .ns = write_ns};
    return WEFT_OK;
}

/* Times both directions together, and half the seats. One store serves all, so times are
 * comparable. */
static enum weft_status time_chosen(struct disk_bench *bench, struct weft_profile_disk *out,
                                    struct weft_error *err)
{
    int64_t alone[WEFT_STORE_DIRECTIONS], beside[WEFT_STORE_DIRECTIONS];
    int64_t fewer[WEFT_STORE_DIRECTIONS];
    struct disk_try t = {.bench = bench,
                         .block_bytes = out->block_bytes,
                         .threads = out->threads,
                         .seats = 2 * out->threads};
    enum weft_status status;
    WEFT_TRY_GOTO(done, open_try(&t, err));
    WEFT_TRY_GOTO(done, time_alone(&t, alone, err));
    WEFT_TRY_GOTO(done, time_beside(&t, beside, err));
    out->read_beside = weft_measure_share(alone[WEFT_STORE_READ], beside[WEFT_STORE_READ]);
    out->write_beside = weft_measure_share(alone[WEFT_STORE_WRITE], beside[WEFT_STORE_WRITE]);
    out->duplex = weft_measure_duplex(out->read_beside, out->write_beside);
    t.seats = out->threads;
    WEFT_TRY_GOTO(done, time_alone(&t, fewer, err));
    const int64_t seats[] = {out->threads, 2 * out->threads};
    const double costs[] = {block_cost(fewer, out->block_bytes),
                            block_cost(alone, out->block_bytes)};
    out->seats = choose_size(seats, costs, 2);
    weft_store_warn(t.store);
    snprintf(bench->file_system, sizeof bench->file_system, "%s",
             weft_store_facts(t.store)->file_system);
done:
    weft_store_destroy(t.store);
    return status;
}

/* Directions that take turns have half their speed each; independent ones have all of it. */
enum weft_duplex weft_measure_duplex(int64_t read_beside, int64_t write_beside)
{
    return 2 * (read_beside + write_beside) < 3 * WEFT_RATE_ONE ? WEFT_DUPLEX_HALF
                                                                : WEFT_DUPLEX_FULL;
}

static enum weft_status open_rings(struct disk_bench *bench, struct weft_error *err)
{
    const struct weft_cluster *cluster = &bench->options->config->cluster;
    const int64_t limit = cluster->disk.limit_bytes;
    int64_t bytes = MOST_RING_BYTES;
    if (cluster->host.given && cluster->host.memory_limit_bytes < bytes)
        bytes = cluster->host.memory_limit_bytes;
    const int64_t page = bytes >= 2 * LARGE_PAGE_BYTES ? LARGE_PAGE_BYTES : PAGE_BYTES;
    bytes -= bytes % (2 * page);
    bench->ring_bytes = bytes / 2;
    bench->file_bytes = limit < MOST_FILE_BYTES ? limit : MOST_FILE_BYTES;
    if (!does_fit(bench, LEAST_BLOCK_BYTES, 2)) {
        char file[WEFT_UNITS_TEXT_BYTES], ring[WEFT_UNITS_TEXT_BYTES];
        return weft_fail(err, WEFT_E_DATA,
                         "the disk cannot be measured with so little: cluster.disk.limit must be "
                         "%s or more, and a cluster.host.memory_limit %s",
                         weft_units_show_bytes(LEAST_BLOCKS * LEAST_BLOCK_BYTES, file),
                         weft_units_show_bytes(4 * LEAST_BLOCK_BYTES, ring));
    }
    const struct weft_tier_options options = {
        .name = "ring", .page_bytes = page, .pages = bytes / page};
    WEFT_TRY(weft_tier_create(&options, &bench->tier, err));
    bench->rings[WEFT_STORE_READ] = weft_tier_memory(bench->tier).at;
    bench->rings[WEFT_STORE_WRITE] = bench->rings[WEFT_STORE_READ] + bench->ring_bytes;
    return WEFT_OK;
}

static enum weft_status name_disk(const struct disk_bench *bench, struct weft_pool *pool,
                                  struct weft_profile_disk *out, struct weft_error *err)
{
    const struct weft_disk_spec *spec = &bench->options->config->cluster.disk;
    char *real = realpath(spec->path, NULL);
    out->path = weft_pool_string(pool, real != NULL ? real : spec->path);
    out->file_system = weft_pool_string(pool, bench->file_system);
    free(real);
    out->verified = spec->verify;
    out->given = true;
    return out->path != NULL && out->file_system != NULL ? WEFT_OK
                                                         : weft_fail_memory(err, "a profile");
}

enum weft_status weft_measure_disk(const struct weft_measure_options *options,
                                   struct weft_pool *pool, struct weft_profile_disk *out,
                                   struct weft_error *err)
{
    /* Only rank 0 reports warnings. */
    struct disk_bench bench = {.options = options, .told = weft_comm_rank(options->comm) != 0};
    enum weft_status status = open_rings(&bench, err);
    if (status == WEFT_OK) status = count_threads(&bench, &out->threads, err);
    if (status == WEFT_OK) status = time_sizes(&bench, pool, out, err);
    if (status == WEFT_OK) status = time_chosen(&bench, out, err);
    if (status == WEFT_OK) status = name_disk(&bench, pool, out, err);
    weft_tier_destroy(bench.tier);
    return status;
}
