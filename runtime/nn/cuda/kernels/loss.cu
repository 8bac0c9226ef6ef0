/* SPDX-License-Identifier: Apache-2.0 */
/* Cross entropy. A block uses a row of logits twice: for the maximum and the sum of powers, then
 * for the gradient, which replaces the row. Shared memory holds the row if it can, so GPU memory is
 * read once. */
#include "runtime/nn/cuda/kernels/approximate.h"
#include "runtime/nn/cuda/kernels/layers.h"
#include "runtime/nn/cuda/kernels/tensor.h"

/* A multiprocessor has registers for LOSS_BLOCKS blocks, and on an H100 shared memory for two. Any
 * GPU gives a block LOSS_HELD_BYTES. */
enum {
    LOSS_THREADS = 512,
    LOSS_WARPS = LOSS_THREADS / WARP,
    LOSS_BLOCKS = 2,
    LOSS_HELD_BYTES = 99 << 10,
    LOSS_ACCESS = 16
};
static const float LOG2_E = 1.44269504088896341f;

/* The maximum of some numbers x, and the sum of 2^((x - greatest) log2 e). Without numbers: -inf
 * and 0. */
struct powers {
    float greatest, sum;
};

GPU float power_below(float x, float greatest)
{
    return power_of_two_near((x - greatest) * LOG2_E);
}

/* An infinity or NaN makes the sum NaN. */
GPU struct powers join_powers(struct powers a, struct powers b)
{
    const float greatest = fmaxf(a.greatest, b.greatest);
    const float of_a = a.sum == 0 ? 0 : a.sum * power_below(a.greatest, greatest);
    const float of_b = b.sum == 0 ? 0 : b.sum * power_below(b.greatest, greatest);
    return {greatest, of_a + of_b};
}

template <int N> GPU void add_powers(const float (&x)[N], struct powers *p)
{
    float greatest = x[0], sum = 0;
#pragma unroll
    for (int j = 1; j < N; j++) {
        greatest = fmaxf(greatest, x[j]);
    }
    greatest = fmaxf(greatest, p->greatest);
    if (greatest == -INFINITY) return;
#pragma unroll
    for (int j = 0; j < N; j++) {
        sum += power_below(x[j], greatest);
    }
    *p = {greatest, (p->sum == 0 ? 0 : p->sum * power_below(p->greatest, greatest)) + sum};
}

/* Joins the powers of all threads. Every thread gets the result. */
GPU struct powers join_of_block(struct powers p)
{
    struct powers *of_warps = shared_memory<struct powers>();
#pragma unroll
    for (int by = WARP / 2; by > 0; by /= 2) {
        const struct powers other = {__shfl_xor_sync(ALL_LANES, p.greatest, by),
                                     __shfl_xor_sync(ALL_LANES, p.sum, by)};
        p = join_powers(p, other);
    }
    if (threadIdx.x % WARP == 0) of_warps[threadIdx.x / WARP] = p;
    __syncthreads();
    p = of_warps[0];
#pragma unroll
    for (int warp = 1; warp < LOSS_WARPS; warp++) {
        p = join_powers(p, of_warps[warp]);
    }
    return p;
}

/* Calls fn(i, count) for this thread's elements of a row at any address. Elements before the first
 * wide access and after the last one come one by one. */
template <typename T, typename F> GPU void for_row(const T *row, int64_t width, F fn)
{
    enum { EACH = 16 / (int)sizeof(T) };
    const int64_t behind = (int64_t)((uintptr_t)row % 16) / (int64_t)sizeof(T);
    const int64_t head = (EACH - behind) % EACH < width ? (EACH - behind) % EACH : width;
    const int64_t end = head + (width - head) / EACH * EACH;
    if (threadIdx.x < head) fn((int64_t)threadIdx.x, std::integral_constant<int, 1>());
#pragma unroll 4
    for (int64_t i = head + threadIdx.x * EACH; i < end; i += LOSS_THREADS * EACH) {
        fn(i, std::integral_constant<int, EACH>());
    }
    if (end + threadIdx.x < width) fn(end + threadIdx.x, std::integral_constant<int, 1>());
}

/* Copies the row to shared memory, at the same distance from a multiple of 16 bytes. A thread reads
 * only its own elements, so it waits for its own copies alone. */
