/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_model/moves.h"
#include "program/inputs.h"
#include "runtime/exec/average.h"
#include "runtime/exec/host_update.h"
#include "runtime/exec/looks.h"
#include "runtime/exec/parts.h"
#include "runtime/exec/units.h"

/* The instruction to bind, and the parity of its period. */
struct binding {
    struct weft_exec *exec;
    const struct weft_instruction *at;
    int parity;
};

/* A buffer of an instruction, and its offset in the arena. */
struct touched {
    int32_t buffer; /* -1: none */
    int64_t offset;
};

/* Finds the instruction's operand of this kind and index. Only declared operands are bound, so a
 * kernel cannot use memory that the plan did not count. */
static struct touched find_touched(const struct binding *binding, enum weft_buffer_kind kind,
                                   int32_t index)
{
    const struct weft_exec *exec = binding->exec;
    const struct weft_program *program = exec->options.program;
    for (int32_t i = 0; i < binding->at->n_operands; i++) {
        const int32_t operand = binding->at->first_operand + i;
        const int32_t b = program->operands[operand].buffer;
        if (program->buffers[b].kind != kind || program->buffers[b].index != index) continue;
        const int table = weft_exec_table_of(&exec->places, operand, binding->parity);
        return (struct touched){b, exec->places.offsets[table][b]};
    }
    return (struct touched){.buffer = -1};
}

static void *buffer_address(const struct binding *binding, enum weft_buffer_kind kind,
                            int32_t index)
{
    const struct touched touched = find_touched(binding, kind, index);
    return touched.buffer < 0 ? NULL : binding->exec->base + touched.offset;
}

/* Gives the call the layer's temporaries, after the scratch that the plan has at their start. */
static enum weft_status bind_temporary(const struct binding *binding, bool backward,
                                       struct weft_nn_call *call, struct weft_error *err)
{
    const struct touched touched = find_touched(
        binding, backward ? WEFT_BUFFER_BACKWARD_TEMPORARY : WEFT_BUFFER_FORWARD_TEMPORARY,
        binding->at->layer);
    struct weft_layer_work work;
    if (touched.buffer < 0) return WEFT_OK;
    WEFT_TRY(weft_layer_work(call->layer, &call->batch, &work, err));
    work = weft_layer_work_at(&work, call->recompute);
    call->scratch = binding->exec->base + touched.offset;
    call->scratch_bytes = binding->exec->options.program->buffers[touched.buffer].used_bytes -
                          (backward ? work.backward_temporary_bytes : work.forward_temporary_bytes);
    call->temporary = (char *)call->scratch + call->scratch_bytes;
    return WEFT_OK;
}

/* Prepares the layer's calls, which are all alike. */
static enum weft_status prepare_call(struct weft_exec *exec, int32_t layer,
                                     struct weft_nn_call *call, struct weft_error *err)
{
    if (exec->prepared[layer] == NULL)
        WEFT_TRY(weft_nn_prepare(exec->options.nn, call, &exec->pool, &exec->prepared[layer], err));
    call->prepared = exec->prepared[layer];
    return WEFT_OK;
}

/* Address of a tensor in its unit's buffer of that kind; NULL if this is no operand. */
static void *tensor_address(const struct binding *binding, enum weft_buffer_kind kind,
                            int32_t tensor)
{
    const struct weft_exec *exec = binding->exec;
    const struct weft_shards *shards = exec->options.shards;
    unsigned char *unit = buffer_address(binding, kind, shards->tensor_unit[tensor]);
    enum weft_dtype dtype = kind == WEFT_BUFFER_FULL ? exec_compute(exec) : exec_reduce(exec);
    return unit == NULL ? NULL : unit + shards->tensor_offset[tensor] * weft_dtype_bytes(dtype);
}

/* Address of a layer's output; in backward, of an offloaded one that is back. */
static void *output_address(const struct binding *binding, int32_t layer, bool backward)
{
    const bool moves = weft_program_moves_output(binding->exec->options.program, layer);
    return buffer_address(
        binding, backward && moves ? WEFT_BUFFER_RESTORED_OUTPUT : WEFT_BUFFER_OUTPUT, layer);
}

static int64_t loss_rows(const struct weft_config *config)
{
    struct weft_batch batch = weft_config_batch(config);
    return weft_model_targets(config->model, &batch);
}

