/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <string.h>

#include "base/json/json_scan.h"

/* Finds the first line that is neither blank nor a comment. Returns its length. */
static size_t first_line(const unsigned char *bytes, size_t length, const unsigned char **line)
{
    const unsigned char *at = bytes, *end = bytes + length;
    while (at < end) {
        const unsigned char *stop = memchr(at, '\n', (size_t)(end - at));
        if (stop == NULL) stop = end;
        while (at < stop && (*at == ' ' || *at == '\t' || *at == '\r'))
            at++;
        *line = at;
        if (at < stop && *at != '#') return (size_t)(stop - at);
        at = stop + (stop < end);
    }
    return 0;
}

/* True for "---", "- item", or "key: value" without quotes. */
static bool is_yaml(const unsigned char *bytes, size_t length)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    const unsigned char *line = NULL;
    size_t n = first_line(bytes, length, &line), key = 0;
    if (n >= 3 && memcmp(line, "---", 3) == 0) return true;
    if (n >= 2 && memcmp(line, "- ", 2) == 0) return true;
    while (key < n && line[key] != 0 && strchr(letters, line[key]) != NULL)
        key++;
    return key > 0 && key < n && line[key] == ':';
}

const char *weft_json_hint(const unsigned char *bytes, size_t length, size_t at)
{
    unsigned char byte = at < length ? bytes[at] : 0;
    unsigned char behind = at + 1 < length ? bytes[at + 1] : 0;
    size_t before = 0;
    while (before < at && bytes[before] != 0 && strchr(" \n\r\t-", bytes[before]) != NULL)
        before++;
    if (before == at && is_yaml(bytes, length)) return ". This looks like YAML: write it as JSON";
    if (byte == '#' || (byte == '/' && (behind == '/' || behind == '*')))
        return ". JSON has no comments: a key \"$comment\" takes a string instead";
    if (byte == '\'') return ". JSON writes strings and keys in double quotes";
    if (byte == 'T' || byte == 'F' || (byte == 'N' && behind == 'o'))
        return ". JSON writes true, false and null";
    const bool is_nan = (byte == 'N' || byte == 'n') && behind == 'a';
    const bool is_infinity = (byte == 'I' || byte == 'i') && behind == 'n';
    if (is_nan || is_infinity) return ". JSON has no NaN and no infinity: every number is finite";
    return "";
}
