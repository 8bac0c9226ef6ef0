/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of this folder. Measuring has two parts: benches time one
 * operation at many sizes, and the rehearsal runs real steps of the model on the executor. */
#ifndef WEFT_RUNTIME_MEASURE_PARTS_H
#define WEFT_RUNTIME_MEASURE_PARTS_H

#include "base/lanes.h"
#include "base/pool.h"
#include "program/program.h"
#include "program/trace.h"
#include "runtime/measure/options.h"
#include "spec/profile/profile.h"

/* Points of a measured curve. */
enum { MEASURE_POINTS = 40 };
struct measure_curve {
    int32_t n;
    int64_t x[MEASURE_POINTS], ns[MEASURE_POINTS];
};

struct measure_benches {
    struct measure_curve collectives[WEFT_COLLECTIVE_COUNT];
    struct measure_curve levels[WEFT_LINK_LEVELS]; /* empty without nodes of several ranks */
    struct measure_curve update, norm;
};

/* Times of all instructions of one step on one rank. A collective begins when the channel is free
 * and the last rank is ready. It ends when the first rank knows that it is over. So the channel's
 * time includes a thread that sleeps too long, as the step's does, but not the wait for a computing
 * rank. A MARK takes no time. */
struct measure_times {
    int64_t *from_ns, *to_ns;
    int64_t *beside_ns; /* of this time, while the other stream worked too */
};

/* Time that streams lose to each other in one step, summed over instructions and ranks. */
struct measure_slowing {
    int64_t longer_ns[WEFT_STREAM_COUNT]; /* than alone */
    int64_t beside_ns[WEFT_STREAM_COUNT]; /* while the other stream worked */
};

/* Times of one layer of a key: those of each step's slowest rank, and the mean over ranks. */
struct measure_layer {
    int64_t forward_ns, backward_ns, mean_forward_ns, mean_backward_ns;
};

/* Times of real steps. With contention these are serialised steps, except for step_ns. */
struct measure_rehearsal {
    struct measure_layer *layers; /* of the caller, [weft_measure_rows] */
    /* In a pass of all micro-steps through one layer, the first micro-step and the mean of the
     * later ones; of the caller, as many, or NULL. 0: not measured. */
    struct measure_layer *pass_first, *pass_later;
    int64_t *compute_ns; /* of the caller, [ranks]: each rank's forward and backward */
    int64_t step_ns;     /* of a whole step, overlapped */
    int64_t update_ns;   /* of all units */
    int64_t norm_ns, agree_ns;
    int64_t transfer_ns[WEFT_COLLECTIVE_COUNT]; /* of all blocks of a kind; 0 if there are none */
    /* The same times by the benches' curves. */
    int64_t update_expected_ns, norm_expected_ns, transfer_expected_ns[WEFT_COLLECTIVE_COUNT];
    int64_t base_bytes;
    struct weft_rates rates; /* 0 if not requested */
};

/* Rows of a rehearsal: the keys of the profile at each level of recomputation. */
static inline int32_t weft_measure_rows(const struct weft_profile *profile)
{
    return profile->n_layers * WEFT_RECOMPUTE_COUNT;
}

/* Replaces each value by the maximum over ranks; every rank must call it. */
WEFT_MUST_USE enum weft_status weft_measure_most(struct weft_comm *comm, int64_t *values, int32_t n,
                                                 struct weft_error *err);

/* Replaces each value by the sum over ranks; every rank must call it. */
WEFT_MUST_USE enum weft_status weft_measure_sum(struct weft_comm *comm, int64_t *values, int32_t n,
                                                struct weft_error *err);

/* Replaces each value by the mean over ranks; every rank must call it. */
WEFT_MUST_USE enum weft_status weft_measure_mean(struct weft_comm *comm, int64_t *values, int32_t n,
                                                 struct weft_error *err);

/* benches.c. Every rank must call it. */
WEFT_MUST_USE enum weft_status weft_measure_run_benches(const struct weft_measure_options *options,
                                                        struct measure_benches *out,
                                                        struct weft_error *err);

/* rehearsal.c. Every rank must make each call. `profile` has the benches' curves and a line for
 * every layer key. It and the options must outlive the rehearsals. A turn is one step of the model.
 * With options->contention a turn is a normal and a serialised step, because the machine's speed
 * drifts. The serialised one gives the times, and their difference is the streams' contention. Base
 * memory is the normal step's. */
struct measure_rehearsals;
WEFT_MUST_USE enum weft_status weft_measure_rehearsals_create(
    const struct weft_measure_options *options, const struct weft_profile *profile,
    struct measure_rehearsals **out, struct weft_error *err);
