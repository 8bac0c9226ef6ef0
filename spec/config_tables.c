/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/config_tables.h"
#include "spec/config_batch.h"
#include "spec/hub/families.h"
#include "spec/kind.h"
#include "spec/target.h"

#include <string.h>

/* A row: name, kind, offset, default, least, most, choices, table, text. */
#define AT(type, member) offsetof(struct type, member)
#define ROWS(array)      (array), sizeof(array) / sizeof *(array)

#define LARGE      9007199254740992.0 /* 2^53: a double holds every integer up to it */
#define INT32_MOST 2147483647.0
#define WIDTH_MOST 16777216.0 /* 2^24 */
#define HOUR_NS    3600e9
#define LEAST_RATE 1.0
#define MOST_RATE  1e18

static const char *const dtypes[] = {"f32=fp32=float32", "bf16=bfloat16", "f16=fp16=float16", NULL};
static const char *const devices[] = {"cpu", "cuda", NULL};
static const char *const optimizers[] = {
#define OPTIMIZER(type, name, ...) name,
    WEFT_OPTIMIZERS(OPTIMIZER)
#undef OPTIMIZER
        NULL};
static const char *const loops[] = {"foreach", "fused", "for-loop", NULL};
static const char *const schedules[] = {"constant", "cosine", "linear", "wsd=warmup-stable-decay",
                                        NULL};
static const char *const block_scales[] = {"usual", "half", "twice", "whole", "auto", NULL};
static const char *const micro_step_orders[] = {"step", "layer", "auto", NULL};
static const char *const updates_in[] = {"forward", "backward", "auto", NULL};
static const char *const average_rules[] = {"mean", "gossip", NULL};
static const char *const cadences[] = {"auto", "micro_step", "step", NULL};
static const char *const layer_types[] = {
#define KIND_NAME(name) #name,
    WEFT_KINDS(KIND_NAME)
#undef KIND_NAME
        NULL};

/* layers */

static const struct weft_field layer_fields[] = {
    {"name", WEFT_FIELD_STRING, AT(weft_layer_entry, layer.name), NULL, 0, 0, NULL, NULL,
     "unique; letters, digits, \"_\", \"-\" and \".\"; \"{i}\" becomes the number of the copy"},
    {"type", WEFT_FIELD_CHOICE, AT(weft_layer_entry, type), NULL, 0, 0, layer_types, NULL,
     "the function of the layer; it determines the other keys"},
    {"repeat", WEFT_FIELD_INTEGER, AT(weft_layer_entry, repeat), "1", 1, 16384, NULL, NULL,
     "copies of the layer, one after the other"},
    {"frozen", WEFT_FIELD_BOOL, AT(weft_layer_entry, layer.frozen), "false", 0, 0, NULL, NULL,
     "its parameters are not trained: no gradient, no optimizer state, no f32 master"},
};
const struct weft_field_table weft_layer_table = {
    "layer",
    "One entry of `layers`. Every type has `name`, `type`, `repeat` and `frozen`; the other keys "
    "depend on the type.",
    ROWS(layer_fields)};

static const struct weft_field model_fields[] = {
    {"layers", WEFT_FIELD_LIST, 0, NULL, 0, 0, NULL, &weft_layer_table,
     "in the order in which they run"},
    {"kinds", WEFT_FIELD_LIST, 0, "null", 0, 0, NULL, &weft_kind_table,
     "layer types of your own, each of at least one layer"},
};
const struct weft_field_table weft_model_table = {
    "model",
    "The model. In the config, or in a file of its own. The file may also be Hugging Face's "
    "config.json (" WEFT_HUB_TYPES ").",
    ROWS(model_fields)};

/* cluster */

static const struct weft_field flops_fields[] = {
    {"f32", WEFT_FIELD_COUNT_UNIT, AT(weft_device_spec, flops.f32), "null", LEAST_RATE, MOST_RATE,
     NULL, NULL, "peak a second in f32"},
    {"bf16", WEFT_FIELD_COUNT_UNIT, AT(weft_device_spec, flops.bf16), "null", LEAST_RATE, MOST_RATE,
     NULL, NULL, "peak a second in bf16"},
    {"f16", WEFT_FIELD_COUNT_UNIT, AT(weft_device_spec, flops.f16), "null", LEAST_RATE, MOST_RATE,
     NULL, NULL, "peak a second in f16"},
};
static const struct weft_field_table flops_table = {
    "flops", "Peak rate of matrix products, by the dtype that they compute in.",
    ROWS(flops_fields)};

