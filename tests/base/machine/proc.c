/* SPDX-License-Identifier: Apache-2.0 */
#include "base/machine/proc.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

Test(proc, this_one_is_there)
{
    char lacking[64];
    cr_assert(weft_proc_look("/proc", lacking, sizeof lacking), "%s", lacking);
}

Test(proc, one_that_is_missing_or_half_there_is_named)
{
    char folder[] = "/tmp/weft-proc-XXXXXX", paths[4][128], lacking[128];
    static const char *const names[] = {"self", "self/exe", "self/status", "self/fd"};
    cr_assert(mkdtemp(folder) != NULL);
    for (int i = 0; i < 4; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/%s", folder, names[i]);
        cr_assert(!weft_proc_look(folder, lacking, sizeof lacking));
        cr_assert_eq(errno, ENOENT);
        if (i > 0) cr_assert_str_eq(lacking, paths[i]);
        cr_assert(mkdir(paths[i], 0700) == 0); /* folders may be read and entered */
    }
    cr_assert(weft_proc_look(folder, lacking, sizeof lacking), "%s", lacking);
    for (int i = 3; i >= 0; i--)
        rmdir(paths[i]);
    rmdir(folder);
}

Test(proc, the_program_is_found_without_it)
{
    char linked[4096], started[4096], small[4];
    struct stat one, other;
    cr_assert(weft_proc_program(linked, sizeof linked));
    cr_assert(weft_proc_program_at("/nonexistent/exe", started, sizeof started));
    cr_assert(stat(linked, &one) == 0 && stat(started, &other) == 0);
    cr_assert(one.st_ino == other.st_ino && one.st_dev == other.st_dev, "%s, %s", linked, started);
    cr_assert(!weft_proc_program(small, sizeof small));
}