/* Whether a later layer of the model has the tensor. Its backward comes first. */
static bool is_in_later_layer(const struct weft_model *model, int32_t layer, int32_t tensor)
{
    for (int32_t l = layer + 1; l < model->n_layers; l++)
        for (int32_t i = 0; i < model->layers[l].n_tensors; i++)
            if (model->layers[l].tensors[i] == tensor) return true;
    return false;
}

/* Whether a backward adds to a gradient. `written` has the last micro-step, counted from 1, that
 * wrote each tensor's gradient. A second layer of the same micro-step adds to it. If micro-steps
 * take turns by layers, the last layer with the tensor writes it first. The micro-steps of a round
 * share gradients, and all but the first add, in any order of the program. */
static bool adds_gradient(const struct binding *binding, const int32_t *written, int32_t tensor)
{
    const struct weft_exec *exec = binding->exec;
    const struct weft_period_rule *period = &exec->options.program->period;
    const struct weft_instruction *at = binding->at;
    if (at->micro % period->group != 0) return true;
    if (period->layers > 0)
        return is_in_later_layer(exec->options.config->model, at->layer, tensor);
    return written[tensor] == at->micro + 1;
}

static enum weft_status bind_layer(const struct binding *binding, int32_t *written,
                                   struct exec_bound *bound, struct weft_error *err)
{
    struct weft_exec *exec = binding->exec;
    const struct weft_instruction *at = binding->at;
    const struct weft_model *model = exec->options.config->model;
    const struct weft_layer *layer = &model->layers[at->layer];
    bool last = at->layer + 1 == model->n_layers;
    struct weft_nn_call *call = weft_pool_array(&exec->pool, 1, sizeof *call);
    if (call == NULL) return weft_fail_memory(err, "a layer's call");
    call->layer = layer;
    call->batch = weft_config_batch(exec->options.config);
    call->gradient_dtype = exec_reduce(exec);
    call->loss_scale = 1;
    call->scale =
        at->carried ? EXEC_OWN(exec, step.carried_scale) : EXEC_OWN(exec, step.loss_scale);
    call->loss = last ? EXEC_OWN(exec, loss) : NULL;
    call->adds_loss = at->micro % exec->options.program->period.group != 0;
    const bool backward = at->op == WEFT_OP_BACKWARD;
    call->input = at->layer == 0 ? buffer_address(binding, WEFT_BUFFER_INPUT, -1)
                                 : output_address(binding, at->layer - 1, backward);
    call->targets = buffer_address(binding, WEFT_BUFFER_TARGETS, -1);
    /* The first layer reads its input, the tokens, in any case. */
    if (at->layer == 0 || exec->options.program->reads[at->layer].padding)
        call->tokens = buffer_address(binding, WEFT_BUFFER_INPUT, -1);
    call->output = output_address(binding, at->layer, backward);
    bool restored = backward && weft_program_saves_offloaded(exec->options.program, at->layer);
    call->saved =
        buffer_address(binding, restored ? WEFT_BUFFER_RESTORED : WEFT_BUFFER_SAVED, at->layer);
    call->recompute = weft_program_recompute(exec->options.program, at->layer);
    WEFT_TRY(prepare_call(exec, at->layer, call, err));
    WEFT_TRY(bind_temporary(binding, backward, call, err));
    for (int32_t i = 0; i < layer->n_tensors; i++)
        call->tensors[i] = tensor_address(binding, WEFT_BUFFER_FULL, layer->tensors[i]);
    if (backward) {
        call->output_gradient = buffer_address(binding, WEFT_BUFFER_OUTPUT_GRADIENT, at->layer);
        call->input_gradient = buffer_address(binding, WEFT_BUFFER_OUTPUT_GRADIENT, at->layer - 1);
        for (int32_t i = 0; i < layer->n_tensors; i++) {
            int32_t tensor = layer->tensors[i];
            if (!model->tensors[tensor].trainable) continue;
            call->gradients[i] = tensor_address(binding, WEFT_BUFFER_GRADIENT, tensor);
            call->accumulate[i] = adds_gradient(binding, written, tensor);
            written[tensor] = at->micro + 1;
        }
    }
    bound->with.layer.call = call;
    if (last && !backward && !call->adds_loss)
        bound->with.layer.begun = at->micro / exec->options.program->period.group;
    bound->with.layer.look = weft_exec_bind_look(exec, call, backward);
    return bound->with.layer.look == NULL ? weft_fail_memory(err, "a look") : WEFT_OK;
}

