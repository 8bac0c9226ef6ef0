/* SPDX-License-Identifier: Apache-2.0 */
/* A curve gives the time of work by its size. */
#ifndef WEFT_SPEC_PROFILE_CURVE_H
#define WEFT_SPEC_PROFILE_CURVE_H

#include <stdint.h>

#include "base/json/json.h"
#include "base/json/json_keys.h"
#include "base/pool.h"
#include "base/status.h"

/* A piecewise linear function through points with increasing x (bytes or elements). It is constant
 * before the first point and continues the last segment after the last. */
struct weft_curve {
    int32_t n;
    const int64_t *x;
    const int64_t *ns;
};

/* Nanoseconds at x >= 0, rounded to nearest and at least 0; 0 for an empty curve. */
int64_t weft_curve_at(const struct weft_curve *curve, int64_t x);

/* The least x that reaches `efficiency` of the curve's best rate, at least 1; 0 for an empty curve
 * or one with times of 0. */
int64_t weft_curve_efficient(const struct weft_curve *curve, double efficiency);

/* The two forms of a curve in a file: by bytes and by elements. */
extern const struct weft_key_table weft_curve_bytes_keys, weft_curve_elements_keys;

/* Row of a curve by bytes or elements. An empty one is left out if the row is optional. */
#define WEFT_CURVE_KEY(flags, name, by, type, member, text)                                        \
    {                                                                                              \
        name, WEFT_KEY_OBJECT, (flags) | WEFT_KEY_UNREAD, offsetof(struct type, member), 0, 0,     \
            &weft_curve_##by##_keys, text, 0, 0, WEFT_KEY_GIVEN(type, member.n, member.n), NULL    \
    }

/* Reads a member {x_name: [...], "ns": [...]} of an object; a missing one gives an empty curve.
 * WEFT_E_DATA names `source` and the fault. */
WEFT_MUST_USE enum weft_status weft_curve_read(const struct weft_json_value *object,
                                               const char *source, const char *name,
                                               const char *x_name, struct weft_pool *pool,
                                               struct weft_curve *out, struct weft_error *err);

#endif
