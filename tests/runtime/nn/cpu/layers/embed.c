/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "layers/embedding.h"
#include "subject.h"

Test(embedding, is_the_formula_with_and_without_positions)
{
    subject_check_layer(subject_embedding(11, 9, 5), 3, 7, 1000);
    subject_check_layer(subject_embedding(3, 0, 17), 2, 8, 1000);
    subject_check_layer(subject_embedding(1, 1, 1), 1, 1, 1000);
    struct weft_layer scaled = subject_embedding(7, 6, 5);
    scaled.keys[WEFT_EMBEDDING_SCALE].number = 3;
    subject_check_layer(scaled, 2, 6, 1000);
}

static struct weft_layer table_layer(const struct weft_kind *kind, int64_t rows, bool class_token)
{
    struct weft_layer layer = subject_same(kind, 5);
    layer.keys[0].integer = rows;
    layer.keys[1].flag = class_token;
    return layer;
}

Test(embedding, rows_of_a_table_are_added)
{
    subject_check_layer(table_layer(&weft_kind_positions, 9, false), 3, 7, 1000);
    subject_check_layer(table_layer(&weft_kind_positions, 7, true), 3, 7, 1000);
    subject_check_layer(table_layer(&weft_kind_token_types, 2, false), 2, 3, 1000);
}

Test(embedding, refuses_a_token_outside_the_vocabulary)
{
    static const int32_t wrong[] = {-1, 11, INT32_MAX, INT32_MIN};
    struct weft_nn *nn = subject_open("auto");
    struct subject subject;
    subject_init(&subject, subject_embedding(11, 9, 5), 3, 7, 0);
    int32_t tokens[21] = {0};
    subject.call.input = tokens;
    for (int i = 0; i < 4; i++) {
        struct weft_error err = {0};
        tokens[15] = wrong[i];
        cr_assert_eq(weft_nn_cpu_forward(nn, &subject.call, &err), WEFT_E_DATA);
        cr_assert(strstr(err.text, "layer wte: token "), "%s", err.text);
        cr_assert(strstr(err.text, "at position 1 of sample 2 is outside the vocabulary 0 to 10"),
                  "%s", err.text);
        err = (struct weft_error){0};
        cr_assert_eq(weft_nn_cpu_backward(nn, &subject.call, &err), WEFT_E_DATA);
    }
    subject_finish(&subject);
    weft_nn_close(nn);
}
