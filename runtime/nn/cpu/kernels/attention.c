/* SPDX-License-Identifier: Apache-2.0 */
/* Causal attention of a head, built for AVX2 and AVX-512. Scores lie transposed, keys by queries,
 * in tiles of 64 x 64, and only the lower triangle exists. A tile's queries are lanes, so softmax
 * needs no sums across lanes. Only queries and the output's gradient need a transposition. A tile
 * does all of its products while it is in the first cache. Elements of 16 bits are widened a tile
 * at a time, and results are rounded once. */
#include <string.h>

#include "runtime/nn/cpu/kernels/levels.h"
#include "runtime/nn/cpu/kernels/vectors.h"

/* Sums of ROWS x COLUMNS stay in registers. A tile of the diagonal is cut in parts of LINE lanes.
 */
enum {
    SIDE = WEFT_HEAD_SIDE,
    TILE = SIDE * SIDE,
    MOST_SIZE = WEFT_HEAD_MOST_SIZE,
    LINE = 16,
    VECTORS = VECTOR == 16 ? 4 : 2,
    COLUMNS = VECTORS * VECTOR,
    ROWS = 4
};
_Static_assert(COLUMNS == SIDE || COLUMNS == LINE, "whole tiles, or a part of the diagonal");

/* Loads rows of a tile stored by rows. Registers before `first` are unused. */
WEFT_ALWAYS_INLINE void load_rows(int first, const float *from, int64_t stride,
                                  vector rows[ROWS][VECTORS])
{
#pragma GCC unroll 4
    for (int i = 0; i < ROWS; i++) {
#pragma GCC unroll 4
        for (int j = first; j < VECTORS; j++) {
            rows[i][j] =
                from ? VECTOR_OP(loadu)(from + i * stride + j * VECTOR) : VECTOR_OP(setzero)();
        }
    }
}

/* The left operand of a product: element (i, k) is from[i * row + k * step]. */
struct left {
    const float *from;
    int64_t row, step;
};

/* sums += column k of left times row k of right. Rows of right have a stride of SIDE. */
WEFT_ALWAYS_INLINE void add_product(int first, struct left left, const float *right, int64_t k,
                                    vector sums[ROWS][VECTORS])
{
    vector row[VECTORS];
#pragma GCC unroll 4
    for (int j = first; j < VECTORS; j++) {
        row[j] = VECTOR_OP(load)(right + k * SIDE + j * VECTOR);
    }
#pragma GCC unroll 4
    for (int i = 0; i < ROWS; i++) {
        const vector x = VECTOR_OP(set1)(left.from[i * left.row + k * left.step]);
#pragma GCC unroll 4
        for (int j = first; j < VECTORS; j++) {
            sums[i][j] = VECTOR_OP(fmadd)(x, row[j], sums[i][j]);
        }
    }
}

/* Sets ROWS rows of `to` = or += left times rows k to k_end of right, which have a stride of SIDE,
 * for COLUMNS of them. Columns before `first` vectors are skipped. */
