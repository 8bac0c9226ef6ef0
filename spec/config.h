/* A config is what the user says: model, cluster, training settings, planning settings. Read,
 * checked, with every default filled in; nothing in it is measured. */
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
#include "spec/tiers.h"

struct weft_json_writer;
struct weft_kinds; /* spec/kind.h */

struct weft_cluster {
    int64_t ranks;
    int64_t ranks_per_node;     /* 0 in a file = all ranks in one node; resolved here */
    int64_t memory_limit_bytes; /* of one rank, everything included; 0 = not given */
    int64_t page_bytes;         /* 0 = as the least limit asks */
    int64_t base_bytes;         /* "base": of a rank outside the arena, in the analytic profile */
    struct weft_device_spec device;
    struct {
        struct weft_link intra, inter;
    } link;
    int64_t
        channels; /* serial channels of the network: 1, or one for gathers, one for reductions */
    struct {
        double compute, channel; /* share of its speed that each loses while both run */
    } contention;
    bool emulate_link;   /* "emulate": the local communicator paces itself by link.intra */
    int64_t threads;     /* compute threads a rank; 0 = weft_cores() / ranks */
    bool bind;           /* each local rank keeps to its share of the cores */
    int64_t timeout_ns;  /* of waiting for a rank in a collective */
    const char *profile; /* path, relative to the config's directory resolved; NULL = analytic */
    struct weft_host_spec host;
    struct weft_disk_spec disk;
};

enum weft_optimizer_type { WEFT_ADAMW, WEFT_SGD, WEFT_LAMB, WEFT_OPTIMIZER_COUNT };
enum weft_cadence {
    WEFT_CADENCE_AUTO, /* what is faster */
    WEFT_CADENCE_MICRO_STEP,
    WEFT_CADENCE_STEP, /* what it is with one micro-step a step, whatever was asked for */
    WEFT_CADENCE_COUNT
};                                                        /* "reduce" */
const char *weft_cadence_name(enum weft_cadence cadence); /* "auto", "micro_step", "step" */
bool weft_cadence_read(const char *name, enum weft_cadence *out);
enum weft_data_format {                  /* "format" of data */
                        WEFT_DATA_AUTO,  /* a token file by its header, else a text */
                        WEFT_DATA_BYTES, /* any file, byte by byte */
                        WEFT_DATA_FORMAT_COUNT
};
enum weft_lr_schedule {
    WEFT_LR_CONSTANT,
    WEFT_LR_COSINE,
    WEFT_LR_LINEAR,
    WEFT_LR_WSD, /* warm-up, stable, decay (Hu et al. 2024) */
    WEFT_LR_SCHEDULE_COUNT
};

struct weft_train {
    int64_t steps, micro_batch, grad_accum, seq_len, seed;
    const char *data; /* path of a text or token file, resolved; NULL = none given */
    int data_format;  /* enum weft_data_format */
    struct {
        const char *data; /* path, resolved; NULL = none given */
        int data_format;
        double share; /* of `data` above that is held out, from its end */
        int64_t every, samples;
        int64_t batches; /* of older configs: in `samples`, once a config is read; 0 = not given */
        bool by_batches; /* samples were given as batches */
    } validation;
    int64_t compare_every; /* steps between two comparisons of replicas; 0 = never */
    int cadence;           /* enum weft_cadence */
    struct {
        int compute, reduce, accumulate; /* enum weft_dtype */
    } precision;
    struct {
        int type; /* enum weft_optimizer_type */
        double lr, betas[2], eps, weight_decay, momentum;
        bool exempt_vectors; /* tensors of one dimension do not decay */
    } optimizer;
    struct {
        double initial; /* a power of two */
        int64_t growth_steps;
    } loss_scale;     /* f16 */
    double clip_norm; /* 0 = no clipping */
    struct {
        int64_t every, keep; /* every 0: not between beginning and end */
        bool at_end, required, asynchronous;
    } checkpoint;
    struct {
        int type;                          /* enum weft_lr_schedule */
        int64_t warmup_steps, decay_steps; /* decay_steps 0: a tenth of the steps */
        double min_ratio;
    } lr_schedule;
};