static const struct weft_field device_fields[] = {
    /* flops has offset 0, because its table counts from the device. */
    {"flops", WEFT_FIELD_OBJECT, 0, "{}", 0, 0, NULL, &flops_table, "peak operations a second"},
    {"memory_bandwidth", WEFT_FIELD_RATE, AT(weft_device_spec, memory_bytes_per_s), "null",
     LEAST_RATE, MOST_RATE, NULL, NULL, "of the device's memory"},
    {"efficiency", WEFT_FIELD_NUMBER, AT(weft_device_spec, efficiency), "0.5", 0.001, 1, NULL, NULL,
     "share of the peak that layers reach"},
    {"type", WEFT_FIELD_CHOICE, AT(weft_device_spec, type), "\"cpu\"", 0, 0, devices, NULL,
     "the device of each rank; `cuda` is a GPU and needs the module weft_cuda.so (docs/gpu.md)"},
};
static const struct weft_field_table device_table = {
    "device",
    "One device, for the analytic profile: a layer takes flops / (peak x efficiency), and at least "
    "moved bytes / memory_bandwidth.",
    ROWS(device_fields)};

static const struct weft_field line_fields[] = {
    {"alpha", WEFT_FIELD_TIME, AT(weft_link, alpha_ns), "\"0s\"", 0, HOUR_NS, NULL, NULL,
     "time of an empty collective"},
    {"bandwidth", WEFT_FIELD_RATE, AT(weft_link, bytes_per_s), "null", LEAST_RATE, MOST_RATE, NULL,
     NULL, "bytes that a rank sends in a second"},
};
static const struct weft_field_table line_table = {
    "intra, inter",
    "AllGather or ReduceScatter of B bytes over N ranks takes alpha + B x (N-1)/N / bandwidth, "
    "AllReduce twice that.",
    ROWS(line_fields)};

static const struct weft_field link_fields[] = {
    {"intra", WEFT_FIELD_OBJECT, AT(weft_cluster, link.intra), "{}", 0, 0, NULL, &line_table,
     "between ranks of one node"},
    {"inter", WEFT_FIELD_OBJECT, AT(weft_cluster, link.inter), "{}", 0, 0, NULL, &line_table,
     "between nodes: bus bandwidth of a collective over them"},
    {"alpha_per_node", WEFT_FIELD_TIME, AT(weft_cluster, link.alpha_per_node_ns), "\"0s\"", 0,
     HOUR_NS, NULL, NULL, "joins inter.alpha for each node after the second"},
};
static const struct weft_field_table link_table = {
    "link", "The network, for the analytic profile and for emulation.", ROWS(link_fields)};

static const struct weft_field contention_fields[] = {
    {"compute", WEFT_FIELD_NUMBER, AT(weft_cluster, contention.compute), "0", 0, 0.9, NULL, NULL,
     "share of its speed that compute loses while communication runs"},
    {"channel", WEFT_FIELD_NUMBER, AT(weft_cluster, contention.channel), "0", 0, 0.9, NULL, NULL,
     "share of its speed that communication loses while compute runs"},
};
static const struct weft_field_table contention_table = {
    "contention", "Slow-down of compute and communication by each other, for the analytic profile.",
    ROWS(contention_fields)};

