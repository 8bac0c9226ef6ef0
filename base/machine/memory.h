/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that a process may still get from the system. */
#ifndef WEFT_BASE_MACHINE_MEMORY_H
#define WEFT_BASE_MACHINE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/machine/cgroup.h"

enum { WEFT_MEMORY_LIMITS = 16, WEFT_MEMORY_NAME_BYTES = 208 };

/* A limit of memory that processes share: the machine's, or one of a memory cgroup. */
struct weft_memory_limit {
    uint64_t device, inode;            /* of the cgroup's directory; 0, 0: the machine's memory */
    int64_t left_bytes;                /* at least 0 */
    char name[WEFT_MEMORY_NAME_BYTES]; /* "memory.max of /sys/fs/cgroup/job" */
};

/* Lists the limits that bind this process: the machine's, those of its cgroup and of all above it.
 * If there are more than WEFT_MEMORY_LIMITS, it lists the tightest. Returns their number. */
int32_t weft_memory_limits(struct weft_memory_limit out[WEFT_MEMORY_LIMITS]);

/* The same from other files; `meminfo` has the form of /proc/meminfo. */
int32_t weft_memory_list(const char *meminfo, const struct weft_cgroup_files *groups,
                         struct weft_memory_limit out[WEFT_MEMORY_LIMITS]);

/* Available bytes: the least that a limit leaves. Writes the name of the limit. INT64_MAX and
 * "nothing" without a limit. */
int64_t weft_memory_available(char *limit, size_t limit_bytes);

/* The same from other files. */
int64_t weft_memory_look(const char *meminfo, const struct weft_cgroup_files *groups, char *limit,
                         size_t limit_bytes);

#endif
