/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "runtime/exec/exec.h"
#include "runtime/exec/host_update.h"
#include "runtime/exec/looks.h"
#include "runtime/exec/parts.h"
#include "runtime/exec/units.h"

static struct weft_stream *compute_of(const struct weft_exec *exec)
{
    return exec->streams[WEFT_LANE_COMPUTE];
}

/* Address of a word of this rank's record. */
static void *word_of(const struct weft_exec *exec, int32_t word)
{
    return exec->record + (int64_t)word * (int64_t)sizeof(uint64_t);
}

void weft_exec_push_load(struct weft_exec *exec, const struct exec_batch *batch)
{
    const unsigned char *input = exec->inputs->input;
    const unsigned char *targets = (const unsigned char *)exec->inputs->targets;
    if (weft_model_reads_tokens(exec->options.config->model)) {
        weft_arena_write(exec->arena, compute_of(exec), batch->input,
                         input + batch->micro * exec->input_bytes, exec->input_bytes);
    } else {
        enum weft_dtype dtype = exec_compute(exec);
        int64_t n = exec->input_bytes / weft_dtype_bytes(dtype);
        weft_nn_load(exec->options.nn, compute_of(exec), dtype, n,
                     (const float *)(const void *)input + batch->micro * n, batch->input);
    }
    weft_arena_write(exec->arena, compute_of(exec), batch->targets,
                     targets + batch->micro * exec->target_bytes, exec->target_bytes);
}

void weft_exec_push_zero(struct weft_exec *exec, const struct exec_unit *unit, void *gradient)
{
    weft_arena_fill(exec->arena, compute_of(exec), gradient, unit->gaps, unit->n_gaps, 0);
}

void weft_exec_push_moments(struct weft_exec *exec, const struct exec_unit *unit)
{
    weft_arena_fill(exec->arena, compute_of(exec), unit->nn.norms, &unit->norms_bytes, 1, 0);
    if (!exec->pending.valid) return;
    weft_nn_moments(exec->options.nn, compute_of(exec), &unit->nn, &exec->rule,
                    EXEC_OWN(exec, step));
}

void weft_exec_push_update(struct weft_exec *exec, const struct exec_unit *unit)
{
    void *step = EXEC_OWN(exec, step);
    /* After a start a shard for the host is made from the master alone. */
    if (exec->renews && unit->fetches) weft_nn_round(exec->options.nn, compute_of(exec), &unit->nn);
    if (!exec->pending.valid || !exec->pending.applies) return;
    if (exec->options.program->period.agreed_updates) {
        weft_nn_apply(exec->options.nn, compute_of(exec), &unit->nn, &exec->rule, step);
    } else {
        weft_nn_update(exec->options.nn, compute_of(exec), &unit->nn, &exec->rule, step);
        /* An update that the device skips writes nothing, and a shard for the host is new. */
        if (unit->fetches && exec->options.program->period.rotated)
            weft_nn_round(exec->options.nn, compute_of(exec), &unit->nn);
    }
    if (exec->hashes)
        weft_nn_add_hash(exec->options.nn, compute_of(exec), &unit->nn,
                         word_of(exec, EXEC_WORD_HASH));
}

static int32_t unit_word(int32_t unit)
{
    int32_t flag = unit < EXEC_FLAGGED_UNITS ? unit : EXEC_FLAGGED_UNITS - 1;
    return EXEC_WORD_BAD_UNITS + flag;
}

void weft_exec_push_record(struct weft_exec *exec, struct weft_stream *stream)
{
    static const struct weft_range begun = {0, EXEC_WORD_HASH * sizeof(uint64_t)};
    weft_arena_fill(exec->arena, stream, exec->record, &begun, 1, 0);
    if (exec->means != NULL)
        weft_arena_fill(exec->arena, stream, exec->record, &exec->means->sent, 1, 0);
}

/* A GPU's writes copy host memory when they are issued, before an update on the host has ended. So
 * a hash would lack its parameters, and a replay would blame a right step. */
bool weft_exec_can_hash(const struct weft_exec *exec)
{
    return exec->updater == NULL || exec->options.config->cluster.device.type != WEFT_DEVICE_CUDA;
}

void weft_exec_push_hashes(struct weft_exec *exec, int64_t updated)
{
    static const struct weft_range words = {0, EXEC_HASH_WORDS * sizeof(uint64_t)};
    const int64_t every = exec->options.config->train.fingerprint_every;
    exec->groups.hashes_carried = every > 0 && updated > 0 && updated % every == 0;
    weft_exec_begin_groups(exec, updated + 1);
    exec->groups.hashes = every > 0 && (updated + 1) % every == 0;
    exec->hashes = exec->groups.hashes_carried && weft_exec_can_hash(exec);
    if (!exec->hashed) return;
    exec->hashed = false;
    weft_exec_updater_forget(exec->updater);
    weft_arena_fill(exec->arena, compute_of(exec), word_of(exec, EXEC_WORD_HASH), &words, 1, 0);
}

