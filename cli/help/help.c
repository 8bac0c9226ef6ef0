/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/wrap.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/help/topics.h"
#include "cli/terminal.h"
#include "spec/config_reference.h"
#include "spec/field.h"

enum { MOST_NAMES = 64 };

static void list_verbs(struct weft_text *out)
{
    weft_text_add(out,
                  "weft: sharded training, planned\n\nusage: weft VERB [operands] [flags]\n\n");
    for (size_t i = 0; weft_commands[i]; i++)
        if (weft_commands[i]->summary)
            weft_text_addf(out, "  %-11s  %s\n", weft_commands[i]->name, weft_commands[i]->summary);
    weft_text_add(out, "\n`weft help VERB` tells more. So does `weft help TOPIC`:\n\n");
    for (const struct weft_topic *topic = weft_topics; topic->name; topic++)
        weft_text_addf(out, "  %-11s  %s\n", topic->name, topic->summary);
    weft_text_add(out, "\nCommon flags:\n");
    for (const struct weft_flag *flag = weft_flags; flag->name; flag++)
        if (flag->common) weft_flag_add_line(flag, out);
}

static void describe_verb(const struct weft_command *command, struct weft_text *out)
{
    bool common = false;
    weft_text_add(out, "usage: ");
    weft_command_add_usage(command, out);
    weft_text_addf(out, "\n\n%s.\n\n", command->summary);
    weft_wrap_prose(command->details, (size_t)out->columns, out);
    weft_text_add(out, "\n");
    if (command->flags && command->flags[0]) weft_text_add(out, "\nFlags:\n");
    for (const struct weft_flag *flag = NULL; (flag = weft_flag_next(command, flag));) {
        if (flag->common && !common) weft_text_add(out, "\nCommon flags:\n");
        common = flag->common;
        weft_flag_add_line(flag, out);
    }
}

static void add_row(struct weft_text *out, const char *what, const char *text)
{
    weft_text_addf(out, "  %-13s  %s\n", what, text);
}

static void add_long_row(struct weft_text *out, const char *what, const char *text)
{
    weft_text_addf(out, "  %s\n          %s\n", what, text);
}

/* Prints keys that begin with `prefix`. */
struct keys {
    const char *prefix;
    struct weft_text *out;
    int32_t n;
};

static void add_key(void *context, const char *path, const char *text)
{
    struct keys *keys = context;
    if (strncmp(path, keys->prefix, strlen(keys->prefix)) != 0) return;
    add_long_row(keys->out, path, text);
    keys->n++;
}

static enum weft_status fail_unknown(const char *name, struct weft_error *err)
{
    const char *names[MOST_NAMES];
    size_t n = 0;
    for (size_t i = 0; weft_commands[i] && n < MOST_NAMES; i++)
        if (weft_commands[i]->summary) names[n++] = weft_commands[i]->name;
    for (const struct weft_topic *topic = weft_topics; topic->name && n < MOST_NAMES; topic++)
        names[n++] = topic->name;
    const char *near = weft_field_nearest(name, names, n);
    return weft_fail(err, WEFT_E_USAGE,
                     "help %s: no such verb, topic or key%s%s%s; see `weft help`", name,
                     near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static enum weft_status describe_name(const char *name, struct weft_text *out,
                                      struct weft_error *err)
{
    const struct weft_topic *topic = weft_topic_find(name);
    for (size_t i = 0; weft_commands[i]; i++) {
        if (!weft_commands[i]->summary || strcmp(weft_commands[i]->name, name) != 0) continue;
        describe_verb(weft_commands[i], out);
        return WEFT_OK;
    }
    if (topic) {
        weft_text_addf(out, "%s: %s.\n\n", topic->name, topic->summary);
        topic->list(topic->long_names ? add_long_row : add_row, out);
        return WEFT_OK;
    }
    struct keys keys = {.prefix = name, .out = out};
    if (strchr(name, '.')) weft_config_visit_keys(add_key, &keys);
    return keys.n > 0 ? WEFT_OK : fail_unknown(name, err);
}

static enum weft_status run_help(const struct weft_cli *cli, struct weft_error *err)
{
    struct weft_text out;
    weft_cli_report_init(cli, cli->output, &out);
    enum weft_status status = WEFT_OK;
    if (cli->n_operands > 0)
        status = describe_name(cli->operands[0], &out, err);
    else
        list_verbs(&out);
    if (status == WEFT_OK) status = weft_cli_emit_text(cli, &out, err);
    weft_text_finish(&out);
    return status;
}

const struct weft_command weft_command_help = {
    .name = "help",
    .usage = "[VERB|TOPIC|KEY]",
    .summary = "what there is, and what a verb does",
    .details =
        "Without an operand: the list of all verbs and topics. A key is told by its path, as\n"
        "train.steps, and all of a section by its beginning, as train.checkpoint.",
    .most_operands = 1,
    .run = run_help,
};
