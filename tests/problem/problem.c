#include "problem/problem.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/problem/small_problem.h"

static void refused_problem(const struct weft_problem *problem, const char *word)
{
    struct weft_error err = {0};
    cr_assert_eq(weft_problem_check(problem, "here", &err), WEFT_E_DATA, "%s", word);
    cr_assert(strncmp(err.text, "here: ", 6) == 0, "%s", err.text);
    cr_assert(strstr(err.text, word) != NULL, "\"%s\" lacks \"%s\"", err.text, word);
}

Test(problem, small_one_is_right)
{
    struct weft_problem problem = small_problem();
    struct weft_error err = {0};
    cr_assert_eq(weft_problem_check(&problem, "here", &err), WEFT_OK, "%s", err.text);
}

Test(problem, scalars)
{
    struct weft_problem problem = small_problem();
    problem.ranks = 0;
    refused_problem(&problem, "ranks is 0");
    problem = small_problem();
    problem.memory_limit_bytes = 0;
    refused_problem(&problem, "memory_limit_bytes is 0");
    problem.memory_limit_bytes = WEFT_PROBLEM_MOST + 1;
    refused_problem(&problem, "memory_limit_bytes");
    problem = small_problem();
    problem.agree_ns = -1;
    refused_problem(&problem, "agree_ns");
    problem = small_problem();
    problem.compute_rate = WEFT_RATE_LEAST - 1;
    refused_problem(&problem, "compute_rate is 63");
    problem.compute_rate = WEFT_RATE_ONE / 2;
    problem.channel_rate = WEFT_RATE_ONE / 2 - 1;
    refused_problem(&problem, "one after the other");
    problem.channel_rate = WEFT_RATE_ONE + 1;
    refused_problem(&problem, "channel_rate is 1025");
    problem = small_problem();
    problem.n_channels = 0;
    refused_problem(&problem, "channels is 0");
    problem.n_channels = 2;
    refused_problem(&problem, "on the other channel");
}

Test(problem, slots_make_a_period)
{
    struct weft_problem problem = small_problem();
    problem.n_slots = 0;
    refused_problem(&problem, "do not make a period");
    problem.n_slots = N_SMALL_SLOTS - 1;
    refused_problem(&problem, "do not make a period");
    problem = small_problem();
    problem.slots[3].index = 1;
    refused_problem(&problem, "slots[3]");
    problem.slots[3] = (struct weft_slot){WEFT_SLOT_BACKWARD, 0, 0};
    refused_problem(&problem, "expected forward");
    problem.slots[3] = (struct weft_slot){WEFT_SLOT_FORWARD, 0, 0};
    problem.slots[1].index = 0;
    refused_problem(&problem, "slots[1]");
    problem.slots[1].index = 2;
    refused_problem(&problem, "slots[1]");
    problem.slots[1].index = 1;
    problem.slot_ns[4] = -1;
    refused_problem(&problem, "slots[4]");
    problem.slot_ns[4] = WEFT_PROBLEM_MOST;
    refused_problem(&problem, "2^53");
}

Test(problem, units)
{
    struct weft_problem problem = small_problem();
    problem.units[1].policies = 0;
    refused_problem(&problem, "units[1] (b) has no policies");
    problem.units[1].policies = 1u << WEFT_POLICY_COUNT;
    refused_problem(&problem, "units[1] (b) has no policies");
    problem.units[1].policies = 1;
    problem.units[1].holds[WEFT_POLICY_SDP][0].last = N_SMALL_SLOTS;
    refused_problem(&problem, "hold 0 is in slots 4 to 9");
    problem.units[1].holds[WEFT_POLICY_SDP][0].last = 5;
    problem.units[1].holds[WEFT_POLICY_SDP][0].category = WEFT_CATEGORY_COUNT;
    refused_problem(&problem, "category");
    problem.units[1].holds[WEFT_POLICY_SDP][0].category = WEFT_CATEGORY_BASE;
    problem.common[0].bytes = WEFT_PROBLEM_MOST;
    refused_problem(&problem, "sum of all bytes");
}

