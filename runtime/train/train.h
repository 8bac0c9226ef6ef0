/* To train is to run a plan's program step after step on data: learning rate by schedule, a line a
 * step, numeric failure agreed by all ranks. One process is one rank; every rank calls this with
 * the same arguments. */
#ifndef WEFT_RUNTIME_TRAIN_TRAIN_H
#define WEFT_RUNTIME_TRAIN_TRAIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/status.h"
#include "plan/plan.h"
#include "program/program.h"
#include "program/trace.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/comm/comm.h"
#include "runtime/device/device.h"
#include "runtime/nn/nn.h"
#include "runtime/train/memory.h"

struct weft_exec; /* runtime/exec/exec.h */

struct weft_run_facts {        /* as of the latest step; every line has them */
    double tokens_per_s;       /* unmeasured before the first step */
    int64_t held_bytes;        /* memory of this rank at the last look; unmeasured before that */
    int64_t predicted_step_ns; /* by the plan */
    bool emulated;             /* the link that times depend on */
};

struct weft_step_line { /* what is known after each step; equal on all ranks but for times */
    int64_t step, steps;
    double loss, norm, clip, lr;
    double loss_scale;                          /* 1 but in f16 */
    int64_t step_ns, exposed_ns, overlapped_ns; /* by this rank's trace */
    int64_t data_wait_ns;                       /* before it began, for its data */
    int64_t tokens;                             /* of all ranks in this step */
    struct weft_run_facts run;
};

/* What a loss is the mean of. */
enum weft_loss_of { WEFT_LOSS_OF_BYTE, WEFT_LOSS_OF_TOKEN, WEFT_LOSS_OF_SAMPLE };

struct weft_evaluation_line { /* equal on all ranks but for the time */
    int64_t step, samples;
    double loss; /* natural logarithm */
    enum weft_loss_of of;
    int64_t ns;
    struct weft_run_facts run;
};

struct weft_save_line { /* a checkpoint that was committed */
    int64_t step, bytes;
    int64_t ns;            /* that training stood still for it */
    const char *directory; /* of all checkpoints */
    struct weft_run_facts run;
};

struct weft_train_options {
    const struct weft_config *config;
    const struct weft_plan *plan; /* made for this config: checked by the caller */
    const struct weft_program *program;
    const struct weft_shards *shards;
    struct weft_device *device;
    struct weft_comm *comm;
    struct weft_nn *nn;
    bool poison;
    const struct weft_failpoint *failpoint; /* of tests; may be NULL */
    /* Called with the executor when it is there, and with NULL before it goes, for whoever handles
     * its faults (weft_exec_tell_trespass); may be NULL. */
    void (*on_exec)(void *context, const struct weft_exec *exec);
    /* Called after every step on every rank; may be NULL. A failure ends the run. */
    enum weft_status (*on_step)(void *context, const struct weft_step_line *line,
                                const struct weft_trace *trace, struct weft_error *err);
    /* Called after every evaluation, before on_step; may be NULL. */
    enum weft_status (*on_evaluation)(void *context, const struct weft_evaluation_line *line,
                                      struct weft_error *err);
    /* Called after every checkpoint that was committed; may be NULL. */
    enum weft_status (*on_save)(void *context, const struct weft_save_line *line,
                                struct weft_error *err);
    void *context;
    const char *checkpoints; /* directory that train.checkpoint saves to; NULL: does not save */
    const char *resume;      /* checkpoint to go on from; NULL: none */
    /* Path of weft_origin_find, whose parameters a run without `resume` begins with; NULL: initial
     * values. */
    const char *from;
    const atomic_int *stop; /* set by a signal: finish the step, settle, return; may be NULL */
};

enum { WEFT_TRAIN_MEDIAN_STEPS = 4096 };

struct weft_train_result {
    int64_t steps_done; /* in all, those before a resumed checkpoint included */
    int64_t saved_step; /* of the last checkpoint that was committed; -1: none */
    bool stopped;       /* by *stop of any rank, before the last step */
    /* Losses of this call's steps. Without such steps they are unmeasured, as are all times but the
     * prediction, and measured bytes. */
    double first_loss, last_loss;
    double validation_loss;       /* of the last evaluation; unmeasured if there was none */
    struct weft_hash fingerprint; /* of all parameters at the end */
    struct weft_origin origin;    /* of the run's parameters before its first step */
    /* Medians over the steps after the first two (over all when there are fewer than five), the
     * last WEFT_TRAIN_MEDIAN_STEPS of them. */
    int64_t step_ns, exposed_ns, overlapped_ns;
    int64_t predicted_step_ns; /* by the plan */
    int64_t data_wait_ns;      /* for data on this rank, over all steps after the first two;
                                  unmeasured without those */
    struct weft_tier_use tiers[WEFT_HOME_COUNT]; /* by home */
    struct weft_tier_use outside; /* the part of the device's that is outside the arena */
    int64_t touched_bytes;
    int64_t ring_bytes; /* of a disk's ring, in memory as the system counts it; 0 without one */
    bool emulated;      /* the link that the times depend on */
};

/* Compares what ranks were given (WEFT_E_DISAGREE, runtime/train/identity.h), maps the arena,
 * initialises, runs train.steps steps, settles. WEFT_E_NUMERIC when loss or norm is not finite, on
 * all ranks alike, naming the step. Warns of a rank that is much slower than the others
 * (runtime/train/pace.h), and compares replicas every train.compare_every steps (WEFT_E_NUMERIC).
 */
WEFT_MUST_USE enum weft_status weft_train_run(const struct weft_train_options *options,
                                              struct weft_train_result *out,
                                              struct weft_error *err);

/* WEFT_OK when this version can train the config on this kind of machine: layers with kernels,
 * dtypes that go together, data given and long enough, and no file both trained on and held out.
 * Otherwise the error says the cause and the cure. Reads a bounded part of the data (corpora.h).
 * Warns as weft_train_warn_of_lr does. */
WEFT_MUST_USE enum weft_status weft_train_check(const struct weft_config *config,
                                                struct weft_error *err);

/* Learning rate of step 1, 2, ... */
double weft_train_lr(const struct weft_train *train, int64_t step);

/* Warns of a schedule that does not happen within train.steps: the rate never comes to lr, or never
 * falls though it is to. A warning, because a few steps of a long run's config are a common trial.
 */
void weft_train_warn_of_lr(const struct weft_train *train);

#endif
