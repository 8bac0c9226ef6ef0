/* SPDX-License-Identifier: Apache-2.0 */
#include "text/split.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/text.h"

static const char gpt2[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
static const char llama3[] =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

static enum weft_status add_piece(void *context, const unsigned char *piece, size_t length,
                                  struct weft_error *err)
{
    (void)err;
    weft_text_append(context, (const char *)piece, length);
    weft_text_add(context, "|");
    return WEFT_OK;
}

/* False if this build has no PCRE2. */
static bool expect_pieces(const char *pattern, const char *text, const char *pieces)
{
    struct weft_split *split = NULL;
    struct weft_error err = {0};
    struct weft_text got;
    const enum weft_status status = weft_split_create(pattern, "here", &split, &err);
    if (status == WEFT_E_ENVIRONMENT) return false;
    cr_assert_eq(status, WEFT_OK, "%s", err.text);
    weft_text_init(&got);
    cr_assert_eq(weft_split_text(split, (const unsigned char *)text, strlen(text), "t.txt",
                                 add_piece, &got, &err),
                 WEFT_OK, "%s", err.text);
    cr_expect_str_eq(weft_text_chars(&got), pieces);
    weft_text_finish(&got);
    weft_split_destroy(split);
    return true;
}

/* Pieces as the libraries of these models make them. */
Test(split, patterns_of_gpt2_and_llama3)
{
    if (!expect_pieces(gpt2, "", "")) cr_skip("no PCRE2");
    expect_pieces(gpt2, "It's 12345  days\n\n old", "It|'s| 12345| | days|\n\n| old|");
    expect_pieces(gpt2, "\u00c4rger \u6771\u4eac\u0663!?", "\u00c4rger| \u6771\u4eac|\u0663|!?|");
    expect_pieces(llama3, "It'S 12345  days\n\n old", "It|'S| |123|45| | days|\n\n| old|");
    expect_pieces(llama3, "(a)\r\n b", "(a|)\r\n| b|");
}

Test(split, text_between_matches_is_a_piece_too)
{
    if (!expect_pieces("b+", "abbab", "a|bb|a|b|")) cr_skip("no PCRE2");
    expect_pieces("x*", "axa", "a|x|a|");
}

Test(split, refuses_what_is_no_pattern_and_what_never_ends)
{
    struct weft_split *split = NULL;
    struct weft_error err = {0};
    char text[64];
    if (weft_split_create("a(", "here", &split, &err) == WEFT_E_ENVIRONMENT) cr_skip("no PCRE2");
    cr_expect(strstr(err.text, "here: its pattern cannot be read at character 2") != NULL, "%s",
              err.text);
    err = (struct weft_error){0};
    cr_assert_eq(weft_split_create("(a+)+(?=c|d)", "here", &split, &err), WEFT_OK);
    memset(text, 'a', sizeof text);
    struct weft_text got;
    weft_text_init(&got);
    cr_expect_eq(
        weft_split_text(split, (unsigned char *)text, sizeof text, "t.txt", add_piece, &got, &err),
        WEFT_E_DATA);
    weft_text_finish(&got);
    weft_split_destroy(split);
}
