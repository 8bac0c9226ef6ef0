/* SPDX-License-Identifier: Apache-2.0 */
#include "library/recorded.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

static struct weft_recorded must_read(const char *text)
{
    char path[] = "/tmp/weft-recorded-XXXXXX";
    struct weft_recorded recorded = {0};
    struct weft_error err = {0};
    const int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    cr_assert_eq(weft_recorded_read(path, &recorded, &err), WEFT_OK, "%s", err.text);
    unlink(path);
    return recorded;
}

#define LINE(step, loss, norm)                                                                     \
    "{\"kind\": \"step\", \"step\": " step ", \"loss\": " loss norm                                \
    ", \"clip\": 1, \"lr\": 0.5, \"loss_scale\": 1}\n"

/* One line of a far step asks for no memory of the steps before it. */
Test(recorded, memory_follows_the_lines)
{
    struct weft_recorded recorded =
        must_read(LINE("3", "1.5", "") LINE("1099511627776", "2.5", "") "{\"kind\": \"st\n");
    cr_assert_eq(recorded.n, 2);
    cr_assert_eq(recorded.first, 3);
    cr_assert_eq(recorded.last, INT64_C(1099511627776));
    cr_assert_eq(weft_recorded_find(&recorded, 3)->loss, 1.5);
    cr_assert_null(weft_recorded_find(&recorded, 4));
    cr_assert_eq(weft_recorded_find(&recorded, recorded.last)->loss, 2.5);
    weft_recorded_finish(&recorded);
}

Test(recorded, the_later_line_of_a_step_counts_in_any_order)
{
    struct weft_recorded recorded =
        must_read(LINE("3", "1", "") LINE("5", "2", "") LINE("4", "3", "") LINE("3", "4", ""));
    cr_assert_eq(recorded.n, 3);
    cr_assert_eq(weft_recorded_find(&recorded, 3)->loss, 4);
    cr_assert_eq(weft_recorded_find(&recorded, 4)->loss, 3);
    cr_assert_eq(weft_recorded_find(&recorded, 5)->loss, 2);
    weft_recorded_finish(&recorded);
}

static void check_how(const char *a, const char *b, const char *how)
{
    struct weft_recorded x = must_read(a), y = must_read(b);
    struct weft_text text;
    weft_text_init(&text);
    cr_assert_eq(weft_recorded_compare(x.steps, y.steps, "replayed", &text), how[0] != '\0');
    cr_assert_str_eq(weft_text_chars(&text), how);
    weft_text_finish(&text);
    weft_recorded_finish(&x);
    weft_recorded_finish(&y);
}

Test(recorded, a_lost_number_differs)
{
    check_how(LINE("3", "1.5", ""), LINE("3", "1.5", ""), "");
    check_how(LINE("3", "1.5", ", \"norm\": 2"), LINE("3", "1.5", ", \"norm\": 2"), "");
    check_how(LINE("3", "null", ""), LINE("3", "1.5", ""), "loss null, replayed 1.5");
    check_how(LINE("3", "1.5", ", \"norm\": null"), LINE("3", "1.5", ", \"norm\": 2"),
              "norm null, replayed 2");
    check_how(LINE("3", "1.5", ""), LINE("3", "1.5", ", \"norm\": 2"), "norm null, replayed 2");
    check_how(LINE("3", "1.5", ", \"norm\": 2"), LINE("3", "1.5", ""), "norm 2, replayed null");
}

#define GROUPS(step, ranks, groups, hashes)                                                        \
    ", \"gradients\": {\"step\": " step ", \"ranks\": " ranks ", \"groups\": " groups              \
    ", \"hashes\": [" hashes "]}"

static void check_rank(const char *a, const char *b, const char *how, int32_t rank)
{
    struct weft_recorded x = must_read(a), y = must_read(b);
    const struct weft_recorded_step *recorded = weft_recorded_find(&x, 3);
    const struct weft_recorded_step *replayed = weft_recorded_find(&y, 3);
    struct weft_text text;
    weft_text_init(&text);
    cr_assert_eq(weft_recorded_compare(recorded, replayed, "replayed", &text) > 0, how[0] != '\0');
    cr_assert_str_eq(weft_text_chars(&text), how);
    cr_assert_eq(weft_recorded_rank(recorded, replayed), rank);
    weft_text_finish(&text);
    weft_recorded_finish(&x);
    weft_recorded_finish(&y);
}

#define A "\"000000000000000a\""
#define B "\"000000000000000b\""

Test(recorded, the_rank_of_another_gradient_is_named)
{
    const char *run = LINE("3", "1", GROUPS("3", "2", "4", A "," A "," A "," A));
    check_rank(run, LINE("3", "1", GROUPS("3", "1", "4", A "," A "," A "," A)), "", -1);
    check_rank(run, LINE("3", "1", GROUPS("3", "1", "4", A "," A "," A "," B)),
               "gradient of group 3 (rank 1)", 1);
    check_rank(run, LINE("3", "1", GROUPS("3", "1", "4", A "," B "," A "," B)),
               "gradients of group 1 (rank 1), 3 (rank 1)", 1);
    check_rank(run, LINE("3", "1", GROUPS("3", "1", "4", A "," B "," B "," A)),
               "gradients of group 1 (rank 1), 2 (rank 0)", -1);
    check_rank(run, LINE("3", "1", GROUPS("3", "4", "4", B "," B "," B "," B)),
               "gradients of all groups", -1);
    check_rank(run, LINE("3", "1", ""), "", -1);
    /* A later line has those of step 3. */
    check_rank(run, LINE("3", "1", "") LINE("4", "1", GROUPS("3", "2", "4", A "," A "," B "," A)),
               "gradient of group 2 (rank 0)", 0);
#define WITH(digit) ", \"parameters\": \"0000000000000000000000000000000" digit "\""
    /* A rank computes other gradients rightly from other parameters. */
    check_rank(LINE("3", "1", WITH("1") GROUPS("3", "2", "2", A "," A)),
               LINE("3", "1", WITH("2") GROUPS("3", "2", "2", A "," B)),
               "parameters before it 00000000000000000000000000000001, replayed "
               "00000000000000000000000000000002, gradient of group 1 (rank 1)",
               -1);
#undef WITH
}

Test(recorded, gradients_that_are_not_whole_are_a_torn_line)
{
    static const char *const wrong[] = {
        LINE("4", "1", GROUPS("3", "2", "4", A "," A "," A)),
        LINE("4", "1", GROUPS("3", "5", "4", A "," A "," A "," A)),
        LINE("4", "1", GROUPS("3", "0", "1", A)),
        LINE("4", "1", GROUPS("0", "1", "1", A)),
        LINE("4", "1", GROUPS("3", "1", "1", "\"000000000000000x\"")),
        LINE("4", "1", GROUPS("3", "1", "1", "\"0a\"")),
        LINE("4", "1", GROUPS("3", "1", "1", "7")),
        LINE("4", "1", GROUPS("3", "1", "1", A "," A)),
        LINE("4", "1", ", \"gradients\": 7"),
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[1024];
        snprintf(text, sizeof text, "%s%s", LINE("3", "1", ""), wrong[i]);
        struct weft_recorded recorded = must_read(text);
        cr_assert_eq(recorded.n, 1, "%s", wrong[i]);
        weft_recorded_finish(&recorded);
    }
}
