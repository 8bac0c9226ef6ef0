#include "runtime/nn/optimizer.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "runtime/nn/kernels.h"

enum { N = 7021 };

struct state {
    float parameters[N], gradients[N], moment1[N], moment2[N];
};

static struct state start, whole, cut;

static struct weft_adamw settings(int64_t t)
{
    struct weft_adamw adamw = {.lr = 1e-3f, .eps = 1e-8f, .decay = 0.1f, .clip = 0.37f};
    weft_adamw_at(&adamw, 0.9, 0.999, t);
    return adamw;
}

static void fill(void)
{
    for (uint64_t i = 0; i < N; i++) {
        start.parameters[i] = (float)weft_rng_normal(5, 0, i);
        start.gradients[i] = (float)weft_rng_normal(5, 1, i);
        start.moment1[i] = (float)(0.1 * weft_rng_normal(5, 2, i));
        start.moment2[i] = (float)(0.1 * weft_rng_uniform(5, 3, i));
    }
}

Test(optimizer, corrections_are_rounded_once_from_double)
{
    struct weft_adamw adamw = settings(1);
    cr_assert_eq(adamw.correction1, (float)(1 / (1 - 0.9)));
    cr_assert_eq(adamw.correction2, (float)(1 / (1 - 0.999)));
    cr_assert_eq(adamw.rest2, (float)(1 - 0.999));
    cr_assert_neq(adamw.rest2, 1.0f - adamw.beta2);
    adamw = settings(100000000);
    cr_assert_eq(adamw.correction1, 1);
    cr_assert_eq(adamw.correction2, 1);
}

Test(optimizer, is_the_formula)
{
    fill();
    whole = start;
    const struct weft_adamw adamw = settings(7);
    weft_kernels_best()->adamw(&adamw, N, whole.parameters, whole.gradients, whole.moment1,
                               whole.moment2);
    for (int i = 0; i < N; i++) {
        const double g = 0.37 * (double)start.gradients[i];
        const double m = 0.9 * (double)start.moment1[i] + 0.1 * g;
        const double v = 0.999 * (double)start.moment2[i] + 0.001 * g * g;
        const double step = m / (1 - pow(0.9, 7)) / (sqrt(v / (1 - pow(0.999, 7))) + 1e-8);
        const double p = (double)start.parameters[i];
        cr_assert(fabs((double)whole.moment1[i] - m) < 1e-7);
        cr_assert(fabs((double)whole.moment2[i] - v) < 1e-8);
        cr_assert(fabs((double)whole.parameters[i] - (p - 1e-3 * (step + 0.1 * p))) < 4e-7,
                  "element %d", i);
        cr_assert_eq(whole.gradients[i], start.gradients[i]);
    }
}

Test(optimizer, first_step_has_the_size_of_the_learning_rate)
{
    struct weft_adamw adamw = settings(1);
    adamw.decay = 0;
    adamw.clip = 1;
    float p[2] = {1, 1}, m[2] = {0}, v[2] = {0};
    const float g[2] = {1e-3f, -50};
    weft_kernels_best()->adamw(&adamw, 2, p, g, m, v);
    cr_assert(fabsf(p[0] - 0.999f) < 1e-6f);
    cr_assert(fabsf(p[1] - 1.001f) < 1e-6f);
}

Test(optimizer, bits_do_not_depend_on_slices_nor_on_the_level)
{
    static const int slices[] = {1, 2, 7, 16, 100};
    const struct weft_adamw adamw = settings(3);
    const struct weft_kernels *level;
    fill();
    whole = start;
    weft_kernels_best()->adamw(&adamw, N, whole.parameters, whole.gradients, whole.moment1,
                               whole.moment2);
    for (int32_t l = 0; (level = weft_kernels_level(l)) != NULL; l++) {
        for (int s = 0; s < 5; s++) {
            const int64_t size = (N + slices[s] - 1) / slices[s];
            cut = start;
            for (int64_t at = 0; at < N; at += size) {
                level->adamw(&adamw, at + size > N ? N - at : size, cut.parameters + at,
                             cut.gradients + at, cut.moment1 + at, cut.moment2 + at);
            }
            cr_assert_eq(memcmp(&cut, &whole, sizeof(cut)), 0, "%s in %d slices", level->level,
                         slices[s]);
        }
    }
}

Test(optimizer, sgd_is_the_formula_with_and_without_momentum)
{
    const struct weft_sgd sgd = {.lr = 0.1f, .momentum = 0.9f, .decay = 0.01f, .clip = 0.5f};
    fill();
    whole = cut = start;
    weft_kernels_best()->sgd(&sgd, N, whole.parameters, whole.gradients, whole.moment1);
    weft_kernels_best()->sgd(&sgd, N, cut.parameters, cut.gradients, NULL);
    for (int i = 0; i < N; i++) {
        const double p = (double)start.parameters[i];
        const double g = 0.5 * (double)start.gradients[i] + 0.01 * p;
        const double m = 0.9 * (double)start.moment1[i] + g;
        cr_assert(fabs((double)whole.moment1[i] - m) < 1e-6);
        cr_assert(fabs((double)whole.parameters[i] - (p - 0.1 * m)) < 1e-6, "element %d", i);
        cr_assert(fabs((double)cut.parameters[i] - (p - 0.1 * g)) < 1e-6, "element %d", i);
    }
}

Test(optimizer, sgd_has_the_same_bits_at_every_level)
{
    const struct weft_sgd sgd = {.lr = 0.1f, .momentum = 0.9f, .decay = 0.01f, .clip = 0.5f};
    const struct weft_kernels *level;
    fill();
    whole = start;
    weft_kernels_best()->sgd(&sgd, N, whole.parameters, whole.gradients, whole.moment1);
    for (int32_t l = 0; (level = weft_kernels_level(l)) != NULL; l++) {
        cut = start;
        level->sgd(&sgd, 1003, cut.parameters, cut.gradients, cut.moment1);
        level->sgd(&sgd, N - 1003, cut.parameters + 1003, cut.gradients + 1003, cut.moment1 + 1003);
        cr_assert_eq(memcmp(&cut, &whole, sizeof(cut)), 0, "%s", level->level);
    }
}

static struct weft_train training(enum weft_optimizer_type type, bool exempt)
{
    return (struct weft_train){.optimizer = {.type = type,
                                             .betas = {0.9, 0.95},
                                             .eps = 1e-8,
                                             .weight_decay = 0.5,
                                             .momentum = 0.9,
                                             .exempt_vectors = exempt}};
}

/* With no gradient, decay is all that moves a parameter. */
Test(optimizer, vectors_decay_only_when_they_are_not_exempt)
{
    for (int type = 0; type < WEFT_OPTIMIZER_COUNT; type++) {
        for (int exempt = 0; exempt < 2; exempt++) {
            for (int matrix = 0; matrix < 2; matrix++) {
                const struct weft_train train =
                    training((enum weft_optimizer_type)type, exempt == 1);
                const struct weft_optimizer optimizer = weft_optimizer_at(&train, 1, 0.1, 1);
                float p = 1, g = 0, m = 0, v = 0;
                const struct weft_update update = {
                    .parameters = &p, .gradients = &g, .moment1 = &m, .moment2 = &v, .n = 1};
                weft_optimizer_update(&optimizer, matrix == 1, &update);
                const float expected = matrix || !exempt ? 0.95f : 1.0f;
                cr_assert(fabsf(p - expected) < 1e-6f, "type %d, exempt %d, matrix %d: %g", type,
                          exempt, matrix, (double)p);
            }
        }
    }
}
