/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of a long test. A sanitizer makes each several times slower and finds faults that most
 * cases share, so it runs a part of the cases, with every kind among them. The longest tests of the
 * plain build run a part too, and all of their cases in `make check-all`. */
#ifndef WEFT_TESTS_EFFORT_H
#define WEFT_TESTS_EFFORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TEST_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_SANITIZED 1
#endif
#ifndef TEST_SANITIZED
#define TEST_SANITIZED 0
#endif

/* A constant: `all` in a plain build, `part` in a sanitized one. */
#define TEST_CASES(all, part) (TEST_SANITIZED ? (part) : (all))
/* An int64_t, no constant: `all` only where WEFT_TEST_ALL is set (scripts/check.sh all). */
#define TEST_CASES_OF(all, usual, part)                                                            \
    (getenv("WEFT_TEST_ALL") != NULL ? (all) : TEST_CASES(usual, part))

static inline uint64_t test_mixed(uint64_t value)
{
    value = (value ^ value >> 33) * UINT64_C(0xff51afd7ed558ccd);
    return value ^ value >> 33;
}

/* A number below n. It is the same for the same content of the tree, so a usual run takes one n-th
 * of the cases, and runs of other commits take the others. */
static inline uint64_t test_turn(uint64_t n)
{
    const char *seed = getenv("WEFT_TEST_SEED");
    return seed == NULL ? 0 : test_mixed(strtoull(seed, NULL, 10)) % n;
}

/* True for the drawn cases: one of each `usual` consecutive numbers in a plain build, one of each
 * `sanitized` under a sanitizer, every number in `make check-all`. Places in successive groups
 * differ, so the drawn numbers have every remainder. Over n trees each number has its turn.
 * A sample is one of n, and may be without a rare kind: a check that asks for a kind also runs a
 * fixed case of the kind. */
static inline bool test_draws(uint64_t number, uint64_t usual, uint64_t sanitized)
{
    const uint64_t n = (uint64_t)TEST_CASES_OF(1, usual, sanitized);
    return number % n == (test_mixed(number / n) + test_turn(n)) % n;
}

#endif
