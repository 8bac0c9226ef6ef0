/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/flags.h"
#include "spec/field.h"

static enum weft_status unknown_flag(const char *argument, const struct weft_command *command,
                                     struct weft_error *err)
{
    enum { MOST_FLAGS = 64 };
    const char *names[MOST_FLAGS];
    size_t n = 0;
    for (const struct weft_flag *flag = NULL;
         (flag = weft_flag_next(command, flag)) && n < MOST_FLAGS;)
        names[n++] = flag->name;
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(argument, "="), argument);
    const char *near = weft_field_nearest(name, names, n);
    return weft_fail(err, WEFT_E_USAGE, "%s: no such flag of `weft %s`%s%s%s; see `weft help %s`",
                     name, command->name, near ? "; did you mean " : "", near ? near : "",
                     near ? "?" : "", command->name);
}

static enum weft_status keep_setting(struct weft_cli *cli, const char *flag, const char *key,
                                     const char *value, struct weft_error *err)
{
    int32_t at = 0;
    while (at < 8 && cli->settings[at][0])
        at++;
    if (at == 8 || cli->n_overrides == WEFT_CLI_OVERRIDES)
        return weft_fail(err, WEFT_E_USAGE, "too many flags that change the config");
    int length = snprintf(cli->settings[at], sizeof cli->settings[at], "%s=%s", key, value);
    if (length < 0 || (size_t)length >= sizeof cli->settings[at])
        return weft_fail(err, WEFT_E_USAGE, "%s: the value is too long", flag);
    cli->overrides[cli->n_overrides++] = cli->settings[at];
    return WEFT_OK;
}

enum { MOST_RANKS = 65536 };

/* Reads "4", or of `weft plan` "4..8" too. */
static enum weft_status parse_ranks(const char *value, struct weft_cli *cli, struct weft_error *err)
{
    const bool plans = strcmp(cli->verb, "plan") == 0;
    char *end;
    long long first = strtoll(value, &end, 10), last = 0;
    bool right = *value != '\0' && first >= 1 && first <= MOST_RANKS;
    if (right && plans && strncmp(end, "..", 2) == 0) {
        const char *second = end + 2;
        last = strtoll(second, &end, 10);
        right = *second != '\0' && last >= first && last <= MOST_RANKS;
    }
    if (!right || *end != '\0')
        return weft_fail(err, WEFT_E_USAGE, "-n %s: ranks are a number from 1 to %d%s", value,
                         MOST_RANKS, plans ? ", or two such as 4..8" : "");
    cli->ranks = first;
    cli->last_ranks = last;
    return WEFT_OK;
}

/* Finds the value's index among the choices in the flag's row. */
static enum weft_status parse_choice(const struct weft_flag *flag, const char *value, int *choice,
                                     struct weft_error *err)
{
    int number = 0;
    for (const char *at = flag->value; *at; at += *at == '|', number++) {
        size_t length = strcspn(at, "|");
        if (strlen(value) == length && memcmp(at, value, length) == 0) {
            *choice = number;
            return WEFT_OK;
        }
        at += length;
    }
    return weft_fail(err, WEFT_E_USAGE, "%s %s: one of %s", flag->name, value, flag->value);
}

