/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/train.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "base/units.h"
#include "runtime/comm/outcome.h"
#include "runtime/exec/exec.h"
#include "runtime/measure/measure.h"
#include "runtime/train/data.h"
#include "runtime/train/dump/dump.h"
#include "runtime/train/evaluation.h"
#include "runtime/train/generate.h"
#include "runtime/train/identity.h"
#include "runtime/train/pace.h"
#include "runtime/train/reader.h"
#include "runtime/train/saving.h"
#include "runtime/train/schedule.h"
#include "spec/config_batch.h"
#include "spec/profile/flops.h"
#include "spec/target.h"

enum { WARM_STEPS = 2, LEAST_STEPS = 5 };

/* Times of the latest steps, for medians. */
struct times {
    int64_t step_ns[WEFT_TRAIN_MEDIAN_STEPS];
    int64_t exposed_ns[WEFT_TRAIN_MEDIAN_STEPS];
    int64_t overlapped_ns[WEFT_TRAIN_MEDIAN_STEPS];
};

struct run {
    const struct weft_train_options *options;
    const struct weft_train *train;
    int32_t rank, ranks;
    struct weft_data *data;
    struct weft_reader *reader;
    struct weft_evaluation *evaluation; /* NULL: no data are held out */
    struct weft_saving *saving;
    struct weft_pace pace;
    struct weft_error *unread; /* data of the next step, or held out, that this rank cannot read */
    struct weft_arena *arena;
    struct weft_exec *exec;
    struct weft_dump *dump; /* NULL: writes no tensors */
    struct weft_trace *trace;
    struct times *times;
    double step_flops, peak_flops; /* of all ranks; the peak is 0 if the cluster gives none */
    int64_t waited_ns;             /* for data, after the first steps */
    int64_t steps;                 /* of this call, without steps before a resume */
    struct weft_run_memory memory;
    struct weft_run_facts facts;
    struct weft_train_options saving_options; /* as options, but add_facts gets its lines */
    struct weft_train_result result;
};

static enum weft_status refuse_config(const struct weft_config *config, struct weft_error *err)
{
    const struct weft_train *train = &config->train;
    WEFT_TRY(weft_model_trains(config->model, train->seq_len, config->cluster.device.type, err));
    if (weft_config_target(config)->is_foreign)
        return weft_fail(err, WEFT_E_DATA,
                         "%s: $.plan.for is \"%s\": Weft does not train plans for %s; leave it out "
                         "to train with Weft",
                         config->source, weft_config_target(config)->name,
                         weft_config_target(config)->title);
    if (config->cluster.channels > 1 && config->cluster.device.type == WEFT_DEVICE_CUDA) {
        return weft_fail(err, WEFT_E_DATA,
                         "%s: $.cluster.channels is %lld: GPUs move one collective at a time; "
                         "plans and simulations for more are fine, to train set it to 1",
                         config->source, (long long)config->cluster.channels);
    }
    if (config->cluster.device.type == WEFT_DEVICE_CUDA && weft_config_uses_disk(config) &&
        !config->cluster.host.given) {
        return weft_fail(err, WEFT_E_DATA,
                         "%s: $.cluster.device.type is \"cuda\", and state on its way to a disk "
                         "passes through the host's memory, which the plan must count: give "
                         "cluster.host, or leave cluster.disk out",
                         config->source);
    }
    WEFT_TRY(weft_precision_check(config, err));
    if (train->data == NULL) {
        return weft_fail(err, WEFT_E_NO_INPUT,
                         "train.data is not set: give it the path of a text to train on");
    }
    return WEFT_OK;
}

static enum weft_status check_data(const struct weft_config *config, struct weft_data **training,
                                   struct weft_data **held_out, struct weft_error *err)
{
    WEFT_TRY(weft_data_open(config, WEFT_DATA_TRAINING, training, err));
    WEFT_TRY(weft_data_check(*training, err));
    if (!weft_data_has_held_out(config)) return WEFT_OK;
    WEFT_TRY(weft_data_open(config, WEFT_DATA_HELD_OUT, held_out, err));
    WEFT_TRY(weft_data_check(*held_out, err));
    return weft_data_apart(*training, *held_out, err);
}

