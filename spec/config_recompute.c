/* SPDX-License-Identifier: Apache-2.0 */
/* The key plan.recompute: levels of recomputation that each layer may have. */
#include <stdio.h>
#include <string.h>

#include "spec/config_parts.h"
#include "spec/config_recompute.h"
#include "spec/target.h"

enum { NAME_BYTES = 128, ALL = (1 << WEFT_RECOMPUTE_COUNT) - 1 };
static const char path[] = "$.plan.recompute", if_needed[] = "if-needed";

/* Bit of the level with the name; 0: there is none. */
static int find_level(const char *name, size_t length)
{
    for (int level = 0; level < WEFT_RECOMPUTE_COUNT; level++)
        if (strlen(weft_recompute_names[level]) == length &&
            memcmp(weft_recompute_names[level], name, length) == 0)
            return 1 << level;
    return 0;
}

/* The levels that the config asks for: "auto", or their names. False: it lists layers. */
static bool read_levels(const char *text, int *levels)
{
    *levels = ALL;
    if (strcmp(text, "auto") == 0) return true;
    *levels = 0;
    for (const char *at = text; *at != '\0';) {
        const size_t length = strcspn(at, ",");
        const int level = find_level(at, length);
        if (level == 0) return false;
        *levels |= level;
        at += length + (at[length] == ',');
    }
    return true;
}

/* Levels at which the layer can restore its saved activations, besides none. */
static int possible_levels(const struct weft_config *config, int32_t l)
{
    const struct weft_batch batch = weft_config_batch(config);
    const struct weft_layer *layer = &config->model->layers[l];
    const struct weft_target *target = weft_config_target(config);
    struct weft_layer_work work;
    struct weft_error ignored = {0};
    int levels = 0;
    /* The last layer's backward follows its forward. A refused batch has its own error. */
    if (l + 1 == config->model->n_layers || weft_layer_work(layer, &batch, &work, &ignored) != 0)
        return 0;
    for (int level = WEFT_RECOMPUTE_FIRST; level < WEFT_RECOMPUTE_COUNT; level++)
        if (work.splits[level].possible && work.backward_reads_input &&
            (level == WEFT_RECOMPUTE_WHOLE ? target->recomputes : target->recomputes_parts))
            levels |= 1 << level;
    return levels;
}

static void find_unknown(const struct weft_config *config, const char *name,
                         struct weft_findings *findings, struct weft_pool *pool)
{
    const size_t n = (size_t)config->model->n_layers;
    if (find_level(name, strlen(name)) != 0) {
        weft_findings_add(findings, config->source, path,
                          "\"%s\" is a level, and another word is none: list levels alone, or "
                          "layers alone",
                          name);
        return;
    }
    const char **names = weft_pool_array(pool, n, sizeof *names);
    if (names == NULL) return;
    for (size_t l = 0; l < n; l++)
        names[l] = config->model->layers[l].name;
    const char *near = weft_field_nearest(name, names, n);
    weft_findings_add(
        findings, config->source, path,
        "\"%s\" is neither if-needed, auto, none, light, selective, medium, deep nor whole, and no "
        "layer%s%s%s",
        name, near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
        near != NULL ? "\"?" : "; name layers of the model");
}

/* Gives the layer of that name its levels. */
static void take_layer(struct weft_config *config, const char *name, uint8_t *levels,
                       struct weft_findings *findings)
{
    for (int32_t l = 0; l < config->model->n_layers; l++) {
        const struct weft_layer *layer = &config->model->layers[l];
        if (strcmp(layer->name, name) != 0) continue;
        const int possible = possible_levels(config, l);
        levels[l] = (uint8_t)(possible | 1 << WEFT_RECOMPUTE_NONE);
        if (possible == 0)
            weft_findings_add(findings, config->source, path,
                              "layer \"%s\" (%s) cannot recompute what it saves for backward; "
                              "leave it out",
                              name, weft_layer_type_of(layer));
        return;
    }
    find_unknown(config, name, findings, &config->pool);
}

static void take_list(struct weft_config *config, uint8_t *levels, struct weft_findings *findings)
{
    for (const char *at = config->plan.recompute; *at != '\0';) {
        char name[NAME_BYTES];
        const size_t length = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        take_layer(config, name, levels, findings);
        at += length + (at[length] == ',');
    }
}

bool weft_config_recomputes_if_needed(const struct weft_config *config)
{
    const char *text = config->plan.recompute;
    return (text == NULL || strcmp(text, if_needed) == 0) && weft_config_target(config)->recomputes;
}

void weft_config_restorable(const struct weft_config *config, uint8_t *levels)
{
    for (int32_t l = 0; l < config->model->n_layers; l++)
        levels[l] = (uint8_t)(possible_levels(config, l) | 1 << WEFT_RECOMPUTE_NONE);
}

void weft_config_take_recompute(struct weft_config *config, struct weft_findings *findings)
{
    const char *text = config->plan.recompute;
    const int32_t n_layers = config->model->n_layers;
    int asked, some = 0;
    if (text == NULL || strcmp(text, if_needed) == 0 ||
        strcmp(text, weft_recompute_names[WEFT_RECOMPUTE_NONE]) == 0)
        return;
    uint8_t *levels = weft_pool_array(&config->pool, (size_t)n_layers, sizeof *levels);
    if (levels == NULL) {
        findings->count++;
        findings->text.failed = true;
        return;
    }
    for (int32_t l = 0; l < n_layers; l++)
        levels[l] = 1 << WEFT_RECOMPUTE_NONE;
    if (!read_levels(text, &asked)) {
        take_list(config, levels, findings);
    } else {
        for (int32_t l = 0; l < n_layers; l++) {
            const int possible = possible_levels(config, l) & asked;
            if (possible != 0) levels[l] = (uint8_t)(possible | (asked & 1 << WEFT_RECOMPUTE_NONE));
            some |= possible;
        }
        if (some == 0 && strcmp(text, "auto") != 0)
            weft_findings_add(findings, config->source, path,
                              "is \"%s\", and no layer of the model can recompute so; leave it out",
                              text);
    }
    config->recomputes = levels;
}
