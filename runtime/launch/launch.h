/* To launch is to start the local ranks of a job and to see them to their end. Ranks are processes
 * made by exec, each in a session of its own, with the shared memory of the local communicator
 * inherited as descriptors; they end with the launcher, whatever ends it, and leave nothing behind.
 * To meet (rendezvous) is the rank's side: who am I, how many are we, where is the memory. */
#ifndef WEFT_RUNTIME_LAUNCH_LAUNCH_H
#define WEFT_RUNTIME_LAUNCH_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "runtime/launch/stop.h"

enum { WEFT_LAUNCH_MOST_RANKS = 1024 };

struct weft_launch_options {
    int32_t ranks;        /* 1 to WEFT_LAUNCH_MOST_RANKS */
    const char *path;     /* of the program; NULL = this one */
    char *const *argv;    /* what every rank gets, from argv[0], NULL at the end */
    size_t control_bytes; /* weft_comm_control_bytes(ranks) */
    const int *fds;       /* [n_fds] handed to every rank under the same numbers, beside 0, 1, 2 */
    int32_t n_fds;
    /* [n_environment] "NAME=value", beside what this process has. */
    const char *const *environment;
    int32_t n_environment;
    int64_t threads;       /* compute threads of a rank; 0 = cores / ranks */
    int64_t stop_grace_ns; /* of the request, without `stop`; 0 = WEFT_STOP_GRACE_NS */
    /* The request, for a caller with handlers that continue it before and after; NULL = none. */
    struct weft_stop *stop;
    int64_t hang_ns; /* that all ranks still there may be stopped by signals; 0 = for ever */
    void (*look)(void *look_context); /* called about ten times a second meanwhile; or NULL */
    void *look_context;
};

/* Variables by which an OpenMP runtime binds threads to cores. Each rank would take the same cores,
 * so ranks are started with binding off. NULL at the end. */
extern const char *const weft_binding_variables[];

struct weft_launch_outcome {
    int32_t rank;                 /* that failed first, -1 when none did */
    int exit_code, signal_number; /* its; 0 */
};

/* Starts the ranks and blocks until all have ended; none is left on return. Ranks read nothing from
 * stdin and share stdout and stderr. WEFT_OK when all ended with 0. Otherwise the first that
 * failed decides: killed by a signal is WEFT_E_LOST, or WEFT_E_STOPPED by one of those that ask a
 * rank to stop, an exit code is its status, and the text names rank and cause; the others have half
 * a second to notice by themselves, then get SIGTERM, and SIGKILL at one and a half. Ranks that are
 * stopped for hang_ns with none left to miss them are killed: WEFT_E_HANG. A stop request
 * (runtime/launch/stop.h) is passed on, each number once, which makes the result WEFT_E_STOPPED
 * unless the ranks finish all the same. Ranks may take any time to save: only a second request
 * kills them. A rank that exits with WEFT_E_STOPPED by itself makes the others get SIGTERM.
 * WEFT_E_SYSTEM, WEFT_E_NO_INPUT when ranks cannot be started.
 * `outcome` may be NULL. Call it from the thread that outlives the ranks, with no other thread that
 * takes signals. */
WEFT_MUST_USE enum weft_status weft_launch(const struct weft_launch_options *options,
                                           struct weft_launch_outcome *outcome,
                                           struct weft_error *err);

struct weft_rendezvous {
    int32_t rank, ranks;
    int control_fd; /* -1: a single process that was not launched */
    int *arena_fds; /* [ranks], or NULL */
};

/* Reads what the launcher left in the environment; rank 0 of 1 when there is nothing.
 * WEFT_E_ENVIRONMENT under a launcher that is not ours (torchrun, mpirun, srun) with more than one
 * rank, saying what works; WEFT_E_DATA when it makes no sense. Finish takes {0} too, and closes the
 * descriptors, which nobody else does. */
WEFT_MUST_USE enum weft_status weft_rendezvous_from_environment(struct weft_rendezvous *out,
                                                                struct weft_error *err);
void weft_rendezvous_finish(struct weft_rendezvous *rendezvous);

/* A launcher that is not ours, and what its variables say of this process. */
struct weft_stranger {
    const char *launcher;               /* "torchrun" */
    const char *rank_name, *ranks_name; /* of its variables */
    int32_t rank, ranks;
};

/* Fills *out and returns true in a process of such a launcher that has more than one rank. */
bool weft_rendezvous_find_stranger(struct weft_stranger *out);

/* WEFT_E_ENVIRONMENT as above: for who starts ranks, and would start them once in every process of
 * the other launcher. */
WEFT_MUST_USE enum weft_status weft_rendezvous_refuse_strangers(struct weft_error *err);

/* WEFT_E_ENVIRONMENT, with how to mount it, if there is no /proc. Ranks need it, and so do other
 * processes of this program. */
WEFT_MUST_USE enum weft_status weft_rendezvous_need_proc(struct weft_error *err);

/* Compute threads of this rank: `asked`, or its share of weft_cores() when that is 0; at least 1.
 */
int32_t weft_rendezvous_threads(const struct weft_rendezvous *rendezvous, int64_t asked);

#endif