/* Older configs count validation in batches of all ranks, so the samples change with the ranks. */
static void warn_of_batches(const struct weft_config *config)
{
    const struct weft_train *train = &config->train;
    if (!train->validation.by_batches || !weft_data_has_held_out(config)) return;
    weft_log(WEFT_LOG_WARNING,
             "%s: $.train.validation.batches counts micro-batches of all ranks, so that other "
             "ranks or another micro_batch would be validated on other held-out samples: give "
             "\"samples\": %" PRId64 " instead, which is as many",
             config->source, train->validation.samples);
}

/* Without an average at the end, nodes end with parameters of their own. */
static void warn_of_rest(const struct weft_config *config)
{
    const struct weft_train *train = &config->train;
    if (train->every == 0) return;
    if (train->fragments > 1) {
        weft_log(WEFT_LOG_WARNING,
                 "%s: $.train.across.fragments is %" PRId64 ", so nodes end with parameters that "
                 "were averaged up to %" PRId64 " steps before, and model.safetensors has those of "
                 "the first; go on from it with fragments 1 for an average of all",
                 config->source, train->fragments, train->every - 1);
        return;
    }
    if (train->steps % train->every == 0) return;
    weft_log(WEFT_LOG_WARNING,
             "%s: $.train.across.every is %" PRId64 ", and the last %" PRId64 " of %" PRId64
             " steps come after the last average: nodes end with different parameters, and "
             "model.safetensors has those of the first; let it divide train.steps",
             config->source, train->every, train->steps % train->every, train->steps);
}

/* Attention without a mask sees the next token. */
static void warn_of_seen_targets(const struct weft_config *config)
{
    const struct weft_model *model = config->model;
    if (config->train.masked.given || !weft_model_reads_tokens(model) ||
        weft_model_tells_classes(model))
        return;
    const struct weft_layer *layer = weft_generate_sees_later(model);
    if (layer != NULL)
        weft_log(WEFT_LOG_WARNING,
                 "layer %s: its attention sees the next token, which is the target, so the loss "
                 "falls without learning: set train.masked",
                 layer->name);
}

enum weft_status weft_train_check(const struct weft_config *config, struct weft_error *err)
{
    struct weft_data *training = NULL, *held_out = NULL;
    WEFT_TRY(refuse_config(config, err));
    weft_train_warn_of_lr(&config->train);
    warn_of_batches(config);
    warn_of_rest(config);
    warn_of_seen_targets(config);
    enum weft_status status = check_data(config, &training, &held_out, err);
    weft_data_close(held_out);
    weft_data_close(training);
    return status;
}

static bool is_virtual(const struct run *run)
{
    return weft_device_clock(run->options->device) == WEFT_CLOCK_VIRTUAL;
}

static bool is_emulated(const struct run *run)
{
    return !is_virtual(run) && weft_config_emulates(run->options->config);
}

static const char *trace_source(const struct run *run)
{
    if (is_virtual(run)) return "virtual clock";
    return is_emulated(run) ? "wall clock, emulated link" : "wall clock";
}

/* The step that ends the run if nothing stops it. */
static int64_t last_step(const struct run *run)
{
    return run->options->replay_to > 0 ? run->options->replay_to : run->train->steps;
}

/* Adds the run's facts to a checkpoint's line and passes it on. */
static enum weft_status add_facts(void *context, const struct weft_save_line *line,
                                  struct weft_error *err)
{
    const struct run *run = context;
    const struct weft_train_options *o = run->options;
    struct weft_save_line whole = *line;
    whole.run = run->facts;
    return o->on_save == NULL ? WEFT_OK : o->on_save(o->context, &whole, err);
}

static enum weft_status open_data(struct run *run, struct weft_error *err)
{
    const struct weft_config *config = run->options->config;
    struct weft_batch batch = weft_config_batch(config);
    const int64_t micro_steps = run->train->grad_accum;
    WEFT_TRY(weft_data_open(config, WEFT_DATA_TRAINING, &run->data, err));
    run->saving_options = *run->options;
    run->saving_options.on_save = add_facts;
    run->saving_options.context = run;
    WEFT_TRY(weft_saving_open(&run->saving_options, run->data, &run->saving, err));
    run->result.steps_done = weft_saving_steps_done(run->saving);
    struct weft_reader_options options = {
        .data = run->data,
        .share = weft_data_share_of(config, run->rank, run->options->program->period.group),
        .input_bytes = micro_steps * weft_model_host_input_bytes(config->model, &batch),
        .target_bytes = micro_steps * weft_model_target_bytes(config->model, &batch),
        .first_step = run->result.steps_done + 1,
        .last_step = last_step(run),
    };
    return weft_reader_create(&options, &run->reader, err);
}

