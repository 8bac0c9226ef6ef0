/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

/* The first merges of GPT-2. Each makes the next token after the 256 bytes. */
static const char *const merges[] = {
    "\u0120 t",  "\u0120 a", "h e",       "i n",       "r e",       "o n",      "\u0120t he",
    "e r",       "\u0120 s", "a t",       "\u0120 w",  "\u0120 o",  "e n",      "\u0120 c",
    "i t",       "i s",      "a n",       "o r",       "e s",       "\u0120 b", "e d",
    "\u0120 f",  "in g",     "\u0120 p",  "o u",       "\u0120a n", "a l",      "a r",
    "\u0120t o", "\u0120 m", "\u0120o f", "\u0120 in", "\u0120 d",  "\u0120 h", "\u0120an d"};
enum { N_MERGES = sizeof merges / sizeof *merges };

static void add_character(uint32_t code, struct weft_text *out)
{
    char text[3] = {(char)code};
    if (code >= 0x80) {
        text[0] = (char)(0xC0 | code >> 6);
        text[1] = (char)(0x80 | (code & 0x3F));
    }
    weft_text_add(out, code == '"' || code == '\\' ? "\\" : "");
    weft_text_add(out, text);
}

/* GPT-2's numbers of bytes: printable ones of Latin-1 in order, then the others in order. */
static void add_bytes(struct weft_text *out)
{
    int number = 0;
    for (uint32_t code = 33; code < 256 + 68; code++) {
        if ((code > 126 && code < 161) || code == 173) continue;
        weft_text_addf(out, "%s\"", number > 0 ? "," : "");
        add_character(code, out);
        weft_text_addf(out, "\":%d", number++);
    }
}

/* A tokenizer.json with these merges, as a list of pairs or of texts, and other members. */
static void make_json(bool pairs, const char *pre, const char *members, struct weft_text *out)
{
    weft_text_init(out);
    weft_text_addf(out,
                   "{\"added_tokens\":[{\"id\":50256,\"content\":\"<|endoftext|>\","
                   "\"lstrip\":false,\"special\":true}],"
                   "\"pre_tokenizer\":%s,%s\"model\":{\"type\":\"BPE\",\"vocab\":{",
                   pre, members);
    add_bytes(out);
    for (int i = 0; i < N_MERGES; i++) {
        const char *space = strchr(merges[i], ' ');
        weft_text_addf(out, ",\"%.*s%s\":%d", (int)(space - merges[i]), merges[i], space + 1,
                       256 + i);
    }
    weft_text_add(out, "},\"merges\":[");
    for (int i = 0; i < N_MERGES; i++) {
        const char *space = strchr(merges[i], ' ');
        if (pairs)
            weft_text_addf(out, "%s[\"%.*s\",\"%s\"]", i > 0 ? "," : "", (int)(space - merges[i]),
                           merges[i], space + 1);
        else
            weft_text_addf(out, "%s\"%s\"", i > 0 ? "," : "", merges[i]);
    }
    weft_text_add(out, "]}}");
    cr_assert(weft_text_ok(out));
}

static const char byte_level[] = "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}";

/* NULL if this build has no PCRE2. */
static struct weft_tokenizer *read_json(const struct weft_text *json)
{
    struct weft_tokenizer *tokenizer = NULL;
    struct weft_error err = {0};
    const enum weft_status status = weft_tokenizer_parse(weft_text_chars(json), json->length,
                                                         "tokenizer.json", &tokenizer, &err);
    cr_assert(status == WEFT_OK || status == WEFT_E_ENVIRONMENT, "%s", err.text);
    return tokenizer;
}

