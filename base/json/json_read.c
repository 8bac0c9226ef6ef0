/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json/json_scan.h"
#include "base/json/json_tree.h"

static const struct kind {
    const char *name;
    const char *with_article;
} kinds[WEFT_JSON_KIND_COUNT] = {
    [WEFT_JSON_NULL] = {"null", "null"},         [WEFT_JSON_BOOL] = {"boolean", "a boolean"},
    [WEFT_JSON_NUMBER] = {"number", "a number"}, [WEFT_JSON_STRING] = {"string", "a string"},
    [WEFT_JSON_ARRAY] = {"array", "an array"},   [WEFT_JSON_OBJECT] = {"object", "an object"},
};

/* Takes ownership of `text`, which has a NUL after its `length` bytes, also on failure. */
static enum weft_status parse_text(char *text, size_t length, const char *source,
                                   struct weft_json **out, struct weft_error *err)
{
    size_t nodes;
    enum weft_status status = weft_json_scan(text, length, source, &nodes, err);
    if (status != WEFT_OK) {
        free(text);
        return status;
    }
    struct weft_json *document = weft_json_tree(text, length, nodes);
    if (document == NULL) return weft_fail_memory(err, source);
    *out = document;
    return WEFT_OK;
}

enum weft_status weft_json_parse(const char *bytes, size_t length, const char *source,
                                 struct weft_json **out, struct weft_error *err)
{
    if (length > WEFT_JSON_MOST_BYTES)
        return weft_fail(err, WEFT_E_DATA, "%s is longer than 1 GiB, the most that is read",
                         source);
    char *text = malloc(length + 1);
    if (text == NULL) return weft_fail_memory(err, source);
    memcpy(text, bytes, length);
    text[length] = '\0';
    return parse_text(text, length, source, out, err);
}

enum weft_status weft_json_read(const char *path, struct weft_json **out, struct weft_error *err)
{
    char *bytes;
    size_t length;
    WEFT_TRY(weft_file_read(path, WEFT_JSON_MOST_BYTES, &bytes, &length, err));
    bool is_stdin = path[0] == '-' && path[1] == '\0';
    return parse_text(bytes, length, is_stdin ? "standard input" : path, out, err);
}

void weft_json_destroy(struct weft_json *document)
{
    if (document == NULL) return;
    free(document->text);
    free(document);
}

const struct weft_json_value *weft_json_root(const struct weft_json *document)
{
    return document == NULL ? NULL : document->values;
}

static const char *text_of(const struct weft_json_value *value)
{
    return weft_json_document_of(value)->text + value->at;
}

enum weft_json_kind weft_json_kind(const struct weft_json_value *value)
{
    return value == NULL ? WEFT_JSON_NULL : (enum weft_json_kind)value->kind;
}

const char *weft_json_kind_name(enum weft_json_kind kind)
{
    return (unsigned)kind < WEFT_JSON_KIND_COUNT ? kinds[kind].name : "value of no kind";
}

const struct weft_json_value *weft_json_member(const struct weft_json_value *object,
                                               const char *name)
{
    if (weft_json_kind(object) != WEFT_JSON_OBJECT) return NULL;
    const struct weft_json_value *child = weft_json_first(object);
    while (child != NULL && strcmp(text_of(child - 1), name) != 0)
        child = weft_json_next(child);
    return child;
}

const struct weft_json_value *weft_json_first(const struct weft_json_value *parent)
{
    if (parent == NULL || !parent->filled) return NULL;
    return parent + (parent->kind == WEFT_JSON_OBJECT ? 2 : 1);
}

const struct weft_json_value *weft_json_next(const struct weft_json_value *value)
{
    if (value == NULL || value->next == 0) return NULL;
    return value + (value->next - value->index);
}

size_t weft_json_count(const struct weft_json_value *parent)
{
    size_t count = 0;
    const struct weft_json_value *child = weft_json_first(parent);
    for (; child != NULL; child = weft_json_next(child))
        count++;
    return count;
}

const char *weft_json_name(const struct weft_json_value *value)
{
    return value == NULL || !value->member ? NULL : text_of(value - 1);
}

bool weft_json_bool(const struct weft_json_value *value, bool *out)
{
    if (weft_json_kind(value) != WEFT_JSON_BOOL) return false;
    *out = *text_of(value) == 't';
    return true;
}

