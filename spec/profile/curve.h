/* A curve says how long a piece of work takes by its size. */
#ifndef WEFT_SPEC_PROFILE_CURVE_H
#define WEFT_SPEC_PROFILE_CURVE_H

#include <stdint.h>

#include "base/json/json.h"
#include "base/pool.h"
#include "base/status.h"

/* A piecewise linear function through points with increasing x (bytes or elements); below the
 * first point constant, beyond the last extended with the last segment's slope. */
struct weft_curve {
    int32_t n;
    const int64_t *x;
    const int64_t *ns;
};

/* Nanoseconds at x >= 0, at least 0; 0 for an empty curve. Rounded to nearest. */
int64_t weft_curve_at(const struct weft_curve *curve, int64_t x);

/* As a member of an object, {x_name: [...], "ns": [...]}; nothing of an empty curve. */
void weft_curve_write(struct weft_json_writer *writer, const char *name, const char *x_name,
                      const struct weft_curve *curve);
/* What weft_curve_write writes; an absent curve stays empty. WEFT_E_DATA names `source` and what is
 * wrong. */
WEFT_MUST_USE enum weft_status weft_curve_read(const struct weft_json_value *object,
                                               const char *source, const char *name,
                                               const char *x_name, struct weft_pool *pool,
                                               struct weft_curve *out, struct weft_error *err);

#endif
