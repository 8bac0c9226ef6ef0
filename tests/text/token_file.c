/* SPDX-License-Identifier: Apache-2.0 */
#include "text/token_file.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[64];

static void make_folder(void)
{
    snprintf(path, sizeof path, "/tmp/weft-tokens-XXXXXX");
    cr_assert_not_null(mkdtemp(path));
    cr_assert_eq(chdir(path), 0);
}

static void drop_folder(void)
{
    (void)unlink("out.bin");
    cr_expect_eq(rmdir(path), 0, "nothing else is left");
}

TestSuite(token_file, .init = make_folder, .fini = drop_folder);

static void expect_file(int32_t size, int64_t magic, int64_t version, int bytes)
{
    enum { COUNT = 700000 };
    struct weft_token_file *file = NULL;
    struct weft_error err = {0};
    int32_t *tokens = malloc(COUNT * sizeof *tokens);
    unsigned char *read = malloc(1024 + 4 * COUNT + 1);
    for (int32_t i = 0; i < COUNT; i++)
        tokens[i] = (int32_t)((int64_t)i * 7919 % size);
    cr_assert_eq(weft_token_file_create("out.bin", size, &file, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_token_file_add(file, tokens, 3, &err), WEFT_OK);
    cr_assert_eq(weft_token_file_add(file, tokens + 3, COUNT - 3, &err), WEFT_OK);
    cr_expect_neq(access("out.bin", F_OK), 0, "it has no name before its end");
    cr_assert_eq(weft_token_file_finish(file, &err), WEFT_OK, "%s", err.text);
    cr_expect_eq(weft_token_file_count(file), COUNT);
    weft_token_file_destroy(file);
    FILE *stream = fopen("out.bin", "rb");
    const size_t n = fread(read, 1, 1024 + 4 * COUNT + 1, stream);
    fclose(stream);
    cr_assert_eq(n, (size_t)(1024 + bytes * COUNT));
    const int64_t header[] = {magic, version, COUNT};
    for (int i = 0; i < 1024; i++)
        cr_assert_eq(read[i], i < 12 ? (unsigned char)(header[i / 4] >> 8 * (i % 4)) : 0, "%d", i);
    for (int32_t i = 0; i < COUNT; i++) {
        int64_t token = 0;
        for (int b = 0; b < bytes; b++)
            token |= (int64_t)read[1024 + i * bytes + b] << 8 * b;
        cr_assert_eq(token, tokens[i], "%d", (int)i);
    }
    free(tokens);
    free(read);
}

Test(token_file, tokens_below_65536_take_16_bits)
{
    expect_file(65536, 20240520, 1, 2);
}

Test(token_file, others_take_32_bits)
{
    expect_file(65537, 20240801, 7, 4);
}

Test(token_file, an_unfinished_file_leaves_nothing)
{
    struct weft_token_file *file = NULL;
    struct weft_error err = {0};
    const int32_t token = 1;
    cr_assert_eq(weft_token_file_create("out.bin", 2, &file, &err), WEFT_OK);
    cr_assert_eq(weft_token_file_add(file, &token, 1, &err), WEFT_OK);
    weft_token_file_destroy(file);
    cr_expect_eq(weft_token_file_create("nowhere/out.bin", 2, &file, &err), WEFT_E_CREATE);
    weft_token_file_destroy(NULL);
}
