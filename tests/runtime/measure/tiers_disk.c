/* SPDX-License-Identifier: Apache-2.0 */
/* The choices of a disk's bench, on a disk with known times: the linker gives its calls of
 * weft_measure_together and of the store to this test. Blocks are moved for real. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offload/store.h"
#include "runtime/measure/tiers.h"
#include "tests/runtime/exec/job.h"

enum { KIB = 1 << 10, MIB = 1 << 20 };

enum phase { PHASE_READS, PHASE_WRITES, PHASE_BOTH, PHASE_FEWER_READS, PHASE_FEWER_WRITES };

/* A disk, and the calls of the bench that measures it. */
static struct {
    bool replaced;
    /* ns of a read and write of 64 KiB with the fewest threads, halved by each doubling until
     * `most_threads`; larger blocks take `per_mille` of that time a byte. */
    int64_t block_ns, most_threads, per_mille;
    int64_t read_beside_ns, write_beside_ns, fewer_ns; /* as parts of 1000 of the time alone */
    /* The bench's state. */
    int32_t stores, threads, seats, quiet;
    int64_t block_bytes, blocks;
    enum phase phase;
    int64_t least_read, most_read, least_write, most_write;
    const unsigned char *reads_from, *reads_to, *writes_from, *writes_to;
} disk;

enum weft_status __real_weft_store_open(const struct weft_store_options *options,
                                        struct weft_store **out, struct weft_error *err);
enum weft_status __wrap_weft_store_open(const struct weft_store_options *options,
                                        struct weft_store **out, struct weft_error *err);
enum weft_status __wrap_weft_store_open(const struct weft_store_options *options,
                                        struct weft_store **out, struct weft_error *err)
{
    disk.stores++;
    disk.threads = options->threads;
    disk.seats = options->requests;
    disk.quiet += options->quiet;
    disk.phase = PHASE_READS;
    return __real_weft_store_open(options, out, err);
}

enum weft_status __real_weft_store_reserve(struct weft_store *store,
                                           const struct weft_store_block *blocks, int64_t n,
                                           struct weft_error *err);
enum weft_status __wrap_weft_store_reserve(struct weft_store *store,
                                           const struct weft_store_block *blocks, int64_t n,
                                           struct weft_error *err);
enum weft_status __wrap_weft_store_reserve(struct weft_store *store,
                                           const struct weft_store_block *blocks, int64_t n,
                                           struct weft_error *err)
{
    disk.block_bytes = blocks[0].bytes;
    disk.blocks = n;
    return __real_weft_store_reserve(store, blocks, n, err);
}

static void note_block(int64_t block, const struct weft_memory_span *span, int64_t *least,
                       int64_t *most, const unsigned char **from, const unsigned char **to)
{
    if (block < *least) *least = block;
    if (block > *most) *most = block;
    if (*from == NULL || span->at < *from) *from = span->at;
    if (span->at + span->bytes > *to) *to = span->at + span->bytes;
}

enum weft_status __real_weft_store_submit_read(struct weft_store *store, int64_t block,
                                               const struct weft_memory_span *to, int32_t n,
                                               int64_t *ticket, struct weft_error *err);
enum weft_status __wrap_weft_store_submit_read(struct weft_store *store, int64_t block,
                                               const struct weft_memory_span *to, int32_t n,
                                               int64_t *ticket, struct weft_error *err);
enum weft_status __wrap_weft_store_submit_read(struct weft_store *store, int64_t block,
                                               const struct weft_memory_span *to, int32_t n,
                                               int64_t *ticket, struct weft_error *err)
{
    note_block(block, to, &disk.least_read, &disk.most_read, &disk.reads_from, &disk.reads_to);
    return __real_weft_store_submit_read(store, block, to, n, ticket, err);
}

enum weft_status __real_weft_store_submit_write(struct weft_store *store, int64_t block,
                                                int64_t step, const struct weft_memory_span *from,
                                                int32_t n, int64_t *ticket, struct weft_error *err);
enum weft_status __wrap_weft_store_submit_write(struct weft_store *store, int64_t block,
                                                int64_t step, const struct weft_memory_span *from,
                                                int32_t n, int64_t *ticket, struct weft_error *err);
