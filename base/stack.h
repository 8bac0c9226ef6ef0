/* SPDX-License-Identifier: Apache-2.0 */
/* The limit of the stack (ulimit -s), which applies to threads too. Below a minimum the system
 * would end a process by a signal, so the start checks it. */
#ifndef WEFT_BASE_STACK_H
#define WEFT_BASE_STACK_H

#include "base/status.h"

enum { WEFT_STACK_LEAST_BYTES = 512 << 10 };

/* WEFT_E_SYSTEM below WEFT_STACK_LEAST_BYTES. */
WEFT_MUST_USE enum weft_status weft_stack_check(struct weft_error *err);

#endif
