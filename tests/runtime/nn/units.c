/* SPDX-License-Identifier: Apache-2.0 */
/* Work on units: pieces are found at their places, and all other bytes stay untouched. */
#include "runtime/nn/units.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/numbers.h"
#include "base/rng.h"
#include "cpu/layers/subject.h"
#include "runtime/nn/backend.h"

enum { ELEMENTS = 40, PIECES = 2, TENSORS = 3 };

/* Pieces with gaps between them, which begin elsewhere in the parameters than in the state. */
static const struct weft_nn_piece pieces[PIECES] = {
    {.parameter_at = 3, .state_at = 1, .first = 0, .count = 10, .name = 11, .matrix = true},
    {.parameter_at = 20,
     .state_at = 16,
     .first = 7,
     .count = 5,
     .tensor = 2,
     .place = 1,
     .name = 12}};

static struct weft_device *device;
static struct weft_stream *stream;
static struct weft_nn *nn;
static float master[ELEMENTS], moment1[ELEMENTS], moment2[ELEMENTS], gradient[ELEMENTS];
static uint16_t narrow[ELEMENTS];
static struct weft_nn_unit unit;
static struct weft_nn_step step;

static void set_up(void)
{
    struct weft_error err = {0};
    cr_assert_eq(weft_device_open("cpu", WEFT_CLOCK_WALL, &device, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_stream_create(device, "work", 0, &stream, &err), WEFT_OK, "%s", err.text);
    nn = subject_open("auto");
    for (int i = 0; i < ELEMENTS; i++) {
        master[i] = 1 + (float)i;
        gradient[i] = 0.25f * (float)(i - 7);
    }
    unit = (struct weft_nn_unit){.parameters = narrow,
                                 .dtype = WEFT_BF16,
                                 .master = master,
                                 .gradient = gradient,
                                 .moment1 = moment1,
                                 .moment2 = moment2,
                                 .own = pieces,
                                 .n_own = PIECES,
                                 .renew = pieces,
                                 .n_renew = PIECES};
    step = (struct weft_nn_step){.adamw = {.lr = 0.5f, .eps = 1e-8f, .clip = 1}, .loss_scale = 1};
    weft_adamw_at(&step.adamw, 0.9, 0.99, 1);
}

static void tear_down(void)
{
    weft_stream_destroy(stream);
    weft_nn_close(nn);
    weft_device_close(device);
}

TestSuite(units, .init = set_up, .fini = tear_down);

static void synchronise(void)
{
    struct weft_error err = {0};
    cr_assert_eq(weft_stream_synchronise(stream, &err), WEFT_OK, "%s", err.text);
}

static bool is_in_state(int64_t element)
{
    for (int p = 0; p < PIECES; p++) {
        int64_t at = element - pieces[p].state_at;
        if (at >= 0 && at < pieces[p].count) return true;
    }
    return false;
}

Test(units, masters_are_rounded_where_parameters_lie)
{
    uint16_t expected[ELEMENTS] = {0};
    for (int p = 0; p < PIECES; p++) {
        for (int64_t i = 0; i < pieces[p].count; i++)
            expected[pieces[p].parameter_at + i] = weft_bf16_narrow(master[pieces[p].state_at + i]);
    }
    weft_nn_round(nn, stream, &unit);
    synchronise();
    cr_assert_eq(memcmp(narrow, expected, sizeof(narrow)), 0);
}

Test(units, an_update_is_of_pieces_alone)
{
    static const struct weft_nn_rule rule = {.type = WEFT_ADAMW};
    float before[ELEMENTS];
    memcpy(before, master, sizeof(before));
    weft_nn_update(nn, stream, &unit, &rule, &step);
    synchronise();
    for (int i = 0; i < ELEMENTS; i++)
        cr_assert_eq(master[i] != before[i], is_in_state(i) && gradient[i] != 0, "element %d", i);
    cr_assert_eq(narrow[3], weft_bf16_narrow(master[1]));
    cr_assert_eq(narrow[24], weft_bf16_narrow(master[20]));
}

Test(units, nothing_is_updated_where_a_step_must_stop)
{
    static const struct weft_nn_rule rule = {.type = WEFT_ADAMW};
    float before[ELEMENTS];
    memcpy(before, master, sizeof(before));
    step.stop = 1;
    weft_nn_update(nn, stream, &unit, &rule, &step);
    synchronise();
    cr_assert_eq(memcmp(before, master, sizeof(before)), 0);
    cr_assert_eq(moment1[1], 0);
}

Test(units, decay_is_of_matrices_where_vectors_are_exempt)
{
    static const struct weft_nn_rule rule = {
        .type = WEFT_ADAMW, .exempt_vectors = true, .decay = 0.5f};
    memset(gradient, 0, sizeof(gradient));
    weft_nn_update(nn, stream, &unit, &rule, &step);
    synchronise();
    cr_assert_eq(master[1], 2 - 0.5f * (0.5f * 2));
    cr_assert_eq(master[16], 17);
}

Test(units, the_norm_counts_own_elements_and_names_what_is_not_finite)
{
    uint64_t bins[WEFT_NORM_WORDS] = {0}, expected[WEFT_NORM_WORDS] = {0}, bad = 0;
    int finite;
    weft_norm_add(expected, gradient + 1, 10);
    weft_norm_add(expected, gradient + 16, 5);
    gradient[30] = NAN; /* nobody's */
    weft_nn_add_norm(nn, stream, &unit, bins, &bad);
    synchronise();
    cr_assert_eq(bad, 0);
    cr_assert_eq(weft_norm_result(bins, &finite), weft_norm_result(expected, &finite));
    gradient[17] = INFINITY;
    weft_nn_add_norm(nn, stream, &unit, bins, &bad);
    synchronise();
    cr_assert_eq(bad, 1);
}

Test(units, norms_of_tensors_stand_at_their_places)
{
    static const struct weft_nn_rule rule = {.type = WEFT_LAMB};
    uint64_t norms[3 * WEFT_NN_TENSOR_WORDS] = {0}, words[WEFT_NORM_PACKED_WORDS];
    struct weft_lamb_bins bins = {0};
    unit.norms = norms;
    weft_norm_add(bins.parameters, master + 16, 5);
    weft_norm_pack(bins.parameters, words);
    weft_nn_moments(nn, stream, &unit, &rule, &step);
    synchronise();
    cr_assert_eq(memcmp(norms + WEFT_NN_TENSOR_WORDS, words, sizeof(words)), 0);
    cr_assert_eq(norms[2 * WEFT_NN_TENSOR_WORDS], 0);
}

static void skip_without_squares(void)
{
    if (nn->backend->add_squares == NULL) cr_skip_test("no squares of tensors on this device");
}

/* Pieces of a unit come in parts, as for updates on the host. The norm is that without squares. */
Test(units, squares_of_tensors_add_up_by_tensor)
{
    uint64_t squares[TENSORS * WEFT_NORM_PACKED_WORDS] = {0}, sums[2][WEFT_NORM_WORDS] = {{0}};
    uint64_t bad = 0;
    int finite;
    skip_without_squares();
    weft_nn_add_norm(nn, stream, &unit, sums[0], &bad);
    synchronise();
    for (unit.n_own = 1; unit.own < pieces + PIECES; unit.own++) {
        weft_nn_add_squares(nn, stream, &unit, sums[1], &bad, squares);
        synchronise();
    }
    cr_assert_eq(weft_norm_result(sums[0], &finite), weft_norm_result(sums[1], &finite));
    cr_assert_eq(bad, 0);
    for (int t = 0; t < TENSORS; t++) {
        uint64_t bins[WEFT_NORM_WORDS] = {0};
        for (int p = 0; p < PIECES; p++)
            if (pieces[p].tensor == t)
                weft_norm_add(bins, gradient + pieces[p].state_at, pieces[p].count);
        cr_assert_eq(weft_norm_unpack(squares + t * WEFT_NORM_PACKED_WORDS, &finite),
                     weft_norm_result(bins, &finite), "tensor %d", t);
    }
    unit.own = pieces;
    unit.n_own = PIECES;
    gradient[17] = NAN;
    weft_nn_add_squares(nn, stream, &unit, sums[1], &bad, squares);
    synchronise();
    cr_assert_eq(bad, 1);
}

Test(units, an_update_divides_by_the_tensors_divisor)
{
    static const struct weft_nn_rule rule = {.type = WEFT_ADAM_MINI};
    float divisors[TENSORS], before[ELEMENTS];
    skip_without_squares();
    for (int t = 0; t < TENSORS; t++)
        divisors[t] = (float)(1 << t);
    memcpy(before, master, sizeof before);
    unit.divisors = divisors;
    unit.moment2 = NULL;
    weft_nn_update(nn, stream, &unit, &rule, &step);
    synchronise();
    for (int p = 0; p < PIECES; p++) {
        for (int64_t i = pieces[p].state_at; i < pieces[p].state_at + pieces[p].count; i++) {
            const double moved = 0.5 * (double)gradient[i] / (double)divisors[pieces[p].tensor];
            cr_assert(fabs((double)(before[i] - master[i]) - moved) < 1e-5, "element %d", (int)i);
        }
    }
}

Test(units, a_loss_is_split_at_the_binary_point)
{
    const double losses[] = {5.75, 0, 0x1p46, NAN};
    for (int i = 0; i < 4; i++) {
        uint64_t words[WEFT_NN_LOSS_WORDS] = {0};
        weft_nn_record_loss(nn, stream, &losses[i], NULL, words);
        synchronise();
        cr_assert_eq(words[WEFT_NN_LOSS_BAD], i >= 2);
        cr_assert_eq(words[WEFT_NN_LOSS_WHOLE], i == 0 ? 5 : 0);
        cr_assert_eq(words[WEFT_NN_LOSS_FRACTION], i == 0 ? UINT64_C(3) << 30 : 0);
    }
}

Test(units, the_first_that_is_not_finite_is_remembered)
{
    const float good[] = {1, 2}, bad[] = {1, INFINITY};
    const struct weft_nn_numbers numbers[] = {{good, 2, WEFT_F32}, {bad, 2, WEFT_F32}};
    int64_t first = INT64_MAX;
    uint32_t stop = 0;
    struct weft_nn_look look = {
        .numbers = numbers, .n_numbers = 1, .terms = 1, .place = 5, .first = &first, .stop = &stop};
    weft_nn_look(nn, stream, &look);
    synchronise();
    cr_assert(first == INT64_MAX && stop == 0);
    look.n_numbers = 2;
    weft_nn_look(nn, stream, &look);
    look.place = 4;
    weft_nn_look(nn, stream, &look);
    synchronise();
    cr_assert(first == 5 && stop == 1);
}

Test(units, initial_values_are_functions_of_their_place)
{
    float all[20], part[5];
    struct weft_nn_initial initial = {
        .init = WEFT_INIT_NORMAL, .std = 0.5, .seed = 3, .name = 9, .n = 20, .to = all};
    weft_nn_initialise(nn, stream, &initial);
    initial.first = 10;
    initial.n = 5;
    initial.to = part;
    weft_nn_initialise(nn, stream, &initial);
    synchronise();
    cr_assert_eq(memcmp(all + 10, part, sizeof(part)), 0);
    cr_assert_eq(all[3], (float)(weft_rng_normal(3, 9, 3) * 0.5));
}

/* Several threads draw parts of a large tensor. */
Test(units, initial_values_do_not_depend_on_the_number_of_threads)
{
    enum { MANY = 50001 };
    static uint16_t drawn[MANY];
    static float values[MANY];
    const struct weft_nn_options options = {.threads = 3, .gemm = "auto"};
    struct weft_nn_initial initial = {
        .init = WEFT_INIT_NORMAL, .std = 0.02, .seed = 4, .name = 9, .first = 7, .n = MANY};
    struct weft_nn *several = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_nn_open("cpu", &options, &several, &err), WEFT_OK, "%s", err.text);
    for (int dtype = 0; dtype < WEFT_DTYPE_COUNT; dtype++) {
        initial.dtype = (enum weft_dtype)dtype;
        initial.to = dtype == WEFT_F32 ? (void *)values : (void *)drawn;
        memset(initial.to, 0xff, (size_t)MANY * (size_t)weft_dtype_bytes(initial.dtype));
        weft_nn_initialise(several, stream, &initial);
        synchronise();
        for (int i = 0; i < MANY; i++) {
            const float x = (float)(weft_rng_normal(4, 9, (uint64_t)i + 7) * 0.02);
            if (dtype == WEFT_F32)
                cr_assert_eq(values[i], x, "element %d", i);
            else
                cr_assert_eq(drawn[i],
                             dtype == WEFT_BF16 ? weft_bf16_narrow(x) : weft_f16_narrow(x),
                             "element %d", i);
        }
    }
    weft_nn_close(several);
}

