/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/turned.h"

#include <criterion/criterion.h>

#include "base/rng.h"

/* A source of `rows` rows and `columns` columns, whose element r, c is 1000 r + c. */
struct counted {
    int64_t rows, columns, reads, elements;
    int64_t fails_at; /* read; -1: none */
};

static enum weft_status read_counted(const void *context, int64_t first, int64_t count, float *out,
                                     struct weft_error *err)
{
    struct counted *counted = (struct counted *)context;
    if (counted->reads++ == counted->fails_at) return weft_fail(err, WEFT_E_IO, "no disk");
    cr_assert(first >= 0 && count > 0 && first + count <= counted->rows * counted->columns);
    for (int64_t i = 0; i < count; i++)
        out[i] = (float)((first + i) / counted->columns * 1000 + (first + i) % counted->columns);
    counted->elements += count;
    return WEFT_OK;
}

static void check_range(struct weft_turned *turned, int64_t first, int64_t count)
{
    float out[5000];
    struct weft_error err = {0};
    cr_assert_eq(weft_turned_read(turned, first, count, out, &err), WEFT_OK, "%s", err.text);
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = (first + i) / turned->columns, column = (first + i) % turned->columns;
        cr_assert_eq(out[i], (float)(column * 1000 + row), "element %lld", (long long)(first + i));
    }
}

Test(turned, equals_the_transposed_matrix_in_any_window)
{
    for (uint64_t i = 0; i < 300; i++) {
        struct counted source = {.fails_at = -1};
        source.rows = 1 + (int64_t)(weft_rng_uniform(1, 0, i) * 60);
        source.columns = 1 + (int64_t)(weft_rng_uniform(1, 1, i) * 60);
        struct weft_turned turned = {.rows = source.columns,
                                     .columns = source.rows,
                                     .source = read_counted,
                                     .context = &source,
                                     .most_elements =
                                         1 + (int64_t)(weft_rng_uniform(1, 2, i) * 2000)};
        const int64_t all = source.rows * source.columns;
        for (uint64_t k = 0; k < 5; k++) {
            const int64_t first = (int64_t)(weft_rng_uniform(2, i, k) * (double)all);
            check_range(&turned, first,
                        1 + (int64_t)(weft_rng_uniform(3, i, k) * (double)(all - first - 1)));
        }
        weft_turned_finish(&turned);
    }
}

Test(turned, reads_each_element_once_in_long_runs)
{
    struct counted source = {.rows = 100, .columns = 40, .fails_at = -1};
    struct weft_turned turned = {
        .rows = 40, .columns = 100, .source = read_counted, .context = &source};
    for (int64_t at = 0; at < 4000; at += 250)
        check_range(&turned, at, 250);
    cr_expect_eq(source.elements, 4000);
    cr_expect_eq(source.reads, 1);
    weft_turned_finish(&turned);
    /* A window of 10 rows: a part of each row of the source, four times. */
    source.reads = source.elements = 0;
    turned.most_elements = 1000;
    for (int64_t at = 0; at < 4000; at += 250)
        check_range(&turned, at, 250);
    cr_expect_eq(source.elements, 4000);
    cr_expect_eq(source.reads, 400);
    weft_turned_finish(&turned);
}

Test(turned, a_failed_read_keeps_nothing)
{
    struct counted source = {.rows = 8, .columns = 8, .fails_at = 0};
    struct weft_turned turned = {
        .rows = 8, .columns = 8, .source = read_counted, .context = &source};
    struct weft_error err = {0};
    float out[64];
    cr_expect_eq(weft_turned_read(&turned, 0, 64, out, &err), WEFT_E_IO);
    cr_expect_null(turned.kept);
    check_range(&turned, 0, 64);
    weft_turned_finish(&turned);
}
