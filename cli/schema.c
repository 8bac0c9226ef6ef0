#include "cli/command.h"
#include "spec/config.h"

static enum weft_status run(const struct weft_cli *cli, struct weft_error *err)
{
    struct weft_text out;
    weft_text_init(&out);
    enum weft_status status = weft_config_schema(cli->operands[0], &out, err);
    if (status == WEFT_OK) status = weft_cli_emit(cli, &out, err);
    weft_text_finish(&out);
    return status;
}

const struct weft_command weft_command_schema = {
    .name = "schema",
    .usage = "config|model|cluster",
    .summary = "JSON Schema (draft-07) of a kind of file",
    .details =
        "Made from the same table as the decoder and docs/keys.md, so an editor that checks\n"
        "against it accepts what weft accepts.",
    .least_operands = 1,
    .most_operands = 1,
    .run = run,
};
