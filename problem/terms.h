/* SPDX-License-Identifier: Apache-2.0 */
/* The terms of a problem are the split of the batch, the blocks and the period. They tell problems
 * of one config apart, and the config makes the rest again (problem/variants.h). */
#ifndef WEFT_PROBLEM_TERMS_H
#define WEFT_PROBLEM_TERMS_H

#include "base/json/json.h"
#include "base/json/json_keys.h"
#include "base/status.h"
#include "problem/problem.h"

extern const struct weft_key_table weft_problem_terms_keys;
/* Writes the terms as a JSON object, and reads them back. All else of that problem is 0.
 * WEFT_E_DATA names the place. */
void weft_problem_write_terms(const struct weft_problem *problem, struct weft_json_writer *writer);
WEFT_MUST_USE enum weft_status weft_problem_read_terms(const struct weft_json_value *value,
                                                       const char *where, struct weft_problem **out,
                                                       struct weft_error *err);

#endif
