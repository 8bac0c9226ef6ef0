/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/planted/planted.h"

enum { THREADS = 64, BLOCKS = 4, N = THREADS * BLOCKS };

__global__ void planted_copy(const float *x, float *y, int step)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    y[i] = x[i * step % N + i * step / N];
}

static void fill_numbers(const emu_buffer<float> &x)
{
    for (int64_t i = 0; i < x.n; i++) {
        x[i] = (float)i;
    }
}

static void goes_through_memory_in_steps(bool mistaken)
{
    emu_buffer<float> x("x", EMU_READ, N), y("y", EMU_WRITE, N);
    fill_numbers(x);
    emu_watch_limit({1.1, 0, 0});
    planted_launch(planted_copy, BLOCKS, THREADS, 0, NULL, x.data, y.data, mistaken ? 16 : 1);
    emu_watch_limit({});
}

/* Transposes a tile of 32 x 32 with rows `pitch` apart. */
__global__ void planted_turn(const float *x, float *y, int pitch)
{
    float *tile = (float *)emu_shared_memory();
    for (int row = (int)threadIdx.y; row < 32; row += (int)blockDim.y) {
        tile[row * pitch + (int)threadIdx.x] = x[row * 32 + (int)threadIdx.x];
    }
    __syncthreads();
    for (int row = (int)threadIdx.y; row < 32; row += (int)blockDim.y) {
        y[row * 32 + (int)threadIdx.x] = tile[(int)threadIdx.x * pitch + row];
    }
}

static void meets_in_one_bank(bool mistaken)
{
    emu_buffer<float> x("x", EMU_READ, 1024), y("y", EMU_WRITE, 1024);
    fill_numbers(x);
    int pitch = mistaken ? 32 : 33;
    void *arguments[] = {(void *)&x.data, (void *)&y.data, &pitch};
    emu_watch_limit({0, 1.1, 0});
    cudaLaunchKernel(planted_turn, dim3(1), dim3(32, 8), arguments, 32 * 33 * sizeof(float), NULL);
    emu_watch_limit({});
    emu_expect(y[32] == 1 && y[1] == 32, "the tile is turned");
}

/* Each thread takes the mean of itself and its neighbours, or of itself alone. */
__global__ void planted_mean(const float *x, float *y, int around)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    float sum = 0;
    for (int j = i - around; j <= i + around; j++) {
        sum += x[j < 0 ? 0 : j >= N ? N - 1 : j];
    }
    y[i] = sum / (float)(2 * around + 1);
}

static void reads_everything_again(bool mistaken)
{
    emu_buffer<float> x("x", EMU_READ, N), y("y", EMU_WRITE, N);
    fill_numbers(x);
    emu_watch_limit({0, 0, 1.05});
    planted_launch(planted_mean, BLOCKS, THREADS, 0, NULL, x.data, y.data, mistaken ? 1 : 0);
    emu_watch_limit({});
}

const struct planted planted_traffic[] = {
    {"goes through memory in steps", EMU_SECTORS, goes_through_memory_in_steps},
    {"meets in one bank", EMU_BANKS, meets_in_one_bank},
    {"reads everything again", EMU_TRAFFIC, reads_everything_again},
};
const int planted_traffic_count = sizeof(planted_traffic) / sizeof(planted_traffic[0]);
