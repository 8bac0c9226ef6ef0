/* A rank at work on a job. Rank 0 leaves the result in the file WEFT_RESULT_FD, and its progress in
 * WEFT_REACH_FD; both are descriptors that the environment names. */
#ifndef WEFT_CLI_JOB_RANK_H
#define WEFT_CLI_JOB_RANK_H

#include "base/json/json.h"
#include "cli/command.h"
#include "runtime/launch/rendezvous.h"

/* Runs the rank of this meeting on the described job. It takes the description and the meeting, but
 * not the meeting's communication library. */
WEFT_MUST_USE enum weft_status weft_rank_work(const struct weft_cli *cli,
                                              struct weft_json *description,
                                              const struct weft_rendezvous *meeting,
                                              struct weft_error *err);

#endif
