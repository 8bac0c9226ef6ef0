/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "runtime/checkpoint/safetensors.h"

#define ENTRY(name, dims, begin, end)                                                              \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":" dims ",\"data_offsets\":[" #begin "," #end "]}"

static void put_length(struct weft_text *file, uint64_t length)
{
    char field[8];
    for (int i = 0; i < 8; i++)
        field[i] = (char)(length >> (8 * i));
    weft_text_append(file, field, 8);
}

static void put_data(struct weft_text *file, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i++)
        weft_text_append(file, &(char){(char)i}, 1);
}

static enum weft_status parse_text(const struct weft_text *file, struct weft_safetensors **out,
                                   struct weft_error *err)
{
    /* Exactly as large, so that AddressSanitizer sees a read past the end. */
    char *exact = malloc(file->length + (file->length == 0));
    cr_assert_not_null(exact);
    memcpy(exact, weft_text_chars(file), file->length);
    enum weft_status status = weft_safetensors_parse(exact, file->length, (int64_t)file->length,
                                                     "x.safetensors", out, err);
    free(exact);
    return status;
}

static struct weft_text file_of(const char *header, size_t header_bytes, int64_t data_bytes)
{
    struct weft_text file;
    weft_text_init(&file);
    put_length(&file, header_bytes);
    weft_text_append(&file, header, header_bytes);
    put_data(&file, data_bytes);
    return file;
}

static void refuse_text(const struct weft_text *file, const char *part)
{
    struct weft_error err = {0};
    struct weft_safetensors *out = NULL;
    cr_assert_eq(parse_text(file, &out, &err), WEFT_E_DATA, "taken, but for: %s", part);
    cr_assert_not_null(strstr(err.text, part), "\"%s\" is not in: %s", part, err.text);
    cr_assert_not_null(strstr(err.text, "x.safetensors: "));
    cr_assert_null(out);
}

static void refuse_bytes(const char *header, size_t header_bytes, int64_t data_bytes,
                         const char *part)
{
    struct weft_text file = file_of(header, header_bytes, data_bytes);
    refuse_text(&file, part);
    weft_text_finish(&file);
}

static void refuse_safetensors(const char *header, int64_t data_bytes, const char *part)
{
    refuse_bytes(header, strlen(header), data_bytes, part);
}

static struct weft_safetensors *take(const char *header, int64_t data_bytes)
{
    struct weft_error err = {0};
    struct weft_safetensors *out = NULL;
    struct weft_text file = file_of(header, strlen(header), data_bytes);
    cr_assert_eq(parse_text(&file, &out, &err), WEFT_OK, "%s", err.text);
    weft_text_finish(&file);
    return out;
}

Test(safetensors, reads_what_is_right)
{
    struct weft_safetensors *file = take(
        "{" ENTRY(
            "b", "[2,3]", 4,
            28) ", \"__metadata__\":{\"format\":\"pt\",\"a\":\"\"},\n"
                "\"\\u00e9\\ud83d\\ude00\":{\"data_offsets\":[28,28],\"shape\":[0,5],\"dtype\":"
                "\"BF16\"}," ENTRY("a.weight", "[]", 0, 4) "}   ",
        28);
    cr_assert_eq(file->n_tensors, 3);
    const struct weft_safetensors_tensor *b = weft_safetensors_find(file, "b");
    cr_assert_not_null(b);
    cr_assert(b->n_dims == 2 && b->dims[0] == 2 && b->dims[1] == 3 && b->elements == 6);
    cr_assert_eq(b->begin, file->data_begin + 4);
    cr_assert_str_eq(file->tensors[0].name, "a.weight");
    cr_assert(file->tensors[0].n_dims == 0 && file->tensors[0].elements == 1);
    const struct weft_safetensors_tensor *empty =
        weft_safetensors_find(file, "\xC3\xA9\xF0\x9F\x98\x80");
    cr_assert(empty != NULL && empty->elements == 0 && empty->type == WEFT_TENSOR_BF16);
    cr_assert_null(weft_safetensors_find(file, "c"));
    cr_assert_eq(file->n_metadata, 2);
    cr_assert_str_eq(file->metadata[1].key, "format");
    cr_assert_str_eq(file->metadata[1].value, "pt");
    weft_safetensors_destroy(file);
    weft_safetensors_destroy(take("{}", 0));
    weft_safetensors_destroy(take("{\"__metadata__\":{}}", 0));
}

