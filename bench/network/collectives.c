/* SPDX-License-Identifier: Apache-2.0 */
/* Measures ReduceScatter and AllGather over MPI next to the library's own, and the stars of policy
 * central: time, CPU time, and bytes on this host's interface. One program for each MPI library,
 * started by its launcher:
 *
 *     mpirun -n 4 build/bench/network/collectives-openmpi PER_NODE MIB[,MIB...] ROUNDS
 *
 * Rank 0 prints one line of JSON for each kind, dtype, size and side. `ranks` has a row for each
 * rank: user and system CPU time, sent bytes and packets of eth0 without loopback, and repeated TCP
 * segments of its host. All figures are of ROUNDS collectives. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/numbers.h"
#include "runtime/comm/comm.h"
#include "runtime/comm/mpi/mpi.h"

enum { MIB = 1 << 20, MOST_RANKS = 64, US_PER_S = 1000000 };

extern const struct weft_mpi_calls WEFT_MPI_TABLE;

/* Counters of a rank, and of its host. */
struct counters {
    int64_t wall_ns, user_us, system_us, bytes, packets, repeated;
};

struct bench {
    struct weft_mpi *mpi;
    struct weft_comm *comm;
    struct weft_device *device;
    struct weft_stream *channel;
    float *memory; /* of the arena: the full block, then a slice */
    int32_t rank, ranks, per_node;
    int64_t most_bytes;
    int rounds;
};

typedef void collective_fn(struct weft_comm *comm, struct weft_stream *channel,
                           const struct weft_comm_block *block);

struct side {
    const char *name, *kind;
    enum weft_dtype dtype;
    collective_fn *own; /* NULL: the library's */
    bool gathers, owned;
};

/* Kinds are measured side by side, since the machine's speed drifts. */
static const struct side sides[] = {
    {"weft", "reduce_scatter", WEFT_F32, weft_comm_reduce_scatter, false, false},
    {"library", "reduce_scatter", WEFT_F32, NULL, false, false},
    {"weft", "all_gather", WEFT_F32, weft_comm_all_gather, true, false},
    {"library", "all_gather", WEFT_F32, NULL, true, false},
    {"weft", "reduce_scatter", WEFT_BF16, weft_comm_reduce_scatter, false, false},
    {"weft", "reduce", WEFT_F32, weft_comm_reduce, false, true},
    {"weft", "broadcast", WEFT_F32, weft_comm_broadcast, false, true},
};

static int64_t read_count(const char *path)
{
    long long count = 0;
    FILE *file = fopen(path, "r");
    if (file == NULL) return 0;
    if (fscanf(file, "%lld", &count) != 1) count = 0;
    fclose(file);
    return count;
}

/* The 12th number of the second line "Tcp:" of /proc/net/snmp: RetransSegs. */
static int64_t read_repeated(void)
{
    enum { FIELD = 12 };
    char line[1024];
    long long count = 0;
    FILE *file = fopen("/proc/net/snmp", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char *rest = line;
        if (strncmp(line, "Tcp: ", 5) != 0 || strstr(line, "RetransSegs") != NULL) continue;
        rest += 5;
        for (int i = 0; i < FIELD; i++)
            count = strtoll(rest, &rest, 10);
    }
    if (file != NULL) fclose(file);
    return count;
}

static struct counters read_counters(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (struct counters){
        .wall_ns = weft_clock_now_ns(),
        .user_us = used.ru_utime.tv_sec * (int64_t)US_PER_S + used.ru_utime.tv_usec,
        .system_us = used.ru_stime.tv_sec * (int64_t)US_PER_S + used.ru_stime.tv_usec,
        .bytes = read_count("/sys/class/net/eth0/statistics/tx_bytes"),
        .packets = read_count("/sys/class/net/eth0/statistics/tx_packets"),
        .repeated = read_repeated(),
    };
}

static struct counters difference_of(const struct counters *a, const struct counters *b)
{
    return (struct counters){b->wall_ns - a->wall_ns,     b->user_us - a->user_us,
                             b->system_us - a->system_us, b->bytes - a->bytes,
                             b->packets - a->packets,     b->repeated - a->repeated};
}

static enum weft_status run_own(struct bench *b, const struct side *side, int64_t elements,
                                struct weft_error *err)
{
    const struct weft_comm_block block = {
        .slice_offset = b->most_bytes,
        .slice_elements = elements / b->ranks,
        .dtype = side->dtype,
        .slice_dtype = side->dtype,
        .owned = side->owned,
    };
    for (int i = 0; i < b->rounds; i++)
        side->own(b->comm, b->channel, &block);
    return weft_stream_synchronise(b->channel, err);
}