static void expect_tokens(const struct weft_tokenizer *tokenizer, const char *text,
                          const char *numbers)
{
    struct weft_tokens tokens = {0};
    struct weft_text shown, back;
    struct weft_error err = {0};
    weft_text_init(&shown);
    weft_text_init(&back);
    cr_assert_eq(
        weft_tokenizer_encode(tokenizer, text, strlen(text), "t.txt", false, &tokens, &err),
        WEFT_OK, "%s", err.text);
    for (size_t i = 0; i < tokens.n; i++) {
        weft_text_addf(&shown, "%s%d", i > 0 ? " " : "", tokens.all[i]);
        cr_assert(weft_tokenizer_decode(tokenizer, tokens.all[i], &back));
    }
    cr_expect_str_eq(weft_text_chars(&shown), numbers);
    cr_expect_str_eq(weft_text_chars(&back), text);
    weft_text_finish(&shown);
    weft_text_finish(&back);
    free(tokens.all);
}

/* Numbers are those that GPT-2's tokenizer is published with. */
Test(tokenizer, has_the_tokens_of_gpt2)
{
    for (int pairs = 0; pairs < 2; pairs++) {
        struct weft_text json;
        make_json(pairs == 1, byte_level, "", &json);
        struct weft_tokenizer *tokenizer = read_json(&json);
        if (tokenizer == NULL) cr_skip("no PCRE2");
        expect_tokens(tokenizer, " the of and to in", "262 286 290 284 287");
        expect_tokens(tokenizer, "!\n", "0 198");
        expect_tokens(tokenizer, "sing it\u00e9", "82 278 220 270 127 102");
        expect_tokens(tokenizer, "a<|endoftext|> the<|endof", "64 50256 262 27 91 268 67 78 69");
        weft_tokenizer_destroy(tokenizer);
        weft_text_finish(&json);
    }
}

Test(tokenizer, knows_its_size_and_the_token_between_documents)
{
    struct weft_text json, out;
    weft_text_init(&out);
    make_json(false, byte_level, "", &json);
    struct weft_tokenizer *tokenizer = read_json(&json);
    if (tokenizer == NULL) cr_skip("no PCRE2");
    cr_expect_eq(weft_tokenizer_size(tokenizer), 50257);
    cr_expect_eq(weft_tokenizer_end(tokenizer), 50256);
    cr_expect_not(weft_tokenizer_decode(tokenizer, 40000, &out), "no token has this number");
    cr_expect_not(weft_tokenizer_decode(tokenizer, 50257, &out));
    cr_expect_not(weft_tokenizer_decode(tokenizer, -1, &out));
    weft_tokenizer_destroy(tokenizer);
    weft_text_finish(&json);
}

/* Llama 3 takes a piece that is a token as a whole, without merges that lead there. */
Test(tokenizer, ignores_merges_for_whole_tokens_if_asked)
{
    static const char pre[] =
        "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":"
        "\"[a-z]+\"},\"behavior\":\"Isolated\",\"invert\":false},{\"type\":\"ByteLevel\","
        "\"add_prefix_space\":false,\"use_regex\":false}]}";
    struct weft_text json;
    make_json(false, pre, "", &json);
    /* The token "the" has no merge. */
    char *whole = strstr(json.data, "\"vocab\":{");
    struct weft_text changed;
    weft_text_init(&changed);
    weft_text_append(&changed, json.data, (size_t)(whole - json.data));
    weft_text_add(&changed, "\"ignore_merges\":true,\"vocab\":{\"the\":1169,");
    weft_text_add(&changed, whole + strlen("\"vocab\":{"));
    struct weft_tokenizer *merging = read_json(&json), *ignoring = read_json(&changed);
    if (merging == NULL) cr_skip("no PCRE2");
    expect_tokens(merging, "the the", "83 258 220 83 258");
    expect_tokens(ignoring, "the the", "1169 220 1169");
    weft_tokenizer_destroy(merging);
    weft_tokenizer_destroy(ignoring);
    weft_text_finish(&json);
    weft_text_finish(&changed);
}

