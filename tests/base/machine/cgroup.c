/* SPDX-License-Identifier: Apache-2.0 */
#include "base/machine/cgroup.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

static void note_visit(void *context, int version, const char *directory)
{
    weft_text_addf(context, "%d %s\n", version, directory);
}

/* Groups that are visited for the controller when /proc/self/cgroup says `groups`. */
static const char *visits(const char *groups, const char *controller)
{
    static struct weft_text seen;
    struct weft_error err = {0};
    char path[] = "/tmp/weft-cgroup-XXXXXX";
    int fd = mkstemp(path);
    cr_assert(fd >= 0);
    close(fd);
    cr_assert_eq(weft_file_write(path, groups, strlen(groups), &err), WEFT_OK, "%s", err.text);
    weft_text_finish(&seen);
    weft_cgroup_visit(&(struct weft_cgroup_files){.groups = path, .mount = "/m"}, controller,
                      note_visit, &seen);
    unlink(path);
    return weft_text_chars(&seen);
}

Test(cgroup, all_groups_above_are_visited_to_the_root)
{
    cr_assert_str_eq(visits("0::/user/a\n", "memory"), "2 /m/user/a\n2 /m/user\n2 /m\n");
    cr_assert_str_eq(visits("4:hugetlb,memory:/jobs/7\n", "memory"),
                     "1 /m/memory/jobs/7\n1 /m/memory/jobs\n1 /m/memory\n");
    cr_assert_str_eq(visits("0::/\n", "memory"), "2 /m\n");
}

Test(cgroup, version_1_has_a_hierarchy_for_some_controllers)
{
    static const char groups[] = "9:name=systemd:/s\n4:cpu,cpuacct:/jobs\n3:memory:/\n0::/u\n";
    cr_assert_str_eq(visits(groups, "cpu"), "1 /m/cpu/jobs\n1 /m/cpu\n2 /m/u\n2 /m\n");
    cr_assert_str_eq(visits(groups, "memory"), "1 /m/memory\n2 /m/u\n2 /m\n");
    cr_assert_str_eq(visits(groups, "pids"), "2 /m/u\n2 /m\n");
}

Test(cgroup, lines_of_no_group_are_passed_over)
{
    cr_assert_str_eq(visits("", "memory"), "");
    cr_assert_str_eq(visits("memory\n4:memory\n\n", "memory"), "");
    struct weft_text seen = {0};
    weft_cgroup_visit(&(struct weft_cgroup_files){.groups = "/no/such/file", .mount = "/m"}, "cpu",
                      note_visit, &seen);
    cr_assert_str_eq(weft_text_chars(&seen), "");
}