static const struct weft_field cluster_fields[] = {
    {"ranks", WEFT_FIELD_INTEGER, AT(weft_cluster, ranks), NULL, 1, 65536, NULL, NULL,
     "processes that train together, each with a device"},
    {"ranks_per_node", WEFT_FIELD_INTEGER, AT(weft_cluster, ranks_per_node), "0", 0, 65536, NULL,
     NULL, "0: all in one node"},
    {"memory_limit", WEFT_FIELD_BYTES, AT(weft_cluster, memory_limit_bytes), "null", 1, LARGE, NULL,
     NULL, "memory of one rank, everything included; left out: no limit"},
    {"price", WEFT_FIELD_NUMBER, AT(weft_cluster, price), "0", 0, 1e9, NULL, NULL,
     "of an hour of all ranks, in any currency, for `weft best --clusters`; 0: not known"},
    {"page", WEFT_FIELD_BYTES, AT(weft_cluster, page_bytes), "null", 4096, 2097152, NULL, NULL,
     "allocation unit of memory, a power of two from 4KiB to 2MiB; left out: the largest that is "
     "at most 1/65536 of the least arena, on a GPU 2MiB"},
    {"base", WEFT_FIELD_BYTES, AT(weft_cluster, base_bytes), "\"0B\"", 0, LARGE, NULL, NULL,
     "memory of a rank outside the arena (context, libraries), until it is measured"},
    {"device", WEFT_FIELD_OBJECT, AT(weft_cluster, device), "{}", 0, 0, NULL, &device_table,
     "figures of the device"},
    {"link", WEFT_FIELD_OBJECT, 0, "{}", 0, 0, NULL, &link_table, "figures of the network"},
    {"reduce_copies", WEFT_FIELD_BOOL, AT(weft_cluster, reduce_copies), "false", 0, 0, NULL, NULL,
     "plan.for fsdp2: a reduction copies its input, as gloo's does"},
    {"pools", WEFT_FIELD_BOOL, AT(weft_cluster, pools), "false", 0, 0, NULL, NULL,
     "plan.for fsdp2: the limit binds memory that PyTorch's allocator reserves on a GPU, with a "
     "pool for each stream: compute, gathers, reduced gradients"},
    {"channels", WEFT_FIELD_INTEGER, AT(weft_cluster, channels), "1", 1, 2, NULL, NULL,
     "collectives under way at once: 2 has one channel for gathers and one for reductions, each as "
     "fast as link says; on GPUs planning only"},
    {"contention", WEFT_FIELD_OBJECT, 0, "{}", 0, 0, NULL, &contention_table,
     "slow-down of compute and communication by each other; not with a measured profile of layers, "
     "which includes it or has `contention` (weft profile --contention)"},
    {"emulate", WEFT_FIELD_BOOL, AT(weft_cluster, emulate_link), "false", 0, 0, NULL, NULL,
     "local ranks pace their communication by link.intra"},
    {"threads", WEFT_FIELD_INTEGER, AT(weft_cluster, threads), "0", 0, 1024, NULL, NULL,
     "compute threads of a rank; 0: cores, or CPU quota, / ranks"},
    {"bind", WEFT_FIELD_BOOL, AT(weft_cluster, bind), "false", 0, 0, NULL, NULL,
     "each local rank keeps to an equal share of the cores that Weft may use (affinity, cpuset), "
     "at least one a thread; for measurements, and for machines without other programs"},
    {"timeout", WEFT_FIELD_TIME, AT(weft_cluster, timeout_ns), "null", 1e6, 24 * HOUR_NS, NULL,
     NULL,
     "time after which a rank that is missing in a collective, or stopped, counts as hung; left "
     "out: in steps of a plan with measured times 20 times the longest predicted time between two "
     "collectives, at least 10s; otherwise, and on GPUs, 10min"},
    {"profile", WEFT_FIELD_STRING, AT(weft_cluster, profile), "null", 0, 0, NULL, NULL,
     "path of a measured profile; each part that it has replaces the analytic one"},
    {"host", WEFT_FIELD_OBJECT, AT(weft_cluster, host), "null", 0, 0, NULL, &weft_host_table,
     "the host's memory as a tier; left out: none"},
    {"disk", WEFT_FIELD_OBJECT, AT(weft_cluster, disk), "null", 0, 0, NULL, &weft_disk_table,
     "a disk as a tier; left out: none"},
};
const struct weft_field_table weft_cluster_table = {
    "cluster", "Machines and links. In the config, or in a file of its own.", ROWS(cluster_fields)};

/* train */

static const struct weft_field precision_fields[] = {
    {"compute", WEFT_FIELD_CHOICE, AT(weft_train, precision.compute), "\"f32\"", 0, 0, dtypes, NULL,
     "dtype of layers, parameters and AllGathers; bf16 and f16 have f32 master parameters"},
    {"reduce", WEFT_FIELD_CHOICE, AT(weft_train, precision.reduce), "\"f32\"", 0, 0, dtypes, NULL,
     "dtype of full gradients and their reduction: f32, or as compute"},
    {"accumulate", WEFT_FIELD_CHOICE, AT(weft_train, precision.accumulate), "\"f32\"", 0, 0, dtypes,
     NULL, "dtype of the reduced gradient: f32, or as reduce"},
};
static const struct weft_field_table precision_table = {"precision", "Dtypes.",
                                                        ROWS(precision_fields)};

