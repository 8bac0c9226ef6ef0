/* SPDX-License-Identifier: Apache-2.0 */
#include "base/machine/memory.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { LINE_BYTES = 512, PATH_BYTES = 1024 };

/* Reads the number after `key` at a line's start, times `scale`, into *out. */
static bool read_keyed(const char *path, const char *key, int64_t scale, int64_t *out)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) return false;
    char line[LINE_BYTES];
    bool found = false;
    while (!found && fgets(line, sizeof line, file) != NULL) {
        int64_t value;
        size_t length = strlen(key);
        if (strncmp(line, key, length) != 0 || sscanf(line + length, "%" SCNd64, &value) != 1)
            continue;
        *out = value * scale;
        found = true;
    }
    fclose(file);
    return found;
}

static bool read_joined(const char *directory, const char *name, const char *key, int64_t *out)
{
    char path[PATH_BYTES];
    int length = snprintf(path, sizeof path, "%s/%s", directory, name);
    return length > 0 && length < PATH_BYTES && read_keyed(path, key, 1, out);
}

/* File names of a version of cgroups. */
struct version {
    const char *most, *current, *droppable;
};
static const struct version versions[] = {
    [1] = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "},
    [2] = {"memory.max", "memory.current", "inactive_file "},
};

struct list {
    struct weft_memory_limit *limits;
    int32_t n;
};

/* A full list drops its loosest limit, or the new one. */
static void add_limit(struct list *list, const struct weft_memory_limit *limit)
{
    struct weft_memory_limit *loosest = &list->limits[0];
    if (list->n < WEFT_MEMORY_LIMITS) {
        list->limits[list->n++] = *limit;
        return;
    }
    for (int32_t i = 1; i < list->n; i++)
        if (list->limits[i].left_bytes > loosest->left_bytes) loosest = &list->limits[i];
    if (limit->left_bytes < loosest->left_bytes) *loosest = *limit;
}

/* File pages that the group can drop count as left. "max" is not a number, and version 1 has a
 * number above all memory, so a group without a limit is not listed. */
static void list_group(void *context, int which, const char *directory)
{
    static const int64_t no_limit_bytes = INT64_C(1) << 60;
    const struct version *version = &versions[which];
    struct weft_memory_limit limit = {0};
    struct stat about;
    int64_t most, current, droppable = 0;
    if (!read_joined(directory, version->most, "", &most) || most >= no_limit_bytes) return;
    if (!read_joined(directory, version->current, "", &current)) return;
    (void)read_joined(directory, "memory.stat", version->droppable, &droppable);
    if (stat(directory, &about) != 0) return;
    limit.device = (uint64_t)about.st_dev;
    limit.inode = (uint64_t)about.st_ino;
    limit.left_bytes = most > current - droppable ? most - current + droppable : 0;
    snprintf(limit.name, sizeof limit.name, "%s of %.170s", version->most, directory);
    add_limit(context, &limit);
}

int32_t weft_memory_list(const char *meminfo, const struct weft_cgroup_files *groups,
                         struct weft_memory_limit out[WEFT_MEMORY_LIMITS])
{
    struct list list = {.limits = out};
    struct weft_memory_limit machine = {.name = "available memory of this machine"};
    if (read_keyed(meminfo, "MemAvailable:", 1024, &machine.left_bytes)) add_limit(&list, &machine);
    weft_cgroup_visit(groups, "memory", list_group, &list);
    return list.n;
}

int32_t weft_memory_limits(struct weft_memory_limit out[WEFT_MEMORY_LIMITS])
{
    return weft_memory_list("/proc/meminfo", &weft_cgroup_files, out);
}

int64_t weft_memory_look(const char *meminfo, const struct weft_cgroup_files *groups, char *limit,
                         size_t limit_bytes)
{
    struct weft_memory_limit limits[WEFT_MEMORY_LIMITS];
    const int32_t n = weft_memory_list(meminfo, groups, limits);
    const struct weft_memory_limit *least = NULL;
    for (int32_t i = 0; i < n; i++)
        if (least == NULL || limits[i].left_bytes < least->left_bytes) least = &limits[i];
    snprintf(limit, limit_bytes, "%s", least != NULL ? least->name : "nothing");
    return least != NULL ? least->left_bytes : INT64_MAX;
}

int64_t weft_memory_available(char *limit, size_t limit_bytes)
{
    return weft_memory_look("/proc/meminfo", &weft_cgroup_files, limit, limit_bytes);
}
