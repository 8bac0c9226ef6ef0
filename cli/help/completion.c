/* SPDX-License-Identifier: Apache-2.0 */
/* Shell completion, written from the tables of verbs, flags, topics, planners and keys. The script
 * is complete, so TAB does not run the program. */
#include <ctype.h>
#include <string.h>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/help/topics.h"
#include "cli/job/shipped.h"
#include "cli/schema_files.h"
#include "scheduler/planners/table.h"
#include "spec/config_reference.h"

/* Kinds of names that the shell itself lists. The values are letters of bash's compgen. */
enum listed {
    LISTED_NOTHING = 0,
    LISTED_FILES = 'f',
    LISTED_DIRECTORIES = 'd',
    LISTED_PROGRAMS = 'c'
};

/* Offers for one place: words, and a kind that the shell lists. */
struct offer {
    struct weft_text words; /* a space after each */
    enum listed listed;
    bool unended; /* text follows a word without a space */
};

static void offer_key(void *context, const char *path, const char *text)
{
    (void)text;
    /* Offers no key of a layer: the script cannot know the model's layers. */
    if (!strchr(path, '[')) weft_text_addf(context, "%s ", path);
}

static void offer_setting(void *context, const char *path, const char *text)
{
    (void)text;
    if (!strchr(path, '[')) weft_text_addf(context, "%s= ", path);
}

static void offer_verbs(struct weft_text *words)
{
    for (size_t i = 0; weft_commands[i]; i++)
        if (weft_commands[i]->summary) weft_text_addf(words, "%s ", weft_commands[i]->name);
}

static void offer_topics(struct weft_text *words)
{
    for (const struct weft_topic *topic = weft_topics; topic->name; topic++)
        weft_text_addf(words, "%s ", topic->name);
}

static void offer_planners(struct weft_text *words)
{
    for (const struct weft_planner *planner = weft_planners(); planner->name; planner++)
        weft_text_addf(words, "%s ", planner->name);
}

static void offer_schemas(struct weft_text *words)
{
    for (int i = 0; weft_schema_kinds[i]; i++)
        weft_text_addf(words, "%s ", weft_schema_kinds[i]);
}

static void offer_keys(struct weft_text *words)
{
    weft_config_visit_keys(offer_key, words);
}

static void offer_settings(struct weft_text *words)
{
    weft_config_visit_keys(offer_setting, words);
}

/* Names of files that come with the program, as it is installed where the script is written. */
static void offer_shipped(enum weft_shipped kind, struct weft_text *words)
{
    struct weft_text names;
    weft_text_init(&names);
    weft_shipped_list(kind, &names);
    for (const char *at = weft_text_chars(&names); *at; at++)
        if (*at != ',') weft_text_append(words, at, 1);
    weft_text_add(words, " ");
    if (!weft_text_ok(&names)) words->failed = true;
    weft_text_finish(&names);
}

static void offer_runs(struct weft_text *words)
{
    offer_shipped(WEFT_SHIPPED_RUNS, words);
}

static void offer_models(struct weft_text *words)
{
    offer_shipped(WEFT_SHIPPED_MODELS, words);
}

static void offer_clusters(struct weft_text *words)
{
    offer_shipped(WEFT_SHIPPED_CLUSTERS, words);
}

/* Adds the offers for a word in capitals, which names a kind. */
static void offer_kind(struct offer *offer, const char *word, size_t length)
{
    static const struct {
        const char *word;
        enum listed listed;
        void (*add)(struct weft_text *words);
    } kinds[] = {
        {"FILE", LISTED_FILES, NULL},
        {"CONFIG", LISTED_FILES, offer_runs},
        {"MODEL", LISTED_NOTHING, offer_models},
        {"CLUSTER", LISTED_NOTHING, offer_clusters},
        {"PLAN", LISTED_FILES, NULL},
        {"DIR", LISTED_DIRECTORIES, NULL},
        {"RUN", LISTED_DIRECTORIES, NULL},
        {"CHECKPOINT", LISTED_DIRECTORIES, NULL},
        {"PROGRAM", LISTED_PROGRAMS, NULL},
        {"VERB", LISTED_NOTHING, offer_verbs},
        {"TOPIC", LISTED_NOTHING, offer_topics},
        {"PLANNER", LISTED_NOTHING, offer_planners},
        {"KEY", LISTED_NOTHING, offer_keys},
        {"KIND", LISTED_NOTHING, offer_schemas},
        {"KEY=VALUE", LISTED_NOTHING, offer_settings},
        {"KEY=A,B,C", LISTED_NOTHING, offer_settings},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strlen(kinds[i].word) != length || memcmp(kinds[i].word, word, length) != 0) continue;
        if (kinds[i].listed) offer->listed = kinds[i].listed;
        if (kinds[i].add) kinds[i].add(&offer->words);
        offer->unended = kinds[i].add == offer_settings;
    }
}

