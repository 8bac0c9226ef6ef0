/* SPDX-License-Identifier: Apache-2.0 */
/* The strict reading of JSON, before a tree is built. It finds everything that RFC 8259 forbids,
 * and the further limits of json.h, with the place. Internal to base/. */
#ifndef WEFT_BASE_JSON_JSON_SCAN_H
#define WEFT_BASE_JSON_JSON_SCAN_H

#include <stddef.h>

#include "base/status.h"

enum {
    WEFT_JSON_MOST_DEPTH = 100,
    WEFT_JSON_MOST_NUMBER_BYTES = 63,
    WEFT_JSON_MOST_VALUES = 1 << 24,
    WEFT_JSON_MOST_BYTES = 1 << 30
};

/* WEFT_OK when `bytes`, followed by a NUL, are one valid document; *nodes counts its values and
 * names. Otherwise WEFT_E_DATA with source:line:column (from 1, columns in characters) of the first
 * fault. */
WEFT_MUST_USE enum weft_status weft_json_scan(const char *bytes, size_t length, const char *source,
                                              size_t *nodes, struct weft_error *err);

/* The value of the well-formed number at the start of `text`, in any locale. The decimal point
 * moves into the exponent, so strtod never sees it. */
double weft_json_number_value(const char *text);

/* Returns a hint on a common mistake at `at`, such as comments, or "". */
const char *weft_json_hint(const unsigned char *bytes, size_t length, size_t at);

#endif