static bool reads_buffer(const struct weft_program *program, const struct weft_instruction *at,
                         int32_t buffer)
{
    for (int32_t i = 0; i < at->n_operands; i++) {
        const struct weft_operand *operand = &program->operands[at->first_operand + i];
        if (operand->buffer == buffer && !operand->writes) return true;
    }
    return false;
}

/* The buffers of a collective: blocks of `full` are cut into slices of `slice`. */
struct moved {
    struct touched full, slice;
    bool sliced; /* false: in place */
    enum weft_dtype dtype, slice_dtype;
    int64_t ranks; /* of the group */
};

static struct moved moved_of(const struct binding *binding, const struct weft_unit_move *move)
{
    const struct weft_exec *exec = binding->exec;
    const struct weft_instruction *at = binding->at;
    const struct exec_unit *unit = &exec->units[at->unit];
    const bool gathers = weft_item_kind_collective((int32_t)at->op) == WEFT_ALL_GATHER;
    const enum weft_buffer_kind slice = gathers ? move->from : move->to;
    const enum weft_rank_group group =
        move->group == WEFT_GROUP_OWNER ? WEFT_GROUP_ALL : move->group;
    struct moved moved = {
        .full = find_touched(binding, gathers ? move->to : move->from, at->unit),
        .slice = find_touched(binding, slice, at->unit),
        .sliced = move->from != move->to,
        .dtype = gathers ? exec_compute(exec) : exec_reduce(exec),
        .ranks = weft_shards_members(exec->options.shards, group),
    };
    moved.slice_dtype = moved.dtype;
    if (!gathers && moved.sliced)
        moved.slice_dtype = slice == WEFT_BUFFER_PARTIAL ? WEFT_F32 : unit->nn.gradient_dtype;
    return moved;
}

/* Whether the instruction belongs to the last of several rounds, in which some ranks are idle. */
static bool is_of_last_round(const struct weft_program *program, const struct weft_instruction *at)
{
    const struct weft_period_rule *period = &program->period;
    return period->idle > 0 && at->micro >= period->n_micro - period->group;
}

/* Idle ranks in the group of a reduction: of all ranks, of this node, or whole nodes. */
static int32_t idle_of(const struct binding *binding, const struct moved *moved)
{
    const struct weft_exec *exec = binding->exec;
    const struct weft_program *program = exec->options.program;
    const int32_t idle = is_of_last_round(program, binding->at) ? program->period.idle : 0;
    const int32_t per_node = (int32_t)exec->options.shards->ranks_per_node;
    if (moved->ranks == exec->ranks) return idle;
    if (weft_exec_group_of(program, binding->at) == WEFT_GROUP_ACROSS) return idle / per_node;
    const int32_t later = exec->ranks - (exec->rank / per_node + 1) * per_node;
    const int32_t here = idle - later;
    return here < 0 ? 0 : here < per_node ? here : per_node;
}

static enum weft_status bind_collective(const struct binding *binding,
                                        struct weft_comm_block *block, struct weft_error *err)
{
    const struct weft_exec *exec = binding->exec;
    const struct weft_instruction *at = binding->at;
    const struct weft_unit *unit = &exec->options.shards->units[at->unit];
    const struct weft_moves moves = weft_moves_of(exec->options.program->ways[at->unit], false);
    const struct weft_unit_move *move = weft_moves_find(&moves, (int32_t)at->op);
    const struct moved moved = moved_of(binding, move);
    const enum weft_collective collective = weft_item_kind_collective((int32_t)at->op);
    const bool across = move->from == WEFT_BUFFER_PARTIAL;
    const bool reduces = across || at->op == WEFT_OP_REDUCE_SCATTER;
    if (moved.full.buffer < 0 || (moved.sliced && moved.slice.buffer < 0)) {
        return weft_fail(err, WEFT_E_INTERNAL, "%s of unit %s, block %d, has no buffer to move",
                         weft_op_name(at->op), unit->name, at->block);
    }
    /* Elements of the block: of all ranks' slices, or the node's slice of them. */
    const int64_t all = unit->slice_elements * exec->ranks;
    const bool of_node = move->group == WEFT_GROUP_ACROSS;
    const int64_t full = of_node ? all / exec->options.shards->ranks_per_node : all;
    const int64_t slice = collective == WEFT_ALL_REDUCE ? full : full / moved.ranks;
    const enum weft_dtype dtype = across ? WEFT_F32 : moved.dtype;
    *block = (struct weft_comm_block){
        .full_offset = moved.full.offset + at->block * full * weft_dtype_bytes(dtype),
        .slice_offset = moved.sliced ? moved.slice.offset +
                                           at->block * slice * weft_dtype_bytes(moved.slice_dtype)
                                     : -1,
        .slice_elements = full / moved.ranks,
        .dtype = moved.dtype,
        .slice_dtype = moved.slice_dtype,
        .ns = at->ns,
        .adds = reduces && reads_buffer(exec->options.program, at, moved.slice.buffer),
        .partial = move->to == WEFT_BUFFER_PARTIAL,
        .of_partials = across,
        .idle = collective != WEFT_ALL_GATHER ? idle_of(binding, &moved) : 0,
        .owned = move->group == WEFT_GROUP_OWNER,
        .owner = exec->units[at->unit].owner,
    };
    return WEFT_OK;
}

