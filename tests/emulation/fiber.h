/* A fiber is a stack of its own that the processor can leave and come back to: one for every thread
 * of an emulated block, which waits at barriers without a thread of the system. Fibers belong to
 * the thread that made them. */
#ifndef WEFT_TESTS_EMULATION_FIBER_H
#define WEFT_TESTS_EMULATION_FIBER_H

#include <stddef.h>

struct emu_fiber {
    void *stack_pointer; /* while it is not running */
    void *fake_stack;    /* AddressSanitizer's */
    char *stack;         /* the lowest address that it may use */
    size_t stack_bytes;
    void (*entry)(void);
};

/* A fiber that runs entry() when it is first switched to; entry may not return. `place`, from 0 on,
 * says which of the stacks it gets; they are kept. Aborts the program when there is no memory. */
void emu_fiber_begin(struct emu_fiber *fiber, int place, void (*entry)(void));

/* Leaves `from`, which is running, and goes on with `to`. `for_ever`: nobody will come back to
 * `from`. A program's first stack is a fiber of zeros. */
void emu_fiber_switch(struct emu_fiber *from, struct emu_fiber *to, bool for_ever);

/* True: the address is on the stack of a fiber. */
bool emu_fiber_owns(const void *address);

#endif
