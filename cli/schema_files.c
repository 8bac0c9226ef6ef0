#include "cli/schema_files.h"

#include <string.h>

#include "base/json/json.h"
#include "cli/schema_keys.h"

const char *const weft_schema_kinds[] = {"config",  "model",  "cluster",  "profile", "plan",
                                         "metrics", "result", "manifest", NULL};

/* A key "kind" tells the objects of a file apart where there is more than one. */
struct file {
    const char *kind, *text;
    const struct weft_schema_object *objects[3];
    const char *examples; /* an array */
};

/* profile */

static const struct weft_schema_key times_keys[] = {
    {"key", TEXT, "type and sizes; layers of one key take the same time", NULL, false, false},
    {"forward_ns", NS, "of the slowest rank", NULL, false, false},
    {"backward_ns", NS, "of the slowest rank", NULL, false, false},
};
static const struct weft_schema_object times = OBJECT("Times of layers of one key.", times_keys);

static const struct weft_schema_key by_bytes_keys[] = {
    {"bytes", COUNTS, "gathered, increasing", NULL, false, false},
    {"ns", COUNTS, "of each", NULL, false, false},
};
static const struct weft_schema_object by_bytes =
    OBJECT("Times by size, linear between two points.", by_bytes_keys);

static const struct weft_schema_key by_elements_keys[] = {
    {"elements", COUNTS, "of one rank, increasing", NULL, false, false},
    {"ns", COUNTS, "of each", NULL, false, false},
};
static const struct weft_schema_object by_elements =
    OBJECT("Times by size, linear between two points.", by_elements_keys);

static const struct weft_schema_key collectives_keys[] = {
    {"all_gather", NULL, "parameters", &by_bytes, false, true},
    {"reduce_scatter", NULL, "gradients", &by_bytes, false, true},
    {"all_reduce", NULL, "gradients of units that every rank holds", &by_bytes, false, true},
};
static const struct weft_schema_object collectives =
    OBJECT("Times of collectives of all ranks.", collectives_keys);

static const struct weft_schema_key contention_keys[] = {
    {"compute_rate", COUNT, "of compute while a channel is busy; 1024 is full speed", NULL, false,
     false},
    {"channel_rate", COUNT, "of a channel while compute is; 1024 is full speed", NULL, false,
     false},
};
static const struct weft_schema_object contention =
    OBJECT("What compute and communication take from each other.", contention_keys);

#define SHARE COUNT ", \"maximum\": 1024"

static const struct weft_schema_key block_times_keys[] = {
    {"bytes", COUNTS, "of a block, increasing", NULL, false, false},
    {"ns", COUNTS, "of each", NULL, false, false},
};
static const struct weft_schema_object block_times =
    OBJECT("Times by size, linear between two points.", block_times_keys);

static const struct weft_schema_key host_keys[] = {
    {"down", NULL, "copies to the host, alone", &block_times, false, false},
    {"up", NULL, "copies from the host, alone", &block_times, false, false},
    {"down_beside", SHARE, "of that speed while copies go up; 1024 is all of it", NULL, false,
     false},
    {"up_beside", SHARE, "of that speed while copies go down; 1024 is all of it", NULL, false,
     false},
    {"threads", COUNT, "of updates", NULL, false, false},
    {"update_bytes_per_s", COUNT, "that updates read and write, without copies", NULL, false,
     false},
    {"updates_beside", SHARE, "of that speed while copies go both ways", NULL, false, false},
};
static const struct weft_schema_object host =
    OBJECT("Memory of the host, with all local ranks at work.", host_keys);

