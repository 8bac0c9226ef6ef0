/* Prints what is generated from the field tables: `write_reference keys` makes docs/keys.md,
 * `write_reference config|model|cluster` a schema. With `--check FILE` it compares instead, and
 * exit 1 says how to make the file anew. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "spec/config_reference.h"

static int compare(const char *path, const char *kind, const struct weft_text *text)
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
    fprintf(stderr, "%s is not what the field tables give; make it anew: write_reference %s > %s\n",
            path, kind, path);
    return 1;
}

int main(int n, char **arguments)
{
    struct weft_text text;
    struct weft_error error = {0};
    if (n != 2 && !(n == 4 && strcmp(arguments[2], "--check") == 0)) {
        fprintf(stderr, "use: write_reference keys|config|model|cluster [--check FILE]\n");
        return 64;
    }
    weft_text_init(&text);
    if (strcmp(arguments[1], "keys") == 0) {
        weft_config_reference(&text);
    } else if (weft_config_schema(arguments[1], &text, &error) != WEFT_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 64;
    }
    int code = 0;
    if (n == 4) {
        code = compare(arguments[3], arguments[1], &text);
    } else {
        fputs(weft_text_chars(&text), stdout);
    }
    weft_text_finish(&text);
    return code;
}
