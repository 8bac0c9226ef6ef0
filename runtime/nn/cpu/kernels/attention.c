/* Causal attention of a head for AVX-512. Scores lie transposed, keys by queries, in tiles of 64 x
 * 64, and only the lower triangle exists. A tile's queries are lanes, so softmax needs no sums
 * across lanes. Only queries and the output's gradient need a transposition. A tile does all of its
 * products while it is in the first cache. */
#include <immintrin.h>
#include <string.h>

#include "runtime/nn/cpu/kernels/gelu_avx512.h"
#include "runtime/nn/cpu/kernels/levels.h"
#include "runtime/nn/cpu/kernels/parts.h"
#include "runtime/nn/cpu/kernels/transpose.h"

/* Sums of ROWS x SIDE stay in registers. */
enum {
    SIDE = WEFT_HEAD_SIDE,
    TILE = SIDE * SIDE,
    MOST_SIZE = WEFT_HEAD_MOST_SIZE,
    VECTOR = 16,
    VECTORS = SIDE / VECTOR,
    ROWS = 4
};

/* Loads rows of a tile stored by rows. Registers before `first` are unused. */
WEFT_ALWAYS_INLINE void load_rows(int first, const float *from, int64_t stride,
                                  __m512 rows[ROWS][VECTORS])
{
#pragma GCC unroll 4
    for (int i = 0; i < ROWS; i++) {
#pragma GCC unroll 4
        for (int j = first; j < VECTORS; j++) {
            rows[i][j] =
                from ? _mm512_loadu_ps(from + i * stride + j * VECTOR) : _mm512_setzero_ps();
        }
    }
}

/* The left operand of a product: element (i, k) is from[i * row + k * step]. */
struct left {
    const float *from;
    int64_t row, step;
};

/* sums += column k of left times row k of right, which is SIDE wide. */
WEFT_ALWAYS_INLINE void add_product(int first, struct left left, const float *right, int64_t k,
                                    __m512 sums[ROWS][VECTORS])
{
    __m512 row[VECTORS];
#pragma GCC unroll 4
    for (int j = first; j < VECTORS; j++) {
        row[j] = _mm512_load_ps(right + k * SIDE + j * VECTOR);
    }
#pragma GCC unroll 4
    for (int i = 0; i < ROWS; i++) {
        const __m512 x = _mm512_set1_ps(left.from[i * left.row + k * left.step]);
#pragma GCC unroll 4
        for (int j = first; j < VECTORS; j++) {
            sums[i][j] = _mm512_fmadd_ps(x, row[j], sums[i][j]);
        }
    }
}

/* Sets ROWS rows of `to` = or += left times rows k to k_end of right, which are SIDE wide. Columns
 * before `first` vectors are skipped. */
WEFT_ALWAYS_INLINE void multiply_rows(int first, struct left left, const float *right, int64_t k,
                                      int64_t k_end, bool add, float *to, int64_t stride)
{
    __m512 sums[ROWS][VECTORS];
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
            _mm512_storeu_ps(to + i * stride + j * VECTOR, sums[i][j]);
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
            for (int64_t k = 0; k < f->size; k += VECTOR) {
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
        multiply_rows(0, left, right, of_k == FROM_ROW_ON ? i : 0,
                      of_k == UP_TO_ROW ? i + ROWS : SIDE, add, to, stride);
    }
}

/* tile = left right, with `size` of k. On the diagonal only the lower part is computed. */
static void multiply_to_tile(struct left left, const float *right, int64_t size, bool diagonal,
                             float *tile, const struct fetches *later)
{
    for (int64_t i = 0; i < SIDE; i += ROWS, left.from += ROWS * left.row, tile += ROWS * SIDE) {
        fetch_rows(later, i);
        switch (diagonal ? i / VECTOR : 0) {
        case 0:
            multiply_rows(0, left, right, 0, size, false, tile, SIDE);
            break;
        case 1:
            multiply_rows(1, left, right, 0, size, false, tile, SIDE);
            break;
        case 2:
            multiply_rows(2, left, right, 0, size, false, tile, SIDE);
            break;
        case 3:
            multiply_rows(3, left, right, 0, size, false, tile, SIDE);
            break;
        }
    }
}

