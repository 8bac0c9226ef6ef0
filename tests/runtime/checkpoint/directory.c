/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/checkpoint/directory.h"
#include "runtime/comm/host.h"

static char root[64];

static void make_root(void)
{
    strcpy(root, "/tmp/weft-directory-XXXXXX");
    cr_assert_not_null(mkdtemp(root));
}

static void remove_root(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", root);
    cr_assert_eq(system(command), 0);
}

/* A directory with a file in it. */
static void make(const char *name)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", root, name);
    cr_assert_eq(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/%s/file", root, name);
    FILE *out = fopen(path, "w");
    cr_assert_not_null(out);
    fclose(out);
}

static bool is_there(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return access(path, F_OK) == 0;
}

Test(directory, paths_of_memory_name_their_files)
{
    static const int fds[] = {7, 8, 19};
    static const char *const others[] = {"host memory/step-6",         "host memory 7/step-6",
                                         "host memory x,8,9/step-6",   "host memory 7,8,9",
                                         "a/host memory 7,8,9/step-6", ""};
    struct weft_text text;
    int64_t step = -1;
    int fd = -1;
    weft_text_init(&text);
    weft_checkpoint_memory_path(fds, 3, 6, &text);
    const char *path = weft_text_chars(&text);
    cr_assert_str_eq(path, "host memory 7,8,19/step-6");
    cr_assert(weft_checkpoint_step_of(path, &step) && step == 6);
    for (int f = 0; f < 3; f++)
        cr_assert(weft_checkpoint_memory_file(path, f, &fd) && fd == fds[f], "%d", f);
    cr_assert_not(weft_checkpoint_memory_file(path, 3, &fd));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        cr_assert_not(weft_checkpoint_memory_file(others[i], 2, &fd), "%s", others[i]);
    weft_text_finish(&text);
}