void weft_measure_rehearsals_destroy(struct measure_rehearsals *both); /* accepts NULL */
/* Writes the number of turns to make, equal on all ranks, and fewer if steps are long. Before the
 * first turn it is an initial number. After these turns it grows if the times of steps vary much
 * (weft_measure_more_rounds). A number in the options is kept. */
WEFT_MUST_USE enum weft_status weft_measure_rehearsals_rounds(const struct measure_rehearsals *both,
                                                              int32_t *rounds,
                                                              struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_measure_rehearsals_turn(struct measure_rehearsals *both,
                                                            struct weft_error *err);
/* Writes the results. Call it once, after at least one turn. If the config's micro-steps may take
 * turns by layers, it ends the rehearsals and then rehearses that order, if its arena fits. */
WEFT_MUST_USE enum weft_status weft_measure_rehearsals_finish(struct measure_rehearsals *both,
                                                              struct measure_rehearsal *out,
                                                              struct weft_error *err);

/* network.c. Measures every pair of hosts in rounds of matchings; every rank must call it. A swap
 * has 256 KiB to 8 MiB a rank, so that it usually takes 20 ms. `out` stays as it is if there is one
 * host, or if the communicator has only collectives. */
WEFT_MUST_USE enum weft_status weft_measure_network(const struct weft_measure_options *options,
                                                    struct weft_pool *pool,
                                                    struct weft_profile_network *out,
                                                    struct weft_error *err);
/* Adds the compute of each host, its slowest rank's, to a network that was measured. */
WEFT_MUST_USE enum weft_status weft_measure_hosts_compute(const int64_t *compute_ns,
                                                          int32_t ranks_per_node,
                                                          struct weft_pool *pool,
                                                          struct weft_profile_network *network,
                                                          struct weft_error *err);

/* rehearsal_plan.c. The rehearsal's plan, and its simulated step. */
WEFT_MUST_USE enum weft_status weft_measure_rehearsal_plan(const struct weft_config *config,
                                                           const struct weft_problem *problem,
                                                           struct weft_plan **out,
                                                           struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_measure_rehearsed_step(const struct weft_config *config,
                                                           const struct weft_profile *profile,
                                                           int64_t *step_ns,
                                                           struct weft_error *err);

/* repeat.c. Width of the middle half of n times, in thousandths of the median. It sorts the times.
 * 0 if there are none. */
int64_t weft_measure_spread(int64_t *values, int64_t n);
/* Total number of turns after `done` turns with this spread. It doubles while the spread is above
 * 100 thousandths, up to `most`, and is never less than `done`. */
int32_t weft_measure_more_rounds(int32_t done, int32_t most, int64_t spread);

/* explain.c. Sets the profile's times of layers and its rates. If ranks wait for one another at
 * every slot, a step takes the slowest rank's time of each slot. If they run ahead, a rank that is
 * slow in one slot may catch up in the next. The rehearsal's own step decides the share of the
 * difference that a step pays: the largest with which `step` predicts no longer step. */
typedef enum weft_status measure_step_fn(void *context, int64_t *step_ns, struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_measure_explain(struct weft_profile *profile,
                                                    const struct measure_rehearsal *rehearsal,
                                                    measure_step_fn *step, void *context,
                                                    struct weft_error *err);

/* contention.c. Adds dependencies, in issue order, so that no instruction computes during a
 * collective. Addresses and lives stay; lives are then longer than needed. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_measure_serialise(struct weft_program *program,
                                                      struct weft_error *err);
/* Writes when this rank was ready for each collective (all its dependencies were done), and when it
 * knew that the collective was over. Other instructions get 0. Arrays are [n_instructions]. */
void weft_measure_read_channel(const struct weft_program *program, const struct weft_trace *trace,
                               int64_t *ready_ns, int64_t *over_ns);
/* Writes the times of a step from the latest ready_ns and the earliest over_ns of all ranks. */
void weft_measure_read_times(const struct weft_program *program, const struct weft_trace *trace,
                             const int64_t *ready_ns, const int64_t *over_ns,
                             struct measure_times *out);
/* Adds one rank's times. Instructions without overlap are left out as noise. */
void weft_measure_add_times(const struct weft_program *program, const struct measure_times *alone,
                            const struct measure_times *beside, struct measure_slowing *total);
/* Rates for a problem, each in its range: full speed without overlap. If the streams together were
 * slower than in turns, rates are scaled to those of turns. */
struct weft_rates weft_measure_rates(const struct measure_slowing *total);

#endif
