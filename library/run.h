/* A run of libweft: a plan that is trained by this rank beside the others, what is told of it step
 * by step, and the directory that it is kept in. */
#ifndef WEFT_LIBRARY_RUN_H
#define WEFT_LIBRARY_RUN_H

#include <stdatomic.h>

#include "include/weft.h"
#include "library/machine.h"
#include "library/session.h"
#include "runtime/launch/launch.h"
#include "runtime/train/train.h"

/* Parts of a handle: a session, with a plan for weft_run_session, and a machine that is open. */
struct weft_run_of {
    const struct weft_rendezvous *meeting;
    const struct weft_session *session;
    struct weft_machine *machine; /* a run that goes on takes its checkpoint's way to multiply */
    atomic_int *stop;             /* asks for the end of the step; 0 again on return */
};

/* Collective, before anything is planned. Rank 0 checks the directory of the settings, if they have
 * one (weft_run_directory_check); all ranks return its error. */
WEFT_MUST_USE enum weft_status weft_run_check(const struct weft_run_of *of,
                                              const struct weft_run_settings *settings,
                                              struct weft_error *err);

/* Collective. Trains to the end, or to *stop; with a directory rank 0 keeps the run there. Errors
 * are those of weft_run in weft.h. */
WEFT_MUST_USE enum weft_status weft_run_session(const struct weft_run_of *of,
                                                const struct weft_run_settings *settings,
                                                struct weft_train_result *out,
                                                struct weft_error *err);

#endif
