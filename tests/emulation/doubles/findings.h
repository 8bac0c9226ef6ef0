/* SPDX-License-Identifier: Apache-2.0 */
/* Findings of the doubles, for tests that plant mistakes. These functions are in libcudart's
 * double. */
#ifndef WEFT_TESTS_EMULATION_DOUBLES_FINDINGS_H
#define WEFT_TESTS_EMULATION_DOUBLES_FINDINGS_H

#include <stddef.h>
#include <stdint.h>

enum double_check {
    DOUBLE_DEFAULT_STREAM, /* work on the default stream, which orders itself with all others */
    DOUBLE_UNPINNED,       /* an asynchronous copy of pageable memory */
    DOUBLE_NEVER_RECORDED, /* a wait for an event without a record, which has no effect */
    DOUBLE_FREED_TWICE,    /* freed, unmapped or destroyed again, or never made */
    DOUBLE_FREED_EARLY,    /* memory freed before the host has seen all streams complete */
    DOUBLE_LEAK,           /* at the program's end */
    DOUBLE_GEOMETRY,       /* a launch that this GPU would refuse */
    DOUBLE_KERNEL,         /* a finding of the emulator, or an unknown kernel */
    DOUBLE_BLOCKING,       /* a call that waits */
    DOUBLE_BOUNDS,         /* memory outside of all allocations */
    DOUBLE_ORDER,          /* two unordered uses of memory */
    /* Checks of NCCL's double; links.c plants their mistakes. */
    DOUBLE_OF_NCCL,
    DOUBLE_BEHIND = DOUBLE_OF_NCCL, /* work issued after a group that is not on the stream yet */
    DOUBLE_COLLECTIVE,              /* collectives that differ between ranks */
    DOUBLE_DESTROYED,               /* a communicator destroyed before it was finalized with
                                     * success */
    DOUBLE_OTHER_THREAD,            /* a call of NCCL by a thread that did not open the
                                     * communicator */
    /* Checks of cuBLASLt's double; products.cc plants their mistakes. */
    DOUBLE_OF_CUBLASLT,
    DOUBLE_MISALIGNED = DOUBLE_OF_CUBLASLT, /* an operand with less alignment than promised */
    DOUBLE_WORKSPACE,                       /* less than the algorithm needs */
    DOUBLE_EPILOGUE,                        /* lacks its bias or matrix, or has odd strides */
    DOUBLE_LAYOUT,                          /* matrices with incompatible shapes */
    DOUBLE_TF32,                            /* f32 with truncated operands */
    DOUBLE_ALGORITHM,                       /* for another problem or version, or none */
    DOUBLE_ATOMIC,                          /* parts of k added in any order */
    DOUBLE_CHECK_COUNT
};

#ifdef __cplusplus
extern "C" {
#endif

const char *weft_double_check_name(enum double_check check);
/* Enables only the checks with a set bit. All are enabled at first. */
void weft_double_enable(uint32_t checks);
/* Returns the number of findings since the last call, with the text of the first. */
int weft_double_take(enum double_check check, char *text, size_t text_bytes);
/* Makes the nth call of `function` from now return `code`; NULL: none. */
void weft_double_fail(const char *function, int n, int code);
/* The same, and the GPU is lost: later calls fail, and nothing runs. */
void weft_double_lose(const char *function, int n, int code);
/* Records a finding. */
void weft_double_find(enum double_check check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Looks for leaks as at the program's end. */
void weft_double_look_for_leaks(void);

#ifdef __cplusplus
}
#endif

#endif
