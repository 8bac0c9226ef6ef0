/* SPDX-License-Identifier: Apache-2.0 */
/* Names of units for people: "wte+h.1-4+ln_f", where files have "wte+..+h.1" to "h.4+..+ln_f". */
#ifndef WEFT_PROBLEM_NAMES_H
#define WEFT_PROBLEM_NAMES_H

#include "base/text.h"
#include "problem/problem.h"

/* Appends the layers of decisions `first` to `last`, with consecutive numbers as a range. A name
 * without layers stays as it is, and a long list is shortened. */
void weft_problem_show_names(const struct weft_problem *problem, int32_t first, int32_t last,
                             struct weft_text *out);

/* Shows one decision in the same way, with WEFT_SAVED_PREFIX for saved activations. Returns `text`,
 * or the name in files if that is shorter or `text` is too small. */
enum { WEFT_NAMES_BYTES = 96 };
const char *weft_problem_show_name(const struct weft_problem *problem, int32_t decision,
                                   char text[WEFT_NAMES_BYTES]);

#endif
