#include <math.h>
#include <stdbool.h>

#include "runtime/train/train.h"

/* The rate over lr at `done` of the way from 1 down to the least, in a line or half a cosine
 * (Loshchilov and Hutter 2017, without restarts). */
static double fall(const struct weft_train *train, bool cosine, double done)
{
    double least = train->lr_schedule.min_ratio;
    double left = cosine ? 0.5 * (1 + cos(3.14159265358979323846 * done)) : 1 - done;
    return least + (1 - least) * left;
}

/* Where step `step` stands between step `first`, 0, and the last step, 1; 1 beyond it. */
static double way(const struct weft_train *train, int64_t first, int64_t step)
{
    int64_t span = train->steps - first;
    double done = span > 0 ? (double)(step - first) / (double)span : 1;
    return done < 0 ? 0 : done > 1 ? 1 : done;
}

double weft_train_lr(const struct weft_train *train, int64_t step)
{
    double lr = train->optimizer.lr;
    int64_t warmup = train->lr_schedule.warmup_steps, decay = train->lr_schedule.decay_steps;
    if (step <= warmup) return lr * (double)step / (double)warmup;
    switch ((enum weft_lr_schedule)train->lr_schedule.type) {
    case WEFT_LR_CONSTANT:
    case WEFT_LR_SCHEDULE_COUNT:
        break;
    case WEFT_LR_COSINE:
        return lr * fall(train, true, way(train, warmup, step));
    case WEFT_LR_LINEAR:
        return lr * fall(train, false, way(train, warmup, step));
    case WEFT_LR_WSD:
        if (decay == 0) decay = train->steps / 10;
        if (step <= train->steps - decay) return lr;
        return lr * fall(train, false, way(train, train->steps - decay, step));
    }
    return lr;
}