static const struct weft_schema_key disk_keys[] = {
    {"path", TEXT, "of the directory", NULL, false, false},
    {"file_system", TEXT, "of that directory", NULL, false, true},
    {"read", NULL, "alone", &block_times, false, false},
    {"write", NULL, "alone", &block_times, false, false},
    {"read_beside", SHARE, "of that speed while there are writes; 1024 is all of it", NULL, false,
     false},
    {"write_beside", SHARE, "of that speed while there are reads; 1024 is all of it", NULL, false,
     false},
    {"duplex", TEXT ", \"pattern\": \"^(half|full)$\"", "half: reads and writes take turns", NULL,
     false, false},
    {"verified", TRUTH, "checksums are in the times", NULL, false, false},
    {"block_bytes", BYTES, "least that is as fast as any, within 5 %", NULL, false, false},
    {"threads", COUNT, "requests at once in each direction, the least", NULL, false, false},
    {"seats", COUNT, "of a ring in each direction, the least", NULL, false, false},
};
static const struct weft_schema_object disk =
    OBJECT("A disk, with all local ranks at work.", disk_keys);

static const struct weft_schema_key measured_on_keys[] = {
    {"machine", TEXT, "CPU, cores and level of instructions, or GPU", NULL, false, true},
    {"threads", COUNT, "that computed, of a rank", NULL, false, true},
    {"busy_millicores", COUNT, "thousandths of cores that other programs used meanwhile", NULL,
     false, true},
    {"ranks", COUNT, "that measured, if the profile is for others", NULL, false, true},
};
static const struct weft_schema_object measured_on =
    OBJECT("The origin of its times.", measured_on_keys);

static const struct weft_schema_key profile_keys[] = {
    {"format", ONE("weft-profile"), "of this file", NULL, false, false},
    {"version", COUNT, "of the format", NULL, false, false},
    {"weft", TEXT, "version of the program that wrote it", NULL, false, true},
    {"source", TEXT, "measured or analytic, and whether the link was emulated", NULL, false, false},
    {"machine", TEXT, "for people", NULL, false, false},
    {"ranks", COUNT, "that were measured together", NULL, false, false},
    {"measured_on", NULL, "by a program that notes it", &measured_on, false, true},
    {"layers", NULL, "a time for each key", &times, true, false},
    {"collectives", NULL, "by size", &collectives, false, false},
    {"device", TEXT, "that was measured, where it is not `cpu`", NULL, false, true},
    {"kernels", TEXT, "way to compute products that was measured", NULL, false, true},
    {"products", TEXT,
     "how each product is computed, where that way is a library with "
     "several: its version and algorithms",
     NULL, false, true},
    {"updates", TEXT, "optimizer that was measured", NULL, false, true},
    {"update", NULL, "of the optimizer", &by_elements, false, true},
    {"norm", NULL, "of the gradients' norm", &by_elements, false, true},
    {"contention", NULL, "with --contention", &contention, false, true},
    {"host", NULL, "where cluster.host may be used", &host, false, true},
    {"disk", NULL, "where cluster.disk may be used", &disk, false, true},
    {"agree_ns", NS, "that ranks take to sum norm, loss and flags", NULL, false, true},
    {"base_bytes", BYTES, "that a rank holds outside the arena", NULL, false, true},
};
static const struct weft_schema_object profile =
    OBJECT("What `weft profile` measured; cluster.profile names it.", profile_keys);

/* metrics: the first keys of every line */

#define LINE_KEYS(kind)                                                                            \
    {"kind", ONE(kind), "of the line", NULL, false, false},                                        \
        {"unix_ms", COUNT, "when it was written, since 1970", NULL, false, false},                 \
        {"step", COUNT, "that it is of", NULL, false, false},                                      \
        {"tokens_per_s", MEASURED_NUMBER, "of the latest step, of all ranks; null before it",      \
         NULL,           false,           false},                                                  \
        {"held_bytes", MEASURED_COUNT, "memory of rank 0 at the last look; null before it",        \
         NULL,         false,          false},                                                     \
        {"predicted_step_ns", NS, "of a step, by the plan", NULL, false, false},                   \
    {                                                                                              \
        "emulated", TRUTH, "times depend on an emulated link", NULL, false, false                  \
    }

