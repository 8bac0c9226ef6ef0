#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/comm/local.h"

enum { LINE_BYTES = 512, PATH_BYTES = 1024 };

/* The number after `key` at a line's start in the file; `scale` times it in *out. */
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

static void take_least(int64_t value, const char *name, int64_t *least, char *limit,
                       size_t limit_bytes)
{
    if (value < 0) value = 0;
    if (value >= *least) return;
    *least = value;
    snprintf(limit, limit_bytes, "%s", name);
}

/* What a version 2 cgroup still lets its processes take: file pages that it can drop count as
 * free. "max" is not a number, so a group without a limit is passed over. */
static void look_at_group(const char *directory, int64_t *least, char *limit, size_t limit_bytes)
{
    int64_t most, current, droppable = 0;
    if (!read_joined(directory, "memory.max", "", &most)) return;
    if (!read_joined(directory, "memory.current", "", &current)) return;
    (void)read_joined(directory, "memory.stat", "inactive_file ", &droppable);
    char name[LINE_BYTES];
    snprintf(name, sizeof name, "memory.max of %.400s", directory);
    take_least(most - current + droppable, name, least, limit, limit_bytes);
}

/* The group's path from "0::/a/b" in /proc/self/cgroup, under the usual mount point. */
static bool find_group(char *out, size_t bytes)
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (file == NULL) return false;
    char line[LINE_BYTES];
    bool found = false;
    while (!found && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "0::", 3) != 0) continue;
        line[strcspn(line, "\n")] = '\0';
        int length = snprintf(out, bytes, "/sys/fs/cgroup%s", line + 3);
        found = length > 0 && (size_t)length < bytes;
    }
    fclose(file);
    return found;
}

int64_t weft_local_memory_available(char *limit, size_t limit_bytes)
{
    int64_t least = INT64_MAX, machine;
    snprintf(limit, limit_bytes, "nothing");
    if (read_keyed("/proc/meminfo", "MemAvailable:", 1024, &machine))
        take_least(machine, "available memory of this machine", &least, limit, limit_bytes);
    char directory[PATH_BYTES];
    if (!find_group(directory, sizeof directory)) return least;
    const size_t root = strlen("/sys/fs/cgroup");
    while (strlen(directory) >= root) {
        look_at_group(directory, &least, limit, limit_bytes);
        *strrchr(directory, '/') = '\0'; /* the group above */
    }
    return least;
}