static enum weft_status open_run(struct run *run, struct weft_error *err)
{
    const struct weft_train_options *o = run->options;
    const char *figure;
    run->times = malloc(sizeof *run->times);
    run->unread = calloc(1, sizeof *run->unread);
    if (run->times == NULL || run->unread == NULL)
        return weft_fail_memory(err, "the times of steps");
    WEFT_TRY(weft_flops_of_step(o->config, &run->step_flops, err));
    run->peak_flops = weft_flops_peak(o->config, &figure) * run->ranks;
    WEFT_TRY(open_data(run, err));
    WEFT_TRY(weft_trace_create(o->program, trace_source(run), &run->trace, err));
    WEFT_TRY(weft_identity_compare(o, err));
    if (weft_data_has_held_out(o->config) && o->replay_to == 0)
        WEFT_TRY(weft_evaluation_create(o->config, o->comm, &run->evaluation, err));
    weft_watch_begin(o->watch, "start: memory");
    WEFT_TRY(weft_exec_map_arena(o->comm, o->program, o->poison, &run->arena, err));
    struct weft_exec_options options = {
        .config = o->config,
        .shards = o->shards,
        .plan = o->plan,
        .program = o->program,
        .device = o->device,
        .comm = o->comm,
        .nn = o->nn,
        .arena = run->arena,
        .poison = o->poison,
        .failpoint = o->failpoint,
        .watch = o->watch,
        .sums_groups = o->on_group != NULL,
        .on_layer = o->dump != NULL ? weft_dump_look : NULL,
    };
    const struct weft_dump_options dump = {o->config->model, o->dump, o->dump_to, o->replay_from};
    if (o->dump != NULL) WEFT_TRY(weft_dump_create(&dump, &run->dump, err));
    options.context = run->dump;
    WEFT_TRY(weft_exec_create(&options, &run->exec, err));
    if (run->rank == 0 && run->train->fingerprint_every > 0 && !weft_exec_can_hash(run->exec))
        weft_log(WEFT_LOG_WARNING,
                 "train.fingerprint.every: the plan updates on the host of a GPU, so no hash of "
                 "the parameters is recorded: keep the update on the device (plan.offload.update)");
    if (o->on_exec != NULL) o->on_exec(o->context, run->exec);
    WEFT_TRY(weft_saving_begin(run->saving, run->exec, err));
    run->result.origin = *weft_saving_origin(run->saving);
    return WEFT_OK;
}

/* Closes saving first: a save in the background reads the executor's state. */
static void close_run(struct run *run)
{
    const struct weft_train_options *o = run->options;
    weft_saving_close(run->saving);
    if (run->exec != NULL && o->on_exec != NULL) o->on_exec(o->context, NULL);
    weft_exec_destroy(run->exec);
    weft_dump_destroy(run->dump);
    if (run->arena != NULL) weft_comm_unmap_arena(run->options->comm);
    weft_trace_destroy(run->trace);
    weft_evaluation_destroy(run->evaluation);
    weft_reader_destroy(run->reader);
    weft_data_close(run->data);
    weft_pace_finish(&run->pace);
    free(run->unread);
    free(run->times);
}

static enum weft_status describe_culprit(struct run *run, const struct weft_step_inputs *inputs,
                                         const struct weft_step_result *result,
                                         struct weft_text *out, struct weft_error *err)
{
    struct weft_culprit culprit;
    WEFT_TRY(weft_exec_find_culprit(run->exec, inputs, &culprit, err));
    if (culprit.known) {
        weft_text_add(out, "Not finite first on ");
        weft_exec_describe_culprit(run->exec, &culprit, out);
    } else if (culprit.recovered) {
        weft_text_add(out, "When the step was run again all was finite, so memory or arithmetic of "
                           "a machine is not to be trusted");
    } else if (result->suspect >= 0) {
        weft_text_addf(out,
                       "Every rank's own numbers were finite, their sum over ranks was not, from "
                       "the loss backwards first in unit %s",
                       run->options->shards->units[result->suspect].name);
    } else {
        weft_text_add(out, "Every rank's own numbers were finite, their sum over ranks was not");
    }
    return WEFT_OK;
}

