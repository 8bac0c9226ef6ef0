#include <stdlib.h>

#include "base/file.h"
#include "cli/command.h"
#include "plan/plan.h"
#include "report/explain.h"
#include "report/plan_report.h"

static enum weft_status run(const struct weft_cli *cli, struct weft_error *err)
{
    char *bytes = NULL;
    size_t length = 0;
    struct weft_plan *plan = NULL;
    struct weft_text out;
    WEFT_TRY(weft_file_read(cli->operands[0], INT64_C(1) << 30, &bytes, &length, err));
    enum weft_status status = weft_plan_parse(bytes, length, cli->operands[0], &plan, err);
    free(bytes);
    weft_text_init(&out);
    if (status == WEFT_OK) {
        if (cli->json) {
            struct weft_json_writer writer;
            weft_json_writer_init(&writer, &out, 2);
            weft_explain_json(plan, &writer);
        } else {
            weft_report_plan(plan, &out);
            weft_text_add(&out, "\n");
            weft_explain(plan, &out);
        }
        if (cli->json) weft_text_add(&out, "\n");
        status = weft_cli_emit(cli, &out, err);
    }
    weft_text_finish(&out);
    weft_plan_destroy(plan);
    return status;
}

const struct weft_command weft_command_explain = {
    .name = "explain",
    .usage = "PLAN",
    .summary = "why each block sits where it does, and what each unit costs",
    .details =
        "For every unit its policy, blocks and channel time; for every block in channel order its\n"
        "launch, its deadline and what keeps it from moving: its window, memory (which slot would\n"
        "overflow, by how much), the channel's order, or nothing.",
    .least_operands = 1,
    .most_operands = 1,
    .run = run,
};