/* Binds the sum of the step's record, or of the norms of a unit's tensors. */
static enum weft_status bind_agreement(const struct binding *binding,
                                       struct exec_agreement *agreement, struct weft_error *err)
{
    const struct weft_exec *exec = binding->exec;
    const int32_t unit = binding->at->unit;
    bool of_unit = unit >= 0;
    const struct touched from =
        find_touched(binding, of_unit ? WEFT_BUFFER_TENSOR_NORMS : WEFT_BUFFER_RECORD, unit);
    const struct touched to = find_touched(
        binding, of_unit ? WEFT_BUFFER_TENSOR_NORMS_SUM : WEFT_BUFFER_RECORD_SUM, unit);
    if (from.buffer < 0 || to.buffer < 0)
        return weft_fail(err, WEFT_E_INTERNAL, "an agreement has no buffer to sum");
    *agreement = (struct exec_agreement){
        .from_offset = from.offset,
        .to_offset = to.offset,
        .words = of_unit ? exec->units[unit].norms_bytes.end / (int64_t)sizeof(uint64_t)
                         : EXEC_SENT_WORDS + weft_exec_means_words(exec),
    };
    return WEFT_OK;
}

/* Collects events of other streams. A stream's own instructions run in order. */
static enum weft_status bind_waits(struct weft_exec *exec, int32_t i, struct exec_bound *bound,
                                   struct weft_error *err)
{
    const struct weft_program *program = exec->options.program;
    const struct weft_instruction *at = &program->instructions[i];
    bound->waits = weft_pool_array(&exec->pool, (size_t)at->n_dependencies, sizeof *bound->waits);
    if (bound->waits == NULL) return weft_fail_memory(err, "an instruction's events");
    for (int32_t d = 0; d < at->n_dependencies; d++) {
        struct weft_event *event = exec->events[program->dependencies[at->first_dependency + d]];
        int32_t before = program->dependencies[at->first_dependency + d];
        if (program->instructions[before].lane == at->lane) continue;
        bound->waits[bound->n_waits++] = event;
    }
    return WEFT_OK;
}

/* Copies a unit and sets the addresses that this instruction has for its buffers. */
static void bind_unit(const struct binding *binding, int32_t u, struct exec_unit *out)
{
    const struct exec_unit *unit = &binding->exec->units[u];
    *out = *unit;
    out->nn.gradient =
        buffer_address(binding, unit->whole ? WEFT_BUFFER_GRADIENT : WEFT_BUFFER_REDUCED, u);
    if (unit->fetches) out->nn.parameters = buffer_address(binding, WEFT_BUFFER_SHARD, u);
    out->nn.master = buffer_address(binding, WEFT_BUFFER_MASTER, u);
    out->nn.moment1 = buffer_address(binding, WEFT_BUFFER_MOMENT1, u);
    out->nn.moment2 = buffer_address(binding, WEFT_BUFFER_MOMENT2, u);
    out->nn.norms = buffer_address(binding, WEFT_BUFFER_TENSOR_NORMS, u);
    out->nn.divisors = binding->exec->means == NULL ? NULL : binding->exec->divisors;
    out->nn.norms_sum = buffer_address(binding, WEFT_BUFFER_TENSOR_NORMS_SUM, u);
}

