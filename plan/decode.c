#include "plan/decode.h"

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
