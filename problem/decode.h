/* Decoding reads a file of the program and trusts nothing in it. Internal to problem/, proof/ and
 * plan/. base/json/json.h reads single members. */
#ifndef WEFT_PROBLEM_DECODE_H
#define WEFT_PROBLEM_DECODE_H

#include "base/hash.h"
#include "base/json/json.h"
#include "base/pool.h"
#include "base/status.h"

/* WEFT_OK when an object has no members but "$comment", "$schema" and those in `names` (NULL at the
 * end). Otherwise WEFT_E_DATA with `where` and the first other member. */
WEFT_MUST_USE enum weft_status weft_decode_known(const struct weft_json_value *object,
                                                 const char *where, const char *const *names,
                                                 struct weft_error *err);

/* Copies a string member into the pool, for display. WEFT_E_DATA for a control character, which a
 * terminal would obey. */
WEFT_MUST_USE enum weft_status weft_decode_text(const struct weft_json_value *object,
                                                const char *where, const char *name,
                                                struct weft_pool *pool, const char **out,
                                                struct weft_error *err);

/* Reads 32 hexadecimal digits; WEFT_E_DATA for anything different. */
WEFT_MUST_USE enum weft_status weft_decode_hash(const struct weft_json_value *object,
                                                const char *where, const char *name,
                                                struct weft_hash *out, struct weft_error *err);

#endif
