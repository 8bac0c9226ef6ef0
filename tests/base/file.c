/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"

static char directory[] = "/tmp/weft-file-XXXXXX";

/* Each Criterion test is a process of its own, so each has its own directory. */
static void enter(void)
{
    cr_assert_not_null(mkdtemp(directory));
    cr_assert_eq(chdir(directory), 0);
}

static void leave(void)
{
    char command[64];
    cr_assert_eq(chdir("/"), 0);
    snprintf(command, sizeof command, "rm -rf %s", directory);
    cr_assert_eq(system(command), 0);
}

TestSuite(file, .init = enter, .fini = leave);

static void write_ok(const char *path, const char *text)
{
    struct weft_error err = {0};
    cr_assert_eq(weft_file_write(path, text, strlen(text), &err), WEFT_OK, "%s", err.text);
}

static void expect_content(const char *path, const char *text)
{
    struct weft_error err = {0};
    char *bytes = NULL;
    size_t length = 0;
    cr_assert_eq(weft_file_read(path, 1 << 20, &bytes, &length, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(length, strlen(text));
    cr_assert_str_eq(bytes, text);
    free(bytes);
}

static int count_entries(const char *path)
{
    DIR *open_directory = opendir(path);
    int count = -2; /* . and .. */
    cr_assert_not_null(open_directory);
    while (readdir(open_directory) != NULL)
        count++;
    closedir(open_directory);
    return count;
}

Test(file, what_is_written_is_read)
{
    write_ok("a", "first");
    expect_content("a", "first");
    write_ok("a", "second, longer");
    expect_content("a", "second, longer");
    write_ok("a", "");
    expect_content("a", "");
    cr_assert_eq(count_entries("."), 1, "no temporary file stays");
}

Test(file, nul_bytes_and_large_files_survive)
{
    const size_t size = 3000000;
    char *data = malloc(size), *bytes;
    size_t length;
    for (size_t i = 0; i < size; i++)
        data[i] = (char)(i * 31 >> 3);
    cr_assert_eq(weft_file_write("big", data, size, NULL), WEFT_OK);
    cr_assert_eq(weft_file_read("big", (int64_t)size, &bytes, &length, NULL), WEFT_OK);
    cr_assert_eq(length, size);
    cr_assert_eq(memcmp(data, bytes, size), 0);
    cr_assert_eq(bytes[size], '\0');
    free(bytes);
    free(data);
}

Test(file, the_limit_is_exact)
{
    struct weft_error err = {0};
    char *bytes = (char *)&err;
    size_t length = 99;
    write_ok("a", "12345");
    cr_assert_eq(weft_file_read("a", 4, &bytes, &length, &err), WEFT_E_DATA);
    cr_assert_str_eq(err.text, "a is longer than 4 bytes, the most that is read");
    cr_assert(bytes == (char *)&err && length == 99, "outputs stay untouched on failure");
    cr_assert_eq(weft_file_read("a", 5, &bytes, &length, NULL), WEFT_OK);
    cr_assert_eq(length, 5);
    free(bytes);
}

Test(file, the_limit_holds_where_no_size_is_known)
{
    char *bytes;
    size_t length;
    cr_assert_eq(weft_file_read("/dev/zero", 100000, &bytes, &length, NULL), WEFT_E_DATA);
    cr_assert_eq(weft_file_read("/proc/self/status", 100000, &bytes, &length, NULL), WEFT_OK);
    cr_assert_gt(length, 100);
    free(bytes);
}

Test(file, errors_of_reading_tell_the_cases_apart)
{
    struct weft_error err = {0};
    char *bytes;
    size_t length;
    cr_assert_eq(weft_file_read("none", 10, &bytes, &length, &err), WEFT_E_NO_INPUT);
    cr_assert_str_eq(err.text, "cannot read none: No such file or directory");
    write_ok("a", "x");
    cr_assert_eq(weft_file_read("a/b", 10, &bytes, &length, NULL), WEFT_E_NO_INPUT);
    cr_assert_eq(weft_file_read(".", 100000, &bytes, &length, NULL), WEFT_E_IO);
    if (geteuid() != 0) {
        cr_assert_eq(chmod("a", 0), 0);
        cr_assert_eq(weft_file_read("a", 10, &bytes, &length, NULL), WEFT_E_PERMISSION);
    }
}

Test(file, errors_of_writing_leave_nothing)
{
    struct weft_error err = {0};
    cr_assert_eq(weft_file_write("none/a", "x", 1, &err), WEFT_E_CREATE);
    cr_assert_str_eq(err.text, "cannot create none/a: No such file or directory (its directory is "
                               "missing)");
    cr_assert_eq(mkdir("d", 0777), 0);
    cr_assert_eq(weft_file_write("d", "x", 1, NULL), WEFT_E_CREATE);
    cr_assert_eq(count_entries("d"), 0);
    cr_assert_eq(count_entries("."), 1);
}

/* A file size limit fails in the middle of the write, as a full disk does. */
Test(file, a_failed_write_keeps_the_old_file)
{
    static char large[100000];
    struct weft_error err = {0};
    struct rlimit limit = {.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};
    write_ok("a", "old");
    struct rlimit before;
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    enum weft_status status = weft_file_write("a", large, sizeof large, &err);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    cr_assert_eq(status, WEFT_E_IO);
    cr_assert_str_eq(err.text, "cannot write a: File too large");
    expect_content("a", "old");
    cr_assert_eq(count_entries("."), 1);
}

Test(file, a_full_disk_is_an_io_error)
{
    struct weft_error err = {0};
    cr_assert_eq(weft_file_write("/dev/full", "x", 1, &err), WEFT_E_IO);
    cr_assert_str_eq(err.text, "cannot write /dev/full: No space left on device");
}

Test(file, devices_are_written_to_and_not_replaced)
{
    struct stat about;
    write_ok("/dev/null", "gone");
    cr_assert_eq(stat("/dev/null", &about), 0);
    cr_assert(S_ISCHR(about.st_mode));
}

Test(file, mode_follows_the_umask_and_then_the_old_file)
{
    struct stat about;
    umask(027);
    write_ok("a", "x");
    cr_assert_eq(stat("a", &about), 0);
    cr_assert_eq(about.st_mode & 0777, 0640);
    cr_assert_eq(chmod("a", 0604), 0);
    write_ok("a", "y");
    cr_assert_eq(stat("a", &about), 0);
    cr_assert_eq(about.st_mode & 0777, 0604);
}

Test(file, a_symbolic_link_stays_one)
{
    struct stat about;
    cr_assert_eq(mkdir("d", 0777), 0);
    write_ok("d/real", "old");
    cr_assert_eq(symlink("d/real", "link"), 0);
    write_ok("link", "new");
    cr_assert_eq(lstat("link", &about), 0);
    cr_assert(S_ISLNK(about.st_mode));
    expect_content("d/real", "new");
    cr_assert_eq(count_entries("d"), 1);
}

Test(file, left_over_temporaries_do_not_block)
{
    char name[64];
    snprintf(name, sizeof name, ".weft-%ld-0.tmp", (long)getpid());
    write_ok(name, "left by somebody");
    write_ok("a", "x");
    expect_content("a", "x");
    expect_content(name, "left by somebody");
}

/* A process that has ended, and was waited for. */
static long ended_process(void)
{
    pid_t pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0) _exit(0);
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
    return (long)pid;
}

Test(file, what_killed_writers_left_is_cleared)
{
    static const char *const others[] = {
        ".weft-.tmp",        ".weft-x-0.tmp",  ".weft-999999-0.tmpx", ".weft-999999--1.tmp",
        "weft-999999-0.tmp", ".weft-999999-0", ".weft-0-0.tmp",       ".weft--5-0.tmp"};
    char mine[64], ended[64], alive[64];
    snprintf(mine, sizeof mine, ".weft-%ld-3.tmp", (long)getpid());
    snprintf(ended, sizeof ended, ".weft-%ld-999.tmp", ended_process());
    snprintf(alive, sizeof alive, ".weft-%ld-0.tmp", (long)getppid());
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        write_ok(others[i], "of somebody else");
    write_ok(mine, "of a process that had this number before");
    write_ok(ended, "half");
    write_ok(alive, "being written");
    weft_file_clear(".");
    cr_assert(access(mine, F_OK) != 0 && access(ended, F_OK) != 0);
    expect_content(alive, "being written");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        expect_content(others[i], "of somebody else");
    weft_file_clear("nowhere");
}

Test(file, dash_is_standard_input_and_output)
{
    write_ok("in", "from a pipe");
    int input = open("in", O_RDONLY), output = open("out", O_WRONLY | O_CREAT, 0666);
    int saved = dup(STDOUT_FILENO);
    cr_assert(input >= 0 && output >= 0 && saved >= 0);
    fflush(stdout);
    dup2(input, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    char *bytes = NULL;
    size_t length = 0;
    enum weft_status status_read = weft_file_read("-", 100, &bytes, &length, NULL);
    fputs("printed before; ", stdout);
    enum weft_status status_write = weft_file_write("-", "written", 7, NULL);
    dup2(saved, STDOUT_FILENO);
    cr_assert_eq(status_read, WEFT_OK);
    cr_assert_eq(status_write, WEFT_OK);
    cr_assert_str_eq(bytes, "from a pipe");
    expect_content("out", "printed before; written");
    free(bytes);
}

Test(file, an_open_file_is_read_from_its_start)
{
    struct weft_error err = {0};
    struct weft_text out;
    weft_text_init(&out);
    weft_text_add(&out, "first ");
    write_ok("in", "from its start");
    const int descriptor = open("in", O_RDONLY);
    cr_assert_eq(lseek(descriptor, 5, SEEK_SET), 5);
    cr_assert_eq(weft_file_read_open(descriptor, "the file", &out, &err), WEFT_OK, "%s", err.text);
    cr_assert_str_eq(weft_text_chars(&out), "first from its start");
    cr_assert_eq(lseek(descriptor, 0, SEEK_CUR), 5, "its offset stays");
    close(descriptor);
    cr_assert_eq(weft_file_read_open(descriptor, "the file", &out, &err), WEFT_E_IO);
    cr_assert_str_eq(err.text, "cannot read the file: Bad file descriptor");
    weft_text_finish(&out);
}

Test(file, directories_are_made_with_their_parents)
{
    struct stat about;
    struct weft_error err = {0};
    cr_assert_eq(weft_file_make_directory("x/y//z/", &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(stat("x/y/z", &about), 0);
    cr_assert(S_ISDIR(about.st_mode));
    cr_assert_eq(weft_file_make_directory("x/y/z", NULL), WEFT_OK);
    cr_assert_eq(weft_file_make_directory("/", NULL), WEFT_OK);
    cr_assert_eq(weft_file_make_directory("", NULL), WEFT_E_CREATE);
    write_ok("x/file", "");
    cr_assert_eq(weft_file_make_directory("x/file/w", &err), WEFT_E_CREATE);
    cr_assert_str_eq(err.text, "cannot create x/file/w: x/file: Not a directory");
    err = (struct weft_error){0};
    cr_assert_eq(weft_file_make_directory("x/file", &err), WEFT_E_CREATE);
    cr_assert_str_eq(err.text, "cannot create x/file: Not a directory", "its path once");
}

Test(file, sizes_have_the_systems_limit)
{
    struct rlimit limit;
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = 12345678;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    cr_assert_eq(weft_file_most_bytes(), 12345678);
    if (limit.rlim_max != RLIM_INFINITY) return; /* this process may not raise it */
    limit.rlim_cur = RLIM_INFINITY;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    cr_assert_eq(weft_file_most_bytes(), INT64_MAX);
}
