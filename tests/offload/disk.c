/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a disk: allowed places, and the errors for the others. */
#include "offload/disk.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/offload/fake_disk.h"

enum { DISK_BYTES = 1 << 20 };

static struct fake_disk fake;

static void make_fake_disk(void)
{
    fake_disk_init(&fake, DISK_BYTES);
}

static void check_nothing_open(void)
{
    cr_assert_eq(fake.open_files, 0);
    cr_assert_eq(fake.names, 0);
    fake_disk_finish(&fake);
}

static void disk_refuses(const struct weft_disk_calls *calls, const char *directory,
                         enum weft_status status, const char *says)
{
    struct weft_error err = {0};
    struct weft_disk disk = {.fd = -7};
    cr_assert_eq(weft_disk_open(calls, directory, true, &disk, &err), status, "%s", err.text);
    cr_assert(strstr(err.text, says) && strstr(err.text, directory), "%s", err.text);
    cr_assert_eq(disk.fd, -7);
}

static int count_entries(const char *directory)
{
    int n = 0;
    DIR *stream = opendir(directory);
    while (readdir(stream) != NULL)
        n++;
    closedir(stream);
    return n;
}

Test(disk, a_file_leaves_no_name)
{
    char directory[] = "weft-disk-XXXXXX";
    struct weft_error err = {0};
    struct weft_disk disk;
    cr_assert_not_null(mkdtemp(directory));
    cr_assert_eq(weft_disk_open(&weft_disk_calls, directory, true, &disk, &err), WEFT_OK, "%s",
                 err.text);
    cr_assert_eq(weft_disk_reserve(&disk, DISK_BYTES, &err), WEFT_OK, "%s", err.text);
    struct stat facts;
    cr_assert_eq(fstat(disk.fd, &facts), 0);
    cr_assert_eq(facts.st_size, DISK_BYTES);
    cr_assert_eq(facts.st_nlink, 0);
    cr_assert_eq(facts.st_mode & 0777, 0600);
    cr_assert(facts.st_blocks * 512 >= DISK_BYTES);
    cr_assert_eq(count_entries(directory), 2);
    const int fd = disk.fd;
    weft_disk_close(&disk);
    weft_disk_close(&disk);
    cr_assert_eq(fcntl(fd, F_GETFD), -1);
    rmdir(directory);
}

Test(disk, what_is_no_directory_to_write_to_is_refused)
{
    const char *file = "weft-disk-no-directory";
    disk_refuses(&weft_disk_calls, "weft-no-such", WEFT_E_DATA, "no such directory");
    fclose(fopen(file, "w"));
    disk_refuses(&weft_disk_calls, file, WEFT_E_DATA, "not a directory");
    unlink(file);
}

Test(disk, no_permission_is_said, .init = make_fake_disk, .fini = check_nothing_open)
{
    fake.fail_at = 0;
    fake.fail_with = EACCES;
    disk_refuses(&fake.calls, "D", WEFT_E_DATA, "no permission");
}

Test(disk, memory_is_no_disk, .init = make_fake_disk, .fini = check_nothing_open)
{
    fake.file_system = 0x01021994;
    disk_refuses(&fake.calls, "D", WEFT_E_DATA, "tmpfs, which keeps everything in memory");
    fake.file_system = 0x858458F6;
    disk_refuses(&fake.calls, "D", WEFT_E_DATA, "ramfs, which keeps everything in memory");
}

Test(disk, tmpfs_of_this_machine_is_no_disk)
{
    struct weft_disk disk;
    struct weft_error err = {0};
    uint64_t number = 0;
    int64_t bytes;
    const int fd = open("/dev/shm", O_RDONLY | O_DIRECTORY);
    const bool is_tmpfs = fd >= 0 && weft_disk_calls.file_system(NULL, fd, &number, &bytes) == 0 &&
                          number == 0x01021994;
    if (fd >= 0) close(fd);
    if (!is_tmpfs) cr_skip_test("there is no tmpfs in /dev/shm");
    cr_assert_eq(weft_disk_open(&weft_disk_calls, "/dev/shm", true, &disk, &err), WEFT_E_DATA);
    cr_assert(strstr(err.text, "tmpfs"), "%s", err.text);
}

Test(disk, descriptors_that_are_used_up_name_their_limit)
{
    struct weft_error err = {0};
    struct weft_disk disk;
    struct rlimit before;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit limit = {3, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &limit);
    const enum weft_status status = weft_disk_open(&weft_disk_calls, ".", true, &disk, &err);
    setrlimit(RLIMIT_NOFILE, &before);
    cr_assert_eq(status, WEFT_E_SYSTEM, "%s", err.text);
    cr_assert(strstr(err.text, "RLIMIT_NOFILE"), "%s", err.text);
}

Test(disk, the_limit_of_file_sizes_is_named_before_it_ends_the_process)
{
    struct weft_error err = {0};
    struct weft_disk disk;
    const struct rlimit limit = {DISK_BYTES - 1, DISK_BYTES - 1};
    cr_assert_eq(weft_disk_open(&weft_disk_calls, ".", true, &disk, &err), WEFT_OK, "%s", err.text);
    setrlimit(RLIMIT_FSIZE, &limit);
    cr_assert_eq(weft_disk_reserve(&disk, DISK_BYTES, &err), WEFT_E_SYSTEM, "%s", err.text);
    cr_assert(strstr(err.text, "RLIMIT_FSIZE"), "%s", err.text);
    weft_disk_close(&disk);
}