enum weft_status __wrap_weft_store_submit_write(struct weft_store *store, int64_t block,
                                                int64_t step, const struct weft_memory_span *from,
                                                int32_t n, int64_t *ticket, struct weft_error *err)
{
    note_block(block, from, &disk.least_write, &disk.most_write, &disk.writes_from,
               &disk.writes_to);
    return __real_weft_store_submit_write(store, block, step, from, n, ticket, err);
}

/* A read's time alone; a write takes twice that. */
static int64_t known_ns(int64_t block_bytes, int64_t threads)
{
    int64_t ns = disk.block_ns;
    for (int64_t t = 1; t < threads && t < disk.most_threads; t *= 2)
        ns /= 2;
    for (int64_t bytes = 64 * KIB; bytes < block_bytes; bytes *= 4)
        ns = ns * 4 * disk.per_mille / 1000;
    return ns;
}

static void forget_blocks(void)
{
    disk.least_read = disk.least_write = INT64_MAX;
    disk.most_read = disk.most_write = -1;
}

/* Reads and writes of the first half of the file are of blocks of their own. */
static void check_halves(void)
{
    const int64_t half = disk.blocks / 2;
    CHECK(disk.least_read == 0 && disk.most_read == half - 1,
          "reads of blocks %lld to %lld of %lld", (long long)disk.least_read,
          (long long)disk.most_read, (long long)disk.blocks);
    CHECK(disk.least_write == half && disk.most_write == 2 * half - 1,
          "writes of blocks %lld to %lld of %lld", (long long)disk.least_write,
          (long long)disk.most_write, (long long)disk.blocks);
}

enum weft_status __real_weft_measure_together(const struct weft_measure_options *options,
                                              struct measure_flow *const *flows, int32_t n,
                                              int64_t *block_ns, struct weft_error *err);
enum weft_status __wrap_weft_measure_together(const struct weft_measure_options *options,
                                              struct measure_flow *const *flows, int32_t n,
                                              int64_t *block_ns, struct weft_error *err);
enum weft_status __wrap_weft_measure_together(const struct weft_measure_options *options,
                                              struct measure_flow *const *flows, int32_t n,
                                              int64_t *block_ns, struct weft_error *err)
{
    if (!disk.replaced) return __real_weft_measure_together(options, flows, n, block_ns, err);
    const int64_t read_ns = known_ns(disk.block_bytes, disk.threads);
    const int32_t seats =
        disk.phase >= PHASE_FEWER_READS ? disk.threads : 2 * disk.threads; /* queue is full */
    CHECK(n == (disk.phase == PHASE_BOTH ? 2 : 1), "%d flows in phase %d", n, (int)disk.phase);
    CHECK(disk.seats == 2 * disk.threads, "%d requests of %d threads", disk.seats, disk.threads);
    for (int32_t i = 0; i < n; i++) {
        CHECK(flows[i]->seats == seats && flows[i]->least >= 2 * seats,
              "%d seats and at least %lld blocks in phase %d", flows[i]->seats,
              (long long)flows[i]->least, (int)disk.phase);
        flows[i]->least = disk.blocks + 1; /* a whole turn */
    }
    forget_blocks();
    WEFT_TRY(weft_measure_flows(flows, n, 0, err));
    switch (disk.phase++) {
    case PHASE_READS:
        CHECK(disk.most_write < 0 && disk.most_read == disk.blocks - 1, "reads alone");
        block_ns[0] = read_ns;
        break;
    case PHASE_WRITES:
        CHECK(disk.most_read < 0 && disk.most_write == disk.blocks - 1, "writes alone");
        block_ns[0] = 2 * read_ns;
        break;
    case PHASE_BOTH:
        check_halves();
        block_ns[WEFT_STORE_READ] = read_ns * disk.read_beside_ns / 1000;
        block_ns[WEFT_STORE_WRITE] = 2 * read_ns * disk.write_beside_ns / 1000;
        break;
    case PHASE_FEWER_READS:
        block_ns[0] = read_ns * disk.fewer_ns / 1000;
        break;
    case PHASE_FEWER_WRITES:
        block_ns[0] = 2 * read_ns * disk.fewer_ns / 1000;
        break;
    }
    return WEFT_OK;
}

