/* What the files of this folder share. Measuring has two halves: benches time one operation at many
 * sizes, the rehearsal runs real steps of the model through the executor. */
#ifndef WEFT_RUNTIME_MEASURE_PARTS_H
#define WEFT_RUNTIME_MEASURE_PARTS_H

#include "base/lanes.h"
#include "base/pool.h"
#include "plan/program.h"
#include "plan/trace.h"
#include "runtime/measure/measure.h"
#include "spec/profile.h"

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

/* Of every instruction, medians over rounds. Of a MARK 0. */
struct measure_times {
    int64_t *ns;        /* of a collective: from the last rank's arrival */
    int64_t *beside_ns; /* of these, while the other stream worked too */
};

/* What streams lose by each other, summed over instructions and ranks. */
struct measure_slowing {
    int64_t longer_ns[WEFT_STREAM_COUNT]; /* than alone */
    int64_t beside_ns[WEFT_STREAM_COUNT]; /* while the other stream worked */
};

/* Times of what real steps do. Arrays are the caller's, [profile->n_layers] of the profile that
 * the rehearsal was planned with. */
struct measure_rehearsal {
    int64_t *forward_ns, *backward_ns; /* of one layer with that key */
    int64_t update_ns;                 /* of all units */
    int64_t norm_ns, agree_ns;
    int64_t update_expected_ns, norm_expected_ns; /* of the same by the benches' curves */
    int64_t base_bytes;
    struct weft_rates rates; /* 0 when they were not asked for */
};

/* Collective: values[i] becomes the most that any rank has. */
WEFT_MUST_USE enum weft_status weft_measure_most(struct weft_comm *comm, int64_t *values, int32_t n,
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
/* Turns that are wanted, or fewer where steps are long. */
int32_t weft_measure_rehearsals_rounds(const struct measure_rehearsals *both);
WEFT_MUST_USE enum weft_status weft_measure_rehearsals_turn(struct measure_rehearsals *both,
                                                            struct weft_error *err);
/* Once, after at least one turn. */
WEFT_MUST_USE enum weft_status weft_measure_rehearsals_finish(struct measure_rehearsals *both,
                                                              struct measure_rehearsal *out,
                                                              struct weft_error *err);

/* contention.c. Adds dependencies, in issue order, such that no instruction computes while a
 * collective is under way. All else stays as it is: addresses, and lives, which are now longer than
 * they need be. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_measure_serialise(struct weft_program *program,
                                                      struct weft_error *err);
/* Of one step. transfer_ns has the time of each collective from the last rank's arrival on: before
 * that it waits and slows nobody. Arrays are [n_instructions]. */
void weft_measure_read_times(const struct weft_program *program, const struct weft_trace *trace,
                             const int64_t *transfer_ns, int64_t *ns, int64_t *beside_ns);
/* Adds one rank's. Only instructions that ran beside others count: the rest is noise. */
void weft_measure_add_times(const struct weft_program *program, const struct measure_times *alone,
                            const struct measure_times *beside, struct measure_slowing *total);
/* Rates that a problem takes: full speed where nothing ran beside, each in its range, and if
 * streams did worse than taking turns, in their proportion but as turns. */
struct weft_rates weft_measure_rates(const struct measure_slowing *total);

#endif