static void expect_refused(const char *pre, const char *members, const char *says)
{
    struct weft_tokenizer *tokenizer = NULL;
    struct weft_error err = {0};
    struct weft_text json;
    make_json(false, pre, members, &json);
    cr_expect_eq(
        weft_tokenizer_parse(weft_text_chars(&json), json.length, "t.json", &tokenizer, &err),
        WEFT_E_DATA, "%s", says);
    cr_expect(strstr(err.text, "t.json: ") == err.text && strstr(err.text, says) != NULL, "%s",
              err.text);
    weft_text_finish(&json);
}

Test(tokenizer, refuses_features_that_it_lacks_by_name)
{
    expect_refused("{\"type\":\"Metaspace\"}", "", "\"Metaspace\"");
    expect_refused("{\"type\":\"ByteLevel\",\"add_prefix_space\":true}", "", "adds a space");
    expect_refused("{\"type\":\"ByteLevel\",\"use_regex\":false}", "", "does not split");
    expect_refused("{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\"},\"behavior\":\"Removed\"}",
                   "", "Isolated");
    expect_refused(byte_level, "\"normalizer\":{\"type\":\"Lowercase\"},", "\"Lowercase\"");
    struct weft_tokenizer *tokenizer = NULL;
    struct weft_error err = {0};
    struct weft_text json;
    make_json(false, byte_level, "", &json);
    memcpy(strstr(json.data, "\"BPE\""), "\"WPC\"", 5);
    cr_expect_eq(weft_tokenizer_parse(json.data, json.length, "t.json", &tokenizer, &err),
                 WEFT_E_DATA);
    cr_expect(strstr(err.text, "its model is \"WPC\"") != NULL, "%s", err.text);
    weft_text_finish(&json);
}

/* The file with one text in place of another is refused, and the error names the lie. */
static void expect_lie(const char *from, const char *to, const char *says)
{
    struct weft_tokenizer *tokenizer = NULL;
    struct weft_error err = {0};
    struct weft_text json, lie;
    make_json(true, byte_level, "", &json);
    char *at = strstr(json.data, from);
    cr_assert_not_null(at, "%s", from);
    weft_text_init(&lie);
    weft_text_append(&lie, json.data, (size_t)(at - json.data));
    weft_text_add(&lie, to);
    weft_text_add(&lie, at + strlen(from));
    cr_expect_eq(
        weft_tokenizer_parse(weft_text_chars(&lie), lie.length, "t.json", &tokenizer, &err),
        WEFT_E_DATA, "%s", to);
    cr_expect(strstr(err.text, says) != NULL, "%s: %s", to, err.text);
    weft_text_finish(&lie);
    weft_text_finish(&json);
}

Test(tokenizer, refuses_numbers_and_merges_that_lie)
{
    static const char *const numbers[] = {"-1",    "2147483648", "9223372036854775807",
                                          "1e300", "2.5",        "\"256\""};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char vocab[64], added[64];
        snprintf(vocab, sizeof vocab, "\"\u0120t\":%s", numbers[i]);
        snprintf(added, sizeof added, "\"id\":%s", numbers[i]);
        expect_lie("\"\u0120t\":256", vocab, "the number of token");
        expect_lie("\"id\":50256", added, "the number of token");
    }
    expect_lie("\"\u0120t\":256", "\"\u0120t\":257", "is there twice");
    expect_lie("\"\u0120t\":256", "\"other\":256", "no token");
    expect_lie("\"!\":0,", "", "byte 33 is no token");
    expect_lie("[\"h\",\"e\"]", "[\"h\"]", "must be two tokens");
    expect_lie("[\"h\",\"e\"]", "[]", "must be two tokens");
    expect_lie("[\"h\",\"e\"]", "7", "must be two tokens");
    expect_lie("[\"h\",\"e\"]", "[\"h\",\"\"]", "no token");
    expect_lie("[\"h\",\"e\"]", "[\"h\",\"q\"]", "no token");
    expect_lie("\"merges\":[", "\"merges\":7,\"more\":[", "must be a list");
    expect_lie("\"vocab\":{", "\"vocab\":7,\"more\":{", "vocab");
}

