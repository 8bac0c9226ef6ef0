/* SPDX-License-Identifier: Apache-2.0 */
/* plan.recompute: the levels of each layer of wte, h.0 to h.2, ln_f, head. */
#include <string.h>

#include "spec/config_recompute.h"
#include "tests/spec/config_text.h"

enum {
    NONE = 1 << WEFT_RECOMPUTE_NONE,
    SELECTIVE = 1 << WEFT_RECOMPUTE_SELECTIVE,
    MEDIUM = 1 << WEFT_RECOMPUTE_MEDIUM,
    WHOLE = 1 << WEFT_RECOMPUTE_WHOLE,
    N_LAYERS = 6
};

static struct weft_config *with_override(const char *first, const char *second,
                                         struct weft_error *err)
{
    const char *overrides[] = {first, second, NULL};
    struct weft_config *config = NULL;
    const enum weft_status status = parse(SMALL_CONFIG, overrides, &config, err);
    cr_assert_eq(status == WEFT_OK, config != NULL);
    return config;
}

static void expect_levels(const char *value, const int levels[N_LAYERS])
{
    struct weft_error err = {0};
    struct weft_config *config = with_override(value, NULL, &err);
    cr_assert_not_null(config, "%s: %s", value, err.text);
    for (int l = 0; l < N_LAYERS; l++)
        cr_assert_eq(config->recomputes[l], levels[l], "%s: layer %d has %d", value, l,
                     config->recomputes[l]);
    weft_config_destroy(config);
}

/* All levels of h.0, by its needs. */
static int levels_of_block(const char *override)
{
    struct weft_error err = {0};
    struct weft_config *config = with_override(override, NULL, &err);
    struct weft_layer_work work;
    int levels = NONE;
    cr_assert_not_null(config, "%s", err.text);
    const struct weft_batch batch = weft_config_batch(config);
    cr_assert_eq(weft_layer_work(&config->model->layers[1], &batch, &work, &err), WEFT_OK);
    for (int level = WEFT_RECOMPUTE_FIRST; level < WEFT_RECOMPUTE_COUNT; level++)
        levels |= work.splits[level].possible ? 1 << level : 0;
    weft_config_destroy(config);
    return levels;
}

Test(config_recompute, gives_levels_to_layers_that_restore)
{
    const int all = levels_of_block(NULL);
    cr_assert_eq(all & (NONE | SELECTIVE | WHOLE), NONE | SELECTIVE | WHOLE);
    cr_assert_neq(all, NONE | SELECTIVE | WHOLE, "no level is derived");
    expect_levels("plan.recompute=auto", (int[]){NONE, all, all, all, NONE, NONE});
    expect_levels("plan.recompute=whole", (int[]){NONE, WHOLE, WHOLE, WHOLE, NONE, NONE});
    expect_levels("plan.recompute=selective",
                  (int[]){NONE, SELECTIVE, SELECTIVE, SELECTIVE, NONE, NONE});
    const int some = NONE | (all & MEDIUM) | WHOLE;
    expect_levels("plan.recompute=none,medium,whole", (int[]){NONE, some, some, some, NONE, NONE});
    expect_levels("plan.recompute=h.1,h.2", (int[]){NONE, NONE, all, all, NONE, NONE});
}

Test(config_recompute, keeps_all_by_default)
{
    struct weft_error err = {0};
    struct weft_config *config = must_parse(SMALL_CONFIG);
    cr_assert_null(config->recomputes);
    weft_config_destroy(config);
    config = with_override("plan.recompute=none", NULL, &err);
    cr_assert_not_null(config, "%s", err.text);
    cr_assert_null(config->recomputes);
    weft_config_destroy(config);
}

Test(config_recompute, is_left_open_by_default)
{
    static const struct {
        const char *first, *second;
        bool open;
    } cases[] = {{NULL, NULL, true},
                 {"plan.recompute=if-needed", NULL, true},
                 {"plan.recompute=none", NULL, false},
                 {"plan.recompute=auto", NULL, false},
                 {"plan.for=fsdp2", "plan.recompute=if-needed", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weft_error err = {0};
        struct weft_config *config = with_override(cases[i].first, cases[i].second, &err);
        cr_assert_not_null(config, "%s", err.text);
        cr_assert_eq(weft_config_recomputes_if_needed(config), cases[i].open, "case %zu", i);
        weft_config_destroy(config);
    }
}

Test(config_recompute, refuses_layers_that_cannot)
{
    static const struct {
        const char *value, *says;
    } cases[] = {
        {"plan.recompute=h.9", "did you mean \"h.0\"?"},
        {"plan.recompute=something",
         "neither if-needed, auto, none, light, selective, medium, deep nor whole, and no layer"},
        {"plan.recompute=h.0,wte", "layer \"wte\" (embedding) cannot recompute"},
        {"plan.recompute=head", "layer \"head\" (lm_head) cannot recompute"},
        {"plan.recompute=h.0,,h.1", "is \"h.0,,h.1\", which has an empty word"},
        {"plan.recompute=none,light,", "is \"none,light,\", which has an empty word"},
        {"plan.recompute=,whole", "is \",whole\", which has an empty word"},
        {"plan.recompute=light,auto", "\"auto\" goes with no other word"},
        {"plan.recompute=if-needed,h.1", "\"if-needed\" goes with no other word"},
        {"plan.recompute=light,h.0", "\"light\" is a level, and another word is none"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weft_error err = {0};
        struct weft_config *config = with_override(cases[i].value, NULL, &err);
        cr_assert_null(config, "%s", cases[i].value);
        cr_assert_eq(err.status, WEFT_E_DATA);
        cr_assert_not_null(strstr(err.text, "$.plan.recompute"), "%s", err.text);
        cr_assert_not_null(strstr(err.text, cases[i].says), "%s: %s", cases[i].value, err.text);
    }
}

Test(config_recompute, a_gpu_has_every_level_too)
{
    struct weft_error err = {0};
    struct weft_config *config =
        with_override("plan.recompute=auto", "cluster.device.type=cuda", &err);
    cr_assert_not_null(config, "%s", err.text);
    cr_assert_eq(config->recomputes[1], levels_of_block("cluster.device.type=cuda"));
    weft_config_destroy(config);
    config = with_override("plan.recompute=selective", "cluster.device.type=cuda", &err);
    cr_assert_not_null(config, "%s", err.text);
    cr_assert_eq(config->recomputes[1], SELECTIVE);
    weft_config_destroy(config);
}
