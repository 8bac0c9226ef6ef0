/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/help/topics.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "cli/flags.h"
#include "scheduler/planners/table.h"
#include "shard/shard.h"
#include "spec/config_reference.h"

typedef void add_fn(struct weft_text *out, const char *what, const char *text);

static void list_exit_codes(add_fn *add, struct weft_text *out)
{
    for (int i = 0; i < WEFT_STATUS_COUNT; i++) {
        char code[16];
        snprintf(code, sizeof code, "%d", weft_status_exit_code((enum weft_status)i));
        add(out, code, weft_status_text((enum weft_status)i));
    }
}

static void list_flags(add_fn *add, struct weft_text *out)
{
    for (const struct weft_flag *flag = weft_flags; flag->name; flag++) {
        struct weft_text form, text;
        const char *before = "; of ";
        weft_text_init(&form);
        weft_text_init(&text);
        weft_flag_add_form(flag, &form);
        weft_text_add(&text, flag->text);
        if (flag->common) weft_text_add(&text, "; of every verb");
        for (size_t i = 0; weft_commands[i] && !flag->common; i++) {
            if (!weft_flag_is_of(flag, weft_commands[i])) continue;
            weft_text_addf(&text, "%s%s", before, weft_commands[i]->name);
            before = ", ";
        }
        add(out, weft_text_chars(&form), weft_text_chars(&text));
        weft_text_finish(&form);
        weft_text_finish(&text);
    }
}

static void list_planners(add_fn *add, struct weft_text *out)
{
    for (const struct weft_planner *planner = weft_planners(); planner->name; planner++) {
        const struct weft_setting *setting = planner->settings;
        struct weft_text text;
        weft_text_init(&text);
        weft_text_add(&text, planner->text);
        for (const char *before = "; settings "; setting && setting->name; setting++) {
            weft_text_addf(&text, "%s%s", before, setting->name);
            before = ", ";
        }
        add(out, planner->name, weft_text_chars(&text));
        weft_text_finish(&text);
    }
}

static void list_policies(add_fn *add, struct weft_text *out)
{
    for (int p = 0; p < WEFT_POLICY_COUNT; p++) {
        const char *aliases = weft_policy_aliases((enum weft_policy)p);
        struct weft_text text;
        weft_text_init(&text);
        weft_text_addf(&text, "shards %s", weft_policy_text((enum weft_policy)p));
        for (const char *before = "; also named "; *aliases; before = ", ") {
            size_t length = strcspn(aliases, "=");
            weft_text_addf(&text, "%s%.*s", before, (int)length, aliases);
            aliases += length + (aliases[length] == '=');
        }
        add(out, weft_policy_name((enum weft_policy)p), weft_text_chars(&text));
        weft_text_finish(&text);
    }
    add(out, "...+host",
        "with state in the host's memory, copied up for its update and down after it");
    add(out, "...+host-update", "with state in the host's memory, updated there");
    add(out, "...+disk", "with state on a disk, read for its update and written after it");
}

struct key_list {
    add_fn *add;
    struct weft_text *out;
};

static void add_key(void *context, const char *path, const char *text)
{
    const struct key_list *list = context;
    list->add(list->out, path, text);
}

static void list_keys(add_fn *add, struct weft_text *out)
{
    struct key_list list = {.add = add, .out = out};
    weft_config_visit_keys(add_key, &list);
}

static void list_environment(add_fn *add, struct weft_text *out)
{
    static const char *const rows[][2] = {
        {"WEFT_SOLVE", "Path of weft-solve. Otherwise it is looked for next to weft, in "
                       "libexec/weft, and in PATH."},
        {"WEFT_CONFIGS", "Folder of the files that commands take by name, in its folders runs, "
                         "models and clusters. Otherwise they are those of the installation."},
        {"WEFT_GEMM",
         "Way to compute products. On a CPU: onednn; for 16 bits also onednn-emulated; for bf16 "
         "amx, "
         "on its tiles; for f32 avx512, which is Weft's own, and amx-bf16x3, on tiles with each "
         "number in three parts of bf16, as exact as f32 except at the ends of its range; plain, "
         "slow chains of fmaf in order, for comparing bits. On a GPU: cublaslt, own, plain. "
         "Without it, a run uses the products of the checkpoint that it resumes, or of the profile "
         "that it is planned with, or the fastest by measurement. Another way gives other bits."},
        {"WEFT_ATTENTION",
         "Way to compute attention in 16 bits on a GPU: own, cudnn, or auto, the faster by "
         "measurement. Without it, a run goes on in the way of the checkpoint that it resumes, or "
         "of its profile. Another way gives other bits."},
        {"WEFT_KERNELS",
         "Highest instructions of Weft's own kernels on a CPU: plain, avx2 or avx512. Without it, "
         "the highest of the CPU. They change no bit but those of attention in f32, and none with "
         "WEFT_GEMM=plain."},
        {"NO_COLOR", "Set and not empty: no colour in messages."},
        {"RANK, WORLD_SIZE, LOCAL_RANK",
         "Set for each rank that is started; with more than one rank of another launcher (srun's "
         "and MPI's variables too) verbs that start ranks are refused, unless -n is given."},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        add(out, rows[i][0], rows[i][1]);
}

static void list_files(add_fn *add, struct weft_text *out)
{
    static const char *const rows[][2] = {
        {"DIR/config.json, DIR/plan.json, DIR/profile.json",
         "A run's settings, decisions and measured times."},
        {"DIR/metrics.jsonl, DIR/result.json", "A line for each step, and how the run ended."},
        {"DIR/weft-run", "The mark of a run's directory. Without it train refuses to write over "
                         "any of these files."},
        {"DIR/checkpoints/step-N",
         "model.safetensors, optimizer.safetensors and a manifest with checksums."},
        {"PREFIX/share/weft/configs",
         "Models, clusters and runs to begin with. A run is read by its name too, as gpt2-xl."},
        {"PREFIX/share/doc/weft", "Pages that messages name as docs/NAME.md, and examples. keys.md "
                                  "has every key of a config."},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        add(out, rows[i][0], rows[i][1]);
}

const struct weft_topic weft_topics[] = {
    {"exit-codes", "exit codes of the program, as in sysexits.h", false, list_exit_codes},
    {"flags", "every flag, and the verbs that take it", true, list_flags},
    {"keys", "every key of a config; of a section: `weft help train.`", true, list_keys},
    {"planners", "names for --planner and plan.planner", false, list_planners},
    {"policies", "shards of a unit of parameters: plan.policies", false, list_policies},
    {"environment", "variables that the program heeds", true, list_environment},
    {"files", "files that the program reads and writes", true, list_files},
    {NULL, NULL, false, NULL},
};

const struct weft_topic *weft_topic_find(const char *name)
{
    for (const struct weft_topic *topic = weft_topics; topic->name; topic++)
        if (strcmp(topic->name, name) == 0) return topic;
    return NULL;
}
