/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of a document that passed the scan: 12 bytes for each value and each name, in the order
 * of the text, and the text with decoded strings. Internal to base/. */
#ifndef WEFT_BASE_JSON_JSON_TREE_H
#define WEFT_BASE_JSON_JSON_TREE_H

#include "base/json/json.h"

/* A value, or the name before a member. The first child of a container follows it. */
struct weft_json_value {
    uint32_t at;   /* in the text; for strings and names the decoded characters, with a NUL */
    uint32_t next; /* index of the next sibling's value; 0: none */
    unsigned index : 25, kind : 3;
    unsigned member : 1; /* a value with a name before it */
    unsigned filled : 1; /* a container with children */
};

enum { WEFT_JSON_MOST_NODES = 1 << 25 }; /* limit of the index; the scan allows as many */

struct weft_json {
    char *text; /* owned */
    size_t length;
    struct weft_json_value values[]; /* [0] is the root */
};

/* Takes ownership of `text` (length bytes and a NUL, malloc'd), also on failure. `nodes` is from
 * the scan. NULL without memory. */
struct weft_json *weft_json_tree(char *text, size_t length, size_t nodes);

const struct weft_json *weft_json_document_of(const struct weft_json_value *value);

#endif
