/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/recipe/expression.h"

#include <criterion/criterion.h>
#include <string.h>

static bool find_letter(const void *context, const char *name, size_t length, int64_t *out)
{
    (void)context;
    if (length != 1 || *name < 'a' || *name > 'c') return false;
    *out = *name - 'a' + 2; /* a 2, b 3, c 4 */
    return true;
}

static const struct weft_names letters = {find_letter, NULL};

static int64_t evaluate_text(const char *text)
{
    int64_t out = -1;
    struct weft_expression_fault fault = {0};
    cr_assert(weft_expression(text, strlen(text), &letters, &out, &fault), "%s", fault.text);
    return out;
}

static void refuses_text(const char *text, bool overflowed, const char *reason)
{
    int64_t out = -1;
    struct weft_expression_fault fault = {0};
    cr_assert_not(weft_expression(text, strlen(text), &letters, &out, &fault), "%s", text);
    cr_expect_eq(out, -1);
    cr_expect_eq(fault.overflowed, overflowed, "%s", text);
    cr_expect(strstr(fault.text, reason) != NULL, "\"%s\" does not say \"%s\"", fault.text, reason);
}

Test(expression, has_the_usual_order_of_operations)
{
    cr_expect_eq(evaluate_text("1 + 2 * 3"), 7);
    cr_expect_eq(evaluate_text("(1 + 2)*3"), 9);
    cr_expect_eq(evaluate_text("20 - 3 - 2"), 15);
    cr_expect_eq(evaluate_text("24 / 4 / 3 % 2"), 0);
    cr_expect_eq(evaluate_text(" a*b+c "), 10);
    cr_expect_eq(evaluate_text("9223372036854775807"), INT64_MAX);
    cr_expect_eq(evaluate_text("0"), 0);
}

Test(expression, compares)
{
    cr_expect_eq(evaluate_text("a + 1 == b"), 1);
    cr_expect_eq(evaluate_text("a == b"), 0);
    cr_expect_eq(evaluate_text("a != b"), 1);
    cr_expect_eq(evaluate_text("c <= 4"), 1);
    cr_expect_eq(evaluate_text("c > 4"), 0);
}

Test(expression, refuses_other_texts)
{
    refuses_text("", false, "a number or name is missing at character 1");
    refuses_text("1 +", false, "a number or name is missing");
    refuses_text("d", false, "there is no key or definition \"d\"");
    refuses_text("ab", false, "there is no key or definition \"ab\"");
    refuses_text("7 / 2", false, "7 / 2 leaves a rest");
    refuses_text("7 / (a - 2)", false, "7 / 0");
    refuses_text("7 % 0", false, "7 % 0");
    refuses_text("a - b", false, "2 - 3 is negative");
    refuses_text("(1", false, "a \")\" is missing");
    refuses_text("1 2", false, "\"2\" is no part");
    refuses_text("1 == 1 == 1", false, "is no part");
    refuses_text("1;", false, "is no part");
    refuses_text("((((((((((((((((((1))))))))))))))))))", false, "more than 16 parentheses");
    refuses_text("9223372036854775808", true, "63 bits");
    refuses_text("9223372036854775807 + 1", true, "63 bits");
    refuses_text("4611686018427387904 * a", true, "63 bits");
}
