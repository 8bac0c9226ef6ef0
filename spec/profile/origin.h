/* The origin of a profile is where and how its times were measured: they hold for the same machine
 * and as many threads a rank alone. */
#ifndef WEFT_SPEC_PROFILE_ORIGIN_H
#define WEFT_SPEC_PROFILE_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json/json.h"
#include "base/pool.h"
#include "base/status.h"
#include "base/text.h"

enum { WEFT_BUSY_MILLICORES = 100 }; /* that are worth a word */

struct weft_profile_origin {
    const char *machine;     /* "AMD EPYC 9654, 96 cores, avx512"; NULL: not said */
    int64_t threads;         /* that computed, of a rank; 0: not said */
    int64_t busy_millicores; /* thousandths of cores that others used meanwhile; -1: not said */
    int64_t ranks;           /* that measured, if the profile is for others; 0: for as many */
};

/* An origin that says nothing: of analytic times, and of profiles of older programs. */
extern const struct weft_profile_origin weft_profile_origin_unsaid;

/* Whether it differs from this machine (NULL: any) or from so many threads (0: any). An origin that
 * says nothing differs from nothing. */
bool weft_profile_origin_differs(const struct weft_profile_origin *origin, const char *machine,
                                 int64_t threads);

/* "on AMD EPYC 9654, 96 cores, avx512, with 2 threads a rank"; nothing where it says nothing. */
void weft_profile_origin_show(const struct weft_profile_origin *origin, struct weft_text *out);

/* Member "measured_on" of a profile's file; none of an origin that says nothing. */
void weft_profile_origin_write(const struct weft_profile_origin *origin,
                               struct weft_json_writer *writer);
WEFT_MUST_USE enum weft_status weft_profile_origin_read(const struct weft_json_value *root,
                                                        const char *source, struct weft_pool *pool,
                                                        struct weft_profile_origin *out,
                                                        struct weft_error *err);

#endif