static const struct weft_field optimizer_fields[] = {
    {"type", WEFT_FIELD_CHOICE, AT(weft_train, optimizer.type), "\"adamw\"", 0, 0, optimizers, NULL,
     "adamw; sgd with momentum and decay added to the gradient; lamb, which is adamw with each "
     "tensor's step scaled by the length of its parameters over that of the step; lion, with "
     "one moment and steps as long as the rate; or adam_mini, which is adamw with one second "
     "moment "
     "for each whole tensor"},
    {"lr", WEFT_FIELD_NUMBER, AT(weft_train, optimizer.lr), "0.0006", 0, 1e6, NULL, NULL,
     "learning rate at its highest"},
    {"betas", WEFT_FIELD_NUMBERS, AT(weft_train, optimizer.betas), "[0.9, 0.95]", 0, 0.99999999,
     NULL, NULL,
     "adamw, lamb, adam_mini: decay of the two moments; lion: weight of the moment in a step, and "
     "its decay"},
    {"eps", WEFT_FIELD_NUMBER, AT(weft_train, optimizer.eps), "1e-8", 1e-30, 1, NULL, NULL,
     "adamw, lamb, adam_mini: added to the root of the second moment"},
    {"weight_decay", WEFT_FIELD_NUMBER, AT(weft_train, optimizer.weight_decay), "0.1", 0, 1e6, NULL,
     NULL, "weight decay, without the tensors of exempt_vectors"},
    {"exempt_vectors", WEFT_FIELD_BOOL, AT(weft_train, optimizer.exempt_vectors), "true", 0, 0,
     NULL, NULL,
     "biases and norms (tensors of one dimension) have no weight decay, and lamb does not scale "
     "their step"},
    {"momentum", WEFT_FIELD_NUMBER, AT(weft_train, optimizer.momentum), "0.9", 0, 0.99999999, NULL,
     NULL, "sgd: decay of its one moment; 0: none is kept"},
    {"loop", WEFT_FIELD_CHOICE, AT(weft_train, optimizer.loop), "\"foreach\"", 0, 0, loops, NULL,
     "plan.for fsdp2: how PyTorch updates. foreach, its default on a GPU, holds 4 bytes more for "
     "each "
     "own parameter of adamw; for-loop 8 for each of the largest layer; fused none"},
};
static const struct weft_field_table optimizer_table = {"optimizer", "The update of parameters.",
                                                        ROWS(optimizer_fields)};

static const struct weft_field loss_scale_fields[] = {
    {"initial", WEFT_FIELD_NUMBER, AT(weft_train, loss_scale.initial), "65536", 1, 16777216, NULL,
     NULL, "first value, a power of two; a step that overflows halves it and is repeated"},
    {"growth_steps", WEFT_FIELD_INTEGER, AT(weft_train, loss_scale.growth_steps), "2000", 1, LARGE,
     NULL, NULL, "steps without overflow after which it doubles"},
};
static const struct weft_field_table loss_scale_table = {
    "loss_scale", "Of the loss when layers compute in f16.", ROWS(loss_scale_fields)};

static const struct weft_field schedule_fields[] = {
    {"type", WEFT_FIELD_CHOICE, AT(weft_train, lr_schedule.type), "\"constant\"", 0, 0, schedules,
     NULL, "after the warm-up"},
    {"warmup_steps", WEFT_FIELD_INTEGER, AT(weft_train, lr_schedule.warmup_steps), "0", 0, LARGE,
     NULL, NULL, "steps in which the rate rises from 0 to lr"},
    {"min_ratio", WEFT_FIELD_NUMBER, AT(weft_train, lr_schedule.min_ratio), "0.1", 0, 1, NULL, NULL,
     "cosine, linear, wsd: the last rate / lr"},
    {"decay_steps", WEFT_FIELD_INTEGER, AT(weft_train, lr_schedule.decay_steps), "0", 0, LARGE,
     NULL, NULL, "wsd: the last steps, in which the rate falls; 0: a tenth of all"},
    {"steps", WEFT_FIELD_INTEGER, AT(weft_train, lr_schedule.steps), "null", 1, LARGE, NULL, NULL,
     "steps of the whole schedule; later steps keep its last rate; left out: train.steps"},
};
static const struct weft_field_table schedule_table = {
    "lr_schedule", "The learning rate over the steps.", ROWS(schedule_fields)};

#define DATA_FORMAT_TEXT                                                                           \
    "auto: a token file or a file of samples if it has the header, otherwise a text; other files " \
    "are refused; bytes: the bytes of any file"

static const char *const data_formats[] = {"auto", "bytes", NULL};
static const struct weft_field data_fields[] = {
    {"path", WEFT_FIELD_STRING, AT(weft_train, data), NULL, 0, 0, NULL, NULL,
     "of a file, or a pattern of paths"},
    {"format", WEFT_FIELD_CHOICE, AT(weft_train, data_format), "\"auto\"", 0, 0, data_formats, NULL,
     DATA_FORMAT_TEXT},
};
static const struct weft_field_table data_table = {
    "data", "The data to read. A path alone means `{\"path\": PATH}`.", ROWS(data_fields)};

static const struct weft_field padding_fields[] = {
    {"token", WEFT_FIELD_INTEGER, AT(weft_padding, token), NULL, 0, INT32_MOST, NULL, NULL,
     "a target with this token has no loss"},
    {"hidden", WEFT_FIELD_BOOL, AT(weft_padding, hidden), "true", 0, 0, NULL, NULL,
     "attention without causality (encoder_block) leaves out rows with this token, as an attention "
     "mask does"},
};
static const struct weft_field_table padding_table = {
    "padding",
    "Tokens that fill up samples. As targets they have no loss, and the loss is a mean over the "
    "others of all ranks. A classifier has no such target.",
    ROWS(padding_fields)};

