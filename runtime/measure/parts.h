/* What the files of this folder share. Measuring has two halves: benches time one operation at many
 * sizes, the rehearsal runs real steps of the model through the executor. */
#ifndef WEFT_RUNTIME_MEASURE_PARTS_H
#define WEFT_RUNTIME_MEASURE_PARTS_H

#include "base/lanes.h"
#include "base/pool.h"
#include "program/program.h"
#include "program/trace.h"
#include "runtime/measure/measure.h"
#include "spec/profile/profile.h"

/* Points of a curve while it is measured. */
enum { MEASURE_POINTS = 40 };
struct measure_curve {
    int32_t n;
    int64_t x[MEASURE_POINTS], ns[MEASURE_POINTS];
};

struct measure_benches {
    struct measure_curve collectives[WEFT_COLLECTIVE_COUNT];
    struct measure_curve update, norm;
};

/* Times of every instruction of one step on one rank. A collective is under way from when the
 * channel is free and the last rank is ready for it until the first rank knows that it is over: so
 * a thread that sleeps too long costs the channel what it costs the step, and waiting for a rank
 * that still computes costs it nothing. A MARK takes no time. */
struct measure_times {
    int64_t *from_ns, *to_ns;
    int64_t *beside_ns; /* of this time, while the other stream worked too */
};

/* What streams lose by each other in one step, summed over instructions and ranks. */
struct measure_slowing {
    int64_t longer_ns[WEFT_STREAM_COUNT]; /* than alone */
    int64_t beside_ns[WEFT_STREAM_COUNT]; /* while the other stream worked */
};

/* Times of one layer of a key: the slowest rank's in each step, which may be another one each time;
 * and the mean over ranks. */
struct measure_layer {
    int64_t forward_ns, backward_ns, mean_forward_ns, mean_backward_ns;
};

/* Times of what real steps do. With contention of serialised ones, but for step_ns. */
struct measure_rehearsal {
    struct measure_layer *layers; /* the caller's, [profile->n_layers] of the planned profile */
    int64_t step_ns;              /* of a whole step, overlapped */
    int64_t update_ns;            /* of all units */
    int64_t norm_ns, agree_ns;
    int64_t transfer_ns[WEFT_COLLECTIVE_COUNT]; /* of all blocks of a kind; 0 when there are none */
    /* The same as the benches' curves expect it. */
    int64_t update_expected_ns, norm_expected_ns, transfer_expected_ns[WEFT_COLLECTIVE_COUNT];
    int64_t base_bytes;
    struct weft_rates rates; /* 0 when they were not asked for */
};

/* Collective: values[i] becomes the most that any rank has. */
WEFT_MUST_USE enum weft_status weft_measure_most(struct weft_comm *comm, int64_t *values, int32_t n,
                                                 struct weft_error *err);

/* Collective: values[i] becomes the mean over ranks. */
WEFT_MUST_USE enum weft_status weft_measure_mean(struct weft_comm *comm, int64_t *values, int32_t n,
                                                 struct weft_error *err);

/* benches.c: collective. */
WEFT_MUST_USE enum weft_status weft_measure_run_benches(const struct weft_measure_options *options,
                                                        struct measure_benches *out,
                                                        struct weft_error *err);

/* rehearsal.c: collective. `profile` has the benches' curves and a line for every layer key; it and
 * the options must outlive the rehearsals. A turn is a step of the model; with options->contention
 * a step as it is and the same serialised, which gives the times: the machine's speed drifts, and
 * what the two differ by is what streams take from each other. Base memory is that of the first. */
struct measure_rehearsals;
WEFT_MUST_USE enum weft_status weft_measure_rehearsals_create(
    const struct weft_measure_options *options, const struct weft_profile *profile,
    struct measure_rehearsals **out, struct weft_error *err);
void weft_measure_rehearsals_destroy(struct measure_rehearsals *both); /* accepts NULL */
/* Turns that are wanted now, or fewer where steps are long. Before the first turn a first number;
 * after that many, more where the times of steps differ much (weft_measure_more_rounds). Every rank
 * gets the same. A number of turns that the options give stays. */
WEFT_MUST_USE enum weft_status weft_measure_rehearsals_rounds(const struct measure_rehearsals *both,
                                                              int32_t *rounds,
                                                              struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_measure_rehearsals_turn(struct measure_rehearsals *both,
                                                            struct weft_error *err);
/* Once, after at least one turn. */
WEFT_MUST_USE enum weft_status weft_measure_rehearsals_finish(struct measure_rehearsals *both,
                                                              struct measure_rehearsal *out,
                                                              struct weft_error *err);

/* rehearsal_plan.c. The plan that rehearsals run, and what the simulator says of its step. */
WEFT_MUST_USE enum weft_status weft_measure_rehearsal_plan(const struct weft_problem *problem,
                                                           struct weft_plan **out,
                                                           struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_measure_rehearsed_step(const struct weft_config *config,
                                                           const struct weft_profile *profile,
                                                           int64_t *step_ns,
                                                           struct weft_error *err);

/* repeat.c. The middle half of n times, from its least to its most, in thousandths of the median;
 * the times are sorted. 0 of none. */
int64_t weft_measure_spread(int64_t *values, int64_t n);
/* Turns to make in all, after `done` with this spread: as many again while it is above 100
 * thousandths, `most` at most, and never less than `done`. */
int32_t weft_measure_more_rounds(int32_t done, int32_t most, int64_t spread);

/* explain.c. Sets the profile's layer times and rates. Where ranks meet at every slot, a step takes
 * what the slowest of each slot does; where they run ahead of each other, who is slow in one slot
 * may catch up in the next. How much of it a step with overlap pays, the rehearsal's own step says:
 * from all to nothing, the most with which the step that `step` gives of the profile is no longer.
 */
typedef enum weft_status measure_step_fn(void *context, int64_t *step_ns, struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_measure_explain(struct weft_profile *profile,
                                                    const struct measure_rehearsal *rehearsal,
                                                    measure_step_fn *step, void *context,
                                                    struct weft_error *err);

/* contention.c. Adds dependencies, in issue order, such that no instruction computes while a
 * collective is under way. All else stays as it is: addresses, and lives, which are now longer than
 * they need be. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_measure_serialise(struct weft_program *program,
                                                      struct weft_error *err);
/* When a rank was ready for each collective, that is when all that it depends on was over, and when
 * it knew that it was over; 0 of other instructions. Arrays are [n_instructions]. */
void weft_measure_read_channel(const struct weft_program *program, const struct weft_trace *trace,
                               int64_t *ready_ns, int64_t *over_ns);
/* With the latest of all ranks' ready_ns and the earliest of their over_ns. */
void weft_measure_read_times(const struct weft_program *program, const struct weft_trace *trace,
                             const int64_t *ready_ns, const int64_t *over_ns,
                             struct measure_times *out);
/* Adds one rank's. Only instructions that ran beside others count: the rest is noise. */
void weft_measure_add_times(const struct weft_program *program, const struct measure_times *alone,
                            const struct measure_times *beside, struct measure_slowing *total);
/* Rates that a problem takes: full speed where nothing ran beside, each in its range, and if
 * streams did worse than taking turns, in their proportion but as turns. */
struct weft_rates weft_measure_rates(const struct measure_slowing *total);

#endif
