/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of 16-bit heads on tensor cores, causal, within a window, or of all rows. A tile of
 * queries meets tiles of keys, and scores stay in registers. Backward has two passes, by keys and
 * by queries, and each sums its own outputs. Scores are powers of two, and a row's statistic is the
 * logarithm of its sum. */
#include "runtime/nn/cuda/kernels/attend.h"
#include "runtime/nn/cuda/kernels/attention.h"

/* Masks that kernels are compiled for. */
enum { ALL_KEYS, EARLIER_KEYS, WINDOW_OF_KEYS };

template <typename T> struct attend_call {
    int64_t samples, seq_len, heads;
    int64_t window; /* of WINDOW_OF_KEYS */
    int32_t shared; /* heads of queries that share one of keys and values */
    int32_t size;
    float scale; /* of scores */
    const T *from[3];
    T *to[3]; /* gradients */
    int64_t strides[3];
    const T *output, *d_output;
    T *forward_output;
    float *statistics, *dots;
};

enum attend_part { QUERY, KEY, VALUE };

/* Rows of queries, keys or values, or of their gradients, for a head of these. */
template <typename T, typename U>
GPU head_rows<U> part_rows(const attend_call<T> &c, U *const (&parts)[3], enum attend_part part,
                           int64_t head)
{
    return {parts[part] + (int64_t)blockIdx.z * c.seq_len * c.strides[part] + head * c.size,
            c.strides[part], c.seq_len, c.size};
}

template <typename T, typename U>
GPU head_rows<U> output_rows(const attend_call<T> &c, U *output, int64_t head)
{
    const int64_t width = c.heads * c.size;
    return {output + (int64_t)blockIdx.z * c.seq_len * width + head * c.size, width, c.seq_len,
            c.size};
}

/* The first row of a head of queries. */
template <typename T> GPU int64_t first_row(const attend_call<T> &c, int64_t head)
{
    return ((int64_t)blockIdx.z * c.heads + head) * c.seq_len;
}

/* Later tiles have more work and start first. */
GPU int64_t tile_of_block(int rows)
{
    return (int64_t)(gridDim.x - 1 - blockIdx.x) * rows;
}

/* Sets x of pairs with a key after the query. The lane's first row has number `row`, and the first
 * column `other`. Rows are queries and columns keys, or the other way round where `turned`. */
template <int BANDS, int OTHERS>
GPU void hide_later_keys(float (&x)[BANDS][OTHERS / 8][4], int64_t row, int64_t other, bool turned,
                         float to)
{
    const int distance = (int)(row - other), lane = (int)(threadIdx.x % WARP);
#pragma unroll
    for (int band = 0; band < BANDS; band++) {
#pragma unroll
        for (int i = 0; i < OTHERS / 8; i++) {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const int mine = distance + band * ATTEND_BAND + j / 2 * 8;
                const int column = i * 8 + lane % 4 * 2 + j % 2;
                if (turned ? column < mine : column > mine) x[band][i][j] = to;
            }
        }
    }
}

/* Sets x of pairs with a key from `end` on, which does not exist. The first column is key `other`.
 */
template <int BANDS, int OTHERS>
GPU void hide_missing_keys(float (&x)[BANDS][OTHERS / 8][4], int64_t other, int64_t end, float to)
{
    const int left = (int)(end - other), lane = (int)(threadIdx.x % WARP);
#pragma unroll
    for (int band = 0; band < BANDS; band++) {
#pragma unroll
        for (int i = 0; i < OTHERS / 8; i++) {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                if (i * 8 + lane % 4 * 2 + j % 2 >= left) x[band][i][j] = to;
            }
        }
    }
}

/* Keys that a tile of queries sees: up to its last row if attention is causal. */
template <int MASK, typename T> GPU int64_t end_of_keys(const attend_call<T> &c, int64_t tile_end)
{
    return MASK != ALL_KEYS && tile_end < c.seq_len ? tile_end : c.seq_len;
}

/* The first tile of keys that a tile of queries from row `first` on sees. */
template <int MASK, int KEYS, typename T>
GPU int64_t begin_of_keys(const attend_call<T> &c, int64_t first)
{
    const int64_t before = MASK == WINDOW_OF_KEYS ? first - c.window + 1 : 0;
    return before > 0 ? before / KEYS * KEYS : 0;
}

