/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cuda/choices/trial.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "runtime/nn/cuda/kernels/initial.h"

enum { LOOKS = 12, ROUNDS = 8, APART = 256 };

/* Matrices in GPU memory, each at a multiple of 256 bytes. */
enum matrix { QKV, OUTPUT, D_OUTPUT, D_QKV, STATISTICS, WORKSPACE, MATRICES };
static const char *const parts[] = {"query", "key", "value"};

struct weft_cuda_trial {
    const struct weft_cuda_machine *machine;
    const struct weft_cuda_attending_ops *ops;
    const struct weft_cuda_attending *library;
    struct weft_cuda_attention shape;
    int64_t rows, head;  /* of a sample; elements of a head's row */
    char *memory, *seen; /* of the GPU; a sample's matrices, shared with the host */
    int64_t at[MATRICES + 1], seen_at[STATISTICS + 1];
    void *before; /* gradients of the first backward */
    double worst;
};

static enum weft_status status_of(const struct weft_cuda_trial *t, int code, const char *what,
                                  struct weft_error *err)
{
    if (code == 0) return WEFT_OK;
    return weft_fail(err, WEFT_E_SYSTEM, "%s: %s (%d)", what,
                     code <= WEFT_CUDA_ATTENDING ? t->ops->explain(t->library)
                                                 : t->machine->explain(code),
                     code);
}

/* Operands */

static int64_t width_of(const struct weft_cuda_trial *t, enum matrix matrix)
{
    return matrix == QKV || matrix == D_QKV ? 3 * t->shape.hidden : t->shape.hidden;
}

static int64_t round_up(int64_t bytes)
{
    return (bytes + APART - 1) / APART * APART;
}

static void lay_out(struct weft_cuda_trial *t, int64_t workspace_bytes)
{
    const int64_t rows = t->shape.samples * t->rows, bytes = weft_dtype_bytes(t->shape.dtype),
                  of_rows = t->shape.heads * rows * (int64_t)sizeof(float);
    for (int i = 0; i < STATISTICS; i++) {
        const int64_t width = width_of(t, (enum matrix)i);
        t->at[i + 1] = t->at[i] + round_up(rows * width * bytes);
        t->seen_at[i + 1] = t->seen_at[i] + round_up(t->rows * width * bytes);
    }
    t->at[WORKSPACE] = t->at[STATISTICS] + round_up(of_rows);
    t->at[MATRICES] =
        t->at[WORKSPACE] + round_up(workspace_bytes > of_rows ? workspace_bytes : of_rows);
}

static void *matrix_of(const struct weft_cuda_trial *t, enum matrix matrix)
{
    return t->memory + t->at[matrix];
}

static enum weft_status draw_operands(struct weft_cuda_trial *t, struct weft_error *err)
{
    struct CUstream_st *on = t->ops->stream(t->library);
    const int64_t rows = t->shape.samples * t->rows;
    double us = 0;
    int code = t->ops->begin(t->library);
    if (code == 0)
        code =
            weft_cuda_uniform(QKV, t->shape.dtype, rows * width_of(t, QKV), matrix_of(t, QKV), on);
    if (code == 0) {
        code = weft_cuda_uniform(D_OUTPUT, t->shape.dtype, rows * width_of(t, D_OUTPUT),
                                 matrix_of(t, D_OUTPUT), on);
    }
    const int ended = t->ops->end(t->library, &us);
    return status_of(t, code != 0 ? code : ended, "numbers to try attention", err);
}

static enum weft_status allocate_operands(struct weft_cuda_trial *t, struct weft_error *err)
{
    void *memory = NULL, *seen = NULL;
    WEFT_TRY(status_of(t, t->machine->allocate(t->at[MATRICES], &memory),
                       "GPU memory to try attention", err));
    t->memory = memory;
    WEFT_TRY(status_of(t, t->machine->share(t->seen_at[STATISTICS], &seen),
                       "memory to try attention", err));
    t->seen = seen;
    t->before = malloc((size_t)(t->seen_at[STATISTICS] - t->seen_at[D_QKV]));
    return t->before == NULL ? weft_fail_memory(err, "a trial of attention") : WEFT_OK;
}

