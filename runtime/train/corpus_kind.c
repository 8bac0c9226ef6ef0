/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/corpus_kind.h"

#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "runtime/train/token_width.h"

#define UNPACK             "unpack it first"
#define UNPACK_BY(program) UNPACK " (" program " -d <FILE >TEXT)"
#define EXPORT_TEXT        "write its text to a file"
#define EXPORT             "write the column or array of text to a text file"
#define CONVERT            "convert it first: iconv -f utf-16 -t utf-8 <FILE >TEXT"
#define MAGIC(s)           s, sizeof(s) - 1

struct weft_corpus_kind {
    size_t at;
    const char *magic;
    size_t length;
    const char *name;
    const char *cure; /* NULL: of tokens (weft_token_advise) */
};

static const struct weft_corpus_kind kinds[] = {
    {0, MAGIC("\x93NUMPY"), "a NumPy array (.npy)", NULL},
    {0, MAGIC("PK\3\4"), "a zip archive (.zip, .npz, .pt)", UNPACK},
    {0, MAGIC("\x1F\x8B"), "compressed by gzip", UNPACK_BY("gzip")},
    {0, MAGIC("\x28\xB5\x2F\xFD"), "compressed by zstd", UNPACK_BY("zstd")},
    {0,
     MAGIC("\xFD"
           "7zXZ"),
     "compressed by xz", UNPACK_BY("xz")},
    {4, MAGIC("1AY&SY"), "compressed by bzip2", UNPACK_BY("bzip2")},
    {0, MAGIC("\x04\x22\x4D\x18"), "compressed by lz4", UNPACK_BY("lz4")},
    {0, MAGIC("7z\xBC\xAF\x27\x1C"), "a 7z archive", UNPACK},
    {257, MAGIC("ustar"), "a tar archive", UNPACK},
    {0, MAGIC("PAR1"), "a Parquet table", EXPORT},
    {0, MAGIC("ARROW1"), "an Arrow table", EXPORT},
    {0, MAGIC("Obj\1"), "an Avro table", EXPORT},
    {0, MAGIC("\x89HDF\r\n\x1A\n"), "an HDF5 file", EXPORT},
    {0, MAGIC("SQLite format 3"), "an SQLite database", EXPORT},
    {4, MAGIC("\0\0\0\0{\""), "a model file (safetensors)", "give a text"},
    {0, MAGIC("PK\5\6"), "an empty zip archive", "give a text"},
    {0, MAGIC("\x1F\x9D"), "compressed by compress", UNPACK_BY("gzip")},
    {0, MAGIC("LZIP\1"), "compressed by lzip", UNPACK_BY("lzip")},
    {0, MAGIC("Rar!\x1A\7"), "a rar archive", UNPACK},
    {0, MAGIC("\xFF\xFF\xFF\xFF"), "an Arrow stream", EXPORT},
    {0, MAGIC("FEA1"), "a Feather table", EXPORT},
    {0, MAGIC("ORC"), "an ORC table", EXPORT},
    {0, MAGIC("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"), "a document of an office program", EXPORT_TEXT},
    {0, MAGIC("{\\rtf"), "a document (RTF)", EXPORT_TEXT},
    {0, MAGIC("%!PS-Adobe-"), "a PostScript file", EXPORT_TEXT},
    {0, MAGIC("\0\0\x08"), "an IDX array (MNIST)", "give a text or a token file"},
    {0, MAGIC("MMIDIDX"), "an index of Megatron's (.idx)", NULL},
    {0, MAGIC("GGUF"), "a model file (GGUF)", "give a text"},
    {0, MAGIC("\x80\2"), "a pickle", EXPORT},
    {0, MAGIC("\x80\3"), "a pickle", EXPORT},
    {0, MAGIC("\x80\4"), "a pickle", EXPORT},
    {0, MAGIC("\x80\5"), "a pickle", EXPORT},
    {0,
     MAGIC("\x7F"
           "ELF"),
     "a program", "give a text"},
    {0, MAGIC("%PDF-"), "a PDF", "write its text to a file (pdftotext)"},
    {0, MAGIC("\x89PNG"), "a picture (PNG)", "give a text"},
    {0, MAGIC("\xFF\xD8\xFF"), "a picture (JPEG)", "give a text"},
    {0, MAGIC("<svg"), "a picture (SVG)", "give a text"},
    {0, MAGIC("GIF8"), "a picture (GIF)", "give a text"},
    {4, MAGIC("ftyp"), "a film (MP4)", "give a text"},
    {0, MAGIC("OggS"), "a sound (Ogg)", "give a text"},
    {0, MAGIC("ID3"), "a sound (MP3)", "give a text"},
    {0, MAGIC("RIFF"), "a sound or a film (RIFF)", "give a text"},
    {0, MAGIC("\xFF\xFE"), "a text in UTF-16", CONVERT},
    {0, MAGIC("\xFE\xFF"), "a text in UTF-16", CONVERT},
};

/* Whether a text may begin with this magic too. */
static bool is_word(const char *magic)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 ";
    return magic[0] != '\0' && magic[strspn(magic, letters)] == '\0';
}

static const struct weft_corpus_kind *find_kind(const unsigned char *head, size_t n)
{
    bool has_nul = memchr(head, 0, n) != NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct weft_corpus_kind *kind = &kinds[i];
        if (n < kind->at + kind->length || memcmp(head + kind->at, kind->magic, kind->length) != 0)
            continue;
        if (has_nul || !is_word(kind->magic)) return kind;
    }
    return NULL;
}