/* Sets x of pairs with a key before the query's window, as in hide_later_keys. */
template <int BANDS, int OTHERS>
GPU void hide_far_keys(float (&x)[BANDS][OTHERS / 8][4], int64_t row, int64_t other, bool turned,
                       int64_t window, float to)
{
    const int distance = (int)(row - other), lane = (int)(threadIdx.x % WARP);
    const int far = (int)window;
#pragma unroll
    for (int band = 0; band < BANDS; band++) {
#pragma unroll
        for (int i = 0; i < OTHERS / 8; i++) {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const int mine = distance + band * ATTEND_BAND + j / 2 * 8;
                const int column = i * 8 + lane % 4 * 2 + j % 2;
                if (turned ? column >= mine + far : column <= mine - far) x[band][i][j] = to;
            }
        }
    }
}

/* Four lanes share a row of sums. */
GPU float sum_of_row(float x)
{
    x += __shfl_xor_sync(ALL_LANES, x, 1);
    return x + __shfl_xor_sync(ALL_LANES, x, 2);
}
GPU float maximum_of_row(float x)
{
    x = fmaxf(x, __shfl_xor_sync(ALL_LANES, x, 1));
    return fmaxf(x, __shfl_xor_sync(ALL_LANES, x, 2));
}

enum { FORWARD_KEYS = 64 };

/* The score of a key before the window. A row may see no key of its first tile. The powers there
 * are 1, and the next tile multiplies them by 0, which an infinity would turn into NaN. Products
 * with a power of 2 are exact, so the difference of two is 0. */
static const float FAR_SCORE = -0x1p100f;

template <typename T, int SIZE, int BANDS> struct forward_tiles {
    attend_tile<T, attend_rows<BANDS>::OF_BLOCK, SIZE> query;
    attend_tile<T, FORWARD_KEYS, SIZE> key[2], value[2];
};

/* A warp's state of its rows; [band][0] is for rows of the upper half of a band. */
template <int SIZE, int BANDS> struct forward_state {
    float greatest[BANDS][2], sum[BANDS][2], output[BANDS][SIZE / 8][4];
};

/* Turns scores into powers of two of scale x score, less the row's maximum, and rescales earlier
 * results to the new maximum. */
template <int SIZE, int BANDS>
GPU void take_powers(float (&scores)[BANDS][FORWARD_KEYS / 8][4], float scale,
                     forward_state<SIZE, BANDS> *s)
{
#pragma unroll
    for (int row = 0; row < 2 * BANDS; row++) {
        const int band = row / 2, half = row % 2;
        float most = s->greatest[band][half], sum = 0;
#pragma unroll
        for (int i = 0; i < FORWARD_KEYS / 8; i++) {
            const float(&x)[4] = scores[band][i];
            most = fmaxf(most, fmaxf(x[2 * half], x[2 * half + 1]));
        }
        most = maximum_of_row(most);
        const float scaled = most * scale;
        const float by = power_of_two_near(s->greatest[band][half] * scale - scaled);
#pragma unroll
        for (int i = 0; i < FORWARD_KEYS / 8; i++) {
#pragma unroll
            for (int j = 2 * half; j < 2 * half + 2; j++) {
                scores[band][i][j] = power_of_two_near(fmaf(scores[band][i][j], scale, -scaled));
                sum += scores[band][i][j];
            }
        }
#pragma unroll
        for (int i = 0; i < SIZE / 8; i++) {
            s->output[band][i][2 * half] *= by;
            s->output[band][i][2 * half + 1] *= by;
        }
        s->greatest[band][half] = most;
        s->sum[band][half] = s->sum[band][half] * by + sum;
    }
}

/* Writes statistics and the output, divided by the sums of powers. */
template <typename T, int SIZE, int BANDS>
GPU void end_forward(const attend_call<T> &c, const forward_state<SIZE, BANDS> &s, float scale,
                     int64_t first, int64_t row, forward_tiles<T, SIZE, BANDS> *tiles)
{
    float by[BANDS][2];
#pragma unroll
    for (int band = 0; band < BANDS; band++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int64_t mine = row + band * ATTEND_BAND + half * 8;
            const float sum = sum_of_row(s.sum[band][half]);
            by[band][half] = 1.0f / sum;
            if (threadIdx.x % 4 == 0 && mine < c.seq_len) {
                c.statistics[first_row(c, blockIdx.y) + mine] =
                    s.greatest[band][half] * scale + logarithm_near(sum);
            }
        }
    }
    store_rows(s.output, by, &tiles->query, output_rows(c, c.forward_output, blockIdx.y), first);
}

