/* The memory that a process may still get from the system. */
#ifndef WEFT_BASE_MACHINE_MEMORY_H
#define WEFT_BASE_MACHINE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/machine/cgroup.h"

/* Available bytes: the least of the machine's and of all memory cgroups. Writes the name of the
 * binding limit. INT64_MAX if there is none. */
int64_t weft_memory_available(char *limit, size_t limit_bytes);

/* The same from other files; `meminfo` has the form of /proc/meminfo. */
int64_t weft_memory_look(const char *meminfo, const struct weft_cgroup_files *groups, char *limit,
                         size_t limit_bytes);

#endif
