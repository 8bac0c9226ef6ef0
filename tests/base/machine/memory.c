/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that a process may still get, out of files as both versions of cgroups have them. */
#include "base/machine/memory.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { MEMORY_MIB = 1 << 20, MEMORY_PATH_BYTES = 256 };

static char memory_root[] = "/tmp/weft-memory-XXXXXX";

static const char *meminfo_path(const char *name, char out[MEMORY_PATH_BYTES])
{
    snprintf(out, MEMORY_PATH_BYTES, "%s/%s", memory_root, name);
    return out;
}

static void put_file(const char *directory, const char *name, const char *text)
{
    char at[MEMORY_PATH_BYTES], path[MEMORY_PATH_BYTES * 2];
    struct weft_error err = {0};
    cr_assert(weft_file_make_directory(meminfo_path(directory, at), &err) == WEFT_OK, "%s",
              err.text);
    snprintf(path, sizeof path, "%s/%s", at, name);
    cr_assert(weft_file_write(path, text, strlen(text), &err) == WEFT_OK, "%s", err.text);
}

static void make_memory_root(void)
{
    cr_assert(mkdtemp(memory_root) != NULL, "no directory");
    put_file("proc", "meminfo", "MemTotal: 4096000 kB\nMemAvailable: 1024000 kB\n");
}

static void remove_memory_root(void)
{
    char command[MEMORY_PATH_BYTES];
    snprintf(command, sizeof command, "rm -r %s", memory_root);
    cr_assert(system(command) == 0, "%s is left", memory_root);
}

static void finds_mib(int64_t mib, const char *which)
{
    char meminfo[MEMORY_PATH_BYTES], groups[MEMORY_PATH_BYTES], mount[MEMORY_PATH_BYTES],
        limit[512];
    const struct weft_cgroup_files cgroups = {.groups = meminfo_path("proc/cgroup", groups),
                                              .mount = meminfo_path("cgroup", mount)};
    int64_t available =
        weft_memory_look(meminfo_path("proc/meminfo", meminfo), &cgroups, limit, sizeof limit);
    cr_assert(available == mib * MEMORY_MIB, "%lld MiB by %s", (long long)available / MEMORY_MIB,
              limit);
    cr_assert(strstr(limit, which), "%s is not in: %s", which, limit);
}

static void put_mib(const char *directory, const char *name, int64_t mib)
{
    char text[32];
    snprintf(text, sizeof text, "%lld\n", (long long)mib * MEMORY_MIB);
    put_file(directory, name, text);
}

/* Hybrid systems have a version 2 line too, without the memory controller behind it. */
Test(memory, groups_of_version_1_bind, .init = make_memory_root, .fini = remove_memory_root)
{
    put_file("proc", "cgroup", "9:name=systemd:/\n4:hugetlb,memory:/jobs/7\n0::/\n");
    finds_mib(1000, "available memory of this machine");
    put_file("cgroup/memory/jobs/7", "memory.limit_in_bytes", "9223372036854771712\n");
    put_mib("cgroup/memory/jobs/7", "memory.usage_in_bytes", 50);
    finds_mib(1000, "available memory of this machine");
    put_mib("cgroup/memory/jobs/7", "memory.limit_in_bytes", 300);
    put_file("cgroup/memory/jobs/7", "memory.stat", "cache 5\ntotal_inactive_file 10485760\n");
    finds_mib(260, "memory.limit_in_bytes of");
    /* The group above binds too, down to that of a container whose path is not ours. */
    put_mib("cgroup/memory", "memory.limit_in_bytes", 200);
    put_mib("cgroup/memory", "memory.usage_in_bytes", 80);
    finds_mib(120, "cgroup/memory");
    put_file("proc", "cgroup", "4:memory:/elsewhere/8\n");
    finds_mib(120, "cgroup/memory");
    put_file("proc", "cgroup", "4:cpuset,cpu:/jobs/7\n");
    finds_mib(1000, "available memory of this machine");
}

