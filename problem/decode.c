#include "problem/decode.h"

#include <string.h>

static bool is_known(const char *name, const char *const *names)
{
    if (strcmp(name, "$comment") == 0 || strcmp(name, "$schema") == 0) return true;
    for (; *names != NULL; names++) {
        if (strcmp(name, *names) == 0) return true;
    }
    return false;
}

enum weft_status weft_decode_known(const struct weft_json_value *object, const char *where,
                                   const char *const *names, struct weft_error *err)
{
    for (const struct weft_json_value *it = weft_json_first(object); it != NULL;
         it = weft_json_next(it)) {
        const char *name = weft_json_name(it);
        if (name != NULL && !is_known(name, names)) {
            return weft_fail(err, WEFT_E_DATA, "%s: there is no member \"%.64s\" in this format",
                             where, name);
        }
    }
    return WEFT_OK;
}

enum weft_status weft_decode_text(const struct weft_json_value *object, const char *where,
                                  const char *name, struct weft_pool *pool, const char **out,
                                  struct weft_error *err)
{
    const char *text;
    WEFT_TRY(weft_json_need_string(object, where, name, &text, err));
    for (const char *at = text; *at != '\0'; at++) {
        if ((unsigned char)*at >= 0x20 && *at != 0x7f) continue;
        return weft_fail(err, WEFT_E_DATA,
                         "%s: %s holds the control character %d; a plan that weft wrote has none",
                         where, name, *at);
    }
    *out = weft_pool_string(pool, text);
    return *out == NULL ? weft_fail_memory(err, "plan") : WEFT_OK;
}

enum weft_status weft_decode_hash(const struct weft_json_value *object, const char *where,
                                  const char *name, struct weft_hash *out, struct weft_error *err)
{
    const char *string;
    WEFT_TRY(weft_json_need_string(object, where, name, &string, err));
    if (weft_hash_read(string, out)) return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA, "%s: %s is not 32 hexadecimal digits", where, name);
}