static enum weft_status apply_flag(struct weft_cli *cli, const struct weft_flag *flag,
                                   const char *value, struct weft_error *err)
{
    char *target = (char *)cli + flag->offset;
    int choice = 0;
    switch (flag->kind) {
    case WEFT_FLAG_BOOL:
        *(bool *)target = true;
        return WEFT_OK;
    case WEFT_FLAG_TEXT:
        *(const char **)target = value;
        return flag->setting ? keep_setting(cli, flag->name, flag->setting, value, err) : WEFT_OK;
    case WEFT_FLAG_OPTIONAL:
        *(const char **)target = value ? value : "";
        return WEFT_OK;
    case WEFT_FLAG_RANKS:
        return parse_ranks(value, cli, err);
    case WEFT_FLAG_SET:
        if (!strchr(value, '='))
            return weft_fail(err, WEFT_E_USAGE, "--set %s: write --set path.key=value", value);
        if (cli->n_overrides == WEFT_CLI_OVERRIDES)
            return weft_fail(err, WEFT_E_USAGE, "--set: at most %d times", WEFT_CLI_OVERRIDES);
        cli->overrides[cli->n_overrides++] = value;
        return WEFT_OK;
    case WEFT_FLAG_LAYERS:
        if (cli->n_layers == WEFT_CLI_LAYERS)
            return weft_fail(err, WEFT_E_USAGE, "--layers: at most %d times", WEFT_CLI_LAYERS);
        cli->layers[cli->n_layers++] = value;
        return WEFT_OK;
    case WEFT_FLAG_SWEEP:
        if (cli->n_sweeps == 2)
            return weft_fail(err, WEFT_E_USAGE, "--sweep: at most twice, for a grid");
        cli->sweeps[cli->n_sweeps++] = value;
        return WEFT_OK;
    case WEFT_FLAG_SEED:
        /* Sets the seed of parameters and data, and of the planner `random`. */
        WEFT_TRY(keep_setting(cli, flag->name, "train.seed", value, err));
        return keep_setting(cli, flag->name, "plan.seed", value, err);
    case WEFT_FLAG_COLOR:
        WEFT_TRY(parse_choice(flag, value, &choice, err));
        cli->color = (enum weft_color)choice;
        return WEFT_OK;
    case WEFT_FLAG_PROGRESS:
        WEFT_TRY(parse_choice(flag, value, &choice, err));
        cli->progress_choice = (enum weft_progress_choice)choice;
        cli->progress_given = true;
        return WEFT_OK;
    }
    return WEFT_OK;
}

static const struct weft_command *find_command(const char *name)
{
    for (size_t i = 0; weft_commands[i]; i++)
        if (strcmp(weft_commands[i]->name, name) == 0) return weft_commands[i];
    return NULL;
}