Test(memory, groups_of_version_2_bind, .init = make_memory_root, .fini = remove_memory_root)
{
    put_file("proc", "cgroup", "0::/user/a\n");
    put_file("cgroup/user/a", "memory.max", "max\n");
    put_mib("cgroup/user/a", "memory.current", 10);
    finds_mib(1000, "available memory of this machine");
    put_mib("cgroup/user/a", "memory.max", 100);
    put_file("cgroup/user/a", "memory.stat",
             "inactive_file 1048576\ntotal_inactive_file 99999999\n");
    finds_mib(91, "cgroup/user/a");
    put_mib("cgroup/user", "memory.max", 40);
    put_mib("cgroup/user", "memory.current", 60);
    finds_mib(0, "cgroup/user");
}

Test(memory, of_a_system_without_files_nothing_is_known)
{
    char limit[64];
    const struct weft_cgroup_files none = {.groups = "/nowhere", .mount = "/nowhere"};
    cr_assert(weft_memory_look("/nowhere", &none, limit, sizeof limit) == INT64_MAX, "%s", limit);
}

Test(memory, what_is_available_has_a_name)
{
    char limit[512] = "";
    const int64_t bytes = weft_memory_available(limit, sizeof limit);
    cr_assert(bytes > 0 && strlen(limit) > 0, "%lld bytes (%s)", (long long)bytes, limit);
}

/* Each limit has the identity of its cgroup, whatever the path to it. Of too many the loosest are
 * dropped. */
Test(memory, limits_are_listed_with_their_owners, .init = make_memory_root,
     .fini = remove_memory_root)
{
    char meminfo[MEMORY_PATH_BYTES], groups[MEMORY_PATH_BYTES], mount[MEMORY_PATH_BYTES];
    char path[MEMORY_PATH_BYTES] = "cgroup", line[MEMORY_PATH_BYTES] = "0::";
    struct weft_memory_limit limits[WEFT_MEMORY_LIMITS];
    struct stat about;
    const struct weft_cgroup_files cgroups = {.groups = meminfo_path("proc/cgroup", groups),
                                              .mount = meminfo_path("cgroup", mount)};
    meminfo_path("proc/meminfo", meminfo);
    put_mib("cgroup", "memory.max", 500);
    put_mib("cgroup", "memory.current", 1);
    put_file("proc", "cgroup", "0::/a\n");
    put_mib("cgroup/a", "memory.max", 70);
    put_mib("cgroup/a", "memory.current", 90);
    cr_assert_eq(weft_memory_list(meminfo, &cgroups, limits), 3);
    cr_assert(limits[0].inode == 0 && limits[0].left_bytes == (int64_t)1000 * MEMORY_MIB);
    cr_assert_eq(stat(meminfo_path("cgroup/a", groups), &about), 0);
    cr_assert(limits[1].inode == (uint64_t)about.st_ino && limits[1].left_bytes == 0);
    cr_assert_eq(limits[1].device, (uint64_t)about.st_dev);
    cr_assert(limits[2].left_bytes == (int64_t)499 * MEMORY_MIB);

    enum { DEPTH = WEFT_MEMORY_LIMITS + 4 };
    for (int i = 0; i < DEPTH; i++) { /* tighter from group to group */
        snprintf(path + strlen(path), sizeof path - strlen(path), "/g");
        snprintf(line + strlen(line), sizeof line - strlen(line), "/g");
        put_mib(path, "memory.max", 400 - i);
        put_mib(path, "memory.current", 0);
    }
    put_file("proc", "cgroup", line);
    meminfo_path("proc/cgroup", groups);
    cr_assert_eq(weft_memory_list(meminfo, &cgroups, limits), WEFT_MEMORY_LIMITS);
    int64_t most = 0, least = INT64_MAX;
    for (int i = 0; i < WEFT_MEMORY_LIMITS; i++) {
        if (limits[i].left_bytes > most) most = limits[i].left_bytes;
        if (limits[i].left_bytes < least) least = limits[i].left_bytes;
    }
    cr_assert_eq(least, (int64_t)(400 - DEPTH + 1) * MEMORY_MIB);
    cr_assert_eq(most, (int64_t)(400 - DEPTH + WEFT_MEMORY_LIMITS) * MEMORY_MIB);
}
