#include "base/machine/memory.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

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

struct look {
    int64_t least;
    char *limit;
    size_t limit_bytes;
};

static void take_least(int64_t value, const char *name, struct look *look)
{
    if (value < 0) value = 0;
    if (value >= look->least) return;
    look->least = value;
    snprintf(look->limit, look->limit_bytes, "%s", name);
}

/* File names of a version of cgroups. */
struct version {
    const char *most, *current, *droppable;
};
static const struct version versions[] = {
    [1] = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "},
    [2] = {"memory.max", "memory.current", "inactive_file "},
};

/* Takes the memory left to a group; file pages that it can drop count as free. "max" is not a
 * number, and version 1 has one above all memory, so a group without a limit binds nothing. */
static void look_at_group(void *context, int which, const char *directory)
{
    struct look *look = context;
    const struct version *version = &versions[which];
    int64_t most, current, droppable = 0;
    if (!read_joined(directory, version->most, "", &most)) return;
    if (!read_joined(directory, version->current, "", &current)) return;
    (void)read_joined(directory, "memory.stat", version->droppable, &droppable);
    char name[LINE_BYTES];
    snprintf(name, sizeof name, "%s of %.400s", version->most, directory);
    take_least(most - current + droppable, name, look);
}

int64_t weft_memory_look(const char *meminfo, const struct weft_cgroup_files *groups, char *limit,
                         size_t limit_bytes)
{
    struct look look = {.least = INT64_MAX, .limit = limit, .limit_bytes = limit_bytes};
    int64_t machine;
    snprintf(limit, limit_bytes, "nothing");
    if (read_keyed(meminfo, "MemAvailable:", 1024, &machine))
        take_least(machine, "available memory of this machine", &look);
    weft_cgroup_visit(groups, "memory", look_at_group, &look);
    return look.least;
}

int64_t weft_memory_available(char *limit, size_t limit_bytes)
{
    return weft_memory_look("/proc/meminfo", &weft_cgroup_files, limit, limit_bytes);
}
