/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a function as several local ranks: processes of this program, forked before it has any
 * thread, with the shared memory that the launcher makes. */
#ifndef WEFT_TESTS_RUNTIME_COMM_RANKS_H
#define WEFT_TESTS_RUNTIME_COMM_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/comm/comm.h"

enum { MOST_RANKS = 4 /* of most tests */, ROOM_RANKS = 8 };

struct ranks {
    int32_t n;
    int control_fd;
    int arena_fds[ROOM_RANKS];
    /* With WEFT_TEST_COMM=mpi: [r][p] leads from rank r to rank p. */
    int sockets[ROOM_RANKS][ROOM_RANKS];
    bool over_mpi;
    pid_t pids[ROOM_RANKS];
    int outcomes[ROOM_RANKS]; /* as wait(2) gives them */
};

/* Returns the exit code of the rank. */
typedef int rank_fn(int32_t rank, const struct ranks *ranks, void *argument);

/* Shared memory for n ranks. */
void ranks_open(struct ranks *ranks, int32_t n);
void ranks_close(struct ranks *ranks);

/* Shared memory for n ranks, and their processes. */
void ranks_start(struct ranks *ranks, int32_t n, rank_fn *function, void *argument);
/* Waits for all; returns the number of ranks that did not exit with 0. */
int ranks_wait(struct ranks *ranks);
/* Both. */
int ranks_run(int32_t n, rank_fn *function, void *argument);

/* Options with which a rank opens its communicator. */
struct weft_comm_options ranks_options(int32_t rank, const struct ranks *ranks);

/* A test, which a program of several is told to run by name, and which returns 0:
 *   RANKS_TEST(name) { ... } */
#define RANKS_TEST(name)                                                                           \
    static int name##_test(void);                                                                  \
    __attribute__((constructor)) static void name##_enlist(void)                                   \
    {                                                                                              \
        static struct ranks_test test = {#name, name##_test, NULL};                                \
        ranks_enlist(&test);                                                                       \
    }                                                                                              \
    static int name##_test(void)
struct ranks_test {
    const char *name;
    int (*run)(void);
    struct ranks_test *next;
};
/* Before main, which is in ranks_main.c; a program with a main of its own has no such tests. */
void ranks_enlist(struct ranks_test *test);

/* Says where and exits this process with 1 when the condition does not hold. */
#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) check_failed(__FILE__, __LINE__, #condition, __VA_ARGS__);               \
    } while (0)
_Noreturn void check_failed(const char *file, int line, const char *condition, const char *format,
                            ...) WEFT_PRINTF(4, 5);

#endif