static const struct weft_field masked_fields[] = {
    {"token", WEFT_FIELD_INTEGER, AT(weft_masking, token), NULL, 0, INT32_MOST, NULL, NULL,
     "the mask"},
    {"share", WEFT_FIELD_NUMBER, AT(weft_masking, share), "0.15", 1e-6, 1, NULL, NULL,
     "of tokens that are predicted; of ten, eight are masked, one is random, and one stays"},
};
static const struct weft_field_table masked_table = {
    "masked", "Predicts masked tokens from all others (Devlin et al. 2019), not the next token.",
    ROWS(masked_fields)};

static const struct weft_field validation_data_fields[] = {
    {"path", WEFT_FIELD_STRING, AT(weft_train, validation.data), NULL, 0, 0, NULL, NULL,
     "of a file, or a pattern of paths"},
    {"format", WEFT_FIELD_CHOICE, AT(weft_train, validation.data_format), "\"auto\"", 0, 0,
     data_formats, NULL, DATA_FORMAT_TEXT},
};
static const struct weft_field_table validation_data_table = {
    "data", "The data to read. A path alone means `{\"path\": PATH}`.",
    ROWS(validation_data_fields)};

static const struct weft_field validation_fields[] = {
    {"data", WEFT_FIELD_SHORT, 0, "null", 0, 0, NULL, &validation_data_table,
     "path of the held-out data: texts, token files or files of samples, as above, and no file of "
     "train.data"},
    {"share", WEFT_FIELD_NUMBER, AT(weft_train, validation.share), "0", 0, 0.9, NULL, NULL,
     "or: this share of train.data, from its end, is held out"},
    {"every", WEFT_FIELD_INTEGER, AT(weft_train, validation.every), "100", 1, 1e12, NULL, NULL,
     "steps between two evaluations; there is one after the last step too"},
    {"samples", WEFT_FIELD_INTEGER, AT(weft_train, validation.samples), "64", 1, 1e12, NULL, NULL,
     "samples of one evaluation, at even distances in the held-out data: equal ones for any "
     "number of ranks and any micro_batch"},
    {"batches", WEFT_FIELD_INTEGER, AT(weft_train, validation.batches), "null", 1, 1048576, NULL,
     NULL,
     "for configs of older versions: batches x micro_batch x ranks samples. Give samples instead"},
};
static const struct weft_field_table validation_table = {
    "validation", "Evaluation on held-out data.", ROWS(validation_fields)};

static const struct weft_field checkpoint_fields[] = {
    {"every", WEFT_FIELD_INTEGER, AT(weft_train, checkpoint.every), "0", 0, 1e12, NULL, NULL,
     "steps between two checkpoints; 0: none before the end"},
    {"keep", WEFT_FIELD_INTEGER, AT(weft_train, checkpoint.keep), "2", 2, 1e9, NULL, NULL,
     "checkpoints that stay, the newest ones"},
    {"keep_every", WEFT_FIELD_INTEGER, AT(weft_train, checkpoint.keep_every), "0", 0, 1e9, NULL,
     NULL,
     "of every N checkpoints one stays for good, so that `weft replay` reaches all later steps "
     "from "
     "it; 0: none"},
    {"host", WEFT_FIELD_INTEGER, AT(weft_train, checkpoint.host), "0", 0, 1e12, NULL, NULL,
     "of a run with `--elastic`: steps between two checkpoints in the host's memory, which has the "
     "last two, within cluster.host.memory_limit; so at most as many steps are lost when a rank "
     "dies; 0: none"},
    {"at_end", WEFT_FIELD_BOOL, AT(weft_train, checkpoint.at_end), "true", 0, 0, NULL, NULL,
     "save after the last step, and after a stop signal"},
    {"asynchronous", WEFT_FIELD_BOOL, AT(weft_train, checkpoint.asynchronous), "true", 0, 0, NULL,
     NULL, "write while the next step computes; the step after it waits until all is written"},
    {"required", WEFT_FIELD_BOOL, AT(weft_train, checkpoint.required), "false", 0, 0, NULL, NULL,
     "a failed save ends the run (exit 74); false: a warning, except for the last step"},
};
static const struct weft_field_table checkpoint_table = {
    "checkpoint", "Saving, to the run's directory.", ROWS(checkpoint_fields)};

static const struct weft_field fingerprint_fields[] = {
    {"every", WEFT_FIELD_INTEGER, AT(weft_train, fingerprint_every), "0", 0, 1e12, NULL, NULL,
     "steps between two hashes in the metrics, of all trained parameters and of each group's "
     "gradient, which `weft replay` compares; 0: none"},
};
static const struct weft_field_table fingerprint_table = {
    "fingerprint", "Hashes of the parameters (docs/faults.md).", ROWS(fingerprint_fields)};