/* Writes rows of a matrix, times `scale`, as columns: to [size, SIDE]. */
static void turn_rows(const float *from, int64_t stride, int64_t size, float scale, float *to)
{
    for (int64_t i = 0; i < SIDE; i += VECTOR) {
        for (int64_t j = 0; j < size; j += VECTOR) {
            __m512i square[VECTOR];
            for (int l = 0; l < VECTOR; l++) {
                const __m512 row = _mm512_loadu_ps(from + (i + l) * stride + j);
                square[l] = _mm512_castps_si512(_mm512_mul_ps(row, _mm512_set1_ps(scale)));
            }
            weft_transpose_16(square);
            for (int l = 0; l < VECTOR; l++) {
                _mm512_store_si512(to + (j + l) * SIDE + i, square[l]);
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
        const __m512 most = _mm512_loadu_ps(greatest + lane);
        __m512 sum = _mm512_loadu_ps(sums + lane);
        for (int64_t i = 0; i < SIDE; i++) {
            float *x = tile + i * SIDE + lane;
            const __m512 score = _mm512_loadu_ps(x);
            const __m512 y = weft_avx512_exponential_below(_mm512_sub_ps(score, most));
            _mm512_storeu_ps(x, y);
            sum = _mm512_add_ps(sum, y);
        }
        _mm512_storeu_ps(sums + lane, sum);
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

/* Offset of the row of tiles after row i, in a matrix of this stride. After the last row it is the
 * next head's first, because heads are adjacent. */
static int64_t next_row(const struct weft_head *head, int64_t i, int64_t stride)
{
    return (i + 1) * SIDE < head->seq_len ? (i + 1) * SIDE * stride : head->size;
}

static void fetch_next(const struct weft_head *head, const float *from, int64_t stride, int64_t i,
                       struct fetches *to)
{
    add_fetch(from + next_row(head, i, stride), stride, head->size, to);
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
        const __m512 below =
            _mm512_sub_ps(_mm512_loadu_ps(of->greatest + lane), _mm512_loadu_ps(greatest + lane));
        const __m512 times = weft_avx512_exponential_below(below);
        _mm512_storeu_ps(before + lane, times);
        _mm512_storeu_ps(of->sums + lane, _mm512_mul_ps(_mm512_loadu_ps(of->sums + lane), times));
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
static void finish_row(const struct weft_head *head, int64_t i, struct lane_sums *of, float *out)
{
    float *log_sums = head->log_sums + i * SIDE * head->sums_stride;
    for (int64_t lane = 0; lane < SIDE; lane++) {
        const float sum = of->sums[lane];
        const float log_sum = of->greatest[lane] + (float)weft_logarithm((double)sum);
        log_sums[lane * head->sums_stride] = sum == sum ? log_sum : sum;
        of->sums[lane] = 1.0f / sum;
    }
    scale_rows(of->sums, head->size, head->output_stride, out);
}

/* Attends without a tile more than the current one: each tile's part of the output is added at the
 * greatest score so far (Milakov and Gimelshein 2018; Dao et al. 2022). */
static void attend_by_tiles(const struct weft_head *head, float *output)
{
    _Alignas(64) float turned[MOST_SIZE * SIDE], values[MOST_SIZE * SIDE], tile[TILE];
    const int64_t size = head->size, n = head->seq_len / SIDE;
    for (int64_t i = 0; i < n; i++) {
        float *out = output + i * SIDE * head->output_stride;
        struct lane_sums of = {0};
        struct fetches next = {0};
        fetch_inputs(head, i, &next);
        fetch_next(head, output, head->output_stride, i, &next);
        turn_rows(head->query + i * SIDE * head->query_stride, head->query_stride, size,
                  head->scale, turned);
        for (int64_t lane = 0; lane < SIDE; lane++) {
            of.greatest[lane] = -INFINITY;
        }
        for (int64_t j = 0; j <= i; j++) {
            const struct left keys = {head->key + j * SIDE * head->key_stride, head->key_stride, 1};
            const struct left p = {tile, 1, SIDE};
            struct fetches some = part_of(&next, j, i + 1);
            float before[SIDE];
            multiply_to_tile(keys, turned, size, i == j, tile, &some);
            some.count = 0;
            add_exponentials(i == j, tile, &of, before);
            if (j > 0) scale_rows(before, size, head->output_stride, out);
            copy_rows(head->value + j * SIDE * head->value_stride, head->value_stride, size, 1,
                      values);
            for (int64_t panel = 0; panel < size; panel += SIDE) {
                multiply_tiles(p, values + panel * SIDE, i == j ? UP_TO_ROW : WHOLE, j > 0,
                               out + panel, head->output_stride, &some);
            }
        }
        finish_row(head, i, &of, out);
    }
}

/* Probabilities are tiles of SIDE queries, one after another. Row i of tiles begins at i * seq_len
 * * SIDE and holds only its part of the triangle. */
void weft_kernels_attend_avx512(const struct weft_head *head, float *probabilities, float *output)
{
    if (probabilities == NULL) {
        attend_by_tiles(head, output);
        return;
    }
    _Alignas(64) float turned[MOST_SIZE * SIDE], values[MOST_SIZE * SIDE];
    const int64_t size = head->size, n = head->seq_len / SIDE;
    for (int64_t i = 0; i < n; i++) {
        float *tiles = probabilities + i * n * TILE;
        float *out = output + i * SIDE * head->output_stride;
        struct fetches next = {0};
        fetch_inputs(head, i, &next);
        fetch_next(head, output, head->output_stride, i, &next);
        add_fetch(tiles + n * TILE, SIDE, SIDE, &next);
        turn_rows(head->query + i * SIDE * head->query_stride, head->query_stride, size,
                  head->scale, turned);
        for (int64_t j = 0; j <= i; j++) {
            const struct left keys = {head->key + j * SIDE * head->key_stride, head->key_stride, 1};
            struct fetches tile = {0};
            if (j < i) add_fetch(tiles + (j + 1) * TILE, SIDE, SIDE, &tile);
            multiply_to_tile(keys, turned, size, i == j, tiles + j * TILE, &tile);
        }
        tile_softmax(i + 1, tiles);
        for (int64_t j = 0; j <= i; j++) {
            const struct left p = {tiles + j * TILE, 1, SIDE};
            struct fetches some = part_of(&next, j, i + 1);
            copy_rows(head->value + j * SIDE * head->value_stride, head->value_stride, size, 1,
                      values);
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

static void queries_of(const struct weft_head *head, const float *output, const float *d_output,
                       int64_t i, struct queries *q)
{
    _Alignas(64) float turned[MOST_SIZE * SIDE];
    const int64_t size = head->size, rows = i * SIDE, at = rows * head->output_stride;
    copy_rows(head->query + rows * head->query_stride, head->query_stride, size, head->scale,
              q->query);
    copy_rows(d_output + at, head->output_stride, size, 1, q->d_output);
    turn_rows(d_output + at, head->output_stride, size, 1, q->d_turned);
    turn_rows(output + at, head->output_stride, size, 1, turned);
    memset(q->dots, 0, sizeof(q->dots));
    for (int64_t k = 0; k < size; k++) {
        for (int64_t lane = 0; lane < SIDE; lane++) {
            q->dots[lane] += turned[k * SIDE + lane] * q->d_turned[k * SIDE + lane];
        }
    }
}

static void turn_queries(const struct weft_head *head, int64_t i, struct queries *q)
{
    const float *log_sums = head->log_sums + i * SIDE * head->sums_stride;
    turn_rows(head->query + i * SIDE * head->query_stride, head->query_stride, head->size,
              head->scale, q->turned);
    for (int64_t lane = 0; lane < SIDE; lane++) {
        q->log_sums[lane] = log_sums[lane * head->sums_stride];
    }
}

/* Computes the probabilities of tile j again. */
static void restore_tile(const struct weft_head *head, const struct queries *q, bool diagonal,
                         int64_t j, float *tile)
{
    const struct left keys = {head->key + j * SIDE * head->key_stride, head->key_stride, 1};
    const struct fetches none = {0};
    multiply_to_tile(keys, q->turned, head->size, diagonal, tile, &none);
    for (int64_t i = 0; i < SIDE; i++) {
        for (int64_t lane = 0; lane < SIDE; lane += VECTOR) {
            float *x = tile + i * SIDE + lane;
            const __m512 below =
                _mm512_sub_ps(_mm512_loadu_ps(x), _mm512_loadu_ps(q->log_sums + lane));
            _mm512_storeu_ps(x, weft_avx512_exponential_below(below));
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
static struct fetches next_of(const struct weft_head *head, const float *output,
                              const float *d_output, struct weft_head_gradients to, int64_t i)
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

/* Does the products of a tile. */
static void tile_backward(const struct weft_head *head, const struct queries *q, const float *p,
                          int64_t i, int64_t j, const struct fetches *later,
                          struct weft_head_gradients to)
{
    _Alignas(64) float d_scores[TILE], keys[MOST_SIZE * SIDE];
    const bool diagonal = i == j;
    const int64_t size = head->size, query = i * SIDE * head->query_stride;
    const int64_t key = j * SIDE * head->key_stride, value = j * SIDE * head->value_stride;
    const enum part by_key = diagonal ? FROM_ROW_ON : WHOLE;
    const struct left values = {head->value + value, head->value_stride, 1};
    const bool add = !diagonal || to.adds;
    struct fetches some[4];
    for (int64_t k = 0; k < 4; k++) {
        some[k] = part_of(later, k, 4);
    }
    copy_rows(head->key + key, head->key_stride, size, head->scale, keys);
    multiply_to_tile(values, q->d_turned, size, diagonal, d_scores, &some[0]);
    softmax_backward(diagonal, p, q->dots, d_scores);
    for (int64_t panel = 0; panel < size; panel += SIDE) {
        const struct left p_rows = {p, SIDE, 1}, d_rows = {d_scores, SIDE, 1},
                          d_columns = {d_scores, 1, SIDE};
        multiply_tiles(p_rows, q->d_output + panel * SIDE, by_key, add, to.value + value + panel,
                       head->value_stride, &some[1]);
        multiply_tiles(d_rows, q->query + panel * SIDE, by_key, add, to.key + key + panel,
                       head->key_stride, &some[2]);
        multiply_tiles(d_columns, keys + panel * SIDE, diagonal ? UP_TO_ROW : WHOLE, j > 0,
                       to.query + query + panel, head->query_stride, &some[3]);
        some[1].count = some[2].count = some[3].count = 0;
    }
}

void weft_kernels_attend_backward_avx512(const struct weft_head *head, const float *probabilities,
                                         const float *output, const float *d_output,
                                         struct weft_head_gradients to)
{
    _Alignas(64) float restored[TILE];
    const bool again = probabilities == NULL;
    const int64_t n = head->seq_len / SIDE;
    struct queries q;
    for (int64_t i = 0; i < n; i++) {
        const float *tiles = again ? NULL : probabilities + i * n * TILE;
        const struct fetches next = next_of(head, output, d_output, to, i);
        queries_of(head, output, d_output, i, &q);
        if (again) turn_queries(head, i, &q);
        for (int64_t j = 0; j <= i; j++) {
            struct fetches later = part_of(&next, j, i + 1);
            if (again)
                restore_tile(head, &q, i == j, j, restored);
            else
                add_fetch(tiles + (j < i ? j + 1 : n) * TILE, SIDE, SIDE, &later);
            tile_backward(head, &q, again ? restored : tiles + j * TILE, i, j, &later, to);
        }
    }
}
