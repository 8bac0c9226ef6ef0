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
    weft_adamw_update(&adamw, whole.parameters, whole.gradients, whole.moment1, whole.moment2, N);
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
    weft_adamw_update(&adamw, p, g, m, v, 2);
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
    weft_adamw_update(&adamw, whole.parameters, whole.gradients, whole.moment1, whole.moment2, N);
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
