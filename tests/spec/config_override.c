/* SPDX-License-Identifier: Apache-2.0 */
/* Overrides ("--set path.key=value") and files of sections, through the public decoder. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/spec/config_text.h"

Test(config_override, sets_values_of_every_kind)
{
    struct weft_config *config =
        must_parse_with(SMALL_CONFIG, SET("train.optimizer.lr=1e-3", "cluster.memory_limit=24GiB",
                                          "plan.fuse=false", "train.optimizer.betas=[0.5,0.6]",
                                          "model.layers.1.frozen=true",
                                          "cluster.link={\"intra\":{\"alpha\":\"8us\"}}",
                                          "plan.planner=\"greedy\"", "train.data=/a=b"));
    cr_assert_eq(config->train.optimizer.lr, 1e-3);
    cr_assert_eq(config->cluster.memory_limit_bytes, INT64_C(24) << 30);
    cr_assert(!config->plan.fuse);
    cr_assert_eq(config->train.optimizer.betas[1], 0.6);
    cr_assert(config->model->layers[2].frozen && !config->model->layers[0].frozen);
    cr_assert_eq(config->cluster.link.intra.alpha_ns, 8000);
    cr_assert_str_eq(config->plan.planner, "greedy");
    cr_assert_str_eq(config->train.data, "/a=b");
    weft_config_destroy(config);
}

Test(config_override, the_last_one_wins)
{
    struct weft_config *config =
        must_parse_with(SMALL_CONFIG, SET("train.steps=5", "cluster.ranks=3", "train.steps=6"));
    cr_assert_eq(config->train.steps, 6);
    cr_assert_eq(config->cluster.ranks, 3);
    weft_config_destroy(config);
}

Test(config_override, is_checked_as_what_is_in_the_file)
{
    cr_assert_str_eq(finding_with(SMALL_CONFIG, SET("cluster.ranks=two"), WEFT_E_DATA),
                     "run.json: $.cluster.ranks: is a string; must be an integer "
                     "(cluster.ranks=two was given)");
    cr_assert_str_eq(finding_with(SMALL_CONFIG,
                                  SET("train.steps=4", "train.steps=x", "model.layers.2.hidden=0"),
                                  WEFT_E_DATA),
                     "run.json: $.train.steps: is a string; must be an integer (train.steps=x was "
                     "given)\nrun.json: $.model.layers[2].hidden: 0 is out of range; must be 1 to "
                     "16777216 (model.layers.2.hidden=0 was given)");
}

Test(config_override, refuses_keys_that_cannot_be)
{
    static const char *const cases[][2] = {
        {"train.stesp=3", "--set train.stesp=3: there is no key \"train.stesp\"; did you mean "
                          "\"train.steps\"?"},
        {"trian.steps=3",
         "--set trian.steps=3: there is no key \"trian\"; did you mean \"train\"?"},
        {"train.optimizer.zzzzz=3",
         "--set train.optimizer.zzzzz=3: there is no key \"train.optimizer.zzzzz\"; the keys there "
         "are: type, lr, betas, eps, weight_decay, "
         "exempt_vectors, momentum, loop"},
        {"train.steps.more=3",
         "--set train.steps.more=3: \"train.steps\" is an integer and has no keys"},
        {"model.layers.first.name=a",
         "--set model.layers.first.name=a: \"first\" is not the number of an element; write for "
         "example \"model.layers.0\""},
        {"model.layers.4.name=a",
         "--set model.layers.4.name=a: \"model.layers\" has 4 elements, numbered from 0"},
        {"train.steps", "--set train.steps: must be key=value, such as train.steps=100"},
        {"=3", "--set =3: must be key=value, such as train.steps=100"},
        {"train.steps=", "--set train.steps=: the value is missing"},
        {"cluster.link.intra.=3", "--set cluster.link.intra.=3: there is no key "
                                  "\"cluster.link.intra.\"; the keys there are: alpha, bandwidth"},
        {"a.b.c.d.e.f.g.h.i.j.k.l.m=1", "--set a.b.c.d.e.f.g.h.i.j.k.l.m=1: no key is that deep"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_assert_str_eq(finding_with(SMALL_CONFIG, SET(cases[i][0]), WEFT_E_USAGE), cases[i][1]);
    }
}

Test(config_override, refuses_a_value_that_is_nearly_json)
{
    const char *error =
        finding_with(SMALL_CONFIG, SET("train.optimizer.betas=[0.9, 0.95"), WEFT_E_USAGE);
    cr_assert_not_null(strstr(error, "--set train.optimizer.betas=[0.9, 0.95: "), "%s", error);
}

Test(config_override, refuses_to_enter_what_is_no_object)
{
    cr_assert_str_eq(
        finding_with(CONFIG(GPT_MODEL, SMALL_CLUSTER, "7"), SET("train.steps=1"), WEFT_E_USAGE),
        "--set train.steps=1: in the config \"train\" is of kind number and has no \"steps\"");
}

static char directory[] = "/tmp/weft-config-XXXXXX";

static char *in_directory(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void put(const char *name, const char *text)
{
    FILE *file = fopen(in_directory(name), "w");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

static void make_directory(void)
{
    cr_assert_not_null(mkdtemp(directory));
    cr_assert_eq(mkdir(in_directory("parts"), 0700), 0);
    put("parts/model.json", GPT_MODEL);
    put("parts/cluster.json", "{\"ranks\":2,\"profile\":\"measured.json\"}");
    put("run.json", CONFIG("\"parts/model.json\"", "\"parts/cluster.json\"", SMALL_TRAIN));
}

static void remove_directory(void)
{
    static const char *const names[] = {"parts/model.json", "parts/cluster.json", "run.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(in_directory(names[i]));
    rmdir(in_directory("parts"));
    rmdir(directory);
}

Test(config_load, reads_sections_from_files, .init = make_directory, .fini = remove_directory)
{
    struct weft_config *config = NULL;
    struct weft_error error = {0};
    char wanted[256];
    const char *set[] = {"model.layers.2.frozen=true", "cluster.ranks=4", "train.data=a.txt"};
    enum weft_status status = weft_config_read(in_directory("run.json"), set, 3, &config, &error);
    cr_assert(status == WEFT_OK, "%s", error.text);
    cr_assert_eq(config->model->n_layers, 6);
    cr_assert(config->model->layers[4].frozen);
    cr_assert_eq(config->cluster.ranks, 4);
    /* All paths count from the config's directory, those in the files of sections too. */
    snprintf(wanted, sizeof wanted, "%s/measured.json", directory);
    cr_assert_str_eq(config->cluster.profile, wanted);
    snprintf(wanted, sizeof wanted, "%s/a.txt", directory);
    cr_assert_str_eq(config->train.data, wanted);
    weft_config_destroy(config);
}

