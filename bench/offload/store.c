/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the rate of a store: bench/offload/store DIRECTORY read|write|both BLOCK_KIB DEPTH MIB
 * SECONDS [unverified].
 *
 * Writes the whole file once. Then it moves blocks in order, DEPTH at a time in each direction.
 * `both` reads one half of the file and writes the other. Prints bytes per second as JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/rng.h"
#include "offload/store.h"
#include "offload/tier.h"

enum { PAGE_BYTES = 2 << 20, MOST_SEATS = 64 };

/* Moves blocks [first, first + n) in order. Seats are used in turn. */
struct flow {
    enum weft_store_direction direction;
    int64_t first, n;
    struct weft_tier *tier;
    unsigned char *memory; /* in the tier */
    int32_t seats;
    int64_t tickets[MOST_SEATS];
    int64_t submitted;
};

struct bench {
    struct weft_store *store;
    int64_t block_bytes, blocks;
    int32_t depth;
};

static enum weft_status submit_next(const struct bench *b, struct flow *flow,
                                    struct weft_error *err)
{
    const int64_t seat = flow->submitted % flow->seats;
    const int64_t block = flow->first + flow->submitted % flow->n;
    const struct weft_memory_span span = {flow->memory + seat * b->block_bytes, b->block_bytes};
    int64_t *ticket = &flow->tickets[seat];
    if (flow->submitted >= flow->seats)
        WEFT_TRY(weft_store_wait(b->store, flow->direction, *ticket, err));
    flow->submitted++;
    return flow->direction == WEFT_STORE_READ
               ? weft_store_submit_read(b->store, block, &span, 1, ticket, err)
               : weft_store_submit_write(b->store, block, 1, &span, 1, ticket, err);
}

static enum weft_status drain(const struct bench *b, struct flow *flow, struct weft_error *err)
{
    for (int64_t i = 0; i < flow->seats && i < flow->submitted; i++)
        WEFT_TRY(weft_store_wait(b->store, flow->direction, flow->tickets[i], err));
    return WEFT_OK;
}

static enum weft_status open_flow(const struct bench *b, enum weft_store_direction direction,
                                  int64_t first, int64_t n, struct flow *out,
                                  struct weft_error *err)
{
    const int32_t seats = 2 * b->depth;
    const int64_t bytes = seats * b->block_bytes;
    *out = (struct flow){.direction = direction, .first = first, .n = n, .seats = seats};
    const struct weft_tier_options options = {
        .name = "bench", .page_bytes = PAGE_BYTES, .pages = (bytes + PAGE_BYTES - 1) / PAGE_BYTES};
    WEFT_TRY(weft_tier_create(&options, &out->tier, err));
    out->memory = weft_tier_memory(out->tier).at;
    for (int64_t i = 0; i < bytes; i += 8) {
        const uint64_t word = weft_rng_u64(1, (uint64_t)direction, (uint64_t)i);
        memcpy(out->memory + i, &word, 8);
    }
    return WEFT_OK;
}

/* Writes every block once. */
static enum weft_status fill_file(const struct bench *b, struct weft_error *err)
{
    struct flow flow = {0};
    enum weft_status status = open_flow(b, WEFT_STORE_WRITE, 0, b->blocks, &flow, err);
    while (flow.submitted < b->blocks && status == WEFT_OK)
        status = submit_next(b, &flow, err);
    if (status == WEFT_OK) status = drain(b, &flow, err);
    weft_tier_destroy(flow.tier);
    return status;
}

static double cpu_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* One thread keeps both directions busy. Each queue holds twice as many requests as it has threads,
 * so a wait for one direction does not drain the other. */
