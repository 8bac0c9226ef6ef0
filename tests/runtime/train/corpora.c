/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/corpora.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/runtime/train/run_text.h"

enum { FILES = 3, MOST = 600 };

static char directory[32];
static const size_t lengths[FILES] = {200, 1, 399};

static const char *path_of(const char *name)
{
    static char path[64];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void write_file(const char *name, const void *bytes, size_t length)
{
    FILE *file = fopen(path_of(name), "wb");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite(bytes, 1, length, file), length);
    cr_assert_eq(fclose(file), 0);
}

/* Three texts. In the order of their names byte i is TEXT_BYTE(i). */
static void write_three(void)
{
    unsigned char bytes[MOST];
    strcpy(directory, "/tmp/weft-data-XXXXXX");
    cr_assert_not_null(mkdtemp(directory));
    for (int i = 0; i < MOST; i++)
        bytes[i] = (unsigned char)TEXT_BYTE(i);
    write_file("part_2", bytes + lengths[0] + lengths[1], lengths[2]);
    write_file("part_0", bytes, lengths[0]);
    write_file("part_1", bytes + lengths[0], lengths[1]);
}

static void remove_all(void)
{
    static const char *const names[] = {"part_0", "part_1", "part_2", "part_*", "other", "link"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(path_of(names[i]));
    cr_assert_eq(rmdir(directory), 0);
}

Test(corpora, reads_what_a_pattern_matches_as_one)
{
    struct weft_corpora corpora;
    struct weft_error err = {0};
    int32_t tokens[MOST];
    write_three();
    cr_assert_eq(
        weft_corpora_open(path_of("part_*"), "train.data", WEFT_DATA_AUTO, 256, &corpora, &err),
        WEFT_OK, "%s", err.text);
    cr_assert(corpora.text && corpora.n == FILES && corpora.tokens == MOST);
    for (int64_t at = 0; at < MOST; at += 7) {
        for (int64_t n = 1; at + n <= MOST; n += 61) {
            cr_assert_eq(weft_corpora_read(&corpora, at, n, tokens, &err), WEFT_OK);
            for (int64_t i = 0; i < n; i++)
                cr_assert_eq(tokens[i], TEXT_BYTE(at + i));
        }
    }
    cr_assert_eq(weft_corpora_check(&corpora, &err), WEFT_OK);
    weft_corpora_close(&corpora);
    remove_all();
}

static struct weft_hash hash_of_corpora(const char *name)
{
    struct weft_corpora corpora;
    struct weft_error err = {0};
    struct weft_hash hash;
    cr_assert_eq(
        weft_corpora_open(path_of(name), "train.data", WEFT_DATA_AUTO, 256, &corpora, &err),
        WEFT_OK);
    cr_assert_eq(weft_corpora_hash(&corpora, &hash, &err), WEFT_OK);
    weft_corpora_close(&corpora);
    return hash;
}

Test(corpora, hash_names_all_files_and_one_as_itself)
{
    struct weft_corpus one;
    struct weft_error err = {0};
    struct weft_hash hash;
    write_three();
    cr_assert_eq(weft_corpus_open(path_of("part_0"), "train.data", WEFT_DATA_AUTO, 256, &one, &err),
                 WEFT_OK);
    cr_assert_eq(weft_corpus_hash(&one, WEFT_CORPORA_HASHED, &hash, &err), WEFT_OK);
    weft_corpus_close(&one);
    cr_assert(weft_hash_equal(hash, hash_of_corpora("part_0")));
    cr_assert(weft_hash_equal(hash, hash_of_corpora("part_[0]")));
    struct weft_hash all = hash_of_corpora("part_*");
    cr_assert(!weft_hash_equal(all, hash));
    write_file("part_1", "x", 1);
    cr_assert(!weft_hash_equal(all, hash_of_corpora("part_*")));
    remove_all();
}

static void refused_corpora(const char *name, enum weft_status expected, const char *text)
{
    struct weft_corpora corpora = {.n = -7};
    struct weft_error err = {0};
    cr_assert_eq(
        weft_corpora_open(path_of(name), "train.data", WEFT_DATA_AUTO, 256, &corpora, &err),
        expected);
    cr_assert_not_null(strstr(err.text, text), "\"%s\" is not in: %s", text, err.text);
    cr_assert_eq(corpora.n, -7, "untouched on failure");
}

Test(corpora, refuses_patterns_that_cannot_be_read_as_one)
{
    unsigned char header[1024 + 4] = {0x88, 0xd8, 0x34, 0x01, 1, 0, 0, 0, 2}; /* two tokens */
    write_three();
    refused_corpora("none_*", WEFT_E_NO_INPUT, "matches no file. train.data must be");
    refused_corpora("none", WEFT_E_NO_INPUT, "no such file");
    write_file("part_1", header, sizeof header);
    refused_corpora("part_*", WEFT_E_DATA, "is of 16-bit tokens, and");
    refused_corpora("part_?", WEFT_E_DATA, "give files of one form");
    header[8] = 3;
    write_file("part_1", header, sizeof header);
    refused_corpora("part_*", WEFT_E_DATA, "part_1: its header says 3 tokens");
    /* A file of that very name is no pattern. */
    write_file("part_*", "abc", 3);
    struct weft_corpora corpora;
    struct weft_error err = {0};
    cr_assert_eq(
        weft_corpora_open(path_of("part_*"), "train.data", WEFT_DATA_AUTO, 256, &corpora, &err),
        WEFT_OK);
    cr_assert_eq(corpora.tokens, 3);
    weft_corpora_close(&corpora);
    remove_all();
}

static int count_open_files(void)
{
    DIR *directory = opendir("/proc/self/fd");
    int n = 0;
    cr_assert_not_null(directory);
    while (readdir(directory) != NULL)
        n++;
    closedir(directory);
    return n;
}

static void limit_open_files(rlim_t most)
{
    struct rlimit limit;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = most;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static const char *name_shard(int i)
{
    static char name[16];
    snprintf(name, sizeof name, "part_%03d", i);
    return name;
}

/* Also when the process is at its limit: all of these files but one give way. */
Test(corpora, more_files_than_may_be_open)
{
    enum { SHARDS = 40, SOFT = 32 };
    struct weft_corpora corpora;
    struct weft_error err = {0};
    int32_t tokens[SHARDS + 1];
    int n_taken = 0, taken[SOFT];
    strcpy(directory, "/tmp/weft-data-XXXXXX");
    cr_assert_not_null(mkdtemp(directory));
    for (int i = 0; i < SHARDS; i++)
        write_file(name_shard(i), (char[]){(char)('0' + i)}, 1);
    limit_open_files(SOFT);
    int before = count_open_files();
    cr_assert_eq(
        weft_corpora_open(path_of("part_*"), "train.data", WEFT_DATA_AUTO, 256, &corpora, &err),
        WEFT_OK, "%s", err.text);
    cr_assert_leq(count_open_files() - before, SOFT / 8);
    /* The one read longest ago is closed: the last before the first, which is read again. */
    cr_assert_eq(corpora.n_open, SOFT / 8);
    for (int i = 0; i < SOFT / 8; i++)
        cr_assert_eq(weft_corpora_read(&corpora, i, 1, tokens, &err), WEFT_OK);
    cr_assert_eq(weft_corpora_read(&corpora, 0, 1, tokens, &err), WEFT_OK);
    cr_assert_eq(weft_corpora_read(&corpora, SHARDS - 1, 1, tokens, &err), WEFT_OK);
    for (int i = 0; i < corpora.n_open; i++)
        cr_assert_neq(corpora.open[i].file, 1);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < SHARDS; i++) {
            int64_t n = i < SHARDS - 1 ? 2 : 1;
            cr_assert_eq(weft_corpora_read(&corpora, i, n, tokens, &err), WEFT_OK, "%s", err.text);
            cr_assert_eq(tokens[0], '0' + i);
            if (n == 2) cr_assert_eq(tokens[1], '1' + i);
        }
        cr_assert_leq(count_open_files() - before - n_taken, SOFT / 8);
        if (round > 0) continue;
        while (n_taken < SOFT && (taken[n_taken] = dup(0)) >= 0)
            n_taken++;
        cr_assert_lt(n_taken, SOFT);
        close(taken[--n_taken]); /* for the count */
    }
    while (n_taken > 0)
        close(taken[--n_taken]);
    weft_corpora_close(&corpora);
    cr_assert_eq(count_open_files(), before);
    for (int i = 0; i < SHARDS; i++)
        unlink(path_of(name_shard(i)));
    cr_assert_eq(rmdir(directory), 0);
}

