/* The limit of the stack (ulimit -s), which threads get too. Below a least one the system ends a
 * process by a signal, somewhere; so it is asked for at the start. */
#ifndef WEFT_BASE_STACK_H
#define WEFT_BASE_STACK_H

#include "base/status.h"

enum { WEFT_STACK_LEAST_BYTES = 512 << 10 };

/* WEFT_E_SYSTEM below WEFT_STACK_LEAST_BYTES. */
WEFT_MUST_USE enum weft_status weft_stack_check(struct weft_error *err);

#endif