Test(directory, names)
{
    int64_t step = -1;
    cr_assert(weft_checkpoint_step_of("a/b/step-12", &step) && step == 12);
    cr_assert(weft_checkpoint_step_of("step-0", &step) && step == 0);
    cr_assert(weft_checkpoint_step_of("step-9223372036854775799", &step));
    static const char *const others[] = {"step-",
                                         "step-01",
                                         "step--1",
                                         "step-1x",
                                         "step-1.tmp-2",
                                         "Step-1",
                                         "xstep-1",
                                         "step-1/",
                                         "step- 1",
                                         "",
                                         "step-9223372036854775808",
                                         "step-99999999999999999999"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        cr_assert_not(weft_checkpoint_step_of(others[i], &step), "%s", others[i]);
    struct weft_text text;
    weft_text_init(&text);
    weft_checkpoint_temporary("d", 7, 3, &text);
    cr_assert_str_eq(weft_text_chars(&text), "d/step-7.tmp-3");
    cr_assert_not(weft_checkpoint_step_of(weft_text_chars(&text), &step));
    weft_text_finish(&text);
}

Test(directory, slashes_at_a_paths_end_do_not_count)
{
    static const struct {
        const char *path;
        size_t length;
    } cases[] = {{"a/step-1", 8}, {"a/step-1/", 8}, {"step-1//", 6}, {"/", 1}, {"//", 1}, {"", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        cr_assert_eq(weft_checkpoint_path_length(cases[i].path), cases[i].length, "%s",
                     cases[i].path);
}

Test(directory, scan_and_clear, .init = make_root, .fini = remove_root)
{
    struct weft_error err = {0};
    int64_t *steps = NULL;
    int32_t n = -1;
    cr_assert_eq(weft_checkpoint_scan("/nowhere/at/all", &steps, &n, &err), WEFT_OK);
    cr_assert(n == 0 && steps == NULL);
    static const char *const names[] = {"step-10", "step-9",       "step-100",    "step-5.tmp-1",
                                        "other",   "step-7.tmp-0", "step-x.tmp-0"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        make(names[i]);
    cr_assert_eq(weft_checkpoint_scan(root, &steps, &n, &err), WEFT_OK);
    cr_assert(n == 3 && steps[0] == 9 && steps[1] == 10 && steps[2] == 100);
    free(steps);
    weft_checkpoint_clear(&weft_sink_system, root);
    cr_assert(is_there("step-9") && is_there("step-10") && is_there("step-100"));
    cr_assert(is_there("other") && is_there("step-x.tmp-0"), "not ours");
    cr_assert_not(is_there("step-5.tmp-1") || is_there("step-7.tmp-0"));
}

Test(directory, retention_keeps_the_newest_and_the_precious, .init = make_root, .fini = remove_root)
{
    static const char *const names[] = {"step-1", "step-2", "step-3", "step-4", "step-5"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        make(names[i]);
    weft_checkpoint_retain(&weft_sink_system, root, &(struct weft_retention){3, 2, 0});
    cr_assert(!is_there("step-1") && is_there("step-2") && is_there("step-3"));
    weft_checkpoint_retain(&weft_sink_system, root, &(struct weft_retention){0, -1, 0});
    cr_assert(!is_there("step-2") && !is_there("step-3"), "two at least are kept");
    cr_assert(is_there("step-4") && is_there("step-5"));
    cr_assert_not(is_there("step-3.tmp-0"));
}

Test(directory, multiples_stay_for_good, .init = make_root, .fini = remove_root)
{
    static const char *const names[] = {"step-2", "step-4", "step-6", "step-8", "step-10"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        make(names[i]);
    weft_checkpoint_retain(&weft_sink_system, root, &(struct weft_retention){2, -1, 4});
    cr_assert(!is_there("step-2") && is_there("step-4") && !is_there("step-6"));
    cr_assert(is_there("step-8") && is_there("step-10"));
}

/* Checkpoints that were moved to another disk, with links in their places. */
Test(directory, of_links_the_link_alone_is_removed, .init = make_root, .fini = remove_root)
{
    static const char *const links[] = {"step-1", "step-2.tmp-7"};
    char path[160], file[160];
    make("archive");
    make("step-3");
    make("step-4");
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", root, links[i]);
        cr_assert_eq(symlink("archive", path), 0);
    }
    snprintf(file, sizeof file, "%s/step-2.tmp-8", root);
    fclose(fopen(file, "w"));
    weft_checkpoint_clear(&weft_sink_system, root);
    cr_assert(is_there("step-1") && !is_there("step-2.tmp-7") && !is_there("step-2.tmp-8"));
    weft_checkpoint_retain(&weft_sink_system, root, &(struct weft_retention){2, -1, 0});
    cr_assert(!is_there("step-1") && !is_there("step-1.tmp-0") && is_there("step-3"));
    cr_assert(is_there("archive/file"), "what a link points to was removed");
}

Test(directory, one_lock_at_a_time, .init = make_root, .fini = remove_root)
{
    struct weft_error err = {0};
    int first = -1, second = -1;
    cr_assert_eq(weft_checkpoint_lock(root, &first, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_checkpoint_lock(root, &second, &err), WEFT_E_CREATE);
    cr_assert_not_null(strstr(err.text, "another run"));
    char own[160], host[WEFT_HOST_NAME_BYTES];
    snprintf(own, sizeof own, "(host %s, process %ld", weft_host_name(host), (long)getpid());
    cr_assert_not_null(strstr(err.text, own), "%s", err.text);
    struct weft_text holder;
    weft_text_init(&holder);
    cr_assert(weft_checkpoint_is_locked(root, &holder));
    cr_assert_not_null(strstr(weft_text_chars(&holder), own), "%s", weft_text_chars(&holder));
    weft_text_finish(&holder);
    cr_assert_eq(second, -1);
    int copy = dup(first);
    close(first);
    err = (struct weft_error){0};
    cr_assert_eq(weft_checkpoint_lock(root, &second, &err), WEFT_E_CREATE, "a copy holds it");
    close(copy);
    err = (struct weft_error){0};
    cr_assert_eq(weft_checkpoint_lock(root, &second, &err), WEFT_OK, "%s", err.text);
    close(second);
    err = (struct weft_error){0};
    cr_assert_eq(weft_checkpoint_lock("/nowhere/at/all", &second, &err), WEFT_E_CREATE);
}
