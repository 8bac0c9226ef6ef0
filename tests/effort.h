/* How many cases of a long test a build runs. A sanitizer makes each several times slower and finds
 * what a case does wrong, not which case differs: it gets a part of the cases, every kind among
 * them; the plain build runs all. */
#ifndef WEFT_TESTS_EFFORT_H
#define WEFT_TESTS_EFFORT_H

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

#endif
