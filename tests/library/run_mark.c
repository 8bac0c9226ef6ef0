/* SPDX-License-Identifier: Apache-2.0 */
/* The mark of a run's directory: files of others are named and never touched. */
#include "library/run_mark.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static char directory[64], path[160];
static struct weft_error err;

static void set_up(void)
{
    err = (struct weft_error){0};
    strcpy(directory, "/tmp/weft-mark-XXXXXX");
    cr_assert_not_null(mkdtemp(directory));
}

static const char *in_directory(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void tear_down(void)
{
    static const char *const names[] = {
        "weft-run",           "config.json", "plan.json", "profile.json",
        "metrics.jsonl",      "result.json", "notes",     "checkpoints/step-5/manifest.json",
        "checkpoints/step-5", "checkpoints"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (remove(in_directory(names[i])) != 0) continue;
    rmdir(directory);
}

TestSuite(run_mark, .init = set_up, .fini = tear_down);

static void write_file(const char *name, const char *text)
{
    cr_assert_eq(weft_file_write(in_directory(name), text, strlen(text), &err), WEFT_OK, "%s",
                 err.text);
}

static void expect_mark(bool known)
{
    bool marked = !known;
    cr_assert_eq(weft_run_mark_look(directory, &marked, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(marked, known);
}

/* Refused, with the name of the entry. */
static void expect_stranger(const char *name)
{
    bool marked = false;
    err = (struct weft_error){0};
    cr_assert_eq(weft_run_mark_look(directory, &marked, &err), WEFT_E_CREATE, "%s", name);
    cr_assert(strstr(err.text, in_directory(name)) == err.text, "%s: %s", name, err.text);
}

Test(run_mark, it_is_written_once)
{
    char *first = NULL, *again = NULL;
    size_t n_first, n_again;
    expect_mark(false);
    cr_assert_eq(weft_run_mark_write(directory, &err), WEFT_OK, "%s", err.text);
    expect_mark(true);
    cr_assert_eq(weft_file_read(in_directory("weft-run"), 4096, &first, &n_first, &err), WEFT_OK);
    cr_assert(strncmp(first, "weft run 1\n", 11) == 0);
    write_file("weft-run", "weft run 2\nof a later version\n"); /* stays */
    cr_assert_eq(weft_run_mark_write(directory, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_file_read(in_directory("weft-run"), 4096, &again, &n_again, &err), WEFT_OK);
    cr_assert(n_again == 30 && memcmp(again, "weft run 2", 10) == 0);
    expect_mark(true);
    free(again);
    free(first);
}

Test(run_mark, every_name_of_a_run_may_be_a_user_s)
{
    static const char *const names[] = {"config.json",   "plan.json",   "profile.json",
                                        "metrics.jsonl", "result.json", "checkpoints"};
    write_file("notes", "a file of another name");
    expect_mark(false);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        write_file(names[i], "mine");
        expect_stranger(names[i]);
        cr_assert_eq(unlink(in_directory(names[i])), 0);
        cr_assert_eq(symlink("/nowhere/at/all", in_directory(names[i])), 0);
        expect_stranger(names[i]);
        cr_assert_eq(unlink(in_directory(names[i])), 0);
    }
    write_file("plan.json", "a run's");
    cr_assert_eq(weft_run_mark_write(directory, &err), WEFT_OK, "%s", err.text);
    expect_mark(true);
}

Test(run_mark, another_file_of_its_name_is_no_mark)
{
    static const char *const texts[] = {"", "weft run", "weft runs of mine\n", "Weft run 1\n",
                                        "my notes of a weft run\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        write_file("weft-run", texts[i]);
        expect_stranger("weft-run");
        err = (struct weft_error){0};
        cr_assert_eq(weft_run_mark_write(directory, &err), WEFT_E_CREATE);
    }
    cr_assert_eq(unlink(in_directory("weft-run")), 0);
    /* Nobody writes to it, so reading it would not end. */
    cr_assert_eq(mkfifo(in_directory("weft-run"), 0600), 0);
    expect_stranger("weft-run");
    cr_assert_eq(unlink(in_directory("weft-run")), 0);
}

/* Left by a version without marks: complete only with a manifest. */
Test(run_mark, a_checkpoint_marks_a_directory_too)
{
    cr_assert_eq(mkdir(in_directory("checkpoints"), 0700), 0);
    cr_assert_eq(mkdir(in_directory("checkpoints/step-5"), 0700), 0);
    expect_stranger("checkpoints");
    write_file("checkpoints/step-5/manifest.json", "{}");
    err = (struct weft_error){0};
    expect_mark(true);
}
