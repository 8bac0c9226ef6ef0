#include "spec/config_tables.h"
#include "spec/kind.h"
#include "spec/planner.h"

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
static const char *const devices[] = {"cpu", "strict", "cuda", NULL};
static const char *const optimizers[] = {"adamw", "sgd", "lamb", NULL};
static const char *const schedules[] = {"constant", "cosine", "linear", "wsd=warmup-stable-decay",
                                        NULL};
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
     "what the layer computes, and so which of the other keys it has"},
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
};
const struct weft_field_table weft_model_table = {
    "model", "What is trained. In the config, or in a file of its own.", ROWS(model_fields)};

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
     "what ranks train on; `strict` is a CPU for tests of Weft itself, which works as late as may "
     "be; `cuda` is a GPU: it needs the module weft_cuda.so (docs/gpu.md)"},
};
static const struct weft_field_table device_table = {
    "device",
    "One device, for the analytic profile: a layer takes flops / (peak x efficiency), and no less "
    "than the bytes that it moves / memory_bandwidth.",
    ROWS(device_fields)};

static const struct weft_field line_fields[] = {
    {"alpha", WEFT_FIELD_TIME, AT(weft_link, alpha_ns), "\"0s\"", 0, HOUR_NS, NULL, NULL,
     "time of a collective that moves nothing"},
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
    "contention", "What compute and communication take from each other, for the analytic profile.",
    ROWS(contention_fields)};

static const struct weft_field cluster_fields[] = {
    {"ranks", WEFT_FIELD_INTEGER, AT(weft_cluster, ranks), NULL, 1, 65536, NULL, NULL,
     "processes that train together, each with a device"},
    {"ranks_per_node", WEFT_FIELD_INTEGER, AT(weft_cluster, ranks_per_node), "0", 0, 65536, NULL,
     NULL, "0: all in one node"},
    {"memory_limit", WEFT_FIELD_BYTES, AT(weft_cluster, memory_limit_bytes), "null", 1, LARGE, NULL,
     NULL, "of one rank, everything included; left out: no limit"},
    {"page", WEFT_FIELD_BYTES, AT(weft_cluster, page_bytes), "null", 4096, 2097152, NULL, NULL,
     "what memory is given out in, a power of two from 4KiB to 2MiB; left out: the largest that is "
     "at most 1/65536 of the least arena, on a GPU 2MiB"},
    {"base", WEFT_FIELD_BYTES, AT(weft_cluster, base_bytes), "\"0B\"", 0, LARGE, NULL, NULL,
     "memory of a rank outside the arena (context, libraries), until it is measured"},
    {"device", WEFT_FIELD_OBJECT, AT(weft_cluster, device), "{}", 0, 0, NULL, &device_table,
     "figures of the device"},
    {"link", WEFT_FIELD_OBJECT, 0, "{}", 0, 0, NULL, &link_table, "figures of the network"},
    {"channels", WEFT_FIELD_INTEGER, AT(weft_cluster, channels), "1", 1, 2, NULL, NULL,
     "collectives under way at once: 2 has one channel for gathers and one for reductions, each as "
     "fast as link says (planning only)"},
    {"contention", WEFT_FIELD_OBJECT, 0, "{}", 0, 0, NULL, &contention_table,
     "how compute and communication slow each other; not beside a profile with times of layers, "
     "which hold it or bring `contention` (weft profile --contention)"},
    {"emulate", WEFT_FIELD_BOOL, AT(weft_cluster, emulate_link), "false", 0, 0, NULL, NULL,
     "local ranks pace their communication by link.intra"},
    {"threads", WEFT_FIELD_INTEGER, AT(weft_cluster, threads), "0", 0, 1024, NULL, NULL,
     "compute threads of a rank; 0: cores, or CPU quota, / ranks"},
    {"bind", WEFT_FIELD_BOOL, AT(weft_cluster, bind), "false", 0, 0, NULL, NULL,
     "each local rank keeps to cores of its own, an equal share of those that Weft may use "
     "(affinity, "
     "cpuset), one a thread at least; for measuring, and where nothing else runs"},
    {"timeout", WEFT_FIELD_TIME, AT(weft_cluster, timeout_ns), "\"10min\"", 1e6, 24 * HOUR_NS, NULL,
     NULL,
     "after which a rank that does not come to a collective, or is stopped with none left to miss "
     "it, is taken to hang"},
    {"profile", WEFT_FIELD_STRING, AT(weft_cluster, profile), "null", 0, 0, NULL, NULL,
     "path of a measured profile; each part that it has replaces the analytic one"},
    {"host", WEFT_FIELD_OBJECT, AT(weft_cluster, host), "null", 0, 0, NULL, &weft_host_table,
     "memory of the host as a tier; left out: there is none"},
    {"disk", WEFT_FIELD_OBJECT, AT(weft_cluster, disk), "null", 0, 0, NULL, &weft_disk_table,
     "a disk as a tier; left out: there is none"},
};
const struct weft_field_table weft_cluster_table = {
    "cluster", "Where it is trained. In the config, or in a file of its own.",
    ROWS(cluster_fields)};

