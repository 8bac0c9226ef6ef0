/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/bits.h"

#include <criterion/criterion.h>
#include <string.h>

static void check_bits(const char *run, const char *here, const char *how)
{
    struct weft_text text;
    weft_text_init(&text);
    cr_assert_eq(weft_bits_compare(run, here, " in the run, and ", " here", &text), how[0] == '\0',
                 "%s | %s", run, here);
    cr_assert_str_eq(weft_text_chars(&text), how);
    weft_text_finish(&text);
}

Test(bits, the_first_part_that_differs_is_named)
{
    check_bits("", "", "");
    check_bits("products: plain; attention: products", "products: plain; attention: products", "");
    check_bits("products: onednn, oneDNN 2.6.3, avx512_core; attention: avx512",
               "products: onednn, oneDNN 2.6.3, avx2; attention: products",
               "products: onednn, oneDNN 2.6.3, avx512_core in the run, and products: onednn, "
               "oneDNN 2.6.3, avx2 here");
    check_bits("products: own; attention: avx512", "products: own; attention: products",
               "attention: avx512 in the run, and attention: products here");
    check_bits("products: own; gpu: H100", "products: own; gpu: H200",
               "gpu: H100 in the run, and gpu: H200 here");
    check_bits("products: own", "products: own; gpu: H200",
               "nothing more in the run, and gpu: H200 here");
    check_bits("products: own and more", "products: own",
               "products: own and more in the run, and products: own here");
}
