/* SPDX-License-Identifier: Apache-2.0 */
/* The only compiler extensions of the planning half: attributes. include/weft.h has the attributes
 * that library users see. */
#ifndef WEFT_BASE_COMPILER_H
#define WEFT_BASE_COMPILER_H

#include "include/weft.h"

#if defined(__CUDACC__)
/* Inline functions also run on a GPU. */
#define WEFT_MUST_USE
#define WEFT_ALWAYS_INLINE static __host__ __device__ __forceinline__
#elif defined(__GNUC__)
#define WEFT_MUST_USE      __attribute__((warn_unused_result))
/* For loops that must become vectors: one remaining call makes them scalar. */
#define WEFT_ALWAYS_INLINE __attribute__((always_inline)) static inline
#else
#define WEFT_MUST_USE
#define WEFT_ALWAYS_INLINE static inline
#endif

#if defined(__GNUC__)
/* Marks a function that runs before a sanitizer is initialised. */
#define WEFT_UNSANITIZED __attribute__((no_sanitize("address", "thread", "undefined")))
/* Marks a pointer to a function in an executable: the loader calls it before the constructors of
 * all libraries. */
#define WEFT_BEFORE_LIBRARIES __attribute__((section(".preinit_array"), used))
#endif

/* Exact sums of products of 64-bit integers. */
#if defined(__SIZEOF_INT128__)
__extension__ typedef __int128 weft_int128;
#else
#error "weft needs a compiler with 128-bit integers"
#endif

#endif
