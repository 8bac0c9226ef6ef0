/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of queries, keys and values [rows, heads * head_dim]: softmax(q k^T / sqrt(head_dim)) v
 * for each head and sample. Query heads share kv_heads of keys and values in equal groups. It saves
 * probabilities [samples, heads, seq_len, seq_len], or on a GPU's tensor cores a number a row and
 * head. With `save` it is the log of each row's sum in f32 (Dao et al. 2022, section 3.2), and
 * backward computes probabilities again. Without `causal` a row attends to all rows of its sample.
 * With `window` a row attends to itself and earlier rows, so many at most. `cap` bounds scores, and
 * `scalar` takes the place of head_dim below the root. Windows and caps need `save`. Without
 * `causal` rows of padding are no keys if the batch hides them. */
#include "layers/recipe/op.h"
#include "layers/shared/block.h"
#include "layers/shared/place.h"
#include "layers/shared/stripe.h"

bool weft_attend_hides(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    return walk->batch.hides && step->sizes.causal == 0;
}

bool weft_attend_uses_tensor_cores(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    return step->numbers.cap == 0 && !weft_attend_hides(walk, step) &&
           weft_heads_use_tensor_cores(&walk->batch, step->sizes.head_dim);
}

static enum weft_status check_widths(const struct weft_walk *walk,
                                     const struct weft_walk_step *step, struct weft_error *err)
{
    const int64_t heads[] = {step->sizes.heads, step->sizes.kv_heads, step->sizes.kv_heads};
    for (int i = 0; i < 3; i++) {
        int64_t width;
        if (!weft_checked_mul(heads[i], step->sizes.head_dim, &width) ||
            width != weft_span_width(&step->in[i]))
            return weft_step_refuse(walk, step, err,
                                    "input %d has %lld columns; %lld heads of %lld need another "
                                    "number",
                                    i, (long long)weft_span_width(&step->in[i]),
                                    (long long)heads[i], (long long)step->sizes.head_dim);
    }
    if (step->sizes.kv_heads < 1 || step->sizes.heads % step->sizes.kv_heads != 0)
        return weft_step_refuse(walk, step, err, "%lld kv_heads do not divide %lld heads",
                                (long long)step->sizes.kv_heads, (long long)step->sizes.heads);
    return WEFT_OK;
}

static enum weft_status check_scores(const struct weft_walk *walk,
                                     const struct weft_walk_step *step, struct weft_error *err)
{
    const struct weft_step_numbers *numbers = &step->numbers;
    if (!(numbers->cap >= 0) || !(numbers->scalar >= 0))
        return weft_step_refuse(walk, step, err,
                                "\"cap\" is %g and \"scalar\" %g; they must be at least 0",
                                numbers->cap, numbers->scalar);
    if (step->sizes.causal == 0 && step->from->window != NULL)
        return weft_step_refuse(walk, step, err, "a \"window\" needs \"causal\": 1");
    if (step->from->save != WEFT_WORD_LOG_SUMS &&
        (step->from->window != NULL || step->from->cap != NULL))
        return weft_step_refuse(walk, step, err,
                                "a \"window\" or a \"cap\" needs \"save\": \"log_sums\"");
    return WEFT_OK;
}

static enum weft_status shape_attend(struct weft_walk *walk, struct weft_walk_step *step,
                                     struct weft_error *err)
{
    WEFT_TRY(weft_step_check_rows(walk, step, err));
    WEFT_TRY(check_widths(walk, step, err));
    WEFT_TRY(check_scores(walk, step, err));
    const int64_t rows = weft_times(&walk->fits, step->sizes.heads, step->rows);
    if (step->from->save == WEFT_WORD_LOG_SUMS)
        WEFT_TRY(weft_step_add_statistic(walk, step, "log_sums", step->rows, step->sizes.heads,
                                         WEFT_VALUE_F32, err));
    else if (walk->batch.on_gpu && !walk->batch.plain && weft_attend_uses_tensor_cores(walk, step))
        WEFT_TRY(
            weft_step_add_statistic(walk, step, "probabilities", rows, 1, WEFT_VALUE_F32, err));
    else
        WEFT_TRY(weft_step_add_statistic(walk, step, "probabilities", rows, walk->batch.seq_len,
                                         WEFT_VALUE_COMPUTE, err));
    return weft_step_add_output(walk, step, step->rows, weft_span_width(&step->in[0]), err);
}

static unsigned attend_reads(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    (void)walk, (void)step;
    return WEFT_STEP_IN0 | WEFT_STEP_IN1 | WEFT_STEP_IN2 | WEFT_STEP_STATS | WEFT_STEP_OUT0;
}

