/* SPDX-License-Identifier: Apache-2.0 */
/* The communicator over MPI, for its files: communicator.c makes calls, failures.c gives up,
 * collectives.c has the work on the channel. */
#ifndef WEFT_RUNTIME_COMM_MPI_COMMUNICATOR_H
#define WEFT_RUNTIME_COMM_MPI_COMMUNICATOR_H

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/comm/backend.h"
#include "runtime/comm/comm.h"
#include "runtime/comm/job.h"
#include "runtime/comm/mpi/rounds.h"

/* Goes with every call to all peers. */
struct weft_mpi_header {
    struct weft_comm_call call;
    int64_t arrival_ns; /* on the channel's clock */
    int64_t sent_ns;    /* on this host's */
    uint32_t calls;
    uint32_t raised; /* the carried flag */
};

/* The last word of a rank. */
struct weft_mpi_farewell {
    uint32_t calls;
    uint32_t kinds[WEFT_COMM_RECENT];
    uint32_t lost;   /* 1 + a rank that has ended, if it gives up for that reason; 0: none */
    uint32_t missed; /* 1 + a rank that did not come, if it gives up for that reason; 0: none */
    uint32_t unused[9];
};

_Static_assert(sizeof(struct weft_mpi_farewell) == WEFT_MPI_FAREWELL_BYTES,
               "a farewell is one message");

struct weft_mpi_comm {
    struct weft_comm comm; /* first */
    struct weft_mpi *mpi;
    int64_t timeout_ns, spin_ns;
    struct weft_mpi_rounds rounds;
    struct weft_comm_meter meter;         /* of collectives */
    struct weft_mpi_flow *flows;          /* of a call: its header, then the data */
    struct weft_mpi_header own, *headers; /* [ranks], of the latest call */
    uint32_t *heard; /* [ranks], the peer's latest call that this rank knows of */
    char (*hosts)[WEFT_HOST_NAME_BYTES]; /* [ranks of all], the trunk's */
    pthread_mutex_t lock;                /* of the farewell, since any thread may cancel */
    struct weft_mpi_farewell farewell;
    int64_t looked_ns;
    atomic_bool cancelled;
    struct weft_error broken; /* the first failure; after it ranks are out of step */
    unsigned char *memory;    /* of the arena */
    int64_t flag_offset, link_free_ns;
};

static inline struct weft_mpi_comm *weft_mpi_comm_of(const struct weft_comm *comm)
{
    return (struct weft_mpi_comm *)comm;
}

/* communicator.c */

/* Makes a call: sends its header and n flows of data, which stand after the first of c->flows, and
 * compares the headers of all ranks. *latest_ns, unless NULL, is the latest arrival. */
enum weft_status weft_mpi_make_call(struct weft_mpi_comm *c, const struct weft_comm_call *call,
                                    int64_t arrival_ns, int32_t n, int64_t *latest_ns,
                                    struct weft_error *err);
/* Moves more data of the call. */
enum weft_status weft_mpi_send_flows(struct weft_mpi_comm *c, const struct weft_mpi_flow *flows,
                                     int32_t n, struct weft_error *err);

/* failures.c: each fills c->broken, unless it has an error, and returns the status. */

/* Copies c->broken: after the first failure ranks are out of step. */
enum weft_status weft_mpi_fail_for_good(struct weft_mpi_comm *c, struct weft_error *err);
enum weft_status weft_mpi_fail_cancelled(struct weft_mpi_comm *c);
/* The rank has made another call. */
enum weft_status weft_mpi_fail_differs(struct weft_mpi_comm *c, int32_t rank);
/* Fails if a rank has given up, or its process has ended. */
enum weft_status weft_mpi_look_for_farewells(struct weft_mpi_comm *c);
/* `idle` of struct weft_mpi_rounds. Spins, then sleeps. */
enum weft_status weft_mpi_wait_idly(void *context, int64_t idle_ns, int32_t peer,
                                    struct weft_error *err);

/* collectives.c */

extern weft_comm_task_fn *const weft_mpi_tasks[WEFT_COMM_CALL_COUNT];

#endif
