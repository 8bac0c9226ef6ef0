/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/schema_files.h"

#include <string.h>

#include "base/json/json.h"
#include "library/metrics/metrics.h"
#include "library/rival.h"
#include "plan/plan.h"
#include "report/export/others.h"
#include "runtime/checkpoint/manifest.h"
#include "spec/profile/profile.h"

const char *const weft_schema_kinds[] = {"config",   "model",  "cluster", "profile",
                                         "plan",     "rival",  "metrics", "result",
                                         "manifest", "export", NULL};

static const struct weft_key_table *const profile_tables[] = {&weft_profile_keys, NULL};
static const struct weft_key_table *const plan_tables[] = {&weft_plan_keys, NULL};
static const struct weft_key_table *const rival_tables[] = {&weft_rival_keys, NULL};
static const struct weft_key_table *const result_tables[] = {&weft_result_keys, NULL};
static const struct weft_key_table *const manifest_tables[] = {&weft_manifest_keys, NULL};
static const struct weft_key_table *const export_tables[] = {&weft_fsdp2_keys, &weft_megatron_keys,
                                                             &weft_deepspeed_export_keys, NULL};

static const struct schema_file {
    const char *kind, *text;
    const struct weft_key_table *const *tables; /* an object is of one of them */
    const char *examples;                       /* an array */
} schema_files[] = {
    {"profile", "Times and memory of a machine.", profile_tables, weft_schema_profile_example},
    {"plan", "A decision with its proof: docs/plan-file.md.", plan_tables,
     weft_schema_plan_example},
    {"rival", "Plans by another program: docs/rivals.md.", rival_tables, weft_schema_rival_example},
    {"metrics", "A line of RUN/metrics.jsonl, and of `weft train --json` except the last.",
     weft_metrics_keys, weft_schema_metrics_example},
    {"result", "The end of a run.", result_tables, weft_schema_result_example},
    {"manifest", "RUN/checkpoints/step-N/manifest.json.", manifest_tables,
     weft_schema_manifest_example},
    {"export", "A plan in the terms of another runtime, by `weft export`.", export_tables,
     weft_schema_export_example},
};

static const struct schema_file *find_file(const char *kind)
{
    for (size_t i = 0; i < sizeof schema_files / sizeof *schema_files; i++)
        if (strcmp(schema_files[i].kind, kind) == 0) return &schema_files[i];
    return NULL;
}

bool weft_schema_is_file(const char *kind)
{
    return find_file(kind) != NULL;
}

enum weft_status weft_schema_file(const char *kind, struct weft_text *out, struct weft_error *err)
{
    const struct schema_file *file = find_file(kind);
    struct weft_json *examples = NULL;
    struct weft_json_writer writer;
    WEFT_TRY(weft_json_parse(file->examples, strlen(file->examples), kind, &examples, err));
    weft_json_writer_init(&writer, out, 2);
    weft_json_begin_object(&writer);
    weft_json_put_string(&writer, "$schema", "http://json-schema.org/draft-07/schema#");
    weft_json_put_string(&writer, "title", kind);
    weft_json_put_string(&writer, "description", file->text);
    weft_keys_schema_of_any(file->tables, &writer);
    weft_json_key(&writer, "examples");
    weft_json_add_value(&writer, weft_json_root(examples));
    weft_json_end_object(&writer);
    weft_text_add(out, "\n");
    weft_json_destroy(examples);
    return weft_text_ok(out) ? WEFT_OK : weft_fail_memory(err, "a schema");
}
