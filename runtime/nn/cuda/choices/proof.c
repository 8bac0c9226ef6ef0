/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cuda/choices/proof.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "base/text.h"
#include "runtime/nn/cuda/kernels/initial.h"

enum { REST = 128, MOST_K = 1024, LOOKS = 12 };

/* Matrices and vectors of a product, each aligned to 256 bytes. Drawn numbers are exact in the
 * dtype. */
enum operand { OF_A, OF_B, OF_BIAS, OF_ADDED, OF_SLOPE, OF_C, OF_GELU, OF_TIMES, OPERANDS };

struct proof {
    const struct weft_nn_cuda *cuda;
    struct weft_cuda_choice choice; /* with the reduced sizes */
    struct weft_cuda_request asked;
    char *memory; /* shared by host and GPU */
    int64_t at[OPERANDS], bytes;
    double *worst; /* largest error as a share of the allowed error */
};

static int64_t cut_size(int64_t size, int64_t most)
{
    return size <= most + REST ? size : most + size % REST;
}

static bool has_finish(const struct proof *p, unsigned finish)
{
    return (p->choice.key.finish & finish) != 0;
}

static int64_t elements_of(const struct proof *p, enum operand operand)
{
    const struct weft_cuda_key *key = &p->choice.key;
    switch (operand) {
    case OF_A:
        return key->transpose_a ? key->k * (key->m + key->a_gap) : key->m * (key->k + key->a_gap);
    case OF_B:
        return key->k * key->n;
    case OF_BIAS:
        return has_finish(p, WEFT_CUDA_BIAS) ? key->n : 0;
    case OF_ADDED:
        return has_finish(p, WEFT_CUDA_RESIDUAL) ? key->m * key->n : 0;
    case OF_SLOPE:
        return has_finish(p, WEFT_CUDA_SLOPE) ? key->m * key->n : 0;
    case OF_C:
        return key->m * (key->n + key->c_gap);
    case OF_GELU:
        return has_finish(p, WEFT_CUDA_GELU) ? key->m * key->n : 0;
    case OF_TIMES:
        return has_finish(p, WEFT_CUDA_TIMES) ? 1 : 0;
    case OPERANDS:
        break;
    }
    return 0;
}

static enum weft_dtype dtype_of(const struct proof *p, enum operand operand)
{
    if (operand == OF_TIMES) return WEFT_F32;
    return operand == OF_A || operand == OF_B ? p->choice.key.dtype : p->choice.key.c_dtype;
}

static void lay_out(struct proof *p)
{
    enum { APART = 256 };
    for (int i = 0; i < OPERANDS; i++) {
        const int64_t bytes =
            elements_of(p, (enum operand)i) * weft_dtype_bytes(dtype_of(p, (enum operand)i));
        p->at[i] = p->bytes;
        p->bytes += (bytes + APART - 1) / APART * APART;
    }
}

static void *operand_of(const struct proof *p, enum operand operand)
{
    return elements_of(p, operand) > 0 ? p->memory + p->at[operand] : NULL;
}

static double number_at(const struct proof *p, enum operand operand, int64_t i)
{
    const enum weft_dtype dtype = dtype_of(p, operand);
    const char *at = p->memory + p->at[operand] + i * weft_dtype_bytes(dtype);
    uint16_t narrow;
    float wide;
    if (dtype == WEFT_F32) {
        memcpy(&wide, at, sizeof wide);
        return (double)wide;
    }
    memcpy(&narrow, at, sizeof narrow);
    return (double)(dtype == WEFT_BF16 ? weft_bf16_widen(narrow) : weft_f16_widen(narrow));
}

/* The GPU draws the operands, uniform in [-1, 1). Outputs begin as NaN. */
static int fill_operands(const struct proof *p, struct CUstream_st *on)
{
    const float times = 0.75f;
    int code = 0;
    memset(p->memory + p->at[OF_C], 0xff, (size_t)(p->bytes - p->at[OF_C]));
    if (has_finish(p, WEFT_CUDA_TIMES)) memcpy(p->memory + p->at[OF_TIMES], &times, sizeof times);
    for (int i = 0; i < OF_C && code == 0; i++) {
        const enum operand of = (enum operand)i;
        code = weft_cuda_uniform((uint64_t)i, dtype_of(p, of), elements_of(p, of),
                                 p->memory + p->at[i], on);
    }
    return code;
}

static void give_operands(struct proof *p)
{
    struct weft_product *product = &p->asked.product;
    p->asked = weft_cuda_request_of(&p->choice.key);
    product->a = operand_of(p, OF_A);
    product->b = operand_of(p, OF_B);
    product->c = operand_of(p, OF_C);
    product->finish = (struct weft_product_finish){.bias = operand_of(p, OF_BIAS),
                                                   .residual = operand_of(p, OF_ADDED),
                                                   .gelu_input = operand_of(p, OF_SLOPE),
                                                   .gelu = operand_of(p, OF_GELU)};
    p->asked.times = operand_of(p, OF_TIMES);
}