/* train */

static const struct weft_field precision_fields[] = {
    {"compute", WEFT_FIELD_CHOICE, AT(weft_train, precision.compute), "\"f32\"", 0, 0, dtypes, NULL,
     "of layers, parameters and AllGathers; other than f32 it has f32 master parameters"},
    {"reduce", WEFT_FIELD_CHOICE, AT(weft_train, precision.reduce), "\"f32\"", 0, 0, dtypes, NULL,
     "of full gradients and their reduction: f32, or as compute"},
    {"accumulate", WEFT_FIELD_CHOICE, AT(weft_train, precision.accumulate), "\"f32\"", 0, 0, dtypes,
     NULL, "of the reduced gradient: f32, or as reduce"},
};
static const struct weft_field_table precision_table = {"precision", "Dtypes.",
                                                        ROWS(precision_fields)};

static const struct weft_field optimizer_fields[] = {
    {"type", WEFT_FIELD_CHOICE, AT(weft_train, optimizer.type), "\"adamw\"", 0, 0, optimizers, NULL,
     "adamw; sgd with momentum and decay added to the gradient; or lamb, which is adamw with each "
     "tensor's step scaled by the length of its parameters over that of the step"},
    {"lr", WEFT_FIELD_NUMBER, AT(weft_train, optimizer.lr), "0.0006", 0, 1e6, NULL, NULL,
     "learning rate at its highest"},
    {"betas", WEFT_FIELD_NUMBERS, AT(weft_train, optimizer.betas), "[0.9, 0.95]", 0, 0.99999999,
     NULL, NULL, "adamw, lamb: decay of the two moments"},
    {"eps", WEFT_FIELD_NUMBER, AT(weft_train, optimizer.eps), "1e-8", 1e-30, 1, NULL, NULL,
     "adamw, lamb: added to the root of the second moment"},
    {"weight_decay", WEFT_FIELD_NUMBER, AT(weft_train, optimizer.weight_decay), "0.1", 0, 1e6, NULL,
     NULL, "of what exempt_vectors does not exempt"},
    {"exempt_vectors", WEFT_FIELD_BOOL, AT(weft_train, optimizer.exempt_vectors), "true", 0, 0,
     NULL, NULL,
     "biases and norms (tensors of one dimension) have no weight decay, and lamb does not scale "
     "their step"},
    {"momentum", WEFT_FIELD_NUMBER, AT(weft_train, optimizer.momentum), "0.9", 0, 0.99999999, NULL,
     NULL, "sgd: decay of its one moment; 0: none is kept"},
};
static const struct weft_field_table optimizer_table = {"optimizer", "How parameters move.",
                                                        ROWS(optimizer_fields)};