Test(safetensors, refuses_lengths)
{
    static const struct {
        uint64_t length;
        const char *part;
    } wrong[] = {
        {0, "header has 0 bytes"},
        {1, "header has 1 bytes"},
        {7, "something stands after"}, /* {} and five bytes of data */
        {UINT64_C(1) << 63, "header has 9223372036854775808 bytes"},
        {UINT64_MAX, "header has 18446744073709551615 bytes"},
        {100000001, "header has 100000001 bytes"},
        {UINT64_MAX - 7, "header has 18446744073709551608 bytes"},
        {100, "but has only 32 after"},
        {33, "but has only 32 after"},
        {32, "something stands after"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct weft_text file;
        weft_text_init(&file);
        put_length(&file, wrong[i].length);
        weft_text_add(&file, "{}");
        put_data(&file, 30);
        refuse_text(&file, wrong[i].part);
        weft_text_finish(&file);
    }
    for (size_t length = 0; length < 8; length++) {
        struct weft_text file;
        weft_text_init(&file);
        weft_text_append(&file, "\2\0\0\0\0\0\0", length);
        refuse_text(&file, "begins with 8 of length");
        weft_text_finish(&file);
    }
}

Test(safetensors, refuses_text)
{
    refuse_safetensors("  {}", 0, "begins with {");
    refuse_safetensors("[]", 0, "begins with {");
    refuse_safetensors("\xEF\xBB\xBF{}", 0, "begins with {");
    refuse_safetensors("{}x", 0, "after the end");
    refuse_bytes("{}\0 ", 4, 0, "after the end");
    refuse_safetensors("{ ", 0, "a tensor's name is wanted");
    refuse_safetensors("{\"a\xFF\":1}", 0, "not UTF-8");
    refuse_safetensors("{\"a\xC0\xAF\":1}", 0, "not UTF-8");
    refuse_safetensors("{\"a\n\":1}", 0, "control character");
    refuse_safetensors("{\"a\\u0000b\":1}", 0, "a NUL");
    refuse_safetensors("{\"a\\ud800\":1}", 0, "lone surrogate");
    refuse_safetensors("{\"a\\udc00\\ud800\":1}", 0, "lone surrogate");
    refuse_safetensors("{\"a\\q\":1}", 0, "bad escape");
    refuse_safetensors("{\"a", 0, "does not end");
    refuse_safetensors("{\"a\\", 0, "bad escape");
    refuse_safetensors("{\"a\\u00", 0, "bad escape");
    refuse_safetensors("{\"a/b\":1}", 0, "slash");
    refuse_safetensors("{\"a\\u002fb\":1}", 0, "slash");
    refuse_safetensors("{\"..\":1}", 0, "\"..\"");
    refuse_safetensors("{\"a..b\":1}", 0, "\"..\"");
    refuse_safetensors("{\"..\\\\a\":1}", 0, "slash");
    refuse_safetensors("{\"\":1}", 0, "without a name");
    refuse_safetensors("{\"a\\u001b[2J\":1}", 0, "control character");
    refuse_safetensors("{\"a\":[[[[[[", 0, "tensor a: a tensor is an object");
    refuse_safetensors("{" ENTRY("a", "[1]", 0, 4) ",}", 4, "name is wanted");
    refuse_safetensors("{" ENTRY("a", "[1]", 0, 4) " " ENTRY("b", "[1]", 4, 8) "}", 8, "a comma");
}

Test(safetensors, refuses_what_is_too_much)
{
    struct weft_text header;
    weft_text_init(&header);
    weft_text_add(&header, "{\"");
    for (int i = 0; i < 65536; i++)
        weft_text_add(&header, "n");
    weft_text_add(&header, "\":1}");
    refuse_bytes(header.data, header.length, 0, "more than 1024 bytes");
    weft_text_finish(&header);
    weft_text_init(&header);
    weft_text_add(&header, "{\"a\":");
    for (int i = 0; i < 100000; i++)
        weft_text_add(&header, i % 2 == 0 ? "{\"a\":" : "[");
    refuse_bytes(header.data, header.length, 0, "a key that is not");
    weft_text_finish(&header);
    weft_text_init(&header);
    weft_text_add(&header, "{");
    for (int i = 0; i < 1000000; i++)
        weft_text_addf(&header, "%s\"t%d\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}",
                       i == 0 ? "" : ",", i);
    weft_text_add(&header, "}");
    refuse_bytes(header.data, header.length, 0, "more tensors");
    weft_text_finish(&header);
    refuse_safetensors("{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1],\"shape\":"
                       "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}}",
                       1, "more than 16");
}

Test(safetensors, refuses_entries)
{
    static const char form[] = "{\"a\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":%s}}";
    static const struct {
        const char *dtype, *shape, *offsets, *part;
    } wrong[] = {
        {"f32", "[1]", "[0,4]", "no such dtype"},
        {"F128", "[1]", "[0,4]", "no such dtype"},
        {"", "[1]", "[0,4]", "no such dtype"},
        {"F32", "[-1]", "[0,4]", "a length in a shape"},
        {"F32", "[1.0]", "[0,4]", "a length in a shape"},
        {"F32", "[1e3]", "[0,4]", "a length in a shape"},
        {"F32", "[01]", "[0,4]", "a length in a shape"},
        {"F32", "[18446744073709551616]", "[0,4]", "a length in a shape"},
        {"F32", "[9223372036854775808]", "[0,4]", "a length in a shape"},
        {"F32", "[\"1\"]", "[0,4]", "a length in a shape"},
        {"F32", "[true]", "[0,4]", "a length in a shape"},
        {"F32", "[null]", "[0,4]", "a length in a shape"},
        {"F32", "[1,]", "[0,4]", "a length in a shape"},
        {"F32", "[1 1]", "[0,4]", "a comma or the end"},
        {"F32", "1", "[0,4]", "a shape is an array"},
        {"F32", "[2147483648,2147483648,4,1]", "[0,0]", "does not fit"},
        {"F32", "[4294967296,4294967296]", "[0,0]", "does not fit"},
        {"F32", "[4294967297,4294967296,0]", "[0,0]", "does not fit"},
        {"F32", "[0,4294967297,4294967296]", "[0,0]", "does not fit"},
        {"F32", "[4611686018427387905]", "[0,4]", "does not fit"},
        {"F64", "[2305843009213693952]", "[0,0]", "does not fit"},
        {"F32", "[1]", "[4,0]", "end before they begin"},
        {"F32", "[1]", "[0]", "two numbers"},
        {"F32", "[1]", "[0,4,8]", "two numbers"},
        {"F32", "[1]", "[-4,0]", "an offset is"},
        {"F32", "[1]", "[0,4.0]", "an offset is"},
        {"F32", "[1]", "[0,9223372036854775808]", "an offset is"},
        {"F32", "[1]", "4", "data_offsets is an array"},
        {"F32", "[2]", "[0,4]", "not as far apart"},
        {"F32", "[0]", "[0,4]", "not as far apart"},
        {"F32", "[1]", "[4,8]", "a hole"},
        {"F32", "[2]", "[0,8]", "of which there are 4"},
        {"U8", "[3]", "[0,3]", "its tensors take 3"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char header[256];
        snprintf(header, sizeof header, form, wrong[i].dtype, wrong[i].shape, wrong[i].offsets);
        refuse_safetensors(header, 4, wrong[i].part);
    }
    refuse_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "are wanted");
    refuse_safetensors("{\"a\":{}}", 4, "a key is wanted");
    refuse_safetensors("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", 4, "stands twice");
    refuse_safetensors("{\"a\":{\"type\":\"F32\"}}", 4, "a key that is not");
    refuse_safetensors("{\"a\":{\"dtype\":32}}", 4, "a dtype is a string");
    refuse_safetensors("{" ENTRY("a", "[1]", 0, 4) "," ENTRY("a", "[1]", 4, 8) "}", 8,
                       "tensor a stands twice");
    refuse_safetensors("{" ENTRY("a", "[1]", 0, 4) "," ENTRY("\\u0061", "[1]", 4, 8) "}", 8,
                       "tensor a stands twice");
    refuse_safetensors("{" ENTRY("a", "[2]", 0, 8) "," ENTRY("b", "[1]", 4, 8) "}", 8,
                       "tensor b begins");
    refuse_safetensors("{" ENTRY("a", "[2]", 0, 8) "," ENTRY("b", "[1]", 4, 8) "}", 8,
                       "an overlap");
    refuse_safetensors("{" ENTRY("a", "[1]", 0, 4) "," ENTRY("b", "[1]", 8, 12) "}", 12, "a hole");
    refuse_safetensors("{" ENTRY("a", "[1]", 0, 4) "}", 6, "its tensors take 4");
    refuse_safetensors("{" ENTRY("a", "[1]", 0, 4) "}", 2, "of which there are 2");
    refuse_safetensors("{}", 2, "its tensors take 0");
}