static enum weft_status find_verb(int argc, char **argv, const struct weft_command **command,
                                  struct weft_error *err)
{
    const char *verb = argc > 1 ? argv[1] : "help";
    if (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0) verb = "help";
    if (strcmp(verb, "--version") == 0) verb = "version";
    *command = find_command(verb);
    if (*command) return WEFT_OK;
    const char *names[32];
    size_t n = 0;
    for (size_t i = 0; weft_commands[i] && n < 32; i++)
        names[n++] = weft_commands[i]->name;
    const char *near = weft_field_nearest(verb, names, n);
    return weft_fail(err, WEFT_E_USAGE, "%s: no such verb%s%s%s; see `weft help`", verb,
                     near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static enum weft_status parse_flag(int argc, char **argv, int *at,
                                   const struct weft_command *command, struct weft_cli *cli,
                                   struct weft_error *err)
{
    const char *argument = argv[*at];
    const char *equals = argument[1] == '-' ? strchr(argument, '=') : NULL;
    size_t length = equals ? (size_t)(equals - argument) : strlen(argument);
    const struct weft_flag *flag = weft_flag_find(argument, length);
    if (!flag || !weft_flag_is_of(flag, command)) return unknown_flag(argument, command, err);
    if (flag->kind == WEFT_FLAG_BOOL) {
        if (equals) return weft_fail(err, WEFT_E_USAGE, "%s takes no value", flag->name);
        return apply_flag(cli, flag, NULL, err);
    }
    if (equals) return apply_flag(cli, flag, equals + 1, err);
    if (flag->kind == WEFT_FLAG_OPTIONAL) return apply_flag(cli, flag, NULL, err);
    if (*at + 1 >= argc) return weft_fail(err, WEFT_E_USAGE, "%s needs a value", argument);
    return apply_flag(cli, flag, argv[++*at], err);
}

/* `weft VERB --help` is `weft help VERB`, except after a program's name. */
static bool asks_for_help(int argc, char **argv, const struct weft_command *command)
{
    int last = command->starts_program && argc > 3 ? 3 : argc;
    for (int i = 2; i < last && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
    return false;
}

void weft_command_add_usage(const struct weft_command *command, struct weft_text *out)
{
    /* Words after a program's name belong to the program. */
    bool flags_first = command->starts_program;
    weft_text_addf(out, "weft %s%s%s%s%s", command->name, flags_first ? " [flags]" : "",
                   *command->usage ? " " : "", command->usage, flags_first ? "" : " [flags]");
}

static enum weft_status fail_operands(const struct weft_command *command, struct weft_error *err)
{
    struct weft_text usage;
    weft_text_init(&usage);
    weft_command_add_usage(command, &usage);
    enum weft_status status = weft_fail(err, WEFT_E_USAGE, "usage: %s; `weft help %s` tells more",
                                        weft_text_chars(&usage), command->name);
    weft_text_finish(&usage);
    return status;
}

static enum weft_status parse_arguments(int argc, char **argv, struct weft_cli *cli,
                                        const struct weft_command **out, struct weft_error *err)
{
    const struct weft_command *command = NULL;
    WEFT_TRY(find_verb(argc, argv, &command, err));
    cli->program = argv[0];
    cli->verb = command->name;
    if (asks_for_help(argc, argv, command)) {
        *out = find_command("help");
        if (command->summary) cli->operands[cli->n_operands++] = command->name;
        for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++)
            cli->json = cli->json || strcmp(argv[i], "--json") == 0;
        return WEFT_OK;
    }
    bool flags_end = false;
    for (int i = 2; i < argc; i++) {
        const char *argument = argv[i];
        if (!flags_end && strcmp(argument, "--") == 0) {
            flags_end = true;
        } else if (!flags_end && argument[0] == '-' && argument[1] != '\0') {
            WEFT_TRY(parse_flag(argc, argv, &i, command, cli, err));
        } else {
            if (cli->n_operands == WEFT_CLI_OPERANDS)
                return weft_fail(err, WEFT_E_USAGE, "more than %d operands", WEFT_CLI_OPERANDS);
            cli->operands[cli->n_operands++] = argument;
            if (command->starts_program) flags_end = true;
        }
    }
    if (cli->n_operands < command->least_operands || cli->n_operands > command->most_operands)
        return fail_operands(command, err);
    *out = command;
    return WEFT_OK;
}

enum weft_status weft_cli_parse(int argc, char **argv, struct weft_cli *cli,
                                const struct weft_command **out, struct weft_error *err)
{
    enum weft_status status = parse_arguments(argc, argv, cli, out, err);
    for (int i = 1; status != WEFT_OK && i < argc; i++)
        cli->json = cli->json || strcmp(argv[i], "--json") == 0;
    return status;
}

enum weft_status weft_cli_make_config(const struct weft_cli *cli, struct weft_cli *out,
                                      struct weft_error *err)
{
    *out = *cli;
    if (cli->hf && (cli->n_operands > 0 || cli->model))
        return weft_fail(err, WEFT_E_USAGE, "--hf %s: takes the place of %s; give one of them",
                         cli->hf, cli->model ? "--model" : "CONFIG");
    if (cli->n_operands > 0) return WEFT_OK;
    if (!cli->hf && !cli->model)
        return weft_fail(err, WEFT_E_USAGE,
                         "usage: weft %s CONFIG [flags]; or --hf FILE or --model NAME in its place",
                         cli->verb);
    if (!cli->hf) out->hf = cli->model;
    out->model = NULL;
    out->operands[out->n_operands++] = out->hf;
    return WEFT_OK;
}

enum weft_status weft_cli_need_config(const struct weft_cli *cli, struct weft_error *err)
{
    const bool changes =
        cli->n_overrides > 0 || cli->ranks > 0 || cli->profile || cli->model || cli->cluster;
    if (cli->config || !changes) return WEFT_OK;
    return weft_fail(err, WEFT_E_USAGE,
                     "%s: flags that change the config need one: give --config CONFIG", cli->verb);
}
