/* SPDX-License-Identifier: Apache-2.0 */
/* A config is the user's input: model, cluster, training settings and planning settings, read and
 * checked with every default filled in. It has no measured values. */
#ifndef WEFT_SPEC_CONFIG_H
#define WEFT_SPEC_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/pool.h"
#include "base/status.h"
#include "base/text.h"
#include "spec/device.h"
#include "spec/layer.h"
#include "spec/model.h"
#include "spec/optimizers.h"
#include "spec/tiers.h"

struct weft_json_writer;
struct weft_kinds; /* spec/kind.h */

struct weft_cluster {
    int64_t ranks;
    int64_t ranks_per_node;     /* resolved: 0 in a file means all ranks in one node */
    int64_t memory_limit_bytes; /* of one rank, everything included; 0: not given */
    int64_t page_bytes;         /* 0: chosen from the least limit */
    int64_t base_bytes;         /* of a rank outside the arena, for the analytic profile */
    struct weft_device_spec device;
    struct {
        struct weft_link intra, inter;
        int64_t alpha_per_node_ns; /* joins inter.alpha_ns for each node after the second */
    } link;
    bool reduce_copies, pools; /* for PyTorch: memory_model/weigh.h */
    int64_t channels;          /* serial lanes of the network: 1, or 2 (gathers, reductions) */
    struct {
        double compute, channel; /* share of its speed that each loses while both run */
    } contention;
    bool emulate_link;   /* the local communicator paces itself by link.intra */
    int64_t threads;     /* compute threads a rank; 0: weft_cores() / ranks */
    bool bind;           /* each local rank keeps to its share of the cores */
    int64_t timeout_ns;  /* longest wait for a rank; 0: left out, see weft_cluster_timeout_ns */
    const char *profile; /* path, resolved against the config's directory; NULL: analytic */
    double price;        /* of an hour of all ranks, in any currency; 0: not given */
    struct weft_host_spec host;
    struct weft_disk_spec disk;
};

enum weft_optimizer_loop { WEFT_LOOP_FOREACH, WEFT_LOOP_FUSED, WEFT_LOOP_FOR, WEFT_LOOP_COUNT };
enum weft_cadence {
    WEFT_CADENCE_AUTO, /* the faster one */
    WEFT_CADENCE_MICRO_STEP,
    WEFT_CADENCE_STEP, /* always used with one micro-step a step */
    WEFT_CADENCE_COUNT
};                                                        /* "reduce" */
const char *weft_cadence_name(enum weft_cadence cadence); /* "auto", "micro_step", "step" */
bool weft_cadence_read(const char *name, enum weft_cadence *out);
/* "format" of data. AUTO: a token file if it has a header, otherwise a text. BYTES: any file. */
enum weft_data_format { WEFT_DATA_AUTO, WEFT_DATA_BYTES, WEFT_DATA_FORMAT_COUNT };
struct weft_train {
    int64_t steps, seq_len, seed;
    int64_t micro_batch, grad_accum, idle; /* the split at hand: weft_config_micro_steps */
    int64_t batch;                         /* samples of a step, of all ranks; 0: not given */
    struct {
        int64_t micro_batch, grad_accum; /* 0: auto; 0: not given */
    } asked;
    const char *data; /* path of a text or token file, resolved; NULL: not given */
    int data_format;  /* enum weft_data_format */
    struct weft_padding padding;
    struct weft_masking masked;
    struct {
        const char *data; /* path, resolved; NULL: not given */
        int data_format;
        double share; /* share of `data` that is held out, at its end */
        int64_t every, samples;
        int64_t batches; /* from older configs, converted to `samples` on reading; 0: not given */
        bool by_batches; /* samples came from batches */
    } validation;
    int64_t compare_every, fingerprint_every; /* steps between two of replicas, of parameters */
    int cadence, across_rule; /* enum weft_cadence, weft_average_rule (config_batch.h) */
    int64_t group;            /* micro-steps of a round; 0: follows from the cadence */
    int64_t delay;            /* steps by which updates lag: 0 or 1 */
    int64_t every, fragments; /* steps between averages over nodes, or 0; parts of the model */
    double across_momentum, across_lr; /* of the step that an average makes; 0 and 1: none */
    struct {
        int compute, reduce, accumulate; /* enum weft_dtype */
    } precision;
    struct {
        int type, loop; /* enum weft_optimizer_type, and weft_optimizer_loop of PyTorch */
        double lr, betas[2], eps, weight_decay, momentum;
        bool exempt_vectors; /* tensors of one dimension do not decay */
    } optimizer;
    struct {
        double initial; /* a power of two */
        int64_t growth_steps;
    } loss_scale;     /* f16 */
    double clip_norm; /* 0 = no clipping */
    struct {
        int64_t every, keep, keep_every, host; /* 0: only at the end, -, none for good, none */
        bool at_end, required, asynchronous;
    } checkpoint;
    struct {
        int type;                                 /* enum weft_lr_schedule */
        int64_t steps, warmup_steps, decay_steps; /* 0: train.steps, -, a tenth of steps */
        double min_ratio;
    } lr_schedule;
};

