/* SPDX-License-Identifier: Apache-2.0 */
#include "report/study/ways.h"

#include <criterion/criterion.h>

#include "spec/kind.h"
#include "tests/problem/small_problem.h"

enum { N_SAVED = 3 };
static struct weft_layer ways_layers[2];
static const struct weft_batch ways_batch = {.samples = 1, .seq_len = 1, .compute = WEFT_F32};
static const struct weft_model ways_model = {.n_layers = 2, .layers = ways_layers};

/* The small problem with a host, and with a choice for what layer a saves in slots 3 to 6: 300
 * bytes on the device, 4096 on the host, or recomputed whole, for 70 ns. */
static struct weft_problem with_saved(struct weft_problem_decision decisions[3],
                                      struct weft_problem_item items[N_SMALL_ITEMS + 1])
{
    static struct weft_hold kept[] = {{WEFT_CATEGORY_ACTIVATIONS, 3, 6, 300, 0}};
    static struct weft_hold offloaded[] = {{WEFT_CATEGORY_ACTIVATIONS, 3, 3, 300, 0},
                                           {WEFT_CATEGORY_ACTIVATIONS, 6, 6, 300, 0},
                                           {WEFT_CATEGORY_ACTIVATIONS, 0, 8, 4096, 1}};
    static struct weft_hold dropped[] = {{WEFT_CATEGORY_TEMPORARY, 3, 3, 320, 0},
                                         {WEFT_CATEGORY_TEMPORARY, 6, 6, 320, 0}};
    static struct weft_slot_time restores[] = {{6, 70}};
    static struct weft_problem_strategy strategies[N_SAVED] = {
        {"device", 2, WEFT_POLICY_COUNT, 0, 1, NULL, kept, WEFT_LOCATION_DEVICE, false,
         WEFT_RECOMPUTE_NONE, WEFT_LOCATION_DEVICE, WEFT_LOCATION_DEVICE},
        {"host", 3, WEFT_POLICY_COUNT, 0, 3, NULL, offloaded, WEFT_LOCATION_HOST, false,
         WEFT_RECOMPUTE_NONE, WEFT_LOCATION_DEVICE, WEFT_LOCATION_DEVICE},
        {"whole", 4, WEFT_POLICY_COUNT, 1, 2, restores, dropped, WEFT_LOCATION_DEVICE, false,
         WEFT_RECOMPUTE_WHOLE, WEFT_LOCATION_DEVICE, WEFT_LOCATION_DEVICE}};
    static struct weft_lane lanes[3];
    struct weft_problem problem = small_problem();
    for (int i = 0; i < 2; i++) {
        decisions[i] = problem.decisions[i];
        lanes[i] = problem.lanes[i];
        ways_layers[i].kind = &weft_kind_transformer_block;
    }
    decisions[2] = (struct weft_problem_decision){
        "saved:a", 2 * N_SMALL_STRATEGIES, N_SAVED, strategies, -1, 0, 0, true, 0};
    for (int i = 0; i < N_SMALL_ITEMS; i++)
        items[i] = problem.items[i];
    items[N_SMALL_ITEMS] = small_item(2, WEFT_SAVED_DOWN, 1 << 1, 3, 4, 300);
    items[N_SMALL_ITEMS].lane = 2;
    lanes[2] = (struct weft_lane){"down", WEFT_LANE_KIND_DOWN, problem.lanes[0].rates};
    problem.lanes = lanes;
    problem.n_lanes = 3;
    problem.tiers[problem.n_tiers++] =
        (struct weft_problem_tier){"host", WEFT_LOCATION_HOST, 1 << 20};
    problem.decisions = decisions;
    problem.n_decisions = 3;
    problem.items = items;
    problem.n_items = N_SMALL_ITEMS + 1;
    return problem;
}

static void say_ways(const struct weft_problem *problem, bool timed, struct weft_text *out)
{
    struct weft_answer answer = {0};
    weft_report_ways(problem, &ways_model, &ways_batch, timed, &answer);
    weft_answer_text(&answer, out);
    weft_answer_finish(&answer);
}

