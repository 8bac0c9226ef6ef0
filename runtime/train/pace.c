#include "runtime/train/pace.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "runtime/measure/measure.h"

struct sums {
    int64_t compute_ns, window_ns;
};

void weft_pace_init(struct weft_pace *pace, int64_t least_ns)
{
    *pace = (struct weft_pace){
        .least_ns = least_ns,
        .start_ns = weft_clock_now_ns(),
        .suspect = -1,
    };
}

/* The rank with the longest compute; *times is its factor over the others' median. */
static int32_t find_slowest(const struct sums *all, int32_t ranks, int64_t *others, double *times)
{
    int32_t slowest = 0, n = 0;
    for (int32_t r = 1; r < ranks; r++) {
        if (all[r].compute_ns > all[slowest].compute_ns) slowest = r;
    }
    for (int32_t r = 0; r < ranks; r++) {
        if (r != slowest) others[n++] = all[r].compute_ns;
    }
    int64_t usual_ns = weft_measure_median(others, n);
    *times = (double)all[slowest].compute_ns / (double)(usual_ns > 0 ? usual_ns : 1);
    return slowest;
}

/* Windows end by rank 0's clock, so at the same step on all ranks. */
static void judge_window(struct weft_pace *pace, const struct sums *all, int32_t ranks,
                         int64_t *others, int32_t *slow, double *times)
{
    if (all[0].window_ns < pace->least_ns) return;
    int32_t suspect = find_slowest(all, ranks, others, times);
    if (*times < WEFT_PACE_FACTOR) suspect = -1;
    bool again = suspect >= 0 && suspect == pace->suspect;
    if (again && pace->steps >= pace->warn_after) {
        *slow = suspect;
        pace->warn_after = 4 * pace->steps;
    }
    pace->suspect = suspect;
    pace->start_ns = weft_clock_now_ns();
    pace->compute_ns = 0;
}

static enum weft_status compare_ranks(struct weft_pace *pace, struct weft_comm *comm, int32_t *slow,
                                      double *times, struct weft_error *err)
{
    size_t ranks = (size_t)weft_comm_ranks(comm);
    const struct sums mine = {pace->compute_ns, weft_clock_now_ns() - pace->start_ns};
    struct sums *all = calloc(ranks, sizeof *all);
    int64_t *others = calloc(ranks, sizeof *others);
    enum weft_status status = all != NULL && others != NULL
                                  ? weft_comm_exchange(comm, &mine, sizeof mine, all, err)
                                  : weft_fail_memory(err, "the ranks' pace");
    if (status == WEFT_OK) judge_window(pace, all, (int32_t)ranks, others, slow, times);
    free(others);
    free(all);
    return status;
}

enum weft_status weft_pace_note(struct weft_pace *pace, struct weft_comm *comm, int64_t compute_ns,
                                int32_t *slow, double *times, struct weft_error *err)
{
    *slow = -1;
    if (weft_comm_ranks(comm) == 1) return WEFT_OK;
    pace->compute_ns += compute_ns;
    pace->steps++;
    return pace->steps % WEFT_PACE_STEPS == 0 ? compare_ranks(pace, comm, slow, times, err)
                                              : WEFT_OK;
}
