/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/flags.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "spec/hub/families.h"

#define AT(member) offsetof(struct weft_cli, member)

const struct weft_flag weft_flags[] = {
    {"--output", "-o", WEFT_FLAG_TEXT, true, AT(output), NULL, "FILE",
     "write the result there instead of to standard output"},
    {"--json", NULL, WEFT_FLAG_BOOL, true, AT(json), NULL, NULL,
     "exactly one JSON document on standard output (train: JSON Lines)"},
    {"--quiet", "-q", WEFT_FLAG_BOOL, true, AT(quiet), NULL, NULL,
     "only warnings, errors and the result; progress only with --progress"},
    {"--verbose", "-v", WEFT_FLAG_BOOL, true, AT(verbose), NULL, NULL, "print more detail"},
    {"--color", NULL, WEFT_FLAG_COLOR, true, 0, NULL, "auto|always|never",
     "auto: on a terminal, unless NO_COLOR is set"},
    {"--progress", NULL, WEFT_FLAG_PROGRESS, true, 0, NULL, "auto|plain|none",
     "auto: on a terminal one line that is drawn again, elsewhere and with plain one every 10 s or "
     "10 %; none: only warnings and errors"},
    {"--set", NULL, WEFT_FLAG_SET, false, 0, NULL, "KEY=VALUE",
     "change a key of the config, as in --set train.steps=10; may be given again"},
    {"--layers", NULL, WEFT_FLAG_LAYERS, false, 0, NULL, "FILE",
     "a shared object with layers of your own (docs/library.md); may be given again"},
    {"--ranks", "-n", WEFT_FLAG_RANKS, false, AT(ranks), NULL, "N",
     "number of ranks (cluster.ranks)"},
    {"--seed", NULL, WEFT_FLAG_SEED, false, 0, NULL, "N",
     "of all random numbers (train.seed and plan.seed)"},
    {"--memory-limit", NULL, WEFT_FLAG_TEXT, false, AT(memory_limit), "cluster.memory_limit",
     "BYTES", "that a rank may use, such as 24GiB (cluster.memory_limit)"},
    {"--planner", NULL, WEFT_FLAG_TEXT, false, AT(planner), "plan.planner", "PLANNER",
     "the planner, see `weft help planners` (plan.planner)"},
    {"--for", NULL, WEFT_FLAG_TEXT, false, AT(target), "plan.for", "weft|fsdp2|fsdp2-blocking",
     "runtime of the plan: weft, or PyTorch's FSDP2 (plan.for, docs/pytorch.md)"},
    {"--work-limit", NULL, WEFT_FLAG_TEXT, false, AT(work_limit), "plan.work_limit", "WORK",
     "of planning, such as 5G: about as many ns, and the same on every machine (plan.work_limit)"},
    {"--time-limit", NULL, WEFT_FLAG_TEXT, false, AT(time_limit), "plan.time_limit", "TIME",
     "an alarm in addition to the limit of work, such as 10min; none by default "
     "(plan.time_limit)"},
    {"--gap", NULL, WEFT_FLAG_TEXT, false, AT(gap), "plan.gap", "NUMBER",
     "distance from the proven bound at which planning ends (plan.gap)"},
    {"--profile", NULL, WEFT_FLAG_TEXT, false, AT(profile), NULL, "FILE",
     "times and base memory that `weft profile` measured (cluster.profile)"},
    {"--model", NULL, WEFT_FLAG_TEXT, false, AT(model), NULL, "FILE|MODEL",
     "the model: a file of layers, or Hugging Face's config.json or its folder (" WEFT_HUB_TYPES
     "), or a shipped one by its name, such as gpt2-xl"},
    {"--cluster", NULL, WEFT_FLAG_TEXT, false, AT(cluster), NULL, "FILE|CLUSTER",
     "the machines: a file like the config's section `cluster`, or a shipped one by its name, such "
     "as h100-8"},
    {"--hf", NULL, WEFT_FLAG_TEXT, false, AT(hf), NULL, "FILE",
     "Hugging Face's config.json, or its folder, instead of CONFIG: 1 x 2048 tokens a rank, bf16, "
     "AdamW; --set "
     "changes that"},
    {"--elastic", NULL, WEFT_FLAG_TEXT, false, AT(elastic), NULL, "MIN:MAX",
     "if a rank dies, start again from the last checkpoint with as many ranks, and with fewer if "
     "that fails too"},
    {"--plan", NULL, WEFT_FLAG_TEXT, false, AT(plan), NULL, "FILE",
     "the plan to run, instead of making one"},
    {"--start", NULL, WEFT_FLAG_TEXT, false, AT(start), NULL, "FILE",
     "a plan of the same model, at any limit and by any planner, to begin with"},
    {"--rival", NULL, WEFT_FLAG_TEXT, false, AT(rival), NULL, "FILE",
     "plans that another program made (docs/rivals.md): the fastest that fits counts; of a sweep "
     "FILE,FILE"},
    {"--config", NULL, WEFT_FLAG_TEXT, false, AT(config), NULL, "FILE",
     "the config that the plan or the run is of"},
    {"--report", NULL, WEFT_FLAG_TEXT, false, AT(report), NULL, "FILE|live",
     "write the page of `weft report` at the end; live: every minute, as RUN/report.html"},
    {"--trace", NULL, WEFT_FLAG_TEXT, false, AT(trace), NULL, "FILE|DIR/",
     "write a Chrome trace of all ranks and the prediction there (Perfetto; FILE.gz: compressed); "
     "DIR/: a file for each rank, as Holistic Trace Analysis reads them"},
    {"--trace-steps", NULL, WEFT_FLAG_TEXT, false, AT(trace_steps), NULL, "A,B..C",
     "the steps to trace; the default is the last"},
    {"--tensorboard", NULL, WEFT_FLAG_TEXT, false, AT(tensorboard), NULL, "DIR",
     "also write the metrics as event files of TensorBoard there, by torchtitan's names"},
    {"--run", NULL, WEFT_FLAG_TEXT, false, AT(run_directory), NULL, "DIR",
     "the run's directory, with its config, plan, metrics and checkpoints"},
    {"--resume", NULL, WEFT_FLAG_OPTIONAL, false, AT(resume), NULL, "if-any|CHECKPOINT",
     "go on from the latest checkpoint of --run, or from this one; if-any: begin anew when there "
     "is none"},
    {"--from", NULL, WEFT_FLAG_TEXT, false, AT(from), NULL, "CHECKPOINT",
     "begin with the parameters of a run's latest checkpoint, of RUN/checkpoints/step-N, of a "
     "safetensors file or of a model's folder of Hugging Face"},
    {"--steps", NULL, WEFT_FLAG_TEXT, false, AT(steps), NULL, "A..B",
     "the steps to replay; by default all that a kept checkpoint reaches"},
    {"--groups", NULL, WEFT_FLAG_BOOL, false, AT(groups), NULL, NULL,
     "loss and gradient norm of each group of micro-batches, on one rank"},
    {"--dump", NULL, WEFT_FLAG_TEXT, false, AT(dump), NULL, "layer:NAME",
     "write activations, gradients and updates of layers as .npy; names with commas between them"},
    {"--into", NULL, WEFT_FLAG_TEXT, false, AT(into), NULL, "DIR",
     "folder of --dump; the default is weft-dump"},
    {"--part", NULL, WEFT_FLAG_TEXT, false, AT(part), NULL, "PERCENT",
     "of the run's steps to replay; the default is 100"},
    {"--draw", NULL, WEFT_FLAG_TEXT, false, AT(draw), NULL, "SEED",
     "seed that draws the parts to replay; the default is 0"},
    {"--disk", NULL, WEFT_FLAG_TEXT, false, AT(disk), NULL, "DIR",
     "report the disk under this directory, and whether blocks may be kept on it"},
    {"--clock", NULL, WEFT_FLAG_TEXT, false, AT(clock), NULL, "wall|virtual",
     "virtual: predicted durations instead of measured ones"},
    {"--sweep", NULL, WEFT_FLAG_SWEEP, false, 0, NULL, "KEY=A,B,C",
     "the estimate for each of these values of a key; twice: a grid of the pairs that fit"},
    {"--largest", NULL, WEFT_FLAG_TEXT, false, AT(largest), NULL, "KEY",
     "search the largest value that fits, of train.micro_batch, train.seq_len or layers"},
    {"--least", NULL, WEFT_FLAG_TEXT, false, AT(least), NULL, "KEY",
     "search the least value that fits, of cluster.ranks"},
    {"--planners", NULL, WEFT_FLAG_TEXT, false, AT(planners), NULL, "A,B",
     "these planners instead of all but random and seed-ilp"},
    {"--points", NULL, WEFT_FLAG_TEXT, false, AT(points), NULL, "N",
     "number of memory limits; the default is 9, of study 7"},
    {"--to", NULL, WEFT_FLAG_TEXT, false, AT(to), NULL, "all|TARGET",
     "sweep: all ends at the least limit at which every planner has a plan, even if more memory "
     "shortens no step; export: fsdp2, megatron-fsdp, deepspeed or hf"},
    {"--dtype", NULL, WEFT_FLAG_TEXT, false, AT(dtype), NULL, "f32|bf16|f16",
     "of all tensors of --to hf, instead of those of the imported model"},
    {"--shard-size", NULL, WEFT_FLAG_TEXT, false, AT(shard_size), NULL, "BYTES",
     "most bytes of tensors in a file of --to hf; 5GB unless given"},
    {"--as", NULL, WEFT_FLAG_TEXT, false, AT(as), NULL, "fsdp2|fsdp2-blocking",
     "simulate the plan as this runtime runs it (docs/pytorch.md)"},
    {"--jitter", NULL, WEFT_FLAG_TEXT, false, AT(jitter), NULL, "CV",
     "also simulate all ranks, with compute times of this standard deviation over their mean"},
    {"--jitter-steps", NULL, WEFT_FLAG_TEXT, false, AT(jitter_steps), NULL, "N",
     "number of steps of --jitter; the default is 100"},
    {"--jitter-seed", NULL, WEFT_FLAG_TEXT, false, AT(jitter_seed), NULL, "N",
     "of the random times of --jitter; the default is 0"},
    {"--snippet", NULL, WEFT_FLAG_BOOL, false, AT(snippet), NULL, NULL,
     "Python that needs PyTorch alone, instead of JSON"},
    {"--force", NULL, WEFT_FLAG_BOOL, false, AT(force), NULL, NULL,
     "write the nearest that the target can do, also above the limit"},
    {"--limits", NULL, WEFT_FLAG_TEXT, false, AT(limits), NULL, "A,B",
     "these memory limits instead of points between two"},
    {"--host-points", NULL, WEFT_FLAG_TEXT, false, AT(host_points), NULL, "N",
     "a grid of one planner: number of limits of the host's memory, each with all memory limits"},
    {"--host-limits", NULL, WEFT_FLAG_TEXT, false, AT(host_limits), NULL, "A,B",
     "the same with these limits of the host's memory"},
    {"--clusters", NULL, WEFT_FLAG_TEXT, false, AT(clusters), NULL, "FILE,FILE",
     "plan on each of these clusters, which have prices, and compare costs"},
    {"--networks", NULL, WEFT_FLAG_TEXT, false, AT(networks), NULL, "A,B",
     "factors of the bandwidths of the config's links, such as 0.25,1,4; 1 unless given"},
    {"--jobs", "-j", WEFT_FLAG_TEXT, false, AT(jobs), NULL, "N",
     "processes at a time; the default is the number of cores"},
    {"--csv", NULL, WEFT_FLAG_TEXT, false, AT(csv), NULL, "FILE",
     "also write the figures to this file"},
    {"--svg", NULL, WEFT_FLAG_TEXT, false, AT(svg), NULL, "FILE",
     "also write a picture to this file"},
    {"--split", NULL, WEFT_FLAG_BOOL, false, AT(split), NULL, NULL,
     "keep the limit, and compare two-stage, with policies chosen within a part of it, with ilp"},
    {"--measure", NULL, WEFT_FLAG_BOOL, false, AT(measure), NULL, NULL,
     "also train each plan on local ranks"},
    {"--repeat", NULL, WEFT_FLAG_TEXT, false, AT(repeat), NULL, "N",
     "with --measure: train each plan N times, in turns, and take the median step"},
    {"--data", NULL, WEFT_FLAG_TEXT, false, AT(data), NULL, "FILE",
     "the text, or token file, to train on (train.data)"},
    {"--list", NULL, WEFT_FLAG_BOOL, false, AT(list), NULL, NULL,
     "name the configs, models and clusters that come with the program"},
    {"--prompt", NULL, WEFT_FLAG_TEXT, false, AT(prompt), NULL, "TEXT", "the text to continue"},
    {"--tokens", NULL, WEFT_FLAG_TEXT, false, AT(tokens), NULL, "N",
     "how many to sample, 256 unless given"},
    {"--temperature", NULL, WEFT_FLAG_TEXT, false, AT(temperature), NULL, "T",
     "1 unless given; 0: always the likeliest token"},
    {"--top-k", NULL, WEFT_FLAG_TEXT, false, AT(top_k), NULL, "K",
     "sample among the K likeliest; 0, unless given: among all"},
    {"--tokenizer", NULL, WEFT_FLAG_TEXT, false, AT(tokenizer), NULL, "FILE",
     "a tokenizer.json of Hugging Face: text becomes its tokens, and tokens its text"},
    {"--kind", NULL, WEFT_FLAG_TEXT, false, AT(kind), NULL, "NAME",
     "print the recipe of a layer type of Weft in place of a plan's reasons"},
    {"--field", NULL, WEFT_FLAG_TEXT, false, AT(field), NULL, "NAME",
     "files have JSON records, one a line, with the text in this member"},
    {"--nfc", NULL, WEFT_FLAG_BOOL, false, AT(nfc), NULL, NULL,
     "the text is in Unicode's form NFC already, for a tokenizer that asks for it"},
    {"--all", NULL, WEFT_FLAG_BOOL, false, AT(all), NULL, NULL, "tables with all of their rows"},
    {"--no-cache", NULL, WEFT_FLAG_BOOL, false, AT(no_cache), NULL, NULL,
     "compute every token from all before it, for comparison"},
    {"--logits", NULL, WEFT_FLAG_TEXT, false, AT(logits), NULL, "FILE",
     "write the logits of all tokens there, as an array of NumPy"},
    {"--raw", NULL, WEFT_FLAG_BOOL, false, AT(raw), NULL, NULL,
     "bytes as they are, control characters too"},
    {"--print", NULL, WEFT_FLAG_BOOL, false, AT(print), NULL, NULL,
     "write the resolved config, with every default filled in"},
    {"--program", NULL, WEFT_FLAG_BOOL, false, AT(program_dump), NULL, NULL,
     "print the instructions too"},
    {"--poison", NULL, WEFT_FLAG_BOOL, false, AT(poison), NULL, NULL,
     "fill memory that the plan says is dead"},
    {"--contention", NULL, WEFT_FLAG_BOOL, false, AT(contention), NULL, NULL,
     "measure how fast compute and communication go on while both run"},
    {0},
};

