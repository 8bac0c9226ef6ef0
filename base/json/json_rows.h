/* SPDX-License-Identifier: Apache-2.0 */
/* Macros for the rows of key tables (json_keys.h). */
#ifndef WEFT_BASE_JSON_JSON_ROWS_H
#define WEFT_BASE_JSON_JSON_ROWS_H

/* Rows. Without _AS the key must be there and has the member's name. */
#define WEFT_KEY_RANGE_AS(flags, name, type, member, least, most, text)                            \
    {                                                                                              \
        name,                                                                                      \
            sizeof(((struct type *)NULL)->member) == sizeof(int32_t) ? WEFT_KEY_INT32              \
                                                                     : WEFT_KEY_INT64,             \
            flags, offsetof(struct type, member), least, most, NULL, text, 0, 0, 0, 0, NULL        \
    }
#define WEFT_KEY_VALUE_AS(flags, name, kind, type, member, text)                                   \
    {                                                                                              \
        name, kind, flags, offsetof(struct type, member), 0, 0, NULL, text, 0, 0, 0, 0, NULL       \
    }
#define WEFT_KEY_PART_RANGE(kind, name, flags, least, most, of, text)                              \
    {                                                                                              \
        name, kind, flags, WEFT_KEY_APART, least, most, of, text, 0, 0, 0, 0, NULL                 \
    }
/* An integer that is written if a byte from member `first` to `last` is not 0. */
#define WEFT_KEY_COUNT_IF(name, type, member, first, last, text)                                   \
    {                                                                                              \
        name,                                                                                      \
            sizeof(((struct type *)NULL)->member) == sizeof(int32_t) ? WEFT_KEY_INT32              \
                                                                     : WEFT_KEY_INT64,             \
            WEFT_KEY_OPTIONAL, offsetof(struct type, member), 0, WEFT_KEY_MOST, NULL, text, 0, 0,  \
            WEFT_KEY_GIVEN(type, first, last), NULL                                                \
    }
#define WEFT_KEY_GIVEN(type, first, last)                                                          \
    offsetof(struct type, first), offsetof(struct type, last) +                                    \
                                      sizeof(((struct type *)NULL)->last) -                        \
                                      offsetof(struct type, first)
/* A struct inside, an object of the table. The second is left out while `given` is 0. */
#define WEFT_KEY_INSIDE(flags, name, type, member, table, text)                                    \
    {                                                                                              \
        name, WEFT_KEY_OBJECT, flags, offsetof(struct type, member), 0, 0, table, text, 0, 0, 0,   \
            0, NULL                                                                                \
    }
#define WEFT_KEY_INSIDE_IF(flags, name, type, member, is_given, table, text)                       \
    {                                                                                              \
        name, WEFT_KEY_OBJECT, (flags) | WEFT_KEY_OPTIONAL, offsetof(struct type, member), 0, 0,   \
            table, text, 0, 0, WEFT_KEY_GIVEN(type, is_given, is_given), NULL                      \
    }
#define WEFT_KEY_INSIDE_BY(flags, name, type, member, first, last, table, text)                    \
    {                                                                                              \
        name, WEFT_KEY_OBJECT, (flags) | WEFT_KEY_OPTIONAL, offsetof(struct type, member), 0, 0,   \
            table, text, 0, 0, WEFT_KEY_GIVEN(type, first, last), NULL                             \
    }
/* Members of this struct that are an object of their own. */
#define WEFT_KEY_OWN(flags, name, table, text)                                                     \
    {                                                                                              \
        name, WEFT_KEY_OBJECT, flags, 0, 0, 0, table, text, 0, 0, 0, 0, NULL                       \
    }
/* A list: `member` points to n_member elements. An optional one is left out if it is empty. Lists
 * of objects are read, unless they are UNREAD; others have their own code. */
#define WEFT_KEY_ARRAY(flags, kind, name, type, member, n_member, of, text)                        \
    {                                                                                              \
        name, kind, (flags) | WEFT_KEY_LIST, offsetof(struct type, member), 0, WEFT_KEY_MOST, of,  \
            text, sizeof(*((struct type *)NULL)->member), offsetof(struct type, n_member),         \
            WEFT_KEY_GIVEN(type, n_member, n_member), NULL                                         \
    }
