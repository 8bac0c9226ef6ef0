/* SPDX-License-Identifier: Apache-2.0 */
/* What a profile says of tiers: as a file has it, and as a config gets it. */
#include "spec/profile/tiers.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/lanes.h"
#include "spec/profile/profile.h"
#include "tests/spec/config_text.h"

#define HOST                                                                                       \
    "\"host\":{\"down\":{\"bytes\":[4096,8192],\"ns\":[10,20]},\"up\":{\"bytes\":[4096],\"ns\":["  \
    "11]},\"down_beside\":512,\"up_beside\":600,\"threads\":3,\"update_bytes_per_s\":5000,"        \
    "\"updates_beside\":1000}"
#define DISK(path, more)                                                                           \
    "\"disk\":{\"path\":\"" path "\",\"file_system\":\"ext4\",\"read\":{\"bytes\":[4096],\"ns\":[" \
    "7]},\"write\":{\"bytes\":[4096],\"ns\":[9]},\"read_beside\":700,\"write_beside\":400," more   \
    "\"block_bytes\":4096,\"threads\":4,\"seats\":8}"
#define HALF   "\"duplex\":\"half\",\"verified\":true,"
#define LAYERS "\"layers\":[],\"collectives\":{}"
#define PROFILE(more)                                                                              \
    "{\"format\":\"weft-profile\",\"version\":1,\"source\":\"measured\",\"machine\":\"m\","        \
    "\"ranks\":2," LAYERS more "}"
#define FIGURES                                                                                    \
    "\"device\":{\"flops\":{\"f32\":\"1T\"},\"memory_bandwidth\":\"28GB/s\"},\"link\":{\"intra\":" \
    "{\"bandwidth\":\"1GB/s\"}}"
#define LIMITS                                                                                     \
    ",\"host\":{\"memory_limit\":\"1GB\"},\"disk\":{\"path\":\"scratch\",\"limit\":\"1GB\"}"
#define COPIES                                                                                     \
    ",\"host\":{\"memory_limit\":\"1GB\",\"down\":{\"bandwidth\":\"1GB/"                           \
    "s\"},\"up\":{\"bandwidth\":"                                                                  \
    "\"2GB/s\"}}"
#define LINES                                                                                      \
    ",\"host\":{\"memory_limit\":\"1GB\",\"down\":{\"alpha\":\"5us\",\"bandwidth\":\"1GB/s\"},"    \
    "\"up\":{\"bandwidth\":\"2GB/s\"},\"update\":\"3GB/s\",\"threads\":2},\"disk\":{\"path\":"     \
    "\"scratch\",\"limit\":\"1GB\",\"read\":{\"bandwidth\":\"4GB/s\"},\"write\":{\"bandwidth\":"   \
    "\"1GB/s\"},\"verify\":false}"
#define RUN(tiers, offload)                                                                        \
    "{\"version\":1,\"model\":" GPT_MODEL ",\"cluster\":{\"ranks\":2," FIGURES tiers               \
    "},\"train\":" SMALL_TRAIN ",\"plan\":{\"offload\":" offload "}}"

static struct weft_error tiers_error;

static struct weft_profile *parse_tiers(const char *text, enum weft_status expected)
{
    struct weft_profile *profile = NULL;
    tiers_error = (struct weft_error){0};
    const enum weft_status status =
        weft_profile_parse(text, strlen(text), "p.json", &profile, &tiers_error);
    cr_assert_eq(status, expected, "%s", tiers_error.text);
    return profile;
}

Test(profile_tiers, every_part_is_read_and_written)
{
    struct weft_profile *first = parse_tiers(PROFILE("," HOST "," DISK("/d", HALF)), WEFT_OK);
    const struct weft_profile_host *host = &first->tiers.host;
    const struct weft_profile_disk *disk = &first->tiers.disk;
    cr_assert(host->given && disk->given);
    cr_assert(host->down.n == 2 && host->down.x[1] == 8192 && host->down.ns[1] == 20);
    cr_assert(host->up.n == 1 && host->up.ns[0] == 11);
    cr_assert(host->down_beside == 512 && host->up_beside == 600 && host->updates_beside == 1000);
    cr_assert(host->threads == 3 && host->update_bytes_per_s == 5000);
    cr_assert_str_eq(disk->path, "/d");
    cr_assert_str_eq(disk->file_system, "ext4");
    cr_assert(disk->read.ns[0] == 7 && disk->write.ns[0] == 9);
    cr_assert(disk->read_beside == 700 && disk->write_beside == 400);
    cr_assert(disk->duplex == WEFT_DUPLEX_HALF && disk->verified);
    cr_assert(disk->block_bytes == 4096 && disk->threads == 4 && disk->seats == 8);
    struct weft_text once, twice;
    weft_text_init(&once);
    weft_text_init(&twice);
    weft_profile_write(first, &once);
    struct weft_profile *second = parse_tiers(weft_text_chars(&once), WEFT_OK);
    weft_profile_write(second, &twice);
    cr_assert_str_eq(weft_text_chars(&once), weft_text_chars(&twice));
    cr_assert(weft_hash_equal(first->hash, second->hash));
    weft_text_finish(&once);
    weft_text_finish(&twice);
    weft_profile_destroy(first);
    weft_profile_destroy(second);
}

