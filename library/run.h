/* SPDX-License-Identifier: Apache-2.0 */
/* A run of libweft: this rank trains a plan with the other ranks, reports each step, and keeps the
 * run in a directory. */
#ifndef WEFT_LIBRARY_RUN_H
#define WEFT_LIBRARY_RUN_H

#include <stdatomic.h>

#include "include/weft.h"
#include "library/machine.h"
#include "library/session.h"
#include "runtime/launch/launch.h"
#include "runtime/train/train.h"

/* Parts of a handle: a session, with a plan for weft_run_session, and an open machine. */
struct weft_run_of {
    const struct weft_rendezvous *meeting;
    const struct weft_session *session;
    struct weft_machine *machine; /* a resumed run changes its library of products */
    atomic_int *stop;             /* asks to end after the step; 0 again on return */
};

/* Collective, before planning. Rank 0 checks the settings' directory, if any
 * (weft_run_directory_check); all ranks return its error. Without a plan the config keeps the
 * checkpoint's split (weft_split_keep), so planning stages anew. */
WEFT_MUST_USE enum weft_status weft_run_check(const struct weft_run_of *of,
                                              const struct weft_run_settings *settings,
                                              struct weft_error *err);

/* Collective. Trains to the end, or to *stop. Rank 0 keeps the run in its directory, if any. Errors
 * are those of weft_run in weft.h. */
WEFT_MUST_USE enum weft_status weft_run_session(const struct weft_run_of *of,
                                                const struct weft_run_settings *settings,
                                                struct weft_train_result *out,
                                                struct weft_error *err);

#endif
