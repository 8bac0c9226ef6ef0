/* Names of units for people: "wte+h.1-4+ln_f" for what files call "wte+..+h.1" to "h.4+..+ln_f". */
#ifndef WEFT_PROBLEM_NAMES_H
#define WEFT_PROBLEM_NAMES_H

#include "base/text.h"
#include "problem/problem.h"

/* Appends the layers of decisions first to last, in which numbers that follow one another are a
 * range. A name that is not made of layers stays as it is, as does a list that would be long. */
void weft_problem_show_names(const struct weft_problem *problem, int32_t first, int32_t last,
                             struct weft_text *out);

/* The same of one decision, with WEFT_SAVED_PREFIX if it is of saved activations. Returns `text`,
 * or the name in files if that is shorter or `text` too short. */
enum { WEFT_NAMES_BYTES = 96 };
const char *weft_problem_show_name(const struct weft_problem *problem, int32_t decision,
                                   char text[WEFT_NAMES_BYTES]);

#endif