static const struct weft_schema_key step_keys[] = {
    LINE_KEYS("step"),
    {"loss", NUMBER, "mean over the samples of the step", NULL, false, false},
    {"norm", NUMBER, "of the gradients, where it is computed", NULL, false, true},
    {"clip", NUMBER, "that gradients were multiplied by", NULL, false, false},
    {"lr", NUMBER, "learning rate", NULL, false, false},
    {"loss_scale", NUMBER, "1 but in f16", NULL, false, false},
    {"step_ns", NS, "measured", NULL, false, false},
    {"exposed_ns", NS, "of it, that compute waited for communication", NULL, false, false},
    {"overlapped_ns", NS, "of communication, beside compute", NULL, false, false},
    {"data_wait_ns", NS, "before the step, for its data", NULL, false, false},
    {"tokens", COUNT, "of all ranks in this step", NULL, false, false},
};
static const struct weft_schema_object step_line = OBJECT("Behind every step.", step_keys);

static const struct weft_schema_key validation_keys[] = {
    LINE_KEYS("validation"),
    {"validation_loss", MEASURED_NUMBER, "natural logarithm; null: not finite", NULL, false, false},
    {"bits_per_byte", MEASURED_NUMBER, "the same for a text", NULL, false, true},
    {"bits_per_token", MEASURED_NUMBER, "the same for a token file", NULL, false, true},
    {"bits_per_sample", MEASURED_NUMBER, "the same for a classifier", NULL, false, true},
    {"samples", COUNT, "of all ranks", NULL, false, false},
    {"validation_ns", NS, "that it took", NULL, false, false},
};
static const struct weft_schema_object validation_line =
    OBJECT("Behind every train.validation.every steps.", validation_keys);

static const struct weft_schema_key checkpoint_keys[] = {
    LINE_KEYS("checkpoint"),
    {"saved_bytes", BYTES, "of its files", NULL, false, false},
    {"save_ns", NS, "that training stood still for it", NULL, false, false},
};
static const struct weft_schema_object checkpoint_line =
    OBJECT("When a checkpoint is there, which may be behind later steps.", checkpoint_keys);

/* result */

static const struct weft_schema_key origin_keys[] = {
    {"path", TEXT, "of a checkpoint, or of a file of tensors", NULL, false, false},
    {"parameters", HASH, "fingerprint of all parameters before the first step", NULL, false, false},
};
static const struct weft_schema_object origin =
    OBJECT("Where the first parameters of a run come from (`weft train --from`).", origin_keys);

static const struct weft_schema_key result_keys[] = {
    {"kind", ONE("result"), "of the line", NULL, false, false},
    {"weft", TEXT, "version of the program that wrote it", NULL, false, false},
    {"unix_ms", COUNT, "when it was written, since 1970", NULL, false, false},
    {"steps_done", COUNT, "in all, those before a resumed checkpoint too", NULL, false, false},
    {"stopped", TRUTH, "by a signal, before the last step", NULL, false, false},
    {"saved_step", "\"type\": \"integer\", \"minimum\": -1", "of the last checkpoint; -1: none",
     NULL, false, false},
    {"first_loss", MEASURED_NUMBER, "of this start; null: no step was left", NULL, false, false},
    {"last_loss", MEASURED_NUMBER, "of this start; null: no step was left", NULL, false, false},
    {"validation_loss", MEASURED_NUMBER, "of the last evaluation; null: none", NULL, false, false},
    {"fingerprint", HASH, "of all parameters", NULL, false, false},
    {"origin", NULL, "of the run, where it began with `--from`", &origin, false, true},
    {"step_ns", MEASURED_COUNT, "median; null: no step was left", NULL, false, false},
    {"predicted_step_ns", NS, "by the plan", NULL, false, false},
    {"exposed_ns", MEASURED_COUNT, "median, that compute waited for communication", NULL, false,
     false},
    {"overlapped_ns", MEASURED_COUNT, "median, of communication during compute", NULL, false,
     false},
    {"data_wait_ns", MEASURED_COUNT, "of all steps after the first two, for data", NULL, false,
     false},
    {"planned_bytes", BYTES, "of a rank in the device's memory: base, ring of a disk and arena",
     NULL, false, false},
    {"measured_bytes", MEASURED_COUNT, "the most that rank 0 held there", NULL, false, false},
    {"outside_planned_bytes", BYTES, "of these, outside the arena", NULL, false, false},
    {"outside_measured_bytes", MEASURED_COUNT, "the most that rank 0 held there", NULL, false,
     false},
    {"host_planned_bytes", BYTES, "of a rank in the host's tier", NULL, false, false},
    {"host_measured_bytes", MEASURED_COUNT, "the most that rank 0 held there", NULL, false, false},
    {"disk_planned_bytes", BYTES, "of a rank on the disk", NULL, false, false},
    {"disk_measured_bytes", MEASURED_COUNT, "the most that rank 0 held there", NULL, false, false},
    {"touched_bytes", BYTES, "of the arena, that buffers were in", NULL, false, false},
    {"ring_bytes", BYTES, "of a disk's ring, that are in memory", NULL, false, false},
    {"emulated", TRUTH, "times depend on an emulated link", NULL, false, false},
};
static const struct weft_schema_object result = OBJECT(
    "How a run ended: RUN/result.json, and the last line of `weft train --json`.", result_keys);