/* Reads the form of a value or of operands: "[CONFIG]", "PROGRAM [ARGUMENT...]", "KEY=VALUE" or
 * "auto|always|never". Words in small letters are literal. */
static struct offer offer_of(const char *form)
{
    struct offer offer = {0};
    for (const char *at = form + strspn(form, "["); *at && *at != ' ';) {
        size_t length = strcspn(at, "|.[] ");
        if (islower((unsigned char)*at))
            weft_text_addf(&offer.words, "%.*s ", (int)length, at);
        else
            offer_kind(&offer, at, length);
        if (at[length] != '|') break;
        at += length + 1;
    }
    return offer;
}

static void offer_finish(struct offer *offer, struct weft_text *out)
{
    if (!weft_text_ok(&offer->words)) out->failed = true;
    weft_text_finish(&offer->words);
}

/* bash: sets `words`, `listed`, and `after`, which is "" if a value follows without a space */

static void add_bash_offer(struct weft_text *out, const char *form)
{
    struct offer offer = offer_of(form);
    weft_text_addf(out, "words='%s'", weft_text_chars(&offer.words));
    if (offer.listed) weft_text_addf(out, " listed=%c", (char)offer.listed);
    if (offer.unended) weft_text_add(out, " after=");
    weft_text_add(out, " ;;\n");
    offer_finish(&offer, out);
}

static void add_bash_verb(struct weft_text *out, const struct weft_command *command)
{
    weft_text_addf(out, "    %s)\n        flags='", command->name);
    for (const struct weft_flag *flag = NULL; (flag = weft_flag_next(command, flag)) != NULL;)
        weft_text_addf(out, "%s%s%s ", flag->alias ? flag->alias : "", flag->alias ? " " : "",
                       flag->name);
    weft_text_add(out, "'\n        ");
    add_bash_offer(out, command->usage);
}

/* Every flag with a value has a line, so no operand is offered for it. */
static void add_bash_value(struct weft_text *out, const struct weft_flag *flag)
{
    if (!flag->value) return;
    weft_text_add(out, "    ");
    if (flag->alias) weft_text_addf(out, "%s | ", flag->alias);
    if (flag->kind != WEFT_FLAG_OPTIONAL) weft_text_addf(out, "%s | ", flag->name);
    weft_text_addf(out, "%s=) listed= ", flag->name);
    add_bash_offer(out, flag->value);
}

static void add_bash(struct weft_text *out)
{
    weft_text_add(out,
                  "# Completion of weft " WEFT_VERSION " for bash, by `weft completion bash`.\n"
                  "_weft() {\n"
                  "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                  "    local verb=${COMP_WORDS[1]} flags= words= listed= after=' '\n"
                  "    # bash takes --flag=value for three words.\n"
                  "    if [[ $cur == = ]]; then\n"
                  "        prev=$prev= cur=\n"
                  "    elif [[ $prev == = ]]; then\n"
                  "        prev=${COMP_WORDS[COMP_CWORD-2]}=\n"
                  "    fi\n"
                  "    if [[ $COMP_CWORD == 1 ]]; then\n"
                  "        verb= prev= words='");
    offer_verbs(out);
    weft_text_add(out, "'\n    fi\n    case $verb in\n");
    for (size_t i = 0; weft_commands[i]; i++)
        if (weft_commands[i]->summary) add_bash_verb(out, weft_commands[i]);
    weft_text_add(out, "    esac\n    case $prev in\n");
    for (const struct weft_flag *flag = weft_flags; flag->name; flag++)
        add_bash_value(out, flag);
    weft_text_add(out, "    *) [[ $cur == -* ]] && words=$flags listed= ;;\n"
                       "    esac\n"
                       "    mapfile -t COMPREPLY < <(\n"
                       "        compgen -W \"$words\" -- \"$cur\"\n"
                       "        [[ -z $listed ]] || compgen \"-$listed\" -- \"$cur\"\n"
                       "    )\n"
                       "    [[ -z $listed ]] || compopt -o filenames 2>/dev/null\n"
                       "    [[ -n $after ]] || compopt -o nospace 2>/dev/null\n"
                       "    return 0\n"
                       "}\n"
                       "complete -F _weft weft\n");
}

