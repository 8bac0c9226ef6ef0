/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/planted/planted.h"

enum { N = 100, THREADS = 64 };

/* y = 2 x for n elements; `more` elements are out of bounds. */
__global__ void planted_double(const float *x, float *y, int n, int more)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n + more) y[i] = 2 * x[i];
}

static void fill_numbers(const emu_buffer<float> &x)
{
    for (int64_t i = 0; i < x.n; i++) {
        x[i] = (float)i;
    }
}

static void reads_one_too_many(bool mistaken)
{
    emu_buffer<float> x("x", EMU_READ, N), y("y", EMU_WRITE, N + 1);
    fill_numbers(x);
    planted_launch(planted_double, 2, THREADS, 0, NULL, x.data, y.data, N, mistaken);
    if (!mistaken) planted_launch(planted_double, 1, 1, 0, NULL, x.data, y.data + N, 1, 0);
}

/* The access is in the program's memory, but outside the operand. */
static void writes_into_the_neighbour(bool mistaken)
{
    static float both[2 * N];
    emu_buffer<float> x("x", EMU_READ, N + 1);
    fill_numbers(x);
    emu_watch_operand("left", both, N * sizeof(float), EMU_WRITE);
    emu_watch_operand("right", both + N, N * sizeof(float), EMU_READ);
    planted_launch(planted_double, 2, THREADS, 0, NULL, x.data, both, N, mistaken);
    emu_watch_release(both);
    emu_watch_release(both + N);
}

static void leaves_the_last_element(bool mistaken)
{
    emu_buffer<float> x("x", EMU_READ, N), y("y", EMU_WRITE, N);
    fill_numbers(x);
    planted_launch(planted_double, 2, THREADS, 0, NULL, x.data, y.data, N, mistaken ? -1 : 0);
}

static void swaps_operands(bool mistaken)
{
    emu_buffer<float> x("x", EMU_READ, N), y("y", EMU_WRITE, N);
    fill_numbers(x);
    fill_numbers(y);
    float *from = mistaken ? y.data : x.data, *to = mistaken ? x.data : y.data;
    planted_launch(planted_double, 2, THREADS, 0, NULL, from, to, N, 0);
}

static void reads_what_nobody_wrote(bool mistaken)
{
    emu_buffer<float> x("x", EMU_READ, N), y("y", EMU_SCRATCH, N), z("z", EMU_WRITE, N);
    fill_numbers(x);
    planted_launch(planted_double, 2, THREADS, 0, NULL, x.data, y.data, mistaken ? N - 1 : N, 0);
    planted_launch(planted_double, 2, THREADS, 0, NULL, y.data, z.data, N, 0);
}

/* Every fourth thread takes four elements at once, from `first` on. */
__global__ void planted_copy_16(const float *x, float *y, int n, int first)
{
    const int i = 4 * (int)threadIdx.x + first;
    if (i + 4 <= n) emu_store_16(y + i, emu_load_16(x + i));
}

static void reads_16_bytes_off_their_place(bool mistaken)
{
    emu_buffer<float> x("x", EMU_READ, N), y("y", EMU_SCRATCH, N);
    fill_numbers(x);
    planted_launch(planted_copy_16, 1, THREADS, 0, NULL, x.data, y.data, N, mistaken ? 1 : 0);
}

/* A block's sum in shared memory; `fill` sets the tail to zeros. */
__global__ void planted_sum(const float *x, float *y, int n, bool fill)
{
    float *part = (float *)emu_shared_memory();
    const int i = (int)threadIdx.x;
    if (i < n) {
        part[i] = x[i];
    } else if (fill) {
        part[i] = 0;
    }
    for (int width = THREADS / 2; width > 0; width /= 2) {
        __syncthreads();
        if (i < width) part[i] += part[i + width];
    }
    if (i == 0) *y = part[0];
}

void planted_adds_up_unwritten_shared_memory(bool mistaken)
{
    emu_buffer<float> x("x", EMU_READ, THREADS - 3), y("y", EMU_WRITE, 1);
    fill_numbers(x);
    planted_launch(planted_sum, 1, THREADS, THREADS * sizeof(float), NULL, x.data, y.data, x.n,
                   !mistaken);
    /* Without a check the sum is NaN. */
    emu_expect(std::isnan(y[0]) == mistaken, "shared memory begins as NaN: the sum is %g",
               (double)y[0]);
}

static void leaves_shared_memory(bool mistaken)
{
    emu_buffer<float> x("x", EMU_READ, THREADS), y("y", EMU_WRITE, 1);
    fill_numbers(x);
    planted_launch(planted_sum, 1, THREADS, (THREADS - mistaken) * sizeof(float), NULL, x.data,
                   y.data, THREADS, true);
}

const struct planted planted_memory[] = {
    {"reads one too many", EMU_BOUNDS, reads_one_too_many},
    {"writes into the neighbour", EMU_READ_ONLY, writes_into_the_neighbour},
    {"leaves its shared memory", EMU_BOUNDS, leaves_shared_memory},
    {"leaves the last element", EMU_UNWRITTEN, leaves_the_last_element},
    {"swaps operands", EMU_READ_ONLY, swaps_operands},
    {"swaps operands, again", EMU_UNINITIALISED, swaps_operands},
    {"reads what nobody wrote", EMU_UNINITIALISED, reads_what_nobody_wrote},
    {"adds up unwritten shared memory", EMU_UNINITIALISED, planted_adds_up_unwritten_shared_memory},
    {"reads 16 bytes off their place", EMU_ALIGNMENT, reads_16_bytes_off_their_place},
};
const int planted_memory_count = sizeof(planted_memory) / sizeof(planted_memory[0]);
