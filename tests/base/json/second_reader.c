/* SPDX-License-Identifier: Apache-2.0 */
/* A second reader of JSON: cJSON. Each document that Weft reads must have the same values for
 * cJSON.
 *
 * test-base-json-second-reader FILE...: files that Weft wrote, each read by both. A file .jsonl is
 * a document a line. Without arguments: damaged documents. If Weft accepts one, cJSON must accept
 * it too. If Weft refuses one, cJSON may accept it, and must not crash. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json/json.h"
#include "tests/base/json/damage.h"

/* cJSON 1.7.15 reads at most 63 characters of a number. */
enum { MOST_NUMBER = 63 };

struct counts {
    long values, beyond; /* integers that a double does not distinguish */
};

static int refuse(const char *source, const char *what, const char *name)
{
    fprintf(stderr, "%s: %s%s%s\n", source, what, name ? ": " : "", name ? name : "");
    return 1;
}

/* Numbers are equal as doubles. A larger integer is compared as text by the caller's own reader
 * alone: cJSON has lost its last digits. */
static bool number_equals(const struct weft_json_value *ours, const cJSON *theirs,
                          struct counts *counts)
{
    const char *digits;
    char text[MOST_NUMBER + 1];
    const size_t length = weft_json_number_text(ours, &digits);
    if (length > MOST_NUMBER) return true;
    memcpy(text, digits, length);
    text[length] = '\0';
    const double number = strtod(text, NULL);
    const bool is_integer = strpbrk(text, ".eE") == NULL;
    if (is_integer && (number > WEFT_JSON_MOST_INTEGER || number < -WEFT_JSON_MOST_INTEGER))
        counts->beyond++;
    return cJSON_IsNumber(theirs) && theirs->valuedouble == number;
}

static bool scalar_equals(const struct weft_json_value *ours, const cJSON *theirs,
                          struct counts *counts)
{
    bool truth;
    const char *string;
    switch (weft_json_kind(ours)) {
    case WEFT_JSON_NULL:
        return cJSON_IsNull(theirs);
    case WEFT_JSON_BOOL:
        return weft_json_bool(ours, &truth) && cJSON_IsBool(theirs) &&
               cJSON_IsTrue(theirs) == truth;
    case WEFT_JSON_NUMBER:
        return number_equals(ours, theirs, counts);
    case WEFT_JSON_STRING:
        return weft_json_string(ours, &string) && cJSON_IsString(theirs) &&
               strcmp(string, theirs->valuestring) == 0;
    case WEFT_JSON_ARRAY:
        return cJSON_IsArray(theirs);
    case WEFT_JSON_OBJECT:
        return cJSON_IsObject(theirs);
    case WEFT_JSON_KIND_COUNT:
        break;
    }
    return false;
}

/* Goes through both trees in the order of the text. */
static int compare_values(const struct weft_json_value *ours, const cJSON *theirs,
                          const char *source, struct counts *counts)
{
    counts->values++;
    if (!scalar_equals(ours, theirs, counts))
        return refuse(source, "the readers differ at", theirs->string);
    const cJSON *their_child = theirs->child;
    for (const struct weft_json_value *child = weft_json_first(ours); child;
         child = weft_json_next(child), their_child = their_child->next) {
        const char *name = weft_json_name(child);
        if (!their_child) return refuse(source, "cJSON lacks a value", name);
        if (name && strcmp(name, their_child->string) != 0)
            return refuse(source, "cJSON has another member for", name);
        if (compare_values(child, their_child, source, counts) != 0) return 1;
    }
    const bool is_parent = cJSON_IsArray(theirs) || cJSON_IsObject(theirs);
    return is_parent && their_child
               ? refuse(source, "cJSON has one value more", their_child->string)
               : 0;
}

/* 0 if both accept with equal values; *accepted says whether Weft does. */
static int compare_bytes(const char *bytes, size_t length, const char *source, bool *accepted,
                         struct counts *counts)
{
    struct weft_json *document = NULL;
    struct weft_error err = {0};
    const char *end;
    cJSON *other = cJSON_ParseWithLengthOpts(bytes, length, &end, false);
    *accepted = weft_json_parse(bytes, length, source, &document, &err) == WEFT_OK;
    int result = 0;
    if (*accepted && !other)
        result = refuse(source, "cJSON refuses a document that Weft accepts", NULL);
    if (*accepted && other)
        result = compare_values(weft_json_root(document), other, source, counts);
    weft_json_destroy(document);
    cJSON_Delete(other);
    return result;
}

static int compare_must(const char *bytes, size_t length, const char *source, struct counts *counts)
{
    bool accepted;
    const int result = compare_bytes(bytes, length, source, &accepted, counts);
    return accepted ? result : refuse(source, "Weft refuses a file of its own", NULL);
}

static int compare_file(const char *path, struct counts *counts)
{
    char *bytes = NULL;
    size_t length = 0;
    struct weft_error err = {0};
    const char *dot = strrchr(path, '.');
    const bool has_lines = dot && strcmp(dot, ".jsonl") == 0;
    if (weft_file_read(path, 1 << 30, &bytes, &length, &err) != WEFT_OK)
        return refuse(path, err.text, NULL);
    int result = has_lines ? 0 : compare_must(bytes, length, path, counts);
    for (size_t at = 0; has_lines && at < length && result == 0;) {
        const size_t line = strcspn(bytes + at, "\n");
        result = compare_must(bytes + at, line, path, counts);
        at += line + 1;
    }
    free(bytes);
    return result;
}

static int compare_damaged(struct counts *counts)
{
    enum { ROUNDS = 50000 };
    int n_accepted = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct damage_buffer buffer;
        bool accepted;
        damage_make(round, &buffer);
        char *exact = malloc(buffer.length + 1); /* AddressSanitizer sees a read past the end */
        if (!exact) abort();
        memcpy(exact, buffer.bytes, buffer.length);
        exact[buffer.length] = '\0';
        if (compare_bytes(exact, buffer.length, "damaged", &accepted, counts) != 0) {
            fprintf(stderr, "round %llu: %s\n", (unsigned long long)round, exact);
            return 1;
        }
        n_accepted += accepted;
        free(exact);
    }
    printf("%d of %d damaged documents accepted\n", n_accepted, ROUNDS);
    return n_accepted > ROUNDS / 50 && n_accepted < ROUNDS / 2 ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct counts counts = {0};
    if (argc == 1) return compare_damaged(&counts);
    for (int i = 1; i < argc; i++)
        if (compare_file(argv[i], &counts) != 0) return 1;
    printf("%d files, %ld values equal by cJSON %s, %ld integers beyond a double\n", argc - 1,
           counts.values, cJSON_Version(), counts.beyond);
    return 0;
}
