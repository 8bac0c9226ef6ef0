/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that the system lets a process map. */
#ifndef WEFT_BASE_MACHINE_MAPPINGS_H
#define WEFT_BASE_MACHINE_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft_map_limits {
    int64_t mappings;      /* vm.max_map_count; INT64_MAX: not known */
    int64_t address_bytes; /* RLIMIT_AS, of all mappings; INT64_MAX: no limit */
    int64_t data_bytes;    /* RLIMIT_DATA, of writable private memory; INT64_MAX: no limit */
};

/* Allocates nothing. */
struct weft_map_limits weft_map_limits_read(void);
/* The number in a file such as /proc/sys/vm/max_map_count; INT64_MAX without one. */
int64_t weft_map_limit_look(const char *path);

/* True if a limit of this process refuses `data_bytes` more of writable private memory and
 * `other_bytes` of other mappings. Writes the limit and its cure: "the process's address space is
 * limited to 1024.0 MiB (RLIMIT_AS), and it uses 970.2 MiB: raise it (ulimit -v)". False leaves
 * `out` untouched. */
bool weft_map_refuses(int64_t data_bytes, int64_t other_bytes, char *out, size_t capacity);

/* Bytes of a thread's stack, as glibc chooses them. */
int64_t weft_thread_stack_bytes(void);

/* Writes the cause and cure for a thread that pthread_create refused with `error`. The system
 * returns one error both for too many threads and for no stack memory. */
void weft_thread_refusal(int error, char *out, size_t capacity);

enum { WEFT_REFUSAL_BYTES = 256 }; /* room for the texts above */

#endif
