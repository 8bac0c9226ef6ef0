/* SPDX-License-Identifier: Apache-2.0 */
#include "report/study/sweep.h"

#include "tests/report/answer_text.h"
#include "tests/report/study/small_sweep.h"

Test(sweep, a_bound_for_more_memory_holds_for_less)
{
    struct small_sweep small;
    make_small_sweep(&small);
    const struct weft_sweep *sweep = &small.sweep;
    cr_assert_eq(weft_sweep_bound(sweep, &small.best[0]), 200000);
    cr_assert_float_eq(weft_sweep_gap(sweep, &small.best[0]), 0.5, 1e-12);
    cr_assert_float_eq(weft_sweep_gap(sweep, &small.best[2]), 0, 1e-12);
    cr_assert_lt(weft_sweep_gap(sweep, &small.slow[0]), 0, "what does not fit has no gap");
    /* The reverse does not hold. */
    small.best[0].bound_ns = 290000;
    cr_assert_eq(weft_sweep_bound(sweep, &small.best[0]), 290000);
    cr_assert_eq(weft_sweep_bound(sweep, &small.best[1]), 200000);
    /* A point without a plan gives no bound. */
    small.best[2].fits = false;
    small.best[2].bound_ns = 500000;
    cr_assert_eq(weft_sweep_bound(sweep, &small.best[1]), 200000);
}

Test(sweep, table_has_a_column_a_limit)
{
    struct small_sweep small;
    struct weft_text out;
    make_small_sweep(&small);
    weft_text_init(&out);
    ADD_TEXT(&out, weft_sweep_report(&small.sweep, &answer));
    expect_text(&out, "step time by memory limit; a<b.json, 4 ranks, times analytic\n"
                      "  limit         1.00 KiB  2.00 KiB  3.00 KiB\n"
                      "  best            300 us    220 us    200 us\n"
                      "  slow                 -    900 us    400 us\n"
                      "  proven bound    200 us    200 us    200 us\n"
                      "  gap of best   50.000 %  10.000 %   0.000 %\n"
                      "  (-: the planner has no plan that fits)\n");
}

/* A strategy that no plan has, or that all have alone, has no row. */
Test(sweep, table_has_the_shares_of_the_first_planner_s_strategies)
{
    struct small_sweep small;
    struct weft_text out;
    make_small_sweep(&small);
    for (int i = 0; i < 3; i++) {
        struct weft_way_shares *shares = &small.best[i].shares;
        shares->policies[WEFT_POLICY_SDP] = 0.25 * i;
        shares->policies[WEFT_POLICY_FSDP] = 1 - 0.25 * i;
        shares->keeps[WEFT_KEEP_DEVICE] = 1;
    }
    const struct weft_layer_choice whole = {WEFT_LOCATION_DEVICE, WEFT_RECOMPUTE_WHOLE,
                                            WEFT_LOCATION_DEVICE};
    small.best[0].shares.saved[weft_layer_choice_number(whole)] = 0.5;
    small.best[0].shares.saved[0] = 0.5;
    small.best[1].shares.saved[0] = 1;
    small.best[2].fits = false;
    weft_text_init(&out);
    ADD_TEXT(&out, weft_sweep_report(&small.sweep, &answer));
    expect_text(&out, "step time by memory limit; a<b.json, 4 ranks, times analytic\n"
                      "  limit         1.00 KiB  2.00 KiB  3.00 KiB\n"
                      "  best            300 us    220 us         -\n"
                      "  slow                 -    900 us    400 us\n"
                      "  proven bound    200 us    200 us         -\n"
                      "  gap of best   50.000 %  10.000 %         -\n"
                      "  units sdp          0 %      25 %         -\n"
                      "  units fsdp       100 %      75 %         -\n"
                      "  saved device      50 %     100 %         -\n"
                      "  saved whole       50 %       0 %         -\n"
                      "  (-: the planner has no plan that fits)\n");
}

