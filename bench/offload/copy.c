/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the copier with plain memcpy: bench/offload/copy [MIB] [ROUNDS]. Each round copies the
 * same blocks of MIB once by each way and once by the copier. Prints the medians as JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "offload/copy.h"
#include "offload/copy_bytes.h"

enum { MOST_ROUNDS = 99, BLOCKS = 16, SIDES = 8, LARGE_PAGE_BYTES = 2 << 20 };

struct bench {
    unsigned char *from, *to;
    int64_t block_bytes;
    struct weft_copier *copier;
};

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_size);
    return values[n / 2];
}

/* Side 0 is memcpy, the next ones are the other ways, the last one is the copier. Returns bytes per
 * second. */
static double copy_once(const struct bench *b, int side)
{
    struct weft_error err = {0};
    int64_t ticket = -1;
    const int64_t begun_ns = weft_clock_now_ns();
    for (int64_t i = 0; i < BLOCKS; i++) {
        const struct weft_memory_span to = {b->to + i * b->block_bytes, b->block_bytes};
        const struct weft_memory_span from = {b->from + i * b->block_bytes, b->block_bytes};
        if (side < weft_copy_n_ways)
            weft_copy_ways[side].copy(to.at, from.at, to.bytes);
        else if (weft_copier_submit(b->copier, WEFT_COPY_DOWN, &to, 1, &from, 1, &ticket, &err) !=
                 WEFT_OK)
            exit(1);
    }
    if (ticket >= 0 && weft_copier_wait(b->copier, WEFT_COPY_DOWN, ticket, &err) != WEFT_OK)
        exit(1);
    return (double)(BLOCKS * b->block_bytes) / (1e-9 * (double)(weft_clock_now_ns() - begun_ns));
}

static int run_bench(struct bench *b, int rounds)
{
    static double rates[SIDES][MOST_ROUNDS];
    for (int round = -1; round < rounds; round++) {
        for (int side = 0; side <= weft_copy_n_ways; side++) {
            if (side < weft_copy_n_ways && !weft_copy_ways[side].is_here()) continue;
            const double rate = copy_once(b, side);
            if (round >= 0) rates[side][round] = rate;
        }
    }
    printf("{\"block_bytes\": %lld, \"rounds\": %d", (long long)b->block_bytes, rounds);
    for (int side = 0; side <= weft_copy_n_ways; side++) {
        const char *name = side < weft_copy_n_ways ? weft_copy_ways[side].name : "copier";
        if (side < weft_copy_n_ways && !weft_copy_ways[side].is_here()) continue;
        const double middle = median(rates[side], rounds);
        printf(", \"%s\": [%.3f, %.3f, %.3f]", side == 0 ? "memcpy" : name, 1e-9 * rates[side][0],
               1e-9 * middle, 1e-9 * rates[side][rounds - 1]);
    }
    printf(", \"taken\": \"%s\"}\n", weft_copy_way_for(b->block_bytes)->name);
    return 0;
}

int main(int argc, char **argv)
{
    struct weft_error err = {0};
    const int rounds = argc > 2 ? atoi(argv[2]) : 11;
    struct bench b = {.block_bytes = (argc > 1 ? atoll(argv[1]) : 16) << 20};
    const struct weft_copier_options options = {.requests = BLOCKS, .spans = 1};
    if (rounds < 1 || rounds > MOST_ROUNDS || b.block_bytes < 1) return 64;
    const size_t bytes = (size_t)(BLOCKS * b.block_bytes);
    b.from = aligned_alloc(LARGE_PAGE_BYTES, bytes);
    b.to = aligned_alloc(LARGE_PAGE_BYTES, bytes);
    if (b.from == NULL || b.to == NULL) return 71;
    memset(b.from, 1, bytes);
    memset(b.to, 2, bytes);
    if (weft_copier_create(&options, &b.copier, &err) != WEFT_OK) {
        fprintf(stderr, "copy: %s\n", err.text);
        return err.exit_code;
    }
    const int status = run_bench(&b, rounds);
    weft_copier_destroy(b.copier);
    free(b.from);
    free(b.to);
    return status;
}
