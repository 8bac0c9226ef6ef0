/* SPDX-License-Identifier: Apache-2.0 */
/* MPI in this process: one start and one end, whatever communicators are opened in between. Any
 * thread may call these functions, one at a time each; a lock orders their calls of the library.
 * The library makes progress only inside calls, so waits poll. */
#ifndef WEFT_RUNTIME_COMM_MPI_MPI_H
#define WEFT_RUNTIME_COMM_MPI_MPI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "runtime/comm/mpi/calls.h"

struct weft_arena;
struct weft_lifeline;
struct weft_mpi;

/* Messages are told apart by tags. Branch n of a communicator adds (n + 1) * WEFT_MPI_TAGS to its
 * headers' and data's. */
enum weft_mpi_tag {
    WEFT_MPI_HEADER = 1, /* of a collective or an exchange */
    WEFT_MPI_DATA,
    WEFT_MPI_GIVE_UP, /* the sender makes no further call */
    WEFT_MPI_JOB,     /* rank 0's word on the next job */
    WEFT_MPI_OUTCOME, /* of a rank, to rank 0 */
    WEFT_MPI_VERDICT, /* rank 0's, on all outcomes */
    WEFT_MPI_TAGS = 16,
};

struct weft_mpi_options {
    const char *library; /* "openmpi" or "mpich": the one of the launcher */
    /* The launcher's own numbers; the library must agree. ranks 0: unknown. */
    int32_t rank, ranks;
    const char *launcher; /* for messages */
};

/* Opens the library's module and starts MPI; all ranks must call it. WEFT_E_ENVIRONMENT without the
 * module, or if the library counts other ranks than the launcher: then the launcher is another
 * library's. weft_mpi_finish ends it. */
WEFT_MUST_USE enum weft_status weft_mpi_start(const struct weft_mpi_options *options,
                                              struct weft_mpi **out, struct weft_error *err);
/* The same over a table that is there already. */
WEFT_MUST_USE enum weft_status weft_mpi_start_over(const struct weft_mpi_calls *calls,
                                                   const struct weft_mpi_options *options,
                                                   struct weft_mpi **out, struct weft_error *err);
/* Ends MPI on all ranks, and waits for it at most `deadline_ns`: a library that hangs here must not
 * hang a finished run. Returns false if it has not ended; then the process must not wait for its
 * exit handlers. Accepts NULL. */
bool weft_mpi_finish(struct weft_mpi *mpi, int64_t deadline_ns);

int32_t weft_mpi_rank(const struct weft_mpi *mpi);
int32_t weft_mpi_ranks(const struct weft_mpi *mpi);
int64_t weft_mpi_round_bytes(const struct weft_mpi *mpi); /* of the library's table */
/* "Open MPI v4.1.4" */
const char *weft_mpi_version(const struct weft_mpi *mpi);

/* Waits end early for ranks that this lifeline has lost. NULL takes it away. */
void weft_mpi_watch(struct weft_mpi *mpi, const struct weft_lifeline *line);
/* The first rank whose process has ended without a word, or -1. Any thread may ask. */
int32_t weft_mpi_lost(const struct weft_mpi *mpi);

/* Notes a rank that this one waited too long for, itself or by a peer's word. The first one stays.
 * Any thread may call both; -1: none. */
void weft_mpi_miss(struct weft_mpi *mpi, int32_t rank);
int32_t weft_mpi_missed(const struct weft_mpi *mpi);

/* The time since the library was called and has not returned; 0 outside of its calls. */
int64_t weft_mpi_call_ns(const struct weft_mpi *mpi);

/* Nonblocking messages of at most WEFT_MPI_MESSAGE_BYTES. WEFT_E_LOST with the library's words. */
WEFT_MUST_USE enum weft_status weft_mpi_send(struct weft_mpi *mpi, const void *from, int64_t bytes,
                                             int32_t to, int32_t tag, struct weft_mpi_request *out,
                                             struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_mpi_receive(struct weft_mpi *mpi, void *to, int64_t bytes,
                                                int32_t from, int32_t tag,
                                                struct weft_mpi_request *out,
                                                struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_mpi_test(struct weft_mpi *mpi, struct weft_mpi_request *request,
                                             bool *done, struct weft_error *err);
void weft_mpi_drop(struct weft_mpi *mpi, struct weft_mpi_request *request);
/* Sets *rank to a rank whose message of this tag waits, or -1. */
WEFT_MUST_USE enum weft_status weft_mpi_look(struct weft_mpi *mpi, enum weft_mpi_tag tag,
                                             int32_t *rank, struct weft_error *err);

/* The last word of a rank. */
enum { WEFT_MPI_FAREWELL_BYTES = 64 };
/* Tells all other ranks that this one makes no further call, once, and does not wait long for ranks
 * that cannot hear. `farewell` has WEFT_MPI_FAREWELL_BYTES bytes, which WEFT_MPI_GIVE_UP carries.
 * Any thread may call it. */
void weft_mpi_give_up(struct weft_mpi *mpi, const void *farewell);

/* Takes over memory (of malloc) or an arena, until MPI has ended: after a failure messages may
 * still be under way, and a library of a peer may read or write them. Either may be NULL. */
void weft_mpi_keep(struct weft_mpi *mpi, void *memory, struct weft_arena *arena);

/* Blocking messages of any size, in parts. A deadline of 0 is none. WEFT_E_HANG after it, and
 * WEFT_E_LOST if the peer's process has ended: then the rest of the message is dropped, and the two
 * ranks must not use this tag again. */
WEFT_MUST_USE enum weft_status weft_mpi_send_whole(struct weft_mpi *mpi, const void *from,
                                                   int64_t bytes, int32_t to, enum weft_mpi_tag tag,
                                                   int64_t deadline_ns, struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_mpi_receive_whole(struct weft_mpi *mpi, void *to, int64_t bytes,
                                                      int32_t from, enum weft_mpi_tag tag,
                                                      int64_t deadline_ns, struct weft_error *err);

#endif
