/* The strict reading of JSON, before any tree is built: everything that RFC 8259 forbids, and what
 * json.h refuses beyond it, is found here with its place. Internal to base/. */
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

/* WEFT_OK when `bytes`, which have a NUL behind them, are one valid document of *nodes values and
 * names; WEFT_E_DATA with source:line:column (both from 1, columns in characters) for the first
 * fault. */
WEFT_MUST_USE enum weft_status weft_json_scan(const char *bytes, size_t length, const char *source,
                                              size_t *nodes, struct weft_error *err);

/* The value of the well-formed number that `text` begins with, in any locale: strtod never sees a
 * decimal point, which moves into the exponent. */
double weft_json_number_value(const char *text);

/* "" or what a person who wrote such a text at `at` should know: that JSON has no comments, say. */
const char *weft_json_hint(const unsigned char *bytes, size_t length, size_t at);

#endif