static const struct weft_field across_fields[] = {
    {"every", WEFT_FIELD_INTEGER, AT(weft_train, every), "0", 0, 1e12, NULL, NULL,
     "nodes step on their own, and average their parameters after every N steps (local SGD); a "
     "stop signal then ends the run at an average, up to N steps later; 0: all ranks step "
     "together"},
    {"momentum", WEFT_FIELD_NUMBER, AT(weft_train, across_momentum), "0", 0, 0.9999, NULL, NULL,
     "Nesterov momentum of an outer optimizer, whose gradient is the change since the last average "
     "(DiLoCo)"},
    {"lr", WEFT_FIELD_NUMBER, AT(weft_train, across_lr), "1", 1e-6, 100, NULL, NULL,
     "learning rate of that optimizer; 1 without momentum: a plain average"},
    {"fragments", WEFT_FIELD_INTEGER, AT(weft_train, fragments), "1", 1, 1e6, NULL, NULL,
     "parts of the model that are averaged in different steps: part l % fragments has layer l"},
    {"rule", WEFT_FIELD_CHOICE, AT(weft_train, across_rule), "\"mean\"", 0, 0, average_rules, NULL,
     "mean over all nodes, or gossip: each node averages with one neighbour on a ring, by turns "
     "with "
     "the next and the one before"},
};
static const struct weft_field_table across_table = {
    "across", "Steps of nodes on their own (docs/hosts.md).", ROWS(across_fields)};

static const struct weft_field train_fields[] = {
    {"steps", WEFT_FIELD_INTEGER, AT(weft_train, steps), "100", 1, 1e12, NULL, NULL,
     "training steps"},
    {"batch", WEFT_FIELD_INTEGER, AT(weft_train, batch), "null", 1, LARGE, NULL, NULL,
     "samples of a step, of all ranks: ranks x micro_batch x grad_accum; left out: that product"},
    {"micro_batch", WEFT_FIELD_AUTO, AT(weft_train, asked.micro_batch), NULL, 1,
     WEFT_MOST_MICRO_BATCH, NULL, NULL,
     "samples of one rank in one micro-step; auto: the planner divides `batch`, and takes the "
     "split "
     "with the fastest step within the memory limit"},
    {"grad_accum", WEFT_FIELD_INTEGER, AT(weft_train, asked.grad_accum), "null", 1,
     WEFT_MOST_MICRO_STEPS, NULL, NULL,
     "micro-steps a step; their gradients are summed before the update; left out: what `batch` "
     "leaves, or 1"},
    {"seq_len", WEFT_FIELD_INTEGER, AT(weft_train, seq_len), NULL, 1, 16777216, NULL, NULL,
     "tokens of a sample"},
    {"seed", WEFT_FIELD_INTEGER, AT(weft_train, seed), "42", 0, LARGE, NULL, NULL,
     "seed of the initial parameters and of the order of the data"},
    {"data", WEFT_FIELD_SHORT, 0, "null", 0, 0, NULL, &data_table,
     "path of a text, read as bytes, of a token file (llm.c's; its header has the number "
     "of tokens modulo 2^32), or of a file of samples (docs/usage.md, Images); a pattern of such "
     "paths (train_*.bin) is read as one; needed to train. "
     "Other files are refused, unless given as `{\"path\": PATH, \"format\": \"bytes\"}`"},
    {"padding", WEFT_FIELD_OBJECT, AT(weft_train, padding), "null", 0, 0, NULL, &padding_table,
     "tokens that fill up samples: no loss, and hidden from an encoder's attention; left out: all "
     "tokens count"},
    {"masked", WEFT_FIELD_OBJECT, AT(weft_train, masked), "null", 0, 0, NULL, &masked_table,
     "predicts masked tokens, as BERT; left out: the next token"},
    {"validation", WEFT_FIELD_OBJECT, 0, "{}", 0, 0, NULL, &validation_table,
     "evaluation on held-out data"},
    {"compare_every", WEFT_FIELD_INTEGER, AT(weft_train, compare_every), "100", 0, 1e12, NULL, NULL,
     "ranks compare their replicated buffers every N steps; 0: never"},
    {"fingerprint", WEFT_FIELD_OBJECT, 0, "{}", 0, 0, NULL, &fingerprint_table,
     "recorded hashes of the parameters"},
    {"precision", WEFT_FIELD_OBJECT, 0, "{}", 0, 0, NULL, &precision_table, "dtypes"},
    {"reduce", WEFT_FIELD_CHOICE, AT(weft_train, cadence), "\"auto\"", 0, 0, cadences, NULL,
     "reductions of gradients over ranks: every micro_step or once a step, which round "
     "differently; auto: the faster one within the memory limit"},
    {"group", WEFT_FIELD_INTEGER, AT(weft_train, group), "null", 1, WEFT_MOST_MICRO_STEPS, NULL,
     NULL,
     "micro-steps of a round, which are added up before one reduction. A step's groups of so many "
     "micro-batches decide its bits, for any number of ranks up to them: if ranks do not divide "
     "them, some are idle in the last round; left out: what `reduce` says"},
    {"delay", WEFT_FIELD_INTEGER, AT(weft_train, delay), "0", 0, 1, NULL, NULL,
     "1: an update applies the gradient of the step before, so no step waits for its own "
     "reductions (docs/hosts.md); the first step updates nothing"},
    {"across", WEFT_FIELD_OBJECT, 0, "{}", 0, 0, NULL, &across_table,
     "training that synchronises nodes less often"},
    {"optimizer", WEFT_FIELD_OBJECT, 0, "{}", 0, 0, NULL, &optimizer_table,
     "the update of parameters"},
    {"loss_scale", WEFT_FIELD_OBJECT, 0, "{}", 0, 0, NULL, &loss_scale_table, "of the loss in f16"},
    {"clip_norm", WEFT_FIELD_NUMBER, AT(weft_train, clip_norm), "1", 0, 1e12, NULL, NULL,
     "largest norm of the gradient of all parameters; 0: no clipping, and a unit is updated as "
     "soon as its own gradient is reduced (except with lamb and adam_mini)"},
    {"lr_schedule", WEFT_FIELD_OBJECT, 0, "{}", 0, 0, NULL, &schedule_table,
     "the learning rate over the steps"},
    {"checkpoint", WEFT_FIELD_OBJECT, 0, "{}", 0, 0, NULL, &checkpoint_table,
     "saved state; `weft train --resume` continues from it"},
};
const struct weft_field_table weft_train_table = {"train", "The training.", ROWS(train_fields)};