Test(problem, items)
{
    struct weft_problem problem = small_problem();
    struct weft_item *item = &problem.items[B_GATHER].item, good = *item;
    item->unit = 2;
    refused_problem(&problem, "items[3]: unit");
    *item = good;
    item->kind = WEFT_COLLECTIVE_COUNT;
    refused_problem(&problem, "items[3]: kind");
    *item = good;
    item->last = item->first - 1;
    refused_problem(&problem, "items[3]: its window is not");
    *item = good;
    item->last = N_SMALL_SLOTS - 1;
    refused_problem(&problem, "items[3]: its window is not");
    *item = good;
    item->first = 1;
    refused_problem(&problem, "before the unit's update");
    *item = good;
    item->n_blocks = 0;
    refused_problem(&problem, "n_blocks");
    *item = good;
    item->n_blocks = WEFT_PROBLEM_MOST_BLOCKS;
    refused_problem(&problem, "there are more than 16777216; make blocks larger");
    *item = good;
    item->policies = 0;
    refused_problem(&problem, "no policies");
    *item = good;
    item->gather = -1;
    refused_problem(&problem, "gather");
    *item = good;
    item->stair_bytes = WEFT_PROBLEM_MOST;
    refused_problem(&problem, "sum is out of range");
    *item = good;
    item->unit = 0;
    refused_problem(&problem, "not behind items[2]");
    *item = good;
    problem.items[B_REDUCE].item.gather = 1;
    refused_problem(&problem, "items[4]: gather");
    problem = small_problem();
    struct weft_item *items[] = {&problem.items[0].item, &problem.items[1].item,
                                 &problem.items[2].item};
    *items[1] = *items[2] = *items[0];
    items[1]->policies = 1u << WEFT_POLICY_DP;
    refused_problem(&problem, "items[2] is not behind items[1]");
}

Test(problem, needs)
{
    struct weft_problem problem = small_problem();
    const enum weft_policy policies[] = {WEFT_POLICY_SDP, WEFT_POLICY_DP};
    cr_assert(weft_problem_needs(&problem, policies, A_GATHER));
    cr_assert_not(weft_problem_needs(&problem, policies, A_ALL_REDUCE));
    cr_assert_not(weft_problem_needs(&problem, policies, B_GATHER));
    cr_assert(weft_problem_needs(&problem, policies, B_ALL_REDUCE));
}

/* Hashes are told where nothing else differs, and numbers that look alike in full. */
Test(problem, compares_in_units)
{
    struct weft_problem a = small_problem(), b = small_problem();
    struct weft_text out;
    weft_text_init(&out);
    a.config_hash = (struct weft_hash){1, 2};
    b.config_hash = (struct weft_hash){1, 3};
    weft_problem_compare(&a, &b, &out);
    cr_assert_not_null(strstr(weft_text_chars(&out), "config, in what no figure shows; hash: "),
                       "%s", weft_text_chars(&out));
    weft_text_finish(&out);
    weft_text_init(&out);
    a.memory_limit_bytes = INT64_C(24) << 30;
    b.memory_limit_bytes = INT64_C(20) << 30;
    a.blocks.least_bytes = 10000000;
    b.blocks.least_bytes = 10000001;
    weft_problem_compare(&a, &b, &out);
    cr_assert_str_eq(weft_text_chars(&out), "memory limit: 24.0 GiB, 20.0 GiB\n"
                                            "least block: 10000000, 10000001\n");
    weft_text_finish(&out);
}

Test(problem, compares_at_most_five)
{
    struct weft_problem a = small_problem(), b = small_problem();
    struct weft_text out;
    weft_text_init(&out);
    weft_problem_compare(&a, &b, &out);
    cr_assert_str_eq(weft_text_chars(&out), "");
    b.ranks = 4;
    b.agree_ns = 51;
    weft_problem_compare(&a, &b, &out);
    cr_assert_str_eq(weft_text_chars(&out), "ranks: 2, 4\nagreement: 50 ns, 51 ns\n");
    weft_text_finish(&out);
    int64_t slot_ns[N_SMALL_SLOTS];
    for (int s = 0; s < N_SMALL_SLOTS; s++)
        slot_ns[s] = a.slot_ns[s] + 1;
    b.slot_ns = slot_ns;
    weft_problem_compare(&a, &b, &out);
    int lines = 0;
    for (const char *at = weft_text_chars(&out); *at != '\0'; at++)
        lines += *at == '\n';
    cr_assert_eq(lines, 5);
    cr_assert(strstr(weft_text_chars(&out), "U:a takes: 0 ns, 1 ns\n") != NULL, "%s",
              weft_text_chars(&out));
    weft_text_finish(&out);
}
