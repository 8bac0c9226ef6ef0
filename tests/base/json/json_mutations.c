/* Damaged JSON: whatever the bytes, the parser says yes or no in bounds, says no with a place, and
 * what it says yes to is written back to something that reads the same. Without arguments it tries
 * a fixed set of mutations. With libFuzzer, by hand:
 *   clang -g -fsanitize=fuzzer,address,undefined -DWEFT_FUZZ -D_POSIX_C_SOURCE=200809L -I. \
 *     tests/base/json/json_mutations.c $(find base -name '*.c') -lm -o fuzz-json */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/rng.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds, const char *what, const char *bytes, size_t length)
{
    if (holds) return;
    fprintf(stderr, "%s, for these %zu bytes:\n", what, length);
    fwrite(bytes, 1, length, stderr);
    fputc('\n', stderr);
    abort();
}

static void write_document(const struct weft_json *document, int indent, struct weft_text *text)
{
    struct weft_json_writer writer;
    weft_text_init(text);
    weft_json_writer_init(&writer, text, indent);
    weft_json_add_value(&writer, weft_json_root(document));
}

/* Written, read and written again is the same text. */
static void check_round_trip(const struct weft_json *document, const char *bytes, size_t length)
{
    struct weft_text first, second;
    struct weft_json *copy = NULL;
    struct weft_error err = {0};
    write_document(document, 2, &first);
    demand(weft_text_ok(&first), "the document cannot be written", bytes, length);
    enum weft_status status = weft_json_parse(first.data, first.length, "copy", &copy, &err);
    demand(status == WEFT_OK, "the written document is not read", bytes, length);
    write_document(copy, 2, &second);
    demand(strcmp(weft_text_chars(&first), weft_text_chars(&second)) == 0,
           "the copy differs from the document", bytes, length);
    weft_json_destroy(copy);
    weft_text_finish(&first);
    weft_text_finish(&second);
}

static bool try_bytes(const char *bytes, size_t length)
{
    struct weft_json *document = NULL;
    struct weft_error err = {0};
    enum weft_status status = weft_json_parse(bytes, length, "input", &document, &err);
    if (status != WEFT_OK) {
        size_t line = 0, column = 0;
        demand(status == WEFT_E_DATA, "a refusal is not WEFT_E_DATA", bytes, length);
        demand(document == NULL, "the output is touched on failure", bytes, length);
        demand(sscanf(err.text, "input:%zu:%zu: ", &line, &column) == 2 && line > 0 && column > 0,
               "an error has no place", bytes, length);
        return false;
    }
    check_round_trip(document, bytes, length);
    weft_json_destroy(document);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)try_bytes((const char *)data, size);
    return 0;
}

#ifndef WEFT_FUZZ
static const char *const seeds[] = {
    "{\"format\": \"weft-plan\", \"version\": 1, \"units\": [{\"name\": \"layer.0\", \"bytes\": "
    "123456}, {\"name\": \"layer.1\", \"bytes\": 0}], \"ok\": true, \"none\": null}",
    "[1, -2.5e-3, 0.1, 1e308, 9007199254740991, -0, [], {}, [[[[]]]]]",
    "{\"\\u0061\": \"\\uD83D\\uDE00 \\n\\\\\", \"b\\\"\": "
    "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"}",
    "  \"just a string\"  ",
    "-12.75E+3",
};

/* Pieces that damage best. */
static const char *const pieces[] = {
    "\"",
    "\\",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "0",
    "-",
    ".",
    "e9",
    "\n",
    "\\u00",
    "\\uD800",
    "\\uDC00",
    "\\u0000",
    "true",
    "\xC3",
    "\xED",
    "1e400",
    "//",
    " ",
    "\xEF\xBB\xBF",
    "\"a\": 1, \"a\": 2",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
};

enum { SEEDS = sizeof seeds / sizeof seeds[0], PIECES = sizeof pieces / sizeof pieces[0] };

struct buffer {
    char bytes[8192];
    size_t length;
};

static void splice(struct buffer *buffer, size_t at, size_t gone, const char *piece, size_t length)
{
    if (gone > buffer->length - at) gone = buffer->length - at;
    if (buffer->length - gone + length > sizeof buffer->bytes) return;
    memmove(buffer->bytes + at + length, buffer->bytes + at + gone, buffer->length - at - gone);
    memcpy(buffer->bytes + at, piece, length);
    buffer->length = buffer->length - gone + length;
}

static void mutate(struct buffer *buffer, uint64_t round, uint64_t step)
{
    uint64_t draw = step * 8;
    size_t at = weft_rng_below(1, round, draw, buffer->length + 1);
    size_t span = weft_rng_below(1, round, draw + 1, 8);
    const char *piece = pieces[weft_rng_below(1, round, draw + 2, PIECES)];
    char byte = (char)weft_rng_u64(1, round, draw + 3);
    switch (weft_rng_below(1, round, draw + 4, 5)) {
    case 0:
        splice(buffer, at, 1, &byte, 1);
        break;
    case 1:
        splice(buffer, at, span, "", 0);
        break;
    case 2:
        splice(buffer, at, 0, piece, strlen(piece));
        break;
    case 3:
        buffer->length = at;
        break;
    default: {
        const char *other = seeds[weft_rng_below(1, round, draw + 5, SEEDS)];
        splice(buffer, at, span, other, strlen(other));
        break;
    }
    }
}

static bool try_exact(const struct buffer *buffer)
{
    /* Exactly as large, so that AddressSanitizer sees a read past the end. */
    char *exact = malloc(buffer->length + (buffer->length == 0));
    if (exact == NULL) abort();
    memcpy(exact, buffer->bytes, buffer->length);
    bool accepted = try_bytes(exact, buffer->length);
    free(exact);
    return accepted;
}

int main(void)
{
    enum { ROUNDS = 100000 };
    int accepted = 0;
    for (int i = 0; i < SEEDS; i++) {
        struct buffer buffer = {.length = strlen(seeds[i])};
        memcpy(buffer.bytes, seeds[i], buffer.length);
        demand(try_exact(&buffer), "a seed is refused", seeds[i], buffer.length);
    }
    for (uint64_t round = 0; round < ROUNDS; round++) {
        const char *seed = seeds[round % SEEDS];
        struct buffer buffer = {.length = strlen(seed)};
        memcpy(buffer.bytes, seed, buffer.length);
        uint64_t steps = 1 + weft_rng_below(2, round, 0, 4);
        for (uint64_t step = 0; step < steps; step++)
            mutate(&buffer, round, step);
        accepted += try_exact(&buffer);
    }
    /* Both answers must be well represented, or the mutations are no test. */
    printf("%d of %d mutations accepted\n", accepted, ROUNDS);
    return accepted > ROUNDS / 50 && accepted < ROUNDS / 2 ? 0 : 1;
}
#endif
