/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <criterion/criterion.h>
#include <string.h>

struct record {
    int calls;
    enum weft_log_level level;
    char text[8192];
};

static void keep(void *context, enum weft_log_level level, const char *text)
{
    struct record *record = context;
    record->calls++;
    record->level = level;
    cr_assert_lt(strlen(text), sizeof record->text);
    strcpy(record->text, text);
}

Test(log, goes_to_the_sink_and_nowhere_without_one)
{
    static struct record record;
    weft_log(WEFT_LOG_WARNING, "nobody hears %d", 1);
    weft_log_set_sink(keep, &record);
    cr_assert_eq(record.calls, 0);
    weft_log(WEFT_LOG_WARNING, "rank %d is slow", 3);
    cr_assert_eq(record.calls, 1);
    cr_assert_eq(record.level, WEFT_LOG_WARNING);
    cr_assert_str_eq(record.text, "rank 3 is slow");
    weft_log_set_sink(NULL, NULL);
    weft_log(WEFT_LOG_INFO, "gone");
    cr_assert_eq(record.calls, 1);
}

Test(log, cuts_a_long_line_visibly)
{
    static struct record record;
    weft_log_set_sink(keep, &record);
    weft_log(WEFT_LOG_DEBUG, "%9000d", 1);
    cr_assert_eq(record.calls, 1);
    cr_assert_str_eq(record.text + strlen(record.text) - 4, " ...");
}
