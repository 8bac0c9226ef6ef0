/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a random config, a function of its number: random_config NUMBER. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/scheduler/random_whole.h"

int main(int argc, char **argv)
{
    static struct weft_error err;
    struct weft_text text;
    char *end;
    if (argc != 2) return fprintf(stderr, "usage: random_config NUMBER\n"), 64;
    uint64_t number = strtoull(argv[1], &end, 10);
    if (*argv[1] == '\0' || *end != '\0')
        return fprintf(stderr, "random_config: %s is no number\n", argv[1]), 64;
    weft_text_init(&text);
    enum weft_status status = random_whole_write(number, &text, &err);
    if (status == WEFT_OK)
        fputs(weft_text_chars(&text), stdout);
    else
        fprintf(stderr, "random_config: %s\n", err.text);
    weft_text_finish(&text);
    return weft_status_exit_code(status);
}