/* A planner without any plan has neither a row of dashes nor a mark in the picture. */
Test(sweep, who_has_no_plan_is_one_line)
{
    struct small_sweep small;
    struct weft_sweep_point none[2][3] = {{{.limit_bytes = 1024}}};
    struct weft_text out;
    make_small_sweep(&small);
    struct weft_sweep_curve curves[] = {
        small.curves[0], {"never", 3, none[0]}, small.curves[1], {"nowhere", 3, none[1]}};
    small.sweep.curves = curves;
    small.sweep.n_curves = 4;
    small.best[0].measured_ns = 310000;
    weft_text_init(&out);
    ADD_TEXT(&out, weft_sweep_report(&small.sweep, &answer));
    expect_text(&out, "step time by memory limit; a<b.json, 4 ranks, times analytic\n"
                      "  limit           1.00 KiB  2.00 KiB  3.00 KiB\n"
                      "  best              300 us    220 us    200 us\n"
                      "  best, measured    310 us         -         -\n"
                      "  slow                   -    900 us    400 us\n"
                      "  proven bound      200 us    200 us    200 us\n"
                      "  gap of best     50.000 %  10.000 %   0.000 %\n"
                      "  (-: the planner has no plan that fits, or it was not measured)\n"
                      "  no plan within any of these limits: never, nowhere\n");
    weft_sweep_chart(&small.sweep, 60, false, &out);
    cr_assert(strstr(weft_text_chars(&out), " A best  B slow  . proven bound\n"), "%s",
              weft_text_chars(&out));
    weft_text_finish(&out);
    small.sweep.n_curves = 3;
    weft_text_init(&out);
    ADD_TEXT(&out, weft_sweep_report(&small.sweep, &answer));
    cr_assert(strstr(weft_text_chars(&out), "\n  no plan within any of these limits: never\n"),
              "%s", weft_text_chars(&out));
    weft_text_finish(&out);
}

/* Green marks the fastest at a limit; several may tie. */
Test(sweep, the_fastest_at_a_limit_is_painted)
{
    struct small_sweep small;
    struct weft_text out;
    int n = 0;
    make_small_sweep(&small);
    small.slow[2].step_ns = small.best[2].step_ns;
    weft_text_init(&out);
    out.color = true;
    ADD_TEXT(&out, weft_sweep_report(&small.sweep, &answer));
    const char *text = weft_text_chars(&out);
    for (const char *at = text; (at = strstr(at, "\x1b[32m")) != NULL; at++)
        n++;
    cr_assert_eq(n, 4, "%s", text);
    cr_assert(strstr(text, "\x1b[32m900") == NULL && strstr(text, "900 us") != NULL, "%s", text);
    weft_text_finish(&out);
}

Test(sweep, table_shows_what_was_measured_in_even_parts_where_lines_are_short)
{
    struct weft_sweep_point points[9];
    for (int i = 0; i < 9; i++)
        points[i] = (struct weft_sweep_point){
            .limit_bytes = i + 1, .fits = true, .step_ns = 1000, .measured_ns = 1100};
    struct weft_sweep_curve curve = {"p", 9, points};
    struct weft_sweep sweep = {
        .config = "c", .times = "measured", .ranks = 1, .n_curves = 1, .curves = &curve};
    struct weft_text out;
    weft_text_init(&out);
    out.columns = 80;
    ADD_TEXT(&out, weft_sweep_report(&sweep, &answer));
    expect_text(&out, "step time by memory limit; c, 1 ranks, times measured\n"
                      "  limit             1 B      2 B      3 B      4 B      5 B\n"
                      "  p             1.00 us  1.00 us  1.00 us  1.00 us  1.00 us\n"
                      "  p, measured   1.10 us  1.10 us  1.10 us  1.10 us  1.10 us\n"
                      "  proven bound        -        -        -        -        -\n"
                      "  gap of p            -        -        -        -        -\n"
                      "\n"
                      "  limit             6 B      7 B      8 B      9 B\n"
                      "  p             1.00 us  1.00 us  1.00 us  1.00 us\n"
                      "  p, measured   1.10 us  1.10 us  1.10 us  1.10 us\n"
                      "  proven bound        -        -        -        -\n"
                      "  gap of p            -        -        -        -\n");
}

