/* SPDX-License-Identifier: Apache-2.0 */
/* `weft export RUN --to hf`: a checkpoint as a model of Hugging Face. */
#ifndef WEFT_CLI_VERBS_EXPORT_HF_H
#define WEFT_CLI_VERBS_EXPORT_HF_H

#include "base/status.h"
#include "cli/command.h"

/* Writes the folder of -o, and a report to stdout. */
WEFT_MUST_USE enum weft_status weft_cli_export_hf(const struct weft_cli *cli,
                                                  struct weft_error *err);

#endif
