/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/dump/npy.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

static void check_file(const int64_t dims[2], int32_t n_dims, const char *shape)
{
    static const float values[] = {1, -2, 0.5f, 3, 4, 5};
    char directory[] = "/tmp/weft-npy-XXXXXX", path[64], *bytes = NULL;
    size_t length = 0;
    struct weft_error err = {0};
    cr_assert_not_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/a.npy", directory);
    cr_assert_eq(weft_npy_write(path, dims, n_dims, values, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_file_read(path, 4096, &bytes, &length, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(memcmp(bytes, "\x93NUMPY\x01", 7), 0);
    cr_assert_eq(bytes[7], 0);
    const size_t header = 10 + (unsigned char)bytes[8] + 256 * (size_t)(unsigned char)bytes[9];
    cr_assert_eq(header % 64, 0);
    cr_assert_eq(bytes[header - 1], '\n');
    cr_assert_eq(length, header + sizeof values);
    /* The lowest byte is first, as on the machine of this test. */
    cr_assert_eq(memcmp(bytes + header, values, sizeof values), 0);
    bytes[header - 1] = '\0';
    cr_assert_not_null(strstr(bytes + 10, "'descr': '<f4', 'fortran_order': False"));
    cr_assert_not_null(strstr(bytes + 10, shape), "%s", bytes + 10);
    unlink(path);
    rmdir(directory);
    free(bytes);
}

Test(npy, has_header_and_numbers)
{
    check_file((const int64_t[2]){6, 0}, 1, "'shape': (6,), }");
    check_file((const int64_t[2]){2, 3}, 2, "'shape': (2, 3), }");
}

Test(npy, a_full_disk_is_named)
{
    const int64_t dims[2] = {1, 0};
    struct weft_error err = {0};
    cr_assert_eq(weft_npy_write("/dev/full", dims, 1, &(float){1}, &err), WEFT_E_IO);
    cr_assert_not_null(strstr(err.text, "No space left on device"), "%s", err.text);
    cr_assert_eq(weft_npy_write("/nowhere/a.npy", dims, 1, &(float){1}, &err), WEFT_E_CREATE);
}