Test(units, hashes_are_of_own_elements_and_their_places)
{
    struct weft_nn_piece moved[PIECES] = {pieces[0], pieces[1]};
    uint64_t sum[2] = {0}, same[2] = {0}, other[2] = {0};
    struct weft_nn_unit shifted = unit;
    weft_nn_add_hash(nn, stream, &unit, sum);
    moved[0].parameter_at = 5; /* which the values are not read from */
    shifted.own = moved;
    weft_nn_add_hash(nn, stream, &shifted, same);
    synchronise();
    cr_assert_eq(memcmp(sum, same, sizeof(sum)), 0);
    moved[0].first = 1;
    weft_nn_add_hash(nn, stream, &shifted, other);
    synchronise();
    cr_assert_neq(sum[0], other[0]);
}

Test(units, frozen_parameters_of_16_bits_are_their_own_values)
{
    enum { N = 3000 };
    static uint16_t halves[N];
    static float wide[N];
    const struct weft_nn_piece whole = {.count = N, .name = 9};
    struct weft_nn_unit frozen = {.own = &whole, .n_own = 1, .renew = &whole, .n_renew = 1};
    struct weft_nn_initial initial = {
        .init = WEFT_INIT_NORMAL, .std = 0.5, .seed = 3, .name = 9, .n = N};
    for (int i = 0; i < 2; i++) {
        uint64_t sum[2] = {0}, same[2] = {0};
        initial.dtype = WEFT_F32;
        initial.to = wide;
        weft_nn_initialise(nn, stream, &initial);
        initial.dtype = frozen.dtype = i == 0 ? WEFT_BF16 : WEFT_F16;
        initial.to = frozen.parameters = halves;
        weft_nn_initialise(nn, stream, &initial);
        weft_nn_round(nn, stream, &frozen);
        weft_nn_add_hash(nn, stream, &frozen, sum);
        synchronise();
        for (int e = 0; e < N; e++) {
            const uint16_t rounded = i == 0 ? weft_bf16_narrow(wide[e]) : weft_f16_narrow(wide[e]);
            cr_assert_eq(halves[e], rounded, "element %d", e);
            wide[e] = i == 0 ? weft_bf16_widen(rounded) : weft_f16_widen(rounded);
        }
        frozen.dtype = WEFT_F32;
        frozen.parameters = wide;
        weft_nn_add_hash(nn, stream, &frozen, same);
        synchronise();
        cr_assert_eq(memcmp(sum, same, sizeof(sum)), 0);
    }
}

static uint64_t mixed_into(uint64_t word)
{
    weft_nn_mix_hash(nn, stream, master, sizeof(master), &word);
    synchronise();
    return word;
}

Test(units, a_word_tells_bytes_and_what_was_there_apart)
{
    const uint64_t first = mixed_into(7);
    cr_assert_eq(mixed_into(7), first);
    cr_assert_neq(mixed_into(8), first);
    ((unsigned char *)master)[sizeof(master) - 1] ^= 1;
    cr_assert_neq(mixed_into(7), first);
}

Test(units, numbers_are_rounded_when_they_are_loaded)
{
    const float host[3] = {1, 1.00390625f, -2};
    uint16_t to[4] = {9, 9, 9, 9};
    weft_nn_load(nn, stream, WEFT_BF16, 3, host, to);
    synchronise();
    for (int i = 0; i < 3; i++)
        cr_assert_eq(to[i], weft_bf16_narrow(host[i]));
    cr_assert_eq(to[3], 9);
}
