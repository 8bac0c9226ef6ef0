/* SPDX-License-Identifier: Apache-2.0 */
/* The machines to rent: the best plan of one model on several clusters, by its cost. */
#ifndef WEFT_CLI_STUDY_RENT_H
#define WEFT_CLI_STUDY_RENT_H

#include "cli/command.h"

/* Plans a step of the same batch on each cluster of --clusters, which have prices. Prints their
 * costs of a billion tokens, the cheapest first, with the bound of each. WEFT_E_DATA for a cluster
 * without a price; WEFT_E_INFEASIBLE if none has a plan. */
WEFT_MUST_USE enum weft_status weft_rent_run(const struct weft_cli *cli, struct weft_error *err);

#endif