/* Each time measured on an emulated link is marked so, in every format. */
Test(sweep, measured_over_an_emulated_link_is_said)
{
    struct small_sweep small;
    struct weft_text out;
    make_small_sweep(&small);
    small.best[0].measured_ns = 310000;
    small.sweep.emulated = true;
    weft_text_init(&out);
    ADD_TEXT(&out, weft_sweep_report(&small.sweep, &answer));
    cr_assert(strstr(weft_text_chars(&out), "\n  best, measured, emulated    310 us"), "%s",
              weft_text_chars(&out));
    weft_text_finish(&out);
    ADD_CSV(&out, weft_sweep_report(&small.sweep, &answer));
    cr_assert(strstr(weft_text_chars(&out), ",310000,0,0,0,\"analytic\",emulated\n"), "%s",
              weft_text_chars(&out));
    weft_text_finish(&out);
    weft_sweep_svg(&small.sweep, &out);
    cr_assert(strstr(weft_text_chars(&out), "emulated"));
    weft_text_finish(&out);
    ADD_JSON(&out, 0, weft_sweep_report(&small.sweep, &answer));
    cr_assert(strstr(weft_text_chars(&out), "\"link\": \"emulated\""), "%s", weft_text_chars(&out));
    weft_text_finish(&out);
}

Test(sweep, csv_has_a_line_a_point_and_no_zero_for_what_is_not_known)
{
    struct small_sweep small;
    struct weft_text out;
    make_small_sweep(&small);
    small.best[0].measured_ns = 310000;
    small.best[0].measured_bytes = 2000;
    small.sweep.times = "an \"odd\", source";
    weft_text_init(&out);
    ADD_CSV(&out, weft_sweep_report(&small.sweep, &answer));
    expect_text(&out, "planner,memory_limit_bytes,policy_limit_bytes,host_limit_bytes,fits,"
                      "step_ns,exposed_ns,compute_ns,channel_ns,total_bytes,bound_ns,"
                      "measured_step_ns,measured_exposed_ns,measured_bytes,"
                      "measured_spread_ns,times,link\n"
                      "best,1024,,,1,300000,30000,270000,100000,1000,200000,310000,0,2000,0,"
                      "\"an \"\"odd\"\", source\",local\n"
                      "best,2048,,,1,220000,0,0,0,0,200000,,,,,\"an \"\"odd\"\", source\",\n"
                      "best,3072,,,1,200000,0,0,0,0,200000,,,,,\"an \"\"odd\"\", source\",\n"
                      "slow,1024,,,0,,,,,,200000,,,,,\"an \"\"odd\"\", source\",\n"
                      "slow,2048,,,1,900000,0,0,0,0,200000,,,,,\"an \"\"odd\"\", source\",\n"
                      "slow,3072,,,1,400000,0,0,0,0,200000,,,,,\"an \"\"odd\"\", source\",\n");
}

Test(sweep, json_says_which_points_have_no_plan)
{
    struct small_sweep small;
    struct weft_text out;
    struct weft_json *document = NULL;
    make_small_sweep(&small);
    weft_text_init(&out);
    ADD_JSON(&out, 2, weft_sweep_report(&small.sweep, &answer));
    cr_assert_eq(weft_json_parse(weft_text_chars(&out), out.length, "sweep", &document, NULL),
                 WEFT_OK);
    const struct weft_json_value *curves = weft_json_member(weft_json_root(document), "curves");
    const struct weft_json_value *slow = weft_json_next(weft_json_first(curves));
    const struct weft_json_value *point = weft_json_first(weft_json_member(slow, "points"));
    bool fits = true;
    cr_assert(weft_json_bool(weft_json_member(point, "fits"), &fits) && !fits);
    cr_assert_null(weft_json_member(point, "step_ns"));
    point = weft_json_next(point);
    double gap;
    cr_assert(weft_json_number(weft_json_member(point, "gap"), &gap));
    cr_assert_float_eq(gap, 3.5, 1e-12);
    weft_json_destroy(document);
    weft_text_finish(&out);
}

