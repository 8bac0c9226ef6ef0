/* Launching starts the local ranks of a job and waits until all have ended. Ranks are processes
 * made by exec, each in its own session. They inherit the shared memory of the local communicator
 * as descriptors. They end with the launcher, for any reason, and leave nothing in the system. The
 * rendezvous is the rank's side: it learns its rank, the number of ranks, and the memory's
 * descriptors. */
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
    const char *path;     /* of the program; NULL: this one */
    char *const *argv;    /* of every rank, from argv[0], NULL at the end */
    size_t control_bytes; /* weft_comm_control_bytes(ranks) */
    const int *fds;       /* [n_fds] passed to every rank under the same numbers, besides 0, 1, 2 */
    int32_t n_fds;
    /* [n_environment] "NAME=value", added to this process's environment. */
    const char *const *environment;
    int32_t n_environment;
    int64_t threads;       /* compute threads of a rank; 0: cores / ranks */
    int64_t stop_grace_ns; /* of the request, if `stop` is NULL; 0: WEFT_STOP_GRACE_NS */
    /* The stop request of a caller with handlers that use it before and after. May be NULL. */
    struct weft_stop *stop;
    int64_t hang_ns; /* time that all running ranks may be stopped by signals; 0: no limit */
    void (*look)(void *look_context); /* called about ten times a second meanwhile; or NULL */
    void *look_context;
};

/* Variables that make an OpenMP runtime bind threads to cores. All ranks would bind to the same
 * cores, so they start with binding off. NULL at the end. */
extern const char *const weft_binding_variables[];

struct weft_launch_outcome {
    int32_t rank;                 /* first failed rank, or -1 */
    int exit_code, signal_number; /* of that rank, or 0 */
};

/* Starts the ranks and blocks until all have ended. Ranks read nothing from stdin and share stdout
 * and stderr. Returns WEFT_OK if all exit with 0. `outcome` may be NULL.
 *
 * Otherwise the first failed rank decides the result, and the text names rank and cause. An exit
 * code gives its own status. A signal gives WEFT_E_LOST, or WEFT_E_STOPPED if it asks a rank to
 * stop. The other ranks get SIGTERM after half a second, and SIGKILL after one and a half. If all
 * remaining ranks are stopped for hang_ns, they are killed: WEFT_E_HANG.
 *
 * A stop request (runtime/launch/stop.h) is passed on, each number once. The result is
 * WEFT_E_STOPPED, unless the ranks finish anyway. Ranks may take any time to save; only a second
 * request kills them. If a rank exits with WEFT_E_STOPPED by itself, the others get SIGTERM.
 *
 * WEFT_E_SYSTEM or WEFT_E_NO_INPUT if ranks cannot be started. Call it from a thread that outlives
 * the ranks. No other thread may take signals. */
WEFT_MUST_USE enum weft_status weft_launch(const struct weft_launch_options *options,
                                           struct weft_launch_outcome *outcome,
                                           struct weft_error *err);

struct weft_rendezvous {
    int32_t rank, ranks;
    int control_fd; /* -1: a single process without a launcher */
    int *arena_fds; /* [ranks], or NULL */
};

/* Reads the launcher's variables from the environment. Without them the result is rank 0 of 1.
 * WEFT_E_ENVIRONMENT under another launcher (torchrun, mpirun, srun) with more than one rank; the
 * text gives a cure. WEFT_E_DATA if the variables make no sense. Finish closes the descriptors and
 * accepts {0}. */
WEFT_MUST_USE enum weft_status weft_rendezvous_from_environment(struct weft_rendezvous *out,
                                                                struct weft_error *err);
void weft_rendezvous_finish(struct weft_rendezvous *rendezvous);

/* Another launcher, and its variables for this process. */
struct weft_stranger {
    const char *launcher;               /* "torchrun" */
    const char *rank_name, *ranks_name; /* names of its variables */
    int32_t rank, ranks;
};

/* Returns true and fills *out in a process of another launcher with more than one rank. */
bool weft_rendezvous_find_stranger(struct weft_stranger *out);

/* WEFT_E_ENVIRONMENT under another launcher with more than one rank. Call it before starting ranks:
 * otherwise each process of that launcher would start them. */
WEFT_MUST_USE enum weft_status weft_rendezvous_refuse_strangers(struct weft_error *err);

/* WEFT_E_ENVIRONMENT without /proc, with the command to mount it. Ranks and other child processes
 * need it. */
WEFT_MUST_USE enum weft_status weft_rendezvous_need_proc(struct weft_error *err);

/* Compute threads of this rank: `asked`, or if that is 0 its share of weft_cores(); at least 1. */
int32_t weft_rendezvous_threads(const struct weft_rendezvous *rendezvous, int64_t asked);

#endif
