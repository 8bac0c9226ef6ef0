/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "include/weft.h"
#include "report/answer.h"

static enum weft_status run_version(const struct weft_cli *cli, struct weft_error *err)
{
    struct weft_answer answer = {.is_line = true};
    weft_answer_word(&answer, "weft", WEFT_VERSION);
    weft_answer_say(&answer, NULL, "weft " WEFT_VERSION "\n");
    return weft_cli_emit_answer(cli, &answer, err);
}

const struct weft_command weft_command_version = {
    .name = "version",
    .usage = "",
    .summary = "the version of this program",
    .details = "The same number stands in every plan and run directory that it writes.",
    .run = run_version,
};
