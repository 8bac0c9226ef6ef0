/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/planted/planted.h"

enum { THREADS = 64, BLOCKS = 3, N = THREADS * BLOCKS };

static cudaStream_t stream_of(int number)
{
    static char places[4];
    return (cudaStream_t)(void *)&places[number];
}

__global__ void planted_fill(float *y, float value)
{
    y[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

static void has_too_many_threads(bool mistaken)
{
    emu_buffer<float> y("y", EMU_SCRATCH, 1056);
    planted_launch(planted_fill, 1, mistaken ? 1056 : 1024, 0, NULL, y.data, 1.0f);
}

static void has_too_much_shared_memory(bool mistaken)
{
    emu_buffer<float> y("y", EMU_SCRATCH, THREADS);
    planted_launch(planted_fill, 1, THREADS, (48 << 10) + mistaken, NULL, y.data, 1.0f);
}

/* Another GPU's larger limit does not apply. */
static void has_more_than_this_gpu(bool mistaken)
{
    emu_set_target(emu_target_named("sm_89"));
    emu_buffer<float> y("y", EMU_SCRATCH, THREADS);
    const int bytes = (mistaken ? 100 : 99) << 10;
    cudaFuncSetAttribute((const void *)planted_fill, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         bytes);
    planted_launch(planted_fill, 1, THREADS, (size_t)bytes, NULL, y.data, 1.0f);
}

static void has_no_blocks(bool mistaken)
{
    emu_buffer<float> y("y", EMU_SCRATCH, THREADS);
    planted_launch(planted_fill, mistaken ? 0 : 1, THREADS, 0, NULL, y.data, 1.0f);
}

/* The last thread of each block also writes the first element of the next. */
__global__ void planted_spill(float *y, bool over)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = 1;
    if (over && threadIdx.x == blockDim.x - 1 && blockIdx.x + 1 < gridDim.x) y[i + 1] = 1;
}

static void writes_what_the_next_block_writes(bool mistaken)
{
    emu_buffer<float> y("y", EMU_WRITE, N);
    planted_launch(planted_spill, BLOCKS, THREADS, 0, NULL, y.data, mistaken);
}

/* Blocks read the values that block 0 writes in the same launch. */
__global__ void planted_share(float *first, float *y, bool own)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < THREADS) first[i] = (float)i;
    y[i] = own && blockIdx.x > 0 ? 0 : first[threadIdx.x];
}

static void reads_what_block_0_writes(bool mistaken)
{
    emu_buffer<float> first("first", EMU_BOTH, THREADS), y("y", EMU_WRITE, N);
    memset(first.data, 0, first.bytes());
    planted_launch(planted_share, BLOCKS, THREADS, 0, NULL, first.data, y.data, !mistaken);
}

__global__ void planted_halve(float *x)
{
    x[blockIdx.x * blockDim.x + threadIdx.x] /= 2;
}

static void forgets_an_event(bool mistaken)
{
    emu_buffer<float> y("y", EMU_WRITE, N);
    planted_launch(planted_fill, BLOCKS, THREADS, 0, stream_of(0), y.data, 4.0f);
    const int event = emu_watch_record(stream_of(0));
    if (!mistaken) emu_watch_wait(stream_of(1), event);
    planted_launch(planted_halve, BLOCKS, THREADS, 0, stream_of(1), y.data);
}

/* Stream 2 should follow stream 0 through stream 1, but the event is recorded before stream 1 has
 * waited. */
static void records_an_event_too_early(bool mistaken)
{
    emu_buffer<float> y("y", EMU_WRITE, N);
    planted_launch(planted_fill, BLOCKS, THREADS, 0, stream_of(0), y.data, 4.0f);
    const int first = emu_watch_record(stream_of(0));
    const int early = emu_watch_record(stream_of(1));
    emu_watch_wait(stream_of(1), first);
    const int second = emu_watch_record(stream_of(1));
    emu_watch_wait(stream_of(2), mistaken ? early : second);
    planted_launch(planted_halve, BLOCKS, THREADS, 0, stream_of(2), y.data);
}

static void reads_before_it_synchronises(bool mistaken)
{
    emu_buffer<float> y("y", EMU_WRITE, N);
    planted_launch(planted_fill, BLOCKS, THREADS, 0, stream_of(0), y.data, 4.0f);
    if (!mistaken) emu_watch_synchronise(stream_of(0));
    emu_watch_host(y.data, y.bytes(), false);
}

const struct planted planted_launches[] = {
    {"has too many threads", EMU_LIMITS, has_too_many_threads},
    {"has too much shared memory", EMU_LIMITS, has_too_much_shared_memory},
    {"has more than this GPU", EMU_LIMITS, has_more_than_this_gpu},
    {"has no blocks", EMU_LIMITS, has_no_blocks},
    {"writes what the next block writes", EMU_RACE_BLOCKS, writes_what_the_next_block_writes},
    {"reads what block 0 writes", EMU_RACE_BLOCKS, reads_what_block_0_writes},
    {"forgets an event", EMU_RACE_STREAMS, forgets_an_event},
    {"records an event too early", EMU_RACE_STREAMS, records_an_event_too_early},
    {"reads before it synchronises", EMU_RACE_STREAMS, reads_before_it_synchronises},
};
const int planted_launches_count = sizeof(planted_launches) / sizeof(planted_launches[0]);
