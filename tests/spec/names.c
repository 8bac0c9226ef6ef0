/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/names.h"
#include "layers/shared/block.h"

#include <criterion/criterion.h>
#include <string.h>

Test(names, are_of_letters_and_lead_nowhere)
{
    static const char *const good[] = {"a", "h.0.attn", "A-b_C.9", "-", "a.-.b"};
    static const char *const bad[] = {"",    ".",    "..",   "a..b",     ".a",  "a.",         "a/b",
                                      "a b", "a\\b", "a\nb", "\303\244", "{i}", "12345678901"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        cr_assert(weft_name_is_good(good[i], 10), "%s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert_not(weft_name_is_good(bad[i], 10), "%s", bad[i]);
}

/* A block, an activation without tensors, and a layer of another name after them. */
static enum weft_status create_named(const char *name, const struct weft_kind *type,
                                     struct weft_error *err)
{
    const struct weft_layer layers[] = {
        {.name = "h",
         .kind = &weft_kind_transformer_block,
         .hidden = 8,
         .keys[WEFT_BLOCK_HEADS].integer = 2,
         .keys[WEFT_BLOCK_FFN].integer = 8},
        {.name = "h.ln1", .kind = &weft_kind_relu, .hidden = 8},
        {.name = name, .kind = type, .hidden = 8, .outputs = 8, .bias = true},
    };
    struct weft_model *model = NULL;
    enum weft_status status = weft_model_create(layers, 3, &model, err);
    weft_model_destroy(model);
    return status;
}

Test(names, of_layers_differ)
{
    struct weft_error err = {0};
    cr_assert_eq(create_named("h", &weft_kind_linear, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "layer \"h\" (linear): another layer has this name"), "%s",
                       err.text);
}

Test(names, of_tensors_differ_between_layers)
{
    static const struct {
        const char *name;
        const struct weft_kind *type;
        const char *tensor; /* that two layers would have; NULL: none */
    } cases[] = {
        {"h.mlp.fc", &weft_kind_linear, "h.mlp.fc.bias"},
        {"h.ln2", &weft_kind_layer_norm, "h.ln2.bias"},
        {"h.mlp.fc", &weft_kind_layer_norm, "h.mlp.fc.bias"},
        {"h.mlp", &weft_kind_linear, NULL},
        {"h.mlp.fc", &weft_kind_gelu, NULL},
        {"h.mlp.fc.weight", &weft_kind_linear, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weft_error err = {0};
        enum weft_status wanted = cases[i].tensor == NULL ? WEFT_OK : WEFT_E_DATA;
        cr_assert_eq(create_named(cases[i].name, cases[i].type, &err), wanted, "%zu: %s", i,
                     err.text);
        if (cases[i].tensor == NULL) continue;
        cr_assert_not_null(strstr(err.text, cases[i].tensor), "%s", err.text);
        cr_assert_not_null(strstr(err.text, cases[i].name), "%s", err.text);
        cr_assert_not_null(strstr(err.text, "of layer \"h\" (transformer_block)"), "%s", err.text);
    }
}
