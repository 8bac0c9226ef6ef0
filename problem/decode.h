/* To decode is to read a file that the program itself wrote, trusting nothing in it. Internal to
 * problem/, proof/ and plan/; base/json/json.h has the reading of single members. */
#ifndef WEFT_PROBLEM_DECODE_H
#define WEFT_PROBLEM_DECODE_H

#include "base/hash.h"
#include "base/json/json.h"
#include "base/pool.h"
#include "base/status.h"

/* WEFT_OK when an object has no member but those in `names` (NULL at the end), "$comment" and
 * "$schema"; else WEFT_E_DATA naming `where` and the first that it has. */
WEFT_MUST_USE enum weft_status weft_decode_known(const struct weft_json_value *object,
                                                 const char *where, const char *const *names,
                                                 struct weft_error *err);

/* A copy in the pool of a string member that people will be shown. WEFT_E_DATA when it holds a
 * control character, which a terminal would obey. */
WEFT_MUST_USE enum weft_status weft_decode_text(const struct weft_json_value *object,
                                                const char *where, const char *name,
                                                struct weft_pool *pool, const char **out,
                                                struct weft_error *err);

/* 32 hexadecimal digits, WEFT_E_DATA otherwise. */
WEFT_MUST_USE enum weft_status weft_decode_hash(const struct weft_json_value *object,
                                                const char *where, const char *name,
                                                struct weft_hash *out, struct weft_error *err);

#endif
