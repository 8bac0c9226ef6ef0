/* SPDX-License-Identifier: Apache-2.0 */
/* Prints text generated from the field tables: `write_reference keys` makes docs/keys.md,
 * `write_reference config|model|cluster` a schema. With `--check FILE` it compares instead; on
 * exit 1 it prints the command that updates the file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "spec/config_reference.h"

static int compare_file(const char *path, const struct weft_text *text)
{
    struct weft_error error = {0};
    char *bytes = NULL;
    size_t length = 0;
    if (weft_file_read(path, 1 << 24, &bytes, &length, &error) != WEFT_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    bool equal = length == text->length && memcmp(bytes, weft_text_chars(text), text->length) == 0;
    free(bytes);
    if (equal) return 0;
    fprintf(stderr, "%s differs from the field tables; run: write-reference > %s\n", path, path);
    return 1;
}

int main(int n, char **arguments)
{
    struct weft_text text;
    const bool check = n == 3 && strcmp(arguments[1], "--check") == 0;
    if (n != 1 && !check) {
        fprintf(stderr, "use: write-reference [--check FILE]\n");
        return 64;
    }
    weft_text_init(&text);
    weft_config_reference(&text);
    int code = check ? compare_file(arguments[2], &text) : 0;
    if (!check) fputs(weft_text_chars(&text), stdout);
    weft_text_finish(&text);
    return code;
}
