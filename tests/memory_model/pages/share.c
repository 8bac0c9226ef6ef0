/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_model/pages/share.h"

#include <criterion/criterion.h>

enum { SHARED_PAGE_BYTES = 4096 };

Test(share, lives_alike_lie_on_one_page)
{
    struct weft_small_buffer small[] = {
        {256, {3, 9}, -1}, {256, {4, 8}, -1}, {256, {10, 10}, -1}, {256, {3, 10}, -1}};
    int32_t n_pages;
    cr_assert_eq(weft_share_pages(small, 4, 12, SHARED_PAGE_BYTES, &n_pages, NULL), WEFT_OK);
    cr_assert_eq(small[0].shares, small[1].shares);
    cr_assert_neq(small[2].shares, small[0].shares);
    cr_assert_eq(small[3].shares, small[0].shares);
    cr_assert_eq(n_pages, 2);
}

Test(share, what_crosses_the_end_is_apart_from_what_does_not)
{
    struct weft_small_buffer small[] = {{256, {10, 1}, -1}, {256, {0, 2}, -1}, {256, {11, 1}, -1}};
    int32_t n_pages;
    cr_assert_eq(weft_share_pages(small, 3, 12, SHARED_PAGE_BYTES, &n_pages, NULL), WEFT_OK);
    cr_assert_eq(n_pages, 2);
    cr_assert_eq(small[2].shares, small[0].shares);
    cr_assert_neq(small[1].shares, small[0].shares);
}

Test(share, no_page_is_fuller_than_it_can_be)
{
    struct weft_small_buffer small[20];
    int64_t bytes[20] = {0};
    int32_t n_pages;
    for (int32_t b = 0; b < 20; b++)
        small[b] = (struct weft_small_buffer){256 * (1 + b % 15), {0, 5}, -1};
    cr_assert_eq(weft_share_pages(small, 20, 6, SHARED_PAGE_BYTES, &n_pages, NULL), WEFT_OK);
    for (int32_t b = 0; b < 20; b++)
        bytes[small[b].shares] += small[b].bytes;
    for (int32_t p = 0; p < n_pages; p++)
        cr_assert(bytes[p] > 0 && bytes[p] <= SHARED_PAGE_BYTES);
    cr_assert_leq(n_pages, 12);
}
