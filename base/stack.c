/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stack.h"

#include <sys/resource.h>

enum weft_status weft_stack_check(struct weft_error *err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur >= WEFT_STACK_LEAST_BYTES)
        return WEFT_OK;
    return weft_fail(err, WEFT_E_SYSTEM,
                     "the limit of the stack is %lld KiB, and Weft needs %d KiB: raise it "
                     "(ulimit -s 8192)",
                     (long long)limit.rlim_cur / 1024, WEFT_STACK_LEAST_BYTES / 1024);
}
