/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json/json_keys.h"

#include <criterion/criterion.h>
#include <string.h>

static const char *const key_colours[] = {"red", "blue", NULL};

struct key_part {
    int32_t small;
};
static const struct weft_key_table key_part_table =
    WEFT_KEY_TABLE_OPEN("A part.", WEFT_KEY_COUNT(key_part, small, "a count"));
static const struct weft_key_table *const key_variants[] = {&key_part_table, NULL};

struct key_sample {
    int32_t small;
    int64_t large, absent, unknown;
    double number;
    bool truth;
    const char *text, *shown;
    struct weft_hash hash;
};
static const struct weft_key_table key_sample_table = WEFT_KEY_TABLE(
    "A sample.", WEFT_KEY_COUNT(key_sample, small, "a count"),
    WEFT_KEY_RANGE(key_sample, large, -1, 1000, "an integer"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_OPTIONAL, "absent", key_sample, absent, "may be left out"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_OR_NULL, "unknown", key_sample, unknown, "may be null"),
    WEFT_KEY_VALUE(WEFT_KEY_NUMBER, key_sample, number, "a number"),
    WEFT_KEY_VALUE(WEFT_KEY_BOOL, key_sample, truth, "true or false"),
    WEFT_KEY_VALUE(WEFT_KEY_TEXT, key_sample, text, "a text"),
    WEFT_KEY_VALUE(WEFT_KEY_SHOWN, key_sample, shown, "a text for people"),
    WEFT_KEY_VALUE(WEFT_KEY_HASH, key_sample, hash, "a hash"),
    WEFT_KEY_PART(WEFT_KEY_CONST, "format", "sample", "of this file"),
    WEFT_KEY_PART(WEFT_KEY_ONE_OF, "colour", key_colours, "a colour"),
    WEFT_KEY_PART_AS(WEFT_KEY_LISTS, WEFT_KEY_INT64, "lists", NULL, "of counts"),
    WEFT_KEY_PART_AS(WEFT_KEY_OR_NULL, WEFT_KEY_OBJECT, "part", &key_part_table, "one part"),
    WEFT_KEY_PART_AS(WEFT_KEY_LIST, WEFT_KEY_OBJECT, "parts", &key_part_table, "parts"),
    WEFT_KEY_PART_AS(WEFT_KEY_LIST, WEFT_KEY_VARIANT, "variants", key_variants, "parts"),
    WEFT_KEY_PART(WEFT_KEY_OBJECT, "any", NULL, "any object"));

#define KEY_HASH "\"hash\": \"0123456789abcdef0123456789abcdef\""
#define KEY_BEGIN                                                                                  \
    "\"small\": 7, \"large\": -1, \"number\": 0.5, \"truth\": true, \"text\": \"a\\n\", "
static const char key_whole[] =
    "{" KEY_BEGIN "\"unknown\": null, \"shown\": \"ü\", " KEY_HASH ", \"$comment\": 1}";

/* `pool` has the texts. */
static enum weft_status read_sample(const char *text, struct weft_pool *pool,
                                    struct key_sample *out, struct weft_error *err)
{
    struct weft_json *document = NULL;
    *err = (struct weft_error){0};
    *out = (struct key_sample){.absent = -5, .unknown = -6};
    cr_assert_eq(weft_json_parse(text, strlen(text), "text", &document, err), WEFT_OK, "%s", text);
    enum weft_status status =
        weft_keys_read(&key_sample_table, weft_json_root(document), "here", pool, out, err);
    weft_json_destroy(document);
    return status;
}

Test(json_keys, an_object_is_read)
{
    struct weft_pool pool = {0};
    struct key_sample sample;
    struct weft_error err;
    cr_assert_eq(read_sample(key_whole, &pool, &sample, &err), WEFT_OK, "%s", err.text);
    cr_assert(sample.small == 7 && sample.large == -1 && sample.truth);
    cr_assert(sample.absent == -5 && sample.unknown == -6, "absent and null change nothing");
    cr_assert_eq(sample.number, 0.5);
    cr_assert_str_eq(sample.text, "a\n");
    cr_assert_str_eq(sample.shown, "ü");
    cr_assert(sample.hash.high == 0x0123456789abcdef && sample.hash.low == sample.hash.high);
    weft_pool_finish(&pool);
}

