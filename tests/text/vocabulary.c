/* SPDX-License-Identifier: Apache-2.0 */
#include "text/vocabulary.h"

#include <criterion/criterion.h>
#include <string.h>

/* Every byte has a character: printable ones their own, the others from U+0100 on. */
Test(vocabulary, alphabet_has_each_byte_once)
{
    bool seen[256] = {false};
    for (uint32_t code = 33; code < 256 + 68; code++) {
        char text[3] = {0};
        unsigned char byte = 0;
        if (code < 0x80) {
            text[0] = (char)code;
        } else {
            text[0] = (char)(0xC0 | code >> 6);
            text[1] = (char)(0x80 | (code & 0x3F));
        }
        if (weft_alphabet_read(text, &byte, 1) != 1) continue;
        cr_expect_not(seen[byte], "%d", byte);
        cr_expect(code >= 256 || code == byte);
        seen[byte] = true;
    }
    for (int byte = 0; byte < 256; byte++)
        cr_expect(seen[byte], "%d", byte);
}

Test(vocabulary, alphabet_refuses_other_characters)
{
    unsigned char bytes[4];
    cr_expect_eq(weft_alphabet_read("\u0120a\u010a", bytes, 4), 3);
    cr_expect_eq(memcmp(bytes, " a\n", 3), 0);
    cr_expect_eq(weft_alphabet_read(" ", bytes, 4), -1);
    cr_expect_eq(weft_alphabet_read("\u0144", bytes, 4), -1);
    cr_expect_eq(weft_alphabet_read("\xff", bytes, 4), -1);
    cr_expect_eq(weft_alphabet_read("abcde", bytes, 4), -1);
}

Test(vocabulary, tokens_are_found_by_their_bytes)
{
    struct weft_pool pool = {0};
    struct weft_error err = {0};
    struct weft_vocabulary vocabulary;
    unsigned char bytes[1000][2];
    cr_assert_eq(weft_vocabulary_init(&vocabulary, 2000, 1000, &pool, &err), WEFT_OK);
    for (int32_t i = 0; i < 1000; i++) {
        bytes[i][0] = (unsigned char)(i % 256);
        bytes[i][1] = (unsigned char)(i / 256);
        cr_assert(weft_vocabulary_add(&vocabulary, 2 * i, bytes[i], 2));
    }
    for (int32_t i = 0; i < 1000; i++)
        cr_assert_eq(weft_vocabulary_find(&vocabulary, bytes[i], 2), 2 * i);
    cr_expect_eq(weft_vocabulary_find(&vocabulary, bytes[0], 1), -1);
    cr_expect_not(weft_vocabulary_add(&vocabulary, 1, bytes[7], 2), "the bytes are there");
    cr_expect_not(weft_vocabulary_add(&vocabulary, 4, bytes[7], 1), "the number is taken");
    weft_pool_finish(&pool);
}
