/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/hub/layers.h"

#include <criterion/criterion.h>
#include <string.h>

static void check_places(const char *type, const enum weft_hub_place *places, int32_t n)
{
    const struct weft_hub_family *family = weft_hub_family_find(type);
    for (int32_t i = 0; i < n; i++)
        cr_assert_eq(weft_hub_place_of(family, i, n), places[i], "%s: layer %d", type, (int)i);
}

Test(hub_layers, have_their_places)
{
    const enum weft_hub_place usual[] = {WEFT_HUB_IN_EMBEDDING, WEFT_HUB_IN_BLOCK,
                                         WEFT_HUB_IN_BLOCK, WEFT_HUB_IN_NORM, WEFT_HUB_IN_HEAD};
    const enum weft_hub_place masked[] = {WEFT_HUB_IN_EMBEDDING,      WEFT_HUB_IN_TYPES,
                                          WEFT_HUB_IN_EMBEDDING_NORM, WEFT_HUB_IN_BLOCK,
                                          WEFT_HUB_IN_DENSE,          WEFT_HUB_IN_ACTIVATION,
                                          WEFT_HUB_IN_HEAD_NORM,      WEFT_HUB_IN_HEAD};
    const enum weft_hub_place images[] = {WEFT_HUB_IN_EMBEDDING, WEFT_HUB_IN_POSITIONS,
                                          WEFT_HUB_IN_BLOCK, WEFT_HUB_IN_NORM, WEFT_HUB_IN_HEAD};
    check_places("vit", images, 5);
    check_places("gpt2", usual, 5);
    check_places("llama", usual, 5);
    check_places("bert", masked, 8);
}

Test(hub_layers, have_kinds_and_prefixes)
{
    const struct weft_hub_family *bert = weft_hub_family_find("bert");
    cr_assert_str_eq(weft_hub_kind_at(bert, WEFT_HUB_IN_BLOCK), "encoder_block");
    cr_assert_str_eq(weft_hub_kind_at(bert, WEFT_HUB_IN_HEAD_NORM), "layer_norm");
    cr_assert_str_eq(weft_hub_prefix_at(WEFT_HUB_IN_BLOCK, "bert."), "bert.");
    cr_assert_str_eq(weft_hub_prefix_at(WEFT_HUB_IN_DENSE, "bert."), "");
    const struct weft_hub_family *vit = weft_hub_family_find("vit");
    cr_assert_str_eq(weft_hub_kind_at(vit, WEFT_HUB_IN_EMBEDDING), "linear");
    cr_assert_str_eq(weft_hub_kind_at(vit, WEFT_HUB_IN_HEAD), "classifier");
    cr_assert_str_eq(weft_hub_kind_at(bert, WEFT_HUB_IN_HEAD), "lm_head");
    cr_assert_str_eq(weft_hub_prefix_at(WEFT_HUB_IN_POSITIONS, "vit."), "vit.");
}

static int64_t image_rows(const char *text)
{
    struct weft_json *document = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_json_parse(text, strlen(text), "text", &document, &err), WEFT_OK);
    const int64_t rows = weft_hub_image_rows(weft_json_root(document));
    weft_json_destroy(document);
    return rows;
}

Test(hub_layers, images_have_a_row_a_patch_and_one_for_the_class_token)
{
    cr_assert_eq(image_rows("{\"model_type\": \"vit\"}"), 197);
    cr_assert_eq(image_rows("{\"model_type\": \"vit\", \"image_size\": 96, \"patch_size\": 32}"),
                 10);
    cr_assert_eq(image_rows("{\"model_type\": \"vit\", \"patch_size\": 0}"), 0);
    cr_assert_eq(image_rows("{\"model_type\": \"vit\", \"image_size\": 9000000000}"), 0);
    cr_assert_eq(image_rows("{\"model_type\": \"bert\", \"image_size\": 224, \"patch_size\": 16}"),
                 0);
}