Test(json_keys, a_wrong_value_is_named)
{
    static const struct {
        const char *text, *word;
    } cases[] = {
        {"[]", "here is an array"},
        {"{\"three\": 2, \"four\": 2}", "here: there is no member \"three\" in this format"},
        {"{\"\": 1}", "there is no member \"\""},
        {"{}", "the member \"small\" is missing"},
        {"{\"small\": -1}", "\"small\" is -1; an integer from 0 to 2147483647 is wanted"},
        {"{\"small\": 2147483648}", "\"small\" is 2147483648"},
        {"{\"small\": null}", "\"small\" is null"},
        {"{\"small\": 7, \"large\": 1001}", "an integer from -1 to 1000 is wanted"},
        {"{\"small\": 7, \"large\": 0, \"absent\": null}", "\"absent\" is null"},
        {"{\"small\": 7, \"large\": 0}", "\"unknown\" is missing"},
        {"{\"small\": 7, \"large\": 0, \"unknown\": null, \"number\": \"1\"}", "\"number\""},
        {"{\"small\": 7, \"large\": 0, \"unknown\": 1, \"number\": 1, \"truth\": 1}",
         "here: truth is not true or false"},
        {"{" KEY_BEGIN "\"unknown\": 1, \"shown\": \"a\\u001b[2J\"}", "control character 27"},
        {"{" KEY_BEGIN "\"unknown\": 1, \"shown\": \"\\u007f\"}", "control character 127"},
        {"{" KEY_BEGIN "\"unknown\": 1, \"shown\": \"\", \"hash\": \"12\"}",
         "hash is not 32 hexadecimal digits"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weft_pool pool = {0};
        struct key_sample sample;
        struct weft_error err;
        cr_assert_eq(read_sample(cases[i].text, &pool, &sample, &err), WEFT_E_DATA, "%s",
                     cases[i].text);
        cr_assert_not_null(strstr(err.text, cases[i].word), "%s: %s", cases[i].text, err.text);
        weft_pool_finish(&pool);
    }
}

/* A struct with all that a table writes by itself. */
enum key_hue { KEY_RED, KEY_BLUE };
struct key_whole {
    int32_t n_parts, none, below;
    struct key_part *parts, inside;
    enum key_hue hue, named;
    int64_t limit, one, other;
    bool is_there, is_odd;
    const char *text;
    struct weft_hash hash;
    const int64_t *numbers;
    int32_t n_numbers;
};

static const char *hue_name(int32_t hue)
{
    return key_colours[hue];
}
static const struct weft_key_names key_hues = {"hue", 2, hue_name};

static void put_odd(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct key_whole *whole = source;
    if (whole->is_odd) weft_json_put_string(writer, "odd", context);
}

static const struct weft_key_table key_inside_table =
    WEFT_KEY_TABLE("Its own.", WEFT_KEY_COUNT(key_whole, n_numbers, "a count"));
static const struct weft_key_table key_whole_table = WEFT_KEY_TABLE(
    "All.", WEFT_KEY_PART(WEFT_KEY_CONST, "format", "whole", "of this file"), WEFT_KEY_VERSION(3),
    WEFT_KEY_ARRAY(WEFT_KEY_FLAT, WEFT_KEY_OBJECT, "parts", key_whole, parts, n_parts,
                   &key_part_table, "parts"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_OPTIONAL, "none", key_whole, none, "0: left out"),
    WEFT_KEY_RANGE_AS(WEFT_KEY_OPTIONAL | WEFT_KEY_ZERO, "below", key_whole, below, 0, 9,
                      "below 0: left out"),
    WEFT_KEY_INSIDE_IF(WEFT_KEY_NEEDED, "inside", key_whole, inside, is_there, &key_part_table,
                       "a part"),
    WEFT_KEY_NAMED(WEFT_KEY_NEEDED, "hue", key_whole, hue, key_colours, "one of"),
    WEFT_KEY_NAME_AS("named", key_whole, named, &key_hues, "by a function"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_OR_NULL, "limit", key_whole, limit, "out of range: null"),
    WEFT_KEY_COUNT_IF("one", key_whole, one, one, other, "with the other"),
    WEFT_KEY_COUNT_IF("other", key_whole, other, one, other, "with the one"),
    WEFT_KEY_VALUE_AS(WEFT_KEY_OPTIONAL, "text", WEFT_KEY_TEXT, key_whole, text, "NULL: left out"),
    WEFT_KEY_VALUE_AS(WEFT_KEY_OPTIONAL, "hash", WEFT_KEY_HASH, key_whole, hash, "0: left out"),
    WEFT_KEY_PUT(WEFT_KEY_OPTIONAL, WEFT_KEY_TEXT, "odd", NULL, put_odd, "of its own code"),
    WEFT_KEY_OWN(WEFT_KEY_NEEDED, "own", &key_inside_table, "members of the struct"),
    WEFT_KEY_ARRAY(WEFT_KEY_OPTIONAL | WEFT_KEY_UNREAD, WEFT_KEY_INT64, "numbers", key_whole,
                   numbers, n_numbers, NULL, "numbers"));

static void write_whole(const struct key_whole *whole, struct weft_text *out)
{
    struct weft_json_writer writer;
    weft_text_init(out);
    weft_json_writer_init(&writer, out, 0);
    weft_json_begin_object(&writer);
    weft_keys_write(&key_whole_table, "context", whole, &writer);
    weft_json_end_object(&writer);
}

static const int64_t key_numbers[] = {5, 6};
static struct key_part key_parts[] = {{1}, {2}};
static const struct key_whole key_full = {
    .n_parts = 2,
    .parts = key_parts,
    .none = 4,
    .inside = {3},
    .hue = KEY_BLUE,
    .named = KEY_BLUE,
    .limit = 7,
    .other = 8,
    .is_there = true,
    .is_odd = true,
    .text = "a",
    .hash = {1, 2},
    .numbers = key_numbers,
    .n_numbers = 2,
};

Test(json_keys, a_table_writes_a_struct)
{
    static const struct key_whole bare = {.below = -1, .limit = INT64_MAX};
    struct weft_text text;
    write_whole(&key_full, &text);
    cr_assert_str_eq(weft_text_chars(&text),
                     "{\"format\": \"whole\", \"version\": 3, \"parts\": [{\"small\": 1}, "
                     "{\"small\": 2}], \"none\": 4, \"below\": 0, \"inside\": {\"small\": 3}, "
                     "\"hue\": \"blue\", \"named\": \"blue\", \"limit\": 7, \"one\": 0, "
                     "\"other\": 8, \"text\": \"a\", \"hash\": "
                     "\"00000000000000010000000000000002\", \"odd\": \"context\", \"own\": "
                     "{\"n_numbers\": 2}, \"numbers\": [5, 6]}");
    weft_text_finish(&text);
    write_whole(&bare, &text);
    cr_assert_str_eq(weft_text_chars(&text),
                     "{\"format\": \"whole\", \"version\": 3, \"parts\": [], \"hue\": \"red\", "
                     "\"named\": \"red\", \"limit\": null, \"own\": {\"n_numbers\": 0}}");
    weft_text_finish(&text);
}

Test(json_keys, a_table_reads_what_it_wrote)
{
    struct weft_text text, again;
    struct weft_json *document = NULL;
    struct weft_pool pool = {0};
    struct weft_error err = {0};
    struct key_whole back = {.numbers = key_numbers, .is_odd = true};
    write_whole(&key_full, &text);
    cr_assert_eq(weft_json_parse(weft_text_chars(&text), text.length, "text", &document, &err),
                 WEFT_OK);
    cr_assert_eq(
        weft_keys_read(&key_whole_table, weft_json_root(document), "here", &pool, &back, &err),
        WEFT_OK, "%s", err.text);
    write_whole(&back, &again);
    cr_assert_str_eq(weft_text_chars(&again), weft_text_chars(&text));
    cr_assert(back.is_there && back.n_parts == 2 && back.parts[1].small == 2);
    weft_text_finish(&again);
    weft_text_finish(&text);
    weft_json_destroy(document);
    weft_pool_finish(&pool);
}

Test(json_keys, names_and_elements_are_checked)
{
    static const struct {
        const char *from, *to, *word;
    } cases[] = {
        {"\"hue\": \"blue\"", "\"hue\": \"pink\"",
         "hue is \"pink\"; must be one of \"red\", \"blue\""},
        {"\"named\": \"blue\"", "\"named\": \"pink\"", "there is no hue \"pink\""},
        {"{\"small\": 2}", "{\"small\": -2}", "here: parts[1]: the member \"small\""},
        {"{\"small\": 3}", "{\"small\": -3}", "here: inside: the member \"small\""},
    };
    struct weft_text whole, text;
    write_whole(&key_full, &whole);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weft_json *document = NULL;
        struct weft_pool pool = {0};
        struct weft_error err = {0};
        struct key_whole back = {0};
        const char *at = strstr(weft_text_chars(&whole), cases[i].from);
        cr_assert_not_null(at, "%s", cases[i].from);
        weft_text_init(&text);
        weft_text_append(&text, weft_text_chars(&whole), (size_t)(at - weft_text_chars(&whole)));
        weft_text_addf(&text, "%s%s", cases[i].to, at + strlen(cases[i].from));
        cr_assert_eq(weft_json_parse(weft_text_chars(&text), text.length, "text", &document, &err),
                     WEFT_OK);
        cr_assert_eq(
            weft_keys_read(&key_whole_table, weft_json_root(document), "here", &pool, &back, &err),
            WEFT_E_DATA);
        cr_assert_not_null(strstr(err.text, cases[i].word), "%s", err.text);
        weft_text_finish(&text);
        weft_json_destroy(document);
        weft_pool_finish(&pool);
    }
    weft_text_finish(&whole);
}

