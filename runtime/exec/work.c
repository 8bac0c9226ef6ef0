#include <math.h>
#include <string.h>

#include "runtime/exec/parts.h"
#include "runtime/nn/kernels.h"

struct unit_argument {
    struct weft_exec *exec;
    struct exec_unit *unit;
};

static struct weft_exec *exec_of(const void *argument)
{
    struct weft_exec *exec;
    memcpy(&exec, argument, sizeof exec);
    return exec;
}

struct load_argument {
    struct weft_exec *exec;
    struct exec_batch batch;
};

static enum weft_status load(struct weft_stream *stream, const void *argument,
                             struct weft_error *err)
{
    (void)stream;
    (void)err;
    const struct load_argument *a = argument;
    const struct weft_exec *exec = a->exec;
    const unsigned char *input = exec->inputs->input;
    const unsigned char *targets = (const unsigned char *)exec->inputs->targets;
    if (exec->options.config->model->layers[0].type == WEFT_LAYER_EMBEDDING) {
        memcpy(a->batch.input, input + a->batch.micro * exec->input_bytes,
               (size_t)exec->input_bytes);
    } else {
        enum weft_dtype dtype = exec_compute(exec);
        int64_t n = exec->input_bytes / weft_dtype_bytes(dtype);
        weft_kernels_best()->narrow(
            dtype, n, (const float *)(const void *)input + a->batch.micro * n, a->batch.input);
    }
    memcpy(a->batch.targets, targets + a->batch.micro * exec->target_bytes,
           (size_t)exec->target_bytes);
    return WEFT_OK;
}

void weft_exec_push_load(struct weft_exec *exec, const struct exec_batch *batch)
{
    struct load_argument argument = {exec, *batch};
    weft_stream_push(exec->streams[WEFT_STREAM_COMPUTE], load, &argument, sizeof argument);
}

struct zero_argument {
    const struct exec_unit *unit;
    unsigned char *gradient;
    enum weft_dtype dtype;
};

static enum weft_status zero(struct weft_stream *stream, const void *argument,
                             struct weft_error *err)
{
    (void)stream;
    (void)err;
    const struct zero_argument *a = argument;
    int64_t size = weft_dtype_bytes(a->dtype);
    for (int32_t i = 0; i < a->unit->n_gaps; i++) {
        const struct exec_gap *gap = &a->unit->gaps[i];
        memset(a->gradient + gap->begin * size, 0, (size_t)(gap->count * size));
    }
    return WEFT_OK;
}

void weft_exec_push_zero(struct weft_exec *exec, const struct exec_unit *unit,
                         unsigned char *gradient)
{
    struct zero_argument argument = {unit, gradient, exec_reduce(exec)};
    weft_stream_push(exec->streams[WEFT_STREAM_COMPUTE], zero, &argument, sizeof argument);
}

/* Where a piece's parameters are rounded to; NULL when they are fp32. */
static void *copy_of(const struct weft_exec *exec, const struct exec_unit *unit,
                     const struct weft_piece *piece)
{
    if (unit->master == NULL) return NULL;
    return unit->parameters + exec_parameter_at(unit, piece) * weft_dtype_bytes(exec_compute(exec));
}

struct weft_update weft_exec_update_of(const struct weft_exec *exec, const struct exec_unit *unit,
                                       const struct weft_piece *piece)
{
    int64_t at = exec_state_at(unit, piece);
    return (struct weft_update){
        .parameters = exec_values_at(unit, piece),
        .gradients = unit->gradient + at * weft_dtype_bytes(unit->gradient_dtype),
        .gradient_dtype = unit->gradient_dtype,
        .moment1 = unit->moment1 == NULL ? NULL : unit->moment1 + at,
        .moment2 = unit->moment2 == NULL ? NULL : unit->moment2 + at,
        .copy = copy_of(exec, unit, piece),
        .copy_dtype = exec_compute(exec),
        .n = piece->count,
    };
}

static enum weft_status update(struct weft_stream *stream, const void *argument,
                               struct weft_error *err)
{
    (void)stream;
    (void)err;
    const struct unit_argument *a = argument;
    const struct weft_tensor *tensors = a->exec->options.config->model->tensors;
    if (a->exec->options.program->period.agreed_updates) {
        weft_exec_apply_lamb(a->exec, a->unit);
        return WEFT_OK;
    }
    if (weft_exec_gradients_are_bad(a->exec)) return WEFT_OK;
    for (int64_t i = 0; i < a->unit->n_updated; i++) {
        const struct weft_piece *piece = &a->unit->updated[i];
        struct weft_update what = weft_exec_update_of(a->exec, a->unit, piece);
        weft_optimizer_update(&a->exec->pending.optimizer, tensors[piece->tensor].decays, &what);
    }
    return WEFT_OK;
}

void weft_exec_push_update(struct weft_exec *exec, struct exec_unit *unit)
{
    struct unit_argument argument = {exec, unit};
    if (!exec->pending.valid) return;
    weft_stream_push(exec->streams[WEFT_STREAM_COMPUTE], update, &argument, sizeof argument);
}

