/* A futex is a 32-bit word that a thread can sleep on until somebody changes it. The pattern used
 * throughout: the sleeper announces itself, looks at the word again and sleeps only while it still
 * holds what was seen; the waker changes the word, then wakes if somebody is announced. Both sides
 * are sequentially consistent, so one of them sees the other. */
#ifndef WEFT_RUNTIME_DEVICE_FUTEX_H
#define WEFT_RUNTIME_DEVICE_FUTEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Sleeps while *word == seen, at most timeout_ns (negative: without end). May return early for no
 * reason, so callers look again. `shared`: the word lies in memory shared between processes. */
void weft_futex_wait(_Atomic uint32_t *word, uint32_t seen, int64_t timeout_ns, bool shared);
void weft_futex_wake(_Atomic uint32_t *word, bool shared); /* everybody */

/* Tells the core that this is a waiting loop. */
static inline void weft_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
