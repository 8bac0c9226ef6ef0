/* SPDX-License-Identifier: Apache-2.0 */
/* A control group (cgroup) is a set of processes with limits. A process is in one group of each
 * hierarchy, and the limits of this group and of all groups above it bind. Version 1 has a
 * hierarchy for each set of controllers, version 2 has one for all. */
#ifndef WEFT_BASE_MACHINE_CGROUP_H
#define WEFT_BASE_MACHINE_CGROUP_H

struct weft_cgroup_files {
    const char *groups; /* "/proc/self/cgroup": the groups of this process */
    const char *mount;  /* "/sys/fs/cgroup": the mount point of hierarchies */
};

/* The files of this machine. */
extern const struct weft_cgroup_files weft_cgroup_files;

/* `directory` has the files of a group of `version` 1 or 2. */
typedef void weft_cgroup_visit_fn(void *context, int version, const char *directory);

/* Visits this process's group of the controller ("memory", "cpu"), then each group above it. A
 * machine with both versions has a group of each; only one has the controller's files. Without
 * groups nothing is visited. */
void weft_cgroup_visit(const struct weft_cgroup_files *files, const char *controller,
                       weft_cgroup_visit_fn *visit, void *context);

#endif