/* plan */

static const struct weft_field plan_fields[] = {
    {"for", WEFT_FIELD_CHOICE, AT(weft_plan_options, target), "\"weft\"", 0, 0, weft_target_names,
     NULL,
     "runtime of the plan: weft, or fsdp2 (PyTorch's fully_shard), which restricts policies, "
     "blocks and slots, and holds more memory; fsdp2-default is FSDP2 with its own gathers in "
     "backward. In both the host runs ahead, as on a GPU; with -blocking launches wait for "
     "compute, as on a CPU"},
    {"planner", WEFT_FIELD_STRING, AT(weft_plan_options, planner), "\"ilp\"", 0, 0, NULL, NULL,
     "ilp, or another of docs/planners.md; NAME:SETTING where a published rule has settings"},
    {"work_limit", WEFT_FIELD_COUNT_UNIT, AT(weft_plan_options, work_limit), "\"30G\"", 1e6, 1e15,
     NULL, NULL,
     "work of planning by ilp and greedy; a unit is about a nanosecond of one core. Plans depend "
     "neither on the machine nor on its load"},
    {"time_limit", WEFT_FIELD_TIME, AT(weft_plan_options, time_limit_ns), "null", 1e6, 24 * HOUR_NS,
     NULL, NULL,
     "an alarm that ends planning by ilp and greedy, with a warning, and a word in the plan, that "
     "another run may give another plan; work_limit is at most the work of half this time; left "
     "out: work alone ends planning"},
    {"gap", WEFT_FIELD_NUMBER, AT(weft_plan_options, gap), "0.001", 0, 1, NULL, NULL,
     "(step time - bound) / bound at which the solver stops"},
    {"seed", WEFT_FIELD_INTEGER, AT(weft_plan_options, seed), "1", 0, LARGE, NULL, NULL,
     "of the random planner"},
    {"blocks", WEFT_FIELD_INTEGER, AT(weft_plan_options, blocks), "0", 0, 65536, NULL, NULL,
     "blocks of every unit; 0: from block_size"},
    {"block_size", WEFT_FIELD_BYTES, AT(weft_plan_options, block_bytes), "null", 1, LARGE, NULL,
     NULL, "smallest block; left out: the size that reaches block_efficiency in the profile"},
    {"block_efficiency", WEFT_FIELD_NUMBER, AT(weft_plan_options, block_efficiency), "0.9", 0.01,
     0.99, NULL, NULL, "share of the link's best bandwidth that a block reaches"},
    {"ahead", WEFT_FIELD_INTEGER, AT(weft_plan_options, ahead), "0", 0, 1024, NULL, NULL,
     "plan.for fsdp2: a unit is gathered at most so many units before its use; 0: as the planner "
     "finds best"},
    {"prefetch", WEFT_FIELD_BOOL, AT(weft_plan_options, prefetch), "false", 0, 0, NULL, NULL,
     "plan.for fsdp2: in backward the unit before launches each gather at the latest, as FSDP2's "
     "own rule does; memory is then weighed more closely"},
    {"block_scale", WEFT_FIELD_CHOICE, AT(weft_plan_options, block_scale), "\"usual\"", 0, 0,
     block_scales, NULL,
     "size of blocks: the usual one (of block_size or block_efficiency), half or twice of it, or "
     "whole units; auto: the fastest of these"},
    {"fuse", WEFT_FIELD_BOOL, AT(weft_plan_options, fuse), "true", 0, 0, NULL, NULL,
     "neighbouring layers smaller than a block share a unit"},
    {"policy_limit", WEFT_FIELD_BYTES, AT(weft_plan_options, policy_limit_bytes), "null", 1, LARGE,
     NULL, NULL,
     "two-stage: memory within which it chooses policies, before it places blocks within the "
     "memory "
     "limit; left out: that limit"},
    {"policies", WEFT_FIELD_STRING, AT(weft_plan_options, policies), "\"dp,zero1,sdp,fsdp\"", 1, 0,
     NULL, NULL,
     "allowed policies of units: dp, zero1, sdp, fsdp, hsdp, central, nodes, or their aliases"},
    {"update_ahead", WEFT_FIELD_INTEGER, AT(weft_plan_options, update_ahead), "0", 0, 16384, NULL,
     NULL,
     "with clip_norm 0, or if state may be offloaded: layers between a unit's update and its first "
     "use. More give its gathers more time, and its reductions or copies of state less. 0: the "
     "fastest of 1, 2, 4 and all; with clipping, of 2 and all"},
    {"micro_step_order", WEFT_FIELD_NAMED, AT(weft_plan_options, micro_step_order), "\"step\"", 1,
     16384, micro_step_orders, NULL,
     "order of micro-steps: step, one after the other; layer, all of them run through each layer "
     "before the next one; an integer, through so many layers before the next ones. A step then "
     "gathers and reduces each unit once, and keeps the layers' inputs of all micro-steps. auto: "
     "the order with the faster draft is planned first, with all of the work, and the faster plan "
     "is taken"},
    {"update_in", WEFT_FIELD_NAMED, AT(weft_plan_options, update_in), "\"forward\"", 1, 16384,
     updates_in, NULL,
     "with clip_norm 0, where units are updated: forward, before their next use; backward, some "
     "layers after their own backward, so reduced gradients end there and state moves in both; an "
     "integer, after so many layers. auto: also backward, if its bound is better. In backward, "
     "gradients that are not finite end the run with a part of the units updated"},
    {"recompute", WEFT_FIELD_STRING, AT(weft_plan_options, recompute), "null", 1, 0, NULL, NULL,
     "recomputation of saved activations in backward: a level (none, light, selective, medium, "
     "deep, whole) or several, separated by commas, auto (any level; the planner decides for each "
     "layer), if-needed (none, and auto if nothing fits), or names of layers, "
     "separated by commas, that may recompute; left out: if-needed"},
    {"offload", WEFT_FIELD_OBJECT, AT(weft_plan_options, offload), "null", 0, 0, NULL,
     &weft_offload_table, "tiers that a plan may use; left out: all of the cluster's"},
};
const struct weft_field_table weft_plan_table = {"plan", "The planning.", ROWS(plan_fields)};

