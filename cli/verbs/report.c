/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/file.h"
#include "base/json/json.h"
#include "cli/command.h"
#include "cli/facts.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "report/html/page.h"
#include "report/page/report.h"

static enum weft_status check_inputs(const struct weft_cli *cli, struct weft_error *err)
{
    if (cli->n_operands > WEFT_REPORT_RECORDS)
        return weft_fail(err, WEFT_E_USAGE,
                         "%d inputs: one page shows at most %d side by side; give fewer",
                         cli->n_operands, WEFT_REPORT_RECORDS);
    if (cli->trace != NULL && cli->n_operands > 1)
        return weft_fail(err, WEFT_E_USAGE,
                         "--trace %s: goes with one run or plan; of several, keep each run's trace "
                         "as RUN/trace.json",
                         cli->trace);
    return weft_report_check_outputs(cli, err);
}

/* Writes the page to -o, its data to --csv, and prints its answer or with --json its data. */
static enum weft_status emit_page(const struct weft_cli *cli, const struct weft_page *page,
                                  struct weft_error *err)
{
    struct weft_cli to_stdout = *cli;
    struct weft_text text;
    enum weft_status status = WEFT_OK;
    to_stdout.output = NULL;
    if (cli->output != NULL) status = weft_report_write(page, cli->output, err);
    if (status == WEFT_OK && cli->csv != NULL) {
        weft_text_init(&text);
        weft_page_csv(page, &text);
        status = weft_text_ok(&text)
                     ? weft_file_write(cli->csv, weft_text_chars(&text), text.length, err)
                     : weft_fail_memory(err, "the report");
        weft_text_finish(&text);
    }
    if (status != WEFT_OK) return status;
    if (cli->output != NULL && strcmp(cli->output, "-") == 0) {
        *cli->emitted = true;
        return WEFT_OK;
    }
    weft_cli_report_init(cli, NULL, &text);
    if (cli->json) {
        struct weft_json_writer writer;
        weft_json_writer_init(&writer, &text, 1);
        weft_page_json(page, &writer);
        weft_text_add(&text, "\n");
    } else {
        weft_page_text(page, &text);
        if (cli->output != NULL) weft_text_addf(&text, "report    %s\n", cli->output);
        if (cli->output == NULL)
            weft_text_add(&text, "-o FILE.html writes the report as one page\n");
    }
    status = weft_cli_emit(&to_stdout, &text, err);
    weft_text_finish(&text);
    return status;
}

static enum weft_status run_report(const struct weft_cli *cli, struct weft_error *err)
{
    struct weft_source records[WEFT_REPORT_RECORDS] = {{.path = NULL}};
    struct weft_page page = {.title = NULL};
    int32_t n = 0;
    WEFT_TRY(check_inputs(cli, err));
    enum weft_status status = WEFT_OK;
    for (; n < cli->n_operands && status == WEFT_OK; n++)
        status = weft_source_read(cli->operands[n], cli->trace, &records[n], err);
    if (status == WEFT_OK) {
        weft_report_fill(&page, records, n, weft_report_program());
        status = emit_page(cli, &page, err);
    }
    for (int32_t i = 0; i < n; i++)
        weft_source_finish(&records[i]);
    weft_page_finish(&page);
    return status;
}

const struct weft_command weft_command_report = {
    .name = "report",
    .usage = "RUN|PLAN|FILE...",
    .summary = "draws runs, plans and sweeps as one page",
    .details =
        "Writes one HTML file with -o FILE: without scripts, without network, for light and dark\n"
        "screens and for A4. Its sections are a step by lane with the predicted one above the\n"
        "measured one, memory by category, step time against memory, strategies, curves of the\n"
        "training, prediction errors, lanes, and the origin of all figures. A section without "
        "data\n"
        "is left out and says why.\n"
        "An input is the directory of a run, a plan (or the folder of weft best -o), or what weft\n"
        "sweep --json or weft best --json print. Several are shown side by side. A run that goes "
        "on\n"
        "or was killed is shown up to its last whole line.\n"
        "The measured step is RUN/trace.json (weft train --report keeps it), or --trace FILE.\n"
        "--json prints the data of all drawings, and --csv FILE writes them.",
    .flags = "--trace --csv",
    .least_operands = 1,
    .most_operands = WEFT_CLI_OPERANDS,
    .run = run_report,
};
