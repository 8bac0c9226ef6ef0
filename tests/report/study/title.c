/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/report/study/small_sweep.h"

#define LAYERS                                                                                     \
    "[{\"name\":\"wte\",\"type\":\"embedding\",\"vocab\":256,\"hidden\":64},"                      \
    "{\"name\":\"head\",\"type\":\"lm_head\",\"vocab\":256,\"hidden\":64,\"bias\":false}]"

static void expect_title(const char *cluster, const char *train, const char *expected)
{
    struct weft_config *config = NULL;
    struct weft_error err = {0};
    struct weft_text json, out;
    weft_text_init(&json);
    weft_text_init(&out);
    weft_text_addf(&json,
                   "{\"version\":1,\"model\":{\"layers\":" LAYERS "},\"cluster\":{%s},"
                   "\"train\":{%s}}",
                   cluster, train);
    cr_assert_eq(weft_config_parse(weft_text_chars(&json), json.length, "runs/two.layers.json", "/",
                                   NULL, 0, &config, &err),
                 WEFT_OK, "%s", err.text);
    weft_sweep_title(config, "analytic", "0.2.0 (abc)", &out);
    expect_text(&out, expected);
    weft_config_destroy(config);
    weft_text_finish(&json);
}

Test(sweep_title, names_model_batch_ranks_link_times_and_version)
{
    expect_title("\"ranks\":4,\"emulate\":true,"
                 "\"link\":{\"intra\":{\"alpha\":\"20us\",\"bandwidth\":\"1GB/s\"}}",
                 "\"micro_batch\":2,\"seq_len\":64",
                 "two.layers, 32.8 k parameters, 4 ranks\nbatch 2 \u00d7 64 tokens per rank\n"
                 "link 20.0 us, 1.00 GB/s, emulated\ntimes analytic; weft 0.2.0 (abc)");
    expect_title("\"ranks\":4,\"ranks_per_node\":2,"
                 "\"link\":{\"intra\":{\"alpha\":\"20us\",\"bandwidth\":\"1GB/s\"},"
                 "\"inter\":{\"alpha\":\"1ms\",\"bandwidth\":\"80Mbit/s\"}}",
                 "\"micro_batch\":2,\"seq_len\":64,\"grad_accum\":3",
                 "two.layers, 32.8 k parameters, 4 ranks\n"
                 "batch 2 \u00d7 64 tokens per rank, 3 micro-steps\n"
                 "link 20.0 us, 1.00 GB/s in a node, 1.00 ms, 10.0 MB/s between nodes, not "
                 "emulated\ntimes analytic; weft 0.2.0 (abc)");
    expect_title("\"ranks\":2", "\"micro_batch\":2,\"seq_len\":64",
                 "two.layers, 32.8 k parameters, 2 ranks\nbatch 2 \u00d7 64 tokens per rank\n"
                 "link as measured, not emulated\ntimes analytic; weft 0.2.0 (abc)");
    expect_title("\"ranks\":1", "\"micro_batch\":2,\"seq_len\":64",
                 "two.layers, 32.8 k parameters, 1 rank\nbatch 2 \u00d7 64 tokens per rank\n"
                 "times analytic; weft 0.2.0 (abc)");
}