/* manifest */

static const struct weft_schema_key saved_file_keys[] = {
    {"name", TEXT, "beside the manifest", NULL, false, false},
    {"bytes", BYTES, "of the file", NULL, false, false},
    {"chunk_bytes", BYTES, "that one checksum is of", NULL, false, false},
    {"crc32c", "\"type\": \"array\", \"items\": {" CRC "}", "of each chunk", NULL, false, false},
};
static const struct weft_schema_object saved_file =
    OBJECT("A file of tensors by name.", saved_file_keys);

static const struct weft_schema_key manifest_keys[] = {
    {"format", ONE("weft checkpoint"), "of this file", NULL, false, false},
    {"version", COUNT, "of the format", NULL, false, false},
    {"program", TEXT, "version of the program that wrote it", NULL, false, false},
    {"step", COUNT, "after which it was saved", NULL, false, false},
    {"updates", COUNT, "of parameters so far", NULL, false, false},
    {"tokens", COUNT, "so far", NULL, false, false},
    {"samples", COUNT, "so far", NULL, false, false},
    {"loss_scale", NUMBER, "1 but in f16", NULL, false, false},
    {"good_steps", COUNT, "since the scale changed", NULL, false, false},
    {"moments_began", COUNT, "step of resuming with another optimizer", NULL, false, true},
    {"data", HASH, "of what was trained on", NULL, false, false},
    {"origin", NULL, "of the run, where it began with `--from`", &origin, false, true},
    {"model", HASH, "of names and shapes of all tensors", NULL, false, false},
    {"layers", "\"type\": \"array\", \"items\": {" ANYTHING "}",
     "all that the function depends on; from version 2 on", NULL, false, true},
    {"device", TEXT, "that computed, where it is not `cpu`", NULL, false, true},
    {"kernels", TEXT, "way to compute products", NULL, false, false},
    {"products", TEXT,
     "how each product is computed, where that way is a library with "
     "several: its version and algorithms",
     NULL, false, true},
    {"settings", ANYTHING, "of train, that resuming compares", NULL, false, false},
    {"files", NULL, "in this order", &saved_file, true, false},
    {"crc32c", CRC, "of the text up to the comma before this key", NULL, false, false},
};
static const struct weft_schema_object manifest =
    OBJECT("A checkpoint's, which is there when this is.", manifest_keys);

