/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/ways.h"

#include <string.h>

const char *const weft_recompute_names[] = {"none", "light", "selective", "medium",
                                            "deep", "whole", NULL};

enum { INPUT_PLACES = WEFT_LAYER_CHOICES / WEFT_SAVED_CHOICES };

/* Names by recomputation and location of saved activations; `input` names that of the input. */
#define NAMES(input)                                                                               \
    {                                                                                              \
        [WEFT_RECOMPUTE_NONE] = {"device" input, "host" input, "disk" input},                      \
        [WEFT_RECOMPUTE_LIGHT] = {"light" input, "light+host" input, "light+disk" input},          \
        [WEFT_RECOMPUTE_SELECTIVE] = {"selective" input, "selective+host" input,                   \
                                      "selective+disk" input},                                     \
        [WEFT_RECOMPUTE_MEDIUM] = {"medium" input, "medium+host" input, "medium+disk" input},      \
        [WEFT_RECOMPUTE_DEEP] = {"deep" input, "deep+host" input, "deep+disk" input},              \
        [WEFT_RECOMPUTE_WHOLE] = {"whole" input},                                                  \
    }

static const char *const choice_names[INPUT_PLACES][WEFT_RECOMPUTE_COUNT][WEFT_LOCATION_COUNT] = {
    [WEFT_LOCATION_DEVICE] = NAMES(""), [WEFT_LOCATION_HOST] = NAMES("+host-input")};

bool weft_layer_choice_at(int number, struct weft_layer_choice *out)
{
    const int levels = number / WEFT_LOCATION_COUNT;
    const struct weft_layer_choice choice = {
        (enum weft_location)(number % WEFT_LOCATION_COUNT),
        (enum weft_recompute)(levels % WEFT_RECOMPUTE_COUNT),
        (enum weft_location)(levels / WEFT_RECOMPUTE_COUNT),
    };
    if (weft_layer_choice_name(choice) == NULL) return false;
    *out = choice;
    return true;
}

int weft_layer_choice_number(struct weft_layer_choice choice)
{
    return ((int)choice.input_location * WEFT_RECOMPUTE_COUNT + (int)choice.recompute) *
               WEFT_LOCATION_COUNT +
           (int)choice.saved_location;
}

const char *weft_layer_choice_name(struct weft_layer_choice choice)
{
    return choice_names[choice.input_location][choice.recompute][choice.saved_location];
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
