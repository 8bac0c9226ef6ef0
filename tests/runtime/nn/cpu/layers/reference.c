/* SPDX-License-Identifier: Apache-2.0 */
#include "reference.h"
#include "layers/embedding.h"
#include "layers/shared/block.h"
#include "steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void map(int64_t rows, int64_t inputs, int64_t outputs, const double *x, const double *w,
                const double *bias, double *y)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t o = 0; o < outputs; o++) {
            double sum = bias ? bias[o] : 0;
            for (int64_t k = 0; k < inputs; k++) {
                sum += x[i * inputs + k] * w[o * inputs + k];
            }
            y[i * outputs + o] = sum;
        }
    }
}

static void normalise(int64_t rows, int64_t width, double epsilon, const double *x, const double *w,
                      const double *bias, double *y)
{
    for (int64_t i = 0; i < rows; i++) {
        double mean = 0, variance = 0;
        for (int64_t j = 0; j < width; j++) {
            mean += x[i * width + j] / (double)width;
        }
        for (int64_t j = 0; j < width; j++) {
            variance += pow(x[i * width + j] - mean, 2) / (double)width;
        }
        for (int64_t j = 0; j < width; j++) {
            y[i * width + j] =
                (x[i * width + j] - mean) / sqrt(variance + epsilon) * w[j] + bias[j];
        }
    }
}

static double gelu(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}

static void attend(const struct reference *r, const double *qkv, double *y)
{
    const int64_t s = r->seq_len, h = r->layer->hidden,
                  d = h / r->layer->keys[WEFT_BLOCK_HEADS].integer;
    double *p = malloc((size_t)s * sizeof(*p));
    for (int64_t row = 0; row < r->samples * s; row++) {
        const int64_t first = row / s * s;
        for (int64_t head = 0; head < r->layer->keys[WEFT_BLOCK_HEADS].integer; head++) {
            double sum = 0;
            for (int64_t other = first; other <= row; other++) {
                double score = 0;
                for (int64_t k = 0; k < d; k++) {
                    score +=
                        qkv[row * 3 * h + head * d + k] * qkv[other * 3 * h + h + head * d + k];
                }
                p[other - first] = exp(score / sqrt((double)d));
                sum += p[other - first];
            }
            for (int64_t k = 0; k < d; k++) {
                double value = 0;
                for (int64_t other = first; other <= row; other++) {
                    value += p[other - first] / sum * qkv[other * 3 * h + 2 * h + head * d + k];
                }
                y[row * h + head * d + k] = value;
            }
        }
    }
    free(p);
}

static void block(const struct reference *r, double *output)
{
    const int64_t rows = r->samples * r->seq_len, h = r->layer->hidden,
                  f = r->layer->keys[WEFT_BLOCK_FFN].integer;
    const double *const *t = r->tensors;
    double *normal = malloc((size_t)(rows * h) * sizeof(double));
    double *qkv = malloc((size_t)(rows * 3 * h) * sizeof(double));
    double *attended = malloc((size_t)(rows * h) * sizeof(double));
    double *residual = calloc((size_t)(rows * h), sizeof(double));
    double *fc = malloc((size_t)(rows * f) * sizeof(double));
    normalise(rows, h, 1e-5, r->input, t[0], t[1], normal);
    map(rows, h, 3 * h, normal, t[2], t[3], qkv);
    attend(r, qkv, attended);
    map(rows, h, h, attended, t[4], t[5], residual);
    for (int64_t i = 0; i < rows * h; i++) {
        residual[i] += r->input[i];
    }
    normalise(rows, h, 1e-5, residual, t[6], t[7], normal);
    map(rows, h, f, normal, t[8], t[9], fc);
    for (int64_t i = 0; i < rows * f; i++) {
        fc[i] = gelu(fc[i]);
    }
    map(rows, f, h, fc, t[10], t[11], output);
    for (int64_t i = 0; i < rows * h; i++) {
        output[i] += residual[i];
    }
    free(normal);
    free(qkv);
    free(attended);
    free(residual);
    free(fc);
}

static void normalise_rms(int64_t rows, int64_t width, int64_t stride, double epsilon, double *x,
                          const double *w)
{
    for (int64_t i = 0; i < rows; i++) {
        double squares = 0;
        for (int64_t j = 0; j < width; j++) {
            squares += x[i * stride + j] * x[i * stride + j] / (double)width;
        }
        for (int64_t j = 0; j < width; j++) {
            x[i * stride + j] *= w[j] / sqrt(squares + epsilon);
        }
    }
}

/* A row of queries, keys or values: `heads` of `size` columns. */
static void turn_heads(int64_t position, int64_t heads, int64_t size, double base, double *x)
{
    for (int64_t i = 0; i < heads * size; i++) {
        const int64_t j = i % size, half = size / 2;
        if (j >= half) continue;
        const double angle = (double)position * pow(base, -2 * (double)j / (double)size);
        const double low = x[i], high = x[i + half];
        x[i] = low * cos(angle) - high * sin(angle);
        x[i + half] = high * cos(angle) + low * sin(angle);
    }
}