static const struct file files[] = {
    {"profile",
     "Times and memory of a machine.",
     {&profile},
     "[{\"format\": \"weft-profile\", \"version\": 1, \"weft\": \"0.1.0\", \"source\": "
     "\"measured\", \"machine\": \"local; oneDNN 2.6.3, avx512 kernels\", \"ranks\": 2, "
     "\"layers\": [{\"key\": \"lm_head vocab=256 hidden=32 samples=2 seq=16 f32\", "
     "\"forward_ns\": 31526, \"backward_ns\": 36404}], \"collectives\": {\"all_gather\": "
     "{\"bytes\": [1024, 262144], \"ns\": [784, 43431]}, \"reduce_scatter\": {\"bytes\": [1024, "
     "262144], \"ns\": [390, 33577]}, \"all_reduce\": {\"bytes\": [1024, 262144], \"ns\": [787, "
     "72895]}}, \"kernels\": \"onednn\", \"updates\": \"adamw\", \"update\": {\"elements\": "
     "[1024, 65536], \"ns\": [7318, 381604]}, \"norm\": {\"elements\": [1024, 65536], \"ns\": "
     "[2613, 92335]}, \"agree_ns\": 15743, \"base_bytes\": 19734528}]"},
    {"plan",
     "A decision with its proof: docs/plan-file.md.",
     {&weft_schema_plan},
     weft_schema_plan_examples},
    {"metrics",
     "A line of RUN/metrics.jsonl, and of `weft train --json` but the last.",
     {&step_line, &validation_line, &checkpoint_line},
     "[{\"kind\": \"step\", \"unix_ms\": 1795432632581, \"step\": 3, \"tokens_per_s\": 56522.3, "
     "\"held_bytes\": 18542592, \"predicted_step_ns\": 1145004, \"emulated\": false, \"loss\": "
     "5.481244515911385, \"norm\": 1.8305427871342241, \"clip\": 0.546285757832394, \"lr\": "
     "0.001, \"loss_scale\": 1, \"step_ns\": 1132285, \"exposed_ns\": 153062, \"overlapped_ns\": "
     "22703, \"data_wait_ns\": 0, \"tokens\": 64}, {\"kind\": \"validation\", \"unix_ms\": "
     "1795432632581, \"step\": 3, \"tokens_per_s\": 56522.3, \"held_bytes\": 18542592, "
     "\"predicted_step_ns\": 1145004, \"emulated\": false, \"validation_loss\": "
     "5.43705242297335, \"bits_per_byte\": 7.844008567676975, \"samples\": 32, "
     "\"validation_ns\": 3198451}, {\"kind\": \"checkpoint\", \"unix_ms\": 1795432632605, "
     "\"step\": 3, \"tokens_per_s\": 56522.3, \"held_bytes\": 18542592, \"predicted_step_ns\": "
     "1145004, \"emulated\": false, \"saved_bytes\": 523392, \"save_ns\": 2596974}]"},
    {"result",
     "How a run ended.",
     {&result},
     "[{\"kind\": \"result\", \"weft\": \"0.1.0\", \"unix_ms\": 1795432632606, \"steps_done\": 3, "
     "\"stopped\": false, \"saved_step\": 3, \"first_loss\": 5.548606919139274, \"last_loss\": "
     "5.481244515911385, \"validation_loss\": 5.43705242297335, \"fingerprint\": "
     "\"7540557d5cdd50271604190567e2ee69\", \"step_ns\": 1132285, \"predicted_step_ns\": 1145004, "
     "\"exposed_ns\": 389066, \"overlapped_ns\": 102803, \"data_wait_ns\": 0, \"planned_bytes\": "
     "20340992, \"measured_bytes\": 18542592, \"outside_planned_bytes\": 19734528, "
     "\"outside_measured_bytes\": 17936128, \"host_planned_bytes\": 0, \"host_measured_bytes\": "
     "0, \"disk_planned_bytes\": 0, \"disk_measured_bytes\": 0, "
     "\"touched_bytes\": 606464, \"ring_bytes\": 0, "
     "\"emulated\": false}]"},
    {"manifest",
     "RUN/checkpoints/step-N/manifest.json.",
     {&manifest},
     "[{\"format\": \"weft checkpoint\", \"version\": 2, \"program\": \"0.1.0\", \"step\": 3, "
     "\"updates\": 3, \"tokens\": 192, \"samples\": 12, \"loss_scale\": 1, \"good_steps\": 0, "
     "\"data\": \"1e7ab5a441ea018fb8d99f7e5e24a23c\", \"model\": "
     "\"531404df79157fd3ed27e0e854e93201\", \"layers\": [{\"name\": \"wte\", \"type\": "
     "\"embedding\", \"vocab\": 256, \"hidden\": 32, \"positions\": 16}, {\"name\": \"head\", "
     "\"type\": \"lm_head\", \"vocab\": 256, \"hidden\": 32, \"bias\": false}], \"kernels\": "
     "\"onednn\", \"settings\": {\"steps\": 3, \"seq_len\": 16, \"seed\": 7}, \"files\": "
     "[{\"name\": \"model.safetensors\", \"bytes\": 174464, \"chunk_bytes\": 8388608, \"crc32c\": "
     "[133404988]}, {\"name\": \"optimizer.safetensors\", \"bytes\": 348928, \"chunk_bytes\": "
     "8388608, \"crc32c\": [4168357555]}], \"crc32c\": 2885294375}]"},
};

