/* SPDX-License-Identifier: Apache-2.0 */
/* The origin of a profile: the inputs of its measurement. Its times hold only for equal ones;
 * library/foreign.h compares them with a run's. */
#ifndef WEFT_SPEC_PROFILE_ORIGIN_H
#define WEFT_SPEC_PROFILE_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json/json.h"
#include "base/json/json_keys.h"
#include "base/pool.h"
#include "base/status.h"
#include "base/text.h"

enum { WEFT_BUSY_MILLICORES = 100 }; /* the least load that is reported */

struct weft_profile_origin {
    const char *machine;     /* "AMD EPYC 9654, 96 cores, avx512"; NULL: not known */
    int64_t threads;         /* compute threads of a rank; 0: not known */
    int64_t busy_millicores; /* thousandths of cores that other programs used; -1: not known */
    int64_t ranks;           /* measured ranks, if the profile is for others; 0: equal */
    int64_t cores;           /* that the ranks of the machine could use; 0: not known */
    const char *precision;   /* of compute; NULL: not known */
    const char *link;        /* weft_profile_link (profile.h); NULL: not known, or not measured */
};

/* An unknown origin: of analytic times, and of profiles of older programs. */
extern const struct weft_profile_origin weft_profile_origin_unsaid;

/* True if the origin differs from this machine (NULL: any) or number of threads (0: any). An
 * unknown origin never differs. */
bool weft_profile_origin_differs(const struct weft_profile_origin *origin, const char *machine,
                                 int64_t threads);

/* Appends "on AMD EPYC 9654, 96 cores, avx512, with 2 threads a rank"; nothing for an unknown
 * origin. */
void weft_profile_origin_show(const struct weft_profile_origin *origin, struct weft_text *out);

extern const struct weft_key_table weft_profile_origin_keys;

/* Reads the member "measured_on" of a profile's file, absent for an unknown origin. */
WEFT_MUST_USE enum weft_status weft_profile_origin_read(const struct weft_json_value *root,
                                                        const char *source, struct weft_pool *pool,
                                                        struct weft_profile_origin *out,
                                                        struct weft_error *err);

#endif
