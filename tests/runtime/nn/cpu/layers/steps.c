/* SPDX-License-Identifier: Apache-2.0 */
#include "steps.h"

#include <math.h>
#include <stdlib.h>

#include "layers/recipe/op.h"

/* Values in doubles, each in a matrix of its own. */
struct interpreter {
    const struct reference *from;
    struct weft_walk walk;
    double *values[WEFT_WALK_VALUES];
};

static double *element_of(const struct interpreter *in, const struct weft_span *span, int64_t row,
                          int64_t column)
{
    const int64_t columns = in->walk.values[span->value].columns;
    return &in->values[span->value][row * columns + span->from + column];
}

static int64_t width_of(const struct weft_span *span)
{
    return span->to - span->from;
}

static const double *tensor_of(const struct interpreter *in, const struct weft_walk_step *step,
                               int32_t index)
{
    return index < step->n_tensors ? in->from->tensors[step->first_tensor + index] : NULL;
}

static double activated_by(enum weft_word kind, double x)
{
    const double cubic = sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x);
    if (kind == WEFT_WORD_SQUARED_RELU) return pow(fmax(x, 0), 2);
    if (kind == WEFT_WORD_GELU_ERF) return 0.5 * x * erfc(-x / sqrt(2));
    if (kind == WEFT_WORD_TANH) return tanh(x);
    return kind == WEFT_WORD_RELU ? fmax(x, 0) : 0.5 * x * (1 + tanh(cubic));
}

static double product_of(const struct interpreter *in, const struct weft_walk_step *step,
                         int64_t row, int64_t column)
{
    const int64_t inputs = width_of(&step->in[0]);
    const double *weight = tensor_of(in, step, 0), *bias = tensor_of(in, step, 1);
    double sum = bias != NULL ? bias[column] : 0;
    for (int64_t k = 0; k < inputs; k++)
        sum += *element_of(in, &step->in[0], row, k) * weight[column * inputs + k];
    return step->add.value != WEFT_WALK_NONE ? sum + *element_of(in, &step->add, row, column) : sum;
}

/* An element of a part of a row, normalised. */
static double normal_of(const struct interpreter *in, const struct weft_walk_step *step,
                        int64_t row, int64_t column)
{
    const bool layer = step->from->kind == WEFT_WORD_LAYER;
    const int64_t parts = step->sizes.parts > 0 ? step->sizes.parts : 1;
    const int64_t width = width_of(&step->in[0]) / parts, first = column / width * width;
    const double *bias = tensor_of(in, step, 1);
    double mean = 0, squares = 0;
    for (int64_t k = 0; layer && k < width; k++)
        mean += *element_of(in, &step->in[0], row, first + k) / (double)width;
    for (int64_t k = 0; k < width; k++)
        squares += pow(*element_of(in, &step->in[0], row, first + k) - mean, 2) / (double)width;
    const double x = *element_of(in, &step->in[0], row, column) - mean;
    const double epsilon = layer && step->from->epsilon == NULL ? 1e-5 : step->numbers.epsilon;
    const double weight = step->numbers.shift + tensor_of(in, step, 0)[column - first];
    return x / sqrt(squares + epsilon) * weight + (bias != NULL ? bias[column] : 0);
}

static double turned_of(const struct interpreter *in, const struct weft_walk_step *step,
                        int64_t row, int64_t column)
{
    const struct weft_span whole = {step->in[0].value, 0, 0};
    const int64_t from = step->in[0].from, size = step->sizes.head_dim, half = size / 2;
    const double x = *element_of(in, &whole, row, column);
    if (column < from || column >= step->in[0].to) return x;
    const int64_t j = (column - from) % size, position = row % in->from->seq_len;
    const bool low = j < half;
    const double other = *element_of(in, &whole, row, low ? column + half : column - half);
    const double angle =
        (double)position * pow(step->numbers.base, -2.0 * (double)(j % half) / (double)size);
    return x * cos(angle) + (low ? -other : other) * sin(angle);
}

