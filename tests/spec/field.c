/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/field.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

struct inner {
    int64_t bytes, ns;
};

struct sample {
    int64_t integer;
    double number, rate, count, pair[2];
    bool flag;
    const char *string;
    int choice;
    struct inner inner;
    int64_t absent;
};

#define AT(member) offsetof(struct sample, member)

static const char *const policies[] = {"dp=NO_SHARD=ddp", "fsdp=FULL_SHARD=zero3", NULL};
static const struct weft_field inner_fields[] = {
    {"bytes", WEFT_FIELD_BYTES, offsetof(struct inner, bytes), "\"1KiB\"", 0, 1e15, NULL, NULL, ""},
    {"time", WEFT_FIELD_TIME, offsetof(struct inner, ns), "\"8us\"", 0, 1e15, NULL, NULL, ""},
};
static const struct weft_field_table inner_table = {"inner", "", inner_fields, 2};
static const struct weft_field fields[] = {
    {"integer", WEFT_FIELD_INTEGER, AT(integer), NULL, -5, 9, NULL, NULL, "some number"},
    {"number", WEFT_FIELD_NUMBER, AT(number), "0.25", 0, 1, NULL, NULL, ""},
    {"rate", WEFT_FIELD_RATE, AT(rate), "\"1GB/s\"", 0, 1e18, NULL, NULL, ""},
    {"count", WEFT_FIELD_COUNT_UNIT, AT(count), "\"3k\"", 0, 1e24, NULL, NULL, ""},
    {"pair", WEFT_FIELD_NUMBERS, AT(pair), "[1, 2]", 0, 10, NULL, NULL, ""},
    {"flag", WEFT_FIELD_BOOL, AT(flag), "true", 0, 0, NULL, NULL, ""},
    {"string", WEFT_FIELD_STRING, AT(string), "\"text\"", 0, 0, NULL, NULL, ""},
    {"choice", WEFT_FIELD_CHOICE, AT(choice), "\"fsdp\"", 0, 0, policies, NULL, ""},
    {"inner", WEFT_FIELD_OBJECT, AT(inner), "{}", 0, 0, NULL, &inner_table, ""},
    {"absent", WEFT_FIELD_INTEGER, AT(absent), "null", 1, 9, NULL, NULL, ""},
    {"gone", WEFT_FIELD_REFUSED, 0, "null", 0, 0, NULL, NULL, "use integer"},
};
static const struct weft_field_table table = {"sample", "", fields, sizeof fields / sizeof *fields};

static struct weft_pool pool;
static struct weft_findings findings;
static struct weft_error error;

/* Decodes and returns the findings' text, "" when there are none. */
static const char *decode(const char *text, struct sample *out)
{
    struct weft_json *document = NULL;
    memset(out, 0, sizeof *out);
    weft_findings_finish(&findings);
    error = (struct weft_error){0};
    cr_assert(weft_json_parse(text, strlen(text), "f", &document, &error) == WEFT_OK, "%s",
              error.text);
    weft_field_decode(&table, weft_json_root(document), "f", "$", &pool, out, &findings);
    weft_json_destroy(document);
    enum weft_status status = weft_findings_status(&findings, &error);
    cr_assert_eq(status, findings.count == 0 ? WEFT_OK : WEFT_E_DATA);
    return error.text;
}

static void finish(void)
{
    weft_findings_finish(&findings);
    weft_pool_finish(&pool);
}

TestSuite(field, .fini = finish);

Test(field, defaults)
{
    struct sample sample;
    cr_assert_str_eq(decode("{\"integer\":-5}", &sample), "");
    cr_assert_eq(sample.integer, -5);
    cr_assert_eq(sample.number, 0.25);
    cr_assert_eq(sample.rate, 1e9);
    cr_assert_eq(sample.count, 3000);
    cr_assert_eq(sample.pair[0], 1);
    cr_assert_eq(sample.pair[1], 2);
    cr_assert(sample.flag);
    cr_assert_str_eq(sample.string, "text");
    cr_assert_eq(sample.choice, 1);
    cr_assert_eq(sample.inner.bytes, 1024);
    cr_assert_eq(sample.inner.ns, 8000);
    cr_assert_eq(sample.absent, 0);
}