/* Binds units [first, first + n). */
static enum weft_status bind_units(const struct binding *binding, int32_t first, int32_t n,
                                   struct exec_bound *bound, struct weft_error *err)
{
    struct exec_unit *units = weft_pool_array(&binding->exec->pool, (size_t)n, sizeof *units);
    if (units == NULL) return weft_fail_memory(err, "an instruction's units");
    for (int32_t u = 0; u < n; u++)
        bind_unit(binding, first + u, &units[u]);
    bound->with.unit.unit = units;
    return WEFT_OK;
}

/* A block of a buffer that the instruction moves: its first byte, and its bytes. */
static void cut_block(const struct binding *binding, int32_t buffer, int64_t *from, int64_t *bytes)
{
    const struct weft_buffer *of = &binding->exec->options.program->buffers[buffer];
    const int64_t piece = of->bytes / of->n_pieces;
    *from = of->n_pieces > 1 ? binding->at->block * piece : 0;
    *bytes = of->used_bytes - *from < piece ? of->used_bytes - *from : piece;
}

/* All states of a unit have buffers of one size. */
static enum weft_status bind_copy(const struct binding *binding, struct exec_bound *bound,
                                  struct weft_error *err)
{
    static const enum weft_buffer_kind kinds[] = {WEFT_BUFFER_MASTER, WEFT_BUFFER_MOMENT1};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const struct touched state = find_touched(binding, kinds[k], binding->at->unit);
        if (state.buffer < 0) continue;
        cut_block(binding, state.buffer, &bound->with.unit.from, &bound->with.unit.bytes);
        break;
    }
    return bind_units(binding, binding->at->unit, 1, bound, err);
}

static struct exec_saved saved_of(const struct binding *binding)
{
    const struct weft_instruction *at = binding->at;
    const struct weft_program *program = binding->exec->options.program;
    const struct weft_layer_copy copy = weft_layer_copy_of((int32_t)at->op, at->layer);
    const int64_t *places =
        weft_item_kind_is_of_input((int32_t)at->op) ? program->inputs_at : program->saved_at;
    const struct touched touched = find_touched(binding, copy.buffer, copy.layer);
    struct exec_saved saved = {0};
    int64_t from;
    cut_block(binding, touched.buffer, &from, &saved.bytes);
    saved.at = binding->exec->base + touched.offset + from;
    const int64_t whole = program->buffers[touched.buffer].used_bytes;
    saved.on_host = places[at->layer] + weft_program_place(program, at->micro, whole) + from;
    return saved;
}

static struct exec_slice slice_of(const struct binding *binding)
{
    const struct touched shard = find_touched(binding, WEFT_BUFFER_SHARD, binding->at->unit);
    struct exec_slice slice = {.unit = binding->at->unit};
    cut_block(binding, shard.buffer, &slice.from, &slice.bytes);
    slice.at = binding->exec->base + shard.offset + slice.from;
    return slice;
}

static enum weft_status bind_host_update(const struct binding *binding,
                                         const struct exec_host_update **out,
                                         struct weft_error *err)
{
    const struct weft_instruction *at = binding->at;
    const struct exec_unit *unit = &binding->exec->units[at->unit];
    enum weft_buffer_kind kind = unit->resident ? WEFT_BUFFER_FULL : WEFT_BUFFER_SHARD;
    if (at->op == WEFT_OP_GRADIENT_DOWN) kind = WEFT_BUFFER_REDUCED;
    struct exec_host_update *update;
    WEFT_TRY(weft_exec_bind_host_update(binding->exec, unit, at->block,
                                        buffer_address(binding, kind, at->unit), &update, err));
    *out = update;
    return WEFT_OK;
}