template <typename T, int SIZE, int BANDS, int MASK>
__global__ void __launch_bounds__(ATTEND_THREADS, 2) attend_forward(attend_call<T> c)
{
    typedef attend_rows<BANDS> rows;
    forward_tiles<T, SIZE, BANDS> *tiles = shared_memory<forward_tiles<T, SIZE, BANDS>>();
    const int64_t head = blockIdx.y, shared = head / c.shared;
    const head_rows<const T> keys = part_rows(c, c.from, KEY, shared);
    const head_rows<const T> values = part_rows(c, c.from, VALUE, shared);
    const int64_t first = tile_of_block(rows::OF_BLOCK);
    const int64_t end = end_of_keys<MASK>(c, first + rows::OF_BLOCK);
    const int warp_row = (int)(threadIdx.x / WARP) * rows::OF_WARP;
    const int64_t warp_first = first + warp_row, row = warp_first + threadIdx.x % WARP / 4;
    const float scale = c.scale * ATTEND_LOG2_E;
    forward_state<SIZE, BANDS> s = {};
#pragma unroll
    for (int i = 0; i < 2 * BANDS; i++) {
        s.greatest[i / 2][i % 2] = -INFINITY;
    }
    const int64_t begin = begin_of_keys<MASK, FORWARD_KEYS>(c, first);
    start_rows(part_rows(c, c.from, QUERY, head), first, &tiles->query);
    start_rows(keys, begin, &tiles->key[0]);
    start_rows(values, begin, &tiles->value[0]);
    commit_copies();
    for (int64_t at = begin, stage = 0; at < end; at += FORWARD_KEYS, stage = 1 - stage) {
        if (at + FORWARD_KEYS < end) {
            start_rows(keys, at + FORWARD_KEYS, &tiles->key[1 - stage]);
            start_rows(values, at + FORWARD_KEYS, &tiles->value[1 - stage]);
        }
        commit_copies();
        wait_for_copies<1>();
        __syncthreads();
        if (MASK == ALL_KEYS || at < warp_first + rows::OF_WARP) {
            float scores[BANDS][FORWARD_KEYS / 8][4];
            multiply_rows(&tiles->query, warp_row, &tiles->key[stage], scores);
            if (MASK != ALL_KEYS && at + FORWARD_KEYS > warp_first) {
                hide_later_keys<BANDS, FORWARD_KEYS>(scores, row, at, false, -INFINITY);
            } else if (MASK == ALL_KEYS && at + FORWARD_KEYS > end) {
                hide_missing_keys<BANDS, FORWARD_KEYS>(scores, at, end, -INFINITY);
            }
            if (MASK == WINDOW_OF_KEYS && at <= warp_first + rows::OF_WARP - 1 - c.window) {
                hide_far_keys<BANDS, FORWARD_KEYS>(scores, row, at, false, c.window, FAR_SCORE);
            }
            take_powers(scores, scale, &s);
            weigh_rows<T, BANDS, FORWARD_KEYS>(scores, &tiles->value[stage], s.output);
        }
        __syncthreads();
    }
    end_forward(c, s, scale, first, row, tiles);
}

/* Computes the sum of probabilities times their gradients in each row. It equals the sum of the
 * output times its gradient. A row of a head has 16 lanes. */
enum { DOT_LANES = 16, DOT_ROWS = ATTEND_THREADS / DOT_LANES };

template <typename T>
__global__ void __launch_bounds__(ATTEND_THREADS) attend_dots(attend_call<T> c)
{
    const int64_t head = blockIdx.y;
    const head_rows<const T> output = output_rows(c, c.output, head);
    const head_rows<const T> d = output_rows(c, c.d_output, head);
    const int64_t row = (int64_t)blockIdx.x * DOT_ROWS + threadIdx.x / DOT_LANES;
    const int column = (int)(threadIdx.x % DOT_LANES) * ATTEND_CHUNK;
    float dot = 0;
    if (row < c.seq_len && column < c.size) {
        float x[ATTEND_CHUNK], y[ATTEND_CHUNK];
        load<ATTEND_CHUNK>(output.from + row * output.stride + column, x);
        load<ATTEND_CHUNK>(d.from + row * d.stride + column, y);
#pragma unroll
        for (int j = 0; j < ATTEND_CHUNK; j++) {
            dot = fmaf(x[j], y[j], dot);
        }
    }
#pragma unroll
    for (int by = DOT_LANES / 2; by > 0; by /= 2) {
        dot += __shfl_xor_sync(ALL_LANES, dot, by);
    }
    if (row < c.seq_len && column == 0) c.dots[first_row(c, head) + row] = dot;
}