/* Row `row` of a head; rows of qkv are [q, k, v]. */
static void attend_shared(const struct weft_layer *layer, const double *qkv, int64_t first,
                          int64_t row, int64_t head, double *y)
{
    const int64_t heads = layer->keys[WEFT_BLOCK_HEADS].integer,
                  d = layer->keys[WEFT_BLOCK_HEAD_DIM].integer;
    const int64_t kv = layer->keys[WEFT_BLOCK_KV_HEADS].integer, stride = (heads + 2 * kv) * d;
    const int64_t key = (heads + head / (heads / kv)) * d, value = key + kv * d;
    double sum = 0;
    for (int64_t k = 0; k < d; k++) {
        y[k] = 0;
    }
    for (int64_t other = first; other <= row; other++) {
        double score = 0;
        for (int64_t k = 0; k < d; k++) {
            score += qkv[row * stride + head * d + k] * qkv[other * stride + key + k];
        }
        const double p = exp(score / sqrt((double)d));
        sum += p;
        for (int64_t k = 0; k < d; k++) {
            y[k] += p * qkv[other * stride + value + k];
        }
    }
    for (int64_t k = 0; k < d; k++) {
        y[k] /= sum;
    }
}

/* Tensors of Llama's blocks, in order; NULL if the layer has none. */
struct llama_tensors {
    const double *norm1, *qkv, *bias, *q_norm, *k_norm, *o, *norm2, *gate_up, *down;
};

static struct llama_tensors llama_tensors_of(const struct reference *r)
{
    const bool qwen3 = r->layer->kind == &weft_kind_qwen3_block;
    const bool bias = !qwen3 && r->layer->keys[WEFT_BLOCK_QKV_BIAS].flag;
    const double *const *t = r->tensors;
    struct llama_tensors out = {.norm1 = *t++};
    out.qkv = *t++;
    if (bias) out.bias = *t++;
    if (qwen3) out.q_norm = *t++;
    if (qwen3) out.k_norm = *t++;
    out.o = *t++;
    out.norm2 = *t++;
    out.gate_up = *t++;
    out.down = *t;
    return out;
}

static void llama_attention(const struct reference *r, const struct llama_tensors *t,
                            const double *normal, double *attended)
{
    const struct weft_layer *layer = r->layer;
    const int64_t rows = r->samples * r->seq_len, d = layer->keys[WEFT_BLOCK_HEAD_DIM].integer;
    const int64_t heads = layer->keys[WEFT_BLOCK_HEADS].integer;
    const int64_t kv = layer->keys[WEFT_BLOCK_KV_HEADS].integer, width = (heads + 2 * kv) * d;
    const double epsilon = layer->keys[WEFT_BLOCK_EPS].number;
    double *qkv = malloc((size_t)(rows * width) * sizeof(double));
    map(rows, layer->hidden, width, normal, t->qkv, t->bias, qkv);
    for (int64_t row = 0; row < rows; row++) {
        double *q = qkv + row * width, *k = q + heads * d;
        if (t->q_norm != NULL) normalise_rms(heads, d, d, epsilon, q, t->q_norm);
        if (t->k_norm != NULL) normalise_rms(kv, d, d, epsilon, k, t->k_norm);
        turn_heads(row % r->seq_len, heads + kv, d, layer->keys[WEFT_BLOCK_ROPE_BASE].number, q);
    }
    for (int64_t i = 0; i < rows * heads; i++) {
        const int64_t row = i / heads;
        attend_shared(layer, qkv, row / r->seq_len * r->seq_len, row, i % heads, attended + i * d);
    }
    free(qkv);
}

static void llama_block(const struct reference *r, double *output)
{
    const struct weft_layer *layer = r->layer;
    const int64_t rows = r->samples * r->seq_len, h = layer->hidden;
    const int64_t f = layer->keys[WEFT_BLOCK_FFN].integer;
    const int64_t width =
        layer->keys[WEFT_BLOCK_HEADS].integer * layer->keys[WEFT_BLOCK_HEAD_DIM].integer;
    const double epsilon = layer->keys[WEFT_BLOCK_EPS].number;
    const struct llama_tensors t = llama_tensors_of(r);
    double *normal = malloc((size_t)(rows * h) * sizeof(double));
    double *attended = malloc((size_t)(rows * width) * sizeof(double));
    double *residual = malloc((size_t)(rows * h) * sizeof(double));
    double *gate_up = malloc((size_t)(rows * 2 * f) * sizeof(double));
    memcpy(normal, r->input, (size_t)(rows * h) * sizeof(double));
    normalise_rms(rows, h, h, epsilon, normal, t.norm1);
    llama_attention(r, &t, normal, attended);
    map(rows, width, h, attended, t.o, NULL, residual);
    for (int64_t i = 0; i < rows * h; i++) {
        normal[i] = residual[i] += r->input[i];
    }
    normalise_rms(rows, h, h, epsilon, normal, t.norm2);
    map(rows, h, 2 * f, normal, t.gate_up, NULL, gate_up);
    for (int64_t i = 0; i < rows * f; i++) {
        const double gate = gate_up[i / f * 2 * f + i % f], up = gate_up[i / f * 2 * f + f + i % f];
        gate_up[i] = gate / (1 + exp(-gate)) * up; /* nothing reads element i again */
    }
    map(rows, f, h, gate_up, t.down, NULL, output);
    for (int64_t i = 0; i < rows * h; i++) {
        output[i] += residual[i];
    }
    free(normal);
    free(attended);
    free(residual);
    free(gate_up);
}

