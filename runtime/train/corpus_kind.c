#include "runtime/train/corpus_kind.h"

#include <stdbool.h>
#include <string.h>

#include "base/json/json.h"

#define UNPACK "unpack it first"
#define EXPORT "write the column or array of text to a text file"
#define TOKENS                                                                                     \
    "write its tokens, 16 bits each, behind a header of 256 int32: 20240520, 1, their number, "    \
    "zeros"
#define CONVERT  "convert it first: iconv -f utf-16 -t utf-8"
#define MAGIC(s) s, sizeof(s) - 1

struct kind {
    size_t at;
    const char *magic;
    size_t length;
    const char *name, *cure;
};

static const struct kind kinds[] = {
    {0, MAGIC("\x93NUMPY"), "a NumPy array (.npy)", TOKENS},
    {0, MAGIC("PK\3\4"), "a zip archive (.zip, .npz, .pt)", UNPACK},
    {0, MAGIC("\x1F\x8B"), "compressed by gzip", UNPACK " (gzip -d)"},
    {0, MAGIC("\x28\xB5\x2F\xFD"), "compressed by zstd", UNPACK " (zstd -d)"},
    {0,
     MAGIC("\xFD"
           "7zXZ"),
     "compressed by xz", UNPACK " (xz -d)"},
    {4, MAGIC("1AY&SY"), "compressed by bzip2", UNPACK " (bzip2 -d)"},
    {0, MAGIC("\x04\x22\x4D\x18"), "compressed by lz4", UNPACK " (lz4 -d)"},
    {0, MAGIC("7z\xBC\xAF\x27\x1C"), "a 7z archive", UNPACK},
    {257, MAGIC("ustar"), "a tar archive", UNPACK},
    {0, MAGIC("PAR1"), "a Parquet table", EXPORT},
    {0, MAGIC("ARROW1"), "an Arrow table", EXPORT},
    {0, MAGIC("Obj\1"), "an Avro table", EXPORT},
    {0, MAGIC("\x89HDF\r\n\x1A\n"), "an HDF5 file", EXPORT},
    {0, MAGIC("SQLite format 3"), "an SQLite database", EXPORT},
    {0, MAGIC("\0\0\x08"), "an IDX array (MNIST)", "give a text or a token file"},
    {0, MAGIC("MMIDIDX"), "an index of Megatron's (.idx)", TOKENS},
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
    {0, MAGIC("RIFF"), "a sound or a film (RIFF)", "give a text"},
    {0, MAGIC("\xFF\xFE"), "a text in UTF-16", CONVERT},
    {0, MAGIC("\xFE\xFF"), "a text in UTF-16", CONVERT},
};

/* A text may begin with it too. */
static bool is_word(const char *magic)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 ";
    return magic[0] != '\0' && magic[strspn(magic, letters)] == '\0';
}

static const struct kind *find_kind(const unsigned char *head, size_t n)
{
    bool has_nul = memchr(head, 0, n) != NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct kind *kind = &kinds[i];
        if (n < kind->at + kind->length || memcmp(head + kind->at, kind->magic, kind->length) != 0)
            continue;
        if (has_nul || !is_word(kind->magic)) return kind;
    }
    return NULL;
}

static bool is_object(const unsigned char *line, size_t length)
{
    struct weft_json *document = NULL;
    if (length == 0 || *line != '{' ||
        weft_json_parse((const char *)line, length, "line", &document, NULL) != WEFT_OK)
        return false;
    weft_json_destroy(document);
    return true;
}

/* A JSON object on the first line, and nothing else or another one on the second. */
static bool is_json_lines(const unsigned char *head, size_t n)
{
    const unsigned char *end = memchr(head, '\n', n);
    if (end == NULL || !is_object(head, (size_t)(end - head))) return false;
    size_t left = n - (size_t)(end + 1 - head);
    return left == 0 || end[1] == '{';
}

static bool ends_in(const char *path, const char *suffix)
{
    size_t length = strlen(path), n = strlen(suffix);
    return length >= n && strcmp(path + length - n, suffix) == 0;
}

enum weft_status weft_corpus_check_text(const char *path, const char *key,
                                        const unsigned char *head, size_t n, struct weft_error *err)
{
    static const struct kind lines = {.name = "lines of JSON",
                                      .cure = "write their text to a file (jq -r .text)"};
    static const struct kind bare = {.name = "tokens without a header, it seems", .cure = TOKENS};
    static const struct kind other = {.name = "binary", .cure = "give a text or a token file"};
    const struct kind *kind = find_kind(head, n);
    if (kind == NULL && is_json_lines(head, n)) kind = &lines;
    const unsigned char *nul = memchr(head, 0, n);
    if (kind == NULL && nul != NULL) kind = ends_in(path, ".bin") ? &bare : &other;
    if (kind == NULL) return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA,
                     "%s is no text: %s. Either %s, or train on its bytes as they are: set %s to "
                     "{\"path\": \"%s\", \"format\": \"bytes\"}",
                     path, kind->name, kind->cure, key, path);
}
