#include "base/file.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/session.h"
#include "report/plan_report.h"

static enum weft_status write_plan(const struct weft_session *session, const char *path,
                                   struct weft_error *err)
{
    struct weft_text text;
    weft_text_init(&text);
    weft_plan_write(session->plan, &text);
    enum weft_status status = weft_text_ok(&text)
                                  ? weft_file_write(path, weft_text_chars(&text), text.length, err)
                                  : weft_fail_memory(err, "the plan");
    weft_text_finish(&text);
    return status;
}

static void say(const struct weft_cli *cli, const struct weft_session *session,
                struct weft_text *out)
{
    struct weft_json_writer writer;
    if (cli->json) {
        weft_json_writer_init(&writer, out, 2);
        weft_report_plan_json(session->plan, &writer);
        weft_text_add(out, "\n");
    } else {
        weft_report_plan(session->plan, out);
    }
    if (cli->program_dump) weft_program_dump(session->program, session->plan, out);
}

static enum weft_status run(const struct weft_cli *cli, struct weft_error *err)
{
    struct weft_session session = {0};
    struct weft_text out;
    weft_text_init(&out);
    enum weft_status status = weft_session_read(cli, cli->operands[0], &session, err);
    if (status == WEFT_OK) status = weft_session_stage(&session, NULL, err);
    if (status == WEFT_OK) status = weft_session_plan(&session, NULL, err);
    if (status == WEFT_OK && cli->output) status = write_plan(&session, cli->output, err);
    if (status == WEFT_OK) {
        struct weft_cli to_stdout = *cli;
        to_stdout.output = NULL;
        say(cli, &session, &out);
        status = weft_cli_emit(&to_stdout, &out, err);
    }
    weft_text_finish(&out);
    weft_session_close(&session);
    return status;
}

const struct weft_command weft_command_plan = {
    .name = "plan",
    .usage = "CONFIG [-o plan.json] [--memory-limit BYTES] [--planner NAME]",
    .summary = "decides policies and placements within the limit, with a proven bound",
    .details =
        "Planners: ilp, greedy, all-fsdp, all-sdp, all-dp, random. The gap is against a bound\n"
        "that weft itself derives from the solver's multipliers, not the solver's word.\n"
        "Exit 78 when no plan fits, naming the least limit that does. --program prints the\n"
        "instructions too.",
    .flags = "--memory-limit --planner --time-limit --gap --program",
    .least_operands = 1,
    .most_operands = 1,
    .run = run,
};
