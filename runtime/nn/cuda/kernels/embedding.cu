/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up rows of tables by tokens and positions, and computes their gradients. Gradients are
 * added in row order, because tokens repeat. No two blocks write the same row of a table. */
#include "runtime/nn/cuda/kernels/each.h"
#include "runtime/nn/cuda/kernels/layers.h"

/* A warp does a row of y, or of the table of positions. */
enum { EMBED_ROWS = 8, EMBED_THREADS = EMBED_ROWS * WARP, EMBED_BLOCKS = 4 };

template <typename T> struct tables {
    int64_t rows, width, seq_len, vocab;
    const int32_t *tokens;
    const T *table, *positions;
    float scale; /* of rows of the table */
    T *y;
    uint32_t *bad;
};

/* Does elements column to column + N of row `row`. */
template <int N, typename T>
GPU void embed_group(const tables<T> &t, int64_t row, int64_t token, int64_t column)
{
    float x[N] = {}, position[N];
    if (token >= 0) load<N>(t.table + token * t.width + column, x);
#pragma unroll
    for (int j = 0; j < N; j++) {
        x[j] = t.scale * x[j];
    }
    if (t.positions != NULL) {
        load<N>(t.positions + row % t.seq_len * t.width + column, position);
#pragma unroll
        for (int j = 0; j < N; j++) {
            x[j] = x[j] + position[j];
        }
    }
    store<N>(x, t.y + row * t.width + column);
}

template <typename T>
__global__ void __launch_bounds__(EMBED_THREADS, EMBED_BLOCKS) embed(tables<T> t, bool wide)
{
    enum { GROUP = 16 / (int)sizeof(T) };
    const int64_t row = (int64_t)blockIdx.x * EMBED_ROWS + threadIdx.y;
    if (row >= t.rows) return;
    int64_t token = t.tokens[row];
    if (token < 0 || token >= t.vocab) {
        token = -1;
        if (threadIdx.x == 0) atomicMin(t.bad, (uint32_t)row);
    }
    if (wide) {
        for (int64_t i = threadIdx.x * GROUP; i < t.width; i += WARP * GROUP) {
            embed_group<GROUP>(t, row, token, i);
        }
    } else {
        for (int64_t i = threadIdx.x; i < t.width; i += WARP) {
            embed_group<1>(t, row, token, i);
        }
    }
}

/* Gradients: dy has elements T, the table's gradient U. */
template <typename T, typename U> struct table_gradient {
    int64_t rows, width, table_rows, seq_len;
    const int32_t *tokens;
    const T *dy;
    float scale; /* of rows of tokens */
    bool accumulate;
    U *gradient;
};

/* Gradients of positions: row p of the table gets rows p, seq_len + p, ... of dy. */
template <int N, typename T, typename U>
GPU void add_samples(const table_gradient<T, U> &t, int64_t position, int64_t column)
{
    float sum[N] = {}, x[N];
    U *to = t.gradient + position * t.width + column;
    const int64_t end = position < t.seq_len ? t.rows : 0;
    if (t.accumulate) load<N>(to, sum);
#pragma unroll 4
    for (int64_t row = position; row < end; row += t.seq_len) {
        load<N>(t.dy + row * t.width + column, x);
#pragma unroll
        for (int j = 0; j < N; j++) {
            sum[j] += x[j];
        }
    }
    store<N>(sum, to);
}

enum { TABLE_GROUP = 4 };

template <typename T, typename U>
__global__ void __launch_bounds__(EMBED_THREADS) embed_positions(table_gradient<T, U> t, bool wide)
{
    const int64_t position = (int64_t)blockIdx.x * EMBED_ROWS + threadIdx.y;
    if (position >= t.table_rows) return;
    if (wide) {
        for (int64_t i = threadIdx.x * TABLE_GROUP; i < t.width; i += WARP * TABLE_GROUP) {
            add_samples<TABLE_GROUP>(t, position, i);
        }
    } else {
        for (int64_t i = threadIdx.x; i < t.width; i += WARP) {
            add_samples<1>(t, position, i);
        }
    }
}