Test(corpora, a_file_that_is_replaced_is_noticed)
{
    struct weft_corpora corpora;
    struct weft_error err = {0};
    int32_t token;
    write_three();
    limit_open_files(15); /* so that one is open */
    cr_assert_eq(
        weft_corpora_open(path_of("part_*"), "train.data", WEFT_DATA_AUTO, 256, &corpora, &err),
        WEFT_OK, "%s", err.text);
    write_file("other", "b", 1);
    char other[64];
    strcpy(other, path_of("other"));
    cr_assert_eq(rename(other, path_of("part_1")), 0);
    cr_assert_eq(weft_corpora_read(&corpora, 0, 1, &token, &err), WEFT_OK);
    cr_assert_eq(weft_corpora_read(&corpora, 200, 1, &token, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "is another file than when the run began"), "%s", err.text);
    weft_corpora_close(&corpora);
    remove_all();
}

static enum weft_status tell_apart(const char *training, int64_t end, const char *held_out,
                                   struct weft_error *err)
{
    struct weft_corpora a, b;
    *err = (struct weft_error){0};
    cr_assert_eq(weft_corpora_open(path_of(training), "train.data", WEFT_DATA_AUTO, 256, &a, err),
                 WEFT_OK);
    cr_assert_eq(
        weft_corpora_open(path_of(held_out != NULL ? held_out : training), "held", 0, 256, &b, err),
        WEFT_OK);
    const struct weft_corpora_part trained = {&a, 0, end};
    const struct weft_corpora_part held = held_out != NULL
                                              ? (struct weft_corpora_part){&b, 0, b.tokens}
                                              : (struct weft_corpora_part){&a, end, a.tokens};
    enum weft_status status = weft_corpora_apart(&trained, &held, err);
    weft_corpora_close(&a);
    weft_corpora_close(&b);
    return status;
}

