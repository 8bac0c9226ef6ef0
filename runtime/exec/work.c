#include <math.h>
#include <string.h>

#include "runtime/exec/parts.h"

struct unit_argument {
    struct weft_exec *exec;
    const struct exec_unit *unit;
};

static struct weft_exec *exec_of(const void *argument)
{
    struct weft_exec *exec;
    memcpy(&exec, argument, sizeof exec);
    return exec;
}

static enum weft_status load(struct weft_stream *stream, const void *argument,
                             struct weft_error *err)
{
    (void)stream;
    (void)err;
    struct weft_exec *exec = exec_of(argument);
    memcpy(exec->input, exec->inputs->input, (size_t)exec->input_bytes);
    memcpy(exec->targets, exec->inputs->targets, (size_t)exec->target_bytes);
    return WEFT_OK;
}

void weft_exec_push_load(struct weft_exec *exec)
{
    weft_stream_push(exec->streams[WEFT_STREAM_COMPUTE], load, &exec, sizeof exec);
}

static enum weft_status zero(struct weft_stream *stream, const void *argument,
                             struct weft_error *err)
{
    (void)stream;
    (void)err;
    const struct unit_argument *a = argument;
    for (int32_t i = 0; i < a->unit->n_gaps; i++)
        memset(a->unit->gaps[i].begin, 0, (size_t)a->unit->gaps[i].count * sizeof(float));
    return WEFT_OK;
}

void weft_exec_push_zero(struct weft_exec *exec, const struct exec_unit *unit)
{
    struct unit_argument argument = {exec, unit};
    weft_stream_push(exec->streams[WEFT_STREAM_COMPUTE], zero, &argument, sizeof argument);
}

static enum weft_status update(struct weft_stream *stream, const void *argument,
                               struct weft_error *err)
{
    (void)stream;
    (void)err;
    const struct unit_argument *a = argument;
    const struct weft_tensor *tensors = a->exec->options.config->model->tensors;
    for (int64_t i = 0; i < a->unit->n_updated; i++) {
        const struct weft_piece *piece = &a->unit->updated[i];
        int64_t at = exec_state_at(a->unit, piece);
        struct weft_update what = {
            .parameters = a->unit->parameters + exec_parameter_at(a->unit, piece),
            .gradients = a->unit->gradient + at,
            .moment1 = a->unit->moment1 == NULL ? NULL : a->unit->moment1 + at,
            .moment2 = a->unit->moment2 == NULL ? NULL : a->unit->moment2 + at,
            .n = piece->count,
        };
        weft_optimizer_update(&a->exec->pending.optimizer, tensors[piece->tensor].decays, &what);
    }
    return WEFT_OK;
}

void weft_exec_push_update(struct weft_exec *exec, const struct exec_unit *unit)
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

/* Every element counts on the one rank that owns its slice, whatever the policy. */
static enum weft_status norm(struct weft_stream *stream, const void *argument,
                             struct weft_error *err)
{
    (void)stream;
    (void)err;
    struct weft_exec *exec = exec_of(argument);
    uint64_t *record = exec->record;
    memset(record, 0, WEFT_AGREE_BYTES);
    for (int32_t u = 0; u < exec->options.program->n_units; u++) {
        const struct exec_unit *unit = &exec->units[u];
        if (!unit->trainable) continue;
        uint64_t before = sum_not_finite(record);
        for (int64_t i = 0; i < unit->n_own; i++) {
            weft_norm_add(record + EXEC_WORD_NORM,
                          unit->gradient + exec_state_at(unit, &unit->own[i]), unit->own[i].count);
        }
        if (sum_not_finite(record) != before) record[unit_word(u)] = 1;
    }
    record_loss(record, exec->loss);
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
    int finite = 0;
    out->norm = weft_norm_result(sum + EXEC_WORD_NORM, &finite);
    out->clip = 1;
    if (clip_norm > 0 && clip_norm < out->norm + 1e-6) out->clip = clip_norm / (out->norm + 1e-6);
    bool bad_loss = sum[EXEC_WORD_BAD_LOSS] != 0;
    double loss =
        (double)(int64_t)sum[EXEC_WORD_LOSS] + (double)sum[EXEC_WORD_LOSS_FRACTION] * 0x1p-32;
    out->loss = bad_loss ? NAN : loss / ((double)exec->rows * exec->ranks);
    out->finite = finite != 0 && !bad_loss;
    out->stop = sum[EXEC_WORD_STOP] != 0;
    out->suspect = -1;
    for (int32_t u = 0; u < exec->options.program->n_units; u++) {
        if (sum[unit_word(u)] != 0) out->suspect = u;
    }
    return WEFT_OK;
}

void weft_exec_push_finish(struct weft_exec *exec)
{
    weft_stream_push(exec->streams[WEFT_STREAM_COMPUTE], finish, &exec, sizeof exec);
}
