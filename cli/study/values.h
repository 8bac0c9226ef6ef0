/* SPDX-License-Identifier: Apache-2.0 */
/* The searches of `weft estimate`. */
#ifndef WEFT_CLI_STUDY_VALUES_H
#define WEFT_CLI_STUDY_VALUES_H

#include "cli/command.h"

/* Answers --largest KEY and --least KEY: the largest, or least, value at which each row fits the
 * limit. The search assumes that if a value fits, every smaller one fits (for ranks: every larger
 * one). */
WEFT_MUST_USE enum weft_status weft_study_values(const struct weft_cli *cli,
                                                 struct weft_answer *answer,
                                                 struct weft_error *err);

#endif