/* Turns scores and gradients of probabilities into probabilities and gradients of scores. */
GPU void take_gradient(float scale, float statistic, float dot, float *score, float *d)
{
    *score = power_of_two_near(fmaf(*score, scale, -statistic));
    *d = *score * (*d - dot);
}

/* By keys. A block has a tile of keys and walks the queries that see them, OTHERS at a time, head
 * after head of those that share the keys. Scores lie transposed, keys by queries. */
template <typename T, int SIZE, int BANDS, int OTHERS> struct keys_tiles {
    attend_tile<T, attend_rows<BANDS>::OF_BLOCK, SIZE> key, value;
    attend_tile<T, OTHERS, SIZE> query[2], d_output[2];
    float statistics[2][OTHERS], dots[2][OTHERS];
};

/* A query after the last has probabilities of 0. */
template <typename T, int SIZE, int BANDS, int OTHERS>
GPU void start_queries(const attend_call<T> &c, int head, int first, int stage,
                       keys_tiles<T, SIZE, BANDS, OTHERS> *tiles)
{
    start_rows(part_rows(c, c.from, QUERY, head), first, &tiles->query[stage]);
    start_rows(output_rows(c, c.d_output, head), first, &tiles->d_output[stage]);
    if (threadIdx.x < OTHERS) {
        const int64_t row = first + threadIdx.x;
        const bool there = row < c.seq_len;
        tiles->statistics[stage][threadIdx.x] =
            there ? c.statistics[first_row(c, head) + row] : INFINITY;
        tiles->dots[stage][threadIdx.x] = there ? c.dots[first_row(c, head) + row] : 0.0f;
    }
}

template <typename T, int SIZE, int BANDS, int OTHERS, int MASK>
__global__ void __launch_bounds__(ATTEND_THREADS, 2) attend_keys(attend_call<T> c)
{
    typedef attend_rows<BANDS> rows;
    keys_tiles<T, SIZE, BANDS, OTHERS> *tiles = shared_memory<keys_tiles<T, SIZE, BANDS, OTHERS>>();
    /* 32 bits leave registers for the sums. */
    const int first = (int)blockIdx.x * rows::OF_BLOCK;
    const int64_t last = MASK == WINDOW_OF_KEYS ? first + rows::OF_BLOCK + c.window - 1 : c.seq_len;
    const int count = (int)(last < c.seq_len ? last : c.seq_len);
    const int lane = (int)(threadIdx.x % WARP);
    const int warp_row = (int)(threadIdx.x / WARP) * rows::OF_WARP;
    const int warp_first = first + warp_row, key = warp_first + lane / 4;
    const float scale = c.scale * ATTEND_LOG2_E;
    float d_key[BANDS][SIZE / 8][4] = {}, d_value[BANDS][SIZE / 8][4] = {};
    start_rows(part_rows(c, c.from, KEY, blockIdx.y), first, &tiles->key);
    start_rows(part_rows(c, c.from, VALUE, blockIdx.y), first, &tiles->value);
#pragma unroll 1
    for (int head = (int)blockIdx.y * c.shared; head < (int)(blockIdx.y + 1) * c.shared; head++) {
        start_queries(c, head, MASK != ALL_KEYS ? first : 0, 0, tiles);
        commit_copies();
        for (int at = MASK != ALL_KEYS ? first : 0, stage = 0; at < count;
             at += OTHERS, stage = 1 - stage) {
            if (at + OTHERS < count) start_queries(c, head, at + OTHERS, 1 - stage, tiles);
            commit_copies();
            wait_for_copies<1>();
            __syncthreads();
            if (MASK == ALL_KEYS || at + OTHERS > warp_first) {
                float scores[BANDS][OTHERS / 8][4], d[BANDS][OTHERS / 8][4];
                multiply_rows(&tiles->key, warp_row, &tiles->query[stage], scores);
                multiply_rows(&tiles->value, warp_row, &tiles->d_output[stage], d);
#pragma unroll
                for (int i = 0; i < OTHERS / 8; i++) {
#pragma unroll
                    for (int j = 0; j < 4 * BANDS; j++) {
                        const int other = i * 8 + lane % 4 * 2 + j % 2;
                        take_gradient(scale, tiles->statistics[stage][other],
                                      tiles->dots[stage][other], &scores[j / 4][i][j % 4],
                                      &d[j / 4][i][j % 4]);
                    }
                }
                if (MASK != ALL_KEYS && at < warp_first + rows::OF_WARP - 1) {
                    hide_later_keys<BANDS, OTHERS>(scores, key, at, true, 0);
                    hide_later_keys<BANDS, OTHERS>(d, key, at, true, 0);
                }
                if (MASK == WINDOW_OF_KEYS && at + OTHERS > warp_first + c.window) {
                    hide_far_keys<BANDS, OTHERS>(scores, key, at, true, c.window, 0);
                    hide_far_keys<BANDS, OTHERS>(d, key, at, true, c.window, 0);
                }
                weigh_rows<T, BANDS, OTHERS>(scores, &tiles->d_output[stage], d_value);
                weigh_rows<T, BANDS, OTHERS>(d, &tiles->query[stage], d_key);
            }
            __syncthreads();
        }
    }
    float scaled[BANDS][2], as_it_is[BANDS][2];
#pragma unroll
    for (int i = 0; i < 2 * BANDS; i++) {
        scaled[i / 2][i % 2] = c.scale;
        as_it_is[i / 2][i % 2] = 1;
    }
    store_rows(d_key, scaled, &tiles->key, part_rows(c, c.to, KEY, blockIdx.y), first);
    store_rows(d_value, as_it_is, &tiles->value, part_rows(c, c.to, VALUE, blockIdx.y), first);
}

