/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/facts.h"

#include <gnu/libc-version.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/machine/cgroup.h"
#include "base/machine/cores.h"
#include "base/machine/memory.h"
#include "base/process.h"
#include "base/units.h"
#include "cli/build.h"
#include "cli/commit.h"
#include "runtime/comm/local.h"
#include "runtime/launch/launch.h"
#include "runtime/nn/cpu/gemm/gemm.h"

static void tell_version(struct weft_text *out)
{
    weft_text_add(out, WEFT_VERSION);
}

static void tell_commit(struct weft_text *out)
{
    weft_text_add(out, WEFT_BUILD_COMMIT);
}

static void tell_compiler(struct weft_text *out)
{
    weft_text_addf(out, "%s, build type %s, sanitizers %s", WEFT_BUILD_COMPILER, WEFT_BUILD_TYPE,
                   WEFT_BUILD_SANITIZERS);
}

static void tell_libraries(struct weft_text *out)
{
    weft_text_addf(out, "glibc %s", gnu_get_libc_version());
    weft_gemm_add_libraries(out);
}

/* Reads the first line of the file that starts with `key`: the text after it. False if there is
 * none. */
static bool read_line_of(const char *path, const char *key, char *out, size_t capacity)
{
    char line[512];
    bool found = false;
    FILE *file = fopen(path, "re");
    if (file == NULL) return false;
    while (!found && fgets(line, sizeof line, file) != NULL) {
        found = strncmp(line, key, strlen(key)) == 0;
        const char *value = line + strlen(key) + strspn(line + strlen(key), "\t :");
        if (found) snprintf(out, capacity, "%.*s", (int)strcspn(value, "\n"), value);
    }
    fclose(file);
    return found;
}

static void tell_machine(struct weft_text *out)
{
    struct utsname name;
    char model[128];
    if (uname(&name) == 0)
        weft_text_addf(out, "%s %s, %s", name.sysname, name.release, name.machine);
    if (read_line_of("/proc/cpuinfo", "model name", model, sizeof model))
        weft_text_addf(out, ", %s", model);
}

static void tell_cores(struct weft_text *out)
{
    struct weft_core_limits limits;
    weft_core_limits_read(&weft_cgroup_files, &limits);
    weft_text_addf(out, "%ld, of which this process may use %d", sysconf(_SC_NPROCESSORS_ONLN),
                   (int)limits.allowed);
    if (limits.quota > 0)
        weft_text_addf(out, "; a CPU quota gives it the time of %.2f (%s): %d thread%s by default",
                       limits.quota, limits.quota_name, (int)weft_core_limits_threads(&limits),
                       weft_core_limits_threads(&limits) == 1 ? "" : "s");
}

static void tell_load(struct weft_text *out)
{
    double minutes[3];
    FILE *file = fopen("/proc/loadavg", "re");
    if (file != NULL && fscanf(file, "%lf %lf %lf", &minutes[0], &minutes[1], &minutes[2]) == 3)
        weft_text_addf(out, "%.2f in the last minute, %.2f in 5, %.2f in 15", minutes[0],
                       minutes[1], minutes[2]);
    else
        weft_text_add(out, "the system does not say");
    if (file != NULL) fclose(file);
}

static void tell_memory(struct weft_text *out)
{
    char all[WEFT_UNITS_TEXT_BYTES], left[WEFT_UNITS_TEXT_BYTES], limit[512];
    int64_t bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    int64_t left_bytes = weft_memory_available(limit, sizeof limit);
    weft_text_addf(out, "%s", weft_units_show_bytes(bytes, all));
    if (left_bytes < INT64_MAX)
        weft_text_addf(out, ", of which %s can be had (%s)",
                       weft_units_show_bytes(left_bytes, left), limit);
}

static void tell_limits(struct weft_text *out)
{
    static const struct {
        int resource;
        const char *name;
        bool bytes;
    } limits[] = {
        {RLIMIT_AS, "address space", true}, {RLIMIT_DATA, "data", true},
        {RLIMIT_STACK, "stack", true},      {RLIMIT_MEMLOCK, "locked memory", true},
        {RLIMIT_FSIZE, "file size", true},  {RLIMIT_NOFILE, "open files", false},
        {RLIMIT_NPROC, "processes", false}, {RLIMIT_CPU, "CPU seconds", false},
    };
    const char *before = "";
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct rlimit limit;
        char shown[WEFT_UNITS_TEXT_BYTES];
        if (getrlimit((__rlimit_resource_t)limits[i].resource, &limit) != 0) continue;
        if (limit.rlim_cur == RLIM_INFINITY) continue;
        weft_text_addf(out, "%s%s ", before, limits[i].name);
        if (limits[i].bytes)
            weft_text_add(out, weft_units_show_bytes((int64_t)limit.rlim_cur, shown));
        else
            weft_text_addf(out, "%" PRIu64, (uint64_t)limit.rlim_cur);
        before = ", ";
    }
    weft_text_add(out, *before ? "; no other" : "none");
}

