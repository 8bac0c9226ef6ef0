/* SPDX-License-Identifier: Apache-2.0 */
/* A build without NCCL reports this and names the cure. */
#include <criterion/criterion.h>
#include <string.h>

#include "runtime/comm/cuda/work.h"

Test(without_nccl, several_ranks_are_refused)
{
    const struct weft_comm_options options = {
        .ranks = 3, .device = "cuda", .local = {.control_fd = -1}};
    struct weft_comm *none = NULL;
    struct weft_error err = {.status = WEFT_OK};
    cr_assert_eq(weft_cuda_several_open(&options, &none, &err), WEFT_E_ENVIRONMENT);
    cr_assert_null(none);
    cr_assert(strstr(err.text, "3 ranks on GPUs need NCCL") && strstr(err.text, "-n 1"), "%s",
              err.text);
}
