#include "runtime/train/corpus.h"

#include "tests/runtime/train/run_text.h"

static void opens(const char *path, int64_t vocab, struct weft_corpus *corpus)
{
    struct weft_error err = {0};
    cr_assert_eq(weft_corpus_open(path, "train.data", WEFT_DATA_AUTO, vocab, corpus, &err), WEFT_OK,
                 "%s", err.text);
}

static void refused_corpus(const void *bytes, size_t length, const char *text)
{
    char path[32];
    struct weft_error err = {0};
    struct weft_corpus corpus = {.fd = -7};
    write_bytes(path, bytes, length);
    enum weft_status status =
        weft_corpus_open(path, "train.data", WEFT_DATA_AUTO, 50257, &corpus, &err);
    unlink(path);
    cr_assert_eq(status, WEFT_E_DATA, "%d: %s", (int)status, err.text);
    cr_assert_not_null(strstr(err.text, text), "\"%s\" is not in: %s", text, err.text);
    cr_assert_not_null(strstr(err.text, path), "%s is not in: %s", path, err.text);
    cr_assert_eq(corpus.fd, -7, "untouched on failure");
}

static void put(unsigned char *bytes, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
}

Test(corpus, refuses_headers_that_contradict_the_file)
{
    unsigned char file[1024 + 20] = {0};
    put(file, 20240520);
    put(file + 4, 1);
    put(file + 8, 10);
    refused_corpus(file, 1024 + 18,
                   "says 10 tokens, which is 1044 bytes with the header, but the file has "
                   "1042");
    refused_corpus(file, 1024 + 19, "but the file has 1043");
    refused_corpus(file, 1024, "but the file has 1024");
    refused_corpus(file, 1023, "shorter than its header");
    refused_corpus(file, 4, "shorter than its header");
    put(file + 8, UINT32_MAX);
    refused_corpus(file, sizeof file, "says -1 tokens");
    put(file + 8, UINT32_C(0x80000000));
    refused_corpus(file, sizeof file, "says -2147483648 tokens");
    put(file + 8, 10);
    put(file + 4, 2);
    refused_corpus(file, sizeof file, "version 2");
    put(file, 20240801);
    refused_corpus(file, sizeof file, "magic 20240801 and version 2: version 7 (32-bit tokens)");
    put(file + 4, 7);
    refused_corpus(file, sizeof file, "says 10 tokens, which is 1064 bytes");
    put(file, 20240522);
    refused_corpus(file, sizeof file, "questions");
    put(file, 20240326);
    refused_corpus(file, sizeof file, "begins with 20240326, as a file of llm.c's does");
}

Test(corpus, reads_tokens_of_32_bits)
{
    enum { TOKENS = 500 };
    unsigned char file[1024 + 4 * TOKENS] = {0};
    char path[32];
    struct weft_corpus corpus;
    struct weft_error err = {0};
    int32_t tokens[TOKENS];
    put(file, 20240801);
    put(file + 4, 7);
    put(file + 8, TOKENS);
    for (uint32_t i = 0; i < TOKENS; i++)
        put(file + 1024 + 4 * i, 128255 - 199 * i);
    opens(write_bytes(path, file, sizeof file), 128256, &corpus);
    cr_assert(!corpus.text && corpus.tokens == TOKENS);
    cr_assert_eq(weft_corpus_read(&corpus, 3, TOKENS - 3, tokens, &err), WEFT_OK, "%s", err.text);
    for (int32_t i = 0; i < TOKENS - 3; i++)
        cr_assert_eq(tokens[i], 128255 - 199 * (i + 3));
    weft_corpus_close(&corpus);
    put(file + 1024 + 4 * 77, UINT32_MAX);
    unlink(path);
    opens(write_bytes(path, file, sizeof file), 128256, &corpus);
    cr_assert_eq(weft_corpus_check(&corpus, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "token 77 is 4294967295"), "%s", err.text);
    weft_corpus_close(&corpus);
    unlink(path);
}

