/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/folder.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Makes a folder with these files: a name that ends with / is a folder. */
static void make_files(char folder[64], const char *const *names)
{
    char path[160];
    strcpy(folder, "/tmp/weft-fol[der-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    for (; *names != NULL; names++) {
        snprintf(path, sizeof path, "%s/%s", folder, *names);
        if (path[strlen(path) - 1] == '/') {
            cr_assert_eq(mkdir(path, 0700), 0);
            continue;
        }
        FILE *file = fopen(path, "w");
        cr_assert_not_null(file);
        fclose(file);
    }
}

/* Number of paths that the pattern matches; the pattern must end with `end`. */
static size_t matched(const char *const *names, const char *end)
{
    char folder[64], command[96];
    struct weft_text pattern;
    glob_t found;
    size_t n = 0;
    make_files(folder, names);
    weft_text_init(&pattern);
    const bool found_one = weft_folder_pattern(folder, &pattern);
    cr_assert_eq(found_one, end != NULL);
    if (found_one) {
        const char *text = weft_text_chars(&pattern);
        const size_t at = strlen(text) - strlen(end);
        cr_assert_str_eq(text + at, end, "%s", text);
        cr_assert_eq(glob(text, 0, NULL, &found), 0, "%s", text);
        n = found.gl_pathc;
        globfree(&found);
    }
    weft_text_finish(&pattern);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    cr_assert_eq(system(command), 0);
    return n;
}

Test(folder, the_pattern_matches_the_usual_files)
{
    cr_assert_eq(matched((const char *[]){"a.txt", "b.txt", "README", "c/", NULL}, "/*.txt"), 2);
    cr_assert_eq(matched((const char *[]){"one", "two", NULL}, "/*"), 2);
    cr_assert_eq(
        matched((const char *[]){"x/", "y/", "x/a.bin", "y/b.bin", "y/c.md", NULL}, "/*/*.bin"), 2);
    cr_assert_eq(matched((const char *[]){"x/", NULL}, NULL), 0);
    cr_assert_eq(matched((const char *[]){"LICENCE", "x/", NULL}, NULL), 0);
    cr_assert_eq(matched((const char *[]){NULL}, NULL), 0);
}
