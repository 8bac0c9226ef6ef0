#define _GNU_SOURCE /* sched_setaffinity */
#include "runtime/launch/bind.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(cpu_set_t) == sizeof((struct weft_binding *)NULL)->before, "a set of cores");

static enum weft_status allowed(cpu_set_t *out, struct weft_error *err)
{
    if (sched_getaffinity(0, sizeof *out, out) == 0) return WEFT_OK;
    return weft_fail(err, WEFT_E_SYSTEM,
                     "cluster.bind: the cores that this process may use cannot be read: %s%s",
                     strerror(errno),
                     errno == EINVAL ? ". Weft knows of 1024; leave cluster.bind out" : "");
}

static enum weft_status check(const cpu_set_t *set, int32_t ranks, int64_t threads,
                              struct weft_error *err)
{
    int64_t each = threads > 0 ? threads : 1;
    if (CPU_COUNT(set) / ranks >= each) return WEFT_OK;
    return weft_fail(
        err, WEFT_E_ENVIRONMENT,
        "cluster.bind gives each rank cores of its own: %d rank%s of %lld thread%s "
        "need %lld and this process may use %d (affinity, cpuset of the cgroup). Start "
        "fewer ranks or threads, allow more cores, or leave cluster.bind out",
        ranks, ranks == 1 ? "" : "s", (long long)each, each == 1 ? "" : "s",
        (long long)(ranks * each), CPU_COUNT(set));
}

enum weft_status weft_bind_check(int32_t ranks, int64_t threads, struct weft_error *err)
{
    cpu_set_t set;
    WEFT_TRY(allowed(&set, err));
    return check(&set, ranks, threads, err);
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

enum weft_status weft_bind(int32_t rank, int32_t ranks, int64_t threads, struct weft_binding *out,
                           struct weft_error *err)
{
    cpu_set_t set, own_set;
    struct weft_core cores[CPU_SETSIZE];
    int32_t n = 0, n_own;
    WEFT_TRY(allowed(&set, err));
    WEFT_TRY(check(&set, ranks, threads, err));
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &set))
            cores[n++] = (struct weft_core){read_place(i, "physical_package_id"),
                                            read_place(i, "core_id"), i};
    }
    const struct weft_core *own = weft_bind_share(cores, n, rank, ranks, &n_own);
    CPU_ZERO(&own_set);
    for (int32_t i = 0; i < n_own; i++)
        CPU_SET(own[i].number, &own_set);
    if (sched_setaffinity(0, sizeof own_set, &own_set) != 0)
        return weft_fail(err, WEFT_E_SYSTEM, "cluster.bind: rank %d cannot be bound: %s", rank,
                         strerror(errno));
    out->bound = true;
    memcpy(out->before, &set, sizeof out->before);
    return WEFT_OK;
}

void weft_unbind(struct weft_binding *binding)
{
    cpu_set_t set;
    if (!binding->bound) return;
    memcpy(&set, binding->before, sizeof set);
    /* It may fail only if the cpuset has changed meanwhile. Then the new cpuset decides. */
    (void)sched_setaffinity(0, sizeof set, &set);
    binding->bound = false;
}
