#include "runtime/train/corpora.h"

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

/* Three texts in whose names' order byte i is TEXT_BYTE(i). */
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
    static const char *const names[] = {"part_0", "part_1", "part_2", "part_*", "other"};
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
    cr_assert_eq(weft_corpus_hash(&one, &hash, &err), WEFT_OK);
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
