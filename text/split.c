/* SPDX-License-Identifier: Apache-2.0 */
#include "text/split.h"

#include <stdlib.h>

#ifdef WEFT_HAVE_PCRE2

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

enum { MOST_STEPS = 10000000, MOST_HEAP_KIB = 65536 };

struct weft_split {
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *limits;
};

enum weft_status weft_split_create(const char *pattern, const char *source, struct weft_split **out,
                                   struct weft_error *err)
{
    int code = 0;
    PCRE2_SIZE at = 0;
    PCRE2_UCHAR why[200] = "";
    struct weft_split *split = calloc(1, sizeof *split);
    if (split == NULL) return weft_fail_memory(err, "a pattern");
    split->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                                PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &code, &at, NULL);
    if (split->code == NULL) {
        pcre2_get_error_message(code, why, sizeof why);
        weft_split_destroy(split);
        return weft_fail(err, WEFT_E_DATA, "%s: its pattern cannot be read at character %zu: %s",
                         source, (size_t)at, (const char *)why);
    }
    /* Matching works without machine code too, only slower. */
    (void)pcre2_jit_compile(split->code, PCRE2_JIT_COMPLETE);
    split->match = pcre2_match_data_create_from_pattern(split->code, NULL);
    split->limits = pcre2_match_context_create(NULL);
    if (split->match == NULL || split->limits == NULL) {
        weft_split_destroy(split);
        return weft_fail_memory(err, "a pattern");
    }
    pcre2_set_match_limit(split->limits, MOST_STEPS);
    pcre2_set_heap_limit(split->limits, MOST_HEAP_KIB);
    *out = split;
    return WEFT_OK;
}

void weft_split_destroy(struct weft_split *split)
{
    if (split == NULL) return;
    pcre2_match_context_free(split->limits);
    pcre2_match_data_free(split->match);
    pcre2_code_free(split->code);
    free(split);
}

static enum weft_status fail_match(int code, const char *source, size_t at, struct weft_error *err)
{
    PCRE2_UCHAR why[200] = "";
    pcre2_get_error_message(code, why, sizeof why);
    return weft_fail(err, WEFT_E_DATA, "%s: the tokenizer's pattern fails at byte %zu: %s", source,
                     at, (const char *)why);
}

enum weft_status weft_split_text(const struct weft_split *split, const unsigned char *text,
                                 size_t length, const char *source, weft_split_fn *take,
                                 void *context, struct weft_error *err)
{
    const PCRE2_SIZE *found = pcre2_get_ovector_pointer(split->match);
    size_t done = 0;
    /* An empty match would be found again: the pattern must match a character. */
    while (done < length) {
        const int code =
            pcre2_match(split->code, text, length, done, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY,
                        split->match, split->limits);
        if (code < 0 && code != PCRE2_ERROR_NOMATCH) return fail_match(code, source, done, err);
        const size_t first = code < 0 ? length : found[0], end = code < 0 ? length : found[1];
        if (first < done || end < first)
            return fail_match(PCRE2_ERROR_BADOFFSET, source, done, err);
        if (first > done) WEFT_TRY(take(context, text + done, first - done, err));
        if (end > first) WEFT_TRY(take(context, text + first, end - first, err));
        done = end;
    }
    return WEFT_OK;
}

#else

enum weft_status weft_split_create(const char *pattern, const char *source, struct weft_split **out,
                                   struct weft_error *err)
{
    (void)pattern;
    (void)out;
    return weft_fail(
        err, WEFT_E_ENVIRONMENT,
        "%s: this build has no PCRE2, which splits texts for a tokenizer: build it with "
        "libpcre2-dev, or pack bytes",
        source);
}

void weft_split_destroy(struct weft_split *split)
{
    free(split);
}

enum weft_status weft_split_text(const struct weft_split *split, const unsigned char *text,
                                 size_t length, const char *source, weft_split_fn *take,
                                 void *context, struct weft_error *err)
{
    (void)split;
    (void)source;
    return take(context, text, length, err);
}

#endif
