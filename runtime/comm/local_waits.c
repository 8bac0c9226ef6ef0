/* SPDX-License-Identifier: Apache-2.0 */
/* The rank that holds up others. With groups a rank may be late in one branch because it waits in
 * another one. So ranks tell in the control of all for whom they wait. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/comm/branch.h"
#include "runtime/comm/failure.h"
#include "runtime/comm/local.h"

/* The control of all ranks comes first in the mapping. */
static struct weft_local_rank *rank_of_all(const struct weft_local_comm *c, int32_t rank)
{
    return &((struct weft_local_control *)c->mapped)->ranks[rank];
}

static int32_t count_all(const struct weft_local_comm *c)
{
    return c->comm.trunk != NULL ? c->comm.trunk->ranks : c->comm.ranks;
}

void weft_local_note_wait(const struct weft_comm *comm, enum weft_local_waiter waiter, int32_t rank)
{
    const struct weft_local_comm *c = weft_local_comm_of(comm);
    const int32_t branch = comm->trunk != NULL ? 1 + comm->place.number : 0;
    struct weft_local_rank *self = rank_of_all(c, weft_comm_rank_of_all(comm, comm->rank));
    atomic_store(&self->waits[branch][waiter],
                 rank < 0 ? 0 : 1 + weft_comm_rank_of_all(comm, rank));
}

/* True if the process is stopped (SIGSTOP, a debugger), from /proc: "pid (name) T ...". */
static bool is_stopped(int32_t pid)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) return false;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    const char *end = strrchr(text, ')');
    return end != NULL && (end[1] == ' ' && (end[2] == 'T' || end[2] == 't'));
}

bool weft_local_is_stopped(const struct weft_comm *comm, int32_t rank)
{
    const int32_t pid = atomic_load(&rank_of_all(weft_local_comm_of(comm), rank)->pid);
    return pid > 0 && is_stopped(pid);
}

/* The rank for which another one waits, in the first of its branches; -1: for none. A stopped rank
 * may still tell a wait that is over. */
static int32_t waits_for(const struct weft_local_comm *c, int32_t rank)
{
    const struct weft_local_rank *of = rank_of_all(c, rank);
    int32_t told = 0;
    for (int32_t i = 0; i < WEFT_LOCAL_WAITS * WEFT_LOCAL_WAITERS && told == 0; i++)
        told = atomic_load(&of->waits[i / WEFT_LOCAL_WAITERS][i % WEFT_LOCAL_WAITERS]);
    return told == 0 || weft_local_is_stopped(&c->comm, rank) ? -1 : told - 1;
}

int32_t weft_local_cause(const struct weft_comm *comm, int32_t rank)
{
    const struct weft_local_comm *c = weft_local_comm_of(comm);
    int32_t cause = rank;
    for (int32_t n = count_all(c); n > 0; n--) {
        const int32_t next = waits_for(c, cause);
        if (next < 0) return cause;
        cause = next;
    }
    return rank; /* they wait for one another */
}

/* The rank's calls in this group; of a rank outside it in the communicator of all. */
static const struct weft_local_rank *calls_of(const struct weft_local_comm *c, int32_t rank)
{
    for (int32_t r = 0; r < c->comm.ranks; r++)
        if (weft_comm_rank_of_all(&c->comm, r) == rank) return &c->control->ranks[r];
    return rank_of_all(c, rank);
}

/* Appends "rank 1 (process 17) is alive, its last calls were agree, exchange, call 9". */
static void show_rank(const struct weft_local_comm *c, int32_t rank, struct weft_text *out)
{
    const struct weft_local_rank *peer = calls_of(c, rank);
    const int32_t pid = atomic_load(&peer->pid);
    uint32_t kinds[WEFT_COMM_RECENT];
    weft_text_add(out, out->length > 0 ? "; " : "");
    weft_comm_show_rank(&c->comm, rank, pid, out);
    if (pid == 0) {
        weft_text_add(out, " never started");
        return;
    }
    weft_text_addf(out, " is %s, ",
                   is_stopped(pid) ? "stopped by a signal (SIGCONT continues it)" : "alive");
    weft_local_read_kinds(peer, kinds);
    weft_comm_call_show_recent(atomic_load(&peer->calls), kinds, out);
}

/* Causes of ranks: not known yet, passed on the way to one, or none because they wait for one
 * another. */
enum { UNKNOWN = -1, PASSED = -2, CIRCLE = -3 };

/* Fills the cause of each rank of all. Each rank is asked once, because it may read /proc. */
static void find_causes(const struct weft_local_comm *c, int32_t *next, int32_t *causes)
{
    const int32_t n = count_all(c);
    for (int32_t rank = 0; rank < n; rank++) {
        next[rank] = waits_for(c, rank);
        causes[rank] = next[rank] < 0 ? rank : UNKNOWN;
    }
    for (int32_t rank = 0; rank < n; rank++) {
        int32_t at = rank;
        for (; causes[at] == UNKNOWN; at = next[at])
            causes[at] = PASSED;
        const int32_t cause = causes[at] == PASSED ? CIRCLE : causes[at];
        for (at = rank; causes[at] == PASSED; at = next[at])
            causes[at] = cause;
    }
}

/* Fills the cause of each missing rank of the group; -1: the rank is not missing. */
static void find_late(const struct weft_local_comm *c, const int32_t *causes, int32_t *late)
{
    for (int32_t r = 0; r < c->comm.ranks; r++) {
        const int32_t rank = weft_comm_rank_of_all(&c->comm, r);
        late[r] = causes[rank] == CIRCLE ? rank : causes[rank];
        if (r == c->comm.rank || !weft_local_is_missing(c, r)) late[r] = -1;
    }
}

static void show_causes(const struct weft_local_comm *c, const int32_t *late, bool *shown,
                        struct weft_text *out)
{
    for (int32_t r = 0; r < c->comm.ranks; r++) {
        if (late[r] < 0 || shown[late[r]]) continue;
        shown[late[r]] = true;
        show_rank(c, late[r], out);
    }
    for (int32_t r = 0; r < c->comm.ranks; r++) {
        const int32_t rank = weft_comm_rank_of_all(&c->comm, r);
        if (late[r] >= 0 && late[r] != rank)
            weft_text_addf(out, "; rank %d waits for rank %d", rank, late[r]);
    }
}

void weft_local_show_late(const struct weft_local_comm *c, struct weft_text *out)
{
    const size_t n = (size_t)count_all(c);
    int32_t *words = calloc(3 * n, sizeof *words);
    bool *shown = calloc(n, sizeof *shown);
    if (words != NULL && shown != NULL) {
        int32_t *causes = words + n, *late = words + 2 * n;
        find_causes(c, words, causes);
        find_late(c, causes, late);
        show_causes(c, late, shown, out);
    } else {
        out->failed = true;
    }
    free(shown);
    free(words);
}
