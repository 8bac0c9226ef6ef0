/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void weft_text_init(struct weft_text *text)
{
    *text = (struct weft_text){0};
}

void weft_text_finish(struct weft_text *text)
{
    free(text->data);
    weft_text_init(text);
}

/* Makes room for `more` characters and the NUL. */
static bool reserve_bytes(struct weft_text *text, size_t more)
{
    if (text->failed) return false;
    if (text->capacity - text->length > more) return true;
    text->failed = true;
    if (more > SIZE_MAX / 2 - text->length - 1) return false;
    size_t capacity = 2 * (text->length + more + 1);
    if (capacity < 64) capacity = 64;
    char *data = realloc(text->data, capacity);
    if (data == NULL) return false;
    text->data = data;
    text->capacity = capacity;
    text->failed = false;
    return true;
}

static void append_bytes(struct weft_text *text, const char *bytes, size_t length)
{
    if (length == 0 || !reserve_bytes(text, length)) return;
    memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = '\0';
}

static bool is_shown_as_it_is(const struct weft_text *text, const char *bytes, size_t length)
{
    return text->columns == 0 || weft_shown_is_plain(bytes, length, WEFT_SHOWN_LINES);
}

void weft_text_append(struct weft_text *text, const char *bytes, size_t length)
{
    if (is_shown_as_it_is(text, bytes, length))
        append_bytes(text, bytes, length);
    else
        weft_text_add_shown(text, bytes, length, WEFT_SHOWN_LINES);
}

void weft_text_add(struct weft_text *text, const char *string)
{
    weft_text_append(text, string, strlen(string));
}

void weft_text_add_escape(struct weft_text *text, const char *sequence)
{
    append_bytes(text, sequence, strlen(sequence));
}

/* Escapes the formatted text from `start` on. */
static void show_from(struct weft_text *text, size_t start)
{
    size_t length = text->length - start;
    if (text->failed || is_shown_as_it_is(text, text->data + start, length)) return;
    char *raw = malloc(length);
    if (raw != NULL) {
        memcpy(raw, text->data + start, length);
        text->length = start;
        weft_text_add_shown(text, raw, length, WEFT_SHOWN_LINES);
    } else {
        text->failed = true;
    }
    free(raw);
}

void weft_text_addf(struct weft_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) text->failed = true;
    if (length <= 0 || !reserve_bytes(text, (size_t)length)) return;
    va_start(arguments, format);
    vsnprintf(text->data + text->length, (size_t)length + 1, format, arguments);
    va_end(arguments);
    text->length += (size_t)length;
    show_from(text, text->length - (size_t)length);
}

const char *weft_text_chars(const struct weft_text *text)
{
    return text->data == NULL ? "" : text->data;
}

bool weft_text_ok(const struct weft_text *text)
{
    return !text->failed;
}

void weft_text_add_shown(struct weft_text *text, const char *bytes, size_t length,
                         enum weft_shown_kept kept)
{
    if (weft_shown_is_plain(bytes, length, kept)) {
        weft_text_append(text, bytes, length);
        return;
    }
    char piece[WEFT_SHOWN_PIECE_BYTES];
    const char *at = bytes;
    for (size_t taken; length > 0; at += taken, length -= taken) {
        size_t shown = weft_shown_next(at, length, kept, &taken, piece);
        weft_text_append(text, piece, shown);
    }
}

void weft_text_add_word(struct weft_text *text, const char *word)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+,:@%=";
    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        weft_text_add(text, word);
        return;
    }
    weft_text_add(text, "'");
    for (; *word != '\0'; word++) {
        if (*word == '\'')
            weft_text_add(text, "'\\''");
        else
            weft_text_append(text, word, 1);
    }
    weft_text_add(text, "'");
}
