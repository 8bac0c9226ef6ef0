#include <string.h>

#include "base/wrap.h"
#include "cli/command.h"
#include "cli/terminal.h"

const char weft_common_flags[] =
    "Common flags:\n"
    "  -o FILE                write the result there instead of to standard output\n"
    "  --json                 exactly one JSON document on standard output (train: JSON Lines)\n"
    "  -q, -v                 quieter, more talkative\n"
    "  --color auto|always|never\n"
    "                         auto: on a terminal, unless NO_COLOR is set\n"
    "  --progress auto|plain|none\n"
    "                         auto: on a terminal one line that is drawn again,\n"
    "                         elsewhere and with plain one every 10 s or 10 %;\n"
    "                         none: only warnings and errors\n"
    "Flags of verbs that read a config:\n"
    "  --set path.key=value   change a key of the config, e.g. --set train.steps=10\n"
    "  -n N, --ranks N        number of ranks (cluster.ranks)\n"
    "  --seed N               train.seed and plan.seed\n";

static void list_verbs(struct weft_text *out)
{
    weft_text_add(out,
                  "weft: sharded training, planned\n\nusage: weft VERB [operands] [flags]\n\n");
    for (size_t i = 0; weft_commands[i]; i++)
        if (weft_commands[i]->summary)
            weft_text_addf(out, "  %-9s %s\n", weft_commands[i]->name, weft_commands[i]->summary);
    weft_text_add(out, "\n`weft help VERB` tells more. ");
    weft_text_add(out, weft_common_flags);
}

static enum weft_status describe_verb(const char *verb, struct weft_text *out,
                                      struct weft_error *err)
{
    for (size_t i = 0; weft_commands[i]; i++) {
        const struct weft_command *command = weft_commands[i];
        if (!command->summary || strcmp(command->name, verb) != 0) continue;
        weft_text_addf(out, "usage: weft %s %s\n\n%s.\n\n", command->name, command->usage,
                       command->summary);
        weft_wrap_prose(command->details, (size_t)out->columns, out);
        weft_text_add(out, "\n\n");
        if (command->flags && command->flags[0])
            weft_text_addf(out, "Its own flags: %s\n\n", command->flags);
        weft_text_add(out, weft_common_flags);
        return WEFT_OK;
    }
    return weft_fail(err, WEFT_E_USAGE, "help %s: no such verb; see `weft help`", verb);
}

static enum weft_status run(const struct weft_cli *cli, struct weft_error *err)
{
    struct weft_text out;
    weft_cli_report_init(cli, cli->output, &out);
    enum weft_status status = WEFT_OK;
    if (cli->n_operands > 0)
        status = describe_verb(cli->operands[0], &out, err);
    else
        list_verbs(&out);
    if (status == WEFT_OK) status = weft_cli_emit(cli, &out, err);
    weft_text_finish(&out);
    return status;
}

const struct weft_command weft_command_help = {
    .name = "help",
    .usage = "[VERB]",
    .summary = "what there is, and what a verb does",
    .details = "Without a verb: the list of all.",
    .most_operands = 1,
    .run = run,
};