struct weft_plan_options {
    const char *planner; /* "ilp", ... resolved by scheduler/ */
    double work_limit;   /* units of base/work.h */
    int64_t time_limit_ns;
    double gap;                 /* relative, at which the solver may stop */
    int64_t seed;               /* of the random planner */
    int64_t blocks;             /* blocks of every unit; 0 = from block_bytes */
    int64_t block_bytes;        /* 0 = from the profile's table, at block_efficiency */
    double block_efficiency;    /* default 0.9 */
    bool fuse;                  /* small neighbours share a unit; default true */
    int64_t policy_limit_bytes; /* of "two-stage"; 0 = the memory limit */
    const char *policies;       /* that units may have, separated by commas */
    int64_t update_ahead;       /* without clipping: layers between a unit's update and its first
                                   use, at least; 0 = what is fastest */
    struct weft_offload_spec offload;
};

struct weft_config {
    struct weft_pool pool;
    const char *source; /* file that it came from */
    bool limit_given;   /* cluster.memory_limit by an override, not by the file */
    struct weft_model *model;
    struct weft_cluster cluster;
    struct weft_train train;
    struct weft_plan_options plan;
    /* Supplied kinds with which the config was read; or NULL. */
    const struct weft_kinds *kinds;

    struct weft_hash hash; /* of what a plan depends on: layers; ranks, ranks_per_node and
                              memory_limit, channels; batch, precision, optimizer type; blocks and
                              fuse. What device and link say comes in through the profile's hash,
                              cadence, clipping and update_ahead through the problem's period */
};

struct weft_config_input {
    const char *bytes; /* JSON; NULL: those of the file `source` */
    size_t length;
    const char *source;    /* the file, for messages */
    const char *directory; /* that paths inside the bytes are relative to; of a file its own */
    const char *const *overrides;
    int32_t n_overrides;
    const struct weft_kinds *kinds; /* supplied layers, which outlive the config; or NULL */
};

/* Reads a config. Model and cluster may be paths of files. `overrides` are n "path.key=value"
 * strings (value: JSON, or a bare string), applied before decoding. All findings at once in one
 * error. WEFT_E_NO_INPUT, WEFT_E_DATA, WEFT_E_USAGE for an override of a key that cannot be. */
WEFT_MUST_USE enum weft_status weft_config_load(const struct weft_config_input *input,
                                                struct weft_config **out, struct weft_error *err);
/* The same of a file, and of bytes, without supplied layers. */
WEFT_MUST_USE enum weft_status weft_config_read(const char *path, const char *const *overrides,
                                                int32_t n_overrides, struct weft_config **out,
                                                struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_config_parse(const char *bytes, size_t length,
                                                 const char *source, const char *directory,
                                                 const char *const *overrides, int32_t n_overrides,
                                                 struct weft_config **out, struct weft_error *err);
void weft_config_destroy(struct weft_config *config);

/* Another cluster.memory_limit, 0 for none, and the hash that goes with it. */
WEFT_MUST_USE enum weft_status weft_config_set_memory_limit(struct weft_config *config,
                                                            int64_t bytes, struct weft_error *err);

/* The resolved config as a JSON document that weft_config_parse reads back to an equal config. */
void weft_config_write(const struct weft_config *config, struct weft_text *out);
/* Writes the layers of a model as the value of "layers", one entry a layer. */
void weft_layers_encode(const struct weft_model *model, struct weft_json_writer *writer);

/* Appends a line for each key of cluster, train and plan in which resolved configs differ, in the
 * config's own units: "cluster.memory_limit: 2GiB, was 1GiB". `counts` says of which keys; NULL: of
 * all. Returns how many there are. `out` may be NULL; it is marked as failed when memory runs out.
 */
int32_t weft_config_compare(const struct weft_config *now, const struct weft_config *before,
                            bool (*counts)(const char *path), struct weft_text *out);

struct weft_batch weft_config_batch(const struct weft_config *config);
/* fp32 numbers that the optimizer keeps for each parameter, beside a master: 0 to 2. */
int32_t weft_config_moments(const struct weft_config *config);
/* "adamw", "lamb", "sgd", "sgd with momentum": what takes the same time by element. */
const char *weft_config_updates(const struct weft_config *config);

/* True when local ranks emulate the link between them, so that times are those of that link. */
bool weft_config_emulates(const struct weft_config *config);

#endif
