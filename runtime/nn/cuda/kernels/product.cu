/* SPDX-License-Identifier: Apache-2.0 */
/* The plain product: tiles in shared memory, and every element a chain of fmaf in the order of k.
 * Its bits are those of three loops, for any tiles. It serves proofs, and products that no library
 * does. */
#include "runtime/nn/cuda/kernels/access.h"
#include "runtime/nn/cuda/kernels/layers.h"

/* A block does SIDE x SIDE of c, a thread EACH x EACH. */
enum {
    SIDE = 64,
    DEPTH = 16, /* of k, in shared memory at once */
    EACH = 4,
    PRODUCT_LANES = SIDE / EACH,
    PRODUCT_THREADS = PRODUCT_LANES * PRODUCT_LANES,
    PITCH = SIDE + 4
};

struct product_tiles {
    float a[DEPTH][PITCH], b[DEPTH][PITCH];
};

/* op(a) is [m, k], and op(b) transposed is [n, k]. Both have `lines` lines. Element (i, l) is at i
 * * line + l * step, and one of the two is 1. `wide`: four adjacent elements may be read at
 * once. */
template <typename T> struct operand {
    const T *from;
    int64_t lines, line, step;
    bool wide;
};

template <typename T, typename U> struct product {
    operand<T> a, b;
    int64_t k;
    float alpha;
    const float *times; /* another factor, or NULL */
    bool accumulate, wide;
    U *c;
    int64_t c_stride;
    const U *bias, *residual, *gelu_input; /* or NULL */
    U *gelu;
    int64_t inner, a_by[2], b_by[2], c_by[2]; /* distances in batches: z / inner and z % inner */
};

/* Reads elements (i, l) to (i, l + EACH), or with `turned` (i, l) to (i + EACH, l). Elements beyond
 * the ends are 0. */
template <typename T>
GPU void read_operand(const operand<T> &o, int64_t k, int64_t i, int64_t l, bool turned,
                      float (&to)[EACH])
{
    const int64_t last = turned ? i + EACH : l + EACH, end = turned ? o.lines : k;
    const bool inside = turned ? l < k : i < o.lines;
    const T *from = o.from + i * o.line + l * o.step;
    if (inside && o.wide && last <= end) {
        load<EACH>(from, to);
        return;
    }
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        to[j] = inside && last - EACH + j < end ? widen(from[j]) : 0.0f;
    }
}

/* Reads SIDE lines from `first` on and DEPTH of k into tile[l][i]. */
template <typename T>
GPU void read_tile(const operand<T> &o, int64_t k, int64_t first, int64_t l, float (*tile)[PITCH])
{
    const int thread = (int)threadIdx.x;
    float x[EACH];
    if (o.line == 1) {
        const int depth = thread / PRODUCT_LANES, i = thread % PRODUCT_LANES * EACH;
        read_operand(o, k, first + i, l + depth, true, x);
        store<EACH>(x, &tile[depth][i]);
        return;
    }
    const int i = thread / (DEPTH / EACH), depth = thread % (DEPTH / EACH) * EACH;
    read_operand(o, k, first + i, l + depth, false, x);
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        tile[depth + j][i] = x[j];
    }
}

GPU void add_depth(const product_tiles *tiles, int depth, float (&sums)[EACH][EACH])
{
    float a[EACH], b[EACH];
    load<EACH>(&tiles->a[depth][threadIdx.x / PRODUCT_LANES * EACH], a);
    load<EACH>(&tiles->b[depth][threadIdx.x % PRODUCT_LANES * EACH], b);
#pragma unroll
    for (int i = 0; i < EACH; i++) {
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            sums[i][j] = fmaf(a[i], b[j], sums[i][j]);
        }
    }
}

/* Finishes N elements of c from (row, column) on, in the order and with the bits of the CPU's
 * weft_finish_row (runtime/nn/cpu/gemm/finish.h). */
template <int N, typename T, typename U>
GPU void finish_row(const product<T, U> &p, int64_t row, int64_t column, float (&x)[N])
{
    const int64_t at = row * p.c_stride + column;
    const float alpha = p.times != NULL ? p.alpha * *p.times : p.alpha;
    float bias[N], other[N];
#pragma unroll
    for (int j = 0; j < N; j++) {
        x[j] = alpha * x[j];
    }
    if (p.accumulate) {
        load<N>(p.c + at, other);
#pragma unroll
        for (int j = 0; j < N; j++) {
            x[j] = other[j] + x[j];
        }
    }
    if (p.bias != NULL) load<N>(p.bias + column, bias);
    if (p.residual != NULL) load<N>(p.residual + at, other);
#pragma unroll
    for (int j = 0; j < N; j++) {
        if (p.bias != NULL && p.residual != NULL) {
            x[j] += other[j] + bias[j];
        } else if (p.bias != NULL) {
            x[j] += bias[j];
        } else if (p.residual != NULL) {
            x[j] += other[j];
        }
    }
    if (p.gelu_input != NULL) {
        load<N>(p.gelu_input + at, other);
#pragma unroll
        for (int j = 0; j < N; j++) {
            x[j] *= gelu_slope(other[j]);
        }
    }
    store<N>(x, p.c + at);
    if (p.gelu == NULL) return;
#pragma unroll
    for (int j = 0; j < N; j++) {
        x[j] = gelu_of(rounded<U>(x[j]));
    }
    store<N>(x, p.gelu + at);
}

