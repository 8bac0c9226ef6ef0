/* SPDX-License-Identifier: Apache-2.0 */
/* A fiber is a stack that the processor can leave and return to. Each thread of an emulated block
 * has one, so it waits at barriers without a system thread. Fibers belong to the thread that made
 * them. */
#ifndef WEFT_TESTS_EMULATION_FIBER_H
#define WEFT_TESTS_EMULATION_FIBER_H

#include <stddef.h>

struct emu_fiber {
    void *stack_pointer; /* while it is not running */
    void *fake_stack;    /* AddressSanitizer's */
    char *stack;         /* its lowest address */
    size_t stack_bytes;
    void (*entry)(void);
};

/* Prepares a fiber that calls entry() at the first switch to it; entry may not return. `place`,
 * from 0 on, selects a stack, which is kept. Aborts if memory is short. */
void emu_fiber_begin(struct emu_fiber *fiber, int place, void (*entry)(void));

/* Leaves the running fiber `from` and continues `to`. `for_ever`: `from` is never continued. A
 * program's first stack is a fiber of zeros. */
void emu_fiber_switch(struct emu_fiber *from, struct emu_fiber *to, bool for_ever);

/* True if the address is on a fiber's stack. */
bool emu_fiber_owns(const void *address);

#endif
