/* SPDX-License-Identifier: Apache-2.0 */
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
    unsigned char file[1024 + 36] = {0};
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
    refused_corpus(file, 1044, "says 4294967295 tokens, which is 8589935614 bytes");
    put(file + 8, UINT32_C(0x80000000));
    refused_corpus(file, sizeof file, "says 2147483648 tokens");
    put(file + 8, 10);
    put(file + 4, 2);
    refused_corpus(file, sizeof file, "version 2");
    put(file, 20240801);
    refused_corpus(file, sizeof file, "magic 20240801 and version 2: version 7 (32-bit tokens)");
    put(file + 4, 7);
    refused_corpus(file, 1024 + 36, "says 10 tokens, which is 1064 bytes");
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
    cr_assert_eq(weft_corpus_check(&corpus, 1024, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "token 77 is 4294967295"), "%s", err.text);
    weft_corpus_close(&corpus);
    unlink(path);
}

/* A token file of `n` tokens i * 7919 % below of `width` bytes after a header of `magic` that
 * counts `said` tokens. */
static const char *write_wide(char path[32], int magic, int width, size_t n, uint32_t said,
                              uint32_t below)
{
    unsigned char *bytes = calloc(1, 1024 + n * (size_t)width);
    cr_assert_not_null(bytes);
    put(bytes, (uint32_t)magic);
    put(bytes + 4, magic == 20240520 ? 1 : 7);
    put(bytes + 8, said);
    for (size_t i = 0; i < n; i++)
        for (int b = 0; b < width && b < 4; b++)
            bytes[1024 + i * (size_t)width + (size_t)b] =
                (unsigned char)((uint32_t)(i + 1) * 7919 % below >> (8 * b));
    write_bytes(path, bytes, 1024 + n * (size_t)width);
    free(bytes);
    return path;
}