static enum weft_status bind_work(const struct binding *binding, int32_t *written,
                                  struct exec_bound *bound, struct weft_error *err)
{
    const struct weft_instruction *at = binding->at;
    struct weft_exec *exec = binding->exec;
    switch (at->op) {
    case WEFT_OP_FORWARD:
    case WEFT_OP_BACKWARD:
        return bind_layer(binding, written, bound, err);
    case WEFT_OP_AGREE:
        return bind_agreement(binding, &bound->with.agreement, err);
    case WEFT_OP_MOMENTS:
    case WEFT_OP_UPDATE:
    case WEFT_OP_READ:
    case WEFT_OP_WRITE:
        return bind_units(binding, at->unit, 1, bound, err);
    case WEFT_OP_COPY_UP:
    case WEFT_OP_COPY_DOWN:
        return bind_copy(binding, bound, err);
    case WEFT_OP_GRADIENT_DOWN:
    case WEFT_OP_HOST_UPDATE:
    case WEFT_OP_PARAMETERS_UP:
        return bind_host_update(binding, &bound->with.update, err);
    case WEFT_OP_ZERO:
        bound->with.unit.unit = &binding->exec->units[at->unit];
        bound->with.unit.gradient = buffer_address(binding, WEFT_BUFFER_GRADIENT, at->unit);
        return WEFT_OK;
    case WEFT_OP_NORM:
        return bind_units(binding, 0, binding->exec->options.program->n_units, bound, err);
    case WEFT_OP_LOAD:
        bound->with.batch =
            (struct exec_batch){.input = buffer_address(binding, WEFT_BUFFER_INPUT, -1),
                                .targets = buffer_address(binding, WEFT_BUFFER_TARGETS, -1),
                                .micro = at->micro};
        return WEFT_OK;
    case WEFT_OP_ALL_GATHER:
    case WEFT_OP_REDUCE_SCATTER:
    case WEFT_OP_ALL_REDUCE:
    case WEFT_OP_ACROSS_REDUCE:
    case WEFT_OP_ACROSS_SCATTER:
    case WEFT_OP_ACROSS_GATHER:
        return bind_collective(binding, &bound->with.block, err);
    case WEFT_OP_AVERAGE:
    case WEFT_OP_AVERAGE_GATHER:
        return weft_exec_bind_average(exec, at, &bound->with.averaged, err);
    case WEFT_OP_SAVED_DOWN:
    case WEFT_OP_SAVED_UP:
    case WEFT_OP_INPUT_DOWN:
    case WEFT_OP_INPUT_UP:
        bound->with.saved = saved_of(binding);
        return WEFT_OK;
    case WEFT_OP_PARAMETERS_DOWN:
    case WEFT_OP_PARAMETERS_FETCH:
        bound->with.slice = slice_of(binding);
        return WEFT_OK;
    case WEFT_OP_MARK:
    case WEFT_OP_FINISH:
    case WEFT_OP_COUNT:
        break;
    }
    return WEFT_OK;
}

static bool begins_record(const struct weft_program *program, const struct weft_instruction *at)
{
    for (int32_t i = 0; i < at->n_operands; i++)
        if (program->buffers[program->operands[at->first_operand + i].buffer].kind ==
            WEFT_BUFFER_RECORD)
            return weft_operand_makes(program, at, i);
    return false;
}

/* Whether this rank has nothing to do there: work on a micro-step of the last round, without a
 * group. It still joins all collectives. */
static bool is_idle(const struct weft_exec *exec, const struct weft_instruction *at)
{
    const struct weft_program *program = exec->options.program;
    if (exec->rank < exec->ranks - program->period.idle) return false;
    switch (at->op) {
    case WEFT_OP_LOAD:
    case WEFT_OP_ZERO:
    case WEFT_OP_FORWARD:
    case WEFT_OP_BACKWARD:
    case WEFT_OP_SAVED_DOWN:
    case WEFT_OP_SAVED_UP:
    case WEFT_OP_INPUT_DOWN:
    case WEFT_OP_INPUT_UP:
        return is_of_last_round(program, at);
    default:
        return false;
    }
}

/* Whether an instruction brings a unit's updated shard to the host. */
static bool moves_to_host(const struct weft_program *program, const struct weft_instruction *at)
{
    return at->op == WEFT_OP_PARAMETERS_DOWN ||
           (at->op == WEFT_OP_ACROSS_GATHER && weft_program_fetches(program, at->unit));
}

