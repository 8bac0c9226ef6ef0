/* SPDX-License-Identifier: Apache-2.0 */
#include "base/machine/cores.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"

/* A tree of groups: files[i] gets texts[i]; a NULL name ends them. */
struct tree_file {
    const char *name, *text;
};

static const char *tree_root(void)
{
    static char root[] = "/tmp/weft-cores-XXXXXX";
    static bool is_made; /* a made name may end in X too */
    if (!is_made) cr_assert_not_null(mkdtemp(root));
    is_made = true;
    return root;
}

static void make_folders(char *path)
{
    for (char *at = strchr(path + strlen(tree_root()) + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        mkdir(path, 0777);
        *at = '/';
    }
}

/* The limits of a process in the groups that /proc/self/cgroup names. */
static struct weft_core_limits limits_of(const char *groups, const struct tree_file *files)
{
    char path[256], command[128];
    struct weft_error err = {0};
    for (const struct tree_file *file = files; file->name; file++) {
        snprintf(path, sizeof path, "%s/%s", tree_root(), file->name);
        make_folders(path);
        cr_assert_eq(weft_file_write(path, file->text, strlen(file->text), &err), WEFT_OK, "%s",
                     err.text);
    }
    snprintf(path, sizeof path, "%s/self", tree_root());
    cr_assert_eq(weft_file_write(path, groups, strlen(groups), &err), WEFT_OK, "%s", err.text);
    struct weft_core_limits limits;
    weft_core_limits_read(&(struct weft_cgroup_files){.groups = path, .mount = tree_root()},
                          &limits);
    snprintf(command, sizeof command, "rm -r %s/*", tree_root());
    cr_assert_eq(system(command), 0);
    rmdir(tree_root());
    return limits;
}

Test(cores, version_2_takes_the_least_quota_of_the_path)
{
    const struct tree_file outer[] = {{"a/cpu.max", "150000 100000\n"},
                                      {"a/b/cpu.max", "400000 100000\n"},
                                      {"a/b/c/cpu.max", "max 100000\n"},
                                      {NULL, NULL}};
    struct weft_core_limits limits = limits_of("0::/a/b/c\n", outer);
    cr_assert(fabs(limits.quota - 1.5) < 1e-9, "%f", limits.quota);
    cr_assert_not_null(strstr(limits.quota_name, "cpu.max of /tmp/weft-cores-"));
    cr_assert_str_eq(strrchr(limits.quota_name, '/'), "/a");
}

Test(cores, version_2_takes_the_least_quota_wherever_it_is)
{
    const struct tree_file inner[] = {{"cpu.max", "900000 100000\n"},
                                      {"a/cpu.max", "400000 100000\n"},
                                      {"a/b/cpu.max", "10000 20000\n"},
                                      {NULL, NULL}};
    cr_assert(fabs(limits_of("0::/a/b\n", inner).quota - 0.5) < 1e-9);
}

Test(cores, version_1_takes_the_least_quota_of_the_path)
{
    const struct tree_file files[] = {{"cpu/cpu.cfs_quota_us", "-1\n"},
                                      {"cpu/cpu.cfs_period_us", "100000\n"},
                                      {"cpu/job/cpu.cfs_quota_us", "125000\n"},
                                      {"cpu/job/cpu.cfs_period_us", "50000\n"},
                                      {"cpu/job/task/cpu.cfs_quota_us", "-1\n"},
                                      {"cpu/job/task/cpu.cfs_period_us", "100000\n"},
                                      {NULL, NULL}};
    struct weft_core_limits limits = limits_of("3:cpu,cpuacct:/job/task\n0::/\n", files);
    cr_assert(fabs(limits.quota - 2.5) < 1e-9, "%f", limits.quota);
    cr_assert_not_null(strstr(limits.quota_name, "cpu.cfs_quota_us of "));
    cr_assert_str_eq(strrchr(limits.quota_name, '/'), "/job");
}

Test(cores, groups_without_a_quota_bind_nothing)
{
    const struct tree_file files[] = {{"cpu.max", "max 100000\n"},
                                      {"a/cpu.max", "\n"},
                                      {"cpu/cpu.cfs_quota_us", "-1\n"},
                                      {"cpu/cpu.cfs_period_us", "100000\n"},
                                      {NULL, NULL}};
    struct weft_core_limits limits = limits_of("1:cpu:/\n0::/a\n", files);
    cr_assert(limits.quota <= 0);
    cr_assert_str_eq(limits.quota_name, "");
    cr_assert_eq(weft_core_limits_threads(&limits), limits.allowed);
}

Test(cores, threads_are_whole_cores_of_both_limits)
{
    static const struct {
        int32_t allowed;
        double quota;
        int32_t threads;
    } cases[] = {{8, 0, 8}, {8, 0.2, 1}, {8, 1, 1}, {8, 1.9, 1}, {8, 2, 2}, {8, 8.5, 8}, {1, 4, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct weft_core_limits limits = {cases[i].allowed, cases[i].quota, ""};
        cr_assert_eq(weft_core_limits_threads(&limits), cases[i].threads, "case %zu", i);
    }
}
