/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's own library on a machine without a driver: an id can be made, ranks cannot come together,
 * and the error says why. Exit 77 where there is a driver. */
#include "runtime/comm/nccl/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int fail_test(const char *what, const struct weft_error *err)
{
    fprintf(stderr, "%s: status %d: %s\n", what, (int)err->status, err->text);
    return 1;
}

int main(void)
{
    if (dlopen("libcuda.so.1", RTLD_NOW) != NULL) {
        puts("skipped: there is a driver");
        return 77;
    }
    struct weft_error err = {.status = WEFT_OK};
    struct weft_nccl_id id = {{0}};
    static const struct weft_nccl_id zero;
    char version[WEFT_NCCL_VERSION_BYTES];
    printf("NCCL %s\n", weft_nccl_version(version));
    if (strcmp(version, "2.0.0") < 0) return fail_test(version, &err);
    if (weft_nccl_make_id(&id, &err) != WEFT_OK) return fail_test("an id", &err);
    if (memcmp(&id, &zero, sizeof id) == 0) return fail_test("an empty id", &err);
    const struct weft_nccl_link_options options = {.ranks = 1,
                                                   .timeout_ns = INT64_C(60) * 1000000000};
    struct weft_nccl_link *link = NULL;
    if (weft_nccl_link_open(&options, &id, &link, &err) != WEFT_E_ENVIRONMENT || link != NULL)
        return fail_test("a link without a driver", &err);
    if (strstr(err.text, "ranks coming together") == NULL) return fail_test("its text", &err);
    puts(err.text);
    return 0;
}