/* Comparison; the bounds are those of cpu/gemm/check.c */

static const double most_gelu_error = 0x1p-19;

static double rounding_error(enum weft_dtype dtype)
{
    static const double roundings[WEFT_DTYPE_COUNT] = {
        [WEFT_F32] = 0, [WEFT_BF16] = 0x1p-8, [WEFT_F16] = 0x1p-10};
    return roundings[dtype];
}

static double gelu_in_fp64(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}

static double slope_in_fp64(double x)
{
    const double scale = sqrt(2 / acos(-1)), t = tanh(scale * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * scale * (1 + 3 * 0.044715 * x * x);
}

static bool is_near(const struct proof *p, double got, double expected, double most)
{
    const double error = fabs(got - expected);
    if (error > *p->worst * most) *p->worst = most > 0 ? error / most : HUGE_VAL;
    return error <= most;
}

static enum weft_status fail_element(const struct proof *p, const char *what, int64_t i, int64_t j,
                                     double got, double expected, struct weft_error *err)
{
    struct weft_text text;
    weft_text_init(&text);
    weft_cuda_key_show(&p->choice.key, &text);
    weft_fail(err, WEFT_E_ENVIRONMENT,
              "%s is wrong here: %s [%" PRId64 ", %" PRId64 "] of %s is %.9g, and should be %.9g",
              p->cuda->ops->title(p->cuda->library), what, i, j, weft_text_chars(&text), got,
              expected);
    weft_text_finish(&text);
    return WEFT_E_ENVIRONMENT;
}

/* Sums of a tile's elements in fp64: some rows, and neighbouring columns. */
enum { TILE = 64, CHUNK = 256 };
struct tile {
    int64_t rows, i[LOOKS]; /* looked at */
    int64_t j, columns;
    double a[LOOKS][CHUNK], b[CHUNK][TILE];     /* a part of k, widened once */
    double sum[LOOKS][TILE], size[LOOKS][TILE]; /* of products, and of their magnitudes */
};

static void widen_chunk(const struct proof *p, int64_t from, int64_t n, struct tile *t)
{
    const struct weft_product *product = &p->asked.product;
    for (int64_t l = 0; l < n; l++) {
        const int64_t k = from + l;
        for (int64_t r = 0; r < t->rows; r++) {
            const int64_t i = t->i[r];
            t->a[r][l] = number_at(p, OF_A,
                                   product->transpose_a ? k * product->a_stride + i
                                                        : i * product->a_stride + k);
        }
        for (int64_t c = 0; c < t->columns; c++) {
            const int64_t j = t->j + c;
            t->b[l][c] =
                number_at(p, OF_B, product->transpose_b ? j * product->k + k : k * product->n + j);
        }
    }
}

static void add_chunk(int64_t n, struct tile *t)
{
    for (int64_t r = 0; r < t->rows; r++) {
        double *sum = t->sum[r], *size = t->size[r];
        for (int64_t l = 0; l < n; l++) {
            const double a = t->a[r][l];
            for (int c = 0; c < TILE; c++) {
                sum[c] += a * t->b[l][c];
                size[c] += fabs(a * t->b[l][c]);
            }
        }
    }
}

static void sum_up(const struct proof *p, struct tile *t)
{
    const int64_t k = p->asked.product.k;
    memset(t->sum, 0, sizeof t->sum);
    memset(t->size, 0, sizeof t->size);
    for (int64_t from = 0; from < k; from += CHUNK) {
        const int64_t n = k - from < CHUNK ? k - from : CHUNK;
        widen_chunk(p, from, n, t);
        add_chunk(n, t);
    }
}

/* GELU's input may be any number that rounds to the stored c. */
static enum weft_status compare_gelu(const struct proof *p, int64_t i, int64_t j, double c,
                                     struct weft_error *err)
{
    const double got = number_at(p, OF_GELU, i * p->choice.key.n + j), expected = gelu_in_fp64(c);
    const double most =
        most_gelu_error * (1 + fabs(c)) +
        rounding_error(p->choice.key.c_dtype) * (fabs(expected) + fabs(slope_in_fp64(c) * c));
    if (is_near(p, got, expected, most)) return WEFT_OK;
    return fail_element(p, "GELU of element", i, j, got, expected, err);
}

/* `sum` and `size` are of the element's products. */
static enum weft_status compare_element(const struct proof *p, int64_t i, int64_t j, double sum,
                                        double size, struct weft_error *err)
{
    const struct weft_product *product = &p->asked.product;
    const int64_t at = i * product->n + j;
    double added = 0;
    if (has_finish(p, WEFT_CUDA_TIMES)) {
        sum *= number_at(p, OF_TIMES, 0);
        size *= fabs(number_at(p, OF_TIMES, 0));
    }
    if (has_finish(p, WEFT_CUDA_BIAS)) added += number_at(p, OF_BIAS, j);
    if (has_finish(p, WEFT_CUDA_RESIDUAL)) added += number_at(p, OF_ADDED, at);
    double expected = sum + added;
    double most = (double)(product->k + 8) * 0x1p-24 * (size + fabs(added)) +
                  rounding_error(product->c_dtype) * (fabs(sum) + fabs(added) + fabs(expected));
    if (has_finish(p, WEFT_CUDA_SLOPE)) {
        const double slope = slope_in_fp64(number_at(p, OF_SLOPE, at));
        most = most * fabs(slope) + most_gelu_error * fabs(expected);
        expected *= slope;
    }
    const double got = number_at(p, OF_C, i * product->c_stride + j);
    if (!is_near(p, got, expected, most))
        return fail_element(p, "element", i, j, got, expected, err);
    return has_finish(p, WEFT_CUDA_GELU) ? compare_gelu(p, i, j, got, err) : WEFT_OK;
}

static enum weft_status compare_tile(const struct proof *p, const struct tile *t,
                                     struct weft_error *err)
{
    for (int64_t r = 0; r < t->rows; r++) {
        for (int64_t c = 0; c < t->columns; c++) {
            WEFT_TRY(compare_element(p, t->i[r], t->j + c, t->sum[r][c], t->size[r][c], err));
        }
    }
    return WEFT_OK;
}

static enum weft_status compare_product(const struct proof *p, struct weft_error *err)
{
    const int64_t m = p->choice.key.m, n = p->choice.key.n;
    struct tile *t = calloc(1, sizeof *t);
    enum weft_status status = WEFT_OK;
    if (t == NULL) return weft_fail_memory(err, "sums of a product");
    t->rows = m < LOOKS ? m : LOOKS;
    for (int64_t r = 0; r < t->rows; r++) {
        t->i[r] = t->rows > 1 ? r * (m - 1) / (t->rows - 1) : 0;
    }
    for (t->j = 0; t->j < n && status == WEFT_OK; t->j += TILE) {
        t->columns = n - t->j < TILE ? n - t->j : TILE;
        sum_up(p, t);
        status = compare_tile(p, t, err);
    }
    free(t);
    return status;
}

/* Drawing may go on after a failed launch. The memory is freed next, so a failed wait is tried
 * again. */
static int await_all(const struct proof *p)
{
    const int code = p->cuda->ops->await(p->cuda->library);
    if (code != 0) (void)p->cuda->ops->await(p->cuda->library);
    return code;
}

static enum weft_status run_and_compare(struct proof *p, struct weft_error *err)
{
    const struct weft_cuda_library_ops *ops = p->cuda->ops;
    struct CUstream_st *on = ops->stream(p->cuda->library);
    give_operands(p);
    int code = fill_operands(p, on);
    if (code == 0) code = weft_cuda_run_choice(p->cuda, &p->choice, &p->asked, on);
    const int awaited = await_all(p);
    if (code == 0) code = awaited;
    WEFT_TRY(weft_nn_cuda_status(p->cuda, code, "a product that is tried", err));
    return compare_product(p, err);
}

static enum weft_status prove_choice(struct proof *p, struct weft_error *err)
{
    const struct weft_nn_cuda *cuda = p->cuda;
    void *memory = NULL;
    lay_out(p);
    WEFT_TRY(weft_nn_cuda_status(cuda, cuda->machine->share(p->bytes, &memory),
                                 "memory to try a product", err));
    p->memory = memory;
    const enum weft_status status = run_and_compare(p, err);
    cuda->machine->unshare(memory);
    return status;
}

enum weft_status weft_cuda_prove(const struct weft_nn_cuda *cuda,
                                 const struct weft_cuda_choice *choice, struct weft_error *err)
{
    double worst = 0;
    struct proof p = {.cuda = cuda, .choice = *choice, .worst = &worst};
    p.choice.key.m = cut_size(choice->key.m, REST);
    p.choice.key.n = cut_size(choice->key.n, REST);
    p.choice.key.k = cut_size(choice->key.k, MOST_K);
    p.choice.key.a_gap = cut_size(choice->key.a_gap, REST);
    p.choice.key.c_gap = cut_size(choice->key.c_gap, REST);
    return prove_choice(&p, err);
}

enum weft_status weft_cuda_prove_whole(const struct weft_nn_cuda *cuda,
                                       const struct weft_cuda_choice *choice, double *worst,
                                       struct weft_error *err)
{
    struct proof p = {.cuda = cuda, .choice = *choice, .worst = worst};
    *worst = 0;
    return prove_choice(&p, err);
}
