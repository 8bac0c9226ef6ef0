/* SPDX-License-Identifier: Apache-2.0 */
/* Random recipes on the CPU, in buffers that begin as NaN: outputs and gradients of the formula,
 * and at every level of recomputation one set of bits. */
#include <criterion/criterion.h>

#include "layers/recipe/op.h"
#include "subject.h"
#include "tests/effort.h"
#include "tests/layers/recipe/random.h"

static bool is_valid(const struct weft_layer *layer)
{
    const struct weft_batch batch = {.samples = 1, .seq_len = 1, .compute = WEFT_F32};
    struct weft_walk walk;
    struct weft_error err = {0};
    return weft_walk_derive(layer, &batch, WEFT_RECOMPUTE_NONE, &walk, &err) == WEFT_OK;
}

/* A difference of ReLU depends on the side of its edge. */
static bool has_edges(const struct random_recipe *random)
{
    for (int32_t i = 0; i < random->recipe.n_steps; i++)
        if (random->steps[i].kind == WEFT_WORD_RELU) return true;
    return false;
}

Test(recipes, at_random_are_the_formula_at_every_level)
{
    static struct random_recipe random;
    const int32_t cases = TEST_CASES(300, 60);
    struct weft_nn *nn = subject_open("plain");
    int32_t n = 0, n_checked = 0, n_derived = 0;
    for (int32_t i = 0; i < cases; i++) {
        random_recipe_make(&random, 7000 + (uint64_t)i);
        if (!is_valid(&random.layer)) continue;
        struct subject subject;
        subject_init(&subject, random.layer, 2, 1 + i % 4, 0);
        subject.looser = 20; /* of up to 20 steps */
        if (has_edges(&random)) {
            subject_forward(nn, &subject);
            subject_backward(nn, &subject);
        } else {
            subject_check(nn, &subject, 6);
            n_checked++;
        }
        for (int level = WEFT_RECOMPUTE_FIRST; level < WEFT_RECOMPUTE_COUNT; level++) {
            struct subject_level it;
            if (!subject_has_level(&subject, level)) continue;
            n_derived += level != WEFT_RECOMPUTE_SELECTIVE && level != WEFT_RECOMPUTE_WHOLE;
            subject_level_init(&it, &subject, (enum weft_recompute)level);
            subject_level_run(nn, &it);
            cr_assert(subject_same_bits(&subject, &it.subject), "recipe %d, level %d", (int)i,
                      level);
            subject_level_finish(&it);
        }
        subject_finish(&subject);
        n++;
    }
    cr_assert(n > cases / 2 && n_checked > cases / 5 && n_derived > n, "%d, %d and %d of %d",
              (int)n, (int)n_checked, (int)n_derived, (int)cases);
    weft_nn_close(nn);
}