/* Gradients of tokens. A block has TABLE_ROWS rows of the table, and a group of columns for each
 * thread. It reads all tokens and lists the rows of dy that belong to its rows, in order. It adds
 * them when the list is full or complete. */
enum {
    TABLE_ROWS = 64,
    TABLE_THREADS = 256,
    TABLE_WARPS = TABLE_THREADS / WARP,
    TABLE_LIST = 1024,
    TABLE_END = -1
};

struct token_list {
    int32_t rows[TABLE_LIST];  /* of dy */
    int32_t next[TABLE_LIST];  /* index of the next entry with the same token */
    int32_t owner[TABLE_LIST]; /* row of the table, from the block's first one */
    int32_t head[TABLE_ROWS];  /* index of the first entry of each row of the table */
    int32_t tail[TABLE_ROWS];
    int32_t of_warp[TABLE_WARPS];
};

/* Appends the block's rows of dy among those from `begin` on, one a thread. Returns the new length
 * of the list. */
template <typename T, typename U>
GPU int32_t append_tokens(const table_gradient<T, U> &t, int64_t begin, int32_t count,
                          token_list *list)
{
    const int64_t row = begin + threadIdx.x, first = (int64_t)blockIdx.x * TABLE_ROWS;
    const int64_t owner = row < t.rows ? t.tokens[row] - first : TABLE_ROWS;
    const bool mine = owner >= 0 && owner < TABLE_ROWS && first + owner < t.table_rows;
    const uint32_t lanes = __ballot_sync(ALL_LANES, mine), lane = threadIdx.x % WARP;
    const uint32_t warp = threadIdx.x / WARP;
    if (lane == 0) list->of_warp[warp] = __popc(lanes);
    __syncthreads();
    int32_t at = count, total = count;
#pragma unroll
    for (uint32_t w = 0; w < TABLE_WARPS; w++) {
        at += w < warp ? list->of_warp[w] : 0;
        total += list->of_warp[w];
    }
    if (mine) {
        at += __popc(lanes & ((1u << lane) - 1));
        list->rows[at] = (int32_t)row;
        list->owner[at] = (int32_t)owner;
    }
    __syncthreads();
    return total;
}

/* One thread chains entries with the same token. */
GPU void chain_tokens(int32_t count, token_list *list)
{
    for (int row = threadIdx.x; row < TABLE_ROWS; row += TABLE_THREADS) {
        list->head[row] = TABLE_END;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int32_t i = 0; i < count; i++) {
            const int32_t owner = list->owner[i];
            if (list->head[owner] == TABLE_END) {
                list->head[owner] = i;
            } else {
                list->next[list->tail[owner]] = i;
            }
            list->tail[owner] = i;
            list->next[i] = TABLE_END;
        }
    }
    __syncthreads();
}

/* Adds a chain to one thread's columns of a row of the table, in order. Several rows of dy are
 * fetched before the first is added. */
template <int N, typename T, typename U>
GPU void add_chain(const table_gradient<T, U> &t, const token_list *list, int32_t head, bool adds,
                   int64_t column, U *to)
{
    enum { AHEAD = 4 };
    float sum[N] = {}, x[AHEAD][N];
    if (adds) load<N>(to, sum);
    for (int32_t i = head; i != TABLE_END;) {
        bool there[AHEAD];
#pragma unroll
        for (int a = 0; a < AHEAD; a++) {
            there[a] = i != TABLE_END;
            if (!there[a]) continue;
            load<N>(t.dy + list->rows[i] * t.width + column, x[a]);
            i = list->next[i];
        }
#pragma unroll
        for (int a = 0; a < AHEAD; a++) {
#pragma unroll
            for (int j = 0; there[a] && j < N; j++) {
                sum[j] += t.scale * x[a][j];
            }
        }
    }
    store<N>(sum, to);
}

