#include "base/json/json.h"
#include "cli/command.h"
#include "include/weft.h"

static enum weft_status run_version(const struct weft_cli *cli, struct weft_error *err)
{
    struct weft_text out;
    weft_text_init(&out);
    if (cli->json) {
        struct weft_json_writer writer;
        weft_json_writer_init(&writer, &out, 0);
        weft_json_begin_object(&writer);
        weft_json_put_string(&writer, "weft", WEFT_VERSION);
        weft_json_end_object(&writer);
        weft_text_add(&out, "\n");
    } else {
        weft_text_add(&out, "weft " WEFT_VERSION "\n");
    }
    enum weft_status status = weft_cli_emit(cli, &out, err);
    weft_text_finish(&out);
    return status;
}

const struct weft_command weft_command_version = {
    .name = "version",
    .usage = "",
    .summary = "the version of this program",
    .details = "The same number stands in every plan and run directory that it writes.",
    .run = run_version,
};