/* run */

static const struct weft_field run_fields[] = {
    {"version", WEFT_FIELD_INTEGER, AT(weft_run, version), "1", 1, 1, NULL, NULL,
     "of this format: 1"},
    {"model", WEFT_FIELD_SECTION, 0, NULL, 0, 0, NULL, &weft_model_table, "the model"},
    {"cluster", WEFT_FIELD_SECTION, 0, NULL, 0, 0, NULL, &weft_cluster_table,
     "the machines and links"},
    {"train", WEFT_FIELD_OBJECT, AT(weft_run, train), NULL, 0, 0, NULL, &weft_train_table,
     "the training"},
    {"plan", WEFT_FIELD_OBJECT, AT(weft_run, plan), "{}", 0, 0, NULL, &weft_plan_table,
     "the planning"},
};
const struct weft_field_table weft_run_table = {
    "config",
    "A run. Relative paths count from the directory of the config file, wherever they stand.",
    ROWS(run_fields)};

const char *weft_device_name(enum weft_device_type type)
{
    return devices[type];
}

const char *weft_cadence_name(enum weft_cadence cadence)
{
    return cadences[cadence];
}

bool weft_cadence_read(const char *name, enum weft_cadence *out)
{
    for (int c = 0; c < WEFT_CADENCE_COUNT; c++) {
        if (strcmp(cadences[c], name) != 0) continue;
        *out = (enum weft_cadence)c;
        return true;
    }
    return false;
}
