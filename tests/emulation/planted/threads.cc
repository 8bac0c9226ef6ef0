/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/planted/planted.h"

enum { THREADS = 64, WARP = 32 };

/* y[i] = x[next i], through shared memory. */
__global__ void planted_rotate(const float *x, float *y, bool wait)
{
    float *part = (float *)emu_shared_memory();
    const int i = (int)threadIdx.x;
    part[i] = x[i];
    if (wait) __syncthreads();
    y[i] = part[(i + 1) % THREADS];
}

static void fill_numbers(const emu_buffer<float> &x)
{
    for (int64_t i = 0; i < x.n; i++) {
        x[i] = (float)i;
    }
}

static void misses_a_barrier(bool mistaken)
{
    emu_buffer<float> x("x", EMU_READ, THREADS), y("y", EMU_WRITE, THREADS);
    fill_numbers(x);
    planted_launch(planted_rotate, 1, THREADS, THREADS * sizeof(float), NULL, x.data, y.data,
                   !mistaken);
}

/* The same within warps, with a warp barrier; a shuffle does not order memory. */
__global__ void planted_rotate_in_warp(const float *x, float *y, bool wait)
{
    float *part = (float *)emu_shared_memory();
    const int i = (int)threadIdx.x, warp = i / WARP * WARP;
    part[i] = x[i];
    if (wait) {
        __syncwarp();
    } else {
        __shfl_xor_sync(~0u, i, 1);
    }
    y[i] = part[warp + (i + 1) % WARP];
}

static void takes_a_shuffle_for_a_barrier(bool mistaken)
{
    emu_buffer<float> x("x", EMU_READ, THREADS), y("y", EMU_WRITE, THREADS);
    fill_numbers(x);
    planted_launch(planted_rotate_in_warp, 1, THREADS, THREADS * sizeof(float), NULL, x.data,
                   y.data, !mistaken);
}

/* Sums in halves; the second barrier keeps part[] until all have read it. */
__global__ void planted_sums(const float *x, float *y, int rounds, bool wait)
{
    float *part = (float *)emu_shared_memory();
    const int i = (int)threadIdx.x;
    float sum = 0;
    for (int round = 0; round < rounds; round++) {
        part[i] = x[round * THREADS + i];
        __syncthreads();
        sum += part[i] + part[THREADS - 1 - i];
        if (wait) __syncthreads();
    }
    y[i] = sum;
}

static void overwrites_what_others_read(bool mistaken)
{
    emu_buffer<float> x("x", EMU_READ, 3 * THREADS), y("y", EMU_WRITE, THREADS);
    fill_numbers(x);
    planted_launch(planted_sums, 1, THREADS, THREADS * sizeof(float), NULL, x.data, y.data, 3,
                   !mistaken);
}

/* All threads add to one float without atomics. */
__global__ void planted_count(float *sum, bool alone)
{
    if (!alone || threadIdx.x == 0) *sum += 1;
}

static void adds_without_order(bool mistaken)
{
    emu_buffer<float> sum("sum", EMU_BOTH, 1);
    sum[0] = 0;
    planted_launch(planted_count, 1, WARP, 0, NULL, sum.data, !mistaken);
}

__global__ void planted_branch(const float *x, float *y, bool diverge)
{
    const int i = (int)threadIdx.x;
    if (diverge && i >= WARP) {
        __syncthreads();
        y[i] = -x[i];
    } else {
        __syncthreads();
        y[i] = x[i];
    }
}

static void waits_in_two_branches(bool mistaken)
{
    emu_buffer<float> x("x", EMU_READ, THREADS), y("y", EMU_SCRATCH, THREADS);
    fill_numbers(x);
    planted_launch(planted_branch, 1, THREADS, 0, NULL, x.data, y.data, mistaken);
}

__global__ void planted_leave(float *y, int n)
{
    const int i = (int)threadIdx.x;
    if (i >= n) return;
    __syncthreads();
    y[i] = 1;
}

static void waits_for_the_ended(bool mistaken)
{
    emu_buffer<float> y("y", EMU_SCRATCH, THREADS);
    planted_launch(planted_leave, 1, THREADS, 0, NULL, y.data, mistaken ? THREADS - 5 : THREADS);
}

__global__ void planted_shuffle(int *y, int n)
{
    const int i = (int)threadIdx.x;
    if (i < n) y[i] = __shfl_xor_sync(~0u, i, 16);
}

static void shuffles_with_the_absent(bool mistaken)
{
    emu_buffer<int> y("y", EMU_SCRATCH, WARP);
    planted_launch(planted_shuffle, 1, WARP, 0, NULL, y.data, mistaken ? WARP - 1 : WARP);
}

__global__ void planted_two_shuffles(int *y, int n)
{
    const int i = (int)threadIdx.x;
    if (i < n) {
        y[i] = __shfl_xor_sync(~0u, i, 1);
    } else {
        y[i] = __shfl_down_sync(~0u, i, 1);
    }
}

static void mixes_shuffles(bool mistaken)
{
    emu_buffer<int> y("y", EMU_SCRATCH, WARP);
    planted_launch(planted_two_shuffles, 1, WARP, 0, NULL, y.data, mistaken ? WARP / 2 : WARP);
}

const struct planted planted_threads[] = {
    {"misses a barrier", EMU_RACE_THREADS, misses_a_barrier},
    {"takes a shuffle for a barrier", EMU_RACE_THREADS, takes_a_shuffle_for_a_barrier},
    {"overwrites what others read", EMU_RACE_THREADS, overwrites_what_others_read},
    {"adds without order", EMU_RACE_THREADS, adds_without_order},
    {"waits in two branches", EMU_BARRIER, waits_in_two_branches},
    {"waits for the ended", EMU_BARRIER, waits_for_the_ended},
    {"shuffles with the absent", EMU_MEETING, shuffles_with_the_absent},
    {"mixes shuffles", EMU_MEETING, mixes_shuffles},
};
const int planted_threads_count = sizeof(planted_threads) / sizeof(planted_threads[0]);
