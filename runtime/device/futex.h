/* SPDX-License-Identifier: Apache-2.0 */
/* A futex is a 32-bit word that a thread sleeps on until another thread changes it. All users
 * follow one pattern. The sleeper announces itself, reads the word again, and sleeps only if it is
 * unchanged. The waker changes the word, then wakes announced sleepers. Both sides are sequentially
 * consistent, so at least one sees the other. */
#ifndef WEFT_RUNTIME_DEVICE_FUTEX_H
#define WEFT_RUNTIME_DEVICE_FUTEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Sleeps while *word == seen, at most timeout_ns (negative: no limit). It may return early for no
 * reason, so callers check again. `shared`: the word lies in memory shared between processes. */
void weft_futex_wait(_Atomic uint32_t *word, uint32_t seen, int64_t timeout_ns, bool shared);
void weft_futex_wake(_Atomic uint32_t *word, bool shared); /* wakes all sleepers */

/* Marks a spinning loop for the core. */
static inline void weft_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
