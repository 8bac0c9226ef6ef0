/* Tables of a file's keys, of which a schema is made. Private to cli/schema_*.c. */
#ifndef WEFT_CLI_SCHEMA_KEYS_H
#define WEFT_CLI_SCHEMA_KEYS_H

#include <stdbool.h>
#include <stddef.h>

struct weft_schema_object;

/* A key of a file. `type` is a piece of JSON Schema; where it is NULL the value is `object`, or
 * with `list` an array of them. */
struct weft_schema_key {
    const char *name, *type, *text;
    const struct weft_schema_object *object;
    bool list, optional;
};

struct weft_schema_object {
    const char *text;
    const struct weft_schema_key *keys;
    size_t n_keys;
    bool or_null;
};
#define OBJECT(text, keys)                                                                         \
    {                                                                                              \
        text, keys, sizeof(keys) / sizeof *(keys), false                                           \
    }

#define COUNT     "\"type\": \"integer\", \"minimum\": 0"
#define BYTES     COUNT
#define NS        COUNT
#define NUMBER    "\"type\": \"number\""
#define TRUTH     "\"type\": \"boolean\""
#define TEXT      "\"type\": \"string\""
#define ANYTHING  "\"type\": \"object\""
#define HASH      "\"type\": \"string\", \"pattern\": \"^[0-9a-f]{32}$\""
#define CRC       "\"type\": \"integer\", \"minimum\": 0, \"maximum\": 4294967295"
#define COUNTS    "\"type\": \"array\", \"items\": {" COUNT "}"
#define TEXTS     "\"type\": \"array\", \"items\": {" TEXT "}"
#define ONE(name) "\"const\": \"" name "\""

/* null: not measured */
#define MEASURED_COUNT  "\"type\": [\"integer\", \"null\"], \"minimum\": 0"
#define MEASURED_NUMBER "\"type\": [\"number\", \"null\"]"

/* docs/plan-file.md describes the file; examples are an array of them. */
extern const struct weft_schema_object weft_schema_plan;
extern const char weft_schema_plan_examples[];

#endif