const struct weft_flag *weft_flag_find(const char *name, size_t length)
{
    for (const struct weft_flag *flag = weft_flags; flag->name; flag++) {
        if (strlen(flag->name) == length && memcmp(flag->name, name, length) == 0) return flag;
        if (flag->alias && strlen(flag->alias) == length && memcmp(flag->alias, name, length) == 0)
            return flag;
    }
    return NULL;
}

/* Returns the word of the verb's list that names the flag; NULL if there is none. */
static const char *find_word(const struct weft_command *command, const struct weft_flag *flag)
{
    size_t length = strlen(flag->name);
    for (const char *at = command->flags; at && *at; at += strspn(at, " ")) {
        size_t word = strcspn(at, " ");
        if (word == length && memcmp(at, flag->name, length) == 0) return at;
        at += word;
    }
    return NULL;
}

bool weft_flag_is_of(const struct weft_flag *flag, const struct weft_command *command)
{
    return flag->common || find_word(command, flag);
}

const struct weft_flag *weft_flag_next(const struct weft_command *command,
                                       const struct weft_flag *after)
{
    const struct weft_flag *common = weft_flags;
    if (!after || !after->common) {
        const char *at = after ? find_word(command, after) + strlen(after->name) : command->flags;
        at += at ? strspn(at, " ") : 0;
        if (at && *at) return weft_flag_find(at, strcspn(at, " "));
    } else {
        common = after + 1;
    }
    while (common->name && !common->common)
        common++;
    return common->name ? common : NULL;
}

