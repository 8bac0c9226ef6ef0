/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/schema_files.h"
#include "spec/config_reference.h"

/* `kind` is NULL if none was given. */
static enum weft_status refuse_kind(const char *kind, struct weft_error *err)
{
    struct weft_text kinds;
    weft_text_init(&kinds);
    for (int i = 0; weft_schema_kinds[i]; i++)
        weft_text_addf(&kinds, "%s%s", i > 0 ? ", " : "", weft_schema_kinds[i]);
    if (kind)
        (void)weft_fail(err, WEFT_E_USAGE, "there is no schema of \"%s\"; there are: %s", kind,
                        weft_text_chars(&kinds));
    else
        (void)weft_fail(err, WEFT_E_USAGE, "usage: weft schema KIND, one of: %s",
                        weft_text_chars(&kinds));
    weft_text_finish(&kinds);
    return WEFT_E_USAGE;
}

static enum weft_status add_schema(const char *kind, struct weft_text *out, struct weft_error *err)
{
    struct weft_error why = {0};
    if (weft_schema_is_file(kind)) return weft_schema_file(kind, out, err);
    enum weft_status status = weft_config_schema(kind, out, &why);
    if (status == WEFT_OK) return WEFT_OK;
    if (status != WEFT_E_USAGE) return weft_fail(err, status, "%s", why.text);
    return refuse_kind(kind, err);
}

static enum weft_status print_schema(const struct weft_cli *cli, struct weft_error *err)
{
    struct weft_text out;
    if (cli->n_operands == 0) return refuse_kind(NULL, err);
    weft_text_init(&out);
    enum weft_status status = add_schema(cli->operands[0], &out, err);
    if (status == WEFT_OK) status = weft_cli_emit(cli, &out, err);
    weft_text_finish(&out);
    return status;
}

const struct weft_command weft_command_schema = {
    .name = "schema",
    .usage = "KIND",
    .summary = "JSON Schema (draft-07) of a kind of file",
    .details =
        "KIND is config, model or cluster: files that people write. An editor that checks them\n"
        "by the schema accepts the same files as weft. Or profile, plan, metrics (a line of\n"
        "metrics.jsonl), result (result.json) or manifest (of a checkpoint): files that weft\n"
        "writes, with examples. The tables that read a file make its schema. An installation\n"
        "has all of them in PREFIX/share/weft/schema.",
    .most_operands = 1,
    .run = print_schema,
};
