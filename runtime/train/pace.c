/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/pace.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "runtime/measure/measure.h"

struct sums {
    int64_t compute_ns, window_ns;
    struct weft_link_sums links;
};

void weft_pace_init(struct weft_pace *pace, int64_t least_ns, int32_t ranks_per_node,
                    int64_t planned_ns)
{
    *pace = (struct weft_pace){
        .least_ns = least_ns,
        .ranks_per_node = ranks_per_node,
        .planned_ns = planned_ns,
        .start_ns = weft_clock_now_ns(),
        .suspect = -1,
    };
}

void weft_pace_finish(struct weft_pace *pace)
{
    free(pace->traffic);
    pace->traffic = NULL;
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

static void judge_compute(struct weft_pace *pace, const struct sums *all, int32_t ranks,
                          int64_t *scratch, struct weft_pace_finding *out)
{
    double times;
    int32_t suspect = find_slowest(all, ranks, scratch, &times);
    if (times < WEFT_PACE_FACTOR) suspect = -1;
    const bool again = suspect >= 0 && suspect == pace->suspect;
    if (again && pace->steps >= pace->warn_after) {
        out->slow = suspect;
        out->times = times;
        pace->warn_after = 4 * pace->steps;
    }
    pace->suspect = suspect;
}

/* A host that hardly computes sends slowly too, and all collectives wait for it. */
static bool is_of_suspect(const struct weft_pace *pace, const struct weft_link_finding *found)
{
    const int32_t node = pace->suspect / pace->ranks_per_node;
    return pace->suspect >= 0 &&
           (found->fault == WEFT_LINK_OF_ALL || found->from == node || found->to == node);
}

static enum weft_status judge_links(struct weft_pace *pace, const struct sums *all, int32_t ranks,
                                    int64_t *scratch, struct weft_pace_finding *out,
                                    struct weft_error *err)
{
    struct weft_link_sums *links = calloc((size_t)ranks, sizeof *links);
    if (links == NULL) return weft_fail_memory(err, "the ranks' pace");
    for (int32_t r = 0; r < ranks; r++)
        links[r] = all[r].links;
    struct weft_link_finding found =
        weft_links_judge(links, ranks, pace->ranks_per_node, all[0].window_ns,
                         pace->window_steps * pace->planned_ns, scratch);
    if (is_of_suspect(pace, &found)) found = (struct weft_link_finding){.fault = WEFT_LINK_FINE};
    const bool again =
        found.fault != WEFT_LINK_FINE && weft_links_agree(&found, &pace->suspected_link);
    if (again && pace->steps >= pace->warn_links_after) {
        out->link = found;
        pace->warn_links_after = 4 * pace->steps;
    }
    const bool keeps = found.fault == WEFT_LINK_FINE && !pace->was_fine;
    pace->was_fine = found.fault == WEFT_LINK_FINE;
    if (!keeps) pace->suspected_link = found;
    free(links);
    return WEFT_OK;
}

/* Windows end by rank 0's clock, so at the same step on all ranks. */
static enum weft_status judge_window(struct weft_pace *pace, const struct sums *all, int32_t ranks,
                                     int64_t *scratch, struct weft_pace_finding *out,
                                     struct weft_error *err)
{
    if (all[0].window_ns < pace->least_ns) return WEFT_OK;
    judge_compute(pace, all, ranks, scratch, out);
    WEFT_TRY(judge_links(pace, all, ranks, scratch, out, err));
    pace->start_ns = weft_clock_now_ns();
    pace->compute_ns = pace->moving_ns = pace->window_steps = 0;
    memset(pace->traffic, 0, (size_t)ranks * sizeof *pace->traffic);
    return WEFT_OK;
}

static enum weft_status read_traffic(struct weft_comm *comm, struct weft_comm_traffic **out,
                                     int64_t *moving_ns, struct weft_error *err)
{
    *out = calloc((size_t)weft_comm_ranks(comm), sizeof **out);
    if (*out == NULL) return weft_fail_memory(err, "the ranks' pace");
    weft_comm_take_traffic(comm, *out, moving_ns);
    return WEFT_OK;
}

enum weft_status weft_pace_pause(struct weft_pace *pace, struct weft_comm *comm,
                                 struct weft_error *err)
{
    struct weft_comm_traffic *latest = NULL;
    int64_t moving_ns;
    WEFT_TRY(read_traffic(comm, &latest, &moving_ns, err));
    if (pace->traffic == NULL) {
        pace->traffic = latest;
        pace->moving_ns = moving_ns;
        return WEFT_OK;
    }
    for (int32_t r = 0; r < weft_comm_ranks(comm); r++) {
        pace->traffic[r].bytes += latest[r].bytes;
        pace->traffic[r].ns += latest[r].ns;
    }
    pace->moving_ns += moving_ns;
    free(latest);
    return WEFT_OK;
}

enum weft_status weft_pace_go_on(struct weft_comm *comm, struct weft_error *err)
{
    struct weft_comm_traffic *left_out = NULL;
    int64_t moving_ns;
    WEFT_TRY(read_traffic(comm, &left_out, &moving_ns, err));
    free(left_out);
    return WEFT_OK;
}

static enum weft_status compare_ranks(struct weft_pace *pace, struct weft_comm *comm,
                                      struct weft_pace_finding *out, struct weft_error *err)
{
    const int32_t ranks = weft_comm_ranks(comm);
    struct sums mine = {pace->compute_ns, weft_clock_now_ns() - pace->start_ns, {0}};
    struct sums *all = calloc((size_t)ranks, sizeof *all);
    int64_t *scratch = calloc((size_t)ranks, sizeof *scratch);
    enum weft_status status = all != NULL && scratch != NULL
                                  ? weft_pace_pause(pace, comm, err)
                                  : weft_fail_memory(err, "the ranks' pace");
    if (status == WEFT_OK) {
        weft_links_sum(pace->traffic, pace->moving_ns, weft_comm_rank(comm), ranks,
                       pace->ranks_per_node, scratch, &mine.links);
        status = weft_comm_exchange(comm, &mine, sizeof mine, all, err);
    }
    if (status == WEFT_OK) status = judge_window(pace, all, ranks, scratch, out, err);
    free(scratch);
    free(all);
    return status;
}

enum weft_status weft_pace_note(struct weft_pace *pace, struct weft_comm *comm, int64_t compute_ns,
                                bool meets, struct weft_pace_finding *out, struct weft_error *err)
{
    *out = (struct weft_pace_finding){.slow = -1};
    if (weft_comm_ranks(comm) == 1) return WEFT_OK;
    pace->compute_ns += compute_ns;
    pace->window_steps++;
    pace->steps++;
    pace->due |= pace->steps % WEFT_PACE_STEPS == 0;
    if (!pace->due || !meets) return WEFT_OK;
    pace->due = false;
    return compare_ranks(pace, comm, out, err);
}