Test(profile_tiers, what_is_wrong_is_named)
{
    static const char *const wrong[][2] = {
        {PROFILE(",\"host\":{}"), "p.json: host"},
        {PROFILE(",\"host\":7"), "host"},
        {PROFILE("," DISK("/d", "\"verified\":true,")), "p.json: disk"},
        {PROFILE("," DISK("/d", "\"duplex\":\"both\",\"verified\":true,")), "\"half\", \"full\""},
        {PROFILE("," DISK("/d", "\"duplex\":\"full\",\"verified\":3,")), "verified"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_assert_null(parse_tiers(wrong[i][0], WEFT_E_DATA));
        cr_assert(strstr(tiers_error.text, wrong[i][1]), "%s", tiers_error.text);
    }
}

static struct weft_profile *resolve_tiers(const char *run, const char *measured,
                                          enum weft_status expected)
{
    struct weft_config *config = must_parse(run);
    struct weft_profile *told = measured != NULL ? parse_tiers(measured, WEFT_OK) : NULL;
    struct weft_profile *profile = NULL;
    tiers_error = (struct weft_error){0};
    const enum weft_status status =
        told != NULL ? weft_profile_resolve_measured(config, told, &profile, &tiers_error)
                     : weft_profile_analytic(config, &profile, &tiers_error);
    cr_assert_eq(status, expected, "%s", tiers_error.text);
    weft_profile_destroy(told);
    weft_config_destroy(config);
    return profile;
}

Test(profile_tiers, figures_of_a_config_are_lines)
{
    struct weft_profile *profile = resolve_tiers(RUN(LINES, "{}"), NULL, WEFT_OK);
    cr_assert(profile->tiers.host.given && profile->tiers.disk.given);
    cr_assert_eq(weft_curve_at(&profile->tiers.host.down, 1 << 20), 5000 + (1 << 20));
    cr_assert_eq(weft_curve_at(&profile->tiers.host.up, 1 << 20), 1 << 19);
    cr_assert_eq(profile->tiers.host.update_bytes_per_s, INT64_C(3000000000));
    cr_assert_eq(profile->tiers.host.threads, 2);
    cr_assert_eq(profile->tiers.host.down_beside, WEFT_RATE_ONE);
    cr_assert_eq(weft_curve_at(&profile->tiers.disk.read, 1 << 20), 1 << 18);
    cr_assert_eq(profile->tiers.disk.read_beside, WEFT_RATE_ONE / 2, "half duplex by default");
    cr_assert(!profile->tiers.disk.verified);
    weft_profile_destroy(profile);
}

Test(profile_tiers, what_was_measured_counts)
{
    struct weft_profile *profile = resolve_tiers(
        RUN(LIMITS, "{}"), PROFILE("," HOST "," DISK("/place/scratch", HALF)), WEFT_OK);
    cr_assert(profile->tiers.host.given && profile->tiers.host.down_beside == 512);
    cr_assert(profile->tiers.disk.given && profile->tiers.disk.seats == 8);
    weft_profile_destroy(profile);
}

Test(profile_tiers, where_nothing_may_move_there_are_none)
{
    struct weft_profile *profile =
        resolve_tiers(RUN(LIMITS, "{\"state\":[\"device\"],\"activations\":[\"device\"]}"),
                      PROFILE("," HOST "," DISK("/elsewhere", HALF)), WEFT_OK);
    cr_assert(!profile->tiers.host.given && !profile->tiers.disk.given);
    weft_profile_destroy(profile);
    profile = resolve_tiers(RUN(LINES, "{\"state\":[\"disk\"],\"activations\":[\"device\"]}"), NULL,
                            WEFT_OK);
    cr_assert(!profile->tiers.host.given && profile->tiers.disk.given);
    weft_profile_destroy(profile);
}

/* As of a profile that was made before the config had tiers. */
Test(profile_tiers, what_neither_gives_is_told_with_what_to_do)
{
    static const char *const figures[] = {"host.down.bandwidth", "host.up.bandwidth", "host.update",
                                          "disk.read.bandwidth", "disk.write.bandwidth"};
    cr_assert_null(resolve_tiers(RUN(LIMITS, "{}"), PROFILE(""), WEFT_E_DATA));
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        cr_assert(strstr(tiers_error.text, figures[i]), "%s", tiers_error.text);
    cr_assert(strstr(tiers_error.text, "weft profile"), "%s", tiers_error.text);
}

Test(profile_tiers, a_rate_of_updates_is_missed_only_where_the_host_updates)
{
    static const char *const offloads[] = {"{\"update\":[\"device\"]}", "{\"update\":[\"host\"]}"};
    for (int there = 0; there < 2; there++) {
        char run[2048];
        snprintf(run, sizeof run, RUN(COPIES, "%s"), offloads[there]);
        struct weft_profile *profile = resolve_tiers(run, NULL, there == 0 ? WEFT_OK : WEFT_E_DATA);
        cr_assert_eq(profile != NULL, there == 0);
        cr_assert_eq(strstr(tiers_error.text, "host.update") != NULL, there == 1);
        weft_profile_destroy(profile);
    }
}

Test(profile_tiers, another_disk_is_told)
{
    cr_assert_null(
        resolve_tiers(RUN(LIMITS, "{}"), PROFILE("," HOST "," DISK("/other", HALF)), WEFT_E_DATA));
    cr_assert(strstr(tiers_error.text, "/other") && strstr(tiers_error.text, "/place/scratch") &&
                  strstr(tiers_error.text, "weft profile"),
              "%s", tiers_error.text);
    cr_assert_null(resolve_tiers(
        RUN(LIMITS, "{}"),
        PROFILE("," HOST "," DISK("/place/scratch", "\"duplex\":\"half\",\"verified\":false,")),
        WEFT_E_DATA));
    cr_assert(strstr(tiers_error.text, "without checksums"), "%s", tiers_error.text);
}
