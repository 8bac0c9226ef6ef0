/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of programs that use libweft as its users do, without a test framework. */
#ifndef WEFT_TESTS_LIBRARY_CHECK_H
#define WEFT_TESTS_LIBRARY_CHECK_H

#include <stdio.h>

static int failures;

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            failures++;                                                                            \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);                        \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fprintf(stderr, "\n");                                                                 \
        }                                                                                          \
    } while (0)

#endif
