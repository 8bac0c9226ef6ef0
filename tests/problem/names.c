/* SPDX-License-Identifier: Apache-2.0 */
#include "problem/names.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 64 };

static int32_t find_listed(const char *const *layers, const char *name, size_t length)
{
    for (int32_t l = 0; layers[l]; l++)
        if (strlen(layers[l]) == length && strncmp(layers[l], name, length) == 0) return l;
    return -1;
}

/* The layers of a unit that the test writes as "a", "a+b" or "a+..+b"; otherwise of a shared
 * tensor. */
static struct weft_unit_layers listed_layers(const char *const *layers, const char *name)
{
    static int32_t shared[1];
    const char *plus = strchr(name, '+'), *last = plus == NULL ? name : strrchr(name, '+') + 1;
    const struct weft_unit_layers of = {
        .first = find_listed(layers, name, plus == NULL ? strlen(name) : (size_t)(plus - name)),
        .last = find_listed(layers, last, strlen(last))};
    if (find_listed(layers, name, strlen(name)) >= 0)
        return (struct weft_unit_layers){.first = find_listed(layers, name, strlen(name)),
                                         .last = find_listed(layers, name, strlen(name))};
    return of.first >= 0 ? of : (struct weft_unit_layers){.n_tied = 1, .tied = shared};
}

/* Layers and units, each list ending with NULL; forwards in micro-steps 1 and 2. */
static void expect_names(const char *const *layers, const char *const *units, const char *text)
{
    struct weft_slot slots[2 * MOST];
    struct weft_problem_decision decisions[MOST] = {{0}};
    struct weft_unit_layers unit_layers[MOST];
    char names[2 * MOST][40];
    const char *slot_names[2 * MOST];
    struct weft_problem problem = {.slots = slots,
                                   .slot_names = slot_names,
                                   .decisions = decisions,
                                   .names.unit_layers = unit_layers};
    struct weft_text out;
    for (int32_t micro = 0; micro < 2; micro++) {
        for (int32_t l = 0; layers[l]; l++) {
            slots[problem.n_slots] = (struct weft_slot){WEFT_SLOT_FORWARD, l, micro, false};
            snprintf(names[problem.n_slots], sizeof names[0], "F%d:%s", micro + 1, layers[l]);
            slot_names[problem.n_slots] = names[problem.n_slots];
            problem.n_slots++;
        }
    }
    for (; units[problem.n_decisions]; problem.n_decisions++) {
        const char *name = units[problem.n_decisions];
        decisions[problem.n_decisions].name = name;
        decisions[problem.n_decisions].is_of_layer = strncmp(name, "saved:", 6) == 0;
        unit_layers[problem.n_decisions] = listed_layers(layers, name);
        if (decisions[problem.n_decisions].is_of_layer)
            decisions[problem.n_decisions].layer = find_listed(layers, name + 6, strlen(name + 6));
    }
    weft_text_init(&out);
    weft_problem_show_names(&problem, 0, problem.n_decisions - 1, &out);
    cr_assert_str_eq(weft_text_chars(&out), text);
    weft_text_finish(&out);
}

/* A unit and the saved activations of its layer are told apart. */
Test(names, saved_activations_keep_their_prefix_in_tables)
{
    struct weft_problem_decision decisions[2] = {{.name = "h.0"},
                                                 {.name = "saved:h.0", .is_of_layer = true}};
    const struct weft_problem problem = {.decisions = decisions, .n_decisions = 2};
    char shown[WEFT_NAMES_BYTES];
    cr_expect_str_eq(weft_problem_show_name(&problem, 0, shown), "h.0");
    cr_expect_str_eq(weft_problem_show_name(&problem, 1, shown), "saved:h.0");
}

#define NAMES(...)                                                                                 \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }
#define GPT NAMES("wte", "h.0", "h.1", "h.2", "h.3", "h.4", "ln_f", "head")

Test(names, units_are_shown_as_their_layers)
{
    expect_names(GPT, NAMES("wte+..+h.1", "h.2", "h.3+..+ln_f"), "wte+h.0-4+ln_f");
    expect_names(GPT, NAMES("wte+..+h.1"), "wte+h.0-1");
    expect_names(GPT, NAMES("h.1+..+h.4"), "h.1-4");
    expect_names(GPT, NAMES("wte"), "wte");
    expect_names(GPT, NAMES("h.4+ln_f"), "h.4+ln_f");
    expect_names(GPT, NAMES("wte.tokens", "wte", "h.0"), "wte.tokens+wte+h.0");
    expect_names(GPT, NAMES("h.0", "h.2", "h.3"), "h.0+h.2-3");
    expect_names(GPT, NAMES("saved:h.0", "saved:h.1", "saved:h.2"), "h.0-2");
}

Test(names, numbers_may_stand_inside_and_names_may_have_none)
{
    expect_names(NAMES("b.9.x", "b.10.x", "b.11.y"), NAMES("b.9.x+..+b.11.y"), "b.9-10.x+b.11.y");
    expect_names(NAMES("a+b", "a", "b"), NAMES("a+b", "a+b"), "a+b+a+b");
    expect_names(NAMES("a", "b", "c", "d", "e", "f", "g"), NAMES("a+..+g"), "a+..+g");
    expect_names(NAMES("a"), NAMES("unknown"), "unknown");
}
