/* SPDX-License-Identifier: Apache-2.0 */
/* An elastic run goes on if ranks die: with the same number of ranks from the last checkpoint, and
 * with fewer only if that start fails too. A start fails if ranks die before it saves a step. */
#ifndef WEFT_CLI_JOB_ELASTIC_H
#define WEFT_CLI_JOB_ELASTIC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "cli/command.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/vault/vault.h"
#include "spec/config.h"

struct weft_elastic {
    int64_t least, most;              /* ranks; 0, 0: the run is not elastic */
    int64_t ranks;                    /* of this start */
    int64_t starts;                   /* begun so far */
    int64_t tries;                    /* failed starts of so many ranks since a step was saved */
    int64_t saved_step;               /* last step that any start saved; 0: none */
    int64_t lost_step;                /* last step that the start before did; 0: none */
    int64_t before_ranks;             /* of the start before */
    int64_t step_ns;                  /* predicted, of the start before */
    struct weft_manifest_split split; /* of the first start; zero before it is planned */
    struct weft_vault kept;           /* memory for train.checkpoint.host, of all starts */
    bool keeps, from_memory;          /* has `kept`; saved_step is there and not on the disk */
};

/* Reads --elastic MIN:MAX. A run begins with MAX ranks, or with -n between them. WEFT_E_USAGE for
 * other text, without --run, under an MPI launcher or for more ranks than this process has cores.
 */
WEFT_MUST_USE enum weft_status weft_elastic_read(const struct weft_cli *cli,
                                                 struct weft_elastic *out, struct weft_error *err);

/* Checks the use of train.checkpoint.host before the first plan. A run that is not elastic keeps
 * nothing, with a warning. WEFT_E_USAGE under an MPI launcher. */
WEFT_MUST_USE enum weft_status weft_elastic_check(const struct weft_elastic *elastic,
                                                  const struct weft_config *config,
                                                  struct weft_error *err);
/* Fewer ranks keep more bytes each. WEFT_E_USAGE if those of MIN ranks are above the host's limit,
 * for a start with so few would be refused. */
WEFT_MUST_USE enum weft_status weft_elastic_check_least(const struct weft_elastic *elastic,
                                                        const struct weft_config *config,
                                                        struct weft_error *err);
/* Makes the memory for train.checkpoint.host at the first start of an elastic run. WEFT_E_SYSTEM
 * without it. */
WEFT_MUST_USE enum weft_status weft_elastic_keep(struct weft_elastic *elastic,
                                                 const struct weft_config *config,
                                                 struct weft_error *err);
void weft_elastic_close(struct weft_elastic *elastic);

/* The step that the next start goes on after: the newer one of the disk's and of the memory. */
WEFT_MUST_USE enum weft_status weft_elastic_find_saved(struct weft_elastic *elastic,
                                                       int64_t on_disk, int64_t *out,
                                                       struct weft_error *err);

/* Called after each plan. From the second start on it tells in a line which steps are done again,
 * and how much longer a step is predicted to take. */
void weft_elastic_begin(struct weft_elastic *elastic, int64_t step_ns,
                        const struct weft_manifest_split *split);

/* Whether a run may go on after a start with this status: ranks died. */
bool weft_elastic_may_go_on(const struct weft_elastic *elastic, enum weft_status status);
/* Called after a start, with its last step and the step of the run's last checkpoint. True if ranks
 * died and the run goes on, with elastic->ranks; tells why. */
bool weft_elastic_goes_on(struct weft_elastic *elastic, const struct weft_error *why,
                          int64_t steps_done, int64_t saved_step);

#endif