/* `adds`: the rows hold partial results, and rows without a token stay. */
template <int N, typename T, typename U>
GPU void add_list(const table_gradient<T, U> &t, const token_list *list, bool adds)
{
    const int64_t first = (int64_t)blockIdx.x * TABLE_ROWS;
    const int64_t column = ((int64_t)blockIdx.y * TABLE_THREADS + threadIdx.x) * N;
    if (column >= t.width) return;
    for (int row = 0; row < TABLE_ROWS && first + row < t.table_rows; row++) {
        const int32_t head = list->head[row];
        if (head == TABLE_END && adds) continue;
        add_chain<N>(t, list, head, adds, column, t.gradient + (first + row) * t.width + column);
    }
}

template <typename T, typename U, int N>
__global__ void __launch_bounds__(TABLE_THREADS) embed_tokens(table_gradient<T, U> t)
{
    token_list *list = shared_memory<token_list>();
    int32_t count = 0;
    bool adds = t.accumulate;
    for (int64_t begin = 0; begin < t.rows; begin += TABLE_THREADS) {
        count = append_tokens(t, begin, count, list);
        if (count + TABLE_THREADS <= TABLE_LIST) continue;
        chain_tokens(count, list);
        add_list<N>(t, list, adds);
        __syncthreads();
        count = 0;
        adds = true;
    }
    chain_tokens(count, list);
    add_list<N>(t, list, adds);
}

/* A table's row joins each row of x. */
template <typename T> struct add_rows_op {
    enum { GROUP = 16 / (int)sizeof(T) };
    int64_t width, seq_len;
    bool by_position;
    const T *x, *table, *first;
    T *y;

    template <int N> GPU void at(int64_t i) const
    {
        const int64_t column = i % width, position = i / width % seq_len;
        float values[N], added[N];
        load<N>(first != NULL && position == 0 ? first + column : x + i, values);
        load<N>(table + (by_position ? position * width : 0) + column, added);
#pragma unroll
        for (int j = 0; j < N; j++) {
            values[j] = values[j] + added[j];
        }
        store<N>(values, y + i);
    }
    /* No group crosses the end of a row. */
    bool is_aligned(int64_t i) const
    {
        return i == 0 && width % GROUP == 0 && group_begins(x, GROUP, 0) &&
               group_begins(table, GROUP, 0) && group_begins(first, GROUP, 0) &&
               group_begins(y, GROUP, 0);
    }
};

template <typename T> struct clear_first_op {
    enum { GROUP = 16 / (int)sizeof(T) };
    int64_t width, seq_len;
    const T *from;
    T *to;

    template <int N> GPU void at(int64_t i) const
    {
        float values[N] = {};
        if (i / width % seq_len != 0) load<N>(from + i, values);
        store<N>(values, to + i);
    }
    bool is_aligned(int64_t i) const
    {
        return i == 0 && width % GROUP == 0 && group_begins(from, GROUP, 0) &&
               group_begins(to, GROUP, 0);
    }
};

static float scale_of(const struct weft_cuda_embedding *e)
{
    return e->scale != 0.0f ? e->scale : 1.0f;
}

int weft_cuda_add_rows(enum weft_dtype dtype, const struct weft_cuda_added_rows *a, const void *x,
                       void *y, struct CUstream_st *stream)
{
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        const add_rows_op<T> op = {a->width,     a->seq_len,          a->by_position,
                                   (const T *)x, (const T *)a->table, (const T *)a->first,
                                   (T *)y};
        return launch_each(op, a->rows * a->width, stream);
    });
}

int weft_cuda_clear_first_rows(enum weft_dtype dtype, int64_t rows, int64_t width, int64_t seq_len,
                               const void *from, void *to, struct CUstream_st *stream)
{
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        const clear_first_op<T> op = {width, seq_len, (const T *)from, (T *)to};
        return launch_each(op, rows * width, stream);
    });
}