static void embed(const struct reference *r, double *output)
{
    const int64_t h = r->layer->hidden;
    for (int64_t i = 0; i < r->samples * r->seq_len * h; i++) {
        const int64_t row = i / h, column = i % h;
        const double scale = r->layer->keys[WEFT_EMBEDDING_SCALE].number;
        output[i] = (scale > 0 ? scale : 1) * r->tensors[0][r->tokens[row] * h + column];
        if (r->layer->keys[WEFT_EMBEDDING_POSITIONS].integer > 0)
            output[i] += r->tensors[1][row % r->seq_len * h + column];
    }
}

static double losses(const struct reference *r, int64_t rows, const double *x, double *logits)
{
    const int64_t n = r->layer->outputs;
    double loss = 0;
    const bool pooler = r->layer->kind == &weft_kind_classifier && r->layer->keys[1].flag;
    const double *const *head = &r->tensors[pooler ? 2 : 0];
    map(rows, r->layer->hidden, n, x, head[0], r->layer->bias ? head[1] : NULL, logits);
    const double cap = r->layer->keys[0].number; /* logit_cap */
    for (int64_t i = 0; cap > 0 && r->layer->kind == &weft_kind_lm_head && i < rows * n; i++)
        logits[i] = cap * tanh(logits[i] / cap);
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++) {
            sum += exp(logits[i * n + j] - logits[i * n + r->targets[i]]);
        }
        loss += log(sum);
    }
    return loss;
}

static double classify(const struct reference *r, double *logits)
{
    const int64_t h = r->layer->hidden, s = r->seq_len;
    const bool first = r->layer->keys[0].flag, pooler = r->layer->keys[1].flag;
    double *pooled = calloc((size_t)(r->samples * h), sizeof(double));
    double *dense = calloc((size_t)(r->samples * h), sizeof(double));
    for (int64_t i = 0; i < r->samples * s * h; i++) {
        if (!first || i / h % s == 0)
            pooled[i / h / s * h + i % h] += r->input[i] / (double)(first ? 1 : s);
    }
    if (pooler) map(r->samples, h, h, pooled, r->tensors[0], r->tensors[1], dense);
    for (int64_t i = 0; pooler && i < r->samples * h; i++)
        pooled[i] = tanh(dense[i]);
    free(dense);
    const double loss = losses(r, r->samples, pooled, logits);
    free(pooled);
    return loss;
}

double reference_forward(const struct reference *r, double *output)
{
    const struct weft_layer *layer = r->layer;
    const int64_t rows = r->samples * r->seq_len;
    const struct weft_kind *kind = layer->kind;
    if (kind == &weft_kind_lm_head) return losses(r, rows, r->input, output);
    if (kind == &weft_kind_classifier) return classify(r, output);
    if (kind == &weft_kind_embedding) {
        embed(r, output);
    } else if (kind == &weft_kind_transformer_block) {
        block(r, output);
    } else if (kind == &weft_kind_llama_block || kind == &weft_kind_qwen3_block) {
        llama_block(r, output);
    } else if (kind == &weft_kind_rms_norm) {
        memcpy(output, r->input, (size_t)(rows * layer->hidden) * sizeof(double));
        normalise_rms(rows, layer->hidden, layer->hidden, layer->keys[WEFT_BLOCK_EPS].number,
                      output, r->tensors[0]);
    } else if (kind == &weft_kind_layer_norm) {
        const double epsilon = layer->keys[WEFT_BLOCK_EPS].number;
        normalise(rows, layer->hidden, epsilon > 0 ? epsilon : 1e-5, r->input, r->tensors[0],
                  r->tensors[1], output);
    } else if (kind == &weft_kind_linear) {
        map(rows, layer->hidden, layer->outputs, r->input, r->tensors[0],
            layer->bias ? r->tensors[1] : NULL, output);
    } else if (kind == &weft_kind_relu || (kind == &weft_kind_gelu && !layer->keys[0].flag)) {
        for (int64_t i = 0; i < rows * layer->hidden; i++) {
            output[i] = kind == &weft_kind_gelu ? gelu(r->input[i]) : fmax(r->input[i], 0);
        }
    } else if (kind->recipe != NULL) {
        reference_steps(r, output);
    } else {
        abort(); /* a test asked for a layer that does not train */
    }
    return 0;
}
