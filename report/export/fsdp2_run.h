/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as FSDP2 runs it: an export's units, lists and flags are followed hook by hook, and the
 * collectives that the hooks launch are a plan of FSDP2's own problem. Its prediction has the step
 * and the memory that FSDP2 would have. */
#ifndef WEFT_REPORT_EXPORT_FSDP2_RUN_H
#define WEFT_REPORT_EXPORT_FSDP2_RUN_H

#include "report/export/fsdp2.h"

/* Makes the plan that the hooks of `fsdp2` run, with its prediction, which may be above the limit.
 * `problem` is of a target that launches in order, with the same units and layers. It outlives the
 * plan, which the caller destroys. WEFT_E_DATA with `source`: FSDP2 would gather in vain, or the
 * problem has no such unit or strategy. */
WEFT_MUST_USE enum weft_status weft_fsdp2_run(const struct weft_fsdp2 *fsdp2, const char *source,
                                              const struct weft_problem *problem,
                                              struct weft_plan **out, struct weft_error *err);

#endif
