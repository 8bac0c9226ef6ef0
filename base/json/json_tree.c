/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json/json_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

enum { WIDENED = 2 };

struct builder {
    struct weft_json *json;
    char *at;
    uint32_t nodes;
    size_t widened; /* continuation bytes of characters that are written as escapes */
};

/* Reads four hexadecimal digits, which the scan has checked. */
static uint32_t read_hex(const char *digits)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        unsigned char c = (unsigned char)digits[i];
        value = value << 4 | (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return value;
}

static char *put_code_point(char *to, uint32_t code)
{
    static const unsigned char leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    int count = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (int i = count - 1; i > 0; i--, code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3F));
    to[0] = (char)(leads[count] | code);
    return to + count;
}

/* Starts after the backslash; returns the rest of the text. */
static const char *decode_escape(struct builder *b, const char *from, char **to)
{
    static const char letters[] = "bfnrt", meanings[] = "\b\f\n\r\t";
    if (*from == 'u') {
        uint32_t code = read_hex(from + 1);
        from += 5;
        if (code >= 0xD800 && code <= 0xDBFF) {
            code = 0x10000 + ((code - 0xD800) << 10) + (read_hex(from + 2) - 0xDC00);
            from += 6;
        }
        char *end = put_code_point(*to, code);
        b->widened += (size_t)(end - *to) - 1;
        *to = end;
        return from;
    }
    const char *letter = strchr(letters, *from);
    *(*to)++ = letter != NULL ? meanings[letter - letters] : *from;
    return from + 1;
}

/* Starts at the opening quote. Decodes in place, because decoded text is never longer. After its
 * NUL the space up to the closing quote is filled, so that columns can still be counted: a byte
 * WIDENED stands for two characters. */
static uint32_t take_string(struct builder *b)
{
    char *start = ++b->at, *to = start;
    b->widened = 0;
    const char *from = start;
    while (*from != '"') {
        if (*from == '\\')
            from = decode_escape(b, from + 1, &to);
        else
            *to++ = *from++;
    }
    b->at += from - start + 1;
    memset(to, '\0', (size_t)(b->at - to));
    memset(to + 1, WIDENED, b->widened);
    return (uint32_t)(start - b->json->text);
}

static void skip_space(struct builder *b)
{
    b->at += strspn(b->at, " \n\r\t");
}

static struct weft_json_value *add_node(struct builder *b, enum weft_json_kind kind)
{
    struct weft_json_value *node = &b->json->values[b->nodes];
    *node = (struct weft_json_value){.at = (uint32_t)(b->at - b->json->text),
                                     .index = b->nodes & (WEFT_JSON_MOST_NODES - 1),
                                     .kind = (unsigned)kind & 7};
    b->nodes++;
    return node;
}

static uint32_t take_value(struct builder *b);

/* Starts at the opening bracket. The scan bounds the depth. */
static void take_children(struct builder *b, struct weft_json_value *parent)
{
    bool object = parent->kind == WEFT_JSON_OBJECT;
    uint32_t last = 0;
    b->at++;
    for (skip_space(b); *b->at != '}' && *b->at != ']'; skip_space(b)) {
        if (object) {
            struct weft_json_value *name = add_node(b, WEFT_JSON_STRING);
            name->at = take_string(b);
            skip_space(b);
            b->at++; /* the colon */
            skip_space(b);
        }
        uint32_t index = take_value(b);
        b->json->values[index].member = object;
        if (last != 0) b->json->values[last].next = index;
        last = index;
        skip_space(b);
        if (*b->at == ',') b->at++;
    }
    b->at++;
    parent->filled = last != 0;
}

/* Returns its index. */
static uint32_t take_value(struct builder *b)
{
    struct weft_json_value *node;
    switch (*b->at) {
    case '{':
    case '[':
        node = add_node(b, *b->at == '{' ? WEFT_JSON_OBJECT : WEFT_JSON_ARRAY);
        take_children(b, node);
        break;
    case '"':
        node = add_node(b, WEFT_JSON_STRING);
        node->at = take_string(b);
        break;
    case 't':
    case 'f':
    case 'n':
        node = add_node(b, *b->at == 'n' ? WEFT_JSON_NULL : WEFT_JSON_BOOL);
        b->at += *b->at == 'f' ? 5 : 4;
        break;
    default:
        node = add_node(b, WEFT_JSON_NUMBER);
        b->at += strspn(b->at, "-+.eE0123456789");
        break;
    }
    return node->index;
}

struct weft_json *weft_json_tree(char *text, size_t length, size_t nodes)
{
    struct weft_json *json = malloc(sizeof *json + nodes * sizeof *json->values);
    if (json == NULL) {
        free(text);
        return NULL;
    }
    *json = (struct weft_json){.text = text, .length = length};
    struct builder builder = {.json = json, .at = text};
    skip_space(&builder);
    take_value(&builder);
    return json;
}

const struct weft_json *weft_json_document_of(const struct weft_json_value *value)
{
    const char *first = (const char *)(value - value->index);
    return (const struct weft_json *)(first - offsetof(struct weft_json, values));
}

/* Starts after the opening quote of a string; returns the place after its closing one. */
static size_t pass_string(const char *text, size_t at, size_t *column)
{
    for (; text[at] != '\0'; at++)
        *column += !weft_utf8_continues((unsigned char)text[at]);
    for (*column += 1, at++; text[at] == '\0' || text[at] == WIDENED; at++)
        *column += text[at] == WIDENED ? 2 : 1;
    return at;
}

static void find_place(const struct weft_json *json, size_t until, size_t *line, size_t *column)
{
    *line = *column = 1;
    for (size_t at = 0; at < until;) {
        char c = json->text[at++];
        *column += 1;
        if (c == '"') at = pass_string(json->text, at, column);
        if (c != '\n') continue;
        *line += 1;
        *column = 1;
    }
}

/* The child that `*path` names, moving `*path` past its name; NULL if there is none. */
static const struct weft_json_value *follow_path(const struct weft_json_value *parent,
                                                 const char **path)
{
    const struct weft_json_value *child = weft_json_first(parent), *found = NULL;
    size_t longest = 0;
    if (**path == '[' && parent->kind == WEFT_JSON_ARRAY) {
        char *end;
        for (long i = strtol(*path + 1, &end, 10); i > 0 && child != NULL; i--)
            child = weft_json_next(child);
        *path = end + (*end == ']');
        return child;
    }
    for (; **path == '.' && child != NULL; child = weft_json_next(child)) {
        const char *name = weft_json_name(child);
        size_t length = name == NULL ? 0 : strlen(name);
        if (name == NULL || strncmp(*path + 1, name, length) != 0) continue;
        if (strchr(".[", (*path)[1 + length]) == NULL || (found != NULL && length < longest))
            continue;
        found = child;
        longest = length;
    }
    if (found != NULL) *path += 1 + longest;
    return found;
}

void weft_json_place(const struct weft_json *document, const char *path, size_t *line,
                     size_t *column)
{
    const struct weft_json_value *at = weft_json_root(document), *next = at;
    for (path += *path == '$'; next != NULL && *path != '\0';) {
        next = follow_path(at, &path);
        if (next != NULL) at = next;
    }
    if (at->member) at--;
    find_place(document, at->at - (at->kind == WEFT_JSON_STRING), line, column);
}
