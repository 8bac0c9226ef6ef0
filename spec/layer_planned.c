/* Blocks of transformers and layers on images that are only planned. Attention keeps the log of
 * each row's sum in fp32 instead of probabilities (Dao et al. 2022, section 3.2); where the next
 * layer's or an inner product's gradient needs an operand, it is saved (as PyTorch's autograd
 * does). */
#include "spec/layer_work.h"

/* Saved and temporary elements of every row, and fp32 numbers of every row. */
static void set_row_buffers(struct weft_subject *subject, int64_t saved, int64_t f32,
                            int64_t temporary, struct weft_layer_work *work)
{
    struct weft_sizes *sizes = &subject->sizes;
    int64_t saved_row_bytes = weft_plus(sizes, weft_times(sizes, saved, subject->element_bytes),
                                        weft_times(sizes, f32, (int64_t)sizeof(float)));
    work->saved_bytes = weft_times(sizes, subject->rows, saved_row_bytes);
    work->backward_temporary_bytes =
        weft_times(sizes, subject->rows, weft_times(sizes, temporary, subject->element_bytes));
    work->backward_reads_input = true; /* by the first norm */
}

/* Flops of products with `used` of the weights and of attention products. */
static void set_flops(struct weft_subject *subject, double used, double attention,
                      struct weft_layer_work *work)
{
    work->forward_flops = 2 * subject->t * used + attention;
    work->backward_flops = subject->backward_products * 2 * subject->t * used + 2 * attention;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Keys and values' width. */
static int64_t kv_width(const struct weft_layer *layer)
{
    return layer->hidden / layer->heads * layer->kv_heads;
}

/* Elements of a row that attention and the norms around it save: norm, q, attention, residual,
 * norm; k, v. */
static int64_t saved_attention(struct weft_subject *subject)
{
    struct weft_sizes *sizes = &subject->sizes;
    return weft_plus(sizes, weft_times(sizes, 5, subject->layer->hidden),
                     weft_times(sizes, 2, kv_width(subject->layer)));
}

/* Backward of a feed-forward part of `inner` elements a row, then of attention, in the same bytes;
 * beside them the gradients of two rows of the stream. */
static int64_t temporary_row(struct weft_subject *subject, int64_t inner)
{
    struct weft_sizes *sizes = &subject->sizes;
    int64_t h = subject->layer->hidden;
    int64_t qkv = weft_plus(sizes, h, weft_times(sizes, 2, kv_width(subject->layer)));
    return weft_plus(sizes, larger(inner, qkv), weft_times(sizes, 2, h));
}

double weft_work_llama_block(struct weft_subject *subject, struct weft_layer_work *work)
{
    struct weft_sizes *sizes = &subject->sizes;
    int64_t f = subject->layer->ffn;
    double h = subject->h, kv = (double)kv_width(subject->layer);
    double weights = h * (2 * h + 2 * kv + 3 * subject->f);
    /* gate, up, their product; rstd twice and the log sums */
    set_row_buffers(subject, weft_plus(sizes, saved_attention(subject), weft_times(sizes, 3, f)),
                    weft_plus(sizes, 2, subject->layer->heads),
                    temporary_row(subject, weft_times(sizes, 2, f)), work);
    set_flops(subject, weights, 2 * subject->t * subject->s * h, work);
    return weights;
}

/* As transformer_block, but every token sees every other: attention is not halved. */
double weft_work_encoder_block(struct weft_subject *subject, struct weft_layer_work *work)
{
    struct weft_sizes *sizes = &subject->sizes;
    int64_t f = subject->layer->ffn;
    double h = subject->h, weights = 4 * h * h + 2 * h * subject->f;
    /* before and after GELU; mean and rstd twice and the log sums */
    set_row_buffers(subject, weft_plus(sizes, saved_attention(subject), weft_times(sizes, 2, f)),
                    weft_plus(sizes, 4, subject->layer->heads), temporary_row(subject, f), work);
    set_flops(subject, weights, 4 * subject->t * subject->s * h, work);
    return weights;
}

/* Every token goes through active_experts of the experts (Jiang et al. 2024), evenly spread: no
 * capacity, none dropped. */
double weft_work_moe_block(struct weft_subject *subject, struct weft_layer_work *work)
{
    const struct weft_layer *layer = subject->layer;
    struct weft_sizes *sizes = &subject->sizes;
    int64_t f3 = weft_times(sizes, 3, layer->ffn), h2 = weft_times(sizes, 2, layer->hidden);
    double h = subject->h, kv = (double)kv_width(layer), active = (double)layer->active_experts;
    double outer = h * (2 * h + 2 * kv + (double)layer->experts), expert = 3 * h * subject->f;
    /* Of each expert that sees the row: its copy of it, gate, up, their product, its answer. */
    int64_t saved = weft_plus(sizes, saved_attention(subject),
                              weft_times(sizes, layer->active_experts, weft_plus(sizes, f3, h2)));
    int64_t inner = weft_times(sizes, layer->active_experts,
                               weft_plus(sizes, weft_times(sizes, 2, layer->ffn), layer->hidden));
    /* rstd twice, the log sums and the router's weights */
    set_row_buffers(subject, saved,
                    weft_plus(sizes, weft_plus(sizes, 2, layer->heads), layer->experts),
                    temporary_row(subject, inner), work);
    set_flops(subject, outer + active * expert, 2 * subject->t * subject->s * h, work);
    return outer + (double)layer->experts * expert;
}

/* Elements of `maps` squares of side^2, of all rows. */
static int64_t map_elements(struct weft_subject *subject, int64_t maps, int64_t side)
{
    struct weft_sizes *sizes = &subject->sizes;
    return weft_times(sizes, subject->rows, weft_times(sizes, maps, weft_times(sizes, side, side)));
}

/* Multiply-adds of a convolution, forward: one for each weight at each place of its output
 * (He et al. 2016, table 1, counts the same). */
static double convolution(const struct weft_subject *subject, double weights, int64_t side)
{
    return subject->t * weights * (double)side * (double)side;
}

/* Convolution, normalisation over the batch when `norm`, ReLU in place. Normalisation saves what it
 * reads, and two numbers a filter. */
double weft_work_conv2d(struct weft_subject *subject, struct weft_layer_work *work)
{
    const struct weft_layer *layer = subject->layer;
    struct weft_sizes *sizes = &subject->sizes;
    int64_t side = weft_layer_side(layer);
    double weights =
        (double)layer->channels * (double)layer->filters * (double)(layer->kernel * layer->kernel);
    double products = convolution(subject, weights, side);
    int64_t out_bytes =
        weft_times(sizes, map_elements(subject, layer->filters, side), subject->element_bytes);
    if (layer->norm)
        work->saved_bytes = weft_plus(
            sizes, out_bytes, weft_times(sizes, layer->filters, 2 * (int64_t)sizeof(float)));
    work->backward_temporary_bytes = out_bytes; /* gradient before ReLU */
    work->backward_reads_input = !layer->frozen;
    work->backward_reads_output = true;
    work->forward_flops = 2 * products;
    work->backward_flops = 2 * subject->backward_products * products;
    return weights + (layer->norm ? 2 : 0) * (double)layer->filters;
}

/* 1x1 onto `width`, 3x3 with the stride, 1x1 onto `filters`, each normalised, and the input added
 * (through a normalised 1x1 where shapes differ): He et al. 2016, figure 5, with the stride where
 * PyTorch has it. */
double weft_work_bottleneck(struct weft_subject *subject, struct weft_layer_work *work)
{
    const struct weft_layer *layer = subject->layer;
    struct weft_sizes *sizes = &subject->sizes;
    int64_t in = layer->image, out = weft_layer_side(layer), w = layer->width, f = layer->filters;
    bool projected = weft_layer_projects(layer);
    double c = (double)layer->channels, width = (double)w, filters = (double)f;
    double products = convolution(subject, c * width, in) +
                      convolution(subject, 9 * width * width, out) +
                      convolution(subject, width * filters, out) +
                      (projected ? convolution(subject, c * filters, out) : 0);
    /* Inner maps before and after normalisation and ReLU, outer ones before. */
    int64_t inner = weft_plus(sizes, map_elements(subject, w, in), map_elements(subject, w, out));
    int64_t outer = map_elements(subject, f, out);
    int64_t saved = weft_plus(sizes, weft_times(sizes, 2, inner),
                              projected ? weft_times(sizes, 2, outer) : outer);
    int64_t maps =
        weft_plus(sizes, weft_times(sizes, 2, w), projected ? weft_times(sizes, 2, f) : f);
    work->saved_bytes = weft_plus(sizes, weft_times(sizes, saved, subject->element_bytes),
                                  weft_times(sizes, maps, 2 * (int64_t)sizeof(float)));
    work->backward_temporary_bytes =
        weft_times(sizes, weft_plus(sizes, inner, outer), subject->element_bytes);
    work->backward_reads_input = true;
    work->backward_reads_output = true; /* the last ReLU */
    work->forward_flops = 2 * products;
    work->backward_flops = 2 * subject->backward_products * products;
    return c * width + 9 * width * width + width * filters + (projected ? c * filters : 0) +
           2 * (double)maps;
}

/* The largest (or the mean) of each window: a comparison or addition for each number read, and
 * where the largest stood, in 4 bytes. */
double weft_work_pool2d(struct weft_subject *subject, struct weft_layer_work *work)
{
    const struct weft_layer *layer = subject->layer;
    int64_t outputs = map_elements(subject, layer->channels, weft_layer_side(layer));
    work->saved_bytes = weft_times(&subject->sizes, outputs, (int64_t)sizeof(int32_t));
    work->forward_flops = subject->t * subject->h;
    work->backward_flops = subject->t * subject->h;
    return 0;
}
