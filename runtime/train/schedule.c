#include <math.h>

#include "runtime/train/train.h"

double weft_train_lr(const struct weft_train *train, int64_t step)
{
    double lr = train->optimizer.lr;
    int64_t warmup = train->lr_schedule.warmup_steps;
    if (step <= warmup) return lr * (double)step / (double)warmup;
    switch ((enum weft_lr_schedule)train->lr_schedule.type) {
    case WEFT_LR_CONSTANT:
    case WEFT_LR_SCHEDULE_COUNT:
        break;
    case WEFT_LR_COSINE: {
        /* Half a cosine from lr, behind the warm-up, to min_ratio * lr at the last step
         * (Loshchilov and Hutter 2017, without restarts). */
        int64_t span = train->steps - warmup;
        double done = span > 0 ? (double)(step - warmup) / (double)span : 1;
        if (done > 1) done = 1;
        double least = train->lr_schedule.min_ratio;
        return lr * (least + (1 - least) * 0.5 * (1 + cos(3.14159265358979323846 * done)));
    }
    }
    return lr;
}
