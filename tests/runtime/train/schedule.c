/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/schedule.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "spec/schedule.h"

static struct weft_train schedule(int type, int64_t warmup)
{
    return (struct weft_train){
        .steps = 100,
        .optimizer = {.lr = 0.5},
        .lr_schedule = {.type = type, .warmup_steps = warmup, .min_ratio = 0.1}};
}

Test(schedule, warms_up_in_a_line_that_ends_at_lr)
{
    struct weft_train train = schedule(WEFT_LR_CONSTANT, 10);
    for (int64_t step = 1; step <= 10; step++)
        cr_assert_float_eq(weft_train_lr(&train, step), 0.05 * (double)step, 1e-15);
    cr_assert_eq(weft_train_lr(&train, 11), 0.5);
    cr_assert_eq(weft_train_lr(&train, 100), 0.5);
}

Test(schedule, cosine_ends_at_its_least)
{
    struct weft_train train = schedule(WEFT_LR_COSINE, 0);
    cr_assert_float_eq(weft_train_lr(&train, 50), 0.5 * 0.55, 1e-12, "half way");
    cr_assert_float_eq(weft_train_lr(&train, 100), 0.05, 1e-12);
    cr_assert_float_eq(weft_train_lr(&train, 150), 0.05, 1e-12, "and stays there");
    for (int64_t step = 2; step <= 100; step++)
        cr_assert_lt(weft_train_lr(&train, step), weft_train_lr(&train, step - 1));
}

Test(schedule, cosine_begins_behind_the_warm_up)
{
    struct weft_train train = schedule(WEFT_LR_COSINE, 20);
    cr_assert_float_eq(weft_train_lr(&train, 10), 0.25, 1e-12);
    cr_assert_float_eq(weft_train_lr(&train, 20), 0.5, 1e-12);
    cr_assert_float_eq(weft_train_lr(&train, 60), 0.5 * 0.55, 1e-12);
    train.lr_schedule.warmup_steps = 100;
    cr_assert_float_eq(weft_train_lr(&train, 100), 0.5, 1e-12, "nothing is left of the cosine");
}

Test(schedule, linear_falls_evenly)
{
    struct weft_train train = schedule(WEFT_LR_LINEAR, 20);
    cr_assert_float_eq(weft_train_lr(&train, 20), 0.5, 1e-12);
    cr_assert_float_eq(weft_train_lr(&train, 60), 0.5 * 0.55, 1e-12);
    cr_assert_float_eq(weft_train_lr(&train, 100), 0.05, 1e-12);
    double fall = weft_train_lr(&train, 20) - weft_train_lr(&train, 21);
    for (int64_t step = 21; step <= 100; step++) {
        double by = weft_train_lr(&train, step - 1) - weft_train_lr(&train, step);
        cr_assert_float_eq(by, fall, 1e-12);
    }
}

Test(schedule, wsd_is_flat_between_warm_up_and_decay)
{
    struct weft_train train = schedule(WEFT_LR_WSD, 10);
    cr_assert_float_eq(weft_train_lr(&train, 5), 0.25, 1e-12);
    for (int64_t step = 10; step <= 90; step++)
        cr_assert_eq(weft_train_lr(&train, step), 0.5, "a tenth decays by default");
    cr_assert_float_eq(weft_train_lr(&train, 95), 0.5 * 0.55, 1e-12);
    cr_assert_float_eq(weft_train_lr(&train, 100), 0.05, 1e-12);
    train.lr_schedule.decay_steps = 50;
    cr_assert_eq(weft_train_lr(&train, 50), 0.5);
    cr_assert_float_eq(weft_train_lr(&train, 75), 0.5 * 0.55, 1e-12);
    cr_assert_float_eq(weft_train_lr(&train, 100), 0.05, 1e-12);
    train.lr_schedule.decay_steps = 0;
    train.steps = 9;
    train.lr_schedule.warmup_steps = 0;
    cr_assert_eq(weft_train_lr(&train, 9), 0.5, "too short a run for a tenth");
}

static char warned_text[1024];

static void keep_warning(void *context, enum weft_log_level level, const char *text)
{
    (void)context;
    cr_assert_eq(level, WEFT_LOG_WARNING);
    cr_assert_eq(warned_text[0], '\0', "one warning is enough: %s", text);
    snprintf(warned_text, sizeof warned_text, "%s", text);
}

