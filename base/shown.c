/* SPDX-License-Identifier: Apache-2.0 */
#include "base/shown.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

bool weft_shown_hides(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } hidden[] = {
        {0x00, 0x1F},     {0x7F, 0x9F},     /* controls */
        {0x61C, 0x61C},   {0x200E, 0x200F}, /* marks of direction */
        {0x202A, 0x202E}, {0x2066, 0x2069}, /* embeddings, overrides, isolates */
        {0x2028, 0x2029},                   /* separators of lines and paragraphs */
        {0xAD, 0xAD},     {0x200B, 0x200B}, /* no width: soft hyphen, spaces, joiners, tags */
        {0x2060, 0x2064}, {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0000, 0xE007F},
    };
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (code >= hidden[i].first && code <= hidden[i].last) return true;
    return false;
}

static bool is_kept(uint32_t code, enum weft_shown_kept kept)
{
    return (code == '\n' && kept != WEFT_SHOWN_LINE) || (code == '\t' && kept == WEFT_SHOWN_TEXT);
}

size_t weft_shown_next(const char *bytes, size_t left, enum weft_shown_kept kept, size_t *taken,
                       char out[WEFT_SHOWN_PIECE_BYTES])
{
    const unsigned char *at = (const unsigned char *)bytes;
    size_t length = weft_utf8_sequence(at, left);
    *taken = length == 0 ? 1 : length;
    if (length == 0) return (size_t)snprintf(out, WEFT_SHOWN_PIECE_BYTES, "\\x%02x", at[0]);
    uint32_t code = weft_utf8_code(at, length);
    if (weft_shown_hides(code) && !is_kept(code, kept))
        return (size_t)snprintf(out, WEFT_SHOWN_PIECE_BYTES, "\\u%04x", (unsigned)code);
    memcpy(out, at, length);
    return length;
}

bool weft_shown_is_plain(const char *bytes, size_t length, enum weft_shown_kept kept)
{
    const char *at = bytes, *end = at + length;
    char piece[WEFT_SHOWN_PIECE_BYTES];
    for (size_t taken; at < end; at += taken) {
        taken = 1;
        if (*at >= ' ' && *at < 0x7F) continue;
        size_t shown = weft_shown_next(at, (size_t)(end - at), kept, &taken, piece);
        if (shown != taken || memcmp(piece, at, taken) != 0) return false;
    }
    return true;
}

const char *weft_shown_into(const char *bytes, size_t length, enum weft_shown_kept kept, char *out,
                            size_t capacity)
{
    static const char ellipsis[] = "...";
    const char *at = bytes;
    size_t used = 0, cut = 0; /* cut: the last place with room for "..." */
    char piece[WEFT_SHOWN_PIECE_BYTES];
    for (size_t taken; length > 0; at += taken, length -= taken) {
        size_t shown = weft_shown_next(at, length, kept, &taken, piece);
        if (used + sizeof ellipsis <= capacity) cut = used;
        if (used + shown + 1 > capacity) {
            memcpy(out + cut, ellipsis, sizeof ellipsis);
            return out;
        }
        memcpy(out + used, piece, shown);
        used += shown;
    }
    out[used] = '\0';
    return out;
}

const char *weft_shown(const char *name, char out[WEFT_SHOWN_BYTES])
{
    return weft_shown_into(name, strlen(name), WEFT_SHOWN_LINE, out, WEFT_SHOWN_BYTES);
}
