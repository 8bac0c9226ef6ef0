#include "base/json.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/json_scan.h"

/* A value is the cJSON node itself; only this file knows. */
struct weft_json {
    cJSON *root;
};

static const struct kind {
    const char *name;
    const char *with_article;
} kinds[WEFT_JSON_KIND_COUNT] = {
    [WEFT_JSON_NULL] = {"null", "null"},         [WEFT_JSON_BOOL] = {"boolean", "a boolean"},
    [WEFT_JSON_NUMBER] = {"number", "a number"}, [WEFT_JSON_STRING] = {"string", "a string"},
    [WEFT_JSON_ARRAY] = {"array", "an array"},   [WEFT_JSON_OBJECT] = {"object", "an object"},
};

static const cJSON *node_of(const struct weft_json_value *value)
{
    return (const cJSON *)value;
}

static const struct weft_json_value *value_of(const cJSON *node)
{
    return (const struct weft_json_value *)node;
}

enum weft_status weft_json_parse(const char *bytes, size_t length, const char *source,
                                 struct weft_json **out, struct weft_error *err)
{
    /* cJSON takes duplicate keys, numbers out of range, leading zeros, raw control characters and
     * trailing text; it only sees documents that the scan has passed. */
    WEFT_TRY(weft_json_scan(bytes, length, source, err));
    struct weft_json *document = calloc(1, sizeof *document);
    if (document == NULL) return weft_fail_memory(err, source);
    document->root = cJSON_ParseWithLength(bytes, length);
    if (document->root == NULL) {
        weft_json_destroy(document);
        return weft_fail_memory(err, source);
    }
    *out = document;
    return WEFT_OK;
}

enum weft_status weft_json_read(const char *path, struct weft_json **out, struct weft_error *err)
{
    const int64_t most_bytes = (int64_t)1 << 30;
    char *bytes;
    size_t length;
    WEFT_TRY(weft_file_read(path, most_bytes, &bytes, &length, err));
    bool is_stdin = path[0] == '-' && path[1] == '\0';
    enum weft_status status =
        weft_json_parse(bytes, length, is_stdin ? "standard input" : path, out, err);
    free(bytes);
    return status;
}

void weft_json_destroy(struct weft_json *document)
{
    if (document == NULL) return;
    cJSON_Delete(document->root);
    free(document);
}

const struct weft_json_value *weft_json_root(const struct weft_json *document)
{
    return document == NULL ? NULL : value_of(document->root);
}

enum weft_json_kind weft_json_kind(const struct weft_json_value *value)
{
    const cJSON *node = node_of(value);
    if (cJSON_IsBool(node)) return WEFT_JSON_BOOL;
    if (cJSON_IsNumber(node)) return WEFT_JSON_NUMBER;
    if (cJSON_IsString(node)) return WEFT_JSON_STRING;
    if (cJSON_IsArray(node)) return WEFT_JSON_ARRAY;
    if (cJSON_IsObject(node)) return WEFT_JSON_OBJECT;
    return WEFT_JSON_NULL;
}

const char *weft_json_kind_name(enum weft_json_kind kind)
{
    return (unsigned)kind < WEFT_JSON_KIND_COUNT ? kinds[kind].name : "value of no kind";
}

const struct weft_json_value *weft_json_member(const struct weft_json_value *object,
                                               const char *name)
{
    if (!cJSON_IsObject(node_of(object))) return NULL;
    return value_of(cJSON_GetObjectItemCaseSensitive(node_of(object), name));
}

const struct weft_json_value *weft_json_first(const struct weft_json_value *parent)
{
    return parent == NULL ? NULL : value_of(node_of(parent)->child);
}

const struct weft_json_value *weft_json_next(const struct weft_json_value *value)
{
    return value == NULL ? NULL : value_of(node_of(value)->next);
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
    return value == NULL ? NULL : node_of(value)->string;
}

bool weft_json_bool(const struct weft_json_value *value, bool *out)
{
    if (!cJSON_IsBool(node_of(value))) return false;
    *out = cJSON_IsTrue(node_of(value));
    return true;
}

bool weft_json_integer(const struct weft_json_value *value, int64_t *out)
{
    double number;
    if (!weft_json_number(value, &number)) return false;
    /* 2^53 itself is out: 2^53 + 1 reads as the same double. */
    if (fabs(number) >= 0x1p53 || floor(number) != number) return false;
    *out = (int64_t)number;
    return true;
}

bool weft_json_number(const struct weft_json_value *value, double *out)
{
    if (!cJSON_IsNumber(node_of(value))) return false;
    *out = node_of(value)->valuedouble;
    return true;
}

bool weft_json_string(const struct weft_json_value *value, const char **out)
{
    if (!cJSON_IsString(node_of(value))) return false;
    *out = node_of(value)->valuestring;
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
    *out = node_of(member)->valuestring;
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
        status = weft_fail(err, WEFT_E_DATA, "%s: the member \"%s\" is %.17g; %s is wanted", where,
                           name, number, range);
    } else {
        *out = integer;
    }
done:
    weft_text_finish(&wanted);
    return status;
}
