/* The answer to a limit that no plan fits: a table of changes with which a plan would fit. */
#ifndef WEFT_CLI_STUDY_REFUSAL_H
#define WEFT_CLI_STUDY_REFUSAL_H

#include "cli/command.h"
#include "library/session.h"

/* Prints the changes that fit: a larger limit, levels of recomputation, smaller micro-batches,
 * offloading, more ranks. The cheapest comes first: the least time of all ranks a sample, by
 * drafted plans. Changes without times come last. `refused` is the session that has no plan, and
 * `why` its error, which --json has too. Prints nothing if the plan itself goes to standard output.
 */
WEFT_MUST_USE enum weft_status weft_refusal_answer(const struct weft_cli *cli,
                                                   const struct weft_session *refused,
                                                   const struct weft_error *why,
                                                   struct weft_error *err);

#endif