/* Shares above 0 are in JSON. */
Test(sweep, points_have_shares)
{
    struct small_sweep small;
    struct weft_text out;
    make_small_sweep(&small);
    small.best[0].shares.policies[WEFT_POLICY_SDP] = 0.25;
    small.best[0].shares.policies[WEFT_POLICY_FSDP] = 0.75;
    small.best[0].shares.keeps[WEFT_KEEP_DEVICE] = 1;
    weft_text_init(&out);
    ADD_JSON(&out, 0, weft_sweep_report(&small.sweep, &answer));
    cr_assert(strstr(weft_text_chars(&out),
                     "\"gap\": 0.5, \"shares\": {\"units\": {\"sdp\": 0.25, \"fsdp\": 0.75}, "
                     "\"state\": {\"device\": 1}}}"),
              "%s", weft_text_chars(&out));
    weft_text_finish(&out);
}

/* A split has one limit; the joint plan stands in the last column. */
Test(sweep, a_split_is_over_what_policies_were_chosen_within)
{
    struct weft_sweep_point parts[2] = {
        {.limit_bytes = 4096, .policy_limit_bytes = 1024, .fits = true, .step_ns = 5000},
        {.limit_bytes = 4096, .policy_limit_bytes = 2048, .fits = true, .step_ns = 4000}};
    struct weft_sweep_point joint = {
        .limit_bytes = 4096, .fits = true, .step_ns = 3000, .bound_ns = 2500};
    struct weft_sweep_curve curves[2] = {{"two-stage", 2, parts}, {"ilp", 1, &joint}};
    struct weft_sweep sweep = {.config = "c",
                               .times = "analytic",
                               .ranks = 2,
                               .split = true,
                               .n_curves = 2,
                               .curves = curves};
    struct weft_text out;
    weft_text_init(&out);
    ADD_TEXT(&out, weft_sweep_report(&sweep, &answer));
    expect_text(&out, "step time by the memory that policies were chosen within; c, 2 ranks, times "
                      "analytic\n"
                      "  policies within    1.00 KiB  2.00 KiB\n"
                      "  two-stage           5.00 us   4.00 us\n"
                      "  ilp                           3.00 us\n"
                      "  proven bound        2.50 us   2.50 us\n"
                      "  gap of two-stage  100.000 %  60.000 %\n");
    cr_assert_eq(weft_sweep_x(&sweep, &parts[1]), 2048);
    cr_assert_eq(weft_sweep_x(&sweep, &joint), 4096);
}

Test(sweep, bounds_of_a_grid_hold_for_less_of_either_memory)
{
    struct small_grid small;
    make_small_grid(&small);
    const struct weft_sweep *sweep = &small.sweep;
    cr_assert_eq(weft_sweep_bound(sweep, &small.none[0]), 380000, "with more of the host's memory");
    cr_assert_eq(weft_sweep_bound(sweep, &small.none[1]), 250000);
    cr_assert_eq(weft_sweep_bound(sweep, &small.none[2]), 200000);
    cr_assert_eq(weft_sweep_bound(sweep, &small.some[0]), 380000);
    cr_assert_eq(weft_sweep_bound(sweep, &small.some[1]), 190000, "not with less of it");
    cr_assert_eq(weft_sweep_bound(sweep, &small.some[2]), 190000);
}