template <typename T> GPU const T *hold_row(const T *row, int64_t width)
{
    char *shared = shared_memory<char>() + LOSS_WARPS * sizeof(struct powers);
    T *held = (T *)(shared + (uintptr_t)row % LOSS_ACCESS);
    for_row(row, width, [&](int64_t i, auto count) {
        if constexpr (decltype(count)::value == 1) {
            held[i] = row[i];
        } else {
            start_copy(&held[i], row + i, true);
        }
    });
    commit_copies();
    wait_for_copies<0>();
    return held;
}

template <typename T, bool HELD>
__global__ void __launch_bounds__(LOSS_THREADS, LOSS_BLOCKS)
    cross_entropy(int64_t width, int64_t stride, const int32_t *targets, T *logits, double *losses,
                  uint32_t *bad)
{
    const int64_t row = blockIdx.x;
    const int64_t target = targets[row];
    const bool good = target >= 0 && target < width;
    T *x = logits + row * stride;
    if (target == WEFT_LEFT_OUT) {
        for_row(x, width, [&](int64_t i, auto count) {
            const float none[decltype(count)::value] = {};
            store<decltype(count)::value>(none, x + i);
        });
        if (threadIdx.x == 0) losses[row] = 0.0;
        return;
    }
    const float wanted = good ? widen(x[target]) : 0.0f;
    const T *from = HELD ? hold_row((const T *)x, width) : x;
    struct powers p = {-INFINITY, 0};
    for_row(x, width, [&](int64_t i, auto count) {
        constexpr int N = decltype(count)::value;
        float values[N];
        load<N>(from + i, values);
        add_powers(values, &p);
    });
    p = join_of_block(p);
    const float by = 1.0f / p.sum;
    for_row(x, width, [&](int64_t i, auto count) {
        constexpr int N = decltype(count)::value;
        float values[N];
        load<N>(from + i, values);
#pragma unroll
        for (int j = 0; j < N; j++) {
            const float probability = power_below(values[j], p.greatest) * by;
            values[j] = good && i + j == target ? probability - 1.0f : probability;
        }
        store<N>(values, x + i);
    });
    if (threadIdx.x > 0) return;
    if (!good && target != WEFT_NO_TARGET) atomicMin(bad, (uint32_t)row);
    losses[row] = good ? log((double)p.sum) - ((double)wanted - (double)p.greatest) : 0.0;
}

/* Threads fetch losses, and one thread adds them in order. */
__global__ void __launch_bounds__(LOSS_THREADS)
    loss_total(const double *losses, int64_t n, bool adds, double *total)
{
    double *fetched = shared_memory<double>();
    double sum = 0;
    for (int64_t begin = 0; begin < n; begin += LOSS_THREADS) {
        const int64_t i = begin + threadIdx.x;
        if (i < n) fetched[threadIdx.x] = losses[i];
        __syncthreads();
        for (int64_t j = begin; threadIdx.x == 0 && j < n && j < begin + LOSS_THREADS; j++) {
            sum += fetched[j - begin];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) *total = adds ? *total + sum : sum;
}

int weft_cuda_cross_entropy(enum weft_dtype dtype, int64_t rows, int64_t width, int64_t stride,
                            const int32_t *targets, void *logits, double *losses, uint32_t *bad,
                            struct CUstream_st *stream)
{
    struct weft_grid grid = {dim3((unsigned)rows), dim3(LOSS_THREADS),
                             LOSS_WARPS * sizeof(struct powers)};
    if (rows <= 0) return 0;
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        const size_t held = grid.shared_bytes + (size_t)width * sizeof(T) + LOSS_ACCESS;
        if (held > LOSS_HELD_BYTES) {
            return launch(cross_entropy<T, false>, grid, stream, width, stride, targets,
                          (T *)logits, losses, bad);
        }
        grid.shared_bytes = held;
        return launch(cross_entropy<T, true>, grid, stream, width, stride, targets, (T *)logits,
                      losses, bad);
    });
}

int weft_cuda_loss_total(int64_t n, const double *losses, bool adds, double *total,
                         struct CUstream_st *stream)
{
    const struct weft_grid grid = {dim3(1), dim3(LOSS_THREADS), LOSS_THREADS * sizeof(double)};
    return launch(loss_total, grid, stream, losses, n, adds, total);
}
