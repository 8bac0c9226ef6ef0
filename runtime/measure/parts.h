/* What the files of this folder share. Measuring has two halves: benches time one operation at many
 * sizes, the rehearsal runs real steps of the model through the executor. */
#ifndef WEFT_RUNTIME_MEASURE_PARTS_H
#define WEFT_RUNTIME_MEASURE_PARTS_H

#include "base/pool.h"
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

/* Times of what real steps do. Arrays are the caller's, [profile->n_layers] of the profile that
 * the rehearsal was planned with. */
struct measure_rehearsal {
    int64_t *forward_ns, *backward_ns; /* of one layer with that key */
    int64_t update_ns;                 /* of all units */
    int64_t norm_ns, agree_ns;
    int64_t update_expected_ns, norm_expected_ns; /* of the same by the benches' curves */
    int64_t base_bytes;
};

/* Collective: values[i] becomes the most that any rank has. */
WEFT_MUST_USE enum weft_status weft_measure_most(struct weft_comm *comm, int64_t *values, int32_t n,
                                                 struct weft_error *err);

/* benches.c: collective. */
WEFT_MUST_USE enum weft_status weft_measure_run_benches(const struct weft_measure_options *options,
                                                        struct measure_benches *out,
                                                        struct weft_error *err);

/* rehearsal.c: collective. `profile` has the benches' curves and a line for every layer key. */
WEFT_MUST_USE enum weft_status weft_measure_rehearse(const struct weft_measure_options *options,
                                                     const struct weft_profile *profile,
                                                     struct measure_rehearsal *out,
                                                     struct weft_error *err);

#endif