static enum weft_status fail_numeric(struct run *run, const struct weft_step_inputs *inputs,
                                     const struct weft_step_result *result, struct weft_error *err)
{
    struct weft_text who;
    const double loss = weft_units_unsigned_nan(result->loss);
    const int64_t step = result->lost_step > 0 ? result->lost_step : inputs->step;
    const double lr = weft_train_lr(run->train, step);
    weft_text_init(&who);
    enum weft_status status = describe_culprit(run, inputs, result, &who, err);
    bool rotated = run->options->program->period.rotated;
    if (status == WEFT_OK && rotated && !result->earlier) {
        status = weft_fail(err, WEFT_E_NUMERIC,
                           "step %" PRId64 ": loss %g, though all gradients of the step before it "
                           "were finite. %s. Lower train.optimizer.lr (%g at this step), lengthen "
                           "train.lr_schedule.warmup_steps, or set train.clip_norm",
                           step, loss, weft_text_chars(&who), lr);
    } else if (status == WEFT_OK && rotated) {
        status = weft_fail(err, WEFT_E_NUMERIC,
                           "step %" PRId64 ": gradients of the step before it are not finite, or "
                           "too large to be added up over ranks. %s. %s. Lower "
                           "train.optimizer.lr (%g at this step), lengthen "
                           "train.lr_schedule.warmup_steps, or set train.clip_norm",
                           step, weft_text_chars(&who), weft_exec_bad_outcome(run->exec), lr);
    } else if (status == WEFT_OK) {
        status =
            weft_fail(err, WEFT_E_NUMERIC,
                      "step %" PRId64 ": loss %g, gradient norm %g. %s. Nothing was updated "
                      "with it. Lower train.optimizer.lr (%g at this step), lengthen "
                      "train.lr_schedule.warmup_steps, or set train.clip_norm",
                      step, loss, weft_units_unsigned_nan(result->norm), weft_text_chars(&who), lr);
    }
    weft_text_finish(&who);
    return status;
}

static struct weft_run_memory_of memory_of(const struct run *run)
{
    const struct weft_train_options *o = run->options;
    const int64_t kept_bytes = o->kept == NULL ? 0 : weft_vault_bytes(o->kept);
    return (struct weft_run_memory_of){.kept_bytes =
                                           kept_bytes / run->ranks + (kept_bytes % run->ranks != 0),
                                       .device = o->device,
                                       .arena = run->arena,
                                       .exec = run->exec,
                                       .plan = o->plan,
                                       .program = o->program};
}

static enum weft_status look_at_memory(struct run *run, int64_t step, struct weft_error *err)
{
    const struct weft_run_memory_of of = memory_of(run);
    WEFT_TRY(weft_run_memory_look(&run->memory, &of, step, step == last_step(run), err));
    run->facts.held_bytes = run->memory.held_bytes;
    return WEFT_OK;
}

/* Appends "rank 2 (host b)". */
static void add_rank(const struct run *run, int32_t rank, struct weft_text *out)
{
    const char *host = weft_comm_host(run->options->comm, rank);
    weft_text_addf(out, "rank %d", rank);
    if (host[0] != '\0') weft_text_addf(out, " (host %s)", host);
}

/* Appends the node by its first rank: "rank 2 (host b)". */
static void add_node(const struct run *run, int32_t node, struct weft_text *out)
{
    add_rank(run, node * run->pace.ranks_per_node, out);
}

static void warn_of_rank(const struct run *run, const struct weft_pace_finding *finding)
{
    struct weft_text text;
    weft_text_init(&text);
    add_rank(run, finding->slow, &text);
    weft_log(WEFT_LOG_WARNING,
             "%s takes %.1f times as long to compute as the other ranks, which wait for it "
             "(sums over the last steps). See what else runs on its machine, and its share of the "
             "cores",
             weft_text_chars(&text), finding->times);
    weft_text_finish(&text);
}

