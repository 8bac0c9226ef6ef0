/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs as ranks of a world (library/world.h): an MPI launcher has started this program once for
 * each rank. Rank 0 runs the verb, and its jobs run on all ranks, each in its own process. The
 * other ranks only wait for jobs. Rank 0 alone prints. */
#ifndef WEFT_CLI_JOB_HOSTS_H
#define WEFT_CLI_JOB_HOSTS_H

#include <stdbool.h>

#include "base/json/json.h"
#include "cli/command.h"
#include "runtime/launch/rendezvous.h"
#include "spec/config.h"

/* A rank's part of a job. It takes the description and reads the meeting. */
typedef enum weft_status weft_hosts_work_fn(const struct weft_cli *cli,
                                            struct weft_json *description,
                                            const struct weft_rendezvous *meeting,
                                            struct weft_error *err);
/* The work of a verb in a process without a launcher, and on rank 0. */
typedef enum weft_status weft_hosts_verb_fn(const struct weft_cli *cli, struct weft_error *err);

/* Runs the verb, on all ranks of the world if an MPI launcher started this process. All ranks
 * return the same status, and cli->ending says who prints the error. No rank ends before rank 0 has
 * printed, since launchers end the others then. WEFT_E_ENVIRONMENT under a launcher that starts no
 * MPI ranks. */
WEFT_MUST_USE enum weft_status weft_hosts_run(const struct weft_cli *cli, weft_hosts_verb_fn *verb,
                                              weft_hosts_work_fn *work, struct weft_error *err);

/* Inside of the verb: true if its jobs run on the ranks of a world. */
bool weft_hosts_are_ours(void);
/* True if a job has failed: the other ranks have ended, so no further job can run. */
bool weft_hosts_are_over(void);
/* Checks a config against the ranks of the launcher. WEFT_E_DISAGREE if it has other ranks;
 * WEFT_E_USAGE if it asks for local ranks or GPUs. */
WEFT_MUST_USE enum weft_status weft_hosts_check(const struct weft_config *config,
                                                struct weft_error *err);
/* Runs the described job on all ranks, this one too. */
WEFT_MUST_USE enum weft_status weft_hosts_run_job(const struct weft_text *description,
                                                  struct weft_error *err);

#endif
