/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/config_compare.h"
#include "tests/spec/config_text.h"

static bool is_plan(const char *path)
{
    return strncmp(path, "plan.", 5) == 0;
}

Test(config_compare, differences_are_in_the_units_of_a_config)
{
    struct weft_config *before =
        must_parse_with(SMALL_CONFIG, SET("cluster.memory_limit=1GiB", "train.steps=8"));
    struct weft_config *now = must_parse_with(
        SMALL_CONFIG, SET("cluster.memory_limit=1.5GiB", "cluster.timeout=2min",
                          "train.optimizer.lr=0.002", "plan.planner=greedy", "train.steps=8"));
    struct weft_text out;
    weft_text_init(&out);
    cr_assert_eq(weft_config_compare(now, now, NULL, &out), 0);
    cr_assert_eq(weft_config_compare(now, before, NULL, &out), 4);
    cr_assert_str_eq(
        weft_text_chars(&out),
        "cluster.memory_limit: 1536MiB, was 1GiB\ncluster.timeout: 120s, was not given\n"
        "train.optimizer.lr: 0.002, was 0.0006\nplan.planner: greedy, was ilp");
    cr_assert_eq(weft_config_compare(now, before, is_plan, NULL), 1);
    weft_text_finish(&out);
    weft_config_destroy(now);
    weft_config_destroy(before);
}
