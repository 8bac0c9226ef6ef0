#include <criterion/criterion.h>

#include "runtime/train/train.h"

static struct weft_train schedule(int type, int64_t warmup)
{
    return (struct weft_train){
        .steps = 100, .optimizer = {.lr = 0.5}, .lr_schedule = {type, warmup, 0.1}};
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