Test(corpora, a_file_in_both_parts_is_found_by_any_name)
{
    struct weft_error err;
    char other[64];
    write_three();
    strcpy(other, path_of("part_2"));
    cr_assert_eq(tell_apart("part_[01]", 201, "part_2", &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(tell_apart("part_*", MOST, "part_2", &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "part_2 of held is a file of train.data too: "), "%s",
                       err.text);
    for (int hard = 0; hard < 2; hard++) {
        cr_assert_eq(hard ? link(other, path_of("link")) : symlink(other, path_of("link")), 0);
        cr_assert_eq(tell_apart("part_[01]", 201, "link", &err), WEFT_OK, "%s", err.text);
        cr_assert_eq(tell_apart("part_*", MOST, "link", &err), WEFT_E_DATA);
        cr_assert_not_null(strstr(err.text, "link of held is a file of train.data too (as "), "%s",
                           err.text);
        cr_assert_eq(tell_apart("link", 399, "part_*", &err), WEFT_E_DATA);
        unlink(path_of("link"));
    }
    remove_all();
}

/* A share cuts one file, which is none that both parts have; a second name of it is. */
Test(corpora, a_share_may_cut_a_file_that_has_one_name)
{
    struct weft_error err;
    char other[64];
    write_three();
    for (int64_t end = 1; end < MOST; end++)
        cr_assert_eq(tell_apart("part_*", end, NULL, &err), WEFT_OK, "%s", err.text);
    strcpy(other, path_of("part_2"));
    unlink(path_of("part_1"));
    cr_assert_eq(link(other, path_of("part_1")), 0); /* 200, 399 and the same 399 tokens */
    cr_assert_eq(tell_apart("part_*", 200, NULL, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(tell_apart("part_*", 201, NULL, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "remove one of the two names"), "%s", err.text);
    cr_assert_eq(tell_apart("part_*", 599, NULL, &err), WEFT_E_DATA);
    cr_assert_eq(tell_apart("part_*", 997, NULL, &err), WEFT_E_DATA);
    remove_all();
}
