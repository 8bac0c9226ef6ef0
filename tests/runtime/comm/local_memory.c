/* The memory that a process may still get, out of files as both versions of cgroups have them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "runtime/comm/local.h"
#include "tests/runtime/comm/ranks.h"

enum { MIB = 1 << 20, PATH_BYTES = 256 };

static char root[] = "/tmp/weft-memory-XXXXXX";

static const char *path_of(const char *name, char out[PATH_BYTES])
{
    snprintf(out, PATH_BYTES, "%s/%s", root, name);
    return out;
}

static void put(const char *directory, const char *name, const char *text)
{
    char at[PATH_BYTES], path[PATH_BYTES * 2];
    struct weft_error err = {0};
    CHECK(weft_file_make_directory(path_of(directory, at), &err) == WEFT_OK, "%s", err.text);
    snprintf(path, sizeof path, "%s/%s", at, name);
    CHECK(weft_file_write(path, text, strlen(text), &err) == WEFT_OK, "%s", err.text);
}

static void finds(int64_t mib, const char *which)
{
    char meminfo[PATH_BYTES], groups[PATH_BYTES], mount[PATH_BYTES], limit[512];
    const struct weft_cgroup_files cgroups = {.groups = path_of("proc/cgroup", groups),
                                              .mount = path_of("cgroup", mount)};
    int64_t available =
        weft_local_memory_look(path_of("proc/meminfo", meminfo), &cgroups, limit, sizeof limit);
    CHECK(available == mib * MIB, "%lld MiB by %s", (long long)available / MIB, limit);
    CHECK(strstr(limit, which), "%s is not in: %s", which, limit);
}

static void put_bytes(const char *directory, const char *name, int64_t mib)
{
    char text[32];
    snprintf(text, sizeof text, "%lld\n", (long long)mib * MIB);
    put(directory, name, text);
}

/* Hybrid systems have a version 2 line too, without the memory controller behind it. */
static void version_1(void)
{
    put("proc", "cgroup", "9:name=systemd:/\n4:hugetlb,memory:/jobs/7\n0::/\n");
    finds(1000, "available memory of this machine");
    put("cgroup/memory/jobs/7", "memory.limit_in_bytes", "9223372036854771712\n");
    put_bytes("cgroup/memory/jobs/7", "memory.usage_in_bytes", 50);
    finds(1000, "available memory of this machine");
    put_bytes("cgroup/memory/jobs/7", "memory.limit_in_bytes", 300);
    put("cgroup/memory/jobs/7", "memory.stat", "cache 5\ntotal_inactive_file 10485760\n");
    finds(260, "memory.limit_in_bytes of");
    /* The group above binds too, down to that of a container whose path is not ours. */
    put_bytes("cgroup/memory", "memory.limit_in_bytes", 200);
    put_bytes("cgroup/memory", "memory.usage_in_bytes", 80);
    finds(120, "cgroup/memory");
    put("proc", "cgroup", "4:memory:/elsewhere/8\n");
    finds(120, "cgroup/memory");
    put("proc", "cgroup", "4:cpuset,cpu:/jobs/7\n");
    finds(1000, "available memory of this machine");
}

static void version_2(void)
{
    put("proc", "cgroup", "0::/user/a\n");
    put("cgroup/user/a", "memory.max", "max\n");
    put_bytes("cgroup/user/a", "memory.current", 10);
    finds(1000, "available memory of this machine");
    put_bytes("cgroup/user/a", "memory.max", 100);
    put("cgroup/user/a", "memory.stat", "inactive_file 1048576\ntotal_inactive_file 99999999\n");
    finds(91, "cgroup/user/a");
    put_bytes("cgroup/user", "memory.max", 40);
    put_bytes("cgroup/user", "memory.current", 60);
    finds(0, "cgroup/user");
}

static void without_files(void)
{
    char limit[64];
    const struct weft_cgroup_files none = {.groups = "/nowhere", .mount = "/nowhere"};
    CHECK(weft_local_memory_look("/nowhere", &none, limit, sizeof limit) == INT64_MAX, "%s", limit);
}

RANKS_TEST(local_memory)
{
    CHECK(mkdtemp(root), "no directory");
    put("proc", "meminfo", "MemTotal: 4096000 kB\nMemAvailable: 1024000 kB\n");
    version_1();
    version_2();
    without_files();
    char command[PATH_BYTES];
    snprintf(command, sizeof command, "rm -r %s", root);
    CHECK(system(command) == 0, "%s is left", root);
    return 0;
}
