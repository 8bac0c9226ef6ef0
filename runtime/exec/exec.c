/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "program/works.h"
#include "runtime/exec/average.h"
#include "runtime/exec/exec.h"
#include "runtime/exec/host.h"
#include "runtime/exec/host_update.h"
#include "runtime/exec/looks.h"
#include "runtime/exec/offloaded.h"
#include "runtime/exec/parts.h"
#include "runtime/exec/poison.h"
#include "runtime/exec/units.h"

/* Creates an event for each instruction that another stream waits for. */
static enum weft_status create_events(struct weft_exec *exec, struct weft_error *err)
{
    const struct weft_program *program = exec->options.program;
    exec->events =
        weft_pool_array(&exec->pool, (size_t)program->n_instructions, sizeof *exec->events);
    if (exec->events == NULL) return weft_fail_memory(err, "events");
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct weft_instruction *at = &program->instructions[i];
        for (int32_t d = 0; d < at->n_dependencies; d++) {
            int32_t before = program->dependencies[at->first_dependency + d];
            const bool same = program->instructions[before].lane == at->lane;
            if (same || exec->events[before] != NULL) continue;
            WEFT_TRY(weft_event_create(exec->options.device, &exec->events[before], err));
        }
    }
    return WEFT_OK;
}

/* Clears this rank's own words. From here on collectives bring the findings of other ranks here. */
static enum weft_status begin_own(struct weft_exec *exec, struct weft_error *err)
{
    static const struct weft_range all = {0, sizeof(struct exec_own)};
    const struct weft_train *train = &exec->options.config->train;
    const struct weft_optimizer first = weft_optimizer_at(train, 1, 0, 1);
    exec->rule = (struct weft_nn_rule){first.type, first.exempt_vectors, first.decay};
    weft_arena_fill(exec->arena, exec->streams[WEFT_LANE_COMPUTE], exec->own, &all, 1, 0);
    weft_exec_push_forget(exec);
    exec->hashed = true; /* nothing yet, so the words begin at 0 */
    WEFT_TRY(weft_exec_synchronise(exec, err));
    weft_comm_carry(exec->options.comm, (unsigned char *)EXEC_OWN(exec, step.stop) - exec->base);
    return WEFT_OK;
}

static enum weft_status fill_exec(struct weft_exec *exec, struct weft_error *err)
{
    const struct weft_program *program = exec->options.program;
    WEFT_TRY(weft_precision_check(exec->options.config, err));
    exec->scale = weft_loss_scale_first(&exec->options.config->train);
    if (exec->ranks != exec->options.shards->ranks) {
        return weft_fail(err, WEFT_E_DATA,
                         "the plan is for %lld ranks and %d were started: start as many, or plan "
                         "again with cluster.ranks=%d",
                         (long long)exec->options.shards->ranks, exec->ranks, exec->ranks);
    }
    WEFT_TRY(weft_exec_places_fill(program, exec->options.poison, &exec->pool, &exec->places, err));
    WEFT_TRY(weft_exec_means_create(exec, err));
    WEFT_TRY(weft_exec_units_fill(exec, err));
    WEFT_TRY(weft_exec_host_create(exec, &exec->host, err));
    WEFT_TRY(weft_exec_updater_create(exec, &exec->updater, err));
    WEFT_TRY(weft_exec_offloaded_create(exec, &exec->offloaded, err));
    WEFT_TRY(weft_exec_lanes_open(exec, err));
    exec->records =
        weft_pool_array(&exec->pool, (size_t)program->n_instructions, sizeof *exec->records);
    if (exec->records == NULL) return weft_fail_memory(err, "records");
    WEFT_TRY(create_events(exec, err));
    WEFT_TRY(weft_exec_bind(exec, err));
    WEFT_TRY(weft_exec_live_create(program, &exec->live, err));
    if (exec->options.poison) WEFT_TRY(weft_exec_poison_create(exec, err));
    return begin_own(exec, err);
}

