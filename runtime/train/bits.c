/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/bits.h"

#include <string.h>

#include "base/shown.h"

static const char between[] = "; ";

void weft_bits_tell(const struct weft_device *device, const struct weft_nn *nn,
                    struct weft_text *out)
{
    const char *hardware = weft_device_hardware(device);
    weft_nn_add_bits(nn, out);
    if (hardware != NULL) weft_text_addf(out, "%sgpu: %s", between, hardware);
}

/* Bytes of the part that the text begins with. */
static size_t part_length(const char *text)
{
    const char *end = strstr(text, between);
    return end == NULL ? strlen(text) : (size_t)(end - text);
}

static const char *after_part(const char *text, size_t length)
{
    return text[length] == '\0' ? text + length : text + length + strlen(between);
}

static void add_part(const char *part, size_t length, struct weft_text *out)
{
    char shown[WEFT_SHOWN_BYTES];
    struct weft_text whole;
    weft_text_init(&whole);
    weft_text_append(&whole, part, length);
    weft_text_add(out, length > 0 ? weft_shown(weft_text_chars(&whole), shown) : "nothing more");
    weft_text_finish(&whole);
}

bool weft_bits_compare(const char *a, const char *b, const char *after_a, const char *after_b,
                       struct weft_text *out)
{
    size_t of_a = part_length(a), of_b = part_length(b);
    while (of_a == of_b && of_a > 0 && memcmp(a, b, of_a) == 0) {
        a = after_part(a, of_a);
        b = after_part(b, of_b);
        of_a = part_length(a);
        of_b = part_length(b);
    }
    if (of_a == 0 && of_b == 0) return true;
    add_part(a, of_a, out);
    weft_text_add(out, after_a);
    add_part(b, of_b, out);
    weft_text_add(out, after_b);
    return false;
}
