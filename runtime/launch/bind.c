/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* sched_setaffinity */
#include "runtime/launch/bind.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CORES = 64 * WEFT_BIND_WORDS };

/* cpu_set_t has 1,024 cores; the system refuses a set with fewer cores than its own. */
struct core_set {
    uint64_t words[WEFT_BIND_WORDS];
};

static cpu_set_t *cpus_of(struct core_set *set)
{
    return (cpu_set_t *)set;
}

static enum weft_status read_allowed(struct core_set *out, struct weft_error *err)
{
    memset(out, 0, sizeof *out);
    if (sched_getaffinity(0, sizeof *out, cpus_of(out)) == 0) return WEFT_OK;
    return weft_fail(err, WEFT_E_SYSTEM,
                     "cluster.bind: the cores that this process may use cannot be read: %s%s",
                     strerror(errno), errno == EINVAL ? ". Leave cluster.bind out" : "");
}

static enum weft_status check_cores(struct core_set *set, int32_t ranks, int64_t threads,
                                    struct weft_error *err)
{
    const int64_t each = threads > 0 ? threads : 1;
    const int n = CPU_COUNT_S(sizeof *set, cpus_of(set));
    if (n / ranks >= each) return WEFT_OK;
    return weft_fail(
        err, WEFT_E_ENVIRONMENT,
        "cluster.bind gives each rank cores of its own: %d rank%s of %lld thread%s "
        "need %lld and this process may use %d (affinity, cpuset of the cgroup). Start "
        "fewer ranks or threads, allow more cores, or leave cluster.bind out",
        ranks, ranks == 1 ? "" : "s", (long long)each, each == 1 ? "" : "s",
        (long long)(ranks * each), n);
}

enum weft_status weft_bind_check(int32_t ranks, int64_t threads, struct weft_error *err)
{
    struct core_set set;
    WEFT_TRY(read_allowed(&set, err));
    return check_cores(&set, ranks, threads, err);
}

static int compare_cores(const void *a, const void *b)
{
    const struct weft_core *x = a, *y = b;
    if (x->package != y->package) return x->package < y->package ? -1 : 1;
    if (x->core != y->core) return x->core < y->core ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

const struct weft_core *weft_bind_share(struct weft_core *cores, int32_t n, int32_t rank,
                                        int32_t ranks, int32_t *n_own)
{
    qsort(cores, (size_t)n, sizeof *cores, compare_cores);
    *n_own = n / ranks;
    return &cores[rank * *n_own];
}

static int32_t read_place(int number, const char *name)
{
    char path[96];
    int32_t value = -1;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/%s", number, name);
    FILE *file = fopen(path, "r");
    if (file == NULL) return -1;
    if (fscanf(file, "%d", &value) != 1) value = -1;
    fclose(file);
    return value;
}

static enum weft_status find_own(struct core_set *set, int32_t rank, int32_t ranks,
                                 struct core_set *own, struct weft_error *err)
{
    struct weft_core *cores = calloc(MOST_CORES, sizeof *cores);
    int32_t n = 0, n_own;
    if (cores == NULL) return weft_fail_memory(err, "a list of cores");
    for (int i = 0; i < MOST_CORES; i++) {
        if (CPU_ISSET_S(i, sizeof *set, cpus_of(set)))
            cores[n++] = (struct weft_core){read_place(i, "physical_package_id"),
                                            read_place(i, "core_id"), i};
    }
    const struct weft_core *share = weft_bind_share(cores, n, rank, ranks, &n_own);
    memset(own, 0, sizeof *own);
    for (int32_t i = 0; i < n_own; i++)
        CPU_SET_S(share[i].number, sizeof *own, cpus_of(own));
    free(cores);
    return WEFT_OK;
}

enum weft_status weft_bind(int32_t rank, int32_t ranks, int64_t threads, struct weft_binding *out,
                           struct weft_error *err)
{
    struct core_set set, own;
    WEFT_TRY(read_allowed(&set, err));
    WEFT_TRY(check_cores(&set, ranks, threads, err));
    WEFT_TRY(find_own(&set, rank, ranks, &own, err));
    if (sched_setaffinity(0, sizeof own, cpus_of(&own)) != 0)
        return weft_fail(err, WEFT_E_SYSTEM, "cluster.bind: rank %d cannot be bound: %s", rank,
                         strerror(errno));
    out->bound = true;
    memcpy(out->before, set.words, sizeof out->before);
    return WEFT_OK;
}

void weft_unbind(struct weft_binding *binding)
{
    struct core_set set;
    if (!binding->bound) return;
    memcpy(set.words, binding->before, sizeof set.words);
    /* It may fail only if the cpuset has changed meanwhile. Then the new cpuset decides. */
    (void)sched_setaffinity(0, sizeof set, cpus_of(&set));
    binding->bound = false;
}
