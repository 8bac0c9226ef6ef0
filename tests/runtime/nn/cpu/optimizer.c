/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/optimizer.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "runtime/nn/cpu/kernels/kernels.h"

enum { OPTIMIZER_N = 7021 };

struct state {
    float parameters[OPTIMIZER_N], gradients[OPTIMIZER_N], moment1[OPTIMIZER_N],
        moment2[OPTIMIZER_N];
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
    for (uint64_t i = 0; i < OPTIMIZER_N; i++) {
        start.parameters[i] = (float)weft_rng_normal(5, 0, i);
        start.gradients[i] = (float)weft_rng_normal(5, 1, i);
        start.moment1[i] = (float)(0.1 * weft_rng_normal(5, 2, i));
        start.moment2[i] = (float)(0.1 * weft_rng_uniform(5, 3, i));
    }
}

static void run_adamw(const struct weft_kernels *level, const struct weft_adamw *adamw, int64_t n,
                      float *parameters, const float *gradients, float *moment1, float *moment2)
{
    const struct weft_optimizer optimizer = {.adamw = *adamw};
    level->update[WEFT_ADAMW](&optimizer, adamw->decay, n, parameters, gradients, moment1, moment2);
}

static void run_sgd(const struct weft_kernels *level, const struct weft_sgd *sgd, int64_t n,
                    float *parameters, const float *gradients, float *momentum)
{
    const struct weft_optimizer optimizer = {.sgd = *sgd};
    level->update[WEFT_SGD](&optimizer, sgd->decay, n, parameters, gradients, momentum, NULL);
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
    run_adamw(weft_kernels_best(), &adamw, OPTIMIZER_N, whole.parameters, whole.gradients,
              whole.moment1, whole.moment2);
    for (int i = 0; i < OPTIMIZER_N; i++) {
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
    run_adamw(weft_kernels_best(), &adamw, 2, p, g, m, v);
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
    run_adamw(weft_kernels_best(), &adamw, OPTIMIZER_N, whole.parameters, whole.gradients,
              whole.moment1, whole.moment2);
    for (int32_t l = 0; (level = weft_kernels_level(l)) != NULL; l++) {
        for (int s = 0; s < 5; s++) {
            const int64_t size = (OPTIMIZER_N + slices[s] - 1) / slices[s];
            cut = start;
            for (int64_t at = 0; at < OPTIMIZER_N; at += size) {
                run_adamw(level, &adamw, at + size > OPTIMIZER_N ? OPTIMIZER_N - at : size,
                          cut.parameters + at, cut.gradients + at, cut.moment1 + at,
                          cut.moment2 + at);
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
    run_sgd(weft_kernels_best(), &sgd, OPTIMIZER_N, whole.parameters, whole.gradients,
            whole.moment1);
    run_sgd(weft_kernels_best(), &sgd, OPTIMIZER_N, cut.parameters, cut.gradients, NULL);
    for (int i = 0; i < OPTIMIZER_N; i++) {
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
    run_sgd(weft_kernels_best(), &sgd, OPTIMIZER_N, whole.parameters, whole.gradients,
            whole.moment1);
    for (int32_t l = 0; (level = weft_kernels_level(l)) != NULL; l++) {
        cut = start;
        run_sgd(level, &sgd, 1003, cut.parameters, cut.gradients, cut.moment1);
        run_sgd(level, &sgd, OPTIMIZER_N - 1003, cut.parameters + 1003, cut.gradients + 1003,
                cut.moment1 + 1003);
        cr_assert_eq(memcmp(&cut, &whole, sizeof(cut)), 0, "%s", level->level);
    }
}

/* At every level and for every cut, with both zeros and numbers without a sign. */
Test(optimizer, lion_is_the_formula_with_the_same_bits_at_every_level)
{
    const struct weft_optimizer optimizer = {.adamw = settings(7)};
    const struct weft_kernels *level;
    fill();
    start.gradients[5] = start.moment1[5] = 0;
    whole = start;
    weft_kernels_best()->update[WEFT_LION](&optimizer, 0.1f, OPTIMIZER_N, whole.parameters,
                                           whole.gradients, whole.moment1, NULL);
    for (int i = 0; i < OPTIMIZER_N; i++) {
        const double g = 0.37 * (double)start.gradients[i], p = (double)start.parameters[i];
        const double mixed = 0.9 * (double)start.moment1[i] + 0.1 * g;
        const double sign = mixed > 0 ? 1 : mixed < 0 ? -1 : 0;
        if (fabs(mixed) < 1e-8 && mixed != 0) continue; /* rounding decides */
        cr_assert(fabs((double)whole.parameters[i] - (p - 1e-3 * (sign + 0.1 * p))) < 4e-7);
        cr_assert(fabs((double)whole.moment1[i] - (0.999 * (double)start.moment1[i] + 0.001 * g)) <
                  1e-7);
    }
    for (int32_t l = 0; (level = weft_kernels_level(l)) != NULL; l++) {
        cut = start;
        for (int64_t at = 0; at < OPTIMIZER_N; at += 1003)
            level->update[WEFT_LION](
                &optimizer, 0.1f, at + 1003 > OPTIMIZER_N ? OPTIMIZER_N - at : 1003,
                cut.parameters + at, cut.gradients + at, cut.moment1 + at, NULL);
        cr_assert_eq(memcmp(&cut, &whole, sizeof cut), 0, "%s", level->level);
    }
}

/* Two steps of a tensor against the formula, and cuts and levels of the kernel. */
Test(optimizer, adam_mini_is_the_formula_with_the_same_bits_at_every_level)
{
    struct weft_optimizer optimizer = {.type = WEFT_ADAM_MINI, .decay = 0.1f, .adamw = settings(7)};
    const struct weft_kernels *level;
    uint64_t bins[WEFT_NORM_WORDS] = {0};
    int finite;
    double squares = 0;
    fill();
    for (int i = 0; i < OPTIMIZER_N; i++)
        squares += pow(0.37 * (double)start.gradients[i], 2);
    const double v = 0.95 * 0.5 + 0.05 * squares / OPTIMIZER_N;
    weft_norm_add(bins, start.gradients, OPTIMIZER_N);
    const float next =
        weft_mean2_next(0.95, 0.5f, 0.37, weft_norm_result(bins, &finite), OPTIMIZER_N);
    cr_assert(fabs((double)next - v) < 1e-7 * v, "%g, not %g", (double)next, v);
    optimizer.divisor = weft_mean2_divisor(&optimizer.adamw, next);
    const double divisor = sqrt(v / (1 - pow(0.999, 7))) + 1e-8;
    cr_assert(fabs((double)optimizer.divisor - divisor) < 1e-6 * divisor);
    whole = start;
    weft_optimizer_update(&optimizer, true,
                          &(struct weft_update){.parameters = whole.parameters,
                                                .gradients = whole.gradients,
                                                .moment1 = whole.moment1,
                                                .n = OPTIMIZER_N});
    for (int i = 0; i < OPTIMIZER_N; i++) {
        const double g = 0.37 * (double)start.gradients[i], p = (double)start.parameters[i];
        const double m = 0.9 * (double)start.moment1[i] + 0.1 * g;
        const double step = m / (1 - pow(0.9, 7)) / divisor + 0.1 * p;
        cr_assert(fabs((double)whole.moment1[i] - m) < 1e-6);
        cr_assert(fabs((double)whole.parameters[i] - (p - 1e-3 * step)) < 4e-7, "element %d", i);
    }
    for (int32_t l = 0; (level = weft_kernels_level(l)) != NULL; l++) {
        cut = start;
        for (int64_t at = 0; at < OPTIMIZER_N; at += 1003)
            level->update[WEFT_ADAM_MINI](
                &optimizer, 0.1f, at + 1003 > OPTIMIZER_N ? OPTIMIZER_N - at : 1003,
                cut.parameters + at, cut.gradients + at, cut.moment1 + at, NULL);
        cr_assert_eq(memcmp(&cut, &whole, sizeof cut), 0, "%s", level->level);
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

/* With no gradient, decay is all that moves a parameter: for lamb by the rate and its own length.
 */
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
                const float decayed = type == WEFT_LAMB ? 0.9f : 0.95f;
                const float expected = matrix || !exempt ? decayed : 1.0f;
                cr_assert(fabsf(p - expected) < 1e-6f, "type %d, exempt %d, matrix %d: %g", type,
                          exempt, matrix, (double)p);
            }
        }
    }
}

static struct weft_optimizer lamb(bool exempt, int64_t t)
{
    struct weft_train train = training(WEFT_LAMB, exempt);
    train.optimizer.weight_decay = 0.1;
    return weft_optimizer_at(&train, t, 1e-2, 0.37);
}

static struct weft_update update_of(struct state *state, int64_t at, int64_t n)
{
    return (struct weft_update){.parameters = state->parameters + at,
                                .gradients = state->gradients + at,
                                .moment1 = state->moment1 + at,
                                .moment2 = state->moment2 + at,
                                .n = n};
}

/* The formula in double, of a whole tensor at step 7. */
static void lamb_in_double(bool adapts, double decay, double *p)
{
    static double steps[OPTIMIZER_N];
    double of_parameters = 0, of_steps = 0;
    for (int i = 0; i < OPTIMIZER_N; i++) {
        const double g = 0.37 * (double)start.gradients[i];
        const double m = 0.9 * (double)start.moment1[i] + 0.1 * g;
        const double v = 0.95 * (double)start.moment2[i] + 0.05 * g * g;
        p[i] = (double)start.parameters[i];
        steps[i] = m / (1 - pow(0.9, 7)) / (sqrt(v / (1 - pow(0.95, 7))) + 1e-8) + decay * p[i];
        of_parameters += p[i] * p[i];
        of_steps += steps[i] * steps[i];
    }
    const double trust = adapts ? sqrt(of_parameters / of_steps) : 1;
    for (int i = 0; i < OPTIMIZER_N; i++) {
        p[i] -= 1e-2 * trust * steps[i];
    }
}

Test(optimizer, lamb_is_the_formula)
{
    static double expected[OPTIMIZER_N];
    fill();
    for (int exempt = 0; exempt < 2; exempt++) {
        for (int matrix = 0; matrix < 2; matrix++) {
            const struct weft_optimizer optimizer = lamb(exempt == 1, 7);
            const bool adapts = matrix || !exempt;
            whole = start;
            const struct weft_update update = update_of(&whole, 0, OPTIMIZER_N);
            weft_optimizer_update(&optimizer, matrix == 1, &update);
            lamb_in_double(adapts, adapts ? 0.1 : 0, expected);
            for (int i = 0; i < OPTIMIZER_N; i++) {
                cr_assert(fabs((double)whole.parameters[i] - expected[i]) < 1e-6,
                          "exempt %d, matrix %d, element %d: %.9g, not %.9g", exempt, matrix, i,
                          (double)whole.parameters[i], expected[i]);
            }
        }
    }
}

/* In parts like ranks do, each with its slices; in 16 bits with a master. */
Test(optimizer, lamb_in_parts_has_the_bits_of_the_whole)
{
    enum { RANKS = 3, SLICE = 901 };
    static uint16_t gradients[OPTIMIZER_N], whole_copy[OPTIMIZER_N], cut_copy[OPTIMIZER_N];
    const struct weft_optimizer optimizer = lamb(true, 7);
    uint64_t sums[2][WEFT_NORM_PACKED_WORDS] = {{0}};
    fill();
    weft_kernels_best()->narrow(WEFT_BF16, OPTIMIZER_N, start.gradients, gradients);
    whole = cut = start;
    struct weft_update all = update_of(&whole, 0, OPTIMIZER_N);
    all.gradients = gradients;
    all.gradient_dtype = all.copy_dtype = WEFT_BF16;
    all.copy = whole_copy;
    weft_optimizer_update(&optimizer, true, &all);

    for (int rank = 0; rank < RANKS; rank++) {
        struct weft_lamb_bins bins = {0};
        uint64_t words[2][WEFT_NORM_PACKED_WORDS];
        for (int64_t at = rank * SLICE; at < OPTIMIZER_N; at += RANKS * SLICE) {
            struct weft_update part =
                update_of(&cut, at, at + SLICE > OPTIMIZER_N ? OPTIMIZER_N - at : SLICE);
            part.gradients = gradients + at;
            part.gradient_dtype = WEFT_BF16;
            weft_lamb_moments(&optimizer, &part);
            weft_lamb_add(&optimizer, true, &part, &bins);
        }
        weft_norm_pack(bins.parameters, words[0]);
        weft_norm_pack(bins.steps, words[1]);
        for (int i = 0; i < WEFT_NORM_PACKED_WORDS; i++) {
            sums[0][i] += words[0][i];
            sums[1][i] += words[1][i];
        }
    }
    const float trust = weft_lamb_trust(&optimizer, true, sums[0], sums[1]);
    cr_assert_neq(trust, 1);
    for (int64_t at = 0; at < OPTIMIZER_N; at += SLICE) {
        struct weft_update part =
            update_of(&cut, at, at + SLICE > OPTIMIZER_N ? OPTIMIZER_N - at : SLICE);
        part.copy = cut_copy + at;
        part.copy_dtype = WEFT_BF16;
        weft_lamb_apply(&optimizer, true, trust, &part);
    }
    cr_assert_eq(memcmp(&cut, &whole, sizeof(cut)), 0);
    cr_assert_eq(memcmp(cut_copy, whole_copy, sizeof(cut_copy)), 0);
}

Test(optimizer, lamb_trusts_what_has_a_length)
{
    const struct weft_optimizer optimizer = lamb(true, 1);
    uint64_t three[WEFT_NORM_PACKED_WORDS], none[WEFT_NORM_PACKED_WORDS] = {0};
    uint64_t infinite[WEFT_NORM_PACKED_WORDS], bins[WEFT_NORM_WORDS] = {0};
    const float x = 3, inf = INFINITY;
    weft_norm_add(bins, &x, 1);
    weft_norm_pack(bins, three);
    weft_norm_add(bins, &inf, 1);
    weft_norm_pack(bins, infinite);
    cr_assert_eq(weft_lamb_trust(&optimizer, true, three, three), 1);
    cr_assert_eq(weft_lamb_trust(&optimizer, true, none, three), 1);
    cr_assert_eq(weft_lamb_trust(&optimizer, true, three, none), 1);
    cr_assert_eq(weft_lamb_trust(&optimizer, true, three, infinite), 1);
    cr_assert_eq(weft_lamb_trust(&optimizer, true, infinite, three), 1);
}
