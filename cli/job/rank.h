/* SPDX-License-Identifier: Apache-2.0 */
/* A rank at work on a job. Rank 0 leaves the result in the file WEFT_RESULT_FD, and its progress in
 * WEFT_REACH_FD; both are descriptors that the environment names. */
#ifndef WEFT_CLI_JOB_RANK_H
#define WEFT_CLI_JOB_RANK_H

#include "cli/job/hosts.h"

WEFT_MUST_USE weft_hosts_work_fn weft_rank_work;

#endif