/* The number of a name, as an int or enum: a place of the NULL-terminated list `names`. */
#define WEFT_KEY_NAMED(flags, name, type, member, names, text)                                     \
    {                                                                                              \
        name, WEFT_KEY_ONE_OF, flags, offsetof(struct type, member), 0, 0, names, text, 0, 0, 0,   \
            0, NULL                                                                                \
    }
#define WEFT_KEY_NAME_AS(name, type, member, names, text)                                          \
    {                                                                                              \
        name, WEFT_KEY_NAME, WEFT_KEY_NEEDED, offsetof(struct type, member), 0, 0, names, text, 0, \
            0, 0, 0, NULL                                                                          \
    }
/* A value of a type that has its own code for writing too. */
#define WEFT_KEY_PUT(flags, kind, name, of, put, text)                                             \
    {                                                                                              \
        name, kind, flags, WEFT_KEY_APART, 0, WEFT_KEY_MOST, of, text, 0, 0, 0, 0, put             \
    }
#define WEFT_KEY_PUT_RANGE(flags, kind, name, least, most, put, text)                              \
    {                                                                                              \
        name, kind, flags, WEFT_KEY_APART, least, most, NULL, text, 0, 0, 0, 0, put                \
    }
/* The table reads it, and `put` writes it. */
#define WEFT_KEY_VALUE_PUT(flags, name, kind, type, member, put, text)                             \
    {                                                                                              \
        name, kind, flags, offsetof(struct type, member), 0, 0, NULL, text, 0, 0, 0, 0, put        \
    }
#define WEFT_KEY_COUNT_PUT(name, type, member, put, text)                                          \
    {                                                                                              \
        name,                                                                                      \
            sizeof(((struct type *)NULL)->member) == sizeof(int32_t) ? WEFT_KEY_INT32              \
                                                                     : WEFT_KEY_INT64,             \
            WEFT_KEY_OPTIONAL, offsetof(struct type, member), 0, WEFT_KEY_MOST, NULL, text, 0, 0,  \
            0, 0, put                                                                              \
    }
#define WEFT_KEY_VERSION(number)                                                                   \
    {                                                                                              \
        "version", WEFT_KEY_INT64, WEFT_KEY_NEEDED, WEFT_KEY_APART, 0, WEFT_KEY_MOST, NULL,        \
            "of the format", number, 0, 0, 0, NULL                                                 \
    }
#define WEFT_KEY_COUNT_AS(flags, name, type, member, text)                                         \
    WEFT_KEY_RANGE_AS(flags, name, type, member, 0, WEFT_KEY_MOST, text)
#define WEFT_KEY_PART_AS(flags, kind, name, of, text)                                              \
    WEFT_KEY_PART_RANGE(kind, name, flags, 0, WEFT_KEY_MOST, of, text)
#define WEFT_KEY_RANGE(type, member, least, most, text)                                            \
    WEFT_KEY_RANGE_AS(WEFT_KEY_NEEDED, #member, type, member, least, most, text)
#define WEFT_KEY_COUNT(type, member, text)                                                         \
    WEFT_KEY_COUNT_AS(WEFT_KEY_NEEDED, #member, type, member, text)
#define WEFT_KEY_VALUE(kind, type, member, text)                                                   \
    WEFT_KEY_VALUE_AS(WEFT_KEY_NEEDED, #member, kind, type, member, text)
#define WEFT_KEY_PART(kind, name, of, text) WEFT_KEY_PART_AS(WEFT_KEY_NEEDED, kind, name, of, text)

/* Tables of rows. WEFT_KEY_TABLE refuses other keys. */
#define WEFT_KEY_ROWS(...)                                                                         \
    (const struct weft_file_key[])                                                                 \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define WEFT_KEY_TABLE_AS(open, text, ...)                                                         \
    {                                                                                              \
        text, WEFT_KEY_ROWS(__VA_ARGS__),                                                          \
            sizeof(WEFT_KEY_ROWS(__VA_ARGS__)) / sizeof(struct weft_file_key), open                \
    }
#define WEFT_KEY_TABLE(text, ...)      WEFT_KEY_TABLE_AS(false, text, __VA_ARGS__)
#define WEFT_KEY_TABLE_OPEN(text, ...) WEFT_KEY_TABLE_AS(true, text, __VA_ARGS__)

#endif