Test(corpus, reads_what_was_written)
{
    char path[32];
    struct weft_corpus corpus;
    struct weft_error err = {0};
    int32_t tokens[300];
    opens(write_tokens(path, 60000, 50000), 50257, &corpus);
    cr_assert(!corpus.text && corpus.tokens == 60000);
    for (int64_t at = 0; at + 300 <= 60000; at += 2971) {
        cr_assert_eq(weft_corpus_read(&corpus, at, 300, tokens, &err), WEFT_OK, "%s", err.text);
        for (int64_t i = 0; i < 300; i++)
            cr_assert_eq(tokens[i], (at + i) % 50000);
    }
    cr_assert_eq(weft_corpus_read(&corpus, 59999, 1, tokens, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(tokens[0], 9999);
    weft_corpus_close(&corpus);
    unlink(path);
    opens(write_text(path, 1000), 256, &corpus);
    cr_assert(corpus.text && corpus.tokens == 1000);
    cr_assert_eq(weft_corpus_read(&corpus, 700, 300, tokens, &err), WEFT_OK, "%s", err.text);
    for (int64_t i = 0; i < 300; i++)
        cr_assert_eq(tokens[i], TEXT_BYTE(700 + i));
    weft_corpus_close(&corpus);
    unlink(path);
}

Test(corpus, names_the_first_token_outside_the_vocabulary)
{
    char path[32];
    struct weft_corpus corpus;
    struct weft_error err = {0};
    int32_t tokens[8];
    opens(write_tokens(path, 50000, 50000), 49000, &corpus);
    cr_assert_eq(weft_corpus_check(&corpus, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "token 49000 is 49000"), "%s", err.text);
    err = (struct weft_error){0};
    cr_assert_eq(weft_corpus_read(&corpus, 48996, 8, tokens, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "token 49000 is 49000"), "%s", err.text);
    weft_corpus_close(&corpus);
    unlink(path);
}

Test(corpus, a_file_cut_short_is_an_error)
{
    char path[32];
    struct weft_corpus corpus;
    struct weft_error err = {0};
    int32_t tokens[100];
    opens(write_text(path, 100000), 256, &corpus);
    cr_assert_eq(truncate(path, 50050), 0);
    cr_assert_eq(weft_corpus_read(&corpus, 49950, 100, tokens, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_corpus_read(&corpus, 50000, 100, tokens, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "ends at byte 50050, and had 100000"), "%s", err.text);
    err = (struct weft_error){0};
    cr_assert_eq(weft_corpus_read(&corpus, 90000, 100, tokens, &err), WEFT_E_DATA);
    weft_corpus_close(&corpus);
    unlink(path);
}

static struct weft_hash hash_of_corpus(const char *path)
{
    struct weft_corpus corpus;
    struct weft_error err = {0};
    struct weft_hash hash;
    opens(path, 50257, &corpus);
    cr_assert_eq(weft_corpus_hash(&corpus, &hash, &err), WEFT_OK, "%s", err.text);
    weft_corpus_close(&corpus);
    return hash;
}

Test(corpus, the_hash_names_the_contents)
{
    char a[32], b[32], c[32];
    struct weft_hash first = hash_of_corpus(write_text(a, 200000)),
                     same = hash_of_corpus(write_text(b, 200000));
    cr_assert(weft_hash_equal(first, same));
    cr_assert_not(weft_hash_equal(first, hash_of_corpus(write_text(c, 200001))));
    unlink(c);
    FILE *file = fopen(b, "r+b");
    cr_assert_not_null(file);
    cr_assert_eq(fseek(file, 131072, SEEK_SET), 0);
    fputc('x', file);
    fclose(file);
    cr_assert_not(weft_hash_equal(first, hash_of_corpus(b)));
    unlink(a);
    unlink(b);
}