bool weft_json_integer(const struct weft_json_value *value, int64_t *out)
{
    const char *text;
    double number;
    if (!weft_json_number(value, &number)) return false;
    if (floor(number) != number || fabs(number) > 0x1p53) return false;
    int64_t integer = (int64_t)number;
    if (fabs(number) >= 0x1p53) {
        /* 2^53 + 1 reads as the same double, so compare the digits. */
        size_t length = weft_json_number_text(value, &text);
        if (strspn(text, "-0123456789") < length) return false;
        integer = strtoll(text, NULL, 10);
        if (integer > WEFT_JSON_MOST_INTEGER || integer < -WEFT_JSON_MOST_INTEGER) return false;
    }
    *out = integer;
    return true;
}

size_t weft_json_number_text(const struct weft_json_value *value, const char **out)
{
    *out = "";
    if (weft_json_kind(value) != WEFT_JSON_NUMBER) return 0;
    *out = text_of(value);
    return strspn(*out, "+-.0123456789eE");
}

bool weft_json_number(const struct weft_json_value *value, double *out)
{
    if (weft_json_kind(value) != WEFT_JSON_NUMBER) return false;
    *out = weft_json_number_value(text_of(value));
    return true;
}

bool weft_json_string(const struct weft_json_value *value, const char **out)
{
    if (weft_json_kind(value) != WEFT_JSON_STRING) return false;
    *out = text_of(value);
    return true;
}

/* Finds a required member; `wanted` is for the error. */
static enum weft_status need_member(const struct weft_json_value *object, const char *where,
                                    const char *name, const char *wanted,
                                    const struct weft_json_value **out, struct weft_error *err)
{
    if (object == NULL || weft_json_kind(object) != WEFT_JSON_OBJECT) {
        return weft_fail(
            err, WEFT_E_DATA, "%s is %s; an object with the member \"%s\" is wanted", where,
            object == NULL ? "missing" : kinds[weft_json_kind(object)].with_article, name);
    }
    const struct weft_json_value *member = weft_json_member(object, name);
    if (member == NULL) {
        return weft_fail(err, WEFT_E_DATA, "%s: the member \"%s\" is missing; %s is wanted", where,
                         name, wanted);
    }
    *out = member;
    return WEFT_OK;
}

static enum weft_status fail_kind(const struct weft_json_value *found, const char *where,
                                  const char *name, const char *wanted, struct weft_error *err)
{
    return weft_fail(err, WEFT_E_DATA, "%s: the member \"%s\" is %s; %s is wanted", where, name,
                     kinds[weft_json_kind(found)].with_article, wanted);
}

enum weft_status weft_json_need(const struct weft_json_value *object, const char *where,
                                const char *name, enum weft_json_kind kind,
                                const struct weft_json_value **out, struct weft_error *err)
{
    const struct weft_json_value *member = NULL;
    const char *wanted = kinds[kind].with_article;
    WEFT_TRY(need_member(object, where, name, wanted, &member, err));
    if (weft_json_kind(member) != kind) return fail_kind(member, where, name, wanted, err);
    *out = member;
    return WEFT_OK;
}

enum weft_status weft_json_need_string(const struct weft_json_value *object, const char *where,
                                       const char *name, const char **out, struct weft_error *err)
{
    const struct weft_json_value *member = NULL;
    WEFT_TRY(weft_json_need(object, where, name, WEFT_JSON_STRING, &member, err));
    *out = text_of(member);
    return WEFT_OK;
}

enum weft_status weft_json_need_integer(const struct weft_json_value *object, const char *where,
                                        const char *name, int64_t least, int64_t most, int64_t *out,
                                        struct weft_error *err)
{
    struct weft_text wanted;
    weft_text_init(&wanted);
    weft_text_addf(&wanted, "an integer from %" PRId64 " to %" PRId64, least, most);
    const char *range = weft_text_ok(&wanted) ? weft_text_chars(&wanted) : "an integer";
    const struct weft_json_value *member = NULL;
    double number = 0;
    int64_t integer = 0;
    enum weft_status status;
    WEFT_TRY_GOTO(done, need_member(object, where, name, range, &member, err));
    if (!weft_json_number(member, &number)) {
        status = fail_kind(member, where, name, range, err);
    } else if (!weft_json_integer(member, &integer) || integer < least || integer > most) {
        const char *text;
        int length = (int)weft_json_number_text(member, &text);
        status = weft_fail(err, WEFT_E_DATA, "%s: the member \"%s\" is %.*s; %s is wanted", where,
                           name, length, text, range);
    } else {
        *out = integer;
    }
done:
    weft_text_finish(&wanted);
    return status;
}
