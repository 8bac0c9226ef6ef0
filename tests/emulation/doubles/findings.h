/* What the doubles find, for tests that plant mistakes: functions of libcudart's double. */
#ifndef WEFT_TESTS_EMULATION_DOUBLES_FINDINGS_H
#define WEFT_TESTS_EMULATION_DOUBLES_FINDINGS_H

#include <stddef.h>
#include <stdint.h>

enum double_check {
    DOUBLE_DEFAULT_STREAM, /* work on the stream that orders itself with all others */
    DOUBLE_UNPINNED,       /* an asynchronous copy of memory that the system may move */
    DOUBLE_NEVER_RECORDED, /* a wait for an event that nobody has recorded: it waits for nothing */
    DOUBLE_FREED_TWICE,    /* freed, unmapped or destroyed again, or never there */
    DOUBLE_FREED_EARLY,    /* memory, while the host has not seen all streams done */
    DOUBLE_LEAK,           /* at the end of the program */
    DOUBLE_GEOMETRY,       /* a launch that this GPU would refuse */
    DOUBLE_KERNEL,         /* what the emulator finds in a kernel, or a kernel that is not there */
    DOUBLE_BLOCKING,       /* a call that waits */
    DOUBLE_BOUNDS,         /* memory that was never given out */
    DOUBLE_ORDER,          /* two uses of memory that nothing orders */
    /* From here on those of NCCL's double: links.c plants for them. */
    DOUBLE_OF_NCCL,
    DOUBLE_BEHIND = DOUBLE_OF_NCCL, /* work put behind a group that is not on the stream yet */
    DOUBLE_COLLECTIVE,              /* collectives that differ between ranks */
    DOUBLE_DESTROYED,               /* a communicator, before it was finalized until success */
    DOUBLE_OTHER_THREAD,            /* a call of NCCL by a thread that did not open it */
    /* From here on those of cuBLASLt's double: products.cc plants for them. */
    DOUBLE_OF_CUBLASLT,
    DOUBLE_MISALIGNED = DOUBLE_OF_CUBLASLT, /* an operand, for the alignment that was promised */
    DOUBLE_WORKSPACE,                       /* less than the algorithm needs */
    DOUBLE_EPILOGUE,                        /* without its bias or matrix, or with odd strides */
    DOUBLE_LAYOUT,                          /* matrices that do not fit one another */
    DOUBLE_TF32,                            /* f32 whose operands would be cut */
    DOUBLE_ALGORITHM,                       /* of another problem, version, or none */
    DOUBLE_ATOMIC,                          /* parts of k added in any order */
    DOUBLE_CHECK_COUNT
};

#ifdef __cplusplus
extern "C" {
#endif

const char *weft_double_check_name(enum double_check check);
/* Only checks whose bit is set are looked at; all, to begin with. */
void weft_double_enable(uint32_t checks);
/* How many there were since they were last taken, and the first of them. */
int weft_double_take(enum double_check check, char *text, size_t text_bytes);
/* The nth call of `function` from now on returns `code`; NULL: none does. */
void weft_double_fail(const char *function, int n, int code);
/* The same, and the GPU is lost by it: all that is called behind it fails, and nothing runs. */
void weft_double_lose(const char *function, int n, int code);
/* Says what was found. */
void weft_double_find(enum double_check check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Looks for leaks as the end of the program does. */
void weft_double_look_for_leaks(void);

#ifdef __cplusplus
}
#endif

#endif