Test(safetensors, refuses_metadata)
{
    refuse_safetensors("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0, "a key twice");
    refuse_safetensors("{\"__metadata__\":{\"a\":1}}", 0, "are strings");
    refuse_safetensors("{\"__metadata__\":{\"a\":null}}", 0, "are strings");
    refuse_safetensors("{\"__metadata__\":[]}", 0, "is an object");
    refuse_safetensors("{\"__metadata__\":{},\"__metadata__\":{}}", 0, "stands twice");
}

static char directory[64];

static void write_file(const char *name, const char *bytes, size_t length)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *out = fopen(path, "w");
    cr_assert_not_null(out);
    cr_assert_eq(fwrite(bytes, 1, length, out), length);
    fclose(out);
}

static enum weft_status open_at(const char *name, struct weft_safetensors **out,
                                struct weft_error *err)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return weft_safetensors_open(path, out, err);
}

static void make_directory(void)
{
    strcpy(directory, "/tmp/weft-safetensors-XXXXXX");
    cr_assert_not_null(mkdtemp(directory));
}

static void remove_directory(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", directory);
    cr_assert_eq(system(command), 0);
}

Test(safetensors, files, .init = make_directory, .fini = remove_directory)
{
    static const char header[] =
        "{\"f\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
        "\"b\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[8,12]},"
        "\"h\":{\"dtype\":\"F16\",\"shape\":[5],\"data_offsets\":[12,22]},"
        "\"i\":{\"dtype\":\"I16\",\"shape\":[1],\"data_offsets\":[22,24]}}";
    const float floats[2] = {1.5f, -2};
    const uint16_t halves[8] = {0x3FC0, 0xC000, 0x3E00, 0xC000, 0x0001, 0x7C00, 0x0000, 7};
    struct weft_text text = file_of(header, strlen(header), 0);
    weft_text_append(&text, (const char *)floats, sizeof floats);
    weft_text_append(&text, (const char *)halves, sizeof halves);
    write_file("ok", text.data, text.length);
    struct weft_error err = {0};
    struct weft_safetensors *file = NULL;
    cr_assert_eq(open_at("ok", &file, &err), WEFT_OK, "%s", err.text);
    float out[5];
    const struct weft_safetensors_tensor *f = weft_safetensors_find(file, "f");
    cr_assert_eq(weft_safetensors_read_f32(file, f, 1, 1, out, &err), WEFT_OK);
    cr_assert_eq(out[0], -2);
    cr_assert_eq(weft_safetensors_read_f32(file, weft_safetensors_find(file, "b"), 0, 2, out, &err),
                 WEFT_OK);
    cr_assert(out[0] == 1.5f && out[1] == -2);
    cr_assert_eq(weft_safetensors_read_f32(file, weft_safetensors_find(file, "h"), 0, 5, out, &err),
                 WEFT_OK);
    cr_assert(out[0] == 1.5f && out[1] == -2 && out[2] == 0x1p-24f && isinf(out[3]) && out[4] == 0);
    cr_assert_eq(weft_safetensors_read(file, f, 1, 2, out, &err), WEFT_E_INTERNAL);
    err = (struct weft_error){0};
    cr_assert_eq(weft_safetensors_read_f32(file, weft_safetensors_find(file, "i"), 0, 1, out, &err),
                 WEFT_E_DATA);
    /* It becomes shorter while it is open. */
    char path[128];
    snprintf(path, sizeof path, "%s/ok", directory);
    cr_assert_eq(truncate(path, (off_t)text.length - 20), 0);
    err = (struct weft_error){0};
    cr_assert_eq(weft_safetensors_read_f32(file, f, 0, 2, out, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "too early"), "%s", err.text);
    weft_safetensors_destroy(file);
    weft_text_finish(&text);
}

Test(safetensors, paths, .init = make_directory, .fini = remove_directory)
{
    struct weft_error err = {0};
    struct weft_safetensors *file = NULL;
    char path[128];
    cr_assert_eq(open_at("missing", &file, &err), WEFT_E_NO_INPUT);
    snprintf(path, sizeof path, "%s/circle", directory);
    cr_assert_eq(symlink("circle", path), 0);
    err = (struct weft_error){0};
    cr_assert_eq(open_at("circle", &file, &err), WEFT_E_DATA);
    err = (struct weft_error){0};
    cr_assert_eq(weft_safetensors_open(directory, &file, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "not a plain file"));
    snprintf(path, sizeof path, "%s/pipe", directory);
    cr_assert_eq(mkfifo(path, 0600), 0);
    err = (struct weft_error){0};
    cr_assert_eq(open_at("pipe", &file, &err), WEFT_E_DATA);
    write_file("empty", "", 0);
    err = (struct weft_error){0};
    cr_assert_eq(open_at("empty", &file, &err), WEFT_E_DATA);
    cr_assert_null(file);
}