static const struct weft_field loss_scale_fields[] = {
    {"initial", WEFT_FIELD_NUMBER, AT(weft_train, loss_scale.initial), "65536", 1, 16777216, NULL,
     NULL, "at the start, a power of two; halved at a step that overflows, which is done again"},
    {"growth_steps", WEFT_FIELD_INTEGER, AT(weft_train, loss_scale.growth_steps), "2000", 1, LARGE,
     NULL, NULL, "steps in a row without overflow that double it"},
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
};
static const struct weft_field_table schedule_table = {"lr_schedule", "The rate over the steps.",
                                                       ROWS(schedule_fields)};

#define DATA_FORMAT_TEXT                                                                           \
    "auto: a token file by its header, else a text, and what is neither is refused; bytes: "       \
    "whatever is in it, byte by byte"

static const char *const data_formats[] = {"auto", "bytes", NULL};
static const struct weft_field data_fields[] = {
    {"path", WEFT_FIELD_STRING, AT(weft_train, data), NULL, 0, 0, NULL, NULL,
     "of a file, or a pattern of paths"},
    {"format", WEFT_FIELD_CHOICE, AT(weft_train, data_format), "\"auto\"", 0, 0, data_formats, NULL,
     DATA_FORMAT_TEXT},
};
static const struct weft_field_table data_table = {
    "data", "What is read. A path alone means `{\"path\": PATH}`.", ROWS(data_fields)};

static const struct weft_field validation_data_fields[] = {
    {"path", WEFT_FIELD_STRING, AT(weft_train, validation.data), NULL, 0, 0, NULL, NULL,
     "of a file, or a pattern of paths"},
    {"format", WEFT_FIELD_CHOICE, AT(weft_train, validation.data_format), "\"auto\"", 0, 0,
     data_formats, NULL, DATA_FORMAT_TEXT},
};
static const struct weft_field_table validation_data_table = {
    "data", "What is read. A path alone means `{\"path\": PATH}`.", ROWS(validation_data_fields)};

static const struct weft_field validation_fields[] = {
    {"data", WEFT_FIELD_SHORT, 0, "null", 0, 0, NULL, &validation_data_table,
     "path of the held-out data: texts or token files, as above, and no file of train.data"},
    {"share", WEFT_FIELD_NUMBER, AT(weft_train, validation.share), "0", 0, 0.9, NULL, NULL,
     "or: this share of train.data, from its end, is held out"},
    {"every", WEFT_FIELD_INTEGER, AT(weft_train, validation.every), "100", 1, 1e12, NULL, NULL,
     "steps between two evaluations; there is one after the last step too"},
    {"samples", WEFT_FIELD_INTEGER, AT(weft_train, validation.samples), "64", 1, 1e12, NULL, NULL,
     "samples of one evaluation, at even distances in the held-out data: the same ones for any "
     "number of ranks and any micro_batch"},
    {"batches", WEFT_FIELD_INTEGER, AT(weft_train, validation.batches), "null", 1, 1048576, NULL,
     NULL,
     "of configs of older versions, without samples: batches x micro_batch x ranks is their "
     "number. Give samples"},
};
static const struct weft_field_table validation_table = {
    "validation", "Evaluation on data that are not trained on.", ROWS(validation_fields)};

static const struct weft_field checkpoint_fields[] = {
    {"every", WEFT_FIELD_INTEGER, AT(weft_train, checkpoint.every), "0", 0, 1e12, NULL, NULL,
     "steps between two checkpoints; 0: none before the end"},
    {"keep", WEFT_FIELD_INTEGER, AT(weft_train, checkpoint.keep), "2", 2, 1e9, NULL, NULL,
     "checkpoints that stay, the newest ones"},
    {"at_end", WEFT_FIELD_BOOL, AT(weft_train, checkpoint.at_end), "true", 0, 0, NULL, NULL,
     "save behind the last step, and when the run is stopped by a signal"},
    {"asynchronous", WEFT_FIELD_BOOL, AT(weft_train, checkpoint.asynchronous), "true", 0, 0, NULL,
     NULL, "write while the next step computes; the one behind it waits until all is written"},
    {"required", WEFT_FIELD_BOOL, AT(weft_train, checkpoint.required), "false", 0, 0, NULL, NULL,
     "a save that fails ends the run (exit 74); else it is warned of and training goes on, unless "
     "it was that of the last step"},
};
static const struct weft_field_table checkpoint_table = {
    "checkpoint", "Saving, to the run's directory.", ROWS(checkpoint_fields)};