template <typename T, typename U>
__global__ void __launch_bounds__(PRODUCT_THREADS, 2) product_tile(product<T, U> p)
{
    product_tiles *tiles = shared_memory<product_tiles>();
    const int64_t outer = blockIdx.z / p.inner, inner = blockIdx.z % p.inner;
    const int64_t row = (int64_t)blockIdx.y * SIDE, column = (int64_t)blockIdx.x * SIDE;
    float sums[EACH][EACH] = {};
    p.a.from += outer * p.a_by[0] + inner * p.a_by[1];
    p.b.from += outer * p.b_by[0] + inner * p.b_by[1];
    p.c += outer * p.c_by[0] + inner * p.c_by[1];
    for (int64_t l = 0; l < p.k; l += DEPTH) {
        read_tile(p.a, p.k, row, l, tiles->a);
        read_tile(p.b, p.k, column, l, tiles->b);
        __syncthreads();
        const int depth = p.k - l < DEPTH ? (int)(p.k - l) : DEPTH;
        if (depth == DEPTH) {
#pragma unroll
            for (int i = 0; i < DEPTH; i++) {
                add_depth(tiles, i, sums);
            }
        } else {
#pragma unroll 1
            for (int i = 0; i < depth; i++) {
                add_depth(tiles, i, sums);
            }
        }
        __syncthreads();
    }
    const int64_t my_row = row + threadIdx.x / PRODUCT_LANES * EACH;
    const int64_t my_column = column + threadIdx.x % PRODUCT_LANES * EACH;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        if (my_row + i >= p.a.lines) break;
        if (p.wide && my_column + EACH <= p.b.lines) {
            finish_row<EACH>(p, my_row + i, my_column, sums[i]);
            continue;
        }
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            float one[1] = {sums[i][j]};
            if (my_column + j < p.b.lines) finish_row<1>(p, my_row + i, my_column + j, one);
        }
    }
}

/* Describes an operand: k is adjacent in each of `lines` lines, or k has lines. */
template <typename T>
static operand<T> operand_of(const void *from, int64_t lines, int64_t stride, bool k_has_lines,
                             const int64_t by[2])
{
    operand<T> o = {(const T *)from, lines, k_has_lines ? 1 : stride, k_has_lines ? stride : 1,
                    false};
    o.wide = stride % EACH == 0 && by[0] % EACH == 0 && by[1] % EACH == 0 &&
             group_begins(o.from, EACH, 0);
    return o;
}

template <typename T, typename U>
static int run_product(const struct weft_product *w, const struct weft_cuda_batch *batch,
                       const float *times, cudaStream_t stream)
{
    const struct weft_product_finish *f = &w->finish;
    product<T, U> p = {};
    p.a = operand_of<T>(w->a, w->m, w->a_stride, w->transpose_a, batch->a);
    p.b = operand_of<T>(w->b, w->n, w->b_stride, !w->transpose_b, batch->b);
    p.k = w->k;
    p.alpha = w->alpha;
    p.times = times;
    p.accumulate = w->accumulate;
    p.c = (U *)w->c;
    p.c_stride = w->c_stride;
    p.bias = (const U *)f->bias;
    p.residual = (const U *)f->residual;
    p.gelu_input = (const U *)f->gelu_input;
    p.gelu = (U *)f->gelu;
    p.inner = batch->count[1];
    for (int i = 0; i < 2; i++) {
        p.a_by[i] = batch->a[i];
        p.b_by[i] = batch->b[i];
        p.c_by[i] = batch->c[i];
    }
    p.wide = p.c_stride % EACH == 0 && batch->c[0] % EACH == 0 && batch->c[1] % EACH == 0 &&
             group_begins(p.c, EACH, 0) && group_begins(p.bias, EACH, 0) &&
             group_begins(p.residual, EACH, 0) && group_begins(p.gelu_input, EACH, 0) &&
             group_begins(p.gelu, EACH, 0);
    const struct weft_grid grid = {dim3((unsigned)divide_up(w->n, SIDE),
                                        (unsigned)divide_up(w->m, SIDE),
                                        (unsigned)(batch->count[0] * batch->count[1])),
                                   dim3(PRODUCT_THREADS), sizeof(product_tiles)};
    return launch(product_tile<T, U>, grid, stream, p);
}

int weft_cuda_product(const struct weft_product *product, const struct weft_cuda_batch *batch,
                      const float *times, struct CUstream_st *stream)
{
    static const struct weft_cuda_batch one = {{1, 1}, {0, 0}, {0, 0}, {0, 0}};
    const bool narrow = product->c_dtype == product->dtype;
    if (batch == NULL) batch = &one;
    if (product->triangle != WEFT_NO_TRIANGLE || product->finish.column_sums != NULL ||
        (!narrow && product->c_dtype != WEFT_F32)) {
        return cudaErrorInvalidValue;
    }
    if (product->m <= 0 || product->n <= 0 || batch->count[0] * batch->count[1] <= 0) return 0;
    return with_dtype(product->dtype, [&](auto type) {
        typedef decltype(type) T;
        if (narrow) return run_product<T, T>(product, batch, times, stream);
        return run_product<T, float>(product, batch, times, stream);
    });
}
