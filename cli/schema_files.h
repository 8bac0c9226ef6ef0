/* SPDX-License-Identifier: Apache-2.0 */
/* JSON Schemas of the files that Weft writes, from the key tables of their readers. Each has
 * examples from runs, and tests check new files against it. Configs have field tables
 * (spec/field.h). */
#ifndef WEFT_CLI_SCHEMA_FILES_H
#define WEFT_CLI_SCHEMA_FILES_H

#include <stdbool.h>

#include "base/status.h"
#include "base/text.h"

/* All kinds of schemas: of the files that people write, then of the others. NULL at the end. */
extern const char *const weft_schema_kinds[];

/* Arrays of JSON. */
extern const char weft_schema_plan_example[], weft_schema_profile_example[],
    weft_schema_metrics_example[], weft_schema_result_example[], weft_schema_manifest_example[],
    weft_schema_rival_example[], weft_schema_export_example[];

/* True of a kind of file that Weft writes. */
bool weft_schema_is_file(const char *kind);

/* Appends the JSON Schema (draft-07) of such a kind, with its examples. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_schema_file(const char *kind, struct weft_text *out,
                                                struct weft_error *err);

#endif