/* By queries. A block has a tile of queries and walks the keys that they see. */
template <typename T, int SIZE, int BANDS, int OTHERS> struct queries_tiles {
    attend_tile<T, attend_rows<BANDS>::OF_BLOCK, SIZE> query, d_output;
    attend_tile<T, OTHERS, SIZE> key[2], value[2];
};

template <typename T, int SIZE, int BANDS, int OTHERS, int MASK>
__global__ void __launch_bounds__(ATTEND_THREADS, 2) attend_queries(attend_call<T> c)
{
    typedef attend_rows<BANDS> rows;
    queries_tiles<T, SIZE, BANDS, OTHERS> *tiles =
        shared_memory<queries_tiles<T, SIZE, BANDS, OTHERS>>();
    const int64_t head = blockIdx.y, shared = head / c.shared;
    const head_rows<const T> keys = part_rows(c, c.from, KEY, shared);
    const head_rows<const T> values = part_rows(c, c.from, VALUE, shared);
    const int64_t first = tile_of_block(rows::OF_BLOCK);
    const int64_t end = end_of_keys<MASK>(c, first + rows::OF_BLOCK);
    const int warp_row = (int)(threadIdx.x / WARP) * rows::OF_WARP;
    const int64_t warp_first = first + warp_row, row = warp_first + threadIdx.x % WARP / 4;
    const float scale = c.scale * ATTEND_LOG2_E;
    float d_query[BANDS][SIZE / 8][4] = {}, statistics[BANDS][2], dots[BANDS][2], scaled[BANDS][2];
#pragma unroll
    for (int i = 0; i < 2 * BANDS; i++) {
        const int64_t mine = row + i * 8;
        const bool there = mine < c.seq_len;
        statistics[i / 2][i % 2] = there ? c.statistics[first_row(c, head) + mine] : INFINITY;
        dots[i / 2][i % 2] = there ? c.dots[first_row(c, head) + mine] : 0;
        scaled[i / 2][i % 2] = c.scale;
    }
    start_rows(part_rows(c, c.from, QUERY, head), first, &tiles->query);
    const int64_t begin = begin_of_keys<MASK, OTHERS>(c, first);
    start_rows(output_rows(c, c.d_output, head), first, &tiles->d_output);
    start_rows(keys, begin, &tiles->key[0]);
    start_rows(values, begin, &tiles->value[0]);
    commit_copies();
    for (int64_t at = begin, stage = 0; at < end; at += OTHERS, stage = 1 - stage) {
        if (at + OTHERS < end) {
            start_rows(keys, at + OTHERS, &tiles->key[1 - stage]);
            start_rows(values, at + OTHERS, &tiles->value[1 - stage]);
        }
        commit_copies();
        wait_for_copies<1>();
        __syncthreads();
        if (MASK == ALL_KEYS || at < warp_first + rows::OF_WARP) {
            float scores[BANDS][OTHERS / 8][4], d[BANDS][OTHERS / 8][4];
            multiply_rows(&tiles->query, warp_row, &tiles->key[stage], scores);
            multiply_rows(&tiles->d_output, warp_row, &tiles->value[stage], d);
#pragma unroll
            for (int i = 0; i < OTHERS / 8; i++) {
#pragma unroll
                for (int j = 0; j < 4 * BANDS; j++) {
                    const int band = j / 4, half = j % 4 / 2;
                    take_gradient(scale, statistics[band][half], dots[band][half],
                                  &scores[band][i][j % 4], &d[band][i][j % 4]);
                }
            }
            if (MASK != ALL_KEYS && at + OTHERS > warp_first) {
                hide_later_keys<BANDS, OTHERS>(d, row, at, false, 0);
            } else if (MASK == ALL_KEYS && at + OTHERS > end) {
                hide_missing_keys<BANDS, OTHERS>(d, at, end, 0);
            }
            if (MASK == WINDOW_OF_KEYS && at <= warp_first + rows::OF_WARP - 1 - c.window) {
                hide_far_keys<BANDS, OTHERS>(d, row, at, false, c.window, 0);
            }
            weigh_rows<T, BANDS, OTHERS>(d, &tiles->key[stage], d_query);
        }
        __syncthreads();
    }
    store_rows(d_query, scaled, &tiles->query, part_rows(c, c.to, QUERY, head), first);
}

