/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of ranks swap bytes while other pairs do: each gets its partner's, of any size, in turns.
 */
#define _GNU_SOURCE /* setenv */
#include <stdlib.h>
#include <string.h>

#include "tests/runtime/comm/site.h"

enum { RANKS = 4, ROUNDS = 3, MOST_BYTES = (9 << 20) + 5 };

/* The tournament of four ranks. */
static const int32_t partners[ROUNDS][RANKS] = {{3, 2, 1, 0}, {2, 3, 0, 1}, {1, 0, 3, 2}};

static unsigned char byte_of(int32_t from, int32_t to, int64_t at)
{
    return (unsigned char)(from * 31 + to * 7 + at * 13 + (at >> 9));
}

static void swap_once(struct weft_comm *comm, int32_t rank, int32_t peer, int64_t bytes)
{
    struct weft_error err = {0};
    unsigned char *mine = malloc((size_t)bytes + 1), *theirs = malloc((size_t)bytes + 1);
    CHECK(mine != NULL && theirs != NULL, "%lld bytes", (long long)bytes);
    for (int64_t i = 0; i < bytes; i++)
        mine[i] = byte_of(rank, peer, i);
    memset(theirs, 0xa5, (size_t)bytes + 1);
    CHECK(weft_comm_swap(comm, peer, mine, bytes, theirs, &err) == WEFT_OK, "%s", err.text);
    for (int64_t i = 0; i < bytes; i++)
        CHECK(theirs[i] == byte_of(peer, rank, i), "byte %lld of %lld", (long long)i,
              (long long)bytes);
    CHECK(theirs[bytes] == 0xa5, "a byte too many");
    free(theirs);
    free(mine);
}

static int run_swaps(int32_t rank, const struct ranks *ranks, void *argument)
{
    static const int64_t sizes[] = {0, 1, 4096, (1 << 20) - 1, (1 << 20) + 1, MOST_BYTES};
    struct weft_comm_options options = ranks_options(rank, ranks);
    struct weft_error err = {0};
    struct site s;
    (void)argument;
    site_open(&s, &options, WEFT_CLOCK_WALL, 4096);
    CHECK(weft_comm_swaps(s.comm), "MPI has messages of two ranks");
    CHECK(weft_comm_host(s.comm, RANKS - 1)[0] != '\0', "the host has a name");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int round = 0; round < ROUNDS; round++)
            swap_once(s.comm, rank, partners[round][rank], sizes[i]);
        CHECK(weft_comm_exchange(s.comm, NULL, 0, NULL, &err) == WEFT_OK, "%s", err.text);
    }
    CHECK(weft_comm_swap(s.comm, rank, NULL, 0, NULL, &err) == WEFT_E_INTERNAL, "with itself");
    site_close(&s);
    return 0;
}

static int refuse_swap(int32_t rank, const struct ranks *ranks, void *argument)
{
    struct weft_comm_options options = ranks_options(rank, ranks);
    struct weft_comm *comm = NULL;
    struct weft_error err = {0};
    char byte = 0, other = 0;
    (void)argument;
    CHECK(weft_comm_open("local", &options, &comm, &err) == WEFT_OK, "%s", err.text);
    CHECK(!weft_comm_swaps(comm), "shared memory has collectives only");
    CHECK(weft_comm_swap(comm, 1 - rank, &byte, 1, &other, &err) == WEFT_E_ENVIRONMENT, "local");
    CHECK(strstr(err.text, "\"local\"") != NULL, "%s", err.text);
    CHECK(strcmp(weft_comm_host(comm, 0), "") == 0, "ranks of one machine have no names");
    weft_comm_close(comm);
    return 0;
}

RANKS_TEST(mpi_swap)
{
    CHECK(ranks_run(2, refuse_swap, NULL) == 0, "local ranks");
    setenv("WEFT_TEST_COMM", "mpi", 1);
    CHECK(ranks_run(RANKS, run_swaps, NULL) == 0, "four ranks");
    return 0;
}