static const struct file *find_file(const char *kind)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strcmp(files[i].kind, kind) == 0) return &files[i];
    return NULL;
}

bool weft_schema_is_file(const char *kind)
{
    return find_file(kind) != NULL;
}

static void add_object(const struct weft_schema_object *object, struct weft_text *out);

static void add_key(const struct weft_schema_key *key, struct weft_text *out)
{
    weft_text_addf(out, "\"%s\": {\"description\": \"%s\", ", key->name, key->text);
    if (key->type != NULL) {
        weft_text_add(out, key->type);
    } else if (key->list) {
        weft_text_add(out, "\"type\": \"array\", \"items\": {");
        add_object(key->object, out);
        weft_text_add(out, "}");
    } else {
        /* A reader of both has the object's own text beside the key's. */
        weft_text_add(out, key->object->or_null ? "\"oneOf\": [{\"type\": \"null\"}, {"
                                                : "\"allOf\": [{");
        add_object(key->object, out);
        weft_text_add(out, "}]");
    }
    weft_text_add(out, "}");
}

/* Without the braces. What other versions may add is let by. */
static void add_object(const struct weft_schema_object *object, struct weft_text *out)
{
    const char *between = "";
    weft_text_addf(out, "\"type\": \"object\", \"description\": \"%s\", \"properties\": {",
                   object->text);
    for (size_t i = 0; i < object->n_keys; i++, between = ", ") {
        weft_text_add(out, between);
        add_key(&object->keys[i], out);
    }
    weft_text_add(out, "}, \"required\": [");
    between = "";
    for (size_t i = 0; i < object->n_keys; i++) {
        if (object->keys[i].optional) continue;
        weft_text_addf(out, "%s\"%s\"", between, object->keys[i].name);
        between = ", ";
    }
    weft_text_add(out, "]");
}

static void add_file(const struct file *file, struct weft_text *out)
{
    weft_text_addf(out,
                   "{\"$schema\": \"http://json-schema.org/draft-07/schema#\", \"title\": \"%s\", "
                   "\"description\": \"%s\", \"oneOf\": [",
                   file->kind, file->text);
    for (int i = 0; i < 3 && file->objects[i] != NULL; i++) {
        weft_text_add(out, i > 0 ? ", {" : "{");
        add_object(file->objects[i], out);
        weft_text_add(out, "}");
    }
    weft_text_addf(out, "], \"examples\": %s}", file->examples);
}

enum weft_status weft_schema_file(const char *kind, struct weft_text *out, struct weft_error *err)
{
    struct weft_text text;
    struct weft_json *document = NULL;
    struct weft_json_writer writer;
    weft_text_init(&text);
    add_file(find_file(kind), &text);
    enum weft_status status =
        weft_text_ok(&text)
            ? weft_json_parse(weft_text_chars(&text), text.length, kind, &document, err)
            : weft_fail_memory(err, "a schema");
    if (status == WEFT_OK) {
        weft_json_writer_init(&writer, out, 2);
        weft_json_add_value(&writer, weft_json_root(document));
        weft_text_add(out, "\n");
    }
    weft_json_destroy(document);
    weft_text_finish(&text);
    return status;
}
