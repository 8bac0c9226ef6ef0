#include "cli/study/place.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void weft_place_add(struct weft_place *place, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(place->settings[place->n++], WEFT_PLACE_BYTES, format, values);
    va_end(values);
}

enum weft_status weft_place_open(const struct weft_cli *cli, const struct weft_place *place,
                                 struct weft_session *session, struct weft_error *err)
{
    struct weft_cli one = *cli;
    for (int32_t i = 0; i < place->n; i++) {
        if (one.n_overrides == WEFT_CLI_OVERRIDES)
            return weft_fail(err, WEFT_E_USAGE, "--set: too many overrides for `weft %s`",
                             cli->verb);
        one.overrides[one.n_overrides++] = place->settings[i];
        /* These flags are applied after all settings. */
        if (strncmp(place->settings[i], "cluster.ranks=", 14) == 0) one.ranks = 0;
        if (strncmp(place->settings[i], "cluster.profile=", 16) == 0) one.profile = NULL;
    }
    return weft_cli_read_config(&one, one.operands[0], session, err);
}

enum weft_status weft_place_estimate(const struct weft_cli *cli, const struct weft_place *place,
                                     uint32_t asked, struct weft_estimate *out,
                                     struct weft_error *err)
{
    struct weft_session session = {0};
    *out = (struct weft_estimate){0};
    enum weft_status status = weft_place_open(cli, place, &session, err);
    if (status == WEFT_OK) status = weft_estimate_create(&session, asked, out, err);
    weft_session_close(&session);
    return status;
}

bool weft_list_next(struct weft_list *list)
{
    if (list->rest == NULL) return false;
    const size_t length = strcspn(list->rest, ",");
    list->cut = length >= sizeof list->item;
    snprintf(list->item, sizeof list->item, "%.*s", (int)length, list->rest);
    list->rest = list->rest[length] == ',' ? list->rest + length + 1 : NULL;
    return true;
}
