/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that wait asleep. On one core a rank or a stream does not spin before it sleeps, so
 * programs with several ranks can run side by side. The suite of communicators has ranks that spin.
 */
#include "base/machine/cores.h"

int32_t __wrap_weft_cores(void);

int32_t __wrap_weft_cores(void)
{
    return 1;
}
