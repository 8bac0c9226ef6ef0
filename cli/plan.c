#include "base/json.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "library/session.h"
#include "report/plan_report.h"
#include "spec/planner.h"

static void say(const struct weft_cli *cli, const struct weft_session *session,
                struct weft_text *out)
{
    weft_report_plan(session->plan, out);
    if (cli->program_dump) weft_program_dump(session->program, session->plan, out);
}

/* With --program one document still: {"plan": ..., "program": ...}. */
static void say_json(const struct weft_cli *cli, const struct weft_session *session,
                     struct weft_text *out)
{
    struct weft_json_writer writer;
    if (cli->program_dump) weft_text_add(out, "{\"plan\": ");
    weft_json_writer_init(&writer, out, 2);
    weft_report_plan_json(session->plan, &writer);
    if (cli->program_dump) {
        weft_text_add(out, ",\n\"program\": ");
        weft_program_write(session->program, out);
        weft_text_add(out, "}");
    }
    weft_text_add(out, "\n");
}

static enum weft_status run(const struct weft_cli *cli, struct weft_error *err)
{
    struct weft_session session = {0};
    struct weft_text file, out;
    weft_text_init(&file);
    weft_cli_report_init(cli, NULL, &out);
    enum weft_status status = weft_cli_read_config(cli, cli->operands[0], &session, err);
    if (status == WEFT_OK) status = weft_session_stage(&session, NULL, err);
    if (status == WEFT_OK && cli->start) status = weft_session_start(&session, cli->start, err);
    if (status == WEFT_OK) status = weft_session_plan(&session, NULL, err);
    if (status == WEFT_OK) {
        weft_plan_write(session.plan, &file);
        (cli->json ? say_json : say)(cli, &session, &out);
        status = weft_cli_emit_file(cli, &file, &out, err);
    }
    weft_text_finish(&file);
    weft_text_finish(&out);
    weft_session_close(&session);
    return status;
}

#define SHOW_PLANNER(identifier, name, literal, text) "\n  " name ": " text
#define PLANNERS                                      WEFT_PLANNER_MAP(SHOW_PLANNER)

const struct weft_command weft_command_plan = {
    .name = "plan",
    .usage = "CONFIG [-o plan.json] [--memory-limit BYTES] [--planner NAME]",
    .summary = "decides policies and placements within the limit, with a proven bound",
    .details =
        "The gap is against a bound that weft itself derives from the solver's multipliers, not\n"
        "the solver's word. Exit 78 when no plan fits, naming the least limit that does.\n"
        "--program prints the instructions too. --start takes a plan of the same model, at any\n"
        "limit and by any planner, to begin with: ilp is then never slower, where it fits.\n"
        "Planners (docs/planners.md):" PLANNERS,
    .flags = "--set --ranks --seed --memory-limit --planner --time-limit --gap --program --start",
    .least_operands = 1,
    .most_operands = 1,
    .run = run,
};
