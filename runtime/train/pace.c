#include "runtime/train/pace.h"

#include <stdlib.h>

#include "runtime/measure/measure.h"

void weft_pace_init(struct weft_pace *pace)
{
    *pace = (struct weft_pace){.suspect = -1};
}

/* The rank with the largest median, and how many times the median of the others that is. */
static int32_t find_slowest(const int64_t *medians, int32_t ranks, int64_t *others, double *times)
{
    int32_t slowest = 0, n = 0;
    for (int32_t r = 1; r < ranks; r++) {
        if (medians[r] > medians[slowest]) slowest = r;
    }
    for (int32_t r = 0; r < ranks; r++) {
        if (r != slowest) others[n++] = medians[r];
    }
    int64_t usual_ns = weft_measure_median(others, n);
    *times = (double)medians[slowest] / (double)(usual_ns > 0 ? usual_ns : 1);
    return slowest;
}

static enum weft_status compare(struct weft_pace *pace, struct weft_comm *comm, int32_t *slow,
                                double *times, struct weft_error *err)
{
    int32_t ranks = weft_comm_ranks(comm);
    int64_t sorted[WEFT_PACE_STEPS];
    int64_t *medians = calloc((size_t)ranks, 2 * sizeof *medians);
    if (medians == NULL) return weft_fail_memory(err, "the ranks' pace");
    for (int i = 0; i < WEFT_PACE_STEPS; i++)
        sorted[i] = pace->compute_ns[i];
    int64_t median_ns = weft_measure_median(sorted, WEFT_PACE_STEPS);
    enum weft_status status = weft_comm_exchange(comm, &median_ns, sizeof median_ns, medians, err);
    if (status == WEFT_OK) {
        int32_t suspect = find_slowest(medians, ranks, medians + ranks, times);
        if (*times < WEFT_PACE_FACTOR) suspect = -1;
        bool again = suspect >= 0 && suspect == pace->suspect;
        if (again && pace->noted >= pace->warn_after) {
            *slow = suspect;
            pace->warn_after = 4 * pace->noted;
        }
        pace->suspect = suspect;
    }
    free(medians);
    return status;
}

enum weft_status weft_pace_note(struct weft_pace *pace, struct weft_comm *comm, int64_t compute_ns,
                                int32_t *slow, double *times, struct weft_error *err)
{
    *slow = -1;
    if (weft_comm_ranks(comm) == 1) return WEFT_OK;
    pace->compute_ns[pace->noted++ % WEFT_PACE_STEPS] = compute_ns;
    return pace->noted % WEFT_PACE_STEPS == 0 ? compare(pace, comm, slow, times, err) : WEFT_OK;
}