enum weft_status weft_exec_create(const struct weft_exec_options *options, struct weft_exec **out,
                                  struct weft_error *err)
{
    struct weft_exec *exec = calloc(1, sizeof *exec);
    if (exec == NULL) return weft_fail_memory(err, "the executor");
    exec->options = *options;
    exec->comm = options->comm;
    exec->arena = options->arena;
    exec->base = weft_arena_address(options->arena);
    exec->looks = options->program->period.rotated;
    exec->mailbox.first_bad = INT64_MAX;
    enum weft_status status = weft_exec_average_create(exec, err);
    exec->rank = weft_comm_rank(exec->comm);
    exec->ranks = weft_comm_ranks(exec->comm);
    if (status == WEFT_OK) status = fill_exec(exec, err);
    if (status != WEFT_OK) {
        weft_exec_destroy(exec);
        return status;
    }
    *out = exec;
    return WEFT_OK;
}

void weft_exec_destroy(struct weft_exec *exec)
{
    if (exec == NULL) return;
    weft_exec_poison_destroy(exec);
    weft_exec_lanes_close(exec);
    for (int32_t i = 0; exec->events != NULL && i < exec->options.program->n_instructions; i++) {
        if (exec->events[i] != NULL) weft_event_destroy(exec->events[i]);
    }
    weft_exec_offloaded_destroy(exec->offloaded);
    weft_exec_updater_destroy(exec->updater);
    weft_exec_host_destroy(exec->host);
    weft_exec_live_destroy(exec->live);
    weft_exec_average_destroy(exec->average);
    weft_pool_finish(&exec->pool);
    free(exec);
}

/* The direction of a copy between the device and the host. */
static enum weft_copy_direction direction_of(enum weft_op op)
{
    return weft_op_item(op)->role == WEFT_ROLE_UP ? WEFT_COPY_UP : WEFT_COPY_DOWN;
}

