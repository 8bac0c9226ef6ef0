/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pool.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

Test(pool, memory_is_zeroed_aligned_and_disjoint)
{
    enum { COUNT = 3000 };
    struct weft_pool pool = {0};
    static unsigned char *arrays[COUNT];
    for (int i = 0; i < COUNT; i++) {
        size_t size = (size_t)(i * 37 % 301);
        arrays[i] = weft_pool_array(&pool, size, 1);
        cr_assert_not_null(arrays[i]);
        cr_assert_eq((uintptr_t)arrays[i] % 64, 0);
        for (size_t j = 0; j < size; j++)
            cr_assert_eq(arrays[i][j], 0);
        memset(arrays[i], i % 255 + 1, size);
    }
    for (int i = 0; i < COUNT; i++) {
        size_t size = (size_t)(i * 37 % 301);
        for (size_t j = 0; j < size; j++)
            cr_assert_eq(arrays[i][j], i % 255 + 1);
    }
    weft_pool_finish(&pool);
    cr_assert_null(pool.chunks);
}

Test(pool, an_array_of_nothing_has_an_address)
{
    struct weft_pool pool;
    weft_pool_init(&pool);
    void *a = weft_pool_array(&pool, 0, 8);
    void *b = weft_pool_array(&pool, 8, 0);
    cr_assert_not_null(a);
    cr_assert_not_null(b);
    cr_assert_neq(a, b);
    weft_pool_finish(&pool);
}

Test(pool, an_overflowing_product_is_refused_and_harmless)
{
    struct weft_pool pool = {0};
    cr_assert_null(weft_pool_array(&pool, SIZE_MAX / 2, 3));
    cr_assert_null(weft_pool_array(&pool, SIZE_MAX, 1));
    cr_assert_null(weft_pool_array(&pool, SIZE_MAX - 64, 1));
    cr_assert_null(pool.chunks);
    cr_assert_not_null(weft_pool_array(&pool, 1, 1));
    weft_pool_finish(&pool);
}

Test(pool, large_arrays_do_not_waste_the_chunk_in_use)
{
    struct weft_pool pool = {0};
    char *before = weft_pool_array(&pool, 1, 64);
    char *large = weft_pool_array(&pool, 1 << 22, 1);
    char *after = weft_pool_array(&pool, 1, 64);
    cr_assert_not_null(large);
    large[(1 << 22) - 1] = 1;
    cr_assert_eq(after, before + 64);
    weft_pool_finish(&pool);
}

Test(pool, strings_are_copies)
{
    struct weft_pool pool = {0};
    char source[] = "layer.0";
    char *copy = weft_pool_string(&pool, source);
    source[0] = 'X';
    cr_assert_str_eq(copy, "layer.0");
    cr_assert_str_eq(weft_pool_string(&pool, ""), "");
    cr_assert_str_eq(weft_pool_format(&pool, "%s[%d]", "units", 12), "units[12]");
    char *wide = weft_pool_format(&pool, "%100000d", 7);
    cr_assert_eq(strlen(wide), 100000);
    cr_assert_eq(wide[99999], '7');
    weft_pool_finish(&pool);
}
