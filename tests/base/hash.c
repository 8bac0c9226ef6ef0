/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include <criterion/criterion.h>
#include <string.h>

static void expect_hash(const char *input, const char *digits)
{
    char text[WEFT_HASH_TEXT_BYTES];
    weft_hash_show(weft_hash_bytes(input, strlen(input)), text);
    cr_assert_str_eq(text, digits, "hash of \"%s\" is %s", input, text);
}

/* MurmurHash3_x64_128 with seed 0, as published with its ports. */
Test(hash, gives_the_published_answers)
{
    expect_hash("", "00000000000000000000000000000000");
    expect_hash("hello", "cbd8a7b341bd9b025b1e906a48ae1d19");
    expect_hash("hello, world", "342fac623a5ebc8e4cdcbc079642414d");
    expect_hash("19 Jan 2038 at 3:14:07 AM", "b89e5988b737affc664fc2950231b2cb");
    expect_hash("The quick brown fox jumps over the lazy dog.", "cd99481f9ee902c9695da1a38987b6e7");
}

Test(hash, every_byte_and_the_length_matter)
{
    unsigned char bytes[64] = {0};
    for (size_t length = 1; length <= sizeof bytes; length++) {
        struct weft_hash plain = weft_hash_bytes(bytes, length);
        cr_assert_not(weft_hash_equal(plain, weft_hash_bytes(bytes, length - 1)));
        for (size_t i = 0; i < length; i++) {
            bytes[i] = 0x80;
            cr_assert_not(weft_hash_equal(plain, weft_hash_bytes(bytes, length)));
            bytes[i] = 0;
        }
    }
}

Test(hash, does_not_depend_on_alignment)
{
    unsigned char bytes[64] = {0};
    for (size_t shift = 0; shift < 8; shift++) {
        memcpy(bytes + shift, "the same forty bytes at another address..", 40);
        struct weft_hash hash = weft_hash_bytes(bytes + shift, 40);
        cr_assert(weft_hash_equal(
            hash, weft_hash_bytes("the same forty bytes at another address..", 40)));
    }
}

Test(hash, of_a_string_is_the_high_half)
{
    cr_assert_eq(weft_hash_string("hello"), 0xcbd8a7b341bd9b02U);
    cr_assert_neq(weft_hash_string("layer.1"), weft_hash_string("layer.2"));
}

Test(hash, text_goes_there_and_back)
{
    struct weft_hash hash = {.high = 0x0123456789abcdefU, .low = 0xfU};
    char text[WEFT_HASH_TEXT_BYTES];
    cr_assert_eq(weft_hash_show(hash, text), text);
    cr_assert_str_eq(text, "0123456789abcdef000000000000000f");
    struct weft_hash back = {0};
    cr_assert(weft_hash_read(text, &back));
    cr_assert(weft_hash_equal(hash, back));
    cr_assert(weft_hash_read("0123456789ABCDEF000000000000000F", &back));
    cr_assert(weft_hash_equal(hash, back));
}

Test(hash, refuses_what_is_not_32_hexadecimal_digits)
{
    static const char *const bad[] = {
        "",
        "0123456789abcdef000000000000000",
        "0123456789abcdef000000000000000ff",
        "0123456789abcdef00000000000000 f",
        "0123456789abcdeg000000000000000f",
        "0x123456789abcdef000000000000000",
    };
    struct weft_hash out = {.high = 1, .low = 2};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_assert_not(weft_hash_read(bad[i], &out), "%s", bad[i]);
    }
    cr_assert(out.high == 1 && out.low == 2, "outputs stay untouched on failure");
}
