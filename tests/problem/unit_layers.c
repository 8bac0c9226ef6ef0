/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of units in plan files. */
#include "problem/unit_layers.h"

#include <criterion/criterion.h>

#include "tests/problem/small_problem.h"

#define MODULES "\"modules\": [\"transformer.wte,transformer.wpe\", \"lm_head\"]"

static struct weft_problem *read_back(const struct weft_problem *problem, const char *from,
                                      const char *to, struct weft_error *err)
{
    struct weft_problem *out = NULL;
    struct weft_json *document = NULL;
    struct weft_json_writer writer;
    struct weft_text text, edited;
    weft_text_init(&text);
    weft_text_init(&edited);
    weft_json_writer_init(&writer, &text, 0);
    weft_problem_write(problem, &writer);
    const char *chars = weft_text_chars(&text), *at = from ? strstr(chars, from) : NULL;
    cr_assert(from == NULL || at != NULL, "%s", chars);
    if (at != NULL) weft_text_append(&edited, chars, (size_t)(at - chars));
    if (at != NULL) weft_text_addf(&edited, "%s%s", to, at + strlen(from));
    const struct weft_text *json = at ? &edited : &text;
    cr_assert_eq(weft_json_parse(weft_text_chars(json), json->length, "p", &document, err), WEFT_OK,
                 "%s", err->text);
    if (weft_problem_read(weft_json_root(document), "p", &out, err) != WEFT_OK) out = NULL;
    weft_json_destroy(document);
    weft_text_finish(&text);
    weft_text_finish(&edited);
    return out;
}

static struct weft_problem named_problem(void)
{
    static int32_t tied[] = {0, 1};
    static struct weft_unit_layers unit_layers[] = {{.first = 0, .last = 1},
                                                    {.last = 1, .n_tied = 2, .tied = tied}};
    static const char *modules[] = {"transformer.wte,transformer.wpe", "lm_head"};
    struct weft_problem problem = small_problem();
    problem.names.unit_layers = unit_layers;
    problem.names.n_modules = 2;
    problem.names.modules = modules;
    return problem;
}

Test(unit_layers, a_file_has_layers_and_modules)
{
    const struct weft_problem problem = named_problem();
    struct weft_error err = {0};
    struct weft_problem *back = read_back(&problem, NULL, NULL, &err);
    cr_assert_not_null(back, "%s", err.text);
    const struct weft_unit_layers *a = weft_problem_unit_layers(back, 0);
    const struct weft_unit_layers *b = weft_problem_unit_layers(back, 1);
    cr_assert(a->first == 0 && a->last == 1 && a->n_tied == 0);
    cr_assert(b->n_tied == 2 && b->tied[1] == 1);
    cr_assert(weft_problem_is_fused(back, 0) && !weft_problem_is_fused(back, 1));
    cr_assert_eq(back->names.n_modules, 2);
    cr_assert_str_eq(back->names.modules[0], "transformer.wte,transformer.wpe");
    weft_problem_destroy(back);
}

Test(unit_layers, older_files_have_none)
{
    const struct weft_problem problem = small_problem();
    struct weft_error err = {0};
    struct weft_problem *back = read_back(&problem, NULL, NULL, &err);
    cr_assert_not_null(back, "%s", err.text);
    cr_assert_null(weft_problem_unit_layers(back, 0));
    cr_assert(!weft_problem_is_fused(back, 0) && back->names.n_modules == 0);
    weft_problem_destroy(back);
}

Test(unit_layers, what_is_no_list_of_layers_is_refused)
{
    static const struct {
        const char *from, *to, *says;
    } cases[] = {
        {"\"layers\": [0, 1]", "\"layers\": [1, 0]", "no increasing numbers"},
        {"\"layers\": [0, 1]", "\"layers\": [0]", "layers are [first, last]"},
        {"\"layers\": [0, 1]", "\"layers\": 7", "layers"},
        {"\"tied_layers\": [0, 1]", "\"tied_layers\": [0, 0]", "no increasing numbers"},
        {"\"tied_layers\": [0, 1]", "\"tied_layers\": []", "tied_layers a list"},
        {", \"layers\": [0, 1]", "", "all units have layers"},
        {", \"tied_layers\": [0, 1]", "", "all units have layers"},
        {"\"lm_head\"", "\"a\\\"b\"", "p.modules[1]: no names of modules"},
        {"\"lm_head\"", "\"\"", "p.modules[1]: no names of modules"},
        {"\"lm_head\"", "\",\"", "p.modules[1]: no names of modules"},
        {"\"lm_head\"", "\"a,,b\"", "p.modules[1]: no names of modules"},
        {"\"lm_head\"", "\"a,\"", "p.modules[1]: no names of modules"},
        {MODULES, "\"modules\": 5", "p.modules: a list of names"},
        {MODULES, "\"modules\": {\"a\": \"b\"}", "p.modules: a list of names"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct weft_problem problem = named_problem();
        struct weft_error err = {0};
        cr_assert_null(read_back(&problem, cases[i].from, cases[i].to, &err));
        cr_assert_not_null(strstr(err.text, cases[i].says), "%s", err.text);
    }
}
