#include <criterion/criterion.h>

#include "runtime/train/train.h"

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
