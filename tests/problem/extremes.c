/* SPDX-License-Identifier: Apache-2.0 */
#include "problem/extremes.h"

#include <criterion/criterion.h>
#include <string.h>

#include "problem/stages.h"
#include "spec/profile/profile.h"

#define LINK "\"link\": {\"intra\": {\"alpha\": \"50us\", \"bandwidth\": \"1GB/s\"}}"

/* A config of two ranks; `set` changes it. */
static enum weft_status stage_config(const char *const *set, int32_t n, char *text)
{
    static const char run[] =
        "{\"model\": {\"layers\": ["
        "{\"name\": \"wte\", \"type\": \"embedding\", \"vocab\": 256, \"positions\": 32, "
        "\"hidden\": 32},"
        "{\"name\": \"c\", \"type\": \"custom\", \"hidden\": 32, \"forward_flops\": \"1k\", "
        "\"backward_flops\": \"1k\"},"
        "{\"name\": \"head\", \"type\": \"lm_head\", \"vocab\": 256, \"hidden\": 32}]},"
        "\"cluster\": {\"ranks\": 2, \"device\": {\"flops\": {\"f32\": \"100G\"}, "
        "\"memory_bandwidth\": \"10GB/s\"}, \"host\": {\"memory_limit\": \"1GiB\", "
        "\"down\": {\"bandwidth\": \"1GB/s\"}, \"up\": {\"bandwidth\": \"1GB/s\"}, \"update\": "
        "\"1GB/s\"}, " LINK "},"
        "\"train\": {\"micro_batch\": 4, \"seq_len\": 32}}";
    struct weft_config *config = NULL;
    struct weft_profile *profile = NULL;
    struct weft_stages stages = {0};
    struct weft_error err = {0};
    enum weft_status status =
        weft_config_parse(run, sizeof run - 1, "run.json", ".", set, n, &config, &err);
    if (status == WEFT_OK) status = weft_profile_analytic(config, &profile, &err);
    if (status == WEFT_OK) status = weft_stages_create(config, profile, &stages, &err);
    strcpy(text, err.text);
    weft_stages_finish(&stages);
    weft_profile_destroy(profile);
    weft_config_destroy(config);
    return status;
}

Test(extremes, the_key_is_named_and_no_part_of_a_problem)
{
    static const char *const cases[][4] = {
        {"cluster.link.intra.bandwidth", "cluster.link.intra.bandwidth=1B/s", "train.steps=1",
         "model.layers.0.vocab=10000000"},
        {"cluster.device.memory_bandwidth", "cluster.device.memory_bandwidth=1B/s",
         "model.layers.2.vocab=256", "model.layers.0.vocab=10000000"},
        {"cluster.device.flops.f32", "cluster.device.flops.f32=0.001k",
         "model.layers.2.vocab=2147483647", "train.micro_batch=1"},
        {"cluster.device.flops.bf16, 3", "cluster.device.flops.bf16=0.003k",
         "train.precision.compute=bf16", "model.layers.2.vocab=2147483647"},
        {"forward_flops 1e+21", "model.layers.1.forward_flops=1000000000T", "train.steps=1",
         "train.steps=2"},
        {"vocab 2147483647", "model.layers.2.vocab=2147483647", "train.micro_batch=100000",
         "train.steps=1"},
        {"cluster.host.down.bandwidth", "cluster.host.down.bandwidth=1B/s",
         "model.layers.0.vocab=10000000", "train.steps=1"},
        {"cluster.link.intra.alpha", "cluster.link.intra.alpha=3600s", "plan.blocks=4096",
         "train.steps=1"},
        {"saved 8796093022208000", "model.layers.1.saved=8000TiB", "train.steps=1",
         "train.steps=2"},
        {"cluster.base", "cluster.base=8192TiB", "train.steps=1", "train.steps=2"},
        {"plan.blocks 65536", "plan.blocks=65536", "train.grad_accum=1024",
         "train.reduce=micro_step"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[sizeof(struct weft_error)];
        cr_assert_eq(stage_config(cases[i] + 1, 3, text), WEFT_E_DATA, "%s: %s", cases[i][1], text);
        cr_assert(strstr(text, cases[i][0]) != NULL, "%s: %s", cases[i][0], text);
        cr_assert(strncmp(text, "run.json: ", 10) == 0, "%s", text);
        cr_assert(strchr(text, '[') == NULL, "an index into the problem: %s", text);
    }
}

Test(extremes, what_is_within_the_sums_is_taken)
{
    static const char *const set[] = {"cluster.link.intra.bandwidth=1kB/s", "plan.blocks=1000"};
    char text[sizeof(struct weft_error)];
    cr_assert_eq(stage_config(set, 2, text), WEFT_OK, "%s", text);
}
