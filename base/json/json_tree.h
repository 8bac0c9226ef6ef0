/* The tree of a document that the scan has passed: 12 bytes a value and 12 a name, in the order of
 * the text, and the text, in which strings stand decoded. Internal to base/. */
#ifndef WEFT_BASE_JSON_JSON_TREE_H
#define WEFT_BASE_JSON_JSON_TREE_H

#include "base/json/json.h"

/* A value, or the name that stands before a member. The first child of a container is behind it. */
struct weft_json_value {
    uint32_t at;   /* of the text; of strings and names the decoded characters, with a NUL */
    uint32_t next; /* index of the next sibling's value; 0: it is the last */
    unsigned index : 25, kind : 3;
    unsigned member : 1; /* a value whose name stands before it */
    unsigned filled : 1; /* a container that is not empty */
};

enum { WEFT_JSON_MOST_NODES = 1 << 25 }; /* that an index can name: as many as the scan lets by */

struct weft_json {
    char *text; /* owned */
    size_t length;
    struct weft_json_value values[]; /* [0] is the root */
};

/* Takes `text` (length bytes and a NUL, malloc'd) whatever comes of it. `nodes` is the scan's. NULL
 * when memory runs out. */
struct weft_json *weft_json_tree(char *text, size_t length, size_t nodes);

const struct weft_json *weft_json_document_of(const struct weft_json_value *value);

#endif