static bool ends_in(const char *path, const char *suffix)
{
    size_t length = strlen(path), n = strlen(suffix);
    return length >= n && strcasecmp(path + length - n, suffix) == 0;
}

#define JSON_CURE(filter) "write its text to a file, for example by: jq -r '" filter "'"

static const struct weft_corpus_kind of_json[WEFT_JSON_FORM_COUNT] = {
    [WEFT_JSON_FORM_LINES] = {.name = "lines of JSON", .cure = JSON_CURE(".text")},
    [WEFT_JSON_FORM_DOCUMENT] = {.name = "a JSON document", .cure = JSON_CURE(".. | strings")},
    [WEFT_JSON_FORM_OBJECTS] = {.name = "a JSON array of objects", .cure = JSON_CURE(".[].text")},
    [WEFT_JSON_FORM_ARRAY] = {.name = "JSON arrays", .cure = JSON_CURE(".. | strings")},
    [WEFT_JSON_FORM_STRINGS] = {.name = "JSON strings", .cure = JSON_CURE(".")},
    [WEFT_JSON_FORM_PYTHON] = {.name = "values as Python prints them",
                               .cure = "write its text to a file, for example from Python by "
                                       "ast.literal_eval"},
};

static const struct weft_corpus_kind of_table[WEFT_TABLE_FORM_COUNT] = {
    [WEFT_TABLE_CSV] = {.name = "a table (CSV)",
                        .cure = "write its column of text to a file, for example its first one by: "
                                "python3 -c 'import csv, sys; [print(row[0]) for row in "
                                "csv.reader(sys.stdin)]'"},
    [WEFT_TABLE_TSV] = {.name = "a table (TSV)",
                        .cure = "write its column of text to a file, for example its first one by: "
                                "cut -f 1"},
};

/* Tokens without a header, by their bytes. */
static const struct weft_corpus_kind *bare_kind(int32_t token_bytes, int64_t vocab)
{
#define BARE "tokens without a header"
    static const struct weft_corpus_kind
        unknown = {.name = BARE ", it seems"},
        of_16 = {.name = BARE ", of 16 bits each it seems"},
        of_32 = {.name = BARE ", of 32 bits each it seems"},
        of_64 = {.name = BARE ", of 64 bits each it seems"},
        cut = {.name = BARE ", of 16 bits each it seems, which cut every token from 65536 on: make "
                            "them anew by the tokenizer"};
    switch (token_bytes) {
    case 2:
        return vocab > WEFT_TOKEN_16_BITS ? &cut : &of_16;
    case 4:
        return &of_32;
    case 8:
        return &of_64;
    default:
        return &unknown;
    }
#undef BARE
}

void weft_corpus_look_init(struct weft_corpus_look *look, const char *path, int64_t vocab)
{
    *look = (struct weft_corpus_look){.path = path, .vocab = vocab};
    weft_json_stream_init(&look->json);
    weft_table_look_init(&look->table);
}

bool weft_corpus_look_add(struct weft_corpus_look *look, const unsigned char *bytes, size_t n)
{
    static const struct weft_corpus_kind other = {.name = "binary",
                                                  .cure = "give a text or a token file"};
    bool first = look->json.bytes == 0;
    if (first) look->kind = find_kind(bytes, n);
    if (look->kind == NULL && memchr(bytes, 0, n) != NULL) {
        int32_t width = first ? weft_token_width(bytes, n, look->vocab) : 0;
        bool is_bare = ends_in(look->path, ".bin") || width > 2;
        look->kind = is_bare ? bare_kind(width, look->vocab) : &other;
    }
    bool goes_on = weft_json_stream_add(&look->json, bytes, n);
    goes_on = weft_table_look_add(&look->table, bytes, n) || goes_on;
    return look->kind == NULL && goes_on;
}

static const struct weft_corpus_kind *judge_text(const struct weft_corpus_look *look)
{
    const enum weft_json_form form = weft_json_stream_form(&look->json);
    const enum weft_table_form table = weft_table_look_form(&look->table);
    if (form != WEFT_JSON_FORM_NONE) return &of_json[form];
    if (ends_in(look->path, ".csv")) return &of_table[WEFT_TABLE_CSV];
    if (ends_in(look->path, ".tsv")) return &of_table[WEFT_TABLE_TSV];
    return table != WEFT_TABLE_NONE ? &of_table[table] : NULL;
}

enum weft_status weft_corpus_look_end(const struct weft_corpus_look *look, const char *key,
                                      struct weft_error *err)
{
    const struct weft_corpus_kind *kind = look->kind != NULL ? look->kind : judge_text(look);
    struct weft_text cure;
    if (kind == NULL) return WEFT_OK;
    weft_text_init(&cure);
    if (kind->cure == NULL)
        weft_token_advise(look->vocab, &cure);
    else
        weft_text_add(&cure, kind->cure);
    if (kind->cure != NULL && key != NULL)
        weft_text_addf(&cure,
                       ", or train on its bytes as they are: set %s to {\"path\": \"%s\", "
                       "\"format\": \"bytes\"}",
                       key, look->path);
    const char *lead = kind->cure == NULL ? ". To train on them, "
                       : key != NULL      ? ". Either "
                                          : "; ";
    enum weft_status status = weft_text_ok(&cure)
                                  ? weft_fail(err, WEFT_E_DATA, "%s is no text: %s%s%s", look->path,
                                              kind->name, lead, weft_text_chars(&cure))
                                  : weft_fail_memory(err, look->path);
    weft_text_finish(&cure);
    return status;
}
