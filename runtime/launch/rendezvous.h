/* SPDX-License-Identifier: Apache-2.0 */
/* The rendezvous is the rank's side of a launch: it learns its rank, the number of ranks, and the
 * memory's descriptors. */
#ifndef WEFT_RUNTIME_LAUNCH_RENDEZVOUS_H
#define WEFT_RUNTIME_LAUNCH_RENDEZVOUS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* Variables that the launcher sets and the rendezvous reads. */
#define WEFT_RANK_NAME       "RANK"
#define WEFT_WORLD_SIZE_NAME "WORLD_SIZE"
#define WEFT_LOCAL_RANK_NAME "LOCAL_RANK"
#define WEFT_CONTROL_FD_NAME "WEFT_CONTROL_FD"
#define WEFT_ARENA_FDS_NAME  "WEFT_ARENA_FDS"

struct weft_mpi;

struct weft_rendezvous {
    int32_t rank, ranks;
    int control_fd; /* -1: a single process without a launcher, or a rank of MPI */
    int *arena_fds; /* [ranks], or NULL */
    /* For ranks that an MPI launcher started (library/world.h); otherwise NULL and 0. */
    struct weft_mpi *mpi;    /* not owned */
    int32_t *hosts;          /* [ranks], numbered by first appearance */
    int32_t local_rank;      /* on this rank's host */
    int32_t machine_ranks;   /* of all hosts that are of this rank's machine */
    int32_t sharer, sharers; /* number among those with the same set of cores */
    int32_t cores;           /* this rank's share of them, at least 1 */
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
    const char *library; /* module of its ranks' MPI library: "openmpi", "mpich"; or NULL */
    /* Words that make it start MPI ranks, if it counts running tasks but started none of MPI;
     * otherwise NULL. */
    const char *cure;
};

/* Returns true and fills *out in a process of another launcher with more than one rank. */
bool weft_rendezvous_find_stranger(struct weft_stranger *out);

/* WEFT_E_ENVIRONMENT under another launcher with more than one rank. Call it before starting ranks:
 * otherwise each process of that launcher would start them. */
WEFT_MUST_USE enum weft_status weft_rendezvous_refuse_strangers(struct weft_error *err);

/* WEFT_E_DISAGREE if the hosts of the ranks are not nodes of `ranks_per_node` consecutive ranks (0:
 * one node). The text gives the launcher's option. Local ranks have one host. */
WEFT_MUST_USE enum weft_status weft_rendezvous_check_hosts(const struct weft_rendezvous *meeting,
                                                           int64_t ranks_per_node,
                                                           struct weft_error *err);

/* Whether the ranks are on several hosts. */
bool weft_rendezvous_has_hosts(const struct weft_rendezvous *meeting);

/* WEFT_E_ENVIRONMENT without /proc, with the command to mount it. Ranks and other child processes
 * need it. */
WEFT_MUST_USE enum weft_status weft_rendezvous_need_proc(struct weft_error *err);

/* Compute threads of this rank: `asked`, or if that is 0 its share of weft_cores(); at least 1. */
int32_t weft_rendezvous_threads(const struct weft_rendezvous *rendezvous, int64_t asked);

#endif
