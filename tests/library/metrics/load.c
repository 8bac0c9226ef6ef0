/* SPDX-License-Identifier: Apache-2.0 */
#include "library/metrics/load.h"

#include <criterion/criterion.h>
#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

static bool is_near(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

Test(load, the_first_line_of_stat_is_read)
{
    struct weft_load load = {0};
    cr_assert(weft_load_parse("cpu  100 20 30 9999 77 5 6 40 50 60\n", 100, &load));
    cr_assert(is_near(load.busy_s, 1.61) && is_near(load.stolen_s, 0.4));
    /* Old kernels have no steal. */
    cr_assert(weft_load_parse("cpu 100 0 100 50", 100, &load));
    cr_assert(is_near(load.busy_s, 2) && is_near(load.stolen_s, 0));
    cr_assert_not(weft_load_parse("cpu0 1 2 3 4", 100, &load));
    cr_assert_not(weft_load_parse("intr 5", 100, &load));
    cr_assert_not(weft_load_parse("", 100, &load));
}

static const char *says(const struct weft_load *spent)
{
    static struct weft_text text;
    weft_text_finish(&text);
    weft_load_add(spent, &text);
    return weft_text_chars(&text);
}

Test(load, what_others_used_is_said_in_cores)
{
    struct weft_load spent = {
        .known = true, .passed_s = 10, .busy_s = 30, .own_s = 17, .stolen_s = 0.9, .cores = 4};
    cr_assert_str_eq(says(&spent), "other programs used 1.3 of 4 cores: measured times are longer "
                                   "by that\n");
    spent.stolen_s = 5;
    spent.own_s = 29.5;
    cr_assert_str_eq(says(&spent), "the host of this virtual machine took 0.5 of 4 cores: measured "
                                   "times are longer by that\n");
    spent.busy_s = 1000;
    cr_assert(is_near(weft_load_of_others(&spent), 4), "no more than there are");
    spent.passed_s = 0.9;
    cr_assert_str_eq(says(&spent), "");
    spent.passed_s = 10;
    spent.known = false;
    cr_assert_str_eq(says(&spent), "");
    cr_assert_str_eq(says(&(struct weft_load){0}), "");
}

/* The time of a child counts as own as soon as the child has ended. */
Test(load, children_that_have_ended_are_no_others)
{
    struct weft_load before, spent = {0};
    weft_load_read(&before);
    if (!before.known) cr_skip_test("no /proc/stat");
    double own_s = before.own_s;
    pid_t pid = fork();
    if (pid == 0) {
        while (weft_clock_thread_ns() < INT64_C(200000000)) {
        }
        _exit(0);
    }
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
    weft_load_spend(&before, &spent);
    cr_assert(spent.own_s >= 0.19, "%g s after %g s", spent.own_s, own_s);
    cr_assert(spent.busy_s >= 0.1 && spent.passed_s >= 0.19);
}