static void warn_of_link(const struct run *run, const struct weft_link_finding *link)
{
    struct weft_text text;
    weft_text_init(&text);
    switch (link->fault) {
    case WEFT_LINK_FINE:
        break;
    case WEFT_LINK_OF_HOST:
        weft_text_add(&text, "all links of ");
        add_node(run, link->to, &text);
        weft_text_add(&text, " are slow");
        break;
    case WEFT_LINK_OF_PAIR:
        weft_text_add(&text, "the link between ");
        add_node(run, link->from, &text);
        weft_text_add(&text, " and ");
        add_node(run, link->to, &text);
        weft_text_add(&text, " is slow");
        break;
    case WEFT_LINK_OF_ALL:
        weft_text_addf(&text, "collectives take %.1f times as long as planned", link->times);
        if (run->ranks > 2 * run->pace.ranks_per_node)
            weft_text_add(&text, ", on all links between hosts alike");
        if (run->ranks == 2 * run->pace.ranks_per_node) {
            weft_text_add(&text, ": the link between ");
            add_node(run, 0, &text);
            weft_text_add(&text, " and ");
            add_node(run, 1, &text);
            weft_text_add(&text, " is slow");
        }
        break;
    }
    weft_log(
        WEFT_LOG_WARNING,
        "%s, which costs %.0f %% of the time (sums over the last steps). See ports, cables and "
        "other traffic, or measure all pairs of hosts with `weft profile`",
        weft_text_chars(&text), 100 * link->share);
    weft_text_finish(&text);
}

/* All ranks know what is slow; rank 0 warns. */
static enum weft_status look_at_pace(struct run *run, int64_t compute_ns, bool meets,
                                     struct weft_error *err)
{
    struct weft_pace_finding finding;
    WEFT_TRY(weft_pace_note(&run->pace, run->options->comm, compute_ns, meets, &finding, err));
    if (run->rank == 0 && finding.slow >= 0) warn_of_rank(run, &finding);
    if (run->rank == 0 && finding.link.fault != WEFT_LINK_FINE) warn_of_link(run, &finding.link);
    return WEFT_OK;
}

/* The plan's time of a step's collectives. */
static int64_t planned_collectives_ns(const struct weft_program *program)
{
    int64_t ns = 0;
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct weft_instruction *at = &program->instructions[i];
        if (weft_op_stream(at->op) == WEFT_STREAM_CHANNEL)
            ns += at->every > 0 ? at->ns / at->every : at->ns;
    }
    return ns;
}

static bool is_compared(const struct run *run, int64_t step)
{
    const int64_t every = run->train->compare_every;
    return every > 0 && (step % every == 0 || step == last_step(run));
}

/* Whether nodes that step on their own agree after a step. They do before each average, and where
 * all ranks do something together. A node that cannot go on waits for the next such step. */
static bool nodes_meet(const struct run *run, int64_t step)
{
    return weft_config_averages_after(run->options->config, step) || step == last_step(run) ||
           is_compared(run, step) || weft_saving_meets(run->saving, step) ||
           (run->evaluation != NULL && weft_evaluation_is_due(run->train, step));
}

/* Occasional work after a step. */
static enum weft_status look_after(struct run *run, int64_t step, int64_t compute_ns, bool meets,
                                   struct weft_error *err)
{
    WEFT_TRY(look_at_memory(run, step, err));
    WEFT_TRY(look_at_pace(run, compute_ns, meets, err));
    if (is_compared(run, step)) WEFT_TRY(weft_exec_compare_replicas(run->exec, step, err));
    return WEFT_OK;
}