/* Scores and values, each 2 rows seq_len width, halved by causality, or less by a window. */
static double attend_flops(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    const double s = (double)walk->batch.seq_len, window = (double)step->sizes.window;
    if (window > 0 && window < s)
        return 4 * (double)step->rows * (window - window * window / (2 * s)) *
               (double)weft_span_width(&step->in[0]);
    return (step->sizes.causal != 0 ? 2 : 4) * (double)step->rows * (double)walk->batch.seq_len *
           (double)weft_span_width(&step->in[0]);
}

/* A CPU computes probabilities again in stripes: of those and of their gradients. A cap's slope
 * needs the scores before it. */
static void add_stripes(struct weft_walk *walk, const struct weft_walk_step *step,
                        int64_t row_bytes, struct weft_step_scratch *out)
{
    const int64_t s = walk->batch.seq_len, rows = s > 0 ? weft_stripe_rows(s) : 0;
    out->forward_scores = weft_times(&walk->fits, rows < s ? rows : s, row_bytes);
    out->scores = weft_times(&walk->fits, step->numbers.cap > 0 ? 3 : 2, out->forward_scores);
}

/* Tensor cores need a number a row and head. Otherwise a GPU has whole score matrices, their
 * gradients, with a cap the scores before it, and sums in f32 over the queries that share keys: of
 * one sample after another, unless probabilities are saved. */
static void add_gpu_scratch(struct weft_walk *walk, const struct weft_walk_step *step,
                            int64_t row_bytes, struct weft_step_scratch *out)
{
    struct weft_sizes *fits = &walk->fits;
    const bool again = step->from->save == WEFT_WORD_LOG_SUMS;
    const int64_t rows = again ? walk->batch.seq_len : step->rows;
    const bool sums = walk->batch.compute != WEFT_F32 && step->sizes.kv_heads < step->sizes.heads;
    int64_t scores = weft_times(fits, weft_times(fits, step->sizes.heads, rows), row_bytes);
    if (!walk->batch.plain && weft_attend_uses_tensor_cores(walk, step)) {
        out->gpu_backward = weft_times(fits, weft_times(fits, step->sizes.heads, step->rows),
                                       (int64_t)sizeof(float));
        return;
    }
    if ((again || sums) && !weft_checked_round_up(scores, WEFT_LAYOUT_ALIGN_BYTES, &scores))
        fits->overflowed = true;
    out->gpu_forward = again ? scores : 0;
    const int64_t matrices = step->numbers.cap > 0 ? 3 : 2;
    out->gpu_backward = again ? weft_times(fits, matrices, scores) : scores;
    if (sums)
        out->gpu_backward =
            weft_plus(fits, out->gpu_backward,
                      weft_times(fits, weft_times(fits, step->sizes.kv_heads, rows),
                                 weft_times(fits, step->sizes.head_dim, (int64_t)sizeof(float))));
}

static void attend_scratch(struct weft_walk *walk, const struct weft_walk_step *step,
                           struct weft_step_scratch *out)
{
    struct weft_sizes *fits = &walk->fits;
    const int64_t s = walk->batch.seq_len;
    const int64_t row_bytes = weft_times(fits, s, weft_dtype_bytes(walk->batch.compute));
    /* Gradients of 16 bits are summed in f32: over the queries that share keys and values, and
     * over stripes. */
    int64_t sums = step->sizes.kv_heads < step->sizes.heads ? 1 : 0;
    if (step->from->save != WEFT_WORD_LOG_SUMS) {
        out->scores = weft_times(fits, s, row_bytes);
    } else {
        sums = walk->batch.on_gpu ? 0 : 2;
        if (!walk->batch.on_gpu) add_stripes(walk, step, row_bytes, out);
    }
    if (walk->batch.compute != WEFT_F32)
        out->sums = weft_times(fits, weft_times(fits, s, step->sizes.head_dim),
                               sums * (int64_t)sizeof(float));
    add_gpu_scratch(walk, step, row_bytes, out);
}

const struct weft_op weft_op_attend = {
    .name = "attend",
    .n_in = 3,
    .required = WEFT_SIZE(heads) | WEFT_SIZE(kv_heads) | WEFT_SIZE(head_dim),
    .optional = WEFT_SIZE(causal) | WEFT_SIZE(window),
    .numbers = WEFT_NUMBER(scalar) | WEFT_NUMBER(cap),
    .saves = 1u << WEFT_WORD_LOG_SUMS,
    .counts = true,
    .mixes_rows = true,
    .caches = WEFT_STEP_IN1 | WEFT_STEP_IN2,
    .holds = WEFT_WALK_NONE,
    .shape = shape_attend,
    .reads = attend_reads,
    .flops = attend_flops,
    .scratch = attend_scratch,
};
