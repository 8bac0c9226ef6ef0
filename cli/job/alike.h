/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the hosts of a world: programs, libraries, machines, clocks, and the working directory
 * that all ranks should share. It is the part of `weft doctor` under an MPI launcher. */
#ifndef WEFT_CLI_JOB_ALIKE_H
#define WEFT_CLI_JOB_ALIKE_H

#include "cli/job/hosts.h"

enum weft_alike_kind { WEFT_ALIKE_FINE, WEFT_ALIKE_DIFFERS, WEFT_ALIKE_HARMS };

/* Takes a finding: "clocks", "alike to 2 ms". */
typedef void weft_alike_note_fn(void *context, const char *what, enum weft_alike_kind kind,
                                const char *text);

/* The part of all ranks, which compare themselves. Rank 0 keeps the findings. */
WEFT_MUST_USE enum weft_status weft_alike_work(const struct weft_cli *cli,
                                               struct weft_json *description,
                                               const struct weft_rendezvous *meeting,
                                               struct weft_error *err);

/* Rank 0, inside of the verb: starts the part of all ranks and tells the findings. */
WEFT_MUST_USE enum weft_status weft_alike_tell(weft_alike_note_fn *note, void *context,
                                               struct weft_error *err);

#endif
