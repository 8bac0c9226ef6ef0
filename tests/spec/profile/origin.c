/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/profile/origin.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct weft_profile_origin origin_of_two = {
    .machine = "A CPU, 2 cores, avx2",
    .threads = 1,
    .busy_millicores = 150,
    .cores = 2,
    .precision = "bf16",
    .link = "an emulated link of 20.0 us and 1.00 GB/s"};

Test(profile_origin, differs_by_machine_or_threads)
{
    const struct weft_profile_origin *unsaid = &weft_profile_origin_unsaid;
    cr_assert_not(weft_profile_origin_differs(&origin_of_two, "A CPU, 2 cores, avx2", 1));
    cr_assert(weft_profile_origin_differs(&origin_of_two, "A CPU, 4 cores, avx2", 1));
    cr_assert(weft_profile_origin_differs(&origin_of_two, "A CPU, 2 cores, avx2", 2));
    cr_assert(weft_profile_origin_differs(&origin_of_two, NULL, 2));
    cr_assert_not(weft_profile_origin_differs(&origin_of_two, NULL, 0));
    cr_assert_not(weft_profile_origin_differs(unsaid, "A CPU, 4 cores, avx2", 2));
}

static void show_origin(const struct weft_profile_origin *origin, const char *expected)
{
    struct weft_text text;
    weft_text_init(&text);
    weft_profile_origin_show(origin, &text);
    cr_assert_str_eq(weft_text_chars(&text), expected);
    weft_text_finish(&text);
}

Test(profile_origin, is_shown)
{
    const struct weft_profile_origin threads = {.threads = 2, .busy_millicores = -1};
    show_origin(&origin_of_two, "on A CPU, 2 cores, avx2, with 1 thread a rank");
    show_origin(&threads, "with 2 threads a rank");
    show_origin(&weft_profile_origin_unsaid, "");
}

static enum weft_status read_origin(const char *text, struct weft_pool *pool,
                                    struct weft_profile_origin *out, struct weft_error *err)
{
    struct weft_json *document = NULL;
    cr_assert_eq(weft_json_parse(text, strlen(text), "p.json", &document, err), WEFT_OK);
    enum weft_status status =
        weft_profile_origin_read(weft_json_root(document), "p.json", pool, out, err);
    weft_json_destroy(document);
    return status;
}

Test(profile_origin, is_read_as_it_is_written)
{
    struct weft_json_writer writer;
    struct weft_text text;
    struct weft_pool pool = {0};
    struct weft_profile_origin back;
    struct weft_error err = {0};
    weft_text_init(&text);
    weft_json_writer_init(&writer, &text, 0);
    weft_json_begin_object(&writer);
    weft_json_key(&writer, "measured_on");
    weft_json_begin_object(&writer);
    weft_keys_write(&weft_profile_origin_keys, NULL, &origin_of_two, &writer);
    weft_json_end_object(&writer);
    weft_json_end_object(&writer);
    cr_assert_eq(read_origin(weft_text_chars(&text), &pool, &back, &err), WEFT_OK, "%s", err.text);
    cr_assert_str_eq(back.machine, origin_of_two.machine);
    cr_assert_str_eq(back.precision, origin_of_two.precision);
    cr_assert_str_eq(back.link, origin_of_two.link);
    cr_assert_eq(back.cores, origin_of_two.cores);
    cr_assert(back.threads == 1 && back.busy_millicores == 150);
    cr_assert_eq(read_origin("{}", &pool, &back, &err), WEFT_OK);
    cr_assert(back.machine == NULL && back.threads == 0 && back.busy_millicores == -1);
    weft_pool_finish(&pool);
    weft_text_finish(&text);
}

Test(profile_origin, damage_is_named)
{
    static const char *const damaged[] = {
        "{\"measured_on\": 3}", "{\"measured_on\": {\"threads\": 0}}",
        "{\"measured_on\": {\"machine\": 7}}", "{\"measured_on\": {\"busy_millicores\": -2}}"};
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        struct weft_pool pool = {0};
        struct weft_profile_origin out;
        struct weft_error err = {0};
        cr_assert_eq(read_origin(damaged[i], &pool, &out, &err), WEFT_E_DATA, "%s", damaged[i]);
        cr_assert_not_null(strstr(err.text, "p.json"), "%s", err.text);
        cr_assert_not_null(strstr(err.text, "measured_on"), "%s", err.text);
        cr_assert(out.machine == NULL && out.threads == 0);
        weft_pool_finish(&pool);
    }
}
