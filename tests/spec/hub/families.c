/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/hub/families.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/text.h"

/* Compares a list of names with the table: of all families, or of those with tensors. */
static void check_names(const char *list, bool with_tensors)
{
    const struct weft_hub_family *family;
    struct weft_text names;
    weft_text_init(&names);
    for (int32_t i = 0; (family = weft_hub_family_at(i)) != NULL; i++) {
        if (with_tensors && family->rows == NULL) continue;
        weft_text_addf(&names, "%s%s", names.length > 0 ? ", " : "", family->type);
    }
    cr_assert_str_eq(weft_text_chars(&names), list);
    weft_text_finish(&names);
}

Test(hub_families, names_in_messages_are_those_of_the_table)
{
    check_names(WEFT_HUB_TYPES, false);
    check_names(WEFT_HUB_TRAINED_TYPES, true);
}

Test(hub_families, are_found_by_their_names)
{
    const struct weft_hub_family *family;
    for (int32_t i = 0; (family = weft_hub_family_at(i)) != NULL; i++)
        cr_assert_eq(weft_hub_family_find(family->type), family, "%s", family->type);
    cr_assert_null(weft_hub_family_find("electra"));
}