enum weft_status weft_cuda_trial_open(const struct weft_cuda_machine *machine,
                                      const struct weft_cuda_attending *library,
                                      const struct weft_cuda_attention *shape,
                                      int64_t workspace_bytes, struct weft_cuda_trial **out,
                                      struct weft_error *err)
{
    struct weft_cuda_trial *t = calloc(1, sizeof *t);
    if (t == NULL) return weft_fail_memory(err, "a trial of attention");
    t->machine = machine;
    t->ops = machine->attending;
    t->library = library;
    t->shape = *shape;
    t->rows = shape->seq_len;
    t->head = shape->hidden / shape->heads;
    lay_out(t, workspace_bytes);
    enum weft_status status = allocate_operands(t, err);
    if (status == WEFT_OK) status = draw_operands(t, err);
    t->shape.qkv = t->memory;
    if (status != WEFT_OK) {
        weft_cuda_trial_close(t);
        return status;
    }
    *out = t;
    return WEFT_OK;
}

void weft_cuda_trial_close(struct weft_cuda_trial *t)
{
    if (t == NULL) return;
    if (t->memory != NULL) t->machine->release(t->memory);
    if (t->seen != NULL) t->machine->unshare(t->seen);
    free(t->before);
    free(t);
}

/* Running */

static int run_forward(const struct weft_cuda_trial *t, struct weft_cuda_attending_plan *plan)
{
    struct CUstream_st *on = t->ops->stream(t->library);
    void *output = matrix_of(t, OUTPUT), *statistics = matrix_of(t, STATISTICS);
    if (plan == NULL) return weft_cuda_attend(&t->shape, output, statistics, on);
    return t->ops->forward(plan, t->shape.qkv, output, statistics, matrix_of(t, WORKSPACE), on);
}

static int run_backward(const struct weft_cuda_trial *t, struct weft_cuda_attending_plan *plan)
{
    struct CUstream_st *on = t->ops->stream(t->library);
    const void *output = matrix_of(t, OUTPUT), *d_output = matrix_of(t, D_OUTPUT);
    void *d_qkv = matrix_of(t, D_QKV), *workspace = matrix_of(t, WORKSPACE);
    const float *statistics = matrix_of(t, STATISTICS);
    if (plan == NULL)
        return weft_cuda_attend_backward(&t->shape, output, statistics, d_output, workspace, d_qkv,
                                         on);
    return t->ops->backward(plan, t->shape.qkv, output, statistics, d_output, d_qkv, workspace, on);
}

enum weft_status weft_cuda_trial_time(struct weft_cuda_trial *t,
                                      struct weft_cuda_attending_plan *plan, double us[2],
                                      struct weft_error *err)
{
    for (int backward = 0; backward < 2; backward++) {
        int code = 0;
        for (int i = 0; i <= ROUNDS && code == 0; i++) {
            if (i == 1) code = t->ops->begin(t->library);
            if (code == 0) code = backward ? run_backward(t, plan) : run_forward(t, plan);
        }
        const int ended = t->ops->end(t->library, &us[backward]);
        WEFT_TRY(status_of(t, code != 0 ? code : ended, "attention that is tried", err));
        us[backward] /= ROUNDS;
    }
    return WEFT_OK;
}

/* Copies one sample's matrices to the host. */
static enum weft_status fetch_sample(const struct weft_cuda_trial *t, int64_t sample,
                                     struct weft_error *err)
{
    struct CUstream_st *on = t->ops->stream(t->library);
    double us = 0;
    int code = t->ops->begin(t->library);
    for (int i = 0; i < STATISTICS && code == 0; i++) {
        const int64_t bytes =
            t->rows * width_of(t, (enum matrix)i) * weft_dtype_bytes(t->shape.dtype);
        code = weft_cuda_copy(t->seen + t->seen_at[i],
                              (char *)matrix_of(t, (enum matrix)i) + sample * bytes, bytes, on);
    }
    const int ended = t->ops->end(t->library, &us);
    return status_of(t, code != 0 ? code : ended, "results of attention", err);
}

/* Comparison: one head in fp64 */

struct head {
    const struct weft_cuda_trial *t;
    int64_t number, n, size; /* of the head; rows; elements of a row */
    double scale, rounding;
    double *q, *k, *v, *o, *d_o, *d_q, *d_k, *d_v; /* [n, size] each, widened */
    double *level, *dot; /* [n]: logarithms of sums, output times gradient */
    double *p, *d_p;     /* [n]: probabilities of a row or column, gradients */
};

static double number_at(const struct weft_cuda_trial *t, enum matrix matrix, int64_t i)
{
    uint16_t narrow;
    memcpy(&narrow, t->seen + t->seen_at[matrix] + 2 * i, sizeof narrow);
    return (double)(t->shape.dtype == WEFT_BF16 ? weft_bf16_widen(narrow) : weft_f16_widen(narrow));
}