/* Each group's loss becomes words of its own, so their sum does not depend on the ranks that share
 * a step's groups. A round's loss is converted when the next round begins, the last one by the
 * norm. */
void weft_exec_push_forward(struct weft_exec *exec, const struct exec_bound *bound)
{
    const int32_t begun = bound->with.layer.begun;
    if (begun > 0)
        weft_nn_record_loss(exec->options.nn, bound->stream, EXEC_OWN(exec, loss),
                            begun > 1 ? EXEC_OWN(exec, losses) : NULL, EXEC_OWN(exec, losses));
    weft_nn_forward(exec->options.nn, bound->stream, bound->with.layer.call);
}

/* Under every policy, an element counts on the rank that owns its slice. */
void weft_exec_push_norm_of(struct weft_exec *exec, struct weft_stream *stream, int32_t unit,
                            const struct weft_nn_unit *part)
{
    void *bins = word_of(exec, EXEC_WORD_NORM), *bad = word_of(exec, unit_word(unit));
    if (exec->means != NULL)
        weft_nn_add_squares(exec->options.nn, stream, part, bins, bad,
                            word_of(exec, EXEC_SENT_WORDS));
    else
        weft_nn_add_norm(exec->options.nn, stream, part, bins, bad);
}

/* Units with updates on the host were counted on their way down. */
void weft_exec_push_norm(struct weft_exec *exec, const struct exec_unit *units)
{
    const struct weft_program *program = exec->options.program;
    struct weft_nn *nn = exec->options.nn;
    const bool norms = weft_period_norms(&program->period);
    for (int32_t u = 0; u < program->n_units && norms; u++)
        if (units[u].trainable && !units[u].on_host)
            weft_exec_push_norm_of(exec, compute_of(exec), u, &units[u].nn);
    weft_nn_record_loss(nn, compute_of(exec), EXEC_OWN(exec, loss),
                        weft_period_reductions(&program->period) > 1 ? EXEC_OWN(exec, losses)
                                                                     : NULL,
                        word_of(exec, EXEC_WORD_LOSS));
    exec->told_to_stop = exec->inputs->stop + (exec->inputs->ends ? EXEC_STOP_ENDS : 0);
    weft_arena_write(exec->arena, compute_of(exec), word_of(exec, EXEC_WORD_STOP),
                     &exec->told_to_stop, sizeof exec->told_to_stop);
    /* Every updated unit has run forward by now, so its update on the host has ended. */
    if (exec->hashes && exec->updater != NULL)
        weft_arena_write(exec->arena, compute_of(exec), word_of(exec, EXEC_WORD_HASH + 2),
                         weft_exec_updater_hash(exec->updater), sizeof(struct weft_hash));
}

void weft_exec_push_finish(struct weft_exec *exec)
{
    weft_arena_read(exec->arena, compute_of(exec), exec->record_sum, sizeof exec->mailbox.sum,
                    exec->mailbox.sum);
    if (exec->means != NULL)
        weft_arena_read(exec->arena, compute_of(exec), exec->record_sum + sizeof exec->mailbox.sum,
                        weft_exec_means_words(exec) * (int64_t)sizeof(uint64_t),
                        exec->means->squares);
    weft_arena_read(exec->arena, compute_of(exec), EXEC_OWN(exec, step.stop),
                    sizeof exec->mailbox.earlier, &exec->mailbox.earlier);
}

void weft_exec_push_step(struct weft_exec *exec)
{
    const int64_t from = offsetof(struct weft_nn_step, adamw); /* after stop, which is no scalar */
    exec->step.adamw = exec->pending.optimizer.adamw;
    exec->step.sgd = exec->pending.optimizer.sgd;
    exec->step.loss_scale = 1.0 / (double)exec->rows * exec->scale.scale;
    exec->step.carried_scale = 1.0 / (double)exec->carried_rows * exec->scale.scale;
    weft_arena_write(exec->arena, compute_of(exec), EXEC_OWN(exec, step.adamw), &exec->step.adamw,
                     (int64_t)sizeof exec->step - from);
    weft_exec_means_push(exec);
}

/* Collectives may write the flag at the same time, so it is read separately. */
void weft_exec_push_own(struct weft_exec *exec)
{
    struct exec_mailbox *to = &exec->mailbox;
    struct weft_stream *stream = compute_of(exec);
    weft_arena_read(exec->arena, stream, EXEC_OWN(exec, step.stop), sizeof to->stop, &to->stop);
    weft_arena_read(exec->arena, stream, EXEC_OWN(exec, first_bad), sizeof to->first_bad,
                    &to->first_bad);
    weft_arena_read(exec->arena, stream, EXEC_OWN(exec, loss), sizeof to->loss, &to->loss);
}

void weft_exec_push_forget(struct weft_exec *exec)
{
    static const int64_t nobody = INT64_MAX;
    weft_arena_write(exec->arena, compute_of(exec), EXEC_OWN(exec, first_bad), &nobody,
                     sizeof nobody);
}