static void issue_work(struct weft_exec *exec, const struct exec_bound *bound)
{
    /* Without an update the state is unchanged and stays in place: a background save may read
     * it. */
    const bool renews = bound->renews && exec->renews;
    if (bound->needs_step && !exec->pending.valid && !renews) return;
    if (bound->begins_record) weft_exec_push_record(exec, bound->stream);
    switch (bound->op) {
    case WEFT_OP_MARK:
        weft_exec_poison_push(exec, bound->slot);
        return;
    case WEFT_OP_MOMENTS:
        weft_exec_push_moments(exec, bound->with.unit.unit);
        return;
    case WEFT_OP_UPDATE:
        weft_exec_push_update(exec, bound->with.unit.unit);
        return;
    case WEFT_OP_LOAD:
        weft_exec_push_load(exec, &bound->with.batch);
        return;
    case WEFT_OP_FORWARD:
        weft_exec_push_forward(exec, bound);
        return;
    case WEFT_OP_ZERO:
        weft_exec_push_zero(exec, bound->with.unit.unit, bound->with.unit.gradient);
        return;
    case WEFT_OP_BACKWARD:
        weft_nn_backward(exec->options.nn, bound->stream, bound->with.layer.call);
        return;
    case WEFT_OP_NORM:
        weft_exec_push_norm(exec, bound->with.unit.unit);
        return;
    case WEFT_OP_FINISH:
        weft_exec_push_finish(exec);
        return;
    case WEFT_OP_ALL_GATHER:
    case WEFT_OP_ACROSS_GATHER:
        (bound->with.block.owned ? weft_comm_broadcast : weft_comm_all_gather)(
            bound->comm, bound->stream, &bound->with.block);
        return;
    case WEFT_OP_REDUCE_SCATTER:
        (bound->with.block.owned ? weft_comm_reduce : weft_comm_reduce_scatter)(
            bound->comm, bound->stream, &bound->with.block);
        return;
    case WEFT_OP_ACROSS_SCATTER:
        weft_comm_reduce_scatter(bound->comm, bound->stream, &bound->with.block);
        return;
    case WEFT_OP_ALL_REDUCE:
    case WEFT_OP_ACROSS_REDUCE:
        weft_comm_all_reduce(bound->comm, bound->stream, &bound->with.block);
        return;
    case WEFT_OP_AGREE:
        weft_comm_agree(bound->comm, bound->stream, bound->with.agreement.from_offset,
                        bound->with.agreement.to_offset, bound->with.agreement.words, bound->ns);
        return;
    case WEFT_OP_READ:
        weft_exec_push_read(exec, bound->stream, bound->with.unit.unit);
        return;
    case WEFT_OP_WRITE:
        weft_exec_push_write(exec, bound->stream, bound->with.unit.unit);
        return;
    case WEFT_OP_COPY_UP:
    case WEFT_OP_COPY_DOWN:
        weft_exec_push_copy(exec, bound->stream, direction_of(bound->op), bound->with.unit.unit,
                            bound->with.unit.from, bound->with.unit.bytes);
        return;
    case WEFT_OP_GRADIENT_DOWN:
        weft_exec_push_gradient_down(exec, bound->stream, bound->with.update);
        return;
    case WEFT_OP_HOST_UPDATE:
        weft_exec_push_host_update(exec, bound->stream, bound->with.update);
        return;
    case WEFT_OP_PARAMETERS_UP:
        weft_exec_push_parameters_up(exec, bound->stream, bound->with.update);
        return;
    case WEFT_OP_SAVED_DOWN:
    case WEFT_OP_SAVED_UP:
    case WEFT_OP_INPUT_DOWN:
    case WEFT_OP_INPUT_UP:
        weft_exec_push_saved(exec, bound->stream, direction_of(bound->op), &bound->with.saved);
        return;
    case WEFT_OP_PARAMETERS_DOWN:
    case WEFT_OP_PARAMETERS_FETCH:
        weft_exec_push_slice(exec, bound->stream, direction_of(bound->op), &bound->with.slice);
        return;
    case WEFT_OP_AVERAGE:
    case WEFT_OP_AVERAGE_GATHER:
        weft_exec_push_average(exec, bound);
        return;
    case WEFT_OP_COUNT:
        return;
    }
}

void weft_exec_turn(struct weft_exec *exec)
{
    weft_exec_forget_stamps(exec);
    exec->parity = (int)(exec->periods % EXEC_TABLES);
    exec->bound = exec->tables[exec->parity];
    weft_exec_poison_begin(exec);
}

/* The step of the period's updates, if any is pending. */
static int64_t updated_step(const struct weft_exec *exec)
{
    return exec->pending.valid ? exec->updated : WEFT_STEP_OF_NO_UPDATE;
}

/* Collectives pass their time in the communicator, where ranks meet. */
void weft_exec_issue(struct weft_exec *exec, int32_t i, bool works)
{
    const struct exec_bound *bound = &exec->bound[i];
    works = works && !bound->idle && weft_instruction_works(bound->at, updated_step(exec));
    for (int32_t w = 0; w < bound->n_waits; w++)
        weft_stream_wait(bound->stream, bound->waits[w]);
    weft_stream_stamp(bound->stream, &exec->records[i].start_ns);
    if (works) {
        weft_exec_push_failure(exec, i, false);
        issue_work(exec, bound);
        weft_exec_push_failure(exec, i, true);
        weft_exec_push_groups(exec, i);
        weft_exec_tell_layer(exec, i);
        weft_exec_push_look(exec, i);
    }
    if (works && bound->ns > 0 && bound->comm == NULL)
        weft_stream_advance(bound->stream, bound->ns);
    weft_stream_stamp(bound->stream, &exec->records[i].end_ns);
    if (bound->done != NULL) weft_stream_record(bound->stream, bound->done);
}