static enum weft_status run_library(struct bench *b, const struct side *side, int64_t elements,
                                    struct weft_error *err)
{
    float *slice = b->memory + b->most_bytes / (int64_t)sizeof(float);
    const int n = (int)(elements / b->ranks);
    for (int i = 0; i < b->rounds; i++) {
        const int code =
            side->gathers
                ? MPI_Allgather(slice, n, MPI_FLOAT, b->memory, n, MPI_FLOAT, MPI_COMM_WORLD)
                : MPI_Reduce_scatter_block(b->memory, slice, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        if (code != MPI_SUCCESS) return weft_fail(err, WEFT_E_LOST, "MPI: code %d", code);
    }
    return WEFT_OK;
}

static void print_side(const struct bench *b, const struct side *side, int64_t bytes,
                       const struct counters *all)
{
    int64_t ns = 0;
    for (int32_t r = 0; r < b->ranks; r++)
        ns = all[r].wall_ns > ns ? all[r].wall_ns : ns;
    printf("{\"side\": \"%s\", \"kind\": \"%s\", \"dtype\": \"%s\", \"bytes\": %lld, \"ns\": %lld, "
           "\"ranks\": [",
           side->name, side->kind, weft_dtype_name(side->dtype), (long long)bytes,
           (long long)(ns / b->rounds));
    for (int32_t r = 0; r < b->ranks; r++)
        printf("%s{\"user_us\": %lld, \"system_us\": %lld, \"bytes\": %lld, \"packets\": %lld, "
               "\"repeated\": %lld}",
               r > 0 ? ", " : "", (long long)all[r].user_us, (long long)all[r].system_us,
               (long long)all[r].bytes, (long long)all[r].packets, (long long)all[r].repeated);
    printf("]}\n");
    fflush(stdout);
}

/* A barrier's message follows a rank's data on each connection, so its data has left after it. */
static enum weft_status measure_side(struct bench *b, const struct side *side, int64_t bytes,
                                     struct weft_error *err)
{
    const int64_t elements = bytes / weft_dtype_bytes(side->dtype);
    struct counters all[MOST_RANKS];
    WEFT_TRY(weft_comm_exchange(b->comm, NULL, 0, NULL, err));
    const struct counters before = read_counters();
    WEFT_TRY(side->own != NULL ? run_own(b, side, elements, err)
                               : run_library(b, side, elements, err));
    const int64_t end_ns = weft_clock_now_ns();
    WEFT_TRY(weft_comm_exchange(b->comm, NULL, 0, NULL, err));
    const struct counters after = read_counters();
    struct counters mine = difference_of(&before, &after);
    mine.wall_ns = end_ns - before.wall_ns;
    WEFT_TRY(weft_comm_exchange(b->comm, &mine, sizeof mine, all, err));
    if (b->rank == 0) print_side(b, side, bytes, all);
    return WEFT_OK;
}

static enum weft_status measure_sizes(struct bench *b, char *sizes, struct weft_error *err)
{
    const int rounds = b->rounds;
    for (char *size = strtok(sizes, ","); size != NULL; size = strtok(NULL, ",")) {
        const int64_t unit = (int64_t)b->ranks * 16;
        const int64_t bytes = strtoll(size, NULL, 10) * MIB / unit * unit;
        for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++) {
            b->rounds = 1; /* connections and buffers warm up */
            const int64_t elements = bytes / weft_dtype_bytes(sides[i].dtype);
            WEFT_TRY(sides[i].own != NULL ? run_own(b, &sides[i], elements, err)
                                          : run_library(b, &sides[i], elements, err));
            b->rounds = rounds;
            WEFT_TRY(measure_side(b, &sides[i], bytes, err));
        }
    }
    return WEFT_OK;
}

static int64_t largest_of(const char *sizes)
{
    int64_t largest = 0;
    for (const char *at = sizes; at != NULL; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        const int64_t bytes = strtoll(at, NULL, 10) * MIB;
        largest = bytes > largest ? bytes : largest;
    }
    return largest;
}

static enum weft_status run_bench(struct bench *b, char *sizes, struct weft_error *err)
{
    struct weft_arena *arena = NULL;
    const struct weft_comm_options options = {
        .rank = b->rank, .ranks = b->ranks, .ranks_per_node = b->per_node, .mpi = b->mpi};
    b->most_bytes = largest_of(sizes);
    if (b->most_bytes == 0 || b->rounds < 1 || b->ranks > MOST_RANKS ||
        (b->per_node > 0 && b->ranks % b->per_node != 0))
        return weft_fail(err, WEFT_E_USAGE, "collectives PER_NODE MIB[,MIB...] ROUNDS");
    WEFT_TRY(weft_device_open("cpu", WEFT_CLOCK_WALL, &b->device, err));
    WEFT_TRY(weft_comm_open("mpi", &options, &b->comm, err));
    WEFT_TRY(weft_stream_create(b->device, "channel", 0, &b->channel, err));
    const struct weft_arena_shape whole = weft_arena_whole(2 * b->most_bytes);
    WEFT_TRY(weft_comm_map_arena(b->comm, &whole, NULL, &arena, err));
    b->memory = (float *)(void *)weft_arena_memory(arena);
    for (int64_t i = 0; i < 2 * b->most_bytes / (int64_t)sizeof(float); i++)
        b->memory[i] = 1;
    WEFT_TRY(measure_sizes(b, sizes, err));
    weft_stream_destroy(b->channel);
    weft_comm_close(b->comm);
    weft_device_close(b->device);
    return WEFT_OK;
}

int main(int argc, char **argv)
{
    static const int64_t end_ns = INT64_C(5000000000);
    struct weft_error err = {.status = WEFT_OK};
    struct bench b = {.per_node = argc > 1 ? (int32_t)strtol(argv[1], NULL, 10) : 0,
                      .rounds = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 0};
    const struct weft_mpi_options options = {.library = "", .launcher = "mpirun"};
    enum weft_status status =
        argc == 4 ? weft_mpi_start_over(&WEFT_MPI_TABLE, &options, &b.mpi, &err)
                  : weft_fail(&err, WEFT_E_USAGE, "collectives PER_NODE MIB[,MIB...] ROUNDS");
    if (status == WEFT_OK) {
        b.rank = weft_mpi_rank(b.mpi);
        b.ranks = weft_mpi_ranks(b.mpi);
        status = run_bench(&b, argv[2], &err);
    }
    if (status != WEFT_OK) {
        fprintf(stderr, "collectives: %s\n", err.text);
        exit(weft_status_exit_code(status)); /* ends its peers */
    }
    if (!weft_mpi_finish(b.mpi, end_ns)) _exit(0); /* the library hangs; its exit handlers may */
    return 0;
}
