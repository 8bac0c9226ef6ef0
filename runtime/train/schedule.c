/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/schedule.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>

#include "base/log.h"
#include "spec/schedule.h"

/* The factor of lr when `done` of the way is over: linear, or half a cosine (Loshchilov and Hutter
 * 2017, without restarts). */
static double decayed_factor(const struct weft_train *train, bool cosine, double done)
{
    double least = train->lr_schedule.min_ratio;
    double left = cosine ? 0.5 * (1 + cos(3.14159265358979323846 * done)) : 1 - done;
    return least + (1 - least) * left;
}

/* Position of step `step` between `first`, 0, and the schedule's last step, 1; at most 1. */
static double way_done(const struct weft_train *train, int64_t first, int64_t step)
{
    int64_t span = weft_train_schedule_steps(train) - first;
    double done = span > 0 ? (double)(step - first) / (double)span : 1;
    return done < 0 ? 0 : done > 1 ? 1 : done;
}

/* Steps of wsd with a falling rate. */
static int64_t count_decay(const struct weft_train *train)
{
    const int64_t given = train->lr_schedule.decay_steps;
    return given > 0 ? given : weft_train_schedule_steps(train) / 10;
}

double weft_train_lr(const struct weft_train *train, int64_t step)
{
    double lr = train->optimizer.lr;
    const int64_t warmup = train->lr_schedule.warmup_steps, decay = count_decay(train);
    const int64_t steps = weft_train_schedule_steps(train);
    if (step <= warmup) return lr * (double)step / (double)warmup;
    switch ((enum weft_lr_schedule)train->lr_schedule.type) {
    case WEFT_LR_CONSTANT:
    case WEFT_LR_SCHEDULE_COUNT:
        break;
    case WEFT_LR_COSINE:
        return lr * decayed_factor(train, true, way_done(train, warmup, step));
    case WEFT_LR_LINEAR:
        return lr * decayed_factor(train, false, way_done(train, warmup, step));
    case WEFT_LR_WSD:
        if (step <= steps - decay) return lr;
        return lr * decayed_factor(train, false, way_done(train, steps - decay, step));
    }
    return lr;
}

/* Whether the rate is to fall after the warm-up. */
static bool is_falling(const struct weft_train *train)
{
    return train->lr_schedule.type != WEFT_LR_CONSTANT && train->lr_schedule.min_ratio < 1;
}

void weft_train_warn_of_lr(const struct weft_train *train)
{
    const int64_t warmup = train->lr_schedule.warmup_steps;
    const int64_t whole = weft_train_schedule_steps(train);
    const int64_t steps = whole < train->steps ? whole : train->steps;
    const bool is_wsd = train->lr_schedule.type == WEFT_LR_WSD, falls = is_falling(train);
    if (warmup > steps)
        weft_log(WEFT_LOG_WARNING,
                 "train.lr_schedule.warmup_steps: the warm-up of %" PRId64
                 " steps is longer than the run of %" PRId64
                 " steps: the rate ends at %.3g of lr, %.3g; lower it, or raise train.steps",
                 warmup, steps, (double)steps / (double)warmup, weft_train_lr(train, steps));
    else if (warmup == steps && falls)
        weft_log(WEFT_LOG_WARNING,
                 "train.lr_schedule.warmup_steps: the warm-up takes all %" PRId64
                 " steps: the rate never falls; lower it, or raise train.steps",
                 steps);
    else if (is_wsd && falls && count_decay(train) == 0)
        weft_log(WEFT_LOG_WARNING,
                 "train.lr_schedule.decay_steps: a tenth of %" PRId64
                 " steps is no step: the rate never falls; give decay_steps",
                 steps);
    else if (is_wsd && falls && warmup > steps - count_decay(train))
        weft_log(WEFT_LOG_WARNING,
                 "train.lr_schedule.warmup_steps: the warm-up of %" PRId64
                 " steps ends within the last tenth of %" PRId64
                 " steps, in which the rate falls: it never stays at lr; lower it, or give "
                 "decay_steps",
                 warmup, steps);
    if (whole < train->steps && weft_train_lr(train, train->steps) == 0)
        weft_log(WEFT_LOG_WARNING,
                 "train.lr_schedule.steps: the rate is 0 after step %" PRId64
                 ", so the last %" PRId64 " steps change nothing; raise min_ratio",
                 whole, train->steps - whole);
}

void weft_train_tell_rate(const struct weft_train *train, const struct weft_train *before,
                          int64_t done, const char *from)
{
    const int64_t next = done + 1, whole = weft_train_schedule_steps(before);
    const double was = weft_train_lr(before, next), now = weft_train_lr(train, next);
    struct weft_train kept = *train;
    if (next > train->steps || fabs(now - was) <= 1e-9 * fabs(was)) return;
    kept.lr_schedule.steps = whole;
    const bool keeps = fabs(weft_train_lr(&kept, next) - was) <= 1e-9 * fabs(was);
    if (keeps)
        weft_log(WEFT_LOG_WARNING,
                 "%s: the learning rate of step %" PRId64 " is %.4g, %.4g at step %" PRId64
                 " before it, and would be %.4g by the schedule "
                 "of %" PRId64 " steps. To keep that schedule, and its last rate (%.4g) after it: "
                 "--set train.lr_schedule.steps=%" PRId64,
                 from, next, now, weft_train_lr(before, done), done, was, whole,
                 weft_train_lr(before, whole), whole);
    else
        weft_log(WEFT_LOG_WARNING,
                 "%s: the learning rate of step %" PRId64 " is %.4g, %.4g at step %" PRId64
                 " before it, and would be %.4g by the settings "
                 "of the checkpoint",
                 from, next, now, weft_train_lr(before, done), done, was);
}
