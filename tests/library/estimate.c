/* SPDX-License-Identifier: Apache-2.0 */
#include "library/estimate.h"

#include <criterion/criterion.h>
#include <string.h>

#define LAYERS                                                                                     \
    "[{\"name\":\"wte\",\"type\":\"embedding\",\"vocab\":256,\"hidden\":64},"                      \
    "{\"name\":\"h.{i}\",\"type\":\"transformer_block\",\"repeat\":4,\"hidden\":64,\"heads\":4,"   \
    "\"ffn\":256},"                                                                                \
    "{\"name\":\"head\",\"type\":\"lm_head\",\"vocab\":256,\"hidden\":64}]"
#define LINK   ",\"link\":{\"intra\":{\"alpha\":\"20us\",\"bandwidth\":\"1GB/s\"}}"
#define DEVICE ",\"device\":{\"flops\":{\"f32\":\"50G\"},\"memory_bandwidth\":\"10GB/s\"}"
#define CONFIG(device, more)                                                                       \
    "{\"version\":1,\"model\":{\"layers\":" LAYERS "},\"cluster\":{\"ranks\":4,"                   \
    "\"memory_limit\":\"1GiB\"" LINK device "},\"train\":{\"micro_batch\":2,\"seq_len\":64" more   \
    "},\"plan\":{\"policies\":\"fsdp\"}}"

static void estimate_config(const char *config, struct weft_session *session,
                            struct weft_estimate *out)
{
    struct weft_error err = {0};
    cr_assert_eq(
        weft_config_parse(config, strlen(config), "run.json", "/", NULL, 0, &session->config, &err),
        WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_estimate_create(session, WEFT_ESTIMATE_ALL, out, &err), WEFT_OK, "%s",
                 err.text);
}

static void finish_estimate(struct weft_session *session, struct weft_estimate *estimate)
{
    weft_estimate_finish(estimate);
    weft_session_close(session);
}

Test(estimate, lifts_the_config_s_policies_and_keeps_its_limit)
{
    struct weft_session session = {0};
    struct weft_estimate all;
    estimate_config(CONFIG(DEVICE, ""), &session, &all);
    weft_session_close(&session); /* its names are its own */
    cr_assert_eq(all.limit_bytes, INT64_C(1) << 30);
    cr_assert_eq(all.ranks, 4);
    cr_assert_str_eq(all.times, "analytic");
    cr_assert_str_eq(all.missing, "");
    for (int i = 0; i < WEFT_ESTIMATE_ROWS; i++) {
        cr_assert(all.rows[i].applies);
        cr_assert_gt(all.rows[i].step_ns, 0);
        cr_assert(strchr("FBUdnf", all.rows[i].slot_name[0]) != NULL, "%s", all.rows[i].slot_name);
    }
    cr_assert_gt(all.rows[0].bytes, all.rows[WEFT_ESTIMATE_ROWS - 1].bytes, "dp, fsdp");
    finish_estimate(&session, &all);
}

Test(estimate, memory_needs_no_times)
{
    struct weft_session session = {0}, other = {0};
    struct weft_estimate timed, untimed;
    estimate_config(CONFIG(DEVICE, ""), &session, &timed);
    estimate_config(CONFIG("", ""), &other, &untimed);
    cr_assert_str_eq(untimed.times, "");
    cr_assert_str_eq(untimed.missing, "cluster.device.flops.f32, cluster.device.memory_bandwidth");
    for (int i = 0; i < WEFT_ESTIMATE_ROWS; i++) {
        cr_assert_eq(untimed.rows[i].step_ns, 0);
        if (timed.rows[i].way == WEFT_NEED_JUST_IN_TIME)
            cr_assert_eq(untimed.rows[i].bytes, timed.rows[i].bytes);
    }
    finish_estimate(&session, &timed);
    finish_estimate(&other, &untimed);
}

/* Gradients reduced once a step or every micro-step: dp may be in the first alone, and is found. */
Test(estimate, looks_at_every_period_that_the_config_leaves_open)
{
    struct weft_session session = {0};
    struct weft_estimate all;
    estimate_config(CONFIG(DEVICE, ",\"grad_accum\":2"), &session, &all);
    bool every = false;
    for (int i = 0; i < WEFT_ESTIMATE_ROWS; i++) {
        const struct weft_need *row = &all.rows[i];
        cr_assert(row->applies, "%d", i);
        if (row->policy == WEFT_POLICY_DP) cr_assert_eq(weft_period_reductions(&row->period), 1);
        every |= weft_period_reductions(&row->period) > 1;
    }
    cr_assert(every, "fsdp just in time holds less when gradients are reduced every micro-step");
    finish_estimate(&session, &all);
}
