/* SPDX-License-Identifier: Apache-2.0 */
/* An expression is a text of integers, names, + - * / % ( ) and at most one comparison, == != <= or
 * >. Values are integers from 0 to 2^63 - 1; a comparison is 0 or 1. A division leaves no rest. */
#ifndef WEFT_LAYERS_RECIPE_EXPRESSION_H
#define WEFT_LAYERS_RECIPE_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft_names {
    /* Looks up a name of `length` characters; false if there is none. */
    bool (*find)(const void *context, const char *name, size_t length, int64_t *out);
    const void *context;
};

struct weft_expression_fault {
    bool overflowed; /* beyond 63 bits */
    char text[200];
};

/* Evaluates `length` characters. False with a fault, and *out untouched. */
bool weft_expression(const char *text, size_t length, const struct weft_names *names, int64_t *out,
                     struct weft_expression_fault *fault);

#endif