static enum weft_status evaluate_step(struct run *run, int64_t step, struct weft_error *err)
{
    const struct weft_train_options *o = run->options;
    struct weft_evaluation_line line;
    if (run->evaluation == NULL || !weft_evaluation_is_due(run->train, step)) return WEFT_OK;
    bool whole = true;
    WEFT_TRY(weft_pace_pause(&run->pace, o->comm, err));
    WEFT_TRY(weft_evaluation_run(run->evaluation, run->exec, step, o->stop, &line, &whole,
                                 run->unread, err));
    WEFT_TRY(weft_pace_go_on(o->comm, err));
    if (!whole) {
        run->result.stopped = step < last_step(run);
        return WEFT_OK;
    }
    line.run = run->facts;
    run->result.validation_loss = line.loss;
    if (o->on_evaluation != NULL) WEFT_TRY(o->on_evaluation(o->context, &line, err));
    return isfinite(line.loss) ? WEFT_OK
                               : weft_saving_refuse_loss(run->saving, step, line.loss, err);
}

/* Takes the step's batch. If the next one cannot be read, this step is the last: the ranks agree on
 * that as on a stop, so its state is whole and can be saved. */
static enum weft_status take_inputs(struct run *run, int64_t step, struct weft_step_inputs *out,
                                    int64_t *wait_ns, struct weft_error *err)
{
    const atomic_int *stop = run->options->stop;
    int64_t next_wait_ns = 0;
    *out = (struct weft_step_inputs){
        .step = step, .lr = weft_train_lr(run->train, step), .meets = nodes_meet(run, step)};
    WEFT_TRY(weft_reader_take(run->reader, step, &out->input, &out->targets, wait_ns, err));
    bool goes_on = weft_reader_look_ahead(run->reader, step, &next_wait_ns, run->unread) == WEFT_OK;
    out->ends = !goes_on;
    out->stop = !goes_on || (stop != NULL && atomic_load(stop) != 0);
    *wait_ns += next_wait_ns;
    return WEFT_OK;
}

/* Counts the step's targets with a loss, over all ranks. */
static enum weft_status count_targets(struct run *run, struct weft_step_inputs *inputs,
                                      struct weft_error *err)
{
    const struct weft_train_options *o = run->options;
    if (!weft_data_leaves_out(o->config)) return WEFT_OK;
    const struct weft_batch batch = weft_config_batch(o->config);
    const struct weft_data_share share =
        weft_data_share_of(o->config, run->rank, o->program->period.group);
    const int64_t of_sample = weft_model_targets(o->config->model, &batch) / batch.samples;
    const int64_t mine = weft_data_count(inputs->targets, share.rounds * share.count * of_sample);
    int64_t *all = calloc((size_t)run->ranks, sizeof *all);
    if (all == NULL) return weft_fail_memory(err, "the ranks' targets");
    const enum weft_status status = weft_comm_exchange(o->comm, &mine, sizeof mine, all, err);
    for (int32_t r = 0; r < run->ranks && status == WEFT_OK; r++)
        inputs->rows += all[r];
    free(all);
    if (status == WEFT_OK && inputs->rows == 0) inputs->rows = 1; /* gradients and loss are 0 */
    return status;
}

/* All ranks fail with the first rank that could not read its data. */
static enum weft_status share_unread(struct run *run, struct weft_error *err)
{
    const struct weft_train_result *result = &run->result;
    struct weft_error *first = calloc(1, sizeof *first);
    if (first == NULL) return weft_fail_memory(err, "an error");
    enum weft_status status =
        run->ranks == 1
            ? weft_fail_again(first, run->unread, "%s", run->unread->text)
            : weft_comm_share_outcome(run->options->comm, run->unread->status, run->unread, first);
    if (status != WEFT_OK)
        weft_fail_again(err, first, "%s. Training stopped after step %" PRId64 ", which is %s",
                        first->text, result->steps_done,
                        result->saved_step == result->steps_done
                            ? "saved: mend the data and go on with --resume"
                            : "not saved");
    free(first);
    return status;
}

static int64_t step_tokens(const struct run *run)
{
    return weft_config_samples(run->options->config) * run->train->seq_len;
}

