/* SPDX-License-Identifier: Apache-2.0 */
/* A missing or invalid module is refused by name, and only that back end needs it. */
#include "runtime/device/module.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/device.h"

static struct weft_error err;

static enum weft_status open_named(const char *file)
{
    struct weft_device *device = NULL;
    setenv("WEFT_CUDA_MODULE", file, 1);
    const enum weft_status status = weft_device_open("cuda", WEFT_CLOCK_WALL, &device, &err);
    cr_assert_null(device);
    return status;
}

Test(module, that_is_not_there_is_named_with_what_would_work)
{
    cr_assert_eq(open_named("/nonexistent/weft_cuda.so"), WEFT_E_ENVIRONMENT);
    cr_assert_not_null(strstr(err.text, "/nonexistent/weft_cuda.so"), "%s", err.text);
    cr_assert_not_null(strstr(err.text, "-Dgpu=enabled"), "%s", err.text);
    cr_assert_not_null(strstr(err.text, "\"cpu\""), "%s", err.text);
}

Test(module, that_is_no_library_is_refused)
{
    cr_assert_eq(open_named("/etc/passwd"), WEFT_E_ENVIRONMENT);
    cr_assert_not_null(strstr(err.text, "/etc/passwd cannot be opened: "), "%s", err.text);
}

Test(module, devices_are_told_apart)
{
    struct weft_text names;
    cr_assert(weft_module_has("cuda") && !weft_module_has("cpu") && !weft_module_has("abacus"));
    weft_text_init(&names);
    weft_module_add_names(&names);
    cr_assert_str_eq(weft_text_chars(&names), "\"cpu\", \"cuda\"");
    weft_text_finish(&names);
}
