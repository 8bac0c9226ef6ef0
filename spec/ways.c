/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/ways.h"

#include <string.h>

const char *const weft_recompute_names[] = {"none", "light", "selective", "medium",
                                            "deep", "whole", NULL};

static const char *const choice_names[WEFT_RECOMPUTE_COUNT][WEFT_HOME_COUNT] = {
    [WEFT_RECOMPUTE_NONE] = {"device", "host", "disk"},
    [WEFT_RECOMPUTE_LIGHT] = {"light", "light+host", "light+disk"},
    [WEFT_RECOMPUTE_SELECTIVE] = {"selective", "selective+host", "selective+disk"},
    [WEFT_RECOMPUTE_MEDIUM] = {"medium", "medium+host", "medium+disk"},
    [WEFT_RECOMPUTE_DEEP] = {"deep", "deep+host", "deep+disk"},
    [WEFT_RECOMPUTE_WHOLE] = {"whole"},
};

bool weft_layer_choice_at(int number, struct weft_layer_choice *out)
{
    const struct weft_layer_choice choice = {(enum weft_home)(number % WEFT_HOME_COUNT),
                                             (enum weft_recompute)(number / WEFT_HOME_COUNT)};
    if (choice_names[choice.recompute][choice.saved_home] == NULL) return false;
    *out = choice;
    return true;
}

int weft_layer_choice_number(struct weft_layer_choice choice)
{
    return (int)choice.recompute * WEFT_HOME_COUNT + (int)choice.saved_home;
}

const char *weft_layer_choice_name(struct weft_layer_choice choice)
{
    return choice_names[choice.recompute][choice.saved_home];
}

bool weft_layer_choice_read(const char *name, struct weft_layer_choice *out)
{
    for (int number = 0; number < WEFT_LAYER_CHOICES; number++) {
        struct weft_layer_choice choice;
        if (!weft_layer_choice_at(number, &choice)) continue;
        if (strcmp(weft_layer_choice_name(choice), name) != 0) continue;
        *out = choice;
        return true;
    }
    return false;
}
