/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of a config for memory other than the device's. */
#include "spec/tiers.h"

#include "tests/spec/config_text.h"

#define TIERS                                                                                      \
    "{\"ranks\":2,\"host\":{\"memory_limit\":\"512GB\",\"down\":{\"alpha\":\"10us\","              \
    "\"bandwidth\":\"55GB/s\"},\"up\":{\"alpha\":\"11us\",\"bandwidth\":\"56GB/s\"},"              \
    "\"update\":\"200GB/s\",\"threads\":3},"                                                       \
    "\"disk\":{\"path\":\"scratch\",\"limit\":\"2TB\",\"read\":{\"alpha\":\"80us\","               \
    "\"bandwidth\":\"10GB/s\"},\"write\":{\"alpha\":\"30us\",\"bandwidth\":\"5GB/s\"},"            \
    "\"duplex\":\"full\",\"verify\":false,\"endurance\":\"600TB\"}}"
#define TIER_CONFIG(cluster, train, offload)                                                       \
    "{\"version\":1,\"model\":" GPT_MODEL ",\"cluster\":" cluster ",\"train\":" train              \
    ",\"plan\":{\"offload\":" offload "}}"
#define HOST_ALONE "{\"ranks\":2,\"host\":{\"memory_limit\":\"1GB\"}}"

Test(config_tiers, every_key_arrives)
{
    struct weft_config *config = must_parse(TIER_CONFIG(
        TIERS, SMALL_TRAIN, "{\"state\":[\"disk\",\"device\"],\"activations\":[\"host\"]}"));
    const struct weft_host_spec *host = &config->cluster.host;
    const struct weft_disk_spec *disk = &config->cluster.disk;
    cr_assert(host->given && disk->given && config->plan.offload.given);
    cr_assert_eq(host->memory_limit_bytes, INT64_C(512000000000));
    cr_assert_eq(host->down.alpha_ns, 10000);
    cr_assert_eq(host->down.bytes_per_s, 55e9);
    cr_assert_eq(host->up.alpha_ns, 11000);
    cr_assert_eq(host->up.bytes_per_s, 56e9);
    cr_assert_eq(host->update_bytes_per_s, 200e9);
    cr_assert_eq(host->threads, 3);
    cr_assert_str_eq(disk->path, "/place/scratch");
    cr_assert_eq(disk->limit_bytes, INT64_C(2000000000000));
    cr_assert_eq(disk->read.alpha_ns, 80000);
    cr_assert_eq(disk->read.bytes_per_s, 10e9);
    cr_assert_eq(disk->write.alpha_ns, 30000);
    cr_assert_eq(disk->write.bytes_per_s, 5e9);
    cr_assert_eq(disk->duplex, WEFT_DUPLEX_FULL);
    cr_assert(!disk->verify);
    cr_assert_eq(disk->endurance_bytes, INT64_C(600000000000000));
    cr_assert_eq(config->plan.offload.state, 1 << WEFT_LOCATION_DEVICE | 1 << WEFT_LOCATION_DISK);
    cr_assert_eq(config->plan.offload.activations, 1 << WEFT_LOCATION_HOST);
    weft_config_destroy(config);
}

Test(config_tiers, the_resolved_config_reads_back)
{
    static const char *const configs[] = {
        TIER_CONFIG(TIERS, SMALL_TRAIN, "{\"state\":[\"host\"]}"),
        TIER_CONFIG(HOST_ALONE, SMALL_TRAIN, "{\"activations\":[\"device\"]}"),
        SMALL_CONFIG,
    };
    for (int i = 0; i < 3; i++) {
        struct weft_text once, twice;
        weft_text_init(&once);
        weft_text_init(&twice);
        struct weft_config *config = must_parse(configs[i]);
        weft_config_write(config, &once);
        weft_config_destroy(config);
        cr_assert_eq(strstr(weft_text_chars(&once), "\"host\": {") != NULL, i < 2);
        cr_assert_eq(strstr(weft_text_chars(&once), "\"disk\": {") != NULL, i < 1);
        cr_assert_eq(strstr(weft_text_chars(&once), "offload") != NULL, i < 2);
        config = must_parse(weft_text_chars(&once));
        weft_config_write(config, &twice);
        weft_config_destroy(config);
        cr_assert_str_eq(weft_text_chars(&once), weft_text_chars(&twice));
        weft_text_finish(&once);
        weft_text_finish(&twice);
    }
}

static void moves(const char *text, bool state, bool activations)
{
    struct weft_config *config = must_parse(text);
    cr_assert_eq(weft_config_moves_state(config), state, "%s", text);
    cr_assert_eq(weft_config_moves_activations(config), activations, "%s", text);
    weft_config_destroy(config);
}

