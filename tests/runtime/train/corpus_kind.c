/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/corpus_kind.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static enum weft_status look_at(const char *path, const void *bytes, size_t n,
                                struct weft_error *err)
{
    struct weft_corpus_look look;
    weft_corpus_look_init(&look, path, 50257);
    weft_corpus_look_add(&look, bytes, n);
    return weft_corpus_look_end(&look, "train.data", err);
}

static void refused_corpus_kind(const char *path, const void *head, size_t n, const char *says)
{
    struct weft_error err = {0};
    cr_assert_eq(look_at(path, head, n, &err), WEFT_E_DATA, "%s", says);
    cr_assert_not_null(strstr(err.text, says), "\"%s\" is not in: %s", says, err.text);
    const bool has_cure = strstr(err.text, "set train.data to {\"path\": ") != NULL ||
                          strstr(err.text, "To train on them, write its tokens, ") != NULL;
    cr_assert(has_cure, "%s", err.text);
}

Test(corpus_kind, what_begins_as_another_file_is_named)
{
#define CASE(head, says)                                                                           \
    {                                                                                              \
        head, sizeof(head) - 1, says                                                               \
    }
    static const struct {
        const char *head;
        size_t n;
        const char *says;
    } cases[] = {
        CASE("\x93NUMPY\x01\x00v\0", "a NumPy array"),
        CASE("PK\3\4\x14", "a zip archive"),
        CASE("\x1F\x8B\x08", "gzip -d"),
        CASE("\x28\xB5\x2F\xFD\x04", "zstd -d"),
        CASE("\xFD"
             "7zXZ\0",
             "xz -d"),
        CASE("BZh91AY&SY", "bzip2 -d"),
        CASE("PAR1\x15\0\x15", "a Parquet table"),
        CASE("\x89HDF\r\n\x1A\n", "an HDF5 file"),
        CASE("\0\0\x08\x03\0\0\xEA\x60", "an IDX array"),
        CASE("%PDF-1.7\n", "pdftotext"),
        CASE("\x80\x04\x95", "a pickle"),
        CASE("\xFF\xFEh\0i\0", "iconv"),
        CASE("\x40\x01\0\0\0\0\0\0{\"a\":", "a model file (safetensors)"),
        CASE("\xFF\xFF\xFF\xFF\x70\1\0\0", "an Arrow stream"),
        CASE("ARROW1\0\0", "an Arrow table"),
        CASE("SQLite format 3\0", "an SQLite database"),
        CASE("ORC\0", "an ORC table"),
        CASE("{\\rtf1\\ansi", "a document (RTF)"),
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused_corpus_kind("data", cases[i].head, cases[i].n, cases[i].says);
    char tar[512] = "name";
    memcpy(tar + 257, "ustar", 5);
    refused_corpus_kind("data", tar, sizeof tar, "a tar archive");
}

Test(corpus_kind, a_nul_is_in_no_text)
{
    refused_corpus_kind("data", "abc\0def", 7, "is no text: binary");
    refused_corpus_kind("train.bin", "\x0B\0\x06\x01\x0B\0", 6, "tokens without a header");
    refused_corpus_kind("train.bin", "\x0B\0\x06\x01\x0B\0", 6,
                        "256 int32: 20240520, 1, their number (modulo 2^32), zeros");
}

Test(corpus_kind, a_nul_in_a_later_piece_is_in_no_text)
{
    struct weft_corpus_look look;
    struct weft_error err = {0};
    weft_corpus_look_init(&look, "data", 256);
    cr_assert(weft_corpus_look_add(&look, (const unsigned char *)"[\"abc", 5));
    cr_assert_not(weft_corpus_look_add(&look, (const unsigned char *)"d\0", 2));
    cr_assert_eq(weft_corpus_look_end(&look, "train.data", &err), WEFT_E_DATA);
}

/* The look's error for tokens of some width below `below`, in a vocabulary. */
static void look_at_tokens(int width, int64_t below, int64_t vocab, struct weft_error *err)
{
    enum { TOKENS = 4096 };
    unsigned char bytes[8 * TOKENS];
    struct weft_corpus_look look;
    for (int i = 0; i < TOKENS; i++) {
        const int64_t token = INT64_C(7919) * (i + 1) * (i + 3) % below;
        for (int b = 0; b < width; b++)
            bytes[i * width + b] = (unsigned char)(token >> (8 * b));
    }
    *err = (struct weft_error){0};
    weft_corpus_look_init(&look, "tokens.bin", vocab);
    weft_corpus_look_add(&look, bytes, (size_t)TOKENS * (size_t)width);
    cr_assert_eq(weft_corpus_look_end(&look, "train.data", err), WEFT_E_DATA);
}

Test(corpus_kind, the_form_of_tokens_follows_the_vocabulary)
{
    static const struct {
        int width;
        int64_t below, vocab;
        const char *name, *form;
    } cases[] = {
        {2, 50257, 50257, "of 16 bits each it seems.",
         "16 bits each, after a header of 256 int32: "
         "20240520, 1,"},
        {4, 50257, 50257, "of 32 bits each it seems.", "20240520, 1,"},
        {8, 50257, 50257, "of 64 bits each it seems.", "20240520, 1,"},
        {4, 128256, 128256, "of 32 bits each it seems.",
         "32 bits each, after a header of 256 "
         "int32: 20240801, 7,"},
        {8, 128256, 128256, "of 64 bits each it seems.", "20240801, 7,"},
        {2, 65536, 128256, "which cut every token from 65536 on", "20240801, 7,"},
        {4, 65536, 65537, "of 32 bits each it seems.", "20240801, 7,"},
        {2, 65536, 65536, "of 16 bits each it seems.", "20240520, 1,"},
        {4, 60000, 256, "without a header, it seems.", "20240520, 1,"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weft_error err;
        look_at_tokens(cases[i].width, cases[i].below, cases[i].vocab, &err);
        cr_assert_not_null(strstr(err.text, cases[i].name), "%zu: %s", i, err.text);
        cr_assert_not_null(strstr(err.text, cases[i].form), "%zu: %s", i, err.text);
        cr_assert_null(strstr(err.text, "\"bytes\""), "%zu: %s", i, err.text);
    }
}

Test(corpus_kind, tables_of_text_are_no_text)
{
    char csv[4000] = "", *at = csv;
    for (int i = 0; i < 40; i++)
        at += snprintf(at, 60, "%d,\"it was fine, day %d\",%d\n", i, i, i % 2);
    refused_corpus_kind("data", csv, strlen(csv), "a table (CSV)");
    refused_corpus_kind("a.csv", "prose\n", 6, "csv.reader(sys.stdin)");
    refused_corpus_kind("A.TSV", "prose\n", 6,
                        "a table (TSV). Either write its column of text to a "
                        "file, for example its first one by: cut -f 1");
}

Test(corpus_kind, records_of_json_are_no_text)
{
    static const char *const cases[][3] = {
        {"{\"text\": \"a\"}\n{\"text\": \"b\"}\n", "lines of JSON", "jq -r '.text'"},
        {"{\n  \"text\": \"a\"\n}\n", "a JSON document", "jq -r '.. | strings'"},
        {"[{\"text\": \"a\"}]", "a JSON array of objects", "jq -r '.[].text'"},
        {"[\"a\", \"b\"]\n", "JSON arrays", "jq -r '.. | strings'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int says = 1; says < 3; says++)
            refused_corpus_kind("data", cases[i][0], strlen(cases[i][0]), cases[i][says]);
}

Test(corpus_kind, texts_are_let_by)
{
    static const char *const texts[] = {
        "",
        "The quick brown fox\n",
        "caf\xE9 latin-1\n",
        "\xEF\xBB\xBFwith a mark",
        "\033[1mbold",
        "RIFF is a format\n",
        "PAR1 and PAR2 are suffixes\n",
        "SQLite format 3 is\n",
        "PK\n",
        "{not json}\n{}\n",
        "{\"a\": 1}\nand a text\n",
        "{}",
        "BZh9 is\n",
        "GGUF\n",
        "%PDF is\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct weft_error err = {0};
        cr_assert_eq(look_at("data", texts[i], strlen(texts[i]), &err), WEFT_OK, "%s: %s", texts[i],
                     err.text);
    }
}
