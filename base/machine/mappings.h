/* The memory that the system lets a process map, as far as it says. */
#ifndef WEFT_BASE_MACHINE_MAPPINGS_H
#define WEFT_BASE_MACHINE_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft_map_limits {
    int64_t mappings;      /* vm.max_map_count; INT64_MAX: none is known */
    int64_t address_bytes; /* RLIMIT_AS, of all mappings; INT64_MAX: none */
    int64_t data_bytes;    /* RLIMIT_DATA, of private memory that can be written; INT64_MAX: none */
};

/* Takes no memory. */
struct weft_map_limits weft_map_limits_read(void);
/* The number in a file such as /proc/sys/vm/max_map_count; INT64_MAX when there is none. */
int64_t weft_map_limit_look(const char *path);

/* Whether a limit of this process refuses it `data_bytes` more of private memory that can be
 * written, and `other_bytes` of other mappings. Writes the limit and its cure: "the process's
 * address space is limited to 1024.0 MiB (RLIMIT_AS), and it uses 970.2 MiB: raise it (ulimit
 * -v)". False if no such limit does; `out` is untouched then. */
bool weft_map_refuses(int64_t data_bytes, int64_t other_bytes, char *out, size_t capacity);

/* Bytes that a thread takes for its stack, as glibc chooses them. */
int64_t weft_thread_stack_bytes(void);

/* Writes the cause and cure of a thread that pthread_create refused with `error`. The system gives
 * one error for too many threads and for no memory for the stack. */
void weft_thread_refusal(int error, char *out, size_t capacity);

enum { WEFT_REFUSAL_BYTES = 256 }; /* of the texts above */

#endif
