/* SPDX-License-Identifier: Apache-2.0 */
/* The cores that a process may use. Its affinity (taskset, a cgroup's cpuset) selects them; a CPU
 * quota of a cgroup limits its time on them. */
#ifndef WEFT_BASE_MACHINE_CORES_H
#define WEFT_BASE_MACHINE_CORES_H

#include <stdint.h>

#include "base/machine/cgroup.h"

enum { WEFT_CORES_NAME_BYTES = 1200 };

struct weft_core_limits {
    int32_t allowed; /* cores of the affinity, at least 1 */
    double quota;    /* time in cores: the least of the group and all above; 0: no quota */
    char quota_name[WEFT_CORES_NAME_BYTES]; /* "cpu.max of /sys/fs/cgroup/job", or "" */
};

void weft_core_limits_read(const struct weft_cgroup_files *groups, struct weft_core_limits *out);

/* A CPU quota of a cgroup, which the processes inside share. */
struct weft_core_quota {
    uint64_t device, inode; /* of the cgroup's directory */
    double cores;           /* above 0 */
};
enum { WEFT_CORE_QUOTAS = 15 };

/* Lists the quotas of this process's group and of all groups above it, from the group upwards, at
 * most WEFT_CORE_QUOTAS. Returns their number. */
int32_t weft_core_quotas_read(const struct weft_cgroup_files *groups,
                              struct weft_core_quota out[WEFT_CORE_QUOTAS]);

/* Threads that can compute at once under these limits: the allowed cores, or the quota's whole
 * cores if fewer; at least 1. More threads would exhaust a quota together and then wait for the
 * rest of each period. */
int32_t weft_core_limits_threads(const struct weft_core_limits *limits);

/* The same for this process on this machine. */
int32_t weft_cores(void);

#endif
