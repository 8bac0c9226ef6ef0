/* SPDX-License-Identifier: Apache-2.0 */
/* A profile is given as much of the ranks' unevenness as explains the rehearsal's step. */
#include <stdlib.h>

#include "runtime/measure/parts.h"
#include "tests/runtime/exec/job.h"

enum { LAYERS = 2, WAITS_NS = 5000 };

/* A step that computes all layers next to communication and then waits for WAITS_NS. */
static enum weft_status step(void *context, int64_t *step_ns, struct weft_error *err)
{
    const struct weft_profile *profile = context;
    (void)err;
    int64_t rate = profile->rates.compute > 0 ? profile->rates.compute : WEFT_RATE_ONE;
    *step_ns = WAITS_NS;
    for (int32_t k = 0; k < LAYERS; k++) {
        const struct weft_layer_times *at = &profile->layers[k];
        *step_ns += (at->forward_ns + at->backward_ns) * WEFT_RATE_ONE / rate;
    }
    return WEFT_OK;
}

static enum weft_status fails(void *context, int64_t *step_ns, struct weft_error *err)
{
    (void)context;
    (void)step_ns;
    return weft_fail(err, WEFT_E_SYSTEM, "no step");
}

/* Layers take 60000 of the slowest ranks and 48000 of the mean. */
static struct measure_layer layers[LAYERS] = {{10000, 20000, 9000, 15000},
                                              {10000, 20000, 9000, 15000}};

static struct measure_layer first[LAYERS] = {{8000, 16000, 6000, 12000}, {800, 1600, 600, 1200}};
static struct measure_layer later[LAYERS] = {{4000, 8000, 2000, 4000}, {400, 800, 200, 400}};

static struct weft_profile explained(int64_t step_ns, struct weft_rates rates)
{
    static struct weft_layer_times times[LAYERS];
    struct weft_profile profile = {.n_layers = LAYERS, .layers = times};
    struct measure_rehearsal rehearsal = {.layers = layers,
                                          .pass_first = first,
                                          .pass_later = later,
                                          .step_ns = step_ns,
                                          .rates = rates};
    OK(weft_measure_explain(&profile, &rehearsal, step, &profile, &err));
    return profile;
}

static void check(int64_t step_ns, struct weft_rates rates, int64_t layers_ns, int32_t rate)
{
    struct weft_profile profile = explained(step_ns, rates);
    int64_t found_ns = 0;
    for (int32_t k = 0; k < LAYERS; k++)
        found_ns += profile.layers[k].forward_ns + profile.layers[k].backward_ns;
    CHECK(llabs(found_ns - layers_ns) <= 12000 / 64 + 4,
          "a step of %lld: layers take %lld, not %lld", (long long)step_ns, (long long)found_ns,
          (long long)layers_ns);
    CHECK(abs(profile.rates.compute - rate) <= 3 && profile.rates.own == rates.own,
          "a step of %lld: rate %d, not %d", (long long)step_ns, profile.rates.compute, rate);
}

/* Passes pay as much of the difference as other micro-steps: half of it here. */
static void check_passes(void)
{
    const struct weft_rates none = {0};
    const struct weft_profile profile = explained(WAITS_NS + 54000, none);
    const struct weft_level_times *at = &profile.layers[1].levels[WEFT_RECOMPUTE_NONE];
    CHECK(llabs(at->pass_first.forward_ns - 700) <= 4 &&
              llabs(at->pass_first.backward_ns - 1400) <= 8,
          "the first of a pass: %lld, %lld", (long long)at->pass_first.forward_ns,
          (long long)at->pass_first.backward_ns);
    CHECK(llabs(at->pass_later.forward_ns - 300) <= 4 &&
              llabs(at->pass_later.backward_ns - 600) <= 8,
          "later ones: %lld, %lld", (long long)at->pass_later.forward_ns,
          (long long)at->pass_later.backward_ns);
}

RANKS_TEST(explain)
{
    check_passes();
    const struct weft_rates none = {0}, half = {512, 1000}, nearly = {1000, 1000};
    check(WAITS_NS + 54000, none, 54000, 0);
    check(WAITS_NS + 50000, none, 50000, 0);
    check(1 << 20, none, 60000, 0); /* other time in a step is not the layers' */
    check(1, none, 48000, 0);
    check(WAITS_NS + 2 * 54000, half, 60000, 569); /* 60000 / 108000 */
    check(1 << 20, half, 60000, 512);
    check(1, half, 60000, 640);
    check(1, nearly, 60000, WEFT_RATE_ONE);
    struct weft_layer_times times[LAYERS] = {{0}};
    struct weft_profile profile = {.n_layers = LAYERS, .layers = times};
    struct measure_rehearsal rehearsal = {.layers = layers, .step_ns = 1};
    struct weft_error error = {0};
    CHECK(weft_measure_explain(&profile, &rehearsal, fails, NULL, &error) == WEFT_E_SYSTEM,
          "fails");
    return 0;
}
