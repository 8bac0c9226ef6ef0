/* SPDX-License-Identifier: Apache-2.0 */
#include "base/machine/cgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { LINE_BYTES = 512, PATH_BYTES = 1024 };

const struct weft_cgroup_files weft_cgroup_files = {.groups = "/proc/self/cgroup",
                                                    .mount = "/sys/fs/cgroup"};

/* Parses "4:hugetlb,memory:/a/b" (version 1) or "0::/a/b" (version 2); *path gets "/a/b". Returns
 * the version; 0 for a line of other controllers. */
static int read_line(char *line, const char *controller, const char **path)
{
    char *controllers = strchr(line, ':');
    char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (group == NULL) return 0;
    *group = '\0';
    *path = group + 1;
    if (strcmp(line, "0:") == 0) return 2;
    for (char *rest, *name = strtok_r(controllers + 1, ",", &rest); name != NULL;
         name = strtok_r(NULL, ",", &rest))
        if (strcmp(name, controller) == 0) return 1;
    return 0;
}

static void visit_upwards(const char *root, int version, const char *path,
                          weft_cgroup_visit_fn *visit, void *context)
{
    char directory[PATH_BYTES];
    int length = snprintf(directory, sizeof directory, "%s%s", root, strcmp(path, "/") ? path : "");
    if (length < 0 || length >= PATH_BYTES) return;
    while (strlen(directory) >= strlen(root)) {
        visit(context, version, directory);
        if (strlen(directory) == strlen(root)) return;
        *strrchr(directory, '/') = '\0'; /* the parent group */
    }
}

void weft_cgroup_visit(const struct weft_cgroup_files *files, const char *controller,
                       weft_cgroup_visit_fn *visit, void *context)
{
    FILE *file = fopen(files->groups, "re");
    if (file == NULL) return;
    char line[LINE_BYTES], root[PATH_BYTES];
    while (fgets(line, sizeof line, file) != NULL) {
        const char *path = "";
        line[strcspn(line, "\n")] = '\0';
        int version = read_line(line, controller, &path);
        if (version == 0) continue;
        bool own = version == 1;
        int length = snprintf(root, sizeof root, "%s%s%s", files->mount, own ? "/" : "",
                              own ? controller : "");
        if (length > 0 && length < PATH_BYTES) visit_upwards(root, version, path, visit, context);
    }
    fclose(file);
}
