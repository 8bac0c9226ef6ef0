/* SPDX-License-Identifier: Apache-2.0 */
/* A double of an MPI library: ranks of one machine over stream sockets. It moves messages in random
 * portions and sometimes not at all, within the rules of MPI: messages of one sender and tag come
 * in order, and the memory of a request is used until it is done. */
#ifndef WEFT_TESTS_RUNTIME_COMM_MPI_DOUBLE_H
#define WEFT_TESTS_RUNTIME_COMM_MPI_DOUBLE_H

#include <stdint.h>

#include "runtime/comm/mpi/mpi.h"

/* sockets[p] leads to rank p. One rank a process. */
struct weft_mpi *mpi_double_start(int32_t rank, int32_t ranks, const int *sockets);

/* Bytes of all messages to that rank. */
int64_t mpi_double_sent(int32_t to);

/* The table, for tests of a library that fails; its functions are those of mpi_double_start. */
extern struct weft_mpi_calls mpi_double_calls;

#endif
