/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* sched_getaffinity */
#include "base/machine/cores.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

enum { PATH_BYTES = 1100 };

/* Version 2 has quota and period in one file, version 1 in two. */
static const char quota_v2[] = "cpu.max", quota_v1[] = "cpu.cfs_quota_us",
                  period_v1[] = "cpu.cfs_period_us";

/* Reads at most two numbers at the start of a group's file, and returns their count. "max" is not a
 * number. */
static int read_numbers(const char *directory, const char *name, int64_t out[2])
{
    char path[PATH_BYTES];
    const int length = snprintf(path, sizeof path, "%s/%s", directory, name);
    if (length < 0 || length >= PATH_BYTES) return 0;
    FILE *file = fopen(path, "re");
    if (file == NULL) return 0;
    const int n = fscanf(file, "%" SCNd64 " %" SCNd64, &out[0], &out[1]);
    fclose(file);
    return n < 0 ? 0 : n;
}

/* Reads the quota of a group in cores. In version 1, -1 means no quota. */
static bool read_quota(int version, const char *directory, double *cores)
{
    int64_t quota[2], period[2];
    if (version == 2) {
        if (read_numbers(directory, quota_v2, quota) < 2) return false;
    } else {
        if (read_numbers(directory, quota_v1, quota) < 1) return false;
        if (read_numbers(directory, period_v1, period) < 1) return false;
        quota[1] = period[0];
    }
    if (quota[0] <= 0 || quota[1] <= 0) return false;
    *cores = (double)quota[0] / (double)quota[1];
    return true;
}

static void take_least_quota(void *context, int version, const char *directory)
{
    struct weft_core_limits *limits = context;
    double quota;
    if (!read_quota(version, directory, &quota)) return;
    if (limits->quota > 0 && quota >= limits->quota) return;
    limits->quota = quota;
    snprintf(limits->quota_name, sizeof limits->quota_name, "%s of %.1024s",
             version == 2 ? quota_v2 : quota_v1, directory);
}

struct quotas {
    struct weft_core_quota *out;
    int32_t n;
};

static void list_quota(void *context, int version, const char *directory)
{
    struct quotas *quotas = context;
    struct stat about;
    double cores;
    if (quotas->n == WEFT_CORE_QUOTAS || !read_quota(version, directory, &cores)) return;
    if (stat(directory, &about) != 0) return;
    quotas->out[quotas->n++] =
        (struct weft_core_quota){(uint64_t)about.st_dev, (uint64_t)about.st_ino, cores};
}

int32_t weft_core_quotas_read(const struct weft_cgroup_files *groups,
                              struct weft_core_quota out[WEFT_CORE_QUOTAS])
{
    struct quotas quotas = {.out = out};
    weft_cgroup_visit(groups, "cpu", list_quota, &quotas);
    return quotas.n;
}

/* Cores that this process may use, 1 if unknown. The system refuses a set that is smaller than its
 * own (EINVAL), so larger ones are tried. */
static int32_t count_allowed(void)
{
    enum { MOST_CORES = 1 << 20 };
    for (int cores = CPU_SETSIZE; cores <= MOST_CORES; cores *= 2) {
        const size_t bytes = CPU_ALLOC_SIZE(cores);
        cpu_set_t *set = CPU_ALLOC(cores);
        if (set == NULL) break;
        const int error = sched_getaffinity(0, bytes, set) == 0 ? 0 : errno;
        const int allowed = error == 0 ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (allowed > 0) return allowed;
        if (error != EINVAL) break;
    }
    return 1;
}

void weft_core_limits_read(const struct weft_cgroup_files *groups, struct weft_core_limits *out)
{
    *out = (struct weft_core_limits){.allowed = count_allowed()};
    weft_cgroup_visit(groups, "cpu", take_least_quota, out);
}

int32_t weft_core_limits_threads(const struct weft_core_limits *limits)
{
    if (limits->quota <= 0 || limits->quota >= limits->allowed) return limits->allowed;
    return limits->quota < 1 ? 1 : (int32_t)limits->quota;
}

int32_t weft_cores(void)
{
    struct weft_core_limits limits;
    weft_core_limits_read(&weft_cgroup_files, &limits);
    return weft_core_limits_threads(&limits);
}