static double attended_of(const struct interpreter *in, const struct weft_walk_step *step,
                          int64_t row, int64_t column)
{
    const int64_t size = step->sizes.head_dim, head = column / size, seq_len = in->from->seq_len;
    const int64_t key = head / (step->sizes.heads / step->sizes.kv_heads) * size;
    const int64_t sample = row / seq_len * seq_len, window = step->sizes.window;
    const int64_t first = window > 0 && row - sample >= window ? row - window + 1 : sample;
    const int64_t last = step->sizes.causal != 0 ? row : sample + seq_len - 1;
    const double scalar = step->numbers.scalar > 0 ? step->numbers.scalar : (double)size;
    const double cap = step->numbers.cap;
    const bool hides = in->from->hides && step->sizes.causal == 0;
    double sum = 0, value = 0;
    for (int64_t other = first; other <= last; other++) {
        double score = 0;
        if (hides && in->from->tokens[other] == in->from->padding) continue;
        for (int64_t k = 0; k < size; k++)
            score += *element_of(in, &step->in[0], row, head * size + k) *
                     *element_of(in, &step->in[1], other, key + k);
        score /= sqrt(scalar);
        const double p = exp(cap > 0 ? cap * tanh(score / cap) : score);
        sum += p;
        value += p * *element_of(in, &step->in[2], other, key + column % size);
    }
    return sum > 0 ? value / sum : 0;
}

static double gated_of(const struct interpreter *in, const struct weft_walk_step *step, int64_t row,
                       int64_t column)
{
    const double gate = *element_of(in, &step->in[0], row, column);
    const double activated = step->from->kind == WEFT_WORD_GELU ? activated_by(WEFT_WORD_GELU, gate)
                                                                : gate / (1 + exp(-gate));
    return activated * *element_of(in, &step->in[1], row, column);
}

static double sum_of(const struct interpreter *in, const struct weft_walk_step *step, int64_t row,
                     int64_t column)
{
    return *element_of(in, &step->in[0], row, column) + *element_of(in, &step->in[1], row, column);
}

static double activation_of(const struct interpreter *in, const struct weft_walk_step *step,
                            int64_t row, int64_t column)
{
    return activated_by(step->from->kind, *element_of(in, &step->in[0], row, column));
}

static double with_table_of(const struct interpreter *in, const struct weft_walk_step *step,
                            int64_t row, int64_t column)
{
    const int64_t columns = width_of(&step->in[0]), position = row % in->from->seq_len;
    const int64_t taken = step->sizes.positions > 0 ? position : 0;
    const double *first = tensor_of(in, step, 1);
    const double x = *element_of(in, &step->in[0], row, column);
    return (first != NULL && position == 0 ? first[column] : x) +
           tensor_of(in, step, 0)[taken * columns + column];
}

/* Ops of rows of numbers. */
static const struct {
    const struct weft_op *op;
    double (*element)(const struct interpreter *in, const struct weft_walk_step *step, int64_t row,
                      int64_t column);
} ops[] = {{&weft_op_product, product_of}, {&weft_op_norm, normal_of},
           {&weft_op_rope, turned_of},     {&weft_op_attend, attended_of},
           {&weft_op_gate, gated_of},      {&weft_op_activate, activation_of},
           {&weft_op_add, sum_of},         {&weft_op_add_rows, with_table_of}};

static void run_step(struct interpreter *in, const struct weft_walk_step *step)
{
    const struct weft_value *out = &in->walk.values[step->out[0]];
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++)
        for (int64_t i = 0; ops[o].op == step->op && i < out->rows * out->columns; i++)
            in->values[step->out[0]][i] =
                ops[o].element(in, step, i / out->columns, i % out->columns);
    for (int64_t i = 0; step->n_out > 1 && i < out->rows * out->columns; i++)
        in->values[step->out[1]][i] = activated_by(step->from->then, in->values[step->out[0]][i]);
}

void reference_steps(const struct reference *reference, double *output)
{
    static struct interpreter in;
    const struct weft_batch batch = {
        .samples = reference->samples, .seq_len = reference->seq_len, .compute = WEFT_F32};
    struct weft_error err = {0};
    in = (struct interpreter){.from = reference};
    if (weft_walk_derive(reference->layer, &batch, WEFT_RECOMPUTE_NONE, &in.walk, &err) != WEFT_OK)
        abort();
    for (int32_t v = 0; v < in.walk.n_values; v++) {
        const struct weft_value *value = &in.walk.values[v];
        in.values[v] = calloc((size_t)(value->rows * value->columns) + 1, sizeof(double));
    }
    for (int64_t i = 0; i < in.walk.rows * in.walk.values[0].columns; i++)
        in.values[0][i] = reference->input[i];
    for (int32_t s = 0; s < in.walk.n_steps; s++)
        run_step(&in, &in.walk.steps[s]);
    const struct weft_value *y = &in.walk.values[in.walk.output];
    for (int64_t i = 0; i < y->rows * y->columns; i++)
        output[i] = in.values[in.walk.output][i];
    for (int32_t v = 0; v < in.walk.n_values; v++)
        free(in.values[v]);
}