static void widen_rows(const struct head *h, enum matrix matrix, int64_t part, double *out)
{
    const int64_t width = width_of(h->t, matrix),
                  first = part * h->t->shape.hidden + h->number * h->size;
    for (int64_t i = 0; i < h->n; i++) {
        for (int64_t j = 0; j < h->size; j++) {
            out[i * h->size + j] = number_at(h->t, matrix, i * width + first + j);
        }
    }
}

static double dot_of(const struct head *h, const double *a, int64_t i, const double *b, int64_t j)
{
    double sum = 0;
    for (int64_t l = 0; l < h->size; l++) {
        sum += a[i * h->size + l] * b[j * h->size + l];
    }
    return sum;
}

/* A row's scores are at most its length times 1, so powers need no shift. */
static void fill_head(const struct head *h)
{
    widen_rows(h, QKV, 0, h->q);
    widen_rows(h, QKV, 1, h->k);
    widen_rows(h, QKV, 2, h->v);
    widen_rows(h, OUTPUT, 0, h->o);
    widen_rows(h, D_OUTPUT, 0, h->d_o);
    widen_rows(h, D_QKV, 0, h->d_q);
    widen_rows(h, D_QKV, 1, h->d_k);
    widen_rows(h, D_QKV, 2, h->d_v);
    for (int64_t i = 0; i < h->n; i++) {
        double sum = 0;
        for (int64_t j = 0; j <= i; j++) {
            sum += exp(h->scale * dot_of(h, h->q, i, h->k, j));
        }
        h->level[i] = log(sum);
        h->dot[i] = dot_of(h, h->o, i, h->d_o, i);
    }
}

static enum weft_status compare_number(const struct head *h, const char *what, int64_t i, int64_t j,
                                       double got, double expected, double most,
                                       struct weft_error *err)
{
    struct weft_cuda_trial *t = (struct weft_cuda_trial *)(uintptr_t)h->t;
    const double error = fabs(got - expected);
    if (error > t->worst * most) t->worst = most > 0 ? error / most : HUGE_VAL;
    if (error <= most) return WEFT_OK;
    return weft_fail(err, WEFT_E_ENVIRONMENT,
                     "%s [%" PRId64 ", %" PRId64 "] of head %" PRId64
                     " is %.9g, and should be %.9g",
                     what, i, j, h->number, got, expected);
}

/* Compares column l of row `row` with a sum of weights times rows of x. A weight's error is at most
 * `uncertain`. */
static enum weft_status compare_sums(const struct head *h, const char *what, int64_t row,
                                     const double *got, const double *weights,
                                     const double *uncertain, const double *x, int64_t from,
                                     int64_t to, double scale, struct weft_error *err)
{
    for (int64_t l = 0; l < h->size; l++) {
        double sum = 0, doubt = 0;
        for (int64_t j = from; j < to; j++) {
            sum += weights[j] * x[j * h->size + l];
            doubt += uncertain[j] * fabs(x[j * h->size + l]);
        }
        WEFT_TRY(compare_number(h, what, row, l, got[row * h->size + l], scale * sum,
                                scale * doubt + h->rounding * fabs(scale * sum), err));
    }
    return WEFT_OK;
}

/* Fills p and its gradient's score for query i and key j. Errors: probabilities and gradients of
 * scores are rounded to the dtype, and the dot is of a rounded output. */
static void weigh_pair(const struct head *h, int64_t i, int64_t j, double *p, double *p_error,
                       double *score, double *score_error)
{
    const double d_p = dot_of(h, h->d_o, i, h->v, j);
    *p = exp(h->scale * dot_of(h, h->q, i, h->k, j) - h->level[i]);
    *score = *p * (d_p - h->dot[i]);
    *p_error = h->rounding * *p;
    *score_error = h->rounding * (fabs(*score) + *p * (fabs(h->dot[i]) + 1));
}

/* Compares the output and the query's gradient of row i. */
static enum weft_status compare_query(const struct head *h, int64_t i, struct weft_error *err)
{
    double *p = h->p, *p_error = p + h->n, *score = h->d_p, *score_error = score + h->n;
    for (int64_t j = 0; j <= i; j++) {
        weigh_pair(h, i, j, &p[j], &p_error[j], &score[j], &score_error[j]);
    }
    WEFT_TRY(compare_sums(h, "output", i, h->o, p, p_error, h->v, 0, i + 1, 1, err));
    return compare_sums(h, parts[0], i, h->d_q, score, score_error, h->k, 0, i + 1, h->scale, err);
}