/* Interface */

bool weft_cuda_attends(const struct weft_cuda_heads *h)
{
    const uintptr_t places = (uintptr_t)h->query | (uintptr_t)h->key | (uintptr_t)h->value;
    const int64_t strides = h->query_stride | h->key_stride | h->value_stride;
    return h->dtype != WEFT_F32 && h->size > 0 && h->size <= 128 && h->size % ATTEND_CHUNK == 0 &&
           h->kv_heads > 0 && h->heads % h->kv_heads == 0 && strides % ATTEND_CHUNK == 0 &&
           places % 16 == 0 && h->mask.cap == 0 && h->mask.tokens == NULL;
}

template <typename T> static attend_call<T> call_of(const struct weft_cuda_heads *h)
{
    attend_call<T> c = {};
    c.samples = h->samples;
    c.seq_len = h->seq_len;
    c.heads = h->heads;
    c.window = h->mask.window;
    c.shared = (int32_t)(h->heads / h->kv_heads);
    c.size = (int32_t)h->size;
    c.scale = (float)(1 / sqrt(h->scalar > 0 ? h->scalar : (double)c.size));
    c.from[QUERY] = (const T *)h->query;
    c.from[KEY] = (const T *)h->key;
    c.from[VALUE] = (const T *)h->value;
    c.strides[QUERY] = h->query_stride;
    c.strides[KEY] = h->key_stride;
    c.strides[VALUE] = h->value_stride;
    return c;
}

template <typename T>
static struct weft_grid grid_of(const attend_call<T> &c, int64_t rows, int64_t heads)
{
    return {dim3((unsigned)divide_up(c.seq_len, rows), (unsigned)heads, (unsigned)c.samples),
            dim3(ATTEND_THREADS), 0};
}

/* Calls fn with the mask of kernels. */
template <typename F> static int with_mask(const struct weft_cuda_mask &mask, F fn)
{
    if (mask.both_ways) return fn(std::integral_constant<int, ALL_KEYS>());
    if (mask.window > 0) return fn(std::integral_constant<int, WINDOW_OF_KEYS>());
    return fn(std::integral_constant<int, EARLIER_KEYS>());
}

/* Calls fn with the smallest kernel size that fits a head. */
template <typename F> static int with_size(int32_t size, F fn)
{
    if (size <= 32) return fn(std::integral_constant<int, 32>());
    if (size <= 64) return fn(std::integral_constant<int, 64>());
    if (size <= 96) return fn(std::integral_constant<int, 96>());
    return fn(std::integral_constant<int, 128>());
}