int weft_cuda_embed(enum weft_dtype dtype, const struct weft_cuda_embedding *e, const void *table,
                    const void *positions, void *y, uint32_t *bad, struct CUstream_st *stream)
{
    if (e->rows <= 0) return 0;
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        enum { GROUP = 16 / (int)sizeof(T) };
        const tables<T> t = {e->rows,
                             e->width,
                             e->seq_len,
                             e->vocab,
                             e->tokens,
                             (const T *)table,
                             (const T *)positions,
                             scale_of(e),
                             (T *)y,
                             bad};
        const bool wide = e->width % GROUP == 0 && group_begins(t.table, GROUP, 0) &&
                          group_begins(t.positions, GROUP, 0) && group_begins(t.y, GROUP, 0);
        const struct weft_grid grid = {dim3((unsigned)divide_up(e->rows, EMBED_ROWS)),
                                       dim3(WARP, EMBED_ROWS), 0};
        return launch(embed<T>, grid, stream, t, wide);
    });
}

/* Calls fn with elements of dy and of the gradient, which is fp32 or has dy's dtype. */
template <typename F>
static int with_gradient(enum weft_dtype dtype, enum weft_dtype gradient_dtype, F fn)
{
    return with_dtype(dtype, [&](auto type) {
        if (gradient_dtype == WEFT_F32) return fn(type, float());
        return dtype == gradient_dtype ? fn(type, type) : (int)cudaErrorInvalidValue;
    });
}

template <typename T, typename U>
static table_gradient<T, U> gradient_of(const struct weft_cuda_embedding *e, int64_t table_rows,
                                        const struct weft_cuda_table *table)
{
    return {e->rows,     e->width,          table_rows,
            e->seq_len,  e->tokens,         (const T *)table->dy,
            scale_of(e), table->accumulate, (U *)table->gradient};
}

template <typename T, typename U> static bool table_is_wide(const table_gradient<T, U> &t)
{
    return t.width % TABLE_GROUP == 0 && group_begins(t.dy, TABLE_GROUP, 0) &&
           group_begins(t.gradient, TABLE_GROUP, 0);
}

int weft_cuda_embed_tokens(enum weft_dtype dtype, const struct weft_cuda_embedding *e,
                           const struct weft_cuda_table *table, struct CUstream_st *stream)
{
    return with_gradient(dtype, table->gradient_dtype, [&](auto type, auto gradient) {
        typedef decltype(type) T;
        typedef decltype(gradient) U;
        const table_gradient<T, U> t = gradient_of<T, U>(e, e->vocab, table);
        const bool wide = table_is_wide(t);
        const int64_t columns = TABLE_THREADS * (wide ? TABLE_GROUP : 1);
        const struct weft_grid grid = {
            dim3((unsigned)divide_up(e->vocab, TABLE_ROWS), (unsigned)divide_up(e->width, columns)),
            dim3(TABLE_THREADS), sizeof(token_list)};
        if (wide) return launch(embed_tokens<T, U, TABLE_GROUP>, grid, stream, t);
        return launch(embed_tokens<T, U, 1>, grid, stream, t);
    });
}

int weft_cuda_embed_positions(enum weft_dtype dtype, const struct weft_cuda_embedding *e,
                              int64_t positions, const struct weft_cuda_table *table,
                              struct CUstream_st *stream)
{
    return with_gradient(dtype, table->gradient_dtype, [&](auto type, auto gradient) {
        typedef decltype(type) T;
        typedef decltype(gradient) U;
        const table_gradient<T, U> t = gradient_of<T, U>(e, positions, table);
        const struct weft_grid grid = {dim3((unsigned)divide_up(positions, EMBED_ROWS)),
                                       dim3(WARP, EMBED_ROWS), 0};
        return launch(embed_positions<T, U>, grid, stream, t, table_is_wide(t));
    });
}
