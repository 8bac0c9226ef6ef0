/* SPDX-License-Identifier: Apache-2.0 */
/* A communicator back end is a const table of functions. Its communicator begins with struct
 * weft_comm. Only back ends and comm.c include this file. comm.h states the contract of each
 * function. */
#ifndef WEFT_RUNTIME_COMM_BACKEND_H
#define WEFT_RUNTIME_COMM_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "runtime/comm/group.h"
#include "runtime/comm/host.h"

struct weft_arena;
struct weft_arena_shape;
struct weft_comm;
struct weft_comm_job;
struct weft_comm_options;
struct weft_comm_meter;
struct weft_ranges;
struct weft_stream;

/* Runs a collective of a back end on the host, on the channel's thread. The job was checked. */
typedef enum weft_status weft_comm_task_fn(struct weft_comm *comm, struct weft_stream *channel,
                                           const struct weft_comm_job *job, struct weft_error *err);

/* The place of a branch in its communicator. */
struct weft_comm_place {
    char lane[WEFT_COMM_LANE_BYTES];
    enum weft_rank_group group;
    int32_t round;      /* of a node and a neighbour: 0 or 1; otherwise -1 */
    int32_t number;     /* among the branches, from 0 */
    int32_t index;      /* of the group, among the branch's groups of as many ranks */
    int32_t first, gap; /* rank r of the group is rank first + r * (1 + gap) of all */
};

struct weft_comm_ops {
    const char *name;
    enum weft_status (*open)(const struct weft_comm_options *options, struct weft_comm **out,
                             struct weft_error *err);
    /* Ends work that uses the arena, which is still mapped. */
    void (*close)(struct weft_comm *comm);
    /* Takes comm->arena, newly mapped, for collectives. All ranks call it. After a failure on any
     * rank detach is called on every one. */
    enum weft_status (*attach)(struct weft_comm *comm, const struct weft_arena_shape *shape,
                               const struct weft_ranges *reads, struct weft_error *err);
    /* Undoes attach, also a failed one. Returns false if a peer may still read the pages. It may
     * take comm->arena over and leave NULL, if a library may still read the addresses. */
    bool (*detach)(struct weft_comm *comm);
    /* Pushes a collective to the channel. Only a back end with `has_owners` gets REDUCE and
     * BROADCAST. */
    void (*post)(struct weft_comm *comm, struct weft_stream *channel,
                 const struct weft_comm_job *job);
    /* [WEFT_COMM_CALL_COUNT], if post is weft_comm_push_task; otherwise NULL. */
    weft_comm_task_fn *const *tasks;
    enum weft_status (*exchange)(struct weft_comm *comm, const void *mine, size_t bytes, void *all,
                                 struct weft_error *err);
    /* NULL: there are only collectives. */
    enum weft_status (*swap)(struct weft_comm *comm, int32_t peer, const void *mine, int64_t bytes,
                             void *theirs, struct weft_error *err);
    void (*carry)(struct weft_comm *comm, int64_t flag_offset);
    void (*cancel)(struct weft_comm *comm);
    int32_t (*lost)(const struct weft_comm *comm); /* NULL: nobody can tell */
    /* Opens a branch of comm, with the rank and the number of ranks of its group. attach of a
     * branch takes over the mapping of `trunk`, and shape and reads are NULL. A NULL function:
     * there are no branches. */
    enum weft_status (*branch)(struct weft_comm *trunk, const struct weft_comm_place *place,
                               int32_t rank, int32_t ranks, struct weft_comm **out,
                               struct weft_error *err);
    bool has_owners;        /* weft_comm_has_owners */
    bool takes_host_memory; /* its arenas are memory of the host, which peers may map */
};

extern const struct weft_comm_ops weft_comm_local, weft_comm_mpi;

enum { WEFT_COMM_DESCRIPTION_BYTES = 128 };

struct weft_comm {
    const struct weft_comm_ops *ops;
    int32_t rank, ranks;
    int32_t ranks_per_node; /* of the sums of this communicator: a branch of a node or across nodes
                               has one level */
    struct weft_comm_meter *meter;             /* of the back end; NULL: traffic is not measured */
    const char (*hosts)[WEFT_HOST_NAME_BYTES]; /* [ranks], of the back end; NULL: not known */
    struct weft_arena *arena;                  /* of weft_comm_open; mapped if is_mapped */
    bool is_mapped;
    int64_t span_bytes; /* of the arena's addresses, if collectives are tasks; 0: not attached */
    /* Next to the arena, of the host or of the GPU: blocks wait there for their sums. A branch has
     * as much. */
    int64_t staging_bytes;
    int64_t patience_ns; /* of weft_comm_expect; 0: none. Branches use their trunk's */
    int64_t longer_ns;   /* of weft_comm_wait_longer */
    struct weft_comm_place place;
    struct weft_comm *trunk; /* NULL: no branch */
    struct weft_comm *branches[WEFT_COMM_MOST_BRANCHES];
    _Atomic int32_t n_branches; /* any thread may cancel them */
    char description[WEFT_COMM_DESCRIPTION_BYTES];
};

/* A branch before its back end opens it, for `branch` of struct weft_comm_ops. */
static inline struct weft_comm weft_comm_branch_of(struct weft_comm *trunk,
                                                   const struct weft_comm_place *place,
                                                   int32_t rank, int32_t ranks)
{
    return (struct weft_comm){.ops = trunk->ops,
                              .rank = rank,
                              .ranks = ranks,
                              .arena = trunk->arena,
                              .place = *place,
                              .trunk = trunk};
}

/* Pushes the task of the job's kind, after a check of the job in the arena. */
void weft_comm_push_task(struct weft_comm *comm, struct weft_stream *channel,
                         const struct weft_comm_job *job);

/* Limit of a wait in a call: that of weft_comm_expect in a collective, otherwise timeout_ns and the
 * time of weft_comm_wait_longer. */
int64_t weft_comm_patience_ns(const struct weft_comm *comm, bool in_collective, int64_t timeout_ns);

#endif