Test(sweep, a_grid_has_a_row_a_limit_of_the_host)
{
    struct small_grid small;
    struct weft_text out;
    make_small_grid(&small);
    weft_text_init(&out);
    ADD_TEXT(&out, weft_sweep_report(&small.sweep, &answer));
    expect_text(&out, "step time of ilp by memory limit (across) and the host's (down); a<b.json, "
                      "4 ranks, times analytic\n"
                      "  host limit       1.00 KiB  2.00 KiB  3.00 KiB\n"
                      "  0 B                     -    300 us    200 us\n"
                      "  4.00 KiB           400 us    220 us    200 us\n"
                      "  gap at 0 B              -  20.000 %   0.000 %\n"
                      "  gap at 4.00 KiB   5.263 %  15.789 %   5.263 %\n"
                      "  (-: the planner has no plan that fits)\n");
    /* A row without any plan stays. */
    small.none[1].fits = small.none[2].fits = false;
    small.some[0].measured_ns = 500000;
    ADD_TEXT(&out, weft_sweep_report(&small.sweep, &answer));
    expect_text(&out, "step time of ilp by memory limit (across) and the host's (down); a<b.json, "
                      "4 ranks, times analytic\n"
                      "  host limit          1.00 KiB  2.00 KiB  3.00 KiB\n"
                      "  0 B                        -         -         -\n"
                      "  4.00 KiB              400 us    220 us    200 us\n"
                      "  4.00 KiB, measured    500 us         -         -\n"
                      "  gap at 4.00 KiB      5.263 %  15.789 %   5.263 %\n"
                      "  (-: the planner has no plan that fits, or it was not measured)\n");
}

Test(sweep, points_of_a_grid_say_both_limits)
{
    struct small_grid small;
    struct weft_text out;
    make_small_grid(&small);
    weft_text_init(&out);
    ADD_CSV(&out, weft_sweep_report(&small.sweep, &answer));
    cr_assert(strstr(weft_text_chars(&out), "\nilp,1024,,0,0,,,,,,380000,"), "%s",
              weft_text_chars(&out));
    cr_assert(strstr(weft_text_chars(&out), "\nilp,1024,,4096,1,400000,"), "%s",
              weft_text_chars(&out));
    weft_text_finish(&out);
    ADD_JSON(&out, 0, weft_sweep_report(&small.sweep, &answer));
    cr_assert(strstr(weft_text_chars(&out), "\"grid\": true"), "%s", weft_text_chars(&out));
    cr_assert(strstr(weft_text_chars(&out),
                     "\"memory_limit_bytes\": 1024, \"host_limit_bytes\": 0, \"fits\": false"),
              "%s", weft_text_chars(&out));
    weft_text_finish(&out);
}

/* The axes include every measured time, however far from the prediction. */
Test(sweep, axes_hold_all_that_was_measured)
{
    struct small_sweep small;
    struct weft_sweep_axes axes;
    make_small_sweep(&small);
    small.best[1].measured_ns = 5000000;
    small.best[2].measured_ns = 150000;
    cr_assert(weft_sweep_axes(&small.sweep, true, &axes));
    cr_assert_eq(axes.low, 150000);
    cr_assert_eq(axes.high, 5000000);
    cr_assert_not(axes.cut);
    /* The picture in the terminal shows predictions only. */
    cr_assert(weft_sweep_axes(&small.sweep, false, &axes));
    cr_assert_eq(axes.low, 200000);
    cr_assert_eq(axes.high, 600000);
}

Test(sweep, axes_of_a_grid_are_not_cut)
{
    struct small_grid small;
    struct weft_sweep_axes axes;
    make_small_grid(&small);
    small.some[0].step_ns = 2000000;
    cr_assert(weft_sweep_axes(&small.sweep, true, &axes));
    cr_assert_eq(axes.low, 190000);
    cr_assert_eq(axes.high, 2000000);
    cr_assert_not(axes.cut);
}

Test(sweep, axes_are_cut_at_three_times_the_least_step)
{
    struct small_sweep small;
    struct weft_sweep_axes axes;
    make_small_sweep(&small);
    cr_assert(weft_sweep_axes(&small.sweep, true, &axes));
    cr_assert_eq(axes.left, 1024);
    cr_assert_eq(axes.right, 3072);
    cr_assert_eq(axes.low, 200000);
    cr_assert_eq(axes.high, 600000);
    cr_assert(axes.cut);
    small.sweep.n_curves = 1;
    cr_assert(weft_sweep_axes(&small.sweep, true, &axes));
    cr_assert(!axes.cut && axes.high == 300000);
    for (int i = 0; i < 3; i++)
        small.best[i].fits = false;
    cr_assert_not(weft_sweep_axes(&small.sweep, true, &axes));
}
