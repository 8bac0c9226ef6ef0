/* SPDX-License-Identifier: Apache-2.0 */
/* The rank that holds up others, in a control memory without processes. */
#include "runtime/comm/local.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/runtime/comm/ranks.h"

/* A communicator of `n` ranks. This rank has reached a barrier, and no rank has come. */
static void waits_open(struct weft_local_comm *c, int32_t n)
{
    const size_t bytes = weft_comm_control_bytes(n);
    *c = (struct weft_local_comm){.comm = {.ranks = n}, .barriers = 1};
    c->mapped = aligned_alloc((size_t)sysconf(_SC_PAGESIZE), bytes);
    CHECK(c->mapped != NULL, "memory");
    memset(c->mapped, 0, bytes);
    c->control = c->mapped;
    for (int32_t rank = 0; rank < n; rank++)
        atomic_store(&c->control->ranks[rank].pid, getpid());
}

/* `rank` tells for whom it waits. */
static void waits_tell(struct weft_local_comm *c, int32_t rank, enum weft_local_waiter waiter,
                       int32_t other)
{
    c->comm.rank = rank;
    weft_local_note_wait(&c->comm, waiter, other);
}

static void waits_close(struct weft_local_comm *c)
{
    free(c->mapped);
}

/* A barrier that is over says nothing of the stream's wait, and the reverse. */
RANKS_TEST(a_wait_ends_alone)
{
    for (int32_t i = 0; i < WEFT_LOCAL_WAITERS; i++) {
        const enum weft_local_waiter one = (enum weft_local_waiter)i;
        const enum weft_local_waiter other = (enum weft_local_waiter)(WEFT_LOCAL_WAITERS - 1 - i);
        struct weft_local_comm c;
        waits_open(&c, 3);
        waits_tell(&c, 0, one, 2);
        waits_tell(&c, 0, other, -1);
        CHECK(weft_local_cause(&c.comm, 0) == 2, "waiter %d", (int)i);
        waits_tell(&c, 0, one, -1);
        CHECK(weft_local_cause(&c.comm, 0) == 0, "waiter %d", (int)i);
        waits_tell(&c, 0, other, 1);
        waits_tell(&c, 1, one, 2);
        CHECK(weft_local_cause(&c.comm, 0) == 2, "waiter %d", (int)i);
        waits_close(&c);
    }
    return 0;
}