static enum weft_status tell_step(struct run *run, const struct weft_step_inputs *inputs,
                                  const struct weft_step_result *result,
                                  const struct weft_trace_summary *summary, struct weft_error *err)
{
    const struct weft_train_options *o = run->options;
    const struct weft_train *train = run->train;
    const double flops_per_s =
        summary->step_ns > 0 ? 1e9 * run->step_flops / (double)summary->step_ns : NAN;
    const struct weft_step_line line = {
        .step = inputs->step,
        .steps = train->steps,
        .loss = result->loss,
        .nodes_loss = result->nodes_loss,
        .nodes_steps = result->nodes_steps,
        .norm = result->norm,
        .clip = result->clip,
        .loss_scale = result->loss_scale,
        .lr = inputs->lr,
        .step_ns = summary->step_ns,
        .exposed_ns = summary->exposed_ns,
        .overlapped_ns = summary->overlapped_ns,
        .compute_ns = summary->compute_ns,
        .data_wait_ns = run->trace->data_wait_ns,
        .tokens = step_tokens(run),
        .model_flops_per_s = flops_per_s,
        .mfu = run->peak_flops > 0 ? flops_per_s / run->peak_flops : NAN,
        .parameters = result->parameters,
        .gradients = result->gradients,
        .run = run->facts,
    };
    return o->on_step == NULL ? WEFT_OK : o->on_step(o->context, &line, run->trace, err);
}

static enum weft_status tell_groups(struct run *run, struct weft_error *err)
{
    const struct weft_train_options *o = run->options;
    struct weft_group_line line;
    int32_t round = 0;
    while (o->on_group != NULL && weft_exec_next_group(run->exec, &round, &line))
        WEFT_TRY(o->on_group(o->context, &line, err));
    return WEFT_OK;
}

/* The settle of a dump completes the last group of a rotated period. */
static enum weft_status dump_step(struct run *run, int64_t step, struct weft_error *err)
{
    WEFT_TRY(weft_dump_after(run->dump, run->exec, step, err));
    return step >= run->options->replay_from ? tell_groups(run, err) : WEFT_OK;
}

static enum weft_status do_step(struct run *run, int64_t step, struct weft_error *err)
{
    const struct weft_train_options *o = run->options;
    int64_t wait_ns = 0;
    struct weft_step_inputs inputs;
    WEFT_TRY(take_inputs(run, step, &inputs, &wait_ns, err));
    WEFT_TRY(count_targets(run, &inputs, err));
    struct weft_step_result result = {0};
    struct weft_hash parameters = {0};
    if (run->dump != NULL) WEFT_TRY(weft_dump_before(run->dump, run->exec, step, err));
    /* A step that overflowed in f16 runs again with a smaller loss scale. It does not advance the
     * schedule, the step or its random numbers. */
    do {
        WEFT_TRY(weft_exec_step(run->exec, &inputs, &result, run->trace, err));
        /* The updates before the step were in its first try. */
        parameters.high += result.parameters.high;
        parameters.low += result.parameters.low;
        if (result.skipped && run->dump != NULL) weft_dump_forget(run->dump);
        if (result.skipped && run->rank == 0)
            weft_log(WEFT_LOG_INFO,
                     "step %" PRId64 ": gradients overflowed with a loss scale of %g; done again "
                     "with half of it",
                     step, result.loss_scale);
    } while (result.skipped);
    result.parameters = parameters;
    WEFT_TRY(tell_groups(run, err));
    if (run->dump != NULL && result.finite) WEFT_TRY(dump_step(run, step, err));
    run->trace->data_wait_ns = wait_ns;
    if (result.lost_step == 0) WEFT_TRY(weft_saving_catch_up(run->saving, err));
    if (!result.finite) return fail_numeric(run, &inputs, &result, err);
    if (result.lost_step > 0) {
        run->result.steps_done = result.lost_step;
        return share_unread(run, err); /* nodes have no state of one step to save */
    }
    struct weft_trace_summary summary;
    weft_trace_summarise(o->program, run->trace, &summary);
    int64_t at = run->steps++ % WEFT_TRAIN_MEDIAN_STEPS;
    run->times->step_ns[at] = summary.step_ns;
    run->times->exposed_ns[at] = summary.exposed_ns;
    run->times->overlapped_ns[at] = summary.overlapped_ns;
    if (run->steps > WARM_STEPS) run->waited_ns += wait_ns;
    if (run->steps == 1) run->result.first_loss = result.loss;
    run->result.last_loss = result.loss;
    run->result.steps_done = step;
    run->result.stopped = result.stop && step < last_step(run);
    run->facts.tokens_per_s =
        summary.step_ns > 0 ? 1e9 * (double)step_tokens(run) / (double)summary.step_ns : NAN;
    /* Without averages over nodes all ranks meet in each step. */
    const bool meets = inputs.meets || run->train->every == 0;
    WEFT_TRY(look_after(run, step, summary.compute_ns, meets, err));
    WEFT_TRY(tell_step(run, &inputs, &result, &summary, err));
    WEFT_TRY(evaluate_step(run, step, err));
    bool last = step == last_step(run) || run->result.stopped;
    return weft_saving_after(run->saving, run->exec, step, last, err);
}

