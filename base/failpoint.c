/* SPDX-License-Identifier: Apache-2.0 */
#include "base/failpoint.h"

#include <stdlib.h>
#include <string.h>

static const char *const failures[WEFT_FAILURE_COUNT] = {
#define WEFT_FAILURE_TEXT(name, text) text,
    WEFT_FAILURE_MAP(WEFT_FAILURE_TEXT)
#undef WEFT_FAILURE_TEXT
};

static bool read_number(const char *text, size_t length, int64_t *out)
{
    char *end;
    if (length == 0 || *text < '0' || *text > '9') return false;
    long long value = strtoll(text, &end, 10);
    if (end != text + length) return false;
    *out = value;
    return true;
}

static bool read_failure(const char *text, size_t length, enum weft_failure *out)
{
    for (int f = 0; f < WEFT_FAILURE_COUNT; f++) {
        if (strlen(failures[f]) != length || memcmp(failures[f], text, length) != 0) continue;
        *out = (enum weft_failure)f;
        return true;
    }
    return false;
}

/* Reads one setting, such as "step=3". */
static bool read_setting(const char *text, size_t length, struct weft_failpoint *out)
{
    const struct {
        const char *name;
        int64_t *value;
    } numbers[] = {{"rank=", &out->rank}, {"step=", &out->step}, {"at=", &out->at}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        size_t name = strlen(numbers[i].name);
        if (length > name && memcmp(text, numbers[i].name, name) == 0)
            return read_number(text + name, length - name, numbers[i].value);
    }
    return length > 3 && memcmp(text, "do=", 3) == 0 &&
           read_failure(text + 3, length - 3, &out->failure);
}

enum weft_status weft_failpoint_parse(const char *text, struct weft_failpoint *out,
                                      struct weft_error *err)
{
    struct weft_failpoint point = {.rank = -1, .step = -1, .at = -1};
    if (text == NULL) {
        *out = point;
        return WEFT_OK;
    }
    size_t length = strcspn(text, ":");
    bool good = length > 0 && length < sizeof point.place;
    if (good) memcpy(point.place, text, length);
    point.failure = WEFT_FAILURE_KILL;
    for (const char *at = text + length; good && *at == ':'; at += length) {
        at++;
        length = strcspn(at, ":");
        good = read_setting(at, length, &point);
    }
    if (!good) {
        return weft_fail(err, WEFT_E_USAGE,
                         "\"%s\" is not a failpoint: write for example "
                         "forward:rank=1:step=3:do=kill",
                         text);
    }
    *out = point;
    return WEFT_OK;
}

enum weft_failure weft_failpoint_at(const struct weft_failpoint *failpoint, const char *place,
                                    int64_t rank, int64_t step)
{
    if (failpoint == NULL || failpoint->failure == WEFT_FAILURE_NONE) return WEFT_FAILURE_NONE;
    bool hit = strcmp(failpoint->place, place) == 0 &&
               (failpoint->rank < 0 || failpoint->rank == rank) &&
               (failpoint->step < 0 || failpoint->step == step);
    return hit ? failpoint->failure : WEFT_FAILURE_NONE;
}