static const struct weft_field train_fields[] = {
    {"steps", WEFT_FIELD_INTEGER, AT(weft_train, steps), "100", 1, 1e12, NULL, NULL,
     "training steps"},
    {"micro_batch", WEFT_FIELD_INTEGER, AT(weft_train, micro_batch), NULL, 1, 1048576, NULL, NULL,
     "samples of one rank in one micro-step"},
    {"grad_accum", WEFT_FIELD_INTEGER, AT(weft_train, grad_accum), "1", 1, 1024, NULL, NULL,
     "micro-steps a step, whose gradients are added up before the update"},
    {"seq_len", WEFT_FIELD_INTEGER, AT(weft_train, seq_len), NULL, 1, 16777216, NULL, NULL,
     "tokens of a sample"},
    {"seed", WEFT_FIELD_INTEGER, AT(weft_train, seed), "42", 0, LARGE, NULL, NULL,
     "of the initial parameters and of the order of the data"},
    {"data", WEFT_FIELD_SHORT, 0, "null", 0, 0, NULL, &data_table,
     "path of a text, read as bytes, or of a token file (llm.c's; its header has the number of "
     "tokens modulo 2^32), or a pattern of such paths (train_*.bin), which are read as one; needed "
     "to train. Other files are refused, unless given as `{\"path\": PATH, \"format\": "
     "\"bytes\"}`"},
    {"validation", WEFT_FIELD_OBJECT, 0, "{}", 0, 0, NULL, &validation_table,
     "evaluation on held-out data"},
    {"compare_every", WEFT_FIELD_INTEGER, AT(weft_train, compare_every), "100", 0, 1e12, NULL, NULL,
     "steps after which ranks compare what they hold alike; 0: never"},
    {"precision", WEFT_FIELD_OBJECT, 0, "{}", 0, 0, NULL, &precision_table, "dtypes"},
    {"reduce", WEFT_FIELD_CHOICE, AT(weft_train, cadence), "\"auto\"", 0, 0, cadences, NULL,
     "when gradients are reduced over ranks: every micro_step or once a step, which round "
     "differently; auto: what is faster within the memory limit"},
    {"optimizer", WEFT_FIELD_OBJECT, 0, "{}", 0, 0, NULL, &optimizer_table, "how parameters move"},
    {"loss_scale", WEFT_FIELD_OBJECT, 0, "{}", 0, 0, NULL, &loss_scale_table, "of the loss in f16"},
    {"clip_norm", WEFT_FIELD_NUMBER, AT(weft_train, clip_norm), "1", 0, 1e12, NULL, NULL,
     "longest gradient over all parameters; 0: any, and a unit is updated as soon as its own "
     "gradient is reduced (but with lamb, whose updates all stand behind the last reduction)"},
    {"lr_schedule", WEFT_FIELD_OBJECT, 0, "{}", 0, 0, NULL, &schedule_table,
     "the rate over the steps"},
    {"checkpoint", WEFT_FIELD_OBJECT, 0, "{}", 0, 0, NULL, &checkpoint_table,
     "saving, to go on from; `weft train --resume` does"},
};
const struct weft_field_table weft_train_table = {"train", "How it is trained.",
                                                  ROWS(train_fields)};

/* plan */