/* The bench's result, copied out of its process. */
struct result {
    struct weft_profile_disk disk;
    int64_t x[MEASURE_POINTS], read_ns[MEASURE_POINTS], write_ns[MEASURE_POINTS];
    int64_t ring_bytes;
    enum weft_status status;
    struct weft_error err;
    int32_t loud;
};

struct task {
    const struct weft_config *config;
    struct result *result;
};

static int measure(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    struct result *r = task->result;
    const struct weft_comm_options comm = ranks_options(rank, ranks);
    struct weft_measure_options options = {.config = task->config};
    struct weft_pool pool = {0};
    OK(weft_comm_open("local", &comm, &options.comm, &err));
    disk.replaced = true;
    r->status = weft_measure_disk(&options, &pool, &r->disk, &r->err);
    if (r->status == WEFT_OK) {
        const size_t bytes = (size_t)r->disk.read.n * sizeof *r->x;
        CHECK(r->disk.read.n == r->disk.write.n && r->disk.read.x == r->disk.write.x,
              "curves of two lengths");
        memcpy(r->x, r->disk.read.x, bytes);
        memcpy(r->read_ns, r->disk.read.ns, bytes);
        memcpy(r->write_ns, r->disk.write.ns, bytes);
        CHECK(disk.reads_to <= disk.writes_from || disk.writes_to <= disk.reads_from,
              "reads and writes share memory");
        r->ring_bytes = (disk.reads_to - disk.reads_from) + (disk.writes_to - disk.writes_from);
        r->loud = disk.stores - disk.quiet;
        CHECK(r->disk.path[0] == '/' && r->disk.file_system[0] != '\0' && r->disk.given, "names");
    }
    weft_pool_finish(&pool);
    weft_comm_close(options.comm);
    return 0;
}

static const struct result *measure_disk(const char *limit, const char *host, const char *verify)
{
    char path[64];
    struct weft_config *config;
    struct result *result = job_shared(sizeof *result);
    snprintf(path, sizeof path, "cluster.disk.path=%s", job_disk());
    const char *overrides[] = {
        "cluster.emulate=false", "cluster.ranks=1", path, limit, host, verify};
    OK(weft_config_read("configs/runs/mlp-tiny.json", overrides, 6, &config, &err));
    struct task task = {config, result};
    CHECK(ranks_run(1, measure, &task) == 0, "the bench failed");
    weft_config_destroy(config);
    return result;
}

static void be_disk(int64_t block_ns, int64_t most_threads, int64_t per_mille)
{
    memset(&disk, 0, sizeof disk);
    disk.block_ns = block_ns;
    disk.most_threads = most_threads;
    disk.per_mille = per_mille;
    disk.read_beside_ns = disk.write_beside_ns = disk.fewer_ns = 1000;
}

static const char *const limit_2m = "cluster.disk.limit=2MiB";
static const char *const host_4m = "cluster.host.memory_limit=4MiB";
static const char *const verified = "cluster.disk.verify=true";