Test(field, decodes_without_an_object)
{
    struct inner inner = {0};
    weft_field_decode(&inner_table, NULL, "f", "$", &pool, &inner, &findings);
    cr_assert_eq(findings.count, 0);
    cr_assert_eq(inner.bytes, 1024);
}

Test(field, aliases_of_choices)
{
    static const struct {
        const char *name;
        int choice;
    } names[] = {{"dp", 0}, {"NO_SHARD", 0}, {"ddp", 0}, {"fsdp", 1}, {"zero3", 1}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[64];
        struct sample sample;
        snprintf(text, sizeof text, "{\"integer\":0,\"choice\":\"%s\"}", names[i].name);
        cr_assert_str_eq(decode(text, &sample), "");
        cr_assert_eq(sample.choice, names[i].choice);
    }
    struct sample sample;
    cr_assert_str_eq(decode("{\"integer\":0,\"choice\":\"dp=NO\"}", &sample),
                     "f: $.choice: \"dp=NO\" is not possible; must be \"dp\" or \"fsdp\"");
    cr_assert_str_eq(decode("{\"integer\":0,\"choice\":\"fdsp\"}", &sample),
                     "f: $.choice: \"fdsp\" is not possible; did you mean \"fsdp\"?");
}

Test(field, every_kind_says_what_it_wants)
{
    static const char *const cases[][2] = {
        {"{}", "f: $: the key \"integer\" is missing; an integer: some number"},
        {"{\"integer\":true}", "f: $.integer: is a boolean; must be an integer"},
        {"{\"integer\":10}", "f: $.integer: 10 is out of range; must be -5 to 9"},
        {"{\"integer\":1.5}", "f: $.integer: 1.5 is not a whole number; must be an integer"},
        {"{\"integer\":0,\"number\":\"1\"}", "f: $.number: is a string; must be a number"},
        {"{\"integer\":0,\"rate\":5}",
         "f: $.rate: is a number; must be a rate with a unit, for example \"25GB/s\""},
        {"{\"integer\":0,\"count\":5}",
         "f: $.count: is a number; must be a count with a unit, for example \"312T\""},
        {"{\"integer\":0,\"pair\":[1]}", "f: $.pair: is an array; must be an array of 2 numbers"},
        {"{\"integer\":0,\"pair\":[1,11]}", "f: $.pair: 11 is out of range; must be 0 to 10"},
        {"{\"integer\":0,\"flag\":0}", "f: $.flag: is a number; must be true or false"},
        {"{\"integer\":0,\"string\":null}", "f: $.string: is null; must be a string"},
        {"{\"integer\":0,\"string\":\"\"}",
         "f: $.string: is empty; leave the key out or write a value"},
        {"{\"integer\":0,\"choice\":[]}", "f: $.choice: is an array; must be one of the names"},
        {"{\"integer\":0,\"inner\":{\"bytes\":5}}",
         "f: $.inner.bytes: is a number; must be bytes with a unit, for example \"24GiB\""},
        {"{\"integer\":0,\"inner\":{\"time\":5}}",
         "f: $.inner.time: is a number; must be a time with a unit, for example \"8us\""},
        {"{\"integer\":0,\"inner\":{\"tiem\":5}}",
         "f: $.inner.tiem: unknown key; did you mean \"time\"?"},
        {"{\"integer\":0,\"inner\":[]}", "f: $.inner: is an array; must be an object"},
        {"{\"integer\":0,\"absent\":0}", "f: $.absent: 0 is out of range; must be 1 to 9"},
        {"{\"integer\":0,\"gone\":0}", "f: $.gone: this version does not have it; use integer"},
        {"{\"integer\":0,\"xyzzy\":0}",
         "f: $.xyzzy: unknown key; the keys of \"sample\" are: integer, number, rate, count, pair, "
         "flag, string, choice, inner, absent"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sample sample;
        cr_assert_str_eq(decode(cases[i][0], &sample), cases[i][1]);
    }
}

Test(field, passes_over_annotations)
{
    struct sample sample;
    cr_assert_str_eq(decode("{\"integer\":1,\"$comment\":\"x\",\"$schema\":\"y\"}", &sample), "");
}

Test(field, encodes_what_decode_reads)
{
    static const char *const texts[] = {
        "{\"integer\":3}",
        "{\"integer\":-1,\"number\":0.1,\"rate\":\"5.22Gbit/s\",\"count\":\"19.5T\","
        "\"pair\":[0.1,0.2],\"flag\":false,\"string\":\"\\\"\\u00e4\\n\",\"choice\":\"ddp\","
        "\"inner\":{\"bytes\":\"1001B\",\"time\":\"1.5ms\"},\"absent\":7}",
        "{\"integer\":0,\"rate\":\"0.001kB/s\",\"count\":\"0\",\"inner\":{\"time\":\"0s\"}}",
        "{\"integer\":0,\"rate\":\"1bit/s\",\"count\":\"123456789012345678\"}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct sample first, second;
        struct weft_text text;
        struct weft_json_writer writer;
        cr_assert_str_eq(decode(texts[i], &first), "");
        weft_text_init(&text);
        weft_json_writer_init(&writer, &text, 0);
        weft_field_encode(&table, &first, &writer);
        cr_assert_str_eq(decode(weft_text_chars(&text), &second), "");
        cr_assert_eq(first.integer, second.integer);
        cr_assert_eq(first.number, second.number);
        cr_assert_eq(first.rate, second.rate, "%s", weft_text_chars(&text));
        cr_assert_eq(first.count, second.count, "%s", weft_text_chars(&text));
        cr_assert_eq(first.pair[1], second.pair[1]);
        cr_assert_eq(first.flag, second.flag);
        cr_assert_str_eq(first.string, second.string);
        cr_assert_eq(first.choice, second.choice);
        cr_assert_eq(first.inner.bytes, second.inner.bytes);
        cr_assert_eq(first.inner.ns, second.inner.ns);
        cr_assert_eq(first.absent, second.absent);
        weft_text_finish(&text);
    }
}

Test(field, shows_the_largest_unit_that_is_exact)
{
    static const struct {
        enum weft_field_kind kind;
        double number;
        const char *text;
    } cases[] = {
        {WEFT_FIELD_BYTES, 0, "0B"},          {WEFT_FIELD_BYTES, 1024, "1KiB"},
        {WEFT_FIELD_BYTES, 1025, "1025B"},    {WEFT_FIELD_BYTES, 25769803776, "24GiB"},
        {WEFT_FIELD_TIME, 8000, "8us"},       {WEFT_FIELD_TIME, 34500, "34500ns"},
        {WEFT_FIELD_TIME, 9e10, "90s"},       {WEFT_FIELD_RATE, 652500000, "652.5MB/s"},
        {WEFT_FIELD_RATE, 0.125, "0.125B/s"}, {WEFT_FIELD_COUNT_UNIT, 19.5e12, "19.5T"},
        {WEFT_FIELD_COUNT_UNIT, 12, "12"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weft_field field = {.kind = cases[i].kind};
        struct weft_text text;
        weft_text_init(&text);
        weft_field_show(&field, cases[i].number, &text);
        cr_assert_str_eq(weft_text_chars(&text), cases[i].text);
        weft_text_finish(&text);
    }
}

Test(field, nearest_name)
{
    static const char *const names[] = {"steps", "memory_limit", "seq_len", "lr", "b"};
    static const char *const cases[][2] = {
        {"stesp", "steps"},    {"step", "steps"},
        {"STEPS", "steps"},    {"memory", "memory_limit"},
        {"seqlen", "seq_len"}, {"seq_length", "seq_len"},
        {"l", "lr"},           {"rl", "lr"},
        {"completely", NULL},  {"", NULL},
        {"c", NULL},           {"memorylimit", "memory_limit"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *near = weft_field_nearest(cases[i][0], names, 5);
        if (cases[i][1] == NULL) {
            cr_assert_null(near, "%s: %s", cases[i][0], near);
        } else {
            cr_assert_not_null(near, "%s", cases[i][0]);
            cr_assert_str_eq(near, cases[i][1]);
        }
    }
    char endless[500];
    memset(endless, 's', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    cr_assert_null(weft_field_nearest(endless, names, 5));
}
