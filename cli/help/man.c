/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <string.h>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/help/topics.h"

/* The manual pages weft(1) and weft-VERB(1), made from the program's own tables. */

/* Escapes text for troff: no line is a request, and hyphens can be copied. */
static void add_plain(struct weft_text *out, const char *text)
{
    bool start = true;
    for (; *text != '\0'; text++) {
        if (start && (*text == '.' || *text == '\'')) weft_text_add(out, "\\&");
        if (*text == '\\')
            weft_text_add(out, "\\e");
        else if (*text == '-')
            weft_text_add(out, "\\-");
        else
            weft_text_append(out, text, 1);
        start = *text == '\n';
    }
}

/* Empty lines separate paragraphs. */
static void add_prose(struct weft_text *out, const char *text)
{
    for (const char *end; (end = strstr(text, "\n\n")) != NULL; text = end + 2) {
        struct weft_text paragraph;
        weft_text_init(&paragraph);
        weft_text_append(&paragraph, text, (size_t)(end - text));
        add_plain(out, weft_text_chars(&paragraph));
        weft_text_add(out, "\n.PP\n");
        weft_text_finish(&paragraph);
    }
    add_plain(out, text);
    weft_text_add(out, "\n");
}

static void add_item(struct weft_text *out, const char *tag, const char *text)
{
    weft_text_add(out, ".TP\n.B ");
    add_plain(out, tag);
    weft_text_add(out, "\n");
    add_plain(out, text);
    weft_text_add(out, "\n");
}

static void add_flag(struct weft_text *out, const struct weft_flag *flag)
{
    struct weft_text form;
    weft_text_init(&form);
    weft_flag_add_form(flag, &form);
    add_item(out, weft_text_chars(&form), flag->text);
    weft_text_finish(&form);
}

static void add_title(struct weft_text *out, const char *verb)
{
    weft_text_add(out, ".TH WEFT");
    if (verb) weft_text_add(out, "\\-");
    for (const char *at = verb ? verb : ""; *at; at++) {
        char upper = (char)toupper((unsigned char)*at);
        weft_text_append(out, &upper, 1);
    }
    weft_text_add(out, " 1 \"\" \"weft " WEFT_VERSION "\" \"User Commands\"\n.SH NAME\n");
}

static void add_verb_page(struct weft_text *out, const struct weft_command *command)
{
    struct weft_text usage;
    weft_text_init(&usage);
    weft_command_add_usage(command, &usage);
    add_title(out, command->name);
    weft_text_addf(out, "weft\\-%s \\- ", command->name);
    add_plain(out, command->summary);
    weft_text_add(out, "\n.SH SYNOPSIS\n");
    add_plain(out, weft_text_chars(&usage));
    weft_text_add(out, "\n.SH DESCRIPTION\n");
    add_prose(out, command->details);
    weft_text_add(out, ".SH FLAGS\n");
    for (const struct weft_flag *flag = NULL; (flag = weft_flag_next(command, flag)) != NULL;)
        add_flag(out, flag);
    weft_text_add(out, ".SH SEE ALSO\n.BR weft (1),\nwhich has exit codes, variables and files.\n");
    weft_text_finish(&usage);
}

static void add_topic(struct weft_text *out, const char *heading, const char *topic)
{
    weft_text_addf(out, ".SH %s\n", heading);
    weft_topic_find(topic)->list(add_item, out);
}

static void add_program_page(struct weft_text *out)
{
    add_title(out, NULL);
    weft_text_add(out, "weft \\- plans and trains sharded models inside a memory limit\n"
                       ".SH SYNOPSIS\n.B weft\n.I VERB\n[operands] [flags]\n"
                       ".SH DESCRIPTION\n"
                       "Weft measures a machine, decides for every layer's parameters what to "
                       "shard and in which slot of the step each collective is launched, proves "
                       "how far from the best that plan can be, and runs exactly that plan. The "
                       "same is in a library: see weft.h.\n"
                       ".SH VERBS\nEach has a page of its own, such as\n.BR weft\\-plan (1).\n");
    for (size_t i = 0; weft_commands[i]; i++)
        if (weft_commands[i]->summary)
            add_item(out, weft_commands[i]->name, weft_commands[i]->summary);
    add_topic(out, "FLAGS", "flags");
    add_topic(out, "PLANNERS", "planners");
    add_topic(out, "POLICIES", "policies");
    add_topic(out, "EXIT STATUS", "exit-codes");
    weft_text_add(out,
                  ".PP\nThe message on standard error says what, where, and what would work.\n");
    add_topic(out, "ENVIRONMENT", "environment");
    add_topic(out, "FILES", "files");
}

static enum weft_status add_page(const char *verb, struct weft_text *out, struct weft_error *err)
{
    if (verb == NULL) {
        add_program_page(out);
        return WEFT_OK;
    }
    for (size_t i = 0; weft_commands[i]; i++) {
        if (!weft_commands[i]->summary || strcmp(weft_commands[i]->name, verb) != 0) continue;
        add_verb_page(out, weft_commands[i]);
        return WEFT_OK;
    }
    return weft_fail(err, WEFT_E_USAGE, "man %s: no such verb", verb);
}

static enum weft_status run_man(const struct weft_cli *cli, struct weft_error *err)
{
    struct weft_text out;
    weft_text_init(&out);
    enum weft_status status = add_page(cli->n_operands > 0 ? cli->operands[0] : NULL, &out, err);
    if (status == WEFT_OK) status = weft_cli_emit_text(cli, &out, err);
    weft_text_finish(&out);
    return status;
}

const struct weft_command weft_command_man = {
    .name = "man",
    .usage = "[VERB]",
    .summary = NULL, /* hidden: the build installs its output */
    .most_operands = 1,
    .run = run_man,
};