Test(config_load, findings_name_the_file_that_they_are_in, .init = make_directory,
     .fini = remove_directory)
{
    struct weft_config *config = NULL;
    struct weft_error error = {0};
    char wanted[512];
    put("parts/model.json", "{\"layers\":[{\"name\":\"a\",\"type\":\"relu\"}],\"hidden\":3}");
    put("parts/cluster.json", "{\"rnaks\":2}");
    enum weft_status status = weft_config_read(in_directory("run.json"), NULL, 0, &config, &error);
    cr_assert_eq(status, WEFT_E_DATA);
    snprintf(wanted, sizeof wanted,
             "%s/parts/cluster.json:1:2: $.rnaks: unknown key; did you mean "
             "\"ranks\"?",
             directory);
    cr_assert_not_null(strstr(error.text, wanted), "%s", error.text);
    snprintf(wanted, sizeof wanted, "%s/parts/model.json:1:40: $.hidden: unknown key", directory);
    cr_assert_not_null(strstr(error.text, wanted), "%s", error.text);
    snprintf(wanted, sizeof wanted, "%s/parts/model.json:1:12: $.layers[0]: the key \"hidden\"",
             directory);
    cr_assert_not_null(strstr(error.text, wanted), "%s", error.text);
}

Test(config_load, findings_name_the_override_that_gave_a_value, .init = make_directory,
     .fini = remove_directory)
{
    static const char *const given[] = {"cluster.ranks=0"};
    struct weft_config *config = NULL;
    struct weft_error error = {0};
    char wanted[512];
    put("parts/cluster.json", "{\"rnaks\":2}");
    cr_assert_eq(weft_config_read(in_directory("run.json"), given, 1, &config, &error),
                 WEFT_E_DATA);
    snprintf(wanted, sizeof wanted,
             "%s/parts/cluster.json: $.ranks: 0 is out of range; must be 1 to 65536 "
             "(cluster.ranks=0 was given)",
             directory);
    cr_assert_not_null(strstr(error.text, wanted), "%s", error.text);
    const char *rest = strstr(error.text, "was given") + 1;
    cr_assert(strstr(rest, "$.rnaks") && !strstr(rest, "was given"), "%s", error.text);
}

Test(config_load, names_the_key_of_a_missing_file, .init = make_directory, .fini = remove_directory)
{
    struct weft_config *config = NULL;
    struct weft_error error = {0};
    const char *set[] = {"model=nowhere.json"};
    enum weft_status status = weft_config_read(in_directory("run.json"), set, 1, &config, &error);
    cr_assert_eq(status, WEFT_E_NO_INPUT);
    cr_assert_not_null(strstr(error.text, "run.json: $.model: "), "%s", error.text);
    cr_assert_not_null(strstr(error.text, "nowhere.json"), "%s", error.text);
    cr_assert_null(config);
}

Test(config_load, a_missing_config_is_no_input)
{
    struct weft_config *config = NULL;
    struct weft_error error = {0};
    cr_assert_eq(weft_config_read("/nowhere/run.json", NULL, 0, &config, &error), WEFT_E_NO_INPUT);
    cr_assert_not_null(strstr(error.text, "/nowhere/run.json"), "%s", error.text);
}

Test(config_load, broken_json_says_where)
{
    const char *error = finding_with("{\"model\": {}, \n \"cluster\" 3}", NULL, WEFT_E_DATA);
    cr_assert_eq(strncmp(error, "run.json:2:", 11), 0, "%s", error);
    error = finding("{\"train\":{},\"train\":{}}");
    cr_assert_not_null(strstr(error, "train"), "%s", error);
}

Test(config_load, relative_paths_become_absolute)
{
    char working[4096], wanted[4200];
    struct weft_config *config = NULL;
    struct weft_error error = {0};
    const char *set[] = {"train.data=./x.txt"};
    enum weft_status status = weft_config_parse(SMALL_CONFIG, strlen(SMALL_CONFIG), "run.json",
                                                "runs", set, 1, &config, &error);
    cr_assert(status == WEFT_OK, "%s", error.text);
    cr_assert_not_null(getcwd(working, sizeof working));
    snprintf(wanted, sizeof wanted, "%s/runs/x.txt", working);
    cr_assert_str_eq(config->train.data, wanted);
    weft_config_destroy(config);
}