void weft_flag_add_form(const struct weft_flag *flag, struct weft_text *out)
{
    if (flag->alias) weft_text_addf(out, "%s, ", flag->alias);
    weft_text_add(out, flag->name);
    if (flag->value)
        weft_text_addf(out, flag->kind == WEFT_FLAG_OPTIONAL ? "[=%s]" : " %s", flag->value);
}

void weft_flag_add_line(const struct weft_flag *flag, struct weft_text *out)
{
    enum { FORM_COLUMNS = 21 };
    struct weft_text form;
    weft_text_init(&form);
    weft_flag_add_form(flag, &form);
    bool fits = form.length <= FORM_COLUMNS;
    weft_text_addf(out, "  %-*s%s  %s\n", fits ? FORM_COLUMNS : 0, weft_text_chars(&form),
                   fits ? "" : "\n                       ", flag->text);
    weft_text_finish(&form);
}

enum weft_status weft_flag_check_folder(const char *flag, const char *path, struct weft_error *err)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const int length = slash != NULL ? (int)(slash - path) + 1 : 0;
    const char *where = length > 0 ? folder : ".";
    if (snprintf(folder, sizeof folder, "%.*s", length, path) >= (int)sizeof folder)
        return weft_fail(err, WEFT_E_CREATE, "%s %.60s...: the path is too long", flag, path);
    if (access(where, W_OK) == 0) return WEFT_OK;
    return weft_fail(err, WEFT_E_CREATE, "%s %s: %s: %s", flag, path, where, strerror(errno));
}
