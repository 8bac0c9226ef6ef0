/* The memory that a process may still get from the system, as far as it says. */
#ifndef WEFT_BASE_MACHINE_MEMORY_H
#define WEFT_BASE_MACHINE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/machine/cgroup.h"

/* In bytes: the least of what is available on the machine and in the memory cgroups above. Writes
 * the name of the limit that says so. INT64_MAX when nothing does. */
int64_t weft_memory_available(char *limit, size_t limit_bytes);

/* The same out of these files: `meminfo` is as /proc/meminfo. */
int64_t weft_memory_look(const char *meminfo, const struct weft_cgroup_files *groups, char *limit,
                         size_t limit_bytes);

#endif