/* The warning; "" for none. */
static const char *warning_of(int type, int64_t warmup, int64_t decay, int64_t steps)
{
    struct weft_train train = schedule(type, warmup);
    train.lr_schedule.decay_steps = decay;
    train.steps = steps;
    warned_text[0] = '\0';
    weft_log_set_sink(keep_warning, NULL);
    weft_train_warn_of_lr(&train);
    weft_log_set_sink(NULL, NULL);
    return warned_text;
}

Test(schedule, a_rate_that_never_rises_or_never_falls_is_warned_of)
{
    static const struct {
        int64_t warmup, decay, steps;
        const char *says[WEFT_LR_SCHEDULE_COUNT]; /* NULL: nothing */
    } cases[] = {
        {100, 0, 99, {"0.99 of lr", "0.99 of lr", "0.99 of lr", "0.99 of lr"}},
        {100, 0, 100, {NULL, "never falls", "never falls", "never falls"}},
        {99, 0, 100, {NULL, NULL, NULL, "never stays at lr"}},
        {90, 0, 100, {NULL}},
        {99, 1, 100, {NULL}},
        {0, 0, 9, {NULL, NULL, NULL, "give decay_steps"}},
        {0, 0, 10, {NULL}},
        {0, 1, 9, {NULL}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int type = 0; type < WEFT_LR_SCHEDULE_COUNT; type++) {
            const char *said = warning_of(type, cases[i].warmup, cases[i].decay, cases[i].steps);
            const char *wanted = cases[i].says[type];
            if (wanted == NULL)
                cr_assert_str_empty(said, "case %zu, type %d: %s", i, type, said);
            else
                cr_assert(strstr(said, wanted), "case %zu, type %d: %s", i, type, said);
        }
    }
}

Test(schedule, what_is_not_to_fall_is_not_said_to)
{
    struct weft_train train = schedule(WEFT_LR_COSINE, 100);
    train.lr_schedule.min_ratio = 1;
    warned_text[0] = '\0';
    weft_log_set_sink(keep_warning, NULL);
    weft_train_warn_of_lr(&train);
    weft_log_set_sink(NULL, NULL);
    cr_assert_str_empty(warned_text);
}

/* The first steps are those of the old schedule, and the others keep its last rate. */
Test(schedule, of_its_own_length_goes_on_at_its_end)
{
    for (int type = 0; type < WEFT_LR_SCHEDULE_COUNT; type++) {
        const struct weft_train whole = schedule(type, 7);
        struct weft_train longer = whole;
        longer.steps = 250;
        longer.lr_schedule.steps = 100;
        for (int64_t step = 1; step <= 100; step++)
            cr_assert_eq(weft_train_lr(&longer, step), weft_train_lr(&whole, step));
        for (int64_t step = 100; step <= 250; step++)
            cr_assert_eq(weft_train_lr(&longer, step), weft_train_lr(&whole, 100));
    }
}

static const char *rate_told(const struct weft_train *train, const struct weft_train *before,
                             int64_t done)
{
    warned_text[0] = '\0';
    weft_log_set_sink(keep_warning, NULL);
    weft_train_tell_rate(train, before, done, "step-90");
    weft_log_set_sink(NULL, NULL);
    return warned_text;
}

Test(schedule, a_rate_that_jumps_is_told_with_the_key_that_keeps_it)
{
    const struct weft_train before = schedule(WEFT_LR_COSINE, 0);
    struct weft_train now = before;
    cr_assert_str_empty(rate_told(&now, &before, 90));
    now.steps = 200;
    const char *told = rate_told(&now, &before, 90);
    cr_assert(strstr(told, "step-90: the learning rate of step 91 is 0.3067, 0.06101 at step 90 "
                           "before it, and would be 0.05893 by the schedule of 100 steps"),
              "%s", told);
    cr_assert(strstr(told, "its last rate (0.05) after it: --set train.lr_schedule.steps=100"),
              "%s", told);
    now.lr_schedule.steps = 100;
    cr_assert_str_empty(rate_told(&now, &before, 90), "the advice works");
    cr_assert_str_empty(rate_told(&now, &before, 100), "also at the end");
    now.optimizer.lr = 0.25;
    told = rate_told(&now, &before, 90);
    cr_assert(strstr(told, "by the settings of the checkpoint") && !strstr(told, "--set"), "%s",
              told);
    const struct weft_train constant = schedule(WEFT_LR_CONSTANT, 10);
    now = constant;
    now.steps = 900;
    cr_assert_str_empty(rate_told(&now, &constant, 90), "a constant rate does not jump");
}