static enum weft_status bind_instruction(struct weft_exec *exec, int32_t i, int parity,
                                         int32_t *written, struct weft_error *err)
{
    const struct weft_instruction *at = &exec->options.program->instructions[i];
    struct exec_bound *bound = &exec->tables[parity][i];
    bound->op = at->op;
    bound->at = at;
    bound->slot = at->slot;
    bound->ns = at->ns;
    bound->stream = exec->streams[at->lane];
    const enum weft_rank_group group = weft_exec_group_of(exec->options.program, at);
    bound->comm = group == WEFT_GROUP_NONE ? NULL : exec->lanes.comms[at->lane][group];
    const struct weft_item_kind *item = weft_op_item(at->op);
    bound->done = exec->events[i];
    bound->carried = at->carried;
    bound->idle = is_idle(exec, at);
    bound->begins_record = begins_record(exec->options.program, at);
    /* A shard on the host is updated there only when all its parts have come. */
    const bool to_host = moves_to_host(exec->options.program, at);
    bound->renews = to_host;
    bound->needs_step = to_host || (item != NULL && item->needs_step);
    bound->updates = at->op == WEFT_OP_MOMENTS || at->op == WEFT_OP_UPDATE || to_host ||
                     (item != NULL && item->of_update) ||
                     (at->op == WEFT_OP_AGREE && at->unit >= 0);
    WEFT_TRY(bind_waits(exec, i, bound, err));
    const struct binding binding = {exec, at, parity};
    return bind_work(&binding, written, bound, err);
}

/* Finds the buffers that belong to no unit or layer. */
static enum weft_status bind_singles(struct weft_exec *exec, struct weft_error *err)
{
    const struct weft_program *program = exec->options.program;
    const struct weft_config *config = exec->options.config;
    struct weft_batch batch = weft_config_batch(config);
    int32_t input = weft_program_buffer(program, WEFT_BUFFER_INPUT, -1, 0);
    int32_t targets = weft_program_buffer(program, WEFT_BUFFER_TARGETS, -1, 0);
    int32_t record = weft_program_buffer(program, WEFT_BUFFER_RECORD, -1, 0);
    int32_t sum = weft_program_buffer(program, WEFT_BUFFER_RECORD_SUM, -1, 0);
    if (input < 0 || targets < 0 || record < 0 || sum < 0) {
        return weft_fail(err, WEFT_E_INTERNAL,
                         "the program lacks a buffer for the batch or for the record of the step");
    }
    exec->input_bytes = weft_model_input_bytes(config->model, &batch);
    exec->target_bytes = weft_model_target_bytes(config->model, &batch);
    exec->record = exec->base + exec->places.offsets[0][record];
    exec->record_sum = exec->base + exec->places.offsets[0][sum];
    exec->own =
        exec->record + (EXEC_SENT_WORDS + weft_exec_means_words(exec)) * (int64_t)sizeof(uint64_t);
    exec->divisors = exec->own + EXEC_OWN_WORDS * sizeof(uint64_t);
    exec->all_rows = loss_rows(config) * (exec->ranks * program->period.n_micro -
                                          program->period.idle * program->period.group);
    exec->rows = exec->carried_rows = exec->all_rows;
    return WEFT_OK;
}

static enum weft_status bind_table(struct weft_exec *exec, int parity, struct weft_error *err)
{
    const struct weft_program *program = exec->options.program;
    size_t n_tensors = (size_t)exec->options.config->model->n_tensors;
    int32_t *written = weft_pool_array(&exec->pool, n_tensors, sizeof *written);
    exec->tables[parity] =
        weft_pool_array(&exec->pool, (size_t)program->n_instructions, sizeof *exec->bound);
    if (written == NULL || exec->tables[parity] == NULL)
        return weft_fail_memory(err, "bound instructions");
    for (int32_t i = 0; i < program->n_instructions; i++)
        WEFT_TRY(bind_instruction(exec, i, parity, written, err));
    return weft_exec_bind_groups(exec, parity, err);
}

enum weft_status weft_exec_bind(struct weft_exec *exec, struct weft_error *err)
{
    const size_t n_layers = (size_t)exec->options.config->model->n_layers;
    WEFT_TRY(bind_singles(exec, err));
    exec->prepared = weft_pool_array(&exec->pool, n_layers, sizeof *exec->prepared);
    if (exec->prepared == NULL) return weft_fail_memory(err, "prepared layers");
    for (int parity = 0; parity < exec->places.n_tables; parity++)
        WEFT_TRY(bind_table(exec, parity, err));
    if (exec->places.n_tables == 1) exec->tables[1] = exec->tables[0];
    exec->bound = exec->tables[0];
    return WEFT_OK;
}