static void expect_ways(const struct weft_problem *problem, bool timed, const char *text)
{
    struct weft_text out;
    weft_text_init(&out);
    say_ways(problem, timed, &out);
    cr_assert_str_eq(weft_text_chars(&out), text, "%s", weft_text_chars(&out));
    weft_text_finish(&out);
}

#define WAYS_NOTES                                                                                 \
    "at rest, kept  bytes on the device in every slot; of a layer from forward to backward\n"      \
    "update, adds   compute of a step; of a layer above that of keeping all\n"

/* Under sdp a unit has at most its gathered parameters and its gradient, 400 bytes, and its
 * collectives take 4 blocks of 600 ns; units a and b are alike. */
Test(ways, a_table_has_the_bytes_and_times_of_each_strategy)
{
    const struct weft_problem problem = small_problem();
    for (int i = 0; i < 2; i++)
        ways_layers[i].kind = &weft_kind_transformer_block;
    expect_ways(&problem, true,
                "\nunit a+b, each of 2\n"
                "  strategy  at rest  at most  update  network\n"
                "  dp            0 B      0 B  400 ns  1.20 us\n"
                "  sdp           0 B    400 B  200 ns  2.40 us\n" WAYS_NOTES);
    expect_ways(&problem, false,
                "\nunit a+b, each of 2\n"
                "  strategy  at rest  at most  update  network\n"
                "  dp            0 B      0 B       -        -\n"
                "  sdp           0 B    400 B       -        -\n" WAYS_NOTES);
}

Test(ways, a_layer_keeps_bytes_between_forward_and_backward_and_names_them)
{
    struct weft_problem_decision decisions[3];
    struct weft_problem_item items[N_SMALL_ITEMS + 1];
    const struct weft_problem problem = with_saved(decisions, items);
    struct weft_text out;
    weft_text_init(&out);
    say_ways(&problem, true, &out);
    const char *layers = strstr(weft_text_chars(&out), "\nsaved activations");
    cr_assert_not_null(layers);
    cr_assert_str_eq(
        layers,
        "\nsaved activations of layer a\n"
        "  strategy   kept  at most      host   adds   copies  keeps\n"
        "  device    300 B    300 B       0 B   0 ns     0 ns  ln1 (mean, rstd, output), q, k, v, "
        "attention (probabilities or statistics, output), residual, ln2 (mean, rstd, output), fc, "
        "GELU\n"
        "  host        0 B    300 B  4.00 KiB   0 ns  1.20 us  the same\n"
        "  whole       0 B    320 B       0 B  70 ns     0 ns  the layer's input "
        "alone\n" WAYS_NOTES,
        "%s", layers);
    weft_text_finish(&out);
}

Test(ways, json_has_every_group_and_strategy)
{
    struct weft_problem_decision decisions[3];
    struct weft_problem_item items[N_SMALL_ITEMS + 1];
    const struct weft_problem problem = with_saved(decisions, items);
    struct weft_answer answer = {0};
    struct weft_json_writer writer;
    struct weft_text out;
    weft_text_init(&out);
    weft_json_writer_init(&writer, &out, 0);
    weft_report_ways(&problem, &ways_model, &ways_batch, false, &answer);
    weft_answer_json(&answer, &writer);
    weft_answer_finish(&answer);
    cr_assert_not_null(
        strstr(weft_text_chars(&out),
               "{\"of\": \"layer\", \"names\": \"a\", \"alike\": 1, \"strategy\": \"whole\", "
               "\"rest_bytes\": 0, \"device_bytes\": 320, \"host_bytes\": 0, \"compute_ns\": null, "
               "\"network_ns\": null, \"copies_ns\": null, \"keeps\": \"the layer's input "
               "alone\"}"),
        "%s", weft_text_chars(&out));
    cr_assert_not_null(strstr(weft_text_chars(&out),
                              "{\"of\": \"unit\", \"names\": \"a+b\", \"alike\": 2, \"strategy\": "
                              "\"dp\", \"rest_bytes\": 0, "));
    weft_text_finish(&out);
}
