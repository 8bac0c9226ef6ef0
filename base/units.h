/* SPDX-License-Identifier: Apache-2.0 */
/* Units of measure in configs, and back. Bytes "24GiB" (1024) or "24GB" (1000); rates "25Gbit/s",
 * "6GB/s"; times "8us"; counts "312T". A bare number or "24G" is an error that shows both readings.
 */
#ifndef WEFT_BASE_UNITS_H
#define WEFT_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Parse the whole string. WEFT_E_DATA gives the fault and valid forms, and leaves *out untouched.
 * Results are exact if the text is, otherwise rounded to nearest. */
WEFT_MUST_USE enum weft_status weft_units_bytes(const char *string, int64_t *bytes,
                                                struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_units_bytes_per_s(const char *string, double *bytes_per_s,
                                                      struct weft_error *err);
/* "8us", "1.5ms", "30s", "2min" to nanoseconds. */
WEFT_MUST_USE enum weft_status weft_units_ns(const char *string, int64_t *ns,
                                             struct weft_error *err);
/* "312T" (k, M, G, T, P; decimal), for flops a second. */
WEFT_MUST_USE enum weft_status weft_units_count(const char *string, double *count,
                                                struct weft_error *err);

enum { WEFT_UNITS_TEXT_BYTES = 32 };

/* Writes bytes exactly, for configs and flags: "24GiB", "1500MiB", "1000001B". Returns `out`. */
const char *weft_units_write_bytes(int64_t bytes, char out[WEFT_UNITS_TEXT_BYTES]);
/* The same for people to paste, in steps of 1000 if that is shorter: "16GB" instead of
 * "15625000KiB". Hashes of configs need the form above. */
const char *weft_units_write_bytes_shortly(int64_t bytes, char out[WEFT_UNITS_TEXT_BYTES]);

/* For people: "1.50 GiB", "12.3 ms", "1.25 GB/s". Returns `out`. */
const char *weft_units_show_bytes(int64_t bytes, char out[WEFT_UNITS_TEXT_BYTES]);
const char *weft_units_show_ns(int64_t ns, char out[WEFT_UNITS_TEXT_BYTES]);
const char *weft_units_show_rate(double bytes_per_s, char out[WEFT_UNITS_TEXT_BYTES]);

/* Removes the sign of a NaN, so that printf shows "nan" and never "-nan". */
double weft_units_unsigned_nan(double number);

#endif