static void summarise_times(struct run *run)
{
    int64_t done = run->steps, first = 0;
    struct weft_train_result *result = &run->result;
    result->step_ns = result->exposed_ns = result->overlapped_ns = WEFT_UNMEASURED;
    result->data_wait_ns = done > WARM_STEPS ? run->waited_ns : WEFT_UNMEASURED;
    if (done == 0) return;
    int64_t kept = done < WEFT_TRAIN_MEDIAN_STEPS ? done : WEFT_TRAIN_MEDIAN_STEPS;
    if (done >= LEAST_STEPS && done <= WEFT_TRAIN_MEDIAN_STEPS) first = WARM_STEPS;
    result->step_ns = weft_measure_median(run->times->step_ns + first, kept - first);
    result->exposed_ns = weft_measure_median(run->times->exposed_ns + first, kept - first);
    result->overlapped_ns = weft_measure_median(run->times->overlapped_ns + first, kept - first);
}

static enum weft_status run_steps(struct run *run, struct weft_error *err)
{
    int64_t first = run->result.steps_done + 1;
    const struct weft_run_memory_of of = memory_of(run);
    weft_watch_begin(run->options->watch, "train");
    WEFT_TRY(weft_run_memory_plan(&run->memory, &of, err));
    const int64_t last = last_step(run);
    for (int64_t step = first; step <= last && !run->result.stopped; step++)
        WEFT_TRY(do_step(run, step, err));
    if (first > last) /* nothing is left to do, except maybe a save to another directory */
        WEFT_TRY(weft_saving_after(run->saving, run->exec, first - 1, true, err));
    run->result.saved_step = weft_saving_saved_step(run->saving);
    WEFT_TRY(weft_exec_settle(run->exec, err));
    WEFT_TRY(tell_groups(run, err));
    summarise_times(run);
    run->result.predicted_step_ns = run->facts.predicted_step_ns;
    memcpy(run->result.tiers, run->memory.tiers, sizeof run->result.tiers);
    run->result.outside = run->memory.outside;
    run->result.ring_bytes = weft_exec_ring_bytes(run->exec);
    WEFT_TRY(weft_exec_touched_bytes(run->exec, &run->result.touched_bytes, err));
    WEFT_TRY(weft_exec_fingerprint(run->exec, &run->result.fingerprint, err));
    return share_unread(run, err);
}

enum weft_status weft_train_run(const struct weft_train_options *options,
                                struct weft_train_result *out, struct weft_error *err)
{
    WEFT_TRY(refuse_config(options->config, err));
    weft_measure_trim();
    struct run run = {
        .options = options,
        .train = &options->config->train,
        .rank = weft_comm_rank(options->comm),
        .ranks = weft_comm_ranks(options->comm),
    };
    run.result.emulated = is_emulated(&run);
    run.result.first_loss = run.result.last_loss = run.result.validation_loss = NAN;
    run.facts = (struct weft_run_facts){
        .tokens_per_s = NAN,
        .held_bytes = WEFT_UNMEASURED,
        .predicted_step_ns = options->plan->prediction.step_ns,
        .emulated = run.result.emulated,
    };
    const int64_t per_node = options->config->cluster.ranks_per_node;
    weft_pace_init(&run.pace, WEFT_PACE_NS, per_node < run.ranks ? (int32_t)per_node : run.ranks,
                   options->measured ? planned_collectives_ns(options->program) : 0);
    enum weft_status status = open_run(&run, err);
    if (status == WEFT_OK) status = run_steps(&run, err);
    close_run(&run);
    if (status == WEFT_OK) *out = run.result;
    return status;
}
