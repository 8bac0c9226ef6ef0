/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a training run, and the lines that it reports to its caller. */
#ifndef WEFT_RUNTIME_TRAIN_OPTIONS_H
#define WEFT_RUNTIME_TRAIN_OPTIONS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/status.h"
#include "base/watch.h"
#include "plan/plan.h"
#include "program/program.h"
#include "program/trace.h"
#include "runtime/checkpoint/vault/vault.h"
#include "runtime/comm/comm.h"
#include "runtime/device/device.h"
#include "runtime/exec/options.h"
#include "runtime/nn/nn.h"

struct weft_exec; /* in runtime/exec/exec.h */

struct weft_run_facts {        /* as of the latest step; part of every line */
    double tokens_per_s;       /* unmeasured before the first step */
    int64_t held_bytes;        /* memory of this rank at the last look; unmeasured before */
    int64_t predicted_step_ns; /* by the plan */
    bool emulated;             /* the link; times depend on it */
};

struct weft_step_line { /* result of a step; times differ by rank */
    int64_t step, steps;
    double loss, norm, clip, lr;
    /* Nodes that step on their own: loss is the mean of all before an average, and of this node
     * after other steps. nodes_loss: of all nodes and steps since they met last. */
    double nodes_loss;
    int64_t nodes_steps;                        /* 0: they did not meet */
    double loss_scale;                          /* 1 unless f16 */
    int64_t step_ns, exposed_ns, overlapped_ns; /* from this rank's trace */
    int64_t compute_ns;                         /* of this rank, as run */
    int64_t data_wait_ns;                       /* waited for data before the step */
    int64_t tokens;                             /* of all ranks in this step */
    double model_flops_per_s;                   /* of all ranks, without recomputation */
    double mfu;                  /* their share of the devices' peak; NaN: the cluster gives none */
    struct weft_hash parameters; /* before the step; zero: not asked for */
    struct weft_group_hashes gradients; /* of this step or the one before */
    struct weft_run_facts run;
};

/* Unit of a mean loss. */
enum weft_loss_of { WEFT_LOSS_OF_BYTE, WEFT_LOSS_OF_TOKEN, WEFT_LOSS_OF_SAMPLE };

struct weft_evaluation_line { /* the time differs by rank */
    int64_t step, samples;
    double loss; /* natural logarithm */
    enum weft_loss_of of;
    int64_t ns;
    struct weft_run_facts run;
};

struct weft_save_line { /* a committed checkpoint */
    int64_t step, bytes;
    int64_t ns;            /* that training stood still for it */
    const char *directory; /* of all checkpoints */
    struct weft_run_facts run;
};

struct weft_train_options {
    const struct weft_config *config;
    const struct weft_plan *plan; /* made for this config; the caller checks */
    const struct weft_program *program;
    const struct weft_shards *shards;
    struct weft_device *device;
    struct weft_comm *comm;
    struct weft_nn *nn;
    bool poison;
    const struct weft_failpoint *failpoint; /* for tests; may be NULL */
    struct weft_watch *watch;               /* shows what start does, then steps; may be NULL */
    /* Called with the executor once it exists, and with NULL before it is destroyed. For fault
     * handlers (weft_exec_tell_trespass). May be NULL. */
    void (*on_exec)(void *context, const struct weft_exec *exec);
    /* Called after every step on every rank; may be NULL. A failure ends the run. */
    enum weft_status (*on_step)(void *context, const struct weft_step_line *line,
                                const struct weft_trace *trace, struct weft_error *err);
    /* Called after every evaluation, before on_step; may be NULL. */
    enum weft_status (*on_evaluation)(void *context, const struct weft_evaluation_line *line,
                                      struct weft_error *err);
    /* Called after every committed checkpoint; may be NULL. */
    enum weft_status (*on_save)(void *context, const struct weft_save_line *line,
                                struct weft_error *err);
    /* Called for every group of a step, with its line or the next one's; of one rank alone. May be
     * NULL. */
    enum weft_status (*on_group)(void *context, const struct weft_group_line *line,
                                 struct weft_error *err);
    void *context;
    bool measured;                 /* the plan's times of collectives: slower ones are warned of */
    bool several_hosts;            /* checkpoints are on a file system that hosts share */
    const char *checkpoints;       /* directory for train.checkpoint; NULL: does not save */
    const char *resume;            /* checkpoint to resume; NULL: none */
    const struct weft_vault *kept; /* memory for train.checkpoint.host; NULL: keeps none */
    /* Path from weft_origin_find with the first parameters of a run without `resume`. NULL: initial
     * values. */
    const char *from;
    /* A replay of a run ends after this step. It holds no evaluation, and refuses a checkpoint of
     * other data or kernels, since its bits could not be the run's. 0: no replay. */
    int64_t replay_to;
    /* Names on which the replayed bits depend (bits.h); NULL: not known. */
    const char *replay_bits;
    /* Hash of the data that the run read in the steps, as text; NULL: not known. */
    const char *replay_data;
    /* Tensors to write, of steps from replay_from on (dump/dump.h); NULL: none. */
    const char *dump, *dump_to;
    int64_t replay_from;
    const atomic_int *stop; /* set by a signal: finish the step, settle, return; may be NULL */
};

#endif