template <int MASK, typename T> static int run_forward(const attend_call<T> &c, cudaStream_t stream)
{
    return with_size(c.size, [&](auto of) {
        constexpr int SIZE = decltype(of)::value, BANDS = SIZE <= 64 ? 2 : 1;
        struct weft_grid grid = grid_of(c, attend_rows<BANDS>::OF_BLOCK, c.heads);
        grid.shared_bytes = sizeof(forward_tiles<T, SIZE, BANDS>);
        return launch(attend_forward<T, SIZE, BANDS, MASK>, grid, stream, c);
    });
}

template <int MASK, typename T>
static int run_backward(const attend_call<T> &c, cudaStream_t stream)
{
    const int error = launch(attend_dots<T>, grid_of(c, DOT_ROWS, c.heads), stream, c);
    if (error != 0) return error;
    return with_size(c.size, [&](auto of) {
        /* as many as leave registers for a key's two gradients */
        constexpr int SIZE = decltype(of)::value, BANDS = SIZE <= 64 ? 2 : 1, OTHERS = 32;
        struct weft_grid grid = grid_of(c, attend_rows<BANDS>::OF_BLOCK, c.heads / c.shared);
        grid.shared_bytes = sizeof(keys_tiles<T, SIZE, BANDS, OTHERS>);
        const int failed = launch(attend_keys<T, SIZE, BANDS, OTHERS, MASK>, grid, stream, c);
        if (failed != 0) return failed;
        grid = grid_of(c, attend_rows<BANDS>::OF_BLOCK, c.heads);
        grid.shared_bytes = sizeof(queries_tiles<T, SIZE, BANDS, OTHERS>);
        return launch(attend_queries<T, SIZE, BANDS, OTHERS, MASK>, grid, stream, c);
    });
}

int weft_cuda_attend_heads(const struct weft_cuda_heads *h, void *output, float *statistics,
                           struct CUstream_st *stream)
{
    if (!weft_cuda_attends(h) || (uintptr_t)output % 16 != 0) return cudaErrorInvalidValue;
    if (h->samples * h->seq_len <= 0) return 0;
    return with_half(h->dtype, [&](auto type) {
        typedef decltype(type) T;
        attend_call<T> c = call_of<T>(h);
        c.forward_output = (T *)output;
        c.statistics = statistics;
        return with_mask(h->mask,
                         [&](auto mask) { return run_forward<decltype(mask)::value>(c, stream); });
    });
}

int weft_cuda_attend_heads_backward(const struct weft_cuda_heads *h, const void *output,
                                    const float *statistics, const void *d_output, float *dots,
                                    const struct weft_cuda_head_gradients *to,
                                    struct CUstream_st *stream)
{
    const uintptr_t places = (uintptr_t)output | (uintptr_t)d_output | (uintptr_t)to->query |
                             (uintptr_t)to->key | (uintptr_t)to->value;
    if (!weft_cuda_attends(h) || places % 16 != 0) return cudaErrorInvalidValue;
    if (h->samples * h->seq_len <= 0) return 0;
    return with_half(h->dtype, [&](auto type) {
        typedef decltype(type) T;
        attend_call<T> c = call_of<T>(h);
        c.output = (const T *)output;
        c.d_output = (const T *)d_output;
        c.to[QUERY] = (T *)to->query;
        c.to[KEY] = (T *)to->key;
        c.to[VALUE] = (T *)to->value;
        c.statistics = (float *)statistics;
        c.dots = dots;
        return with_mask(h->mask,
                         [&](auto mask) { return run_backward<decltype(mask)::value>(c, stream); });
    });
}

int weft_cuda_attend(const struct weft_cuda_attention *a, void *output, float *statistics,
                     struct CUstream_st *stream)
{
    const struct weft_cuda_heads heads = weft_cuda_heads_of(a);
    return weft_cuda_attend_heads(&heads, output, statistics, stream);
}

int weft_cuda_attend_backward(const struct weft_cuda_attention *a, const void *output,
                              const float *statistics, const void *d_output, float *dots,
                              void *d_qkv, struct CUstream_st *stream)
{
    const struct weft_cuda_heads heads = weft_cuda_heads_of(a);
    const struct weft_cuda_head_gradients to = weft_cuda_head_gradients_of(a, d_qkv);
    return weft_cuda_attend_heads_backward(&heads, output, statistics, d_output, dots, &to, stream);
}