/* The fewest threads and the smallest block that are nearly as quick as the best. */
static void the_least_of_nearly_the_best_is_chosen(void)
{
    static const struct {
        int64_t most_threads, per_mille, threads, block_bytes;
    } cases[] = {
        {1, 1000, 1, 64 * KIB},   {4, 1000, 4, 64 * KIB},
        {16, 1000, 16, 64 * KIB}, {4, 960, 4, 64 * KIB}, /* 4 % quicker: not worth it */
        {4, 940, 4, 256 * KIB},   {1, 940, 1, 256 * KIB},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        be_disk(64000, cases[i].most_threads, cases[i].per_mille);
        const struct result *r = measure_disk(limit_2m, host_4m, verified);
        CHECK(r->status == WEFT_OK, "%s", r->err.text);
        CHECK(r->disk.threads == cases[i].threads && r->disk.block_bytes == cases[i].block_bytes,
              "case %zu: %lld threads, blocks of %lld", i, (long long)r->disk.threads,
              (long long)r->disk.block_bytes);
        /* A quarter MiB is an eighth of the file; a ring of 2 MiB has room for its seats. */
        const int32_t sizes = r->disk.threads <= 4 ? 2 : 1;
        CHECK(r->disk.read.n == sizes, "case %zu: %d sizes", i, r->disk.read.n);
        for (int32_t k = 0; k < sizes; k++) {
            const int64_t bytes = k == 0 ? 64 * KIB : 256 * KIB;
            const int64_t ns = known_ns(bytes, r->disk.threads);
            CHECK(r->x[k] == bytes && r->read_ns[k] == ns && r->write_ns[k] == 2 * ns,
                  "case %zu: a block of %lld takes %lld and %lld", i, (long long)r->x[k],
                  (long long)r->read_ns[k], (long long)r->write_ns[k]);
        }
        CHECK(r->ring_bytes <= 4 * MIB, "a ring of %lld", (long long)r->ring_bytes);
        CHECK(r->loud == 1, "%d stores warn", r->loud);
    }
}

static void a_slow_block_is_the_largest(void)
{
    be_disk(INT64_C(70) * 1000000, 1, 1000); /* both: 210 ms */
    CHECK(measure_disk(limit_2m, host_4m, verified)->disk.read.n == 1, "slow");
    be_disk(INT64_C(60) * 1000000, 1, 1000);
    CHECK(measure_disk(limit_2m, host_4m, verified)->disk.read.n == 2, "not slow");
}

static void shares_and_seats_are_of_the_chosen_store(void)
{
    be_disk(64000, 4, 1000);
    disk.read_beside_ns = 2000;
    disk.write_beside_ns = 1600;
    disk.fewer_ns = 1040;
    const struct result *r = measure_disk(limit_2m, host_4m, verified);
    CHECK(r->disk.read_beside == 512 && r->disk.write_beside == 640, "shares %lld and %lld",
          (long long)r->disk.read_beside, (long long)r->disk.write_beside);
    CHECK(r->disk.duplex == WEFT_DUPLEX_HALF && r->disk.seats == 4 && r->disk.verified,
          "duplex %d, %lld seats", (int)r->disk.duplex, (long long)r->disk.seats);
    be_disk(64000, 4, 1000);
    disk.write_beside_ns = 1100;
    disk.fewer_ns = 1060;
    r = measure_disk(limit_2m, host_4m, "cluster.disk.verify=false");
    CHECK(r->disk.read_beside == WEFT_RATE_ONE && r->disk.write_beside == 930, "share %lld",
          (long long)r->disk.write_beside);
    CHECK(r->disk.duplex == WEFT_DUPLEX_FULL && r->disk.seats == 8 && !r->disk.verified,
          "duplex %d, %lld seats", (int)r->disk.duplex, (long long)r->disk.seats);
}

/* Half a MiB holds eight blocks, a quarter of a MiB two in each direction. */
static void too_little_to_measure_is_refused(void)
{
    be_disk(64000, 16, 1000);
    const struct result *r =
        measure_disk("cluster.disk.limit=512KiB", "cluster.host.memory_limit=256KiB", verified);
    CHECK(r->status == WEFT_OK && r->disk.threads == 1 && r->disk.read.n == 1, "%s", r->err.text);
    r = measure_disk("cluster.disk.limit=511KiB", "cluster.host.memory_limit=256KiB", verified);
    CHECK(r->status == WEFT_E_DATA && strstr(r->err.text, "512 KiB") != NULL, "%s", r->err.text);
    r = measure_disk("cluster.disk.limit=512KiB", "cluster.host.memory_limit=255KiB", verified);
    CHECK(r->status == WEFT_E_DATA && strstr(r->err.text, "256 KiB") != NULL, "%s", r->err.text);
}

RANKS_TEST(tiers_disk)
{
    the_least_of_nearly_the_best_is_chosen();
    a_slow_block_is_the_largest();
    shares_and_seats_are_of_the_chosen_store();
    too_little_to_measure_is_refused();
    return 0;
}