struct weft_plan_options {
    const char *planner;        /* "ilp", ...; scheduler/ resolves it */
    double work_limit;          /* units of base/work.h */
    int64_t time_limit_ns;      /* of an alarm; 0: none */
    double gap;                 /* relative gap at which the solver may stop */
    int64_t seed;               /* of the random planner */
    int64_t blocks, ahead;      /* of every unit, 0: from block_bytes; memory_model/weigh.h */
    int64_t block_bytes;        /* 0: from the profile's curve, at block_efficiency */
    double block_efficiency;    /* default 0.9 */
    int target, block_scale;    /* spec/target.h, spec/block_scale.h */
    bool fuse, prefetch;        /* small neighbours share a unit; memory_model/weigh.h */
    int64_t policy_limit_bytes; /* for "two-stage"; 0: the memory limit */
    const char *policies;       /* allowed policies, separated by commas */
    int64_t update_ahead; /* without clipping: least number of layers between a unit's update and
                             its first use; 0: the fastest */
    int64_t micro_step_order; /* enum weft_micro_step_order, or layers of a group */
    int64_t update_in;        /* enum weft_update_in, or layers of backward */
    const char *recompute; /* a level, "auto", or names of layers separated by commas; NULL: none */
    struct weft_offload_spec offload;
};

struct weft_config {
    struct weft_pool pool;
    const char *source, *notes;    /* the config's file; lines for the user, "": none */
    bool limit_given;              /* an override gave cluster.memory_limit */
    bool split_given, order_given; /* so a key of the split; train.reduce or train.group */
    struct {
        int64_t micro_batch, group; /* 0: none */
        bool turns;                 /* and `layers` of the order; otherwise it stays open */
        int64_t layers;
    } kept; /* by weft_config_keep_split and weft_config_keep_turns */
    struct weft_model *model;
    struct weft_cluster cluster;
    struct weft_train train;
    struct weft_plan_options plan;
    const uint8_t *recomputes;      /* [n_layers]: a bit for each enum weft_recompute; NULL: none */
    const int32_t *joins;           /* [n_layers], borrowed: shard/units.h; NULL: none */
    const bool *late;               /* [n_layers], borrowed: memory_model/weigh.h; NULL: none */
    const struct weft_kinds *kinds; /* supplied kinds in use; NULL: none */
    bool plain;                     /* products are plain; weft_config_set_plain */
    /* Hash of the plan's inputs: layers; ranks, ranks_per_node, memory_limit, channels; batch,
     * precision, optimizer type; blocks and fuse. Device and link count through the profile's hash;
     * cadence, clipping and update_ahead through the problem's period. */
    struct weft_hash hash;
};

struct weft_config_input {
    const char *bytes; /* JSON; NULL: read the file `source` */
    size_t length;
    const char *source;    /* the file, for messages */
    const char *directory; /* base of relative paths; ignored for a file, which has its own */
    const char *const *overrides;
    int32_t n_overrides;
    const struct weft_kinds *kinds; /* supplied layers, which outlive the config; NULL: none */
};

/* Reads a config. Model and cluster may be paths of files. `overrides` are strings "path.key=value"
 * (value: JSON, or a bare string), applied before decoding. One error has all findings.
 * WEFT_E_NO_INPUT, WEFT_E_DATA, or WEFT_E_USAGE for an override of an impossible key. The caller
 * destroys `out`. */
WEFT_MUST_USE enum weft_status weft_config_load(const struct weft_config_input *input,
                                                struct weft_config **out, struct weft_error *err);
/* The same for a file, and for bytes, without supplied layers. */
WEFT_MUST_USE enum weft_status weft_config_read(const char *path, const char *const *overrides,
                                                int32_t n_overrides, struct weft_config **out,
                                                struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_config_parse(const char *bytes, size_t length,
                                                 const char *source, const char *directory,
                                                 const char *const *overrides, int32_t n_overrides,
                                                 struct weft_config **out, struct weft_error *err);
void weft_config_destroy(struct weft_config *config);

/* Sets cluster.memory_limit, 0 for none, and updates the hash. */
WEFT_MUST_USE enum weft_status weft_config_set_memory_limit(struct weft_config *config,
                                                            int64_t bytes, struct weft_error *err);
/* Writes the resolved config as JSON; weft_config_parse reads it back to an equal config. */
void weft_config_write(const struct weft_config *config, struct weft_text *out);
/* Writes the value of "layers", one entry a layer. */
void weft_layers_encode(const struct weft_model *model, struct weft_json_writer *writer);
struct weft_batch weft_config_batch(const struct weft_config *config);
/* Moments of the optimizer, fp32 numbers for each parameter besides a master: 0 to 2. Whether it
 * has one second moment a tensor. And states that a trained tensor keeps: a bit for each enum
 * weft_state. */
int32_t weft_config_moments(const struct weft_config *config);
bool weft_config_means(const struct weft_config *config);
uint32_t weft_config_states(const struct weft_config *config);
/* The optimizer's name, or "sgd with momentum": updates with equal time an element. */
const char *weft_config_updates(const struct weft_config *config);
bool weft_config_emulates(const struct weft_config *config); /* the link of local ranks */
/* cluster.timeout, or 10 minutes if it is left out: the limit of a wait without a prediction. */
int64_t weft_cluster_timeout_ns(const struct weft_cluster *cluster);

#endif
