/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/fiber.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

/* Stacks whole pages apart would share a few sets of the first cache, so each starts a line lower
 * than the last. The lowest page is inaccessible, so that an overflow faults. */
enum {
    MOST_FIBERS = 1024,
    GUARD_BYTES = 4096,
#ifdef __SANITIZE_ADDRESS__
    STACK_BYTES = 256 << 10,
#else
    STACK_BYTES = 128 << 10,
#endif
    PITCH_BYTES = GUARD_BYTES + STACK_BYTES,
    LINE_BYTES = 64,
    LINES_OF_A_PAGE = 64
};
static char *stacks;

/* Saves the callee-saved registers, stores the stack in *from and switches to `to`. */
extern "C" void emu_switch_stacks(void **from, void *to);

#if defined(__x86_64__)
__asm__(".text\n"
        ".globl emu_switch_stacks\n"
        ".type emu_switch_stacks, @function\n"
        "emu_switch_stacks:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size emu_switch_stacks, . - emu_switch_stacks\n");
enum { SAVED_WORDS = 6 };
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl emu_switch_stacks\n"
        ".type emu_switch_stacks, %function\n"
        "emu_switch_stacks:\n"
        "    sub sp, sp, #160\n"
        "    stp x29, x30, [sp]\n"
        "    stp x19, x20, [sp, #16]\n"
        "    stp x21, x22, [sp, #32]\n"
        "    stp x23, x24, [sp, #48]\n"
        "    stp x25, x26, [sp, #64]\n"
        "    stp x27, x28, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x29, x30, [sp]\n"
        "    ldp x19, x20, [sp, #16]\n"
        "    ldp x21, x22, [sp, #32]\n"
        "    ldp x23, x24, [sp, #48]\n"
        "    ldp x25, x26, [sp, #64]\n"
        "    ldp x27, x28, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size emu_switch_stacks, . - emu_switch_stacks\n");
enum { SAVED_WORDS = 20 };
#else
#error "fibers need a switch of stacks for this processor"
#endif

static char *stack_at(int place)
{
    if (stacks == NULL) {
        void *memory = mmap(NULL, (size_t)MOST_FIBERS * PITCH_BYTES, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) {
            fprintf(stderr, "emulation: no memory for the stacks of %d fibers\n", MOST_FIBERS);
            abort();
        }
        stacks = (char *)memory;
        for (int i = 0; i < MOST_FIBERS; i++) {
            mprotect(stacks + (size_t)i * PITCH_BYTES, GUARD_BYTES, PROT_NONE);
        }
    }
    return stacks + (size_t)place * PITCH_BYTES + GUARD_BYTES;
}

static struct emu_fiber *leaving, *entering;

/* Runs first after a switch. */
static void fiber_arrived(void)
{
#ifdef __SANITIZE_ADDRESS__
    const void *bottom;
    size_t bytes;
    __sanitizer_finish_switch_fiber(entering->fake_stack, &bottom, &bytes);
    if (leaving->stack == NULL) {
        leaving->stack = (char *)bottom;
        leaving->stack_bytes = bytes;
    }
#endif
}

extern "C" void emu_fiber_enter(void)
{
    fiber_arrived();
    entering->entry();
    abort();
}

void emu_fiber_begin(struct emu_fiber *fiber, int place, void (*entry)(void))
{
    if (place < 0 || place >= MOST_FIBERS) abort();
    char *stack = stack_at(place);
    const size_t bytes = STACK_BYTES - place % LINES_OF_A_PAGE * LINE_BYTES;
#ifdef __SANITIZE_ADDRESS__
    /* Clears the frames that were abandoned. */
    __asan_unpoison_memory_region(stack, bytes);
#endif
    uintptr_t *top = (uintptr_t *)(void *)(stack + bytes);
#if defined(__x86_64__)
    /* An unused return address: a function begins 8 off a multiple of 16. */
    *--top = 0;
    *--top = (uintptr_t)emu_fiber_enter;
    top -= SAVED_WORDS;
    memset(top, 0, SAVED_WORDS * sizeof(*top));
#elif defined(__aarch64__)
    top -= SAVED_WORDS;
    memset(top, 0, SAVED_WORDS * sizeof(*top));
    top[1] = (uintptr_t)emu_fiber_enter; /* x30 */
#endif
    *fiber = emu_fiber{top, NULL, stack, bytes, entry};
}

void emu_fiber_switch(struct emu_fiber *from, struct emu_fiber *to, bool for_ever)
{
    leaving = from;
    entering = to;
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(for_ever ? NULL : &from->fake_stack, to->stack, to->stack_bytes);
#else
    (void)for_ever;
#endif
    emu_switch_stacks(&from->stack_pointer, to->stack_pointer);
    fiber_arrived();
}

bool emu_fiber_owns(const void *address)
{
    const char *at = (const char *)address;
    return stacks != NULL && at >= stacks && at < stacks + (size_t)MOST_FIBERS * PITCH_BYTES;
}
