/* SPDX-License-Identifier: Apache-2.0 */
/* The key plan.recompute: levels of recomputation that each layer may have. */
#include <stdio.h>
#include <string.h>

#include "spec/config_parts.h"
#include "spec/config_recompute.h"
#include "spec/target.h"

enum { NAME_BYTES = 128, ALL = (1 << WEFT_RECOMPUTE_COUNT) - 1 };
static const char path[] = "$.plan.recompute", if_needed[] = "if-needed", any_level[] = "auto";

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
    if (strcmp(text, any_level) == 0) return true;
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

/* Index of the layer with the name, or -1. */
static int32_t find_layer(const struct weft_config *config, const char *name)
{
    for (int32_t l = 0; l < config->model->n_layers; l++)
        if (strcmp(config->model->layers[l].name, name) == 0) return l;
    return -1;
}

/* Gives the layer of that name its levels. */
static void take_layer(struct weft_config *config, const char *name, uint8_t *levels,
                       struct weft_findings *findings)
{
    const int32_t l = find_layer(config, name);
    if (l < 0) {
        find_unknown(config, name, findings, &config->pool);
        return;
    }
    const int possible = possible_levels(config, l);
    levels[l] = (uint8_t)(possible | 1 << WEFT_RECOMPUTE_NONE);
    if (possible == 0)
        weft_findings_add(findings, config->source, path,
                          "layer \"%s\" (%s) cannot recompute what it saves for backward; "
                          "leave it out",
                          name, weft_layer_type_of(&config->model->layers[l]));
}

/* Copies the word at *at, and moves *at to the word after it, or to NULL. */
static void next_word(const char **at, char word[NAME_BYTES])
{
    const size_t length = strcspn(*at, ",");
    snprintf(word, NAME_BYTES, "%.*s", (int)length, *at);
    *at = (*at)[length] == ',' ? *at + length + 1 : NULL;
}

static void take_list(struct weft_config *config, uint8_t *levels, struct weft_findings *findings)
{
    char word[NAME_BYTES];
    for (const char *at = config->plan.recompute; at != NULL;) {
        next_word(&at, word);
        take_layer(config, word, levels, findings);
    }
}

/* Refuses empty words, and words that go with no other. */
static bool check_words(const struct weft_config *config, struct weft_findings *findings)
{
    const char *text = config->plan.recompute;
    char word[NAME_BYTES];
    for (const char *at = text; at != NULL;) {
        next_word(&at, word);
        const bool alone = strcmp(word, any_level) == 0 || strcmp(word, if_needed) == 0;
        if (word[0] == '\0') {
            weft_findings_add(findings, config->source, path,
                              "is \"%s\", which has an empty word; separate words by one comma",
                              text);
            return false;
        }
        if (alone && strcmp(word, text) != 0 && find_layer(config, word) < 0) {
            weft_findings_add(
                findings, config->source, path,
                "is \"%s\", and \"%s\" goes with no other word; give \"%s\" alone, or "
                "leave it out",
                text, word, word);
            return false;
        }
    }
    return true;
}

/* No layer has a level that the config asks for: names the levels that layers have. */
static void find_no_level(const struct weft_config *config, struct weft_findings *findings)
{
    char names[NAME_BYTES] = "";
    size_t n = 0;
    int levels = 0;
    for (int32_t l = 0; l < config->model->n_layers; l++)
        levels |= possible_levels(config, l);
    for (int level = 0; level < WEFT_RECOMPUTE_COUNT && n < sizeof names; level++)
        if ((levels & 1 << level) != 0)
            n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", n > 0 ? ", " : "",
                                  weft_recompute_names[level]);
    if (levels == 0)
        weft_findings_add(findings, config->source, path,
                          "is \"%s\", and no layer of the model can recompute; leave it out",
                          config->plan.recompute);
    else
        weft_findings_add(findings, config->source, path,
                          "is \"%s\", and no layer of the model has such a level; layers have: %s",
                          config->plan.recompute, names);
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
    if (!check_words(config, findings)) return;
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
        if (some == 0 && strcmp(text, any_level) != 0) find_no_level(config, findings);
    }
    config->recomputes = levels;
}
