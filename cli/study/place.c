/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/study/place.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec/kind.h"

void weft_place_add(struct weft_place *place, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(place->settings[place->n++], WEFT_PLACE_BYTES, format, values);
    va_end(values);
}

void weft_place_open_levels(const struct weft_session *session, struct weft_place *place)
{
    if (weft_session_may_recompute(session)) weft_place_add(place, "plan.recompute=auto");
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

void weft_place_flag(const char **argv, int *n, const char *flag, const char *value)
{
    argv[(*n)++] = flag;
    argv[(*n)++] = value;
}

/* Whether a setting of the place replaces the override of the same key. */
static bool is_replaced(const struct weft_place *place, const char *override)
{
    const size_t length = strcspn(override, "=") + 1;
    for (int32_t i = 0; i < place->n; i++)
        if (strncmp(place->settings[i], override, length) == 0) return true;
    return false;
}

int weft_place_plan(const struct weft_cli *cli, struct weft_place *place, bool measured,
                    const char *argv[WEFT_PLACE_ARGUMENTS])
{
    static const char *const fixed[] = {"weft", "plan", "--output=-", "--quiet", "--json"};
    int n = 0;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        argv[n++] = fixed[i];
    if (cli->hf == NULL) argv[n++] = cli->operands[0];
    if (cli->hf != NULL) weft_place_flag(argv, &n, "--hf", cli->hf);
    if (cli->cluster != NULL) weft_place_flag(argv, &n, "--cluster", cli->cluster);
    if (cli->ranks > 0) weft_place_add(place, "cluster.ranks=%lld", (long long)cli->ranks);
    for (int32_t i = 0; i < cli->n_overrides; i++)
        if (!is_replaced(place, cli->overrides[i]))
            weft_place_flag(argv, &n, "--set", cli->overrides[i]);
    for (int32_t i = 0; i < place->n; i++)
        weft_place_flag(argv, &n, "--set", place->settings[i]);
    for (int32_t i = 0; cli->kinds != NULL && i < cli->kinds->n_files; i++)
        weft_place_flag(argv, &n, "--layers", cli->kinds->files[i]);
    if (cli->model) weft_place_flag(argv, &n, "--model", cli->model);
    if (cli->profile && !measured) weft_place_flag(argv, &n, "--profile", cli->profile);
    return n;
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

enum weft_status weft_flag_number(const char *flag, const char *text, int32_t most, int32_t *out,
                                  struct weft_error *err)
{
    char *end;
    if (text == NULL) return WEFT_OK;
    long value = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || value < 1 || value > most)
        return weft_fail(err, WEFT_E_USAGE, "%s %s: a number from 1 to %d", flag, text, most);
    *out = (int32_t)value;
    return WEFT_OK;
}