static void fill_trace(const struct weft_exec *exec, struct weft_trace *trace)
{
    int32_t n = exec->options.program->n_instructions;
    int64_t zero_ns = n > 0 ? exec->records[0].start_ns : 0;
    trace->zero_ns = zero_ns;
    for (int32_t i = 0; i < n; i++) {
        trace->records[i].start_ns = exec->records[i].start_ns - zero_ns;
        trace->records[i].end_ns = exec->records[i].end_ns - zero_ns;
    }
}

/* Stores the optimizer's inputs for this step's gradients, and the scale of the next backward. The
 * scale is a power of two, so dividing by it is exact. */
static void prepare_update(struct weft_exec *exec, const struct weft_step_inputs *inputs,
                           struct weft_step_result *result)
{
    const struct weft_train *train = &exec->options.config->train;
    struct exec_pending *pending = &exec->pending;
    struct weft_step_result *finished = result;
    pending->valid = finished->finite;
    const int64_t updates = inputs->step - exec->moments_began - train->delay;
    pending->applies = updates > 0;
    pending->optimizer = weft_optimizer_at(train, pending->applies ? updates : 1, inputs->lr,
                                           finished->clip / exec->scale.scale);
    if (pending->valid) weft_exec_means_prepare(exec);
    bool goes_on = weft_loss_scale_next(&exec->scale, train, finished->finite);
    finished->skipped = goes_on && !finished->finite;
    finished->finite = goes_on;
}

struct weft_loss_scale weft_exec_loss_scale(const struct weft_exec *exec)
{
    return exec->scale;
}

void weft_exec_set_moments_began(struct weft_exec *exec, int64_t step)
{
    exec->moments_began = step;
}

void weft_exec_set_loss_scale(struct weft_exec *exec, struct weft_loss_scale scale)
{
    exec->scale = scale;
}

enum weft_status weft_exec_step(struct weft_exec *exec, const struct weft_step_inputs *inputs,
                                struct weft_step_result *result, struct weft_trace *trace,
                                struct weft_error *err)
{
    int64_t *rows = trace == NULL ? NULL : trace->live_bytes;
    weft_exec_turn(exec);
    exec->inputs = inputs;
    exec->last_step = inputs->step;
    exec->carried_rows = exec->rows;
    exec->rows = inputs->rows > 0 ? inputs->rows : exec->all_rows;
    exec->periods++;
    exec->updated = inputs->step - 1;
    weft_exec_push_step(exec);
    weft_exec_push_hashes(exec, exec->updated);
    if (trace != NULL) trace->updated = updated_step(exec);
    for (int32_t i = 0; i < exec->options.program->n_instructions; i++) {
        weft_exec_live_issue(exec->live, i, rows);
        weft_exec_issue(exec, i, true);
    }
    if (exec->looks) weft_exec_push_own(exec);
    enum weft_status status = weft_exec_synchronise(exec, err);
    weft_exec_live_end(exec->live, rows);
    exec->inputs = NULL;
    exec->pending.valid = false;
    exec->renews = false;
    if (status == WEFT_OK) status = weft_exec_poison_check(exec, err);
    if (status != WEFT_OK) return status;
    exec->follows = exec->hashed = true;
    weft_exec_offloaded_warn(exec->offloaded);
    weft_exec_host_warn(exec->host);
    if (trace != NULL) fill_trace(exec, trace);
    *result = weft_exec_finish(exec);
    WEFT_TRY(weft_exec_share_result(exec, inputs, result, err));
    prepare_update(exec, inputs, result);
    weft_exec_take_groups(exec, result);
    return WEFT_OK;
}

/* No record is summed after the last updates, so ranks compare their looks here. */
static enum weft_status fail_settling(struct weft_exec *exec, struct weft_error *err)
{
    struct weft_culprit culprit;
    struct weft_text who;
    WEFT_TRY(weft_exec_compare_looks(exec, &culprit, err));
    weft_text_init(&who);
    weft_exec_describe_culprit(exec, &culprit, &who);
    enum weft_status status =
        weft_fail(err, WEFT_E_NUMERIC,
                  "step %lld: gradients are not finite, or too large to be added up, first on %s. "
                  "%s. Lower train.optimizer.lr, or set train.clip_norm",
                  (long long)exec->last_step, weft_text_chars(&who), weft_exec_bad_outcome(exec));
    weft_text_finish(&who);
    return status;
}