/* Compares the gradients of key and value j. */
static enum weft_status compare_key(const struct head *h, int64_t j, struct weft_error *err)
{
    double *p = h->p, *p_error = p + h->n, *score = h->d_p, *score_error = score + h->n;
    for (int64_t i = j; i < h->n; i++) {
        weigh_pair(h, i, j, &p[i], &p_error[i], &score[i], &score_error[i]);
    }
    WEFT_TRY(compare_sums(h, parts[2], j, h->d_v, p, p_error, h->d_o, j, h->n, 1, err));
    return compare_sums(h, parts[1], j, h->d_k, score, score_error, h->q, j, h->n, h->scale, err);
}

static enum weft_status compare_rows(const struct head *h, struct weft_error *err)
{
    const int64_t looks = h->n < LOOKS ? h->n : LOOKS;
    fill_head(h);
    for (int64_t r = 0; r < looks; r++) {
        const int64_t row = looks > 1 ? r * (h->n - 1) / (looks - 1) : 0;
        WEFT_TRY(compare_query(h, row, err));
        WEFT_TRY(compare_key(h, row, err));
    }
    return WEFT_OK;
}

static enum weft_status compare_head(const struct weft_cuda_trial *t, int64_t number,
                                     struct weft_error *err)
{
    enum { MATRICES_OF_HEAD = 8, VECTORS = 6 };
    const int64_t n = t->rows, of_matrix = n * t->head;
    double *all = calloc((size_t)(MATRICES_OF_HEAD * of_matrix + VECTORS * n), sizeof *all);
    if (all == NULL) return weft_fail_memory(err, "a trial of attention");
    double *vectors = all + MATRICES_OF_HEAD * of_matrix;
    const struct head h = {.t = t,
                           .number = number,
                           .n = n,
                           .size = t->head,
                           .scale = 1 / sqrt((double)t->head),
                           .rounding = t->shape.dtype == WEFT_BF16 ? 0x1p-8 : 0x1p-10,
                           .q = all,
                           .k = all + of_matrix,
                           .v = all + 2 * of_matrix,
                           .o = all + 3 * of_matrix,
                           .d_o = all + 4 * of_matrix,
                           .d_q = all + 5 * of_matrix,
                           .d_k = all + 6 * of_matrix,
                           .d_v = all + 7 * of_matrix,
                           .level = vectors,
                           .dot = vectors + n,
                           .p = vectors + 2 * n,
                           .d_p = vectors + 4 * n};
    const enum weft_status status = compare_rows(&h, err);
    free(all);
    return status;
}

/* Runs forward and backward over outputs of NaN, then fetches the sample. */
static enum weft_status run_and_fetch(struct weft_cuda_trial *t,
                                      struct weft_cuda_attending_plan *plan, int64_t sample,
                                      struct weft_error *err)
{
    struct CUstream_st *on = t->ops->stream(t->library);
    double us = 0;
    int code = t->ops->begin(t->library);
    if (code == 0)
        code = weft_cuda_fill(matrix_of(t, OUTPUT), 0xff, t->at[D_OUTPUT] - t->at[OUTPUT], on);
    if (code == 0)
        code = weft_cuda_fill(matrix_of(t, D_QKV), 0xff, t->at[MATRICES] - t->at[D_QKV], on);
    if (code == 0) code = run_forward(t, plan);
    if (code == 0) code = run_backward(t, plan);
    const int ended = t->ops->end(t->library, &us);
    WEFT_TRY(status_of(t, code != 0 ? code : ended, "attention that is tried", err));
    return fetch_sample(t, sample, err);
}

enum weft_status weft_cuda_trial_prove(struct weft_cuda_trial *t,
                                       struct weft_cuda_attending_plan *plan, double *worst,
                                       struct weft_error *err)
{
    const int64_t last = t->shape.samples - 1, bytes = t->seen_at[STATISTICS] - t->seen_at[D_QKV];
    t->worst = 0;
    WEFT_TRY(run_and_fetch(t, plan, last, err));
    WEFT_TRY(compare_head(t, t->shape.heads - 1, err));
    memcpy(t->before, t->seen + t->seen_at[D_QKV], (size_t)bytes);
    WEFT_TRY(run_and_fetch(t, plan, last, err));
    if (memcmp(t->before, t->seen + t->seen_at[D_QKV], (size_t)bytes) != 0)
        return weft_fail(err, WEFT_E_ENVIRONMENT, "a second backward gives other bits");
    WEFT_TRY(fetch_sample(t, 0, err));
    WEFT_TRY(compare_head(t, 0, err));
    *worst = t->worst;
    return WEFT_OK;
}