static enum weft_status measure_flows(const struct bench *b, struct flow *flows, int n,
                                      double seconds, struct weft_error *err)
{
    const double cpu_before_s = cpu_s();
    const int64_t begun_ns = weft_clock_now_ns(), until_ns = begun_ns + (int64_t)(seconds * 1e9);
    while (weft_clock_now_ns() < until_ns) {
        struct flow *next = &flows[0];
        /* Takes the first flow that can submit without waiting, or flow 0 if none can. */
        for (int i = n - 1; i >= 0; i--) {
            struct flow *flow = &flows[i];
            if (flow->submitted < flow->seats ||
                weft_store_is_done(b->store, flow->direction,
                                   flow->tickets[flow->submitted % flow->seats]))
                next = flow;
        }
        WEFT_TRY(submit_next(b, next, err));
    }
    int64_t blocks = 0;
    for (int i = 0; i < n; i++) {
        WEFT_TRY(drain(b, &flows[i], err));
        blocks += flows[i].submitted;
    }
    const double took_s = 1e-9 * (double)(weft_clock_now_ns() - begun_ns);
    printf("{\"bytes_per_s\": %.0f, \"read_blocks\": %lld, \"cpu_share\": %.3f, "
           "\"direct\": %s}\n",
           (double)(blocks * b->block_bytes) / took_s, (long long)flows[0].submitted,
           (cpu_s() - cpu_before_s) / took_s,
           weft_store_facts(b->store)->direct ? "true" : "false");
    return WEFT_OK;
}

static enum weft_status run_bench(struct bench *b, const char *what, double seconds,
                                  struct weft_error *err)
{
    struct flow flows[2] = {0};
    const bool both = strcmp(what, "both") == 0;
    const enum weft_store_direction first =
        strcmp(what, "write") == 0 ? WEFT_STORE_WRITE : WEFT_STORE_READ;
    struct weft_store_block *blocks = calloc((size_t)b->blocks, sizeof *blocks);
    if (blocks == NULL) return weft_fail_memory(err, "blocks");
    for (int64_t i = 0; i < b->blocks; i++)
        blocks[i] = (struct weft_store_block){.bytes = b->block_bytes, .index = (int32_t)i};
    enum weft_status status = weft_store_reserve(b->store, blocks, b->blocks, err);
    free(blocks);
    if (status == WEFT_OK) status = fill_file(b, err);
    const int64_t half = both ? b->blocks / 2 : b->blocks;
    if (status == WEFT_OK) status = open_flow(b, first, 0, half, &flows[0], err);
    if (status == WEFT_OK && both)
        status = open_flow(b, WEFT_STORE_WRITE, half, b->blocks - half, &flows[1], err);
    if (status == WEFT_OK) status = measure_flows(b, flows, both ? 2 : 1, seconds, err);
    weft_tier_destroy(flows[0].tier);
    weft_tier_destroy(flows[1].tier);
    return status;
}

int main(int argc, char **argv)
{
    struct weft_error err = {0};
    struct bench b = {0};
    if (argc < 7) {
        fprintf(stderr, "usage: store DIRECTORY read|write|both BLOCK_KIB DEPTH MIB SECONDS "
                        "[unverified]\n");
        return 64;
    }
    b.block_bytes = atoll(argv[3]) * 1024;
    b.depth = atoi(argv[4]);
    if (b.block_bytes <= 0 || b.depth < 1 || b.depth > MOST_SEATS / 2) return 64;
    b.blocks = atoll(argv[5]) * (1 << 20) / b.block_bytes;
    const struct weft_store_options options = {
        .directory = argv[1],
        .threads = b.depth,
        .requests = 2 * b.depth,
        .spans = 1,
        .unverified = argc > 7 && strcmp(argv[7], "unverified") == 0,
    };
    enum weft_status status = weft_store_open(&options, &b.store, &err);
    if (status == WEFT_OK) status = run_bench(&b, argv[2], atof(argv[6]), &err);
    weft_store_destroy(b.store);
    if (status != WEFT_OK) fprintf(stderr, "store: %s\n", err.text);
    return weft_status_exit_code(status);
}