/* Work that ends a rotated period's step, and MARKs, which poison dead buffers. */
static bool works_without_forward(const struct weft_exec *exec, const struct exec_bound *bound)
{
    return exec->pending.valid && (bound->carried || bound->op == WEFT_OP_MARK);
}

/* Whether an instruction is part of an update, or a MARK that opens buffers for one. Agreed updates
 * need the MARKs of their own slots. Offloaded state needs all MARKs, since it moves in any
 * slot. */
static bool is_of_update(const struct weft_exec *exec, const struct exec_bound *bound)
{
    const struct weft_problem *problem = exec->options.plan->problem;
    if (bound->op != WEFT_OP_MARK) return bound->updates;
    return exec->offloaded != NULL || exec->host != NULL ||
           (problem->period.agreed_updates && problem->slots[bound->slot].kind == WEFT_SLOT_UPDATE);
}

enum weft_status weft_exec_settle(struct weft_exec *exec, struct weft_error *err)
{
    bool rotated = exec->options.program->period.rotated;
    exec->carried_rows = exec->rows;
    weft_exec_turn(exec);
    exec->updated = exec->last_step;
    weft_exec_push_step(exec);
    weft_exec_push_hashes(exec, exec->updated);
    for (int32_t i = 0; i < exec->options.program->n_instructions; i++) {
        const struct exec_bound *bound = &exec->bound[i];
        /* Idle instructions are issued too: an update may wait for its state through them. */
        const bool works =
            is_of_update(exec, bound) || (rotated && works_without_forward(exec, bound));
        weft_exec_issue(exec, i, works);
    }
    exec->renews = false;
    exec->pending.valid = false;
    WEFT_TRY(weft_exec_synchronise(exec, err));
    WEFT_TRY(weft_exec_poison_check(exec, err));
    weft_exec_push_own(exec); /* after all collectives */
    WEFT_TRY(weft_exec_synchronise(exec, err));
    bool bad = weft_exec_is_bad(exec, exec->mailbox.stop);
    WEFT_TRY(weft_exec_share_bad(exec, &bad, err));
    return bad ? fail_settling(exec, err) : WEFT_OK;
}

int64_t weft_exec_ring_bytes(const struct weft_exec *exec)
{
    return weft_exec_offloaded_ring_bytes(exec->offloaded);
}

int64_t weft_exec_tier_bytes(const struct weft_exec *exec, enum weft_location location)
{
    const struct weft_program *program = exec->options.program;
    const bool ring_on_device = program->staging_bytes > program->comm_bytes;
    switch (location) {
    case WEFT_LOCATION_DEVICE:
        return ring_on_device ? weft_exec_ring_bytes(exec) : 0;
    case WEFT_LOCATION_HOST:
        return weft_exec_host_resident_bytes(exec->host) +
               (ring_on_device ? 0 : weft_exec_ring_bytes(exec));
    case WEFT_LOCATION_DISK:
        return weft_exec_offloaded_file_bytes(exec->offloaded);
    case WEFT_LOCATION_COUNT:
        break;
    }
    return 0;
}

enum weft_status weft_exec_touched_bytes(struct weft_exec *exec, int64_t *bytes,
                                         struct weft_error *err)
{
    const struct weft_paging *paging = exec->places.paging;
    *bytes = paging->n_pages * paging->page_bytes;
    if (exec->deaths[0] == NULL) return WEFT_OK;
    weft_exec_poison_begin(exec);
    weft_arena_touched(exec->arena, exec->streams[WEFT_LANE_COMPUTE], &exec->residents, bytes);
    return weft_exec_synchronise(exec, err);
}