/* zsh: a specification of _arguments for each flag */

/* Escapes text for single quotes, and for brackets if `brackets`. */
static void add_zsh_text(struct weft_text *out, const char *text, bool brackets)
{
    for (; *text; text++) {
        if (*text == '\'')
            weft_text_add(out, "'\\'");
        else if (brackets && strchr("[]\\", *text))
            weft_text_add(out, "\\");
        weft_text_append(out, text, 1);
    }
}

static void add_zsh_action(struct weft_text *out, const char *form)
{
    const char *listing = NULL;
    struct offer offer = offer_of(form);
    const char *words = weft_text_chars(&offer.words);
    if (offer.listed == LISTED_FILES) listing = "_files";
    if (offer.listed == LISTED_DIRECTORIES) listing = "_files -/";
    if (offer.listed == LISTED_PROGRAMS) listing = "_command_names -e";
    if (offer.unended)
        weft_text_add(out, "_weft_settings");
    else if (listing && *words)
        weft_text_addf(out, "{%s; compadd -- %s}", listing, words);
    else if (listing)
        weft_text_add(out, listing);
    else if (*words)
        weft_text_addf(out, "(%s)", words);
    else
        weft_text_add(out, " ");
    offer_finish(&offer, out);
}

static void add_zsh_flag(struct weft_text *out, const struct weft_flag *flag, const char *name,
                         const char *before_value)
{
    weft_text_add(out, " \\\n            '");
    if (flag->kind == WEFT_FLAG_SET || flag->kind == WEFT_FLAG_SWEEP)
        weft_text_add(out, "*");
    else if (flag->alias)
        weft_text_addf(out, "(%s %s)", flag->alias, flag->name);
    weft_text_addf(out, "%s%s[", name, flag->value ? before_value : "");
    add_zsh_text(out, flag->text, true);
    weft_text_add(out, "]");
    if (flag->value) {
        /* zsh shows the form if it has no offers. */
        weft_text_addf(out, "%s%s:", flag->kind == WEFT_FLAG_OPTIONAL ? "::" : ":", flag->value);
        add_zsh_action(out, flag->value);
    }
    weft_text_add(out, "'");
}

static void add_zsh_verb(struct weft_text *out, const struct weft_command *command)
{
    weft_text_addf(out, "    %s)\n        _arguments -S", command->name);
    for (const struct weft_flag *flag = NULL; (flag = weft_flag_next(command, flag)) != NULL;) {
        if (flag->alias) add_zsh_flag(out, flag, flag->alias, "");
        add_zsh_flag(out, flag, flag->name, flag->kind == WEFT_FLAG_OPTIONAL ? "=-" : "=");
    }
    if (command->starts_program) {
        weft_text_addf(out, " \\\n            '1:%s:", command->usage);
        add_zsh_action(out, command->usage);
        weft_text_add(out, "' \\\n            '*::arguments:_normal'");
    } else if (*command->usage) {
        weft_text_addf(out, " \\\n            '*:%s:", command->usage);
        add_zsh_action(out, command->usage);
        weft_text_add(out, "'");
    }
    weft_text_add(out, "\n        ;;\n");
}

static void add_zsh(struct weft_text *out)
{
    weft_text_add(out, "#compdef weft\n"
                       "# Completion of weft " WEFT_VERSION " for zsh, by `weft completion zsh`.\n"
                       "_weft_settings() {\n"
                       "    compadd -S '' -- ");
    offer_settings(out);
    weft_text_add(out, "\n"
                       "}\n"
                       "_weft() {\n"
                       "    local -a verbs=(\n");
    for (size_t i = 0; weft_commands[i]; i++) {
        if (!weft_commands[i]->summary) continue;
        weft_text_addf(out, "        '%s:", weft_commands[i]->name);
        add_zsh_text(out, weft_commands[i]->summary, false);
        weft_text_add(out, "'\n");
    }
    weft_text_add(out, "    )\n"
                       "    if (( CURRENT == 2 )); then\n"
                       "        _describe -t verbs verb verbs\n"
                       "        return\n"
                       "    fi\n"
                       "    local verb=$words[2]\n"
                       "    shift words\n"
                       "    (( CURRENT-- ))\n"
                       "    case $verb in\n");
    for (size_t i = 0; weft_commands[i]; i++)
        if (weft_commands[i]->summary) add_zsh_verb(out, weft_commands[i]);
    weft_text_add(out, "    esac\n"
                       "}\n"
                       "if [ \"$funcstack[1]\" = _weft ]; then\n"
                       "    _weft \"$@\"\n"
                       "else\n"
                       "    compdef _weft weft\n"
                       "fi\n");
}