/* A cross-entropy is at least 0 but for rounding; floor makes the fraction positive anyway. */
static void record_loss(uint64_t *record, double loss)
{
    if (!(fabs(loss) < EXEC_LOSS_MOST)) {
        record[EXEC_WORD_BAD_LOSS] = 1;
        return;
    }
    double whole = floor(loss);
    record[EXEC_WORD_LOSS] = (uint64_t)(int64_t)whole;
    record[EXEC_WORD_LOSS_FRACTION] = (uint64_t)((loss - whole) * 0x1p32);
}

static uint64_t sum_not_finite(const uint64_t *record)
{
    /* The bins of the highest exponent, which only infinities and NaNs have. */
    return record[EXEC_WORD_NORM + WEFT_NORM_WORDS - 2] |
           record[EXEC_WORD_NORM + WEFT_NORM_WORDS - 1];
}

static int32_t unit_word(int32_t unit)
{
    int32_t flag = unit < EXEC_FLAGGED_UNITS ? unit : EXEC_FLAGGED_UNITS - 1;
    return EXEC_WORD_BAD_UNITS + flag;
}

/* Widened in pieces that the stack holds. */
static void add_squares(uint64_t *bins, enum weft_dtype dtype, const unsigned char *gradient,
                        int64_t n)
{
    enum { PIECE = 4096 };
    float wide[PIECE];
    if (dtype == WEFT_F32) {
        weft_norm_add(bins, (const float *)(const void *)gradient, n);
        return;
    }
    for (int64_t at = 0; at < n; at += PIECE) {
        int64_t count = n - at < PIECE ? n - at : PIECE;
        weft_kernels_best()->widen(dtype, count, gradient + at * weft_dtype_bytes(dtype), wide);
        weft_norm_add(bins, wide, count);
    }
}

/* Every element counts on the one rank that owns its slice, whatever the policy. */
static void record_norm(struct weft_exec *exec, uint64_t *record)
{
    for (int32_t u = 0; u < exec->options.program->n_units; u++) {
        const struct exec_unit *unit = &exec->units[u];
        if (!unit->trainable) continue;
        uint64_t before = sum_not_finite(record);
        for (int64_t i = 0; i < unit->n_own; i++) {
            int64_t at = exec_state_at(unit, &unit->own[i]);
            add_squares(record + EXEC_WORD_NORM, unit->gradient_dtype,
                        unit->gradient + at * weft_dtype_bytes(unit->gradient_dtype),
                        unit->own[i].count);
        }
        if (sum_not_finite(record) != before) record[unit_word(u)] = 1;
    }
}

static enum weft_status norm(struct weft_stream *stream, const void *argument,
                             struct weft_error *err)
{
    (void)stream;
    (void)err;
    struct weft_exec *exec = exec_of(argument);
    uint64_t *record = exec->record;
    memset(record, 0, WEFT_AGREE_BYTES);
    if (!exec->options.program->period.rotated) record_norm(exec, record);
    double loss = 0;
    for (int32_t micro = 0; micro < exec->options.program->period.n_micro; micro++)
        loss += exec->losses[micro];
    record_loss(record, loss);
    record[EXEC_WORD_STOP] = exec->inputs->stop;
    return WEFT_OK;
}

void weft_exec_push_norm(struct weft_exec *exec)
{
    weft_stream_push(exec->streams[WEFT_STREAM_COMPUTE], norm, &exec, sizeof exec);
}

static enum weft_status finish(struct weft_stream *stream, const void *argument,
                               struct weft_error *err)
{
    (void)stream;
    (void)err;
    struct weft_exec *exec = exec_of(argument);
    const uint64_t *sum = exec->record_sum;
    double clip_norm = exec->options.config->train.clip_norm;
    struct weft_step_result *out = &exec->finished;
    int finite = 1;
    bool rotated = exec->options.program->period.rotated;
    out->norm = rotated ? -1 : weft_norm_result(sum + EXEC_WORD_NORM, &finite) / exec->scale.scale;
    out->loss_scale = exec->scale.scale;
    out->skipped = false;
    out->clip = 1;
    if (clip_norm > 0 && clip_norm < out->norm + 1e-6) out->clip = clip_norm / (out->norm + 1e-6);
    bool bad_loss = sum[EXEC_WORD_BAD_LOSS] != 0;
    double loss =
        (double)(int64_t)sum[EXEC_WORD_LOSS] + (double)sum[EXEC_WORD_LOSS_FRACTION] * 0x1p-32;
    out->loss = bad_loss ? NAN : loss / (double)exec->all_rows;
    out->stop = sum[EXEC_WORD_STOP] != 0;
    out->suspect = -1;
    for (int32_t u = 0; u < exec->options.program->n_units; u++) {
        if (sum[unit_word(u)] != 0) out->suspect = u;
    }
    out->earlier = weft_exec_gradients_are_bad(exec);
    out->finite = finite != 0 && !bad_loss && !out->earlier;
    return WEFT_OK;
}

void weft_exec_push_finish(struct weft_exec *exec)
{
    weft_stream_push(exec->streams[WEFT_STREAM_COMPUTE], finish, &exec, sizeof exec);
}
