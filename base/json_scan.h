/* The strict reading of JSON, before any tree is built: everything that RFC 8259 forbids, and what
 * json.h refuses beyond it, is found here with its place. Internal to base/. */
#ifndef WEFT_BASE_JSON_SCAN_H
#define WEFT_BASE_JSON_SCAN_H

#include <stddef.h>

#include "base/status.h"

enum { WEFT_JSON_MOST_DEPTH = 100, WEFT_JSON_MOST_NUMBER_BYTES = 63 };

/* WEFT_OK when `bytes` is one valid document; WEFT_E_DATA with source:line:column (both from 1,
 * columns in characters) for the first fault. */
WEFT_MUST_USE enum weft_status weft_json_scan(const char *bytes, size_t length, const char *source,
                                              struct weft_error *err);

#endif
