/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/file.h"
#include "base/json/json.h"
#include "base/shown.h"
#include "base/wrap.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "report/answer.h"

enum weft_status weft_cli_emit(const struct weft_cli *cli, const struct weft_text *text,
                               struct weft_error *err)
{
    struct weft_text shown;
    weft_text_init(&shown);
    if (text->columns > 0)
        weft_wrap(weft_text_chars(text), (size_t)text->columns, &shown);
    else
        weft_text_add_shown(&shown, weft_text_chars(text), text->length, WEFT_SHOWN_TEXT);
    if (!weft_text_ok(text)) shown.failed = true;
    enum weft_status status = weft_cli_emit_bytes(cli, &shown, err);
    weft_text_finish(&shown);
    return status;
}

enum weft_status weft_cli_emit_bytes(const struct weft_cli *cli, const struct weft_text *bytes,
                                     struct weft_error *err)
{
    if (!weft_text_ok(bytes)) return weft_fail_memory(err, "the output");
    const char *path = cli->output ? cli->output : "-";
    if (strcmp(path, "-") == 0) *cli->emitted = true;
    weft_cli_progress_clear(cli);
    return weft_file_write(path, weft_text_chars(bytes), bytes->length, err);
}

enum weft_status weft_cli_emit_text(const struct weft_cli *cli, const struct weft_text *text,
                                    struct weft_error *err)
{
    struct weft_text json;
    struct weft_json_writer writer;
    if (!cli->json) return weft_cli_emit(cli, text, err);
    weft_text_init(&json);
    weft_json_writer_init(&writer, &json, 0);
    weft_json_begin_object(&writer);
    weft_json_put_string(&writer, "text", weft_text_chars(text));
    weft_json_end_object(&writer);
    weft_text_add(&json, "\n");
    if (!weft_text_ok(text)) json.failed = true;
    enum weft_status status = weft_cli_emit(cli, &json, err);
    weft_text_finish(&json);
    return status;
}

enum weft_status weft_cli_emit_file(const struct weft_cli *cli, const struct weft_text *file,
                                    const struct weft_text *report, struct weft_error *err)
{
    struct weft_cli to_stdout = *cli;
    if (cli->output) WEFT_TRY(weft_cli_emit(cli, file, err));
    if (cli->output && strcmp(cli->output, "-") == 0) return WEFT_OK;
    to_stdout.output = NULL;
    return weft_cli_emit(&to_stdout, report, err);
}

enum weft_status weft_cli_emit_answer(const struct weft_cli *cli, struct weft_answer *answer,
                                      struct weft_error *err)
{
    struct weft_json_writer writer;
    struct weft_text out;
    weft_cli_report_init(cli, cli->output, &out);
    if (cli->json) {
        weft_json_writer_init(&writer, &out, answer->is_line ? 0 : 2);
        weft_answer_json(answer, &writer);
        weft_text_add(&out, "\n");
    } else {
        weft_answer_text(answer, &out);
    }
    weft_answer_finish(answer);
    const enum weft_status status = weft_cli_emit(cli, &out, err);
    weft_text_finish(&out);
    return status;
}

enum weft_status weft_cli_print_answer(const struct weft_cli *cli, struct weft_answer *answer,
                                       struct weft_error *err)
{
    struct weft_cli to_stdout = *cli;
    to_stdout.output = NULL;
    return weft_cli_emit_answer(&to_stdout, answer, err);
}