WEFT_ALWAYS_INLINE void multiply_rows(int first, struct left left, const float *right, int64_t k,
                                      int64_t k_end, bool add, float *to, int64_t stride)
{
    vector sums[ROWS][VECTORS];
    load_rows(first, add ? to : NULL, stride, sums);
    for (; k < k_end; k += ROWS) {
#pragma GCC unroll 4
        for (int64_t l = k; l < k + ROWS; l++) {
            add_product(first, left, right, l, sums);
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < ROWS; i++) {
#pragma GCC unroll 4
        for (int j = first; j < VECTORS; j++) {
            VECTOR_OP(storeu)(to + i * stride + j * VECTOR, sums[i][j]);
        }
    }
}

/* SIDE rows of `size` elements that are used later. A product prefetches them to the second cache,
 * because they are too far apart for the hardware to predict. */
struct fetch {
    const float *from;
    int64_t stride, size;
};

/* Prefetches of one product. */
enum { MOST_FETCHES = 9 };
struct fetches {
    int64_t count;
    struct fetch of[MOST_FETCHES];
};

static void add_fetch(const float *from, int64_t stride, int64_t size, struct fetches *to)
{
    to->of[to->count++] = (struct fetch){from, stride, size};
}

/* Part `part` of `parts` of a list. */
static struct fetches part_of(const struct fetches *list, int64_t part, int64_t parts)
{
    struct fetches some = {0};
    for (int64_t i = part * list->count / parts; i < (part + 1) * list->count / parts; i++) {
        some.of[some.count++] = list->of[i];
    }
    return some;
}

WEFT_ALWAYS_INLINE void fetch_rows(const struct fetches *list, int64_t row)
{
    for (int64_t i = 0; i < list->count; i++) {
        const struct fetch *f = &list->of[i];
        for (int64_t j = row; j < row + ROWS; j++) {
            for (int64_t k = 0; k < f->size; k += LINE) {
                _mm_prefetch(f->from + j * f->stride + k, _MM_HINT_T1);
            }
        }
    }
}

/* The part of a product that is not 0 with a tile of the diagonal. */
enum part { WHOLE, FROM_ROW_ON, UP_TO_ROW };

/* to [SIDE, SIDE] = or += left right, with SIDE of k. One operand is a tile of scores. */
static void multiply_tiles(struct left left, const float *right, enum part of_k, bool add,
                           float *to, int64_t stride, const struct fetches *later)
{
    for (int64_t i = 0; i < SIDE; i += ROWS, left.from += ROWS * left.row, to += ROWS * stride) {
        fetch_rows(later, i);
        for (int64_t j = 0; j < SIDE; j += COLUMNS) {
            multiply_rows(0, left, right + j, of_k == FROM_ROW_ON ? i : 0,
                          of_k == UP_TO_ROW ? i + ROWS : SIDE, add, to + j, stride);
        }
    }
}

/* ROWS rows of a tile, COLUMNS of them, without the first lines. */
WEFT_ALWAYS_INLINE void multiply_lanes(int64_t lines, struct left left, const float *right,
                                       int64_t size, float *to)
{
    switch (lines) {
    case 0:
        multiply_rows(0, left, right, 0, size, false, to, SIDE);
        break;
#if WEFT_KERNELS_LANES == 16
    case 1:
        multiply_rows(1, left, right, 0, size, false, to, SIDE);
        break;
    case 2:
        multiply_rows(2, left, right, 0, size, false, to, SIDE);
        break;
    case 3:
        multiply_rows(3, left, right, 0, size, false, to, SIDE);
        break;
#endif
    }
}

/* tile = left right, with `size` of k. On the diagonal only the lower part is computed. */
static void multiply_to_tile(struct left left, const float *right, int64_t size, bool diagonal,
                             float *tile, const struct fetches *later)
{
    for (int64_t i = 0; i < SIDE; i += ROWS, left.from += ROWS * left.row, tile += ROWS * SIDE) {
        const int64_t first = diagonal ? i / LINE * LINE : 0;
        fetch_rows(later, i);
        for (int64_t j = first / COLUMNS * COLUMNS; j < SIDE; j += COLUMNS) {
            multiply_lanes(first > j ? (first - j) / LINE : 0, left, right + j, size, tile + j);
        }
    }
}

/* Writes rows of a matrix, times `scale`, as columns: to [size, SIDE]. */
static void turn_rows(const float *from, int64_t stride, int64_t size, float scale, float *to)
{
    for (int64_t i = 0; i < SIDE; i += VECTOR) {
        for (int64_t j = 0; j < size; j += VECTOR) {
            vector square[VECTOR];
            for (int l = 0; l < VECTOR; l++) {
                const vector row = VECTOR_OP(loadu)(from + (i + l) * stride + j);
                square[l] = VECTOR_OP(mul)(row, VECTOR_OP(set1)(scale));
            }
            transpose_vectors(square);
            for (int l = 0; l < VECTOR; l++) {
                VECTOR_OP(store)(to + (j + l) * SIDE + i, square[l]);
            }
        }
    }
}

/* Copies rows times `scale`, as panels of SIDE columns: rows far apart would share a few sets of
 * the first cache. */
static void copy_rows(const float *from, int64_t stride, int64_t size, float scale, float *to)
{
    for (int64_t panel = 0; panel < size; panel += SIDE) {
        for (int64_t i = 0; i < SIDE; i++, to += SIDE) {
            for (int64_t j = 0; j < SIDE; j++) {
                to[j] = scale * from[i * stride + panel + j];
            }
        }
    }
}

/* Updates the maximum of each lane. Scores that causality forbids become -inf. */
static void mask_and_compare(bool diagonal, float *restrict tile, float greatest[SIDE])
{
    for (int64_t i = 0; i < SIDE; i++, tile += SIDE) {
        for (int64_t lane = 0; diagonal && lane < i; lane++) {
            tile[lane] = -INFINITY;
        }
        for (int64_t lane = 0; lane < SIDE; lane++) {
            greatest[lane] = tile[lane] > greatest[lane] ? tile[lane] : greatest[lane];
        }
    }
}

static void lane_exponentials(const float greatest[SIDE], float *tile, float sums[SIDE])
{
    for (int64_t lane = 0; lane < SIDE; lane += VECTOR) {
        const vector most = VECTOR_OP(loadu)(greatest + lane);
        vector sum = VECTOR_OP(loadu)(sums + lane);
        for (int64_t i = 0; i < SIDE; i++) {
            float *x = tile + i * SIDE + lane;
            const vector score = VECTOR_OP(loadu)(x);
            const vector y = vector_exponential_below(VECTOR_OP(sub)(score, most));
            VECTOR_OP(storeu)(x, y);
            sum = VECTOR_OP(add)(sum, y);
        }
        VECTOR_OP(storeu)(sums + lane, sum);
    }
}

static void scale_lanes(const float by[SIDE], float *restrict tile)
{
    for (int64_t i = 0; i < SIDE; i++, tile += SIDE) {
        for (int64_t lane = 0; lane < SIDE; lane++) {
            tile[lane] *= by[lane];
        }
    }
}

/* Turns tiles [n, SIDE keys, SIDE queries] of scores into probabilities. */
static void tile_softmax(int64_t n, float *tiles)
{
    float greatest[SIDE], sums[SIDE] = {0};
    for (int64_t lane = 0; lane < SIDE; lane++) {
        greatest[lane] = -INFINITY;
    }
    for (int64_t i = 0; i < n; i++) {
        mask_and_compare(i == n - 1, tiles + i * TILE, greatest);
    }
    for (int64_t i = 0; i < n; i++) {
        lane_exponentials(greatest, tiles + i * TILE, sums);
    }
    for (int64_t lane = 0; lane < SIDE; lane++) {
        sums[lane] = 1.0f / sums[lane];
    }
    for (int64_t i = 0; i < n; i++) {
        scale_lanes(sums, tiles + i * TILE);
    }
}

/* SIDE rows of f32. */
struct rows {
    const float *at;
    int64_t stride;
};

/* SIDE rows of a matrix from `row` on. Rows of 16 bits are widened. */
static struct rows rows_of(const struct weft_head *head, const void *from, int64_t stride,
                           int64_t row, float wide[MOST_SIZE * SIDE])
{
    if (head->dtype == WEFT_F32) return (struct rows){(const float *)from + row * stride, stride};
    const uint16_t *x = (const uint16_t *)from + row * stride;
    for (int64_t i = 0; i < SIDE; i++) {
        WEFT_KERNELS_TABLE.widen(head->dtype, head->size, x + i * stride, wide + i * head->size);
    }
    return (struct rows){wide, head->size};
}

/* Rounds rows to 16 bits. */
static void narrow_rows(const struct weft_head *head, int64_t rows, const float *from, void *to,
                        int64_t stride, int64_t row)
{
    uint16_t *y = (uint16_t *)to + row * stride;
    for (int64_t i = 0; i < rows; i++) {
        WEFT_KERNELS_TABLE.narrow(head->dtype, head->size, from + i * head->size, y + i * stride);
    }
}

/* Offset of the row of tiles after row i, in a matrix of this stride. After the last row it is the
 * next head's first, because heads are adjacent. */
static int64_t next_row(const struct weft_head *head, int64_t i, int64_t stride)
{
    return (i + 1) * SIDE < head->seq_len ? (i + 1) * SIDE * stride : head->size;
}

/* Rows of 16 bits are read once, in order, which the hardware predicts. */
static void fetch_next(const struct weft_head *head, const void *from, int64_t stride, int64_t i,
                       struct fetches *to)
{
    if (head->dtype != WEFT_F32) return;
    add_fetch((const float *)from + next_row(head, i, stride), stride, head->size, to);
}

static void fetch_inputs(const struct weft_head *head, int64_t i, struct fetches *to)
{
    fetch_next(head, head->query, head->query_stride, i, to);
    fetch_next(head, head->key, head->key_stride, i, to);
    fetch_next(head, head->value, head->value_stride, i, to);
}

/* Greatest score and sum of exponentials of each lane, over the tiles so far. */
struct lane_sums {
    float greatest[SIDE], sums[SIDE];
};

/* Turns a tile of scores into exponentials below the new greatest score, and adds them to the sums.
 * Earlier sums and outputs count `before` times as much. */
static void add_exponentials(bool diagonal, float *tile, struct lane_sums *of, float before[SIDE])
{
    float greatest[SIDE];
    memcpy(greatest, of->greatest, sizeof(greatest));
    mask_and_compare(diagonal, tile, greatest);
    for (int64_t lane = 0; lane < SIDE; lane += VECTOR) {
        const vector below = VECTOR_OP(sub)(VECTOR_OP(loadu)(of->greatest + lane),
                                            VECTOR_OP(loadu)(greatest + lane));
        const vector times = vector_exponential_below(below);
        VECTOR_OP(storeu)(before + lane, times);
        VECTOR_OP(storeu)
        (of->sums + lane, VECTOR_OP(mul)(VECTOR_OP(loadu)(of->sums + lane), times));
    }
    memcpy(of->greatest, greatest, sizeof(greatest));
    lane_exponentials(greatest, tile, of->sums);
}

/* Multiplies each of SIDE rows by its number. */
static void scale_rows(const float by[SIDE], int64_t size, int64_t stride, float *restrict x)
{
    for (int64_t i = 0; i < SIDE; i++, x += stride) {
        for (int64_t j = 0; by[i] != 1 && j < size; j++) {
            x[j] *= by[i];
        }
    }
}

/* Divides the outputs of row i of tiles by the sums, and writes the logs of sums. */
static void finish_row(const struct weft_head *head, int64_t i, struct lane_sums *of, float *out,
                       int64_t stride)
{
    float *log_sums = head->log_sums + i * SIDE * head->sums_stride;
    for (int64_t lane = 0; lane < SIDE; lane++) {
        const float sum = of->sums[lane];
        const float log_sum = of->greatest[lane] + (float)weft_logarithm((double)sum);
        log_sums[lane * head->sums_stride] = sum == sum ? log_sum : sum;
        of->sums[lane] = 1.0f / sum;
    }
    scale_rows(of->sums, head->size, stride, out);
}

/* Attends with row i of tiles without a tile more than the current one: each tile's part of the
 * output is added at the greatest score so far (Milakov and Gimelshein 2018; Dao et al. 2022). */
static void attend_row(const struct weft_head *head, int64_t i, const struct fetches *next,
                       float *out, int64_t stride)
{
    _Alignas(64) float turned[MOST_SIZE * SIDE], values[MOST_SIZE * SIDE], tile[TILE];
    _Alignas(64) float wide[MOST_SIZE * SIDE];
    const int64_t size = head->size;
    const struct rows query = rows_of(head, head->query, head->query_stride, i * SIDE, wide);
    struct lane_sums of = {0};
    turn_rows(query.at, query.stride, size, head->scale, turned);
    for (int64_t lane = 0; lane < SIDE; lane++) {
        of.greatest[lane] = -INFINITY;
    }
    for (int64_t j = 0; j <= i; j++) {
        const struct rows key = rows_of(head, head->key, head->key_stride, j * SIDE, wide);
        const struct left keys = {key.at, key.stride, 1}, p = {tile, 1, SIDE};
        struct fetches some = part_of(next, j, i + 1);
        float before[SIDE];
        multiply_to_tile(keys, turned, size, i == j, tile, &some);
        some.count = 0;
        add_exponentials(i == j, tile, &of, before);
        if (j > 0) scale_rows(before, size, stride, out);
        const struct rows value = rows_of(head, head->value, head->value_stride, j * SIDE, wide);
        copy_rows(value.at, value.stride, size, 1, values);
        for (int64_t panel = 0; panel < size; panel += SIDE) {
            multiply_tiles(p, values + panel * SIDE, i == j ? UP_TO_ROW : WHOLE, j > 0, out + panel,
                           stride, &some);
        }
    }
    finish_row(head, i, &of, out, stride);
}

static void attend_by_tiles(const struct weft_head *head, void *output)
{
    _Alignas(64) float rounded[MOST_SIZE * SIDE];
    const int64_t stride = head->output_stride;
    for (int64_t i = 0; i < head->seq_len / SIDE; i++) {
        struct fetches next = {0};
        fetch_inputs(head, i, &next);
        fetch_next(head, output, stride, i, &next);
        if (head->dtype == WEFT_F32) {
            attend_row(head, i, &next, (float *)output + i * SIDE * stride, stride);
        } else {
            attend_row(head, i, &next, rounded, head->size);
            narrow_rows(head, SIDE, rounded, output, stride, i * SIDE);
        }
    }
}

/* Probabilities are tiles of SIDE queries, one after another. Row i of tiles begins at i * seq_len
 * * SIDE and holds only its part of the triangle. */
void WEFT_KERNELS_ATTEND(const struct weft_head *head, float *probabilities, void *output)
{
    if (probabilities == NULL) {
        attend_by_tiles(head, output);
        return;
    }
    _Alignas(64) float turned[MOST_SIZE * SIDE], values[MOST_SIZE * SIDE];
    const int64_t size = head->size, n = head->seq_len / SIDE;
    for (int64_t i = 0; i < n; i++) {
        float *tiles = probabilities + i * n * TILE;
        float *out = (float *)output + i * SIDE * head->output_stride;
        const float *query = (const float *)head->query + i * SIDE * head->query_stride;
        struct fetches next = {0};
        fetch_inputs(head, i, &next);
        fetch_next(head, output, head->output_stride, i, &next);
        add_fetch(tiles + n * TILE, SIDE, SIDE, &next);
        turn_rows(query, head->query_stride, size, head->scale, turned);
        for (int64_t j = 0; j <= i; j++) {
            const float *key = (const float *)head->key + j * SIDE * head->key_stride;
            const struct left keys = {key, head->key_stride, 1};
            struct fetches tile = {0};
            if (j < i) add_fetch(tiles + (j + 1) * TILE, SIDE, SIDE, &tile);
            multiply_to_tile(keys, turned, size, i == j, tiles + j * TILE, &tile);
        }
        tile_softmax(i + 1, tiles);
        for (int64_t j = 0; j <= i; j++) {
            const struct left p = {tiles + j * TILE, 1, SIDE};
            struct fetches some = part_of(&next, j, i + 1);
            copy_rows((const float *)head->value + j * SIDE * head->value_stride,
                      head->value_stride, size, 1, values);
            for (int64_t panel = 0; panel < size; panel += SIDE) {
                multiply_tiles(p, values + panel * SIDE, i == j ? UP_TO_ROW : WHOLE, j > 0,
                               out + panel, head->output_stride, &some);
                some.count = 0;
            }
        }
    }
}

/* Operands of a row of tiles from queries and output. */
struct queries {
    _Alignas(64) float query[MOST_SIZE * SIDE], d_output[MOST_SIZE * SIDE],
        d_turned[MOST_SIZE * SIDE];
    float dots[SIDE]; /* output times its gradient, equal to p times its gradient, by row */
    /* To compute probabilities again. */
    _Alignas(64) float turned[MOST_SIZE * SIDE];
    float log_sums[SIDE];
};

/* `again`: probabilities are not saved. */
static void queries_of(const struct weft_head *head, const void *output, const void *d_output,
                       int64_t i, bool again, struct queries *q)
{
    _Alignas(64) float turned[MOST_SIZE * SIDE], wide[MOST_SIZE * SIDE];
    const int64_t size = head->size, row = i * SIDE;
    const struct rows query = rows_of(head, head->query, head->query_stride, row, wide);
    copy_rows(query.at, query.stride, size, head->scale, q->query);
    if (again) turn_rows(query.at, query.stride, size, head->scale, q->turned);
    const struct rows d_rows = rows_of(head, d_output, head->output_stride, row, wide);
    copy_rows(d_rows.at, d_rows.stride, size, 1, q->d_output);
    turn_rows(d_rows.at, d_rows.stride, size, 1, q->d_turned);
    const struct rows rows = rows_of(head, output, head->output_stride, row, wide);
    turn_rows(rows.at, rows.stride, size, 1, turned);
    memset(q->dots, 0, sizeof(q->dots));
    for (int64_t k = 0; k < size; k++) {
        for (int64_t lane = 0; lane < SIDE; lane++) {
            q->dots[lane] += turned[k * SIDE + lane] * q->d_turned[k * SIDE + lane];
        }
    }
    for (int64_t lane = 0; again && lane < SIDE; lane++) {
        q->log_sums[lane] = head->log_sums[(row + lane) * head->sums_stride];
    }
}

/* Computes the probabilities of a tile again. */
static void restore_tile(const struct weft_head *head, const struct queries *q, bool diagonal,
                         struct rows key, float *tile)
{
    const struct left keys = {key.at, key.stride, 1};
    const struct fetches none = {0};
    multiply_to_tile(keys, q->turned, head->size, diagonal, tile, &none);
    for (int64_t i = 0; i < SIDE; i++) {
        for (int64_t lane = 0; lane < SIDE; lane += VECTOR) {
            float *x = tile + i * SIDE + lane;
            const vector below =
                VECTOR_OP(sub)(VECTOR_OP(loadu)(x), VECTOR_OP(loadu)(q->log_sums + lane));
            VECTOR_OP(storeu)(x, vector_exponential_below(below));
        }
        for (int64_t lane = 0; diagonal && lane < i; lane++) {
            tile[i * SIDE + lane] = 0;
        }
    }
}

/* Turns gradients of probabilities into those of scores. Where causality makes p 0, d may hold
 * anything, even from the stack. */
static void softmax_backward(bool diagonal, const float *restrict p, const float dots[SIDE],
                             float *restrict d)
{
    for (int64_t i = 0; i < SIDE; i++, p += SIDE, d += SIDE) {
        for (int64_t lane = 0; lane < SIDE; lane++) {
            d[lane] = p[lane] * (d[lane] - dots[lane]);
        }
        for (int64_t lane = 0; diagonal && lane < i; lane++) {
            d[lane] = 0;
        }
    }
}

/* Data that backward of row i + 1 of tiles uses first, except probabilities. */
static struct fetches next_of(const struct weft_head *head, const void *output,
                              const void *d_output, struct weft_head_gradients to, int64_t i)
{
    struct fetches next = {0};
    fetch_inputs(head, i, &next);
    fetch_next(head, output, head->output_stride, i, &next);
    fetch_next(head, d_output, head->output_stride, i, &next);
    fetch_next(head, to.query, head->query_stride, i, &next);
    fetch_next(head, to.key, head->key_stride, i, &next);
    fetch_next(head, to.value, head->value_stride, i, &next);
    return next;
}

/* A tile of backward: its inputs, and the places of its gradients. */
struct tile {
    bool diagonal, first; /* `first` in its row */
    bool adds;            /* to d_key and d_value */
    const float *p;
    struct rows key, value;
    float *d_query, *d_key, *d_value; /* d_query or both others may be NULL */
    int64_t query_stride, key_stride, value_stride;
};

/* Does the products of a tile. */
static void tile_backward(const struct weft_head *head, const struct queries *q,
                          const struct tile *tile, const struct fetches *later)
{
    _Alignas(64) float d_scores[TILE], keys[MOST_SIZE * SIDE];
    const int64_t size = head->size;
    const enum part by_key = tile->diagonal ? FROM_ROW_ON : WHOLE;
    const struct left values = {tile->value.at, tile->value.stride, 1};
    struct fetches some[4];
    for (int64_t k = 0; k < 4; k++) {
        some[k] = part_of(later, k, 4);
    }
    if (tile->d_query) copy_rows(tile->key.at, tile->key.stride, size, head->scale, keys);
    multiply_to_tile(values, q->d_turned, size, tile->diagonal, d_scores, &some[0]);
    softmax_backward(tile->diagonal, tile->p, q->dots, d_scores);
    for (int64_t panel = 0; panel < size; panel += SIDE) {
        const struct left p_rows = {tile->p, SIDE, 1}, d_rows = {d_scores, SIDE, 1},
                          d_columns = {d_scores, 1, SIDE};
        if (tile->d_key) {
            multiply_tiles(p_rows, q->d_output + panel * SIDE, by_key, tile->adds,
                           tile->d_value + panel, tile->value_stride, &some[1]);
            multiply_tiles(d_rows, q->query + panel * SIDE, by_key, tile->adds, tile->d_key + panel,
                           tile->key_stride, &some[2]);
        }
        if (tile->d_query)
            multiply_tiles(d_columns, keys + panel * SIDE, tile->diagonal ? UP_TO_ROW : WHOLE,
                           !tile->first, tile->d_query + panel, tile->query_stride, &some[3]);
        some[1].count = some[2].count = some[3].count = 0;
    }
}

/* Sets a tile's places: in f32 the places are the gradients themselves. */
static void place_tile(const struct weft_head *head, const struct weft_head_gradients *to,
                       int64_t i, int64_t j, float *query, struct tile *tile)
{
    const int64_t row = j * SIDE, size = head->size;
    if (head->dtype == WEFT_F32) {
        tile->query_stride = head->query_stride;
        tile->key_stride = head->key_stride;
        tile->value_stride = head->value_stride;
        tile->d_query = (float *)to->query + i * SIDE * head->query_stride;
        tile->d_key = (float *)to->key + row * head->key_stride;
        tile->d_value = (float *)to->value + row * head->value_stride;
        return;
    }
    tile->query_stride = tile->key_stride = tile->value_stride = size;
    tile->d_query = to->query ? query : NULL;
    tile->d_key = to->key ? to->sums + (row - to->first) * size : NULL;
    tile->d_value = to->key ? to->sums + (to->end - to->first + row - to->first) * size : NULL;
}

/* Backward of row i of tiles. `tiles` has saved probabilities, or is NULL. */
static void row_backward(const struct weft_head *head, const struct queries *q, int64_t i,
                         const float *tiles, const struct fetches *next,
                         const struct weft_head_gradients *to)
{
    _Alignas(64) float restored[TILE], query[MOST_SIZE * SIDE];
    _Alignas(64) float wide_key[MOST_SIZE * SIDE], wide_value[MOST_SIZE * SIDE];
    const bool narrow = head->dtype != WEFT_F32;
    const int64_t n = head->seq_len / SIDE, first = narrow ? to->first / SIDE : 0;
    const int64_t end = narrow && to->end / SIDE <= i ? to->end / SIDE : i + 1;
    for (int64_t j = first; j < end; j++) {
        struct fetches later = part_of(next, j, i + 1);
        struct tile tile = {.diagonal = i == j, .first = j == 0, .adds = i > j || to->adds};
        tile.key = rows_of(head, head->key, head->key_stride, j * SIDE, wide_key);
        tile.value = rows_of(head, head->value, head->value_stride, j * SIDE, wide_value);
        tile.p = tiles ? tiles + j * TILE : restored;
        place_tile(head, to, i, j, query, &tile);
        if (tiles == NULL)
            restore_tile(head, q, i == j, tile.key, restored);
        else
            add_fetch(tiles + (j < i ? j + 1 : n) * TILE, SIDE, SIDE, &later);
        tile_backward(head, q, &tile, &later);
    }
    if (narrow && to->query)
        narrow_rows(head, SIDE, query, to->query, head->query_stride, i * SIDE);
}

void WEFT_KERNELS_ATTEND_BACKWARD(const struct weft_head *head, const float *probabilities,
                                  const void *output, const void *d_output,
                                  struct weft_head_gradients to)
{
    const bool again = probabilities == NULL, narrow = head->dtype != WEFT_F32;
    const int64_t n = head->seq_len / SIDE, rows = to.end - to.first;
    struct queries q;
    for (int64_t i = narrow ? to.first / SIDE : 0; i < n; i++) {
        const struct fetches next = next_of(head, output, d_output, to, i);
        queries_of(head, output, d_output, i, again, &q);
        row_backward(head, &q, i, again ? NULL : probabilities + i * n * TILE, &next, &to);
    }
    if (!narrow || !to.key || !to.ends) return;
    narrow_rows(head, rows, to.sums, to.key, head->key_stride, to.first);
    narrow_rows(head, rows, to.sums + rows * head->size, to.value, head->value_stride, to.first);
}