/* A limit's file in a control group. It may exist in version 1, version 2 or both. */
struct group_limit {
    struct weft_text *out;
    const char *file;
};

/* "max", "-1" and version 1's huge number mean no limit. */
static void tell_group_limit(void *context, int version, const char *directory)
{
    const struct group_limit *limit = context;
    char path[2048], value[128];
    (void)version;
    snprintf(path, sizeof path, "%s/%s", directory, limit->file);
    if (!read_line_of(path, "", value, sizeof value)) return;
    if (strncmp(value, "max", 3) == 0 || value[0] == '-') return;
    if (strtoll(value, NULL, 10) > INT64_C(1) << 60) return;
    weft_text_addf(limit->out, "; %s is %s", path, value);
}

static void tell_group(void *context, int version, const char *directory)
{
    struct weft_text *out = context;
    if (out->length == 0) weft_text_addf(out, "version %d, %s", version, directory);
}

static void tell_cgroup(struct weft_text *out)
{
    static const char *const limits[][2] = {
        {"memory", "memory.max"}, {"memory", "memory.high"},   {"memory", "memory.limit_in_bytes"},
        {"cpu", "cpu.max"},       {"cpu", "cpu.cfs_quota_us"}, {"pids", "pids.max"},
    };
    weft_cgroup_visit(&weft_cgroup_files, "memory", tell_group, out);
    if (out->length == 0) weft_text_add(out, "none");
    size_t length = out->length;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct group_limit limit = {.out = out, .file = limits[i][1]};
        weft_cgroup_visit(&weft_cgroup_files, limits[i][0], tell_group_limit, &limit);
    }
    if (out->length == length) weft_text_add(out, "; without limits");
}

static void tell_shm(struct weft_text *out)
{
    struct statvfs shm;
    char all[WEFT_UNITS_TEXT_BYTES], left[WEFT_UNITS_TEXT_BYTES];
    if (statvfs("/dev/shm", &shm) != 0) {
        weft_text_add(out, "none; Weft needs none");
        return;
    }
    weft_text_addf(out, "%s, of which %s are free; Weft uses none of it",
                   weft_units_show_bytes((int64_t)shm.f_blocks * (int64_t)shm.f_frsize, all),
                   weft_units_show_bytes((int64_t)shm.f_bavail * (int64_t)shm.f_frsize, left));
}

static void tell_launcher(struct weft_text *out)
{
    static const char *const programs[] = {"flux", "jsrun", "mpirun", "srun", "torchrun"};
    struct weft_stranger stranger;
    if (weft_rendezvous_find_stranger(&stranger))
        weft_text_addf(out, "rank %d of %d of %s (%s and %s are set)", (int)stranger.rank,
                       (int)stranger.ranks, stranger.launcher, stranger.rank_name,
                       stranger.ranks_name);
    else
        weft_text_add(out, "none around this process");
    const char *before = "; in PATH: ";
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        char path[4096];
        if (!weft_process_find(programs[i], path, sizeof path)) continue;
        weft_text_addf(out, "%s%s", before, path);
        before = ", ";
    }
}

extern char **environ;

static void tell_environment(struct weft_text *out)
{
    static const char *const prefixes[] = {"WEFT_",   "OMP_", "GOMP_",   "KMP_",          "DNNL_",
                                           "ONEDNN_", "LD_",  "MALLOC_", "GLIBC_TUNABLES"};
    for (char **at = environ; *at != NULL; at++)
        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
            if (strncmp(*at, prefixes[i], strlen(prefixes[i])) == 0)
                weft_text_addf(out, "%s%s", out->length > 0 ? " " : "", *at);
    if (out->length == 0) weft_text_add(out, "nothing set that changes a run");
    const char *const *binding = weft_binding_variables;
    while (*binding != NULL && getenv(*binding) == NULL)
        binding++;
    if (*binding != NULL)
        weft_text_addf(out, "; ranks do not follow %s: cluster.bind gives them cores of their own",
                       *binding);
}

const struct weft_fact weft_facts[] = {
    {"version", tell_version},
    {"commit", tell_commit},
    {"compiler", tell_compiler},
    {"libraries", tell_libraries},
    {"machine", tell_machine},
    {"cores", tell_cores},
    {"load", tell_load},
    {"memory", tell_memory},
    {"limits", tell_limits},
    {"cgroup", tell_cgroup},
    {"dev_shm", tell_shm},
    {"launcher", tell_launcher},
    {"environment", tell_environment},
    {NULL, NULL},
};
