/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to a limit that no plan fits: a table of changes with which a plan would fit. */
#ifndef WEFT_CLI_STUDY_REFUSAL_H
#define WEFT_CLI_STUDY_REFUSAL_H

#include "cli/study/place.h"
#include "report/answer.h"

/* Adds the table "would_fit" of changes that fit: a larger limit, levels of recomputation, smaller
 * micro-batches, offloading, more ranks, updates in backward. The cheapest comes first: the least
 * time of all ranks a sample, by drafted plans. Changes without times follow, then updates in
 * backward, with a line about their price. `refused` is the session that has no plan. `base` are
 * settings of all changes that a user does not type; NULL: none. With `why`, the error of the
 * refusal, a first line names the cheapest change, and JSON has the error. Nothing without a limit,
 * or before staging. */
WEFT_MUST_USE enum weft_status weft_refusal_add(const struct weft_cli *cli,
                                                const struct weft_session *refused,
                                                const struct weft_place *base,
                                                const struct weft_error *why,
                                                struct weft_answer *answer, struct weft_error *err);

/* Prints the answer of a refusal, unless a plan goes to standard output. Logs a failure. */
void weft_refusal_answer(const struct weft_cli *cli, const struct weft_session *refused,
                         const struct weft_error *why);

#endif
