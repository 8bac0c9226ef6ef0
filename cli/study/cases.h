/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of `weft study`: each config over each network, planned by the machine of a sweep. */
#ifndef WEFT_CLI_STUDY_CASES_H
#define WEFT_CLI_STUDY_CASES_H

#include "cli/study/sweep.h"
#include "report/study/cases.h"

struct weft_case_plans {
    const struct weft_cli *cli;
    struct weft_pool pool;
    int32_t n_networks;
    const char *networks[WEFT_SWEEP_CURVES]; /* factors of bandwidths, as given */
    double factors[WEFT_SWEEP_CURVES];
    const char *kept_file; /* results are kept next to it */
    struct weft_kept kept; /* of the last case */
    struct weft_cases cases;
};

/* Reads --networks and checks the flags. WEFT_E_USAGE. */
WEFT_MUST_USE enum weft_status weft_cases_read_options(struct weft_case_plans *plans,
                                                       struct weft_error *err);

/* Plans all cases, with every result kept. WEFT_E_STOPPED after a signal. */
WEFT_MUST_USE enum weft_status weft_cases_plan(struct weft_case_plans *plans,
                                               struct weft_error *err);

#endif
