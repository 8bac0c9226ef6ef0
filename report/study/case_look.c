/* SPDX-License-Identifier: Apache-2.0 */
#include "report/study/case_look.h"

#include <string.h>

static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#56b4e9", "#e69f00", "#000000", "#999999"};
static const char *const dashes[] = {"", "18 8", "4 8"};
enum { N_COLOURS = sizeof colours / sizeof *colours, N_DASHES = sizeof dashes / sizeof *dashes };

const char *weft_case_colour(int32_t number)
{
    return colours[number % N_COLOURS];
}

static bool is_same_model(const struct weft_cases *cases, int32_t a, int32_t b)
{
    return strcmp(cases->cases[a].model, cases->cases[b].model) == 0;
}

static int32_t find_first(const struct weft_cases *cases, int32_t which)
{
    int32_t first = 0;
    while (!is_same_model(cases, first, which))
        first++;
    return first;
}

struct weft_case_look weft_case_look(const struct weft_cases *cases, int32_t which)
{
    const int32_t first = find_first(cases, which);
    int32_t model = 0, network = 0;
    for (int32_t k = 0; k < first; k++)
        model += find_first(cases, k) == k;
    for (int32_t k = first; k < which; k++)
        network += is_same_model(cases, k, which);
    return (struct weft_case_look){colours[model % N_COLOURS], dashes[network % N_DASHES]};
}