Test(json_keys, an_open_table_allows_other_keys)
{
    struct key_part part = {0};
    struct weft_json *document = NULL;
    const char *text = "{\"small\": 3, \"new\": 1}";
    cr_assert_eq(weft_json_parse(text, strlen(text), "text", &document, NULL), WEFT_OK);
    cr_assert_eq(
        weft_keys_read(&key_part_table, weft_json_root(document), "here", NULL, &part, NULL),
        WEFT_OK);
    cr_assert_eq(part.small, 3);
    weft_json_destroy(document);
}

Test(json_keys, a_table_makes_a_schema)
{
#define KEY_PART_SCHEMA                                                                            \
    "\"type\": \"object\", \"description\": \"A part.\", \"properties\": {\"small\": "             \
    "{\"description\": \"a count\", \"type\": \"integer\", \"minimum\": 0}}, \"required\": "       \
    "[\"small\"]"
    static const char expected[] =
        "{\"type\": \"object\", \"description\": \"A sample.\", \"properties\": {"
        "\"small\": {\"description\": \"a count\", \"type\": \"integer\", \"minimum\": 0}, "
        "\"large\": {\"description\": \"an integer\", \"type\": \"integer\", \"minimum\": -1, "
        "\"maximum\": 1000}, "
        "\"absent\": {\"description\": \"may be left out\", \"type\": \"integer\", \"minimum\": "
        "0}, "
        "\"unknown\": {\"description\": \"may be null\", \"type\": [\"integer\", \"null\"], "
        "\"minimum\": 0}, "
        "\"number\": {\"description\": \"a number\", \"type\": \"number\"}, "
        "\"truth\": {\"description\": \"true or false\", \"type\": \"boolean\"}, "
        "\"text\": {\"description\": \"a text\", \"type\": \"string\"}, "
        "\"shown\": {\"description\": \"a text for people\", \"type\": \"string\"}, "
        "\"hash\": {\"description\": \"a hash\", \"type\": \"string\", \"pattern\": "
        "\"^[0-9a-f]{32}$\"}, "
        "\"format\": {\"description\": \"of this file\", \"const\": \"sample\"}, "
        "\"colour\": {\"description\": \"a colour\", \"enum\": [\"red\", \"blue\"]}, "
        "\"lists\": {\"description\": \"of counts\", \"type\": \"array\", \"items\": {\"type\": "
        "\"array\", \"items\": {\"type\": \"integer\", \"minimum\": 0}}}, "
        "\"part\": {\"description\": \"one part\", \"oneOf\": [{\"type\": \"null\"}, "
        "{" KEY_PART_SCHEMA "}]}, "
        "\"parts\": {\"description\": \"parts\", \"type\": \"array\", \"items\": "
        "{" KEY_PART_SCHEMA "}}, "
        "\"variants\": {\"description\": \"parts\", \"type\": \"array\", \"items\": {\"oneOf\": "
        "[{" KEY_PART_SCHEMA "}]}}, "
        "\"any\": {\"description\": \"any object\", \"type\": \"object\"}}, "
        "\"required\": [\"small\", \"large\", \"unknown\", \"number\", \"truth\", \"text\", "
        "\"shown\", \"hash\", \"format\", \"colour\", \"lists\", \"part\", \"parts\", "
        "\"variants\", \"any\"]}";
    struct weft_text text;
    struct weft_json_writer writer;
    weft_text_init(&text);
    weft_json_writer_init(&writer, &text, 0);
    weft_json_begin_object(&writer);
    weft_keys_schema(&key_sample_table, &writer);
    weft_json_end_object(&writer);
    cr_assert_str_eq(weft_text_chars(&text), expected);
    weft_text_finish(&text);
}
