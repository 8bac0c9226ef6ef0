/* SPDX-License-Identifier: Apache-2.0 */
/* Configs as C strings for the tests of spec/, and short ways to read them. */
#ifndef WEFT_TESTS_SPEC_CONFIG_TEXT_H
#define WEFT_TESTS_SPEC_CONFIG_TEXT_H

#include <criterion/criterion.h>
#include <string.h>

#include "spec/config.h"

#define GPT_LAYERS                                                                                 \
    "[{\"name\":\"wte\",\"type\":\"embedding\",\"vocab\":256,\"positions\":64,\"hidden\":48},"     \
    "{\"name\":\"h.{i}\",\"type\":\"transformer_block\",\"repeat\":3,\"hidden\":48,\"heads\":4,"   \
    "\"ffn\":96},"                                                                                 \
    "{\"name\":\"ln_f\",\"type\":\"layer_norm\",\"hidden\":48},"                                   \
    "{\"name\":\"head\",\"type\":\"lm_head\",\"vocab\":256,\"hidden\":48,\"bias\":false,"          \
    "\"tie\":\"wte\"}]"
#define GPT_MODEL     "{\"layers\":" GPT_LAYERS "}"
#define SMALL_TRAIN   "{\"micro_batch\":2,\"seq_len\":64}"
#define SMALL_CLUSTER "{\"ranks\":2}"
#define CONFIG(model, cluster, train)                                                              \
    "{\"version\":1,\"model\":" model ",\"cluster\":" cluster ",\"train\":" train "}"
#define SMALL_CONFIG CONFIG(GPT_MODEL, SMALL_CLUSTER, SMALL_TRAIN)

enum { MOST_OVERRIDES = 8 };

/* Parses with a NULL-terminated list of overrides (or NULL). */
static inline enum weft_status parse(const char *text, const char *const *overrides,
                                     struct weft_config **out, struct weft_error *err)
{
    int32_t n = 0;
    while (overrides != NULL && overrides[n] != NULL)
        n++;
    return weft_config_parse(text, strlen(text), "run.json", "/place", overrides, n, out, err);
}

static inline struct weft_config *must_parse_with(const char *text, const char *const *overrides)
{
    struct weft_error error = {0};
    struct weft_config *config = NULL;
    enum weft_status status = parse(text, overrides, &config, &error);
    cr_assert(status == WEFT_OK, "%s", error.text);
    return config;
}

static inline struct weft_config *must_parse(const char *text)
{
    return must_parse_with(text, NULL);
}

/* The error, whole, that the config gives; static, until the next call. `finding` leaves out lines
 * and columns. */
static inline const char *finding_with(const char *text, const char *const *overrides,
                                       enum weft_status status)
{
    static struct weft_error error;
    struct weft_config *config = NULL;
    error = (struct weft_error){0};
    enum weft_status got = parse(text, overrides, &config, &error);
    cr_assert(got == status, "status %d: %s", (int)got, error.text);
    cr_assert(config == NULL);
    return error.text;
}

/* Removes the lines and columns after "run.json". */
static inline const char *without_places(const char *findings)
{
    static char out[WEFT_ERROR_TEXT_BYTES];
    static const char source[] = "run.json";
    size_t n = 0;
    for (const char *at = findings; *at != '\0'; out[n++] = *at++) {
        if (strncmp(at, source, sizeof source - 1) != 0) continue;
        memcpy(out + n, source, sizeof source - 1);
        n += sizeof source - 1;
        at += sizeof source - 1;
        size_t digits = strspn(at, ":0123456789");
        if (digits > 1) at += digits - 1;
    }
    out[n] = '\0';
    return out;
}

static inline const char *finding(const char *text)
{
    return without_places(finding_with(text, NULL, WEFT_E_DATA));
}

#define SET(...) ((const char *const[]){__VA_ARGS__, NULL})

#endif
