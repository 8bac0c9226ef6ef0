/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/config.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#include "spec/schedule.h"
#include "tests/spec/config_text.h"

Test(config, integers_are_read_exactly_up_to_the_documented_most)
{
    static const struct {
        const char *set, *says; /* NULL: taken */
    } cases[] = {
        {"train.seed=9007199254740992", NULL},
        {"train.seed=9007199254740991", NULL},
        {"train.lr_schedule.warmup_steps=9007199254740992", NULL},
        {"train.seed=9007199254740993", "9007199254740993 is not within what is read exactly"},
        {"train.seed=9007199254740992.0", "in digits alone, at most 9007199254740992"},
        {"train.seed=9007199254740994", "is out of range; must be 0 to 9007199254740992"},
        {"train.seed=0.5", "0.5 is not a whole number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weft_config *config = NULL;
        struct weft_error err = {0};
        enum weft_status status =
            weft_config_read("configs/runs/gpt-tiny.json", &cases[i].set, 1, &config, &err);
        cr_assert_eq(status, cases[i].says == NULL ? WEFT_OK : WEFT_E_DATA, "%s: %s", cases[i].set,
                     err.text);
        if (cases[i].says != NULL)
            cr_assert(strstr(err.text, cases[i].says), "%s: %s", cases[i].set, err.text);
        if (cases[i].says == NULL && i < 2)
            cr_assert_eq(config->train.seed, INT64_C(9007199254740992) - (int64_t)i);
        weft_config_destroy(config);
    }
}

Test(config, fills_in_every_default)
{
    struct weft_config *config = must_parse(SMALL_CONFIG);
    cr_assert_str_eq(config->source, "run.json");
    cr_assert_eq(config->cluster.ranks, 2);
    cr_assert_eq(config->cluster.ranks_per_node, 2, "all in one node");
    cr_assert_eq(config->cluster.memory_limit_bytes, 0);
    cr_assert_null(config->cluster.profile);
    cr_assert_null(config->train.data);
    cr_assert_eq(config->cluster.device.efficiency, 0.5);
    cr_assert_eq(config->train.steps, 100);
    cr_assert_eq(config->train.optimizer.betas[0], 0.9);
    cr_assert_eq(config->train.optimizer.betas[1], 0.95);
    cr_assert_eq(config->train.clip_norm, 1);
    cr_assert_eq(config->train.precision.compute, WEFT_F32);
    cr_assert_eq(config->train.lr_schedule.type, WEFT_LR_CONSTANT);
    cr_assert_str_eq(config->plan.planner, "ilp");
    cr_assert_eq(config->plan.work_limit, 30e9);
    cr_assert_eq(config->plan.time_limit_ns, 0);
    cr_assert(config->plan.fuse);
    struct weft_batch batch = weft_config_batch(config);
    cr_assert_eq(batch.samples, 2);
    cr_assert_eq(batch.seq_len, 64);
    cr_assert_eq(batch.compute, WEFT_F32);
    weft_config_destroy(config);
}

static const char complete_run[] = CONFIG(
    GPT_MODEL,
    "{\"ranks\":16,\"ranks_per_node\":8,\"memory_limit\":\"24GB\",\"base\":\"512MiB\","
    "\"device\":{\"flops\":{\"f32\":\"19.5T\",\"bf16\":\"312T\",\"f16\":\"312T\"},"
    "\"memory_bandwidth\":\"2.0TB/s\",\"efficiency\":0.45},"
    "\"link\":{\"intra\":{\"alpha\":\"12us\",\"bandwidth\":\"250GB/s\"},"
    "\"inter\":{\"alpha\":\"34.5us\",\"bandwidth\":\"5.22Gbit/s\"}},"
    "\"emulate\":true,\"threads\":3,\"profile\":\"profile.json\"}",
    "{\"steps\":7,\"micro_batch\":4,\"grad_accum\":1,\"seq_len\":32,\"seed\":9,"
    "\"data\":\"./text.txt\",\"precision\":{\"compute\":\"bfloat16\",\"reduce\":\"fp32\","
    "\"accumulate\":\"f32\"},\"reduce\":\"auto\",\"optimizer\":{\"type\":\"adamw\",\"lr\":6e-4,"
    "\"betas\":[0.8,0.999],\"eps\":1e-7,\"weight_decay\":0},\"clip_norm\":0,"
    "\"lr_schedule\":{\"type\":\"cosine\",\"warmup_steps\":20,\"min_ratio\":0.05}},"
    "\"$comment\":\"all "
    "keys\",\"plan\":{\"planner\":\"greedy\",\"work_limit\":\"2.5G\",\"time_limit\":\"1.5min\","
    "\"gap\":0.01,\"seed\":4,\"blocks\":3,\"block_size\":\"4MiB\",\"block_efficiency\":0.8,"
    "\"fuse\":false}");

Test(config, reads_every_key)
{
    struct weft_config *config = must_parse(complete_run);
    const struct weft_cluster *cluster = &config->cluster;
    cr_assert_eq(cluster->memory_limit_bytes, INT64_C(24000000000));
    cr_assert_eq(cluster->base_bytes, INT64_C(512) << 20);
    cr_assert_eq(cluster->device.flops.f32, 19.5e12);
    cr_assert_eq(cluster->device.flops.bf16, 312e12);
    cr_assert_eq(cluster->device.flops.f16, 312e12);
    cr_assert_eq(cluster->device.memory_bytes_per_s, 2e12);
    cr_assert_eq(cluster->device.efficiency, 0.45);
    cr_assert_eq(cluster->link.intra.alpha_ns, 12000);
    cr_assert_eq(cluster->link.intra.bytes_per_s, 250e9);
    cr_assert_eq(cluster->link.inter.alpha_ns, 34500);
    cr_assert_eq(cluster->link.inter.bytes_per_s, 5.22e9 / 8);
    cr_assert(cluster->emulate_link);
    cr_assert_eq(cluster->threads, 3);
    cr_assert_str_eq(cluster->profile, "/place/profile.json");
    const struct weft_train *train = &config->train;
    cr_assert_eq(train->steps, 7);
    cr_assert_eq(train->seed, 9);
    cr_assert_str_eq(train->data, "/place/text.txt");
    cr_assert_eq(train->precision.compute, WEFT_BF16);
    cr_assert_eq(train->precision.reduce, WEFT_F32);
    cr_assert_eq(train->optimizer.lr, 6e-4);
    cr_assert_eq(train->optimizer.betas[1], 0.999);
    cr_assert_eq(train->optimizer.eps, 1e-7);
    cr_assert_eq(train->optimizer.weight_decay, 0);
    cr_assert_eq(train->clip_norm, 0);
    cr_assert_eq(train->lr_schedule.type, WEFT_LR_COSINE);
    cr_assert_eq(train->lr_schedule.warmup_steps, 20);
    cr_assert_eq(train->lr_schedule.min_ratio, 0.05);
    cr_assert_str_eq(config->plan.planner, "greedy");
    cr_assert_eq(config->plan.work_limit, 2.5e9);
    cr_assert_eq(config->plan.time_limit_ns, INT64_C(90000000000));
    cr_assert_eq(config->plan.gap, 0.01);
    cr_assert_eq(config->plan.seed, 4);
    cr_assert_eq(config->plan.blocks, 3);
    cr_assert_eq(config->plan.block_bytes, INT64_C(4) << 20);
    cr_assert_eq(config->plan.block_efficiency, 0.8);
    cr_assert(!config->plan.fuse);
    weft_config_destroy(config);
}

/* The resolved text, freed by the caller. */
static char *resolved(const struct weft_config *config)
{
    struct weft_text text;
    weft_text_init(&text);
    weft_config_write(config, &text);
    cr_assert(weft_text_ok(&text));
    return text.data;
}

static void assert_reads_back(const char *text)
{
    struct weft_config *first = must_parse(text);
    char *once = resolved(first);
    struct weft_config *second = must_parse(once);
    char *twice = resolved(second);
    cr_assert_str_eq(once, twice);
    cr_assert(weft_hash_equal(first->hash, second->hash), "%s", once);
    cr_assert_eq(first->cluster.memory_limit_bytes, second->cluster.memory_limit_bytes);
    cr_assert_eq(memcmp(&first->cluster.link, &second->cluster.link, sizeof first->cluster.link),
                 0);
    cr_assert_eq(
        memcmp(&first->cluster.device, &second->cluster.device, sizeof first->cluster.device), 0);
    cr_assert_eq(first->model->parameters, second->model->parameters);
    free(once);
    free(twice);
    weft_config_destroy(first);
    weft_config_destroy(second);
}

Test(config, resolved_reads_back_to_an_equal_config)
{
    assert_reads_back(SMALL_CONFIG);
    assert_reads_back(complete_run);
}

Test(config, every_shipped_run_reads_back)
{
    glob_t runs;
    cr_assert_eq(glob("configs/runs/*.json", 0, NULL, &runs), 0, "run in the source root");
    for (size_t i = 0; i < runs.gl_pathc; i++) {
        struct weft_config *config = NULL;
        struct weft_error error = {0};
        enum weft_status status = weft_config_read(runs.gl_pathv[i], NULL, 0, &config, &error);
        cr_assert(status == WEFT_OK, "%s", error.text);
        char *text = resolved(config);
        assert_reads_back(text);
        free(text);
        weft_config_destroy(config);
    }
    globfree(&runs);
}

static uint64_t next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

Test(config, resolved_reads_back_for_random_figures)
{
    uint64_t state = 1;
    for (int i = 0; i < 200; i++) {
        char text[4096];
        unsigned ranks = 1 + (unsigned)(next(&state) % 65536);
        snprintf(text, sizeof text,
                 CONFIG(GPT_MODEL,
                        "{\"ranks\":%u,\"ranks_per_node\":%u,\"memory_limit\":\"%u.%02uMB\","
                        "\"device\":{\"flops\":{\"f32\":\"%u.%03uG\"},\"efficiency\":0.%u},"
                        "\"link\":{\"intra\":{\"alpha\":\"%u.%uus\",\"bandwidth\":"
                        "\"%u.%05uGbit/s\"}}}",
                        "{\"micro_batch\":%u,\"seq_len\":%u,\"optimizer\":{\"lr\":%u.%ue-%u}}"),
                 ranks, (unsigned)(next(&state) % 9), 1 + (unsigned)(next(&state) % 100000),
                 (unsigned)(next(&state) % 100), 1 + (unsigned)(next(&state) % 10000),
                 (unsigned)(next(&state) % 1000), 1 + (unsigned)(next(&state) % 9),
                 (unsigned)(next(&state) % 1000), (unsigned)(next(&state) % 1000),
                 1 + (unsigned)(next(&state) % 1000), (unsigned)(next(&state) % 100000),
                 1 + (unsigned)(next(&state) % 64), 1 + (unsigned)(next(&state) % 64),
                 (unsigned)(next(&state) % 10), (unsigned)(next(&state) % 100000),
                 (unsigned)(next(&state) % 12));
        assert_reads_back(text);
    }
}

static struct weft_hash hash_with(const char *override)
{
    struct weft_config *config = must_parse_with(SMALL_CONFIG, SET(override));
    struct weft_hash hash = config->hash;
    weft_config_destroy(config);
    return hash;
}

Test(config, hash_covers_what_a_plan_depends_on)
{
    static const char *const matters[] = {
        "cluster.ranks=4",
        "cluster.ranks_per_node=1",
        "cluster.memory_limit=1GiB",
        "cluster.device.type=cuda",
        "train.micro_batch=3",
        "train.seq_len=32",
        "train.precision.reduce=bf16",
        "plan.blocks=2",
        "plan.block_size=1MiB",
        "plan.fuse=false",
        "model.layers.1.repeat=2",
        "train.precision.accumulate=bf16",
        "model.layers.2.frozen=true",
    };
    static const char *const not [] = {
        "train.steps=5",
        "train.seed=5",
        "train.data=x",
        "train.optimizer.lr=1",
        "plan.planner=greedy",
        "plan.gap=0.5",
        "cluster.threads=3",
        "cluster.profile=p",
        "plan.time_limit=1s",
        "train.clip_norm=2",
        "cluster.ranks_per_node=2",
        "train.optimizer.eps=0.1",
    };
    struct weft_hash plain = hash_with("cluster.ranks=2");
    for (size_t i = 0; i < sizeof matters / sizeof *matters; i++) {
        cr_assert(!weft_hash_equal(plain, hash_with(matters[i])), "%s", matters[i]);
    }
    for (size_t i = 0; i < sizeof not / sizeof *not ; i++) {
        cr_assert(weft_hash_equal(plain, hash_with(not [i])), "%s", not [i]);
    }
}

/* Like a run's written config, read again with other ranks. */
Test(config, one_node_stays_one_when_it_is_written_and_has_more_ranks)
{
    struct weft_config *config = must_parse(SMALL_CONFIG), *again = NULL;
    struct weft_error err = {0};
    struct weft_text text;
    weft_text_init(&text);
    weft_config_write(config, &text);
    cr_assert_eq(parse(weft_text_chars(&text), SET("cluster.ranks=6"), &again, &err), WEFT_OK, "%s",
                 err.text);
    cr_assert_eq(again->cluster.ranks_per_node, 6);
    weft_text_finish(&text);
    weft_config_destroy(again);
    weft_config_destroy(config);
}

Test(config, more_ranks_a_node_than_ranks_is_one_node)
{
    struct weft_config *config = must_parse_with(SMALL_CONFIG, SET("cluster.ranks_per_node=8"));
    cr_assert_eq(config->cluster.ranks_per_node, 2);
    weft_config_destroy(config);
}

Test(config, says_all_findings_at_once)
{
    cr_assert_str_eq(
        finding(CONFIG(GPT_MODEL, "{\"ranks\":0,\"memory_limit\":\"24G\"}",
                       "{\"stesp\":3,\"micro_batch\":\"4\",\"grad_accum\":0,\"seq_len\":64.5}")),
        "run.json: $.train.micro_batch: is a string; must be an integer or "
        "\"auto\"\n"
        "run.json: $.train.grad_accum: 0 is out of range; must be 1 to 1024\n"
        "run.json: $.train.seq_len: 64.5 is not a whole number; must be an integer\n"
        "run.json: $.train.stesp: unknown key; did you mean \"steps\"?\n"
        "run.json: $.cluster.ranks: 0 is out of range; must be 1 to 65536\n"
        "run.json: $.cluster.memory_limit: \"24G\" has an unknown unit of bytes: did you mean "
        "\"24GiB\" (25769803776 bytes) or \"24GB\" (24000000000 bytes)?");
}

/* Positions refer to the text as written. Values of overrides have none. */
Test(config, findings_have_lines_and_columns)
{
    static const char text[] = "{\"version\": 1,\n"
                               " \"model\": " GPT_MODEL ",\n"
                               " \"cluster\": {\"ranks\": 0},\n"
                               " \"train\": {\n"
                               "   \"micro_batch\": \"4\", \"seq_len\": 64,\n"
                               "   \"precision\": {\"compute\": \"fp7\"}\n"
                               " }}";
    const char *error =
        finding_with(text, SET("train.steps=0", "train.seed=3", "plan.gap=2"), WEFT_E_DATA);
    static const char *const wanted[] = {
        "run.json: $.train.steps: 0 is out of range",
        "run.json:5:4: $.train.micro_batch: is a string",
        "run.json:6:18: $.train.precision.compute: \"fp7\" is not",
        "run.json: $.plan.gap: 2 is out of range",
        "run.json:3:14: $.cluster.ranks: 0 is out of range",
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        cr_assert_not_null(strstr(error, wanted[i]), "%s lacks %s", error, wanted[i]);
}

Test(config, says_what_is_missing)
{
    cr_assert_str_eq(
        finding("{}"),
        "run.json: $: the key \"model\" is missing; an object, or the path of a file "
        "that holds one: the model\n"
        "run.json: $: the key \"cluster\" is missing; an object, or the path of a file "
        "that holds one: the machines and links\n"
        "run.json: $: the key \"train\" is missing; an object: the training");
}

Test(config, refuses_what_this_version_does_not_have)
{
    cr_assert_str_eq(finding(CONFIG(GPT_MODEL, SMALL_CLUSTER,
                                    "{\"micro_batch\":2,\"seq_len\":64,\"reduce\":\"never\","
                                    "\"checkpoint\":{\"keep\":1}}")),
                     "run.json: $.train.reduce: \"never\" is not possible; must be \"auto\", "
                     "\"micro_step\" or \"step\"\n"
                     "run.json: $.train.checkpoint.keep: 1 is out of range; must be 2 to "
                     "1000000000");
}

Test(config, refuses_wrong_kinds)
{
    cr_assert_str_eq(finding("[]"), "run.json: $: is an array; must be an object");
    cr_assert_str_eq(
        finding(CONFIG("3", "null", SMALL_TRAIN)),
        "run.json: $.model: is a number; must be an object, or the path of a file that "
        "holds one\n"
        "run.json: $.cluster: is null; must be an object, or the path of a file that "
        "holds one");
    cr_assert_str_eq(finding(CONFIG("{\"layers\":{}}", "{\"ranks\":2,\"link\":7}", "[]")),
                     "run.json: $.train: is an array; must be an object\n"
                     "run.json: $.cluster.link: is a number; must be an object\n"
                     "run.json: $.model.layers: is an object; must be an array of objects");
}

Test(config, a_gpu_has_large_pages)
{
    struct weft_config *config = NULL;
    struct weft_error err = {0};
    const char *text =
        CONFIG(GPT_MODEL, "{\"ranks\":1,\"device\":{\"type\":\"cuda\"}}", SMALL_TRAIN);
    cr_assert_eq(weft_config_parse(text, strlen(text), "run.json", ".", NULL, 0, &config, &err),
                 WEFT_OK, "%s", err.text);
    cr_assert_eq(config->cluster.page_bytes, 2 << 20);
    weft_config_destroy(config);
    cr_assert_str_eq(finding(CONFIG(GPT_MODEL,
                                    "{\"ranks\":1,\"page\":\"64KiB\","
                                    "\"device\":{\"type\":\"cuda\"}}",
                                    SMALL_TRAIN)),
                     "run.json: $.cluster.page: a GPU has pages of 2MiB: leave the key out");
    cr_assert_str_eq(finding(CONFIG(GPT_MODEL, "{\"ranks\":1,\"page\":\"96KiB\"}", SMALL_TRAIN)),
                     "run.json: $.cluster.page: 98304 bytes is no power of two; try 64KiB");
}

Test(config, refuses_a_link_that_is_not_there)
{
    cr_assert_str_eq(
        finding(CONFIG(GPT_MODEL, "{\"ranks\":2,\"emulate\":true}", SMALL_TRAIN)),
        "run.json: $.cluster.emulate: there is no link to emulate; give link.intra.bandwidth");
    cr_assert_str_eq(
        finding(CONFIG(GPT_MODEL,
                       "{\"ranks\":2,\"emulate\":true,\"device\":{\"type\":\"cuda\"},"
                       "\"link\":{\"intra\":{\"bandwidth\":\"1GB/s\"}}}",
                       SMALL_TRAIN)),
        "run.json: $.cluster.emulate: a GPU has no emulated link, which is the CPU's: leave it "
        "out, or take device.type \"cpu\"");
}

Test(config, refuses_contention_that_is_worse_than_turns)
{
    const char *why = finding(CONFIG(
        GPT_MODEL, "{\"ranks\":2,\"contention\":{\"compute\":0.5,\"channel\":0.75}}", SMALL_TRAIN));
    cr_assert_not_null(strstr(why, "$.cluster.contention: "), "%s", why);
    why = finding(CONFIG(GPT_MODEL, "{\"ranks\":2,\"channels\":3}", SMALL_TRAIN));
    cr_assert_not_null(strstr(why, "$.cluster.channels: "), "%s", why);
}

Test(config, refuses_too_many_tokens)
{
    cr_assert_str_eq(
        finding(CONFIG(GPT_MODEL, SMALL_CLUSTER, "{\"micro_batch\":1048576,\"seq_len\":2048}")),
        "run.json: $.train.micro_batch: 1048576 samples of 2048 tokens are more than "
        "2147483647 tokens; lower one of them");
}

Test(config, refuses_a_sequence_longer_than_positions)
{
    const char *text =
        finding(CONFIG(GPT_MODEL, SMALL_CLUSTER, "{\"micro_batch\":2,\"seq_len\":65}"));
    cr_assert_not_null(strstr(text, "run.json: $.model: "), "%s", text);
    cr_assert_not_null(strstr(text, "wte"), "%s", text);
}

Test(config, refuses_numbers_outside_their_range)
{
    cr_assert_str_eq(
        finding_with(SMALL_CONFIG,
                     SET("train.optimizer.betas=[0.9, 1]", "plan.time_limit=0s", "plan.gap=-1",
                         "cluster.memory_limit=0B", "cluster.link.intra.bandwidth=0B/s",
                         "train.steps=1e300"),
                     WEFT_E_DATA),
        "run.json: $.train.steps: 1.0000000000000001e+300 is out of range; must be 1 to "
        "1000000000000 (train.steps=1e300 was given)\n"
        "run.json: $.train.optimizer.betas: 1 is out of range; must be 0 to 0.99999999 "
        "(train.optimizer.betas=[0.9, 1] was given)\n"
        "run.json: $.plan.time_limit: 0ns is out of range; must be 1ms to 86400s "
        "(plan.time_limit=0s was given)\n"
        "run.json: $.plan.gap: -1 is out of range; must be 0 to 1 (plan.gap=-1 was given)\n"
        "run.json: $.cluster.memory_limit: 0B is out of range; must be 1B to 8192TiB "
        "(cluster.memory_limit=0B was given)\n"
        "run.json: $.cluster.link.intra.bandwidth: 0B/s is out of range; must be 1B/s to "
        "1000000TB/s (cluster.link.intra.bandwidth=0B/s was given)");
}

Test(config, shortens_endless_findings)
{
    struct weft_text text;
    weft_text_init(&text);
    weft_text_add(&text, "{");
    for (int i = 0; i < 500; i++)
        weft_text_addf(&text, "\"zzz%d\":0,", i);
    weft_text_add(&text, "\"version\":1}");
    const char *error = finding(weft_text_chars(&text));
    const char *last = strrchr(error, '\n');
    int more = 0, lines = 0;
    for (const char *at = error; *at != '\0'; at++)
        lines += *at == '\n';
    cr_assert(sscanf(last, "\nand %d more", &more) == 1, "%s", last);
    cr_assert_eq(lines + more, 503);
    weft_text_finish(&text);
}

Test(config, keeps_a_finding_on_one_line)
{
    const char *error =
        finding("{\"model\":{},\"cluster\":{},\"train\":{},\"a\\u001b[31m\\nb\":1}");
    cr_assert_not_null(strstr(error, "$.a\\u001b[31m\\u000ab: unknown key"), "%s", error);
}

Test(config, survives_any_damage)
{
    static char text[sizeof complete_run];
    uint64_t state = 7;
    for (int i = 0; i < 3000; i++) {
        memcpy(text, complete_run, sizeof complete_run);
        for (int n = 1 + (int)(next(&state) % 3); n > 0; n--) {
            static const char bytes[] = "{}[],:\"0123456789-.eE+tfn\\ xyz\001\377";
            text[next(&state) % (sizeof complete_run - 1)] =
                bytes[next(&state) % (sizeof bytes - 1)];
        }
        size_t length = next(&state) % 4 == 0 ? next(&state) % sizeof complete_run : strlen(text);
        struct weft_config *config = NULL;
        struct weft_error error = {0};
        enum weft_status status =
            weft_config_parse(text, length, "run.json", ".", NULL, 0, &config, &error);
        cr_assert((status == WEFT_OK) == (config != NULL));
        cr_assert(status == WEFT_OK || error.text[0] != '\0');
        weft_config_destroy(config);
    }
}