Test(corpus, tokens_of_another_width_than_the_header_are_noticed)
{
    static const struct {
        int magic, width;
        uint32_t said, below; /* of 9000 tokens */
        int64_t vocab;
        const char *says[2];
    } cases[] = {
        {20240520, 4, 9000, 50257, 50257, {"header is of 16-bit tokens", "20240520, 1"}},
        {20240801, 2, 9000, 50257, 50257, {"header is of 32-bit tokens", "20240520, 1"}},
        {20240520, 4, 18000, 50257, 50257, {"every second token is 0", "tokens of 32 bits after"}},
        {20240801, 8, 18000, 99999, 128256, {"every second token is 0", "20240801, 7"}},
        {20240520, 2, 9000, 60000, 128256, {"has tokens of 16 bits", "20240801, 7"}},
        {20240520, 2, 9000, 60000, 65537, {"has tokens of 16 bits", "32 bits each"}},
        {20240801, 2, 4500, 50257, 50257, {"is 1037967087", "no tokenizer has such a token"}},
        {20240801, 4, 9000, 99999, 50257, {"set vocab to more than", "tokenizer"}},
        {20240520, 2, 9000, 60000, 65536, {NULL}},
        {20240801, 4, 9000, 60000, 65536, {NULL}},
        {20240801, 4, 9000, 99999, 128256, {NULL}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[32];
        struct weft_corpus corpus = {.fd = -1};
        struct weft_error err = {0};
        write_wide(path, cases[i].magic, cases[i].width, 9000, cases[i].said, cases[i].below);
        enum weft_status status =
            weft_corpus_open(path, "train.data", WEFT_DATA_AUTO, cases[i].vocab, &corpus, &err);
        if (status == WEFT_OK) status = weft_corpus_check(&corpus, 1024, &err);
        weft_corpus_close(&corpus);
        unlink(path);
        const bool wanted = cases[i].says[0] == NULL;
        cr_assert_eq(status, wanted ? WEFT_OK : WEFT_E_DATA, "%zu: %s", i, err.text);
        for (int s = 0; s < 2 && !wanted; s++)
            cr_assert_not_null(strstr(err.text, cases[i].says[s]), "%zu: %s", i, err.text);
    }
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
    cr_assert_eq(weft_corpus_check(&corpus, 1024, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "token 49000 is 49000, at byte 99024"), "%s", err.text);
    err = (struct weft_error){0};
    cr_assert_eq(weft_corpus_read(&corpus, 48996, 8, tokens, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "token 49000 is 49000, at byte 99024"), "%s", err.text);
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

static struct weft_hash hash_of_pieces(const char *path, int64_t pieces)
{
    struct weft_corpus corpus;
    struct weft_error err = {0};
    struct weft_hash hash;
    opens(path, 50257, &corpus);
    cr_assert_eq(weft_corpus_hash(&corpus, pieces, &hash, &err), WEFT_OK, "%s", err.text);
    weft_corpus_close(&corpus);
    return hash;
}

static struct weft_hash hash_of_corpus(const char *path)
{
    return hash_of_pieces(path, 1024);
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

static void write_at(const char *path, int64_t at, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "r+b");
    cr_assert_not_null(file);
    cr_assert_eq(fseeko(file, at, SEEK_SET), 0);
    cr_assert_eq(fwrite(bytes, 1, n, file), n);
    cr_assert_eq(fclose(file), 0);
}

/* A token file of zeros, most of them in a hole. */
static const char *write_hole(char path[32], int64_t tokens, uint32_t said)
{
    unsigned char header[1024] = {0};
    put(header, 20240520);
    put(header + 4, 1);
    put(header + 8, said);
    write_bytes(path, header, sizeof header);
    cr_assert_eq(truncate(path, 1024 + 2 * tokens), 0);
    return path;
}

Test(corpus, counts_of_more_than_31_bits_are_those_of_the_length)
{
    static const int64_t counts[] = {INT64_C(2147483647), INT64_C(2147483648), INT64_C(3000000000),
                                     INT64_C(4294967296), INT64_C(9035582198)};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        char path[32];
        struct weft_corpus corpus;
        struct weft_error err = {0};
        int32_t tokens[2];
        const unsigned char last[] = {7, 1, 8, 2};
        opens(write_hole(path, counts[i], (uint32_t)counts[i]), 50257, &corpus);
        cr_assert_eq(corpus.tokens, counts[i]);
        write_at(path, 1024 + 2 * (counts[i] - 2), last, sizeof last);
        cr_assert_eq(weft_corpus_check(&corpus, 3, &err), WEFT_OK, "%s", err.text);
        cr_assert_eq(weft_corpus_read(&corpus, counts[i] - 2, 2, tokens, &err), WEFT_OK);
        cr_assert(tokens[0] == 263 && tokens[1] == 520);
        weft_corpus_close(&corpus);
        cr_assert_eq(truncate(path, 1024 + 2 * counts[i] - 2), 0);
        cr_assert_eq(weft_corpus_open(path, "train.data", WEFT_DATA_AUTO, 50257, &corpus, &err),
                     WEFT_E_DATA);
        cr_assert_not_null(strstr(err.text, "cut short or damaged"), "%s", err.text);
        cr_assert_eq(strstr(err.text, "(modulo 2^32)") != NULL, counts[i] > UINT32_MAX + INT64_C(1),
                     "%s", err.text);
        unlink(path);
    }
}

/* The check finds a token in a piece that it reads; a read finds any other. */
Test(corpus, a_bounded_sample_is_checked)
{
    enum { COUNT = WEFT_CORPUS_CHECKED_BYTES / 2, PIECES = 5 };
    const int64_t tokens = INT64_C(1000) * COUNT + 1;
    const struct {
        int64_t at;
        bool is_found;
    } cases[] = {{0, true},           {COUNT - 1, true}, {tokens - 1, true},
                 {250 * COUNT, true}, {COUNT, false},    {tokens - 2, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[32], says[64];
        struct weft_corpus corpus;
        struct weft_error err = {0};
        int32_t token;
        opens(write_hole(path, tokens, (uint32_t)tokens), 50257, &corpus);
        write_at(path, 1024 + 2 * cases[i].at, "\xFF\xFF", 2);
        cr_assert_eq(weft_corpus_check(&corpus, PIECES, &err),
                     cases[i].is_found ? WEFT_E_DATA : WEFT_OK, "case %zu", i);
        err = (struct weft_error){0};
        cr_assert_eq(weft_corpus_read(&corpus, cases[i].at, 1, &token, &err), WEFT_E_DATA);
        snprintf(says, sizeof says, "token %lld is 65535, at byte %lld", (long long)cases[i].at,
                 (long long)(1024 + 2 * cases[i].at));
        cr_assert_not_null(strstr(err.text, says), "%s is not in %s", says, err.text);
        weft_corpus_close(&corpus);
        unlink(path);
    }
}

Test(corpus, the_hash_reads_its_pieces_alone)
{
    char path[32];
    const int64_t tokens = INT64_C(50) * WEFT_CORPUS_HASHED_BYTES;
    struct weft_hash of_all, of_some;
    write_hole(path, tokens, (uint32_t)tokens);
    of_all = hash_of_pieces(path, 101);
    of_some = hash_of_pieces(path, 3);
    /* There are 100 pieces and the header's bytes: the third of three is the last of 101. */
    write_at(path, INT64_C(100) * WEFT_CORPUS_HASHED_BYTES + 2, "x", 1);
    cr_assert_not(weft_hash_equal(of_all, hash_of_pieces(path, 101)));
    cr_assert_not(weft_hash_equal(of_some, hash_of_pieces(path, 3)));
    of_all = hash_of_pieces(path, 101);
    of_some = hash_of_pieces(path, 3);
    write_at(path, INT64_C(7) * WEFT_CORPUS_HASHED_BYTES, "x", 1);
    cr_assert_not(weft_hash_equal(of_all, hash_of_pieces(path, 101)));
    cr_assert(weft_hash_equal(of_some, hash_of_pieces(path, 3)));
    unlink(path);
}

Test(corpus, a_corpus_that_is_opened_again_is_the_same_file)
{
    char path[32], other[32];
    struct weft_corpus corpus;
    struct weft_error err = {0};
    int32_t token;
    opens(write_text(path, 1000), 256, &corpus);
    weft_corpus_close(&corpus);
    cr_assert_eq(corpus.fd, -1);
    cr_assert_eq(weft_corpus_reopen(&corpus, "train.data", &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_corpus_read(&corpus, 999, 1, &token, &err), WEFT_OK);
    cr_assert_eq(token, TEXT_BYTE(999));
    weft_corpus_close(&corpus);
    cr_assert_eq(truncate(path, 999), 0);
    cr_assert_eq(weft_corpus_reopen(&corpus, "train.data", &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "(999 bytes, not 1000)"), "%s", err.text);
    cr_assert_eq(corpus.fd, -1);
    cr_assert_eq(truncate(path, 1000), 0);
    cr_assert_eq(rename(write_text(other, 1000), path), 0);
    cr_assert_eq(weft_corpus_reopen(&corpus, "train.data", &err), WEFT_E_DATA);
    unlink(path);
    err = (struct weft_error){0};
    cr_assert_eq(weft_corpus_reopen(&corpus, "train.data", &err), WEFT_E_NO_INPUT);
}
