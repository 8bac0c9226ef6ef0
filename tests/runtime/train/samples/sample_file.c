/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/samples/sample_file.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

enum { HEADER_BYTES = 1024, MEMBERS = 6 };

/* Fills a header with its first members. */
static void fill_header(unsigned char header[HEADER_BYTES], const int32_t members[MEMBERS])
{
    memset(header, 0, HEADER_BYTES);
    for (int i = 0; i < 4 * MEMBERS; i++)
        header[i] = (unsigned char)((uint32_t)members[i / 4] >> (8 * (i % 4)) & 255);
}

static enum weft_status read_header(const int32_t members[MEMBERS], int64_t length,
                                    struct weft_sample_file *out)
{
    unsigned char header[HEADER_BYTES];
    struct weft_error err = {0};
    fill_header(header, members);
    cr_assert(weft_sample_file_are(header, HEADER_BYTES));
    return weft_sample_file_read_header("file", header, HEADER_BYTES, length, out, &err);
}

Test(sample_file, header_and_length_agree)
{
    struct weft_sample_file form = {0};
    const int32_t floats[MEMBERS] = {20261130, 1, 7, 3, 5, 4}, bytes[] = {20261130, 1, 7, 3, 5, 1};
    cr_assert_eq(read_header(floats, HEADER_BYTES + 7 * 64, &form), WEFT_OK);
    cr_assert(form.n == 7 && form.rows == 3 && form.width == 5 && form.number_bytes == 4);
    cr_assert_eq(weft_sample_file_words(&form), 16);
    cr_assert_eq(weft_sample_file_label_words(&form), 1);
    cr_assert_eq(read_header(bytes, HEADER_BYTES + 7 * 19, &form), WEFT_OK);
    cr_assert(form.n == 7 && form.number_bytes == 1);
    cr_assert_eq(weft_sample_file_words(&form), 19);
    cr_assert_eq(weft_sample_file_label_words(&form), 4);
    for (int64_t length = HEADER_BYTES; length < HEADER_BYTES + 9 * 19; length++)
        if (length != HEADER_BYTES + 7 * 19)
            cr_assert_eq(read_header(bytes, length, &form), WEFT_E_DATA, "%d", (int)length);
    cr_assert_not(weft_sample_file_are((const unsigned char *)"abcd", 4));
}

Test(sample_file, tokens_have_a_version_of_their_own)
{
    struct weft_sample_file form = {0}, numbers = {0};
    static const int32_t tokens[MEMBERS] = {20261130, 2, 7, 15, 1, 4};
    static const int32_t floats[MEMBERS] = {20261130, 1, 7, 15, 1, 4};
    static const int32_t wrong[][MEMBERS] = {
        {20261130, 2, 7, 5, 3, 4}, {20261130, 2, 7, 60, 1, 1}, {20261130, 3, 7, 15, 1, 4}};
    cr_assert_eq(read_header(tokens, HEADER_BYTES + 7 * 64, &form), WEFT_OK);
    cr_assert(form.tokens && form.n == 7 && form.rows == 15);
    cr_assert_eq(weft_sample_file_words(&form), 16);
    cr_assert_eq(read_header(floats, HEADER_BYTES + 7 * 64, &numbers), WEFT_OK);
    cr_assert(!numbers.tokens && !weft_sample_file_alike(&form, &numbers));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_assert_eq(read_header(wrong[i], HEADER_BYTES + 7 * 64, &form), WEFT_E_DATA, "%zu", i);
}

Test(sample_file, wrong_members_are_refused)
{
    struct weft_sample_file form = {0};
    static const int32_t wrong[][MEMBERS] = {
        {20261130, 2, 7, 3, 5, 4},  {20261130, 1, 7, 0, 5, 4},      {20261130, 1, 7, 3, 0, 4},
        {20261130, 1, 7, 3, 5, 2},  {20261130, 1, 7, 3, 5, 0},      {20261130, 1, 7, -3, 5, 4},
        {20261130, 1, 7, 3, -5, 4}, {20261130, 1, 7, 1 << 25, 5, 4}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_assert_eq(read_header(wrong[i], HEADER_BYTES + 7 * 64, &form), WEFT_E_DATA, "%zu", i);
    cr_assert_eq(form.n, 0);
}

Test(sample_file, numbers_and_labels_are_decoded)
{
    const struct weft_sample_file bytes = {.n = 1, .rows = 1, .width = 3, .number_bytes = 1},
                                  floats = {.n = 1, .rows = 1, .width = 3, .number_bytes = 4};
    const int32_t of_bytes[] = {0, 255, 51, 0x78, 0x56, 0x34, 0x12};
    float numbers[3], given[3] = {-1.5f, 0, 3e38f};
    int32_t of_floats[4] = {0, 0, 0, -9}, label;
    cr_assert_eq(weft_sample_file_decode(&bytes, of_bytes, numbers, &label), -1);
    cr_assert(numbers[0] == -1 && numbers[1] == 1 && fabsf(numbers[2] + 0.6f) < 1e-7f);
    cr_assert_eq(label, 0x12345678);
    memcpy(of_floats, given, sizeof given);
    cr_assert_eq(weft_sample_file_decode(&floats, of_floats, numbers, &label), -1);
    cr_assert_arr_eq(numbers, given, sizeof given);
    cr_assert_eq(label, -9);
    given[1] = INFINITY;
    given[2] = NAN;
    memcpy(of_floats, given, sizeof given);
    cr_assert_eq(weft_sample_file_decode(&floats, of_floats, numbers, &label), 1);
}
