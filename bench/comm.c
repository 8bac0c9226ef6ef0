/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the local communicator's collectives with blocks of 1 KiB to 32 MiB: the median time,
 * and bytes of the block per second. Starts its own ranks; rank 0 prints one line of JSON per size.
 * Blocks rotate through the arena, so large blocks come from memory and not from a cache.
 *
 * With a latency and a rate the link is emulated. Then "late_us" is the median time beyond the
 * link's own time.
 *
 *     build/bench/comm [RANKS [ALPHA_US GB_PER_S]] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/comm/comm.h"
#include "runtime/launch/launch.h"

enum { MOST_TIMES = 400, SLICES_AT = 3, ELEMENT_BYTES = sizeof(float) };

static const int64_t arena_bytes = INT64_C(256) << 20;
static const int64_t most_block_bytes = INT64_C(64) << 20;

struct site {
    struct weft_comm *comm;
    struct weft_stream *channel;
    struct weft_comm_options options;
};

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Nanoseconds that the emulated link takes; 0 without emulation. */
static double link_ns(const struct weft_comm_options *options, int passes, int64_t bytes)
{
    if (!options->local.emulate || options->ranks == 1) return 0;
    double share = (double)(options->ranks - 1) / options->ranks;
    return passes * ((double)options->local.alpha_ns +
                     (double)bytes * share / options->local.bytes_per_s * 1e9);
}

typedef void collective_fn(struct weft_comm *comm, struct weft_stream *channel,
                           const struct weft_comm_block *block);

static enum weft_status measure(struct site *s, const char *name, collective_fn *call, int passes,
                                int64_t bytes, struct weft_error *err)
{
    static int64_t stamps[MOST_TIMES + 1];
    int32_t ranks = weft_comm_ranks(s->comm);
    int times = bytes <= 1 << 20 ? MOST_TIMES : 20;
    struct weft_comm_block block = {.slice_elements = bytes / ranks / ELEMENT_BYTES};
    int64_t places = SLICES_AT * most_block_bytes / bytes;
    WEFT_TRY(weft_comm_exchange(s->comm, NULL, 0, NULL, err));
    weft_stream_stamp(s->channel, &stamps[0]);
    for (int i = 0; i < times; i++) {
        block.full_offset = i % places * bytes;
        block.slice_offset = SLICES_AT * most_block_bytes;
        call(s->comm, s->channel, &block);
        weft_stream_stamp(s->channel, &stamps[i + 1]);
    }
    WEFT_TRY(weft_stream_synchronise(s->channel, err));
    for (int i = 0; i < times; i++)
        stamps[i] = stamps[i + 1] - stamps[i];
    qsort(stamps, (size_t)times, sizeof *stamps, compare);
    int64_t ns = stamps[times / 2];
    if (weft_comm_rank(s->comm) == 0) {
        printf("{\"collective\": \"%s\", \"ranks\": %d, \"bytes\": %lld, \"median_us\": %.1f, "
               "\"least_us\": %.1f, \"gb_per_s\": %.2f, \"late_us\": %.1f}\n",
               name, ranks, (long long)bytes, (double)ns / 1e3, (double)stamps[0] / 1e3,
               (double)bytes / (double)ns,
               ((double)ns - link_ns(&s->options, passes, bytes)) / 1e3);
    }
    return WEFT_OK;
}

static enum weft_status measure_all(struct site *s, struct weft_error *err)
{
    static const struct {
        const char *name;
        collective_fn *call;
        int passes;
    } collectives[] = {{"all_gather", weft_comm_all_gather, 1},
                       {"reduce_scatter", weft_comm_reduce_scatter, 1},
                       {"all_reduce", weft_comm_all_reduce, 2}};
    for (int i = 0; i < 3; i++) {
        for (int64_t bytes = 1 << 10; bytes <= most_block_bytes; bytes *= 8) {
            WEFT_TRY(measure(s, collectives[i].name, collectives[i].call, collectives[i].passes,
                             bytes, err));
        }
    }
    return WEFT_OK;
}

static enum weft_status run_rank(const struct weft_rendezvous *me, char **argv,
                                 struct weft_error *err)
{
    struct weft_device *device = NULL;
    struct weft_arena *arena;
    struct site s = {
        .options = {.rank = me->rank,
                    .ranks = me->ranks,
                    .local = {.control_fd = me->control_fd, .arena_fds = me->arena_fds}}};
    if (argv[1] != NULL && argv[2] != NULL && argv[3] != NULL) {
        s.options.local.emulate = true;
        s.options.local.alpha_ns = (int64_t)(strtod(argv[2], NULL) * 1e3);
        s.options.local.bytes_per_s = strtod(argv[3], NULL) * 1e9;
    }
    WEFT_TRY(weft_comm_open("local", &s.options, &s.comm, err));
    enum weft_status status = weft_device_open("cpu", WEFT_CLOCK_WALL, &device, err);
    if (status == WEFT_OK) status = weft_stream_create(device, "channel", 0, &s.channel, err);
    const struct weft_arena_shape whole = weft_arena_whole(arena_bytes);
    if (status == WEFT_OK) status = weft_comm_map_arena(s.comm, &whole, NULL, &arena, err);
    if (status == WEFT_OK) {
        status = measure_all(&s, err);
    }
    weft_stream_destroy(s.channel);
    weft_device_close(device);
    weft_comm_close(s.comm);
    return status;
}

static enum weft_status launch(int argc, char **argv, struct weft_error *err)
{
    int32_t ranks = argc > 1 ? (int32_t)strtol(argv[1], NULL, 10) : 2;
    if (ranks < 1) return weft_fail(err, WEFT_E_USAGE, "comm [RANKS [ALPHA_US GB_PER_S]]");
    const struct weft_launch_options options = {
        .ranks = ranks, .argv = argv, .control_bytes = weft_comm_control_bytes(ranks)};
    return weft_launch(&options, NULL, err);
}

int main(int argc, char **argv)
{
    struct weft_error err = {.status = WEFT_OK};
    struct weft_rendezvous me = {0};
    enum weft_status status = weft_rendezvous_from_environment(&me, &err);
    if (status == WEFT_OK)
        status = me.control_fd < 0 ? launch(argc, argv, &err) : run_rank(&me, argv, &err);
    weft_rendezvous_finish(&me);
    if (status != WEFT_OK) fprintf(stderr, "comm: %s\n", err.text);
    return weft_status_exit_code(status);
}
