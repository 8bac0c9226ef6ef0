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

/* Where a version of cgroups keeps its groups and how it names what is read there. */
struct version {
    const char *below; /* of the directory where cgroups are mounted */
    const char *most, *current, *droppable;
};
static const struct version versions[] = {
    {"/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "},
    {"", "memory.max", "memory.current", "inactive_file "},
};

/* What a group still lets its processes take: file pages that it can drop count as free. "max" is
 * not a number, and version 1 has one above all memory: a group without a limit binds nothing. */
static void look_at_group(const struct version *version, const char *directory, int64_t *least,
                          char *limit, size_t limit_bytes)
{
    int64_t most, current, droppable = 0;
    if (!read_joined(directory, version->most, "", &most)) return;
    if (!read_joined(directory, version->current, "", &current)) return;
    (void)read_joined(directory, "memory.stat", version->droppable, &droppable);
    char name[LINE_BYTES];
    snprintf(name, sizeof name, "%s of %.400s", version->most, directory);
    take_least(most - current + droppable, name, least, limit, limit_bytes);
}

/* "4:hugetlb,memory:/a/b" of version 1, "0::/a/b" of version 2; *path gets "/a/b". */
static const struct version *read_line(char *line, const char **path)
{
    char *controllers = strchr(line, ':');
    char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (group == NULL) return NULL;
    *group = '\0';
    *path = group + 1;
    if (strcmp(line, "0:") == 0) return &versions[1];
    for (char *rest, *name = strtok_r(controllers + 1, ",", &rest); name != NULL;
         name = strtok_r(NULL, ",", &rest))
        if (strcmp(name, "memory") == 0) return &versions[0];
    return NULL;
}

static void look_at_groups(const struct version *version, const char *mount, const char *path,
                           int64_t *least, char *limit, size_t limit_bytes)
{
    char directory[PATH_BYTES];
    size_t root = strlen(mount) + strlen(version->below);
    int length = snprintf(directory, sizeof directory, "%s%s%s", mount, version->below, path);
    if (length < 0 || length >= PATH_BYTES) return;
    while (strlen(directory) >= root) {
        look_at_group(version, directory, least, limit, limit_bytes);
        if (strlen(directory) == root) return;
        *strrchr(directory, '/') = '\0'; /* the group above */
    }
}

int64_t weft_local_memory_look(const struct weft_local_memory_files *files, char *limit,
                               size_t limit_bytes)
{
    int64_t least = INT64_MAX, machine;
    snprintf(limit, limit_bytes, "nothing");
    if (read_keyed(files->meminfo, "MemAvailable:", 1024, &machine))
        take_least(machine, "available memory of this machine", &least, limit, limit_bytes);
    FILE *file = fopen(files->groups, "re");
    if (file == NULL) return least;
    char line[LINE_BYTES];
    while (fgets(line, sizeof line, file) != NULL) {
        const char *path;
        line[strcspn(line, "\n")] = '\0';
        const struct version *version = read_line(line, &path);
        if (version != NULL)
            look_at_groups(version, files->mount, path, &least, limit, limit_bytes);
    }
    fclose(file);
    return least;
}

int64_t weft_local_memory_available(char *limit, size_t limit_bytes)
{
    static const struct weft_local_memory_files usual = {
        .meminfo = "/proc/meminfo", .groups = "/proc/self/cgroup", .mount = "/sys/fs/cgroup"};
    return weft_local_memory_look(&usual, limit, limit_bytes);
}
