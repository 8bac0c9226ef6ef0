/* SPDX-License-Identifier: Apache-2.0 */
/* The configs that Weft ships: parameters of every model to the last one, and every cluster and
 * run read and given an analytic profile. Runs in the root of the sources. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "spec/config.h"
#include "spec/profile/profile.h"

enum { PATH_BYTES = 512 };

static struct weft_config *read_run(const char *path)
{
    struct weft_config *config = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_config_read(path, NULL, 0, &config, &err), WEFT_OK, "%s", err.text);
    return config;
}

/* A config around one shipped model, or one shipped cluster. */
static struct weft_config *read_parts(const char *model, const char *cluster)
{
    char text[2 * PATH_BYTES];
    struct weft_config *config = NULL;
    struct weft_error err = {0};
    int length = snprintf(text, sizeof(text),
                          "{ \"model\": \"models/%s\", \"cluster\": \"clusters/%s\","
                          "  \"train\": { \"micro_batch\": 1, \"seq_len\": 1 } }",
                          model, cluster);
    cr_assert_eq(
        weft_config_parse(text, (size_t)length, "shapes", "configs", NULL, 0, &config, &err),
        WEFT_OK, "%s", err.text);
    return config;
}

/* Calls `check` for every file in the folder; returns how many there were. */
static int each_file(const char *folder, void (*check)(const char *path, const char *name))
{
    int n = 0;
    DIR *directory = opendir(folder);
    cr_assert_not_null(directory, "%s is not here: run in the root of the sources", folder);
    for (struct dirent *entry; (entry = readdir(directory));) {
        char path[PATH_BYTES];
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        check(path, entry->d_name);
        n++;
    }
    closedir(directory);
    return n;
}

static const struct {
    const char *name;
    int64_t parameters;
} models[] = {
    {"gpt2.json", 124439808},
    {"gpt2-medium.json", 354823168},
    {"gpt2-large.json", 774030080},
    {"gpt2-xl.json", 1557611200},
    {"gpt3-1.3b.json", 1315723264},
    {"gpt3-2.7b.json", 2651553280},
    {"gpt3-6.7b.json", 6658404352},
    {"gpt3-13b.json", 12853386240},
    {"gpt3-175b.json", 174604259328},
    {"llama-2-7b.json", 6738415616},
    {"llama-10m.json", 9638784},
    {"llama-tiny.json", 201280},
    {"parallel-tiny.json", 196928},
    {"llama-2-70b.json", 68976648192},
    {"llama-3-8b.json", 8030261248},
    {"llama-3-70b.json", 70553706496},
    {"llama-3.1-405b.json", 405853388800},
    {"resnet-50.json", 25557032},
    {"gpt-10m.json", 10844160},
    {"gpt-tiny.json", 220544},
    {"gpt-odd.json", 58591},
    {"gpt-frozen.json", 236928},
    {"gpt-classifier.json", 53106},
    {"mlp-tiny.json", 12945},
    {"vgg-19.json", 143667240},
    {"bert-large.json", 335174458},
    {"vit-l-16.json", 304326632},
    {"mixtral-8x7b.json", 46702792704},
    {"bloom-176b.json", 176247271424},
    {"uneven-64.json", 709451776},
};

static int64_t parameters_of(const char *name)
{
    for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++)
        if (strcmp(models[i].name, name) == 0) return models[i].parameters;
    cr_assert_fail("configs/models/%s: this test does not know how many parameters it has", name);
    return -1;
}

static void check_model(const char *path, const char *name)
{
    struct weft_config *config = read_parts(name, "local-1.json");
    cr_assert_eq(config->model->parameters, parameters_of(name), "%s: %lld parameters, not %lld",
                 path, (long long)config->model->parameters, (long long)parameters_of(name));
    weft_config_destroy(config);
}

Test(shapes, every_model_has_its_parameters)
{
    int n = each_file("configs/models", check_model);
    cr_assert_eq((size_t)n, sizeof(models) / sizeof(*models));
}

static void check_cluster(const char *path, const char *name)
{
    struct weft_config *config = read_parts("mlp-tiny.json", name);
    const struct weft_cluster *cluster = &config->cluster;
    cr_assert_gt(cluster->memory_limit_bytes, 0, "%s", path);
    cr_assert_gt(cluster->device.memory_bytes_per_s, 0, "%s", path);
    cr_assert_eq(cluster->ranks % cluster->ranks_per_node, 0, "%s", path);
    if (cluster->ranks_per_node < cluster->ranks)
        cr_assert_gt(cluster->link.inter.bytes_per_s, 0, "%s", path);
    if (cluster->ranks_per_node > 1) cr_assert_gt(cluster->link.intra.bytes_per_s, 0, "%s", path);
    weft_config_destroy(config);
}

Test(shapes, every_cluster_has_its_figures)
{
    cr_assert_gt(each_file("configs/clusters", check_cluster), 0);
}

/* Runs with data train here; the others are planned. Both have an analytic profile. */
static void check_run(const char *path, const char *name)
{
    (void)name;
    struct weft_config *config = read_run(path);
    struct weft_profile *profile = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_profile_analytic(config, &profile, &err), WEFT_OK, "%s: %s", path, err.text);
    cr_assert_str_eq(profile->source,
                     weft_config_emulates(config) ? "analytic, emulated link" : "analytic");
    for (int32_t i = 0; i < profile->n_layers; i++) {
        cr_assert_gt(profile->layers[i].forward_ns, 0, "%s", profile->layers[i].key);
        cr_assert_gt(profile->layers[i].backward_ns, 0, "%s", profile->layers[i].key);
    }
    if (config->train.data)
        cr_assert_eq(weft_model_trains(config->model, config->train.seq_len, WEFT_DEVICE_CPU, &err),
                     WEFT_OK, "%s: %s", path, err.text);
    weft_profile_destroy(profile);
    weft_config_destroy(config);
}

Test(shapes, every_run_has_a_profile)
{
    cr_assert_gt(each_file("configs/runs", check_run), 0);
}

static void check_has_run(const char *path, const char *name)
{
    (void)path;
    char run[PATH_BYTES];
    snprintf(run, sizeof(run), "configs/runs/%s", name);
    FILE *file = fopen(run, "r");
    cr_assert_not_null(file, "%s is missing", run);
    fclose(file);
}

Test(shapes, every_model_has_a_run)
{
    cr_assert_gt(each_file("configs/models", check_has_run), 0);
}
