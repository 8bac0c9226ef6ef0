/* SPDX-License-Identifier: Apache-2.0 */
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
#ifndef WEFT_FUZZ
#include "tests/base/json/damage.h"
#endif

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
static bool try_exact(const struct damage_buffer *buffer)
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
    for (int i = 0; i < DAMAGE_SEEDS; i++) {
        struct damage_buffer buffer = {.length = strlen(damage_seeds[i])};
        memcpy(buffer.bytes, damage_seeds[i], buffer.length);
        demand(try_exact(&buffer), "a seed is refused", damage_seeds[i], buffer.length);
    }
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct damage_buffer buffer;
        damage_make(round, &buffer);
        accepted += try_exact(&buffer);
    }
    /* Both answers must be well represented, or the mutations are no test. */
    printf("%d of %d mutations accepted\n", accepted, ROUNDS);
    return accepted > ROUNDS / 50 && accepted < ROUNDS / 2 ? 0 : 1;
}
#endif