Test(config_tiers, what_may_move_is_what_is_there_and_allowed)
{
    moves(SMALL_CONFIG, false, false);
    moves(TIER_CONFIG(SMALL_CLUSTER, SMALL_TRAIN, "{\"state\":[\"device\"]}"), false, false);
    moves(TIER_CONFIG(HOST_ALONE, SMALL_TRAIN, "{}"), true, true);
    moves(TIER_CONFIG(HOST_ALONE, SMALL_TRAIN, "{\"state\":[\"device\"]}"), false, true);
    moves(TIER_CONFIG(HOST_ALONE, SMALL_TRAIN, "{\"activations\":[\"device\"]}"), true, false);
    moves(TIER_CONFIG(TIERS, SMALL_TRAIN, "{\"state\":[\"disk\"],\"activations\":[\"device\"]}"),
          true, false);
    moves(TIER_CONFIG(TIERS, SMALL_TRAIN, "{\"state\":[\"device\"],\"activations\":[\"device\"]}"),
          false, false);
}

static void is_wrong(const char *text, const char *says)
{
    const char *found = finding_with(text, NULL, WEFT_E_DATA);
    cr_assert(strstr(found, says) != NULL, "%s\nlacks %s", found, says);
}

Test(config_tiers, what_does_not_go_together_is_told)
{
    is_wrong(TIER_CONFIG(SMALL_CLUSTER, SMALL_TRAIN, "{\"state\":[\"device\",\"host\"]}"),
             "$.plan.offload.state: names \"host\", and the cluster has none: give cluster.host");
    is_wrong(TIER_CONFIG(HOST_ALONE, SMALL_TRAIN, "{\"state\":[\"disk\"]}"),
             "names \"disk\", and the cluster has none");
    is_wrong(TIER_CONFIG(SMALL_CLUSTER, SMALL_TRAIN, "{\"activations\":[\"host\"]}"),
             "$.plan.offload.activations: names \"host\"");
    is_wrong(TIER_CONFIG(HOST_ALONE, SMALL_TRAIN, "{\"activations\":[\"disk\"]}"),
             "$.plan.offload.activations[0]: \"disk\" is not possible");
    is_wrong(TIER_CONFIG(HOST_ALONE, SMALL_TRAIN, "{\"state\":[]}"),
             "$.plan.offload.state: is empty");
    is_wrong(TIER_CONFIG(HOST_ALONE, SMALL_TRAIN, "{\"state\":[\"host\",\"host\"]}"),
             "$.plan.offload.state[1]: is named twice");
    is_wrong(TIER_CONFIG(HOST_ALONE, SMALL_TRAIN, "{\"state\":\"host\"}"),
             "is a string; must be an array of names");
    is_wrong(TIER_CONFIG("{\"ranks\":2,\"disk\":{\"path\":\"x\"}}", SMALL_TRAIN, "{}"),
             "$.cluster.disk: state may be on the disk, and it has no limit: give \"limit\"");
    is_wrong(TIER_CONFIG("{\"ranks\":2,\"disk\":{}}", SMALL_TRAIN, "{\"state\":[\"device\"]}"),
             "the key \"path\" is missing");
    is_wrong(TIER_CONFIG("{\"ranks\":2,\"host\":{}}", SMALL_TRAIN, "{}"),
             "the key \"memory_limit\" is missing");
    is_wrong(TIER_CONFIG("{\"ranks\":2,\"host\":{\"memory_limit\":\"1GB\",\"update\":\"0GB/s\"}}",
                         SMALL_TRAIN, "{}"),
             "$.cluster.host.update: 0B/s is out of range");
    is_wrong(TIER_CONFIG("{\"ranks\":2,\"emulate\":true,\"link\":{\"intra\":{\"bandwidth\":"
                         "\"1GB/s\"}},\"host\":{\"memory_limit\":\"1GB\"}}",
                         SMALL_TRAIN, "{}"),
             "$.cluster.host.up: there is no link to emulate; give bandwidth");
    is_wrong(TIER_CONFIG(HOST_ALONE,
                         "{\"micro_batch\":2,\"seq_len\":64,\"optimizer\":{\"type\":\"lamb\"}}",
                         "{}"),
             "$.train.optimizer.type: lamb scales a tensor's step");
}

Test(config_tiers, lamb_is_fine_where_its_state_stays)
{
    weft_config_destroy(must_parse(TIER_CONFIG(
        HOST_ALONE, "{\"micro_batch\":2,\"seq_len\":64,\"optimizer\":{\"type\":\"lamb\"}}",
        "{\"state\":[\"device\"]}")));
}

Test(config_tiers, overrides_reach_their_keys)
{
    static const char *const overrides[] = {"cluster.host.memory_limit=3GiB",
                                            "plan.offload.state=[\"device\"]", NULL};
    struct weft_config *config = must_parse_with(SMALL_CONFIG, overrides);
    cr_assert_eq(config->cluster.host.memory_limit_bytes, INT64_C(3) << 30);
    cr_assert(!weft_config_moves_state(config) && weft_config_moves_activations(config));
    weft_config_destroy(config);
}

/* Lets a sweep compare host memory with none. */
Test(config_tiers, a_host_may_have_no_memory_to_give)
{
    static const char *const overrides[] = {"cluster.host.memory_limit=0B", NULL};
    struct weft_config *config = must_parse_with(SMALL_CONFIG, overrides);
    cr_assert(config->cluster.host.given && weft_config_moves_state(config));
    cr_assert_eq(config->cluster.host.memory_limit_bytes, 0);
    weft_config_destroy(config);
}