/* NFC is not made here: only text that it leaves alone is taken, or text in this form. */
Test(tokenizer, takes_nfc_or_text_that_nfc_leaves_alone)
{
    static const char text[] = "e\u0301", plain[] = "\u00e9\u6771\uac00";
    struct weft_tokens tokens = {0};
    struct weft_error err = {0};
    struct weft_text json;
    make_json(false, byte_level, "\"normalizer\":{\"type\":\"NFC\"},", &json);
    struct weft_tokenizer *tokenizer = read_json(&json);
    if (tokenizer == NULL) cr_skip("no PCRE2");
    cr_expect_eq(
        weft_tokenizer_encode(tokenizer, plain, strlen(plain), "t.txt", false, &tokens, &err),
        WEFT_OK, "%s", err.text);
    cr_expect_eq(weft_tokenizer_encode(tokenizer, text, strlen(text), "t.txt", true, &tokens, &err),
                 WEFT_OK);
    cr_expect_eq(
        weft_tokenizer_encode(tokenizer, text, strlen(text), "t.txt", false, &tokens, &err),
        WEFT_E_DATA);
    cr_expect(strstr(err.text, "t.txt: U+0301 at byte 1") != NULL, "%s", err.text);
    free(tokens.all);
    weft_tokenizer_destroy(tokenizer);
    weft_text_finish(&json);
}

Test(tokenizer, names_the_byte_that_is_no_utf8)
{
    struct weft_tokens tokens = {0};
    struct weft_error err = {0};
    struct weft_text json;
    make_json(false, byte_level, "", &json);
    struct weft_tokenizer *tokenizer = read_json(&json);
    if (tokenizer == NULL) cr_skip("no PCRE2");
    cr_expect_eq(weft_tokenizer_encode(tokenizer, "ab\xff", 3, "t.txt", false, &tokens, &err),
                 WEFT_E_DATA);
    cr_expect(strstr(err.text, "t.txt: byte 2 is no UTF-8") != NULL, "%s", err.text);
    free(tokens.all);
    weft_tokenizer_destroy(tokenizer);
    weft_text_finish(&json);
}

/* Changed files are refused, or encode every text to tokens below their size. */
Test(tokenizer, changed_files_do_no_harm, .timeout = 120)
{
    static const char text[] = " the of and<|endoftext|>\n sing 12 \u6771";
    struct weft_text json;
    make_json(false, byte_level, "", &json);
    for (uint64_t seed = 0; seed < 600; seed++) {
        struct weft_tokenizer *tokenizer = NULL;
        struct weft_tokens tokens = {0};
        struct weft_error err = {0};
        char *bytes = malloc(json.length);
        memcpy(bytes, json.data, json.length);
        size_t length = json.length;
        for (uint64_t i = 0; i < 1 + seed % 4; i++) {
            const size_t at = (size_t)weft_rng_below(seed, i, 1, length);
            const char *with = "0189,:[]{}\" aZ\\";
            if (seed % 3 == 0) bytes[at] = with[weft_rng_below(seed, i, 2, strlen(with))];
            if (seed % 3 == 1) bytes[at] = (char)weft_rng_below(seed, i, 2, 256);
            if (seed % 3 == 2) memmove(bytes + at, bytes + at + 1, --length - at);
        }
        if (weft_tokenizer_parse(bytes, length, "t.json", &tokenizer, &err) == WEFT_OK &&
            weft_tokenizer_encode(tokenizer, text, strlen(text), "t.txt", false, &tokens, &err) ==
                WEFT_OK)
            for (size_t i = 0; i < tokens.n; i++)
                cr_assert(tokens.all[i] >= 0 && tokens.all[i] < weft_tokenizer_size(tokenizer));
        weft_tokenizer_destroy(tokenizer);
        free(tokens.all);
        free(bytes);
    }
    weft_text_finish(&json);
}
