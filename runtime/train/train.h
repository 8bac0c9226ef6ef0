/* SPDX-License-Identifier: Apache-2.0 */
/* Training runs a plan's program on data, step by step: learning rate by schedule, one line per
 * step, numeric failures agreed by all ranks. One process is one rank, and all ranks call this with
 * the same arguments. */
#ifndef WEFT_RUNTIME_TRAIN_TRAIN_H
#define WEFT_RUNTIME_TRAIN_TRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/status.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/train/memory.h"
#include "runtime/train/options.h"

enum { WEFT_TRAIN_MEDIAN_STEPS = 4096 };

struct weft_train_result {
    int64_t steps_done; /* with the steps before a resumed checkpoint */
    int64_t saved_step; /* last committed checkpoint; -1: none */
    bool stopped;       /* by *stop of some rank, before the last step */
    /* Losses of this call's steps. Without such steps they are unmeasured, like all times but the
     * prediction, and like measured bytes. */
    double first_loss, last_loss;
    double validation_loss;       /* of the last evaluation; unmeasured without one */
    struct weft_hash fingerprint; /* of all parameters at the end */
    struct weft_origin origin;    /* of the parameters before the run's first step */
    /* Medians over the last WEFT_TRAIN_MEDIAN_STEPS steps. The first two do not count if there are
     * at least five. */
    int64_t step_ns, exposed_ns, overlapped_ns;
    int64_t predicted_step_ns; /* by the plan */
    int64_t data_wait_ns;      /* of this rank after the first two steps; unmeasured without more */
    struct weft_tier_use tiers[WEFT_LOCATION_COUNT]; /* by location */
    struct weft_tier_use outside;                    /* the device's part outside the arena */
    int64_t touched_bytes;
    int64_t ring_bytes; /* disk's ring in memory, by the system; 0 without one */
    bool emulated;      /* the link; the times depend on it */
};

/* Compares the ranks' inputs (WEFT_E_DISAGREE, runtime/train/identity.h), maps the arena,
 * initialises, runs train.steps steps, and settles. WEFT_E_NUMERIC on all ranks, with the step, if
 * loss or norm is not finite. Warns of a slow rank (runtime/train/pace.h). Compares replicas every
 * train.compare_every steps (WEFT_E_NUMERIC). */
WEFT_MUST_USE enum weft_status weft_train_run(const struct weft_train_options *options,
                                              struct weft_train_result *out,
                                              struct weft_error *err);

/* WEFT_OK if this version can train the config on this kind of machine. Layers need kernels, dtypes
 * must fit together, and data must be long enough. No file may be both trained on and held out.
 * Otherwise the error gives cause and cure. Reads a bounded part of the data (corpora.h). Warns
 * like weft_train_warn_of_lr. */
WEFT_MUST_USE enum weft_status weft_train_check(const struct weft_config *config,
                                                struct weft_error *err);

#endif
