#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/command.h"
#include "plan/plan.h"
#include "report/export/fsdp2.h"

static enum weft_status write_fsdp2(const struct weft_cli *cli, const struct weft_plan *plan,
                                    struct weft_text *out, struct weft_error *err)
{
    struct weft_fsdp2 *fsdp2 = NULL;
    enum weft_status status = WEFT_OK;
    WEFT_TRY(weft_fsdp2_create(plan, cli->operands[0], &fsdp2, err));
    if (fsdp2->n_sentences > 0 && !cli->force)
        status = weft_fail(err, WEFT_E_DATA,
                           "%s: FSDP2 cannot follow this plan in %d points. %s --force writes the "
                           "nearest, with a sentence for each in not_expressed",
                           cli->operands[0], fsdp2->n_sentences, fsdp2->sentences[0]);
    else
        (cli->snippet ? weft_fsdp2_snippet : weft_fsdp2_write)(fsdp2, out);
    weft_fsdp2_destroy(fsdp2);
    return status;
}

/* Targets by name. */
static const struct export_target {
    const char *name;
    enum weft_status (*write)(const struct weft_cli *cli, const struct weft_plan *plan,
                              struct weft_text *out, struct weft_error *err);
} export_targets[] = {{"fsdp2", write_fsdp2}};

static enum weft_status find_target(const char *name, const struct export_target **out,
                                    struct weft_error *err)
{
    for (size_t i = 0; name && i < sizeof export_targets / sizeof *export_targets; i++)
        if (strcmp(export_targets[i].name, name) == 0) {
            *out = &export_targets[i];
            return WEFT_OK;
        }
    if (!name) return weft_fail(err, WEFT_E_USAGE, "export needs a target: --to fsdp2");
    return weft_fail(err, WEFT_E_USAGE, "--to %s: no such target; there is fsdp2", name);
}

static enum weft_status run_export(const struct weft_cli *cli, struct weft_error *err)
{
    char *bytes = NULL;
    size_t length = 0;
    const struct export_target *target = NULL;
    struct weft_plan *plan = NULL;
    struct weft_text out;
    WEFT_TRY(find_target(cli->to, &target, err));
    WEFT_TRY(weft_file_read(cli->operands[0], INT64_C(1) << 30, &bytes, &length, err));
    enum weft_status status = weft_plan_parse(bytes, length, cli->operands[0], &plan, err);
    free(bytes);
    if (status == WEFT_OK) status = weft_plan_check_rows(plan, cli->operands[0], err);
    weft_text_init(&out);
    if (status == WEFT_OK) status = target->write(cli, plan, &out, err);
    if (status == WEFT_OK)
        status = (cli->snippet ? weft_cli_emit_text : weft_cli_emit)(cli, &out, err);
    weft_text_finish(&out);
    weft_plan_destroy(plan);
    return status;
}

const struct weft_command weft_command_export = {
    .name = "export",
    .usage = "PLAN",
    .summary = "a plan in the terms of PyTorch's FSDP2",
    .details =
        "JSON (`weft schema export`) with a unit for each fully_shard call, its prefetch lists,\n"
        "the place of its reduction, the collectives in order, and the PyTorch release of each\n"
        "call. --snippet writes the same as Python that needs PyTorch alone. Exit 65 if FSDP2\n"
        "cannot follow the plan; --force writes the nearest, and names each difference.\n"
        "docs/pytorch.md applies it.",
    .flags = "--to --snippet --force",
    .least_operands = 1,
    .most_operands = 1,
    .run = run_export,
};