Test(disk, space_that_is_missing_is_said_in_bytes, .init = make_fake_disk,
     .fini = check_nothing_open)
{
    struct weft_error err = {0};
    struct weft_disk disk;
    cr_assert_eq(weft_disk_open(&fake.calls, "D", true, &disk, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_disk_reserve(&disk, 3 * DISK_BYTES, &err), WEFT_E_IO, "%s", err.text);
    cr_assert(strstr(err.text, "3.00 MiB") && strstr(err.text, "1.00 MiB are free"), "%s",
              err.text);
    weft_disk_close(&disk);
}

Test(disk, what_cannot_be_reserved_is_said, .init = make_fake_disk, .fini = check_nothing_open)
{
    struct weft_error err = {0};
    struct weft_disk disk;
    cr_assert_eq(weft_disk_open(&fake.calls, "D", true, &disk, &err), WEFT_OK, "%s", err.text);
    fake.fail_at = fake.all;
    fake.fail_with = EOPNOTSUPP;
    cr_assert_eq(weft_disk_reserve(&disk, DISK_BYTES, &err), WEFT_E_IO, "%s", err.text);
    cr_assert(strstr(err.text, "not supported"), "%s", err.text);
    weft_disk_close(&disk);
}

Test(disk, without_unnamed_files_a_name_goes_at_once, .init = make_fake_disk,
     .fini = check_nothing_open)
{
    struct weft_error err = {0};
    struct weft_disk disk;
    fake.no_unnamed = true;
    cr_assert_eq(weft_disk_open(&fake.calls, "D", true, &disk, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(fake.made[FAKE_OPEN], 2);
    cr_assert_eq(fake.names, 0);
    weft_disk_close(&disk);
}

static struct weft_disk_facts facts_of_fake(bool direct)
{
    struct weft_error err = {0};
    struct weft_disk disk;
    cr_assert_eq(weft_disk_open(&fake.calls, "D", direct, &disk, &err), WEFT_OK, "%s", err.text);
    weft_disk_close(&disk);
    return disk.facts;
}

Test(disk, direct_is_what_the_file_system_takes, .init = make_fake_disk, .fini = check_nothing_open)
{
    struct weft_disk_facts facts = facts_of_fake(true);
    cr_assert(facts.direct && facts.step_bytes == 512 && facts.alignment_bytes == 4096);
    fake.alignment = -1;
    facts = facts_of_fake(true);
    cr_assert(facts.direct && facts.step_bytes == 4096 && facts.alignment_bytes == 4096);
    fake.alignment = 16384;
    facts = facts_of_fake(true);
    cr_assert(facts.direct && facts.step_bytes == 16384 && facts.alignment_bytes == 16384);
    fake.alignment = -2;
    facts = facts_of_fake(true);
    cr_assert(!facts.direct && facts.alignment_bytes == 4096);
    cr_assert(strstr(facts.reason, "no direct input"), "%s", facts.reason);
    fake.alignment = 512;
    facts = facts_of_fake(false);
    cr_assert(!facts.direct && facts.alignment_bytes == 4096);
    fake.fail_at = fake.all + 3; /* open, file system, alignment, direct */
    fake.fail_with = EINVAL;
    facts = facts_of_fake(true);
    cr_assert(!facts.direct && strstr(facts.reason, "refuses O_DIRECT"), "%s", facts.reason);
}

Test(disk, a_file_system_that_copies_is_told_not_to, .init = make_fake_disk,
     .fini = check_nothing_open)
{
    fake.file_system = 0x9123683E;
    cr_assert(!facts_of_fake(true).copies);
    cr_assert_eq(fake.made[FAKE_NO_COPY], 1);
    fake.fail_at = fake.all + 2;
    fake.fail_with = ENOTTY;
    cr_assert(facts_of_fake(true).copies);
}

Test(disk, facts_are_a_line, .init = make_fake_disk, .fini = check_nothing_open)
{
    char line[512];
    struct weft_disk_facts facts = facts_of_fake(true);
    weft_disk_describe(&facts, line, sizeof line);
    cr_assert_str_eq(line, "ext4, direct (O_DIRECT), aligned to 4.00 KiB, 1.00 MiB free");
    fake.file_system = 0x6969;
    facts = facts_of_fake(false);
    cr_assert(facts.network);
    weft_disk_describe(&facts, line, sizeof line);
    cr_assert_str_eq(line, "nfs (a network file system), through the page cache (it was not asked "
                           "for), aligned to 4.00 KiB, 1.00 MiB free");
}

Test(disk, the_page_cache_says_what_it_holds)
{
    struct weft_error err = {0};
    struct weft_disk disk;
    static unsigned char bytes[DISK_BYTES];
    int64_t resident = -1;
    const struct iovec all = {bytes, sizeof bytes};
    cr_assert_eq(weft_disk_open(&weft_disk_calls, ".", false, &disk, &err), WEFT_OK, "%s",
                 err.text);
    cr_assert_eq(weft_disk_reserve(&disk, DISK_BYTES, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_disk_calls.resident(NULL, disk.fd, DISK_BYTES, &resident), 0);
    cr_assert_eq(resident, 0);
    cr_assert_eq(weft_disk_calls.write(NULL, disk.fd, &all, 1, 0), DISK_BYTES);
    cr_assert_eq(weft_disk_calls.resident(NULL, disk.fd, DISK_BYTES, &resident), 0);
    cr_assert_eq(resident, DISK_BYTES);
    weft_disk_close(&disk);
}
