/* Turns are repeated while the times of steps differ, and a bound ends them. */
#include "runtime/measure/parts.h"
#include "tests/runtime/exec/job.h"

static void the_spread_is_of_the_middle_half(void)
{
    int64_t steady[] = {100, 101, 99, 100, 102, 98, 100, 9000, 100};
    int64_t varied[] = {100, 300, 100, 300, 100, 300, 200, 100, 300};
    int64_t one[] = {70}, idle[] = {0, 0, 0};
    CHECK(weft_measure_spread(steady, 9) == 10, "one slow step is no spread");
    CHECK(weft_measure_spread(varied, 9) == 1000, "%lld",
          (long long)weft_measure_spread(varied, 9));
    CHECK(weft_measure_spread(one, 1) == 0, "of one");
    CHECK(weft_measure_spread(idle, 3) == 0, "of no time");
    CHECK(weft_measure_spread(NULL, 0) == 0, "of none");
}

static void varied_turns_are_repeated_up_to_the_bound(void)
{
    CHECK(weft_measure_more_rounds(9, 36, 100) == 9, "steady");
    CHECK(weft_measure_more_rounds(9, 36, 101) == 18, "varied");
    CHECK(weft_measure_more_rounds(18, 36, 101) == 36, "varied still");
    CHECK(weft_measure_more_rounds(36, 36, 5000) == 36, "the bound");
    CHECK(weft_measure_more_rounds(9, 11, 5000) == 11, "a bound between");
    CHECK(weft_measure_more_rounds(9, 9, 5000) == 9, "as many as were asked for");
    CHECK(weft_measure_more_rounds(9, 3, 5000) == 9, "never fewer");
}

RANKS_TEST(repeat)
{
    the_spread_is_of_the_middle_half();
    varied_turns_are_repeated_up_to_the_bound();
    return 0;
}
