#include <string.h>

#include "cli/command.h"

/* The manual page weft(1), out of the tables that the program itself goes by. docs/weft.1 is its
 * output, which the tests hold it to. */

/* Text for troff: no line is taken for a request, and hyphens are those that people type. */
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

/* As it stands, line by line. */
static void add_lines(struct weft_text *out, const char *text)
{
    weft_text_add(out, ".nf\n");
    add_plain(out, text);
    weft_text_add(out, "\n.fi\n");
}

static void add_item(struct weft_text *out, const char *tag, const char *text)
{
    weft_text_add(out, ".TP\n.B ");
    add_plain(out, tag);
    weft_text_add(out, "\n");
    add_plain(out, text);
    weft_text_add(out, "\n");
}

static void add_verb(struct weft_text *out, const struct weft_command *command)
{
    weft_text_add(out, ".SS ");
    add_plain(out, command->name);
    weft_text_addf(out, "\n.B weft %s\n", command->name);
    add_plain(out, command->usage);
    weft_text_add(out, "\n.PP\n");
    add_plain(out, command->summary);
    weft_text_add(out, ".\n.PP\n");
    add_lines(out, command->details);
    if (command->flags == NULL || command->flags[0] == '\0') return;
    weft_text_add(out, ".PP\nIts own flags:\n");
    add_plain(out, command->flags);
    weft_text_add(out, "\n");
}

static void add_exit_codes(struct weft_text *out)
{
    weft_text_add(out, ".SH EXIT STATUS\n"
                       "Those of sysexits.h where it has one. The message on standard error says "
                       "what, where, and what would work.\n");
    for (int i = 0; i < WEFT_STATUS_COUNT; i++) {
        struct weft_text code;
        weft_text_init(&code);
        weft_text_addf(&code, "%d", weft_status_exit_code((enum weft_status)i));
        add_item(out, weft_text_chars(&code), weft_status_text((enum weft_status)i));
        weft_text_finish(&code);
    }
}

static void add_surroundings(struct weft_text *out)
{
    static const char *const environment[][2] = {
        {"WEFT_SOLVE", "Path of weft-solve. Otherwise it is looked for beside weft, in "
                       "libexec/weft, and in PATH."},
        {"WEFT_GEMM",
         "Way to compute products: onednn, openblas; of 16 bits also onednn-emulated, of bf16 amx, "
         "its tiles; of f32 amx-bf16x3, the same tiles with every number in three parts of bf16, "
         "as exact as f32 but at the ends of its range, and avx512, loops of Weft's own. Otherwise "
         "that of the checkpoint that a run goes on from, or of the profile that it is planned "
         "with, or the fastest by measurement. Another "
         "way gives other bits; avx512, onednn and openblas are native f32."},
        {"NO_COLOR", "Set and not empty: no colour in messages."},
        {"RANK, WORLD_SIZE, LOCAL_RANK",
         "Set for each rank that is started; with more than one rank of another launcher (srun's "
         "and "
         "MPI's variables too) verbs that start ranks are refused, unless -n is given."},
    };
    static const char *const files[][2] = {
        {"DIR/config.json, DIR/plan.json, DIR/profile.json",
         "What a run was told, decided and measured with."},
        {"DIR/metrics.jsonl, DIR/result.json", "A line for each step, and how the run ended."},
        {"DIR/checkpoints/step-N",
         "model.safetensors, optimizer.safetensors and a manifest with checksums."},
        {"PREFIX/share/weft/configs", "Models, clusters and runs to begin with."},
        {"PREFIX/share/doc/weft/keys.md", "Every key of a config."},
    };
    weft_text_add(out, ".SH ENVIRONMENT\n");
    for (size_t i = 0; i < sizeof environment / sizeof *environment; i++)
        add_item(out, environment[i][0], environment[i][1]);
    weft_text_add(out, ".SH FILES\n");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        add_item(out, files[i][0], files[i][1]);
}

static void add_page(struct weft_text *out)
{
    weft_text_add(out, ".TH WEFT 1 \"\" \"weft " WEFT_VERSION "\" \"User Commands\"\n"
                       ".SH NAME\nweft \\- plans and trains sharded models inside a memory limit\n"
                       ".SH SYNOPSIS\n.B weft\n.I VERB\n[operands] [flags]\n"
                       ".SH DESCRIPTION\n"
                       "Weft measures a machine, decides for every layer's parameters what to "
                       "shard and in which slot of the step each collective is launched, proves "
                       "how far from the best that plan can be, and runs exactly that plan. The "
                       "same is in a library: see weft.h.\n"
                       ".SH VERBS\n");
    for (size_t i = 0; weft_commands[i]; i++)
        if (weft_commands[i]->summary) add_verb(out, weft_commands[i]);
    weft_text_add(out, ".SH FLAGS\n");
    add_lines(out, weft_common_flags);
    add_exit_codes(out);
    add_surroundings(out);
}

static enum weft_status run(const struct weft_cli *cli, struct weft_error *err)
{
    struct weft_text out;
    weft_text_init(&out);
    add_page(&out);
    enum weft_status status = weft_cli_emit(cli, &out, err);
    weft_text_finish(&out);
    return status;
}

const struct weft_command weft_command_man = {
    .name = "man",
    .usage = "",
    .summary = NULL, /* for who builds: docs/weft.1 is its output */
    .run = run,
};