static const struct weft_field plan_fields[] = {
    {"planner", WEFT_FIELD_STRING, AT(weft_plan_options, planner), "\"ilp\"", 0, 0, NULL, NULL,
     "one of " WEFT_PLANNER_NAMES "; NAME:SETTING where a published rule has settings"},
    {"work_limit", WEFT_FIELD_COUNT_UNIT, AT(weft_plan_options, work_limit), "\"30G\"", 1e6, 1e15,
     NULL, NULL,
     "of planning by ilp and greedy; a unit of work is about a nanosecond of one core, and counts "
     "what was done, so that a plan depends neither on the machine nor on what else runs there"},
    {"time_limit", WEFT_FIELD_TIME, AT(weft_plan_options, time_limit_ns), "\"10min\"", 1e6,
     24 * HOUR_NS, NULL, NULL,
     "an alarm that ends planning by ilp and greedy; it is said when it rings, for another run may "
     "then end elsewhere; work_limit is at most as much as half of this time should do"},
    {"gap", WEFT_FIELD_NUMBER, AT(weft_plan_options, gap), "0.001", 0, 1, NULL, NULL,
     "(step time - bound) / bound at which the solver stops"},
    {"seed", WEFT_FIELD_INTEGER, AT(weft_plan_options, seed), "1", 0, LARGE, NULL, NULL,
     "of the random planner"},
    {"blocks", WEFT_FIELD_INTEGER, AT(weft_plan_options, blocks), "0", 0, 65536, NULL, NULL,
     "blocks of every unit; 0: as many as block_size says"},
    {"block_size", WEFT_FIELD_BYTES, AT(weft_plan_options, block_bytes), "null", 1, LARGE, NULL,
     NULL, "smallest block; left out: what reaches block_efficiency in the profile"},
    {"block_efficiency", WEFT_FIELD_NUMBER, AT(weft_plan_options, block_efficiency), "0.9", 0.01,
     0.99, NULL, NULL, "share of the link's best bandwidth that a block reaches"},
    {"fuse", WEFT_FIELD_BOOL, AT(weft_plan_options, fuse), "true", 0, 0, NULL, NULL,
     "neighbouring layers smaller than a block share a unit"},
    {"policy_limit", WEFT_FIELD_BYTES, AT(weft_plan_options, policy_limit_bytes), "null", 1, LARGE,
     NULL, NULL,
     "two-stage: memory within which it chooses policies, before it places blocks within the "
     "memory "
     "limit; left out: that limit"},
    {"policies", WEFT_FIELD_STRING, AT(weft_plan_options, policies), "\"dp,zero1,sdp,fsdp\"", 1, 0,
     NULL, NULL, "that planners may give a unit; of dp, zero1, sdp, fsdp, or their other names"},
    {"update_ahead", WEFT_FIELD_INTEGER, AT(weft_plan_options, update_ahead), "0", 0, 16384, NULL,
     NULL,
     "with clip_norm 0, or where state may be away: layers that run between a unit's update and "
     "its "
     "first use, if there are as many; more leave its gathers more time and its reductions, or its "
     "state on its way, less; 0: the fastest of 1, 2, 4 and as many as there are, with clipping of "
     "2 and as many as there are"},
    {"offload", WEFT_FIELD_OBJECT, AT(weft_plan_options, offload), "null", 0, 0, NULL,
     &weft_offload_table, "tiers that a plan may use; left out: all of the cluster's"},
};
const struct weft_field_table weft_plan_table = {"plan", "How it is planned.", ROWS(plan_fields)};

/* run */

static const struct weft_field run_fields[] = {
    {"version", WEFT_FIELD_INTEGER, AT(weft_run, version), "1", 1, 1, NULL, NULL,
     "of this format: 1"},
    {"model", WEFT_FIELD_SECTION, 0, NULL, 0, 0, NULL, &weft_model_table, "what is trained"},
    {"cluster", WEFT_FIELD_SECTION, 0, NULL, 0, 0, NULL, &weft_cluster_table, "where"},
    {"train", WEFT_FIELD_OBJECT, AT(weft_run, train), NULL, 0, 0, NULL, &weft_train_table, "how"},
    {"plan", WEFT_FIELD_OBJECT, AT(weft_run, plan), "{}", 0, 0, NULL, &weft_plan_table,
     "how it is planned"},
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