/* fish: a line of `complete` for each verb, flag and operand */

static void add_fish_text(struct weft_text *out, const char *text)
{
    weft_text_add(out, "'");
    for (; *text; text++) {
        if (strchr("'\\", *text)) weft_text_add(out, "\\");
        weft_text_append(out, text, 1);
    }
    weft_text_add(out, "'");
}

/* Adds the offers for a value; `form` is its text in help. */
static void add_fish_offers(struct weft_text *out, const char *form)
{
    struct offer offer = offer_of(form);
    weft_text_add(out, offer.listed == LISTED_FILES ? " -r -F" : " -x");
    weft_text_addf(out, " -a '%s", weft_text_chars(&offer.words));
    if (offer.listed == LISTED_DIRECTORIES) weft_text_add(out, "(__fish_complete_directories)");
    if (offer.listed == LISTED_PROGRAMS) weft_text_add(out, "(__fish_complete_command)");
    weft_text_add(out, "'");
    offer_finish(&offer, out);
}

static void begin_fish_line(struct weft_text *out, const struct weft_command *command)
{
    weft_text_addf(out, "complete -c weft -n '__fish_seen_subcommand_from %s'", command->name);
}

static void add_fish_verb(struct weft_text *out, const struct weft_command *command)
{
    for (const struct weft_flag *flag = NULL; (flag = weft_flag_next(command, flag)) != NULL;) {
        begin_fish_line(out, command);
        weft_text_addf(out, " -l %s", flag->name + 2);
        if (flag->alias) weft_text_addf(out, " -s %s", flag->alias + 1);
        if (flag->value && flag->kind != WEFT_FLAG_OPTIONAL) add_fish_offers(out, flag->value);
        weft_text_add(out, " -d ");
        add_fish_text(out, flag->text);
        weft_text_add(out, "\n");
    }
    if (!*command->usage) return;
    begin_fish_line(out, command);
    add_fish_offers(out, command->usage);
    weft_text_add(out, "\n");
}

static void add_fish(struct weft_text *out)
{
    weft_text_add(out,
                  "# Completion of weft " WEFT_VERSION " for fish, by `weft completion fish`.\n"
                  "complete -c weft -f\n");
    for (size_t i = 0; weft_commands[i]; i++) {
        if (!weft_commands[i]->summary) continue;
        weft_text_addf(out, "complete -c weft -n __fish_use_subcommand -a %s -d ",
                       weft_commands[i]->name);
        add_fish_text(out, weft_commands[i]->summary);
        weft_text_add(out, "\n");
    }
    for (size_t i = 0; weft_commands[i]; i++)
        if (weft_commands[i]->summary) add_fish_verb(out, weft_commands[i]);
}

static enum weft_status run_completion(const struct weft_cli *cli, struct weft_error *err)
{
    const char *shell = cli->operands[0];
    struct weft_text out;
    weft_text_init(&out);
    enum weft_status status = WEFT_OK;
    if (strcmp(shell, "bash") == 0)
        add_bash(&out);
    else if (strcmp(shell, "zsh") == 0)
        add_zsh(&out);
    else if (strcmp(shell, "fish") == 0)
        add_fish(&out);
    else
        status = weft_fail(err, WEFT_E_USAGE, "completion %s: there is bash, zsh, and fish", shell);
    if (status == WEFT_OK) status = weft_cli_emit_text(cli, &out, err);
    weft_text_finish(&out);
    return status;
}

const struct weft_command weft_command_completion = {
    .name = "completion",
    .usage = "bash|zsh|fish",
    .summary = "what a shell needs to complete verbs, flags and values",
    .details =
        "For this session: source <(weft completion bash). For all: weft completion bash -o\n"
        "/etc/bash_completion.d/weft, or weft completion zsh -o DIR/_weft with a DIR of fpath;\n"
        "`meson install` puts all where shells look. For fish: weft completion fish -o\n"
        "~/.config/fish/completions/weft.fish.",
    .least_operands = 1,
    .most_operands = 1,
    .run = run_completion,
};