double weft_exec_mean_loss(const uint64_t words[WEFT_NN_LOSS_WORDS], int64_t rows)
{
    double loss =
        (double)(int64_t)words[WEFT_NN_LOSS_WHOLE] + (double)words[WEFT_NN_LOSS_FRACTION] * 0x1p-32;
    return words[WEFT_NN_LOSS_BAD] != 0 ? NAN : loss / (double)rows;
}

struct weft_step_result weft_exec_finish(const struct weft_exec *exec)
{
    const uint64_t *sum = exec->mailbox.sum;
    const struct weft_program *program = exec->options.program;
    double clip_norm = exec->options.config->train.clip_norm;
    int finite = 1;
    struct weft_step_result out = {
        .norm = -1,
        .loss_scale = exec->scale.scale,
        .clip = 1,
        .loss = weft_exec_mean_loss(sum + EXEC_WORD_LOSS, exec->rows),
        .stop = sum[EXEC_WORD_STOP] != 0,
        .suspect = -1,
        .earlier = weft_exec_is_bad(exec, exec->mailbox.earlier),
        .parameters = {.high = sum[EXEC_WORD_HASH] + sum[EXEC_WORD_HASH + 2],
                       .low = sum[EXEC_WORD_HASH + 1] + sum[EXEC_WORD_HASH + 3]},
    };
    if (weft_period_norms(&program->period))
        out.norm = weft_norm_result(sum + EXEC_WORD_NORM, &finite) / exec->scale.scale;
    if (clip_norm > 0 && clip_norm < out.norm + 1e-6) out.clip = clip_norm / (out.norm + 1e-6);
    for (int32_t u = 0; u < program->n_units; u++) {
        if (sum[unit_word(u)] != 0) out.suspect = u;
    }
    out.finite = finite != 0 && sum[EXEC_WORD_BAD_LOSS] == 0 && !out.earlier;
    return out;
}

/* Second moments of whole tensors */

_Static_assert(WEFT_NORM_PACKED_WORDS * sizeof(uint64_t) == WEFT_TENSOR_SQUARES_BYTES &&
                   sizeof(float) == WEFT_TENSOR_DIVISOR_BYTES,
               "what plans hold");

enum weft_status weft_exec_means_create(struct weft_exec *exec, struct weft_error *err)
{
    const struct weft_config *config = exec->options.config;
    const size_t n = (size_t)config->model->n_tensors;
    if (!weft_config_means(config)) return WEFT_OK;
    struct exec_means *means = weft_pool_array(&exec->pool, 1, sizeof *means);
    uint64_t *squares =
        weft_pool_array(&exec->pool, n, WEFT_NORM_PACKED_WORDS * sizeof *means->squares);
    float *moments = weft_pool_array(&exec->pool, 3 * n, sizeof *moments);
    if (means == NULL || squares == NULL || moments == NULL)
        return weft_fail_memory(err, "second moments of tensors");
    const int64_t from = EXEC_SENT_WORDS * (int64_t)sizeof(uint64_t);
    *means = (struct exec_means){.n = (int32_t)n,
                                 .sent = {from, from + (int64_t)n * WEFT_TENSOR_SQUARES_BYTES},
                                 .squares = squares,
                                 .applied = moments,
                                 .next = moments + n,
                                 .divisors = moments + 2 * n};
    exec->means = means;
    return WEFT_OK;
}

int64_t weft_exec_means_words(const struct weft_exec *exec)
{
    return exec->means == NULL ? 0 : (int64_t)exec->means->n * WEFT_NORM_PACKED_WORDS;
}

void weft_exec_means_prepare(struct weft_exec *exec)
{
    struct exec_means *means = exec->means;
    const double beta2 = exec->options.config->train.optimizer.betas[1];
    const double clip = (double)exec->pending.optimizer.adamw.clip;
    for (int32_t t = 0; means != NULL && t < means->n; t++) {
        const struct weft_tensor *tensor = &exec->options.config->model->tensors[t];
        int finite;
        const double length =
            weft_norm_unpack(means->squares + (int64_t)t * WEFT_NORM_PACKED_WORDS, &finite);
        if (!tensor->trainable) continue;
        means->next[t] = weft_mean2_next(beta2, means->applied[t], clip, length, tensor->elements);
        means->divisors[t] = weft_mean2_divisor(&exec->pending.optimizer.adamw, means->next[t]);
    }
}

void weft_exec_means_push(struct weft_exec *exec)
{
    const struct exec_means *means = exec->means;
    if (means == NULL || !exec->pending.valid) return;
    memcpy(means->applied, means->next, (size_t)means->n * sizeof *means->applied);
    weft_arena_write(exec->arena, exec->streams[WEFT_LANE_COMPUTE], exec->divisors, means->divisors,
                     means->n * (int64_t)sizeof *means->divisors);
}

void weft_exec_means_clear(struct weft_exec *exec)
{
    if (exec->means != NULL)
        memset(exec->means->applied, 0, (size_t)exec->means->n * sizeof *exec->means->applied);
}
