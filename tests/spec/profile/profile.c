/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/profile/profile.h"

#include <criterion/criterion.h>
#include <string.h>

static int64_t block_bytes(const struct weft_curve *gather, double efficiency)
{
    struct weft_profile profile = {.collectives = {[WEFT_ALL_GATHER] = *gather}};
    return weft_profile_block_bytes(&profile, efficiency);
}

Test(profile, block_is_the_smallest_that_reaches_the_efficiency)
{
    /* 1000 + x / 2: at most 2 bytes a ns in the limit, 1.996 at the last point. */
    int64_t x[12], ns[12];
    for (int i = 0; i < 12; i++) {
        x[i] = INT64_C(256) << i;
        ns[i] = 1000 + x[i] / 2;
    }
    struct weft_curve line = {12, x, ns};
    double best = (double)x[11] / (double)ns[11];
    static const double efficiencies[] = {0.2, 0.5, 0.9, 0.99};
    for (size_t i = 0; i < 4; i++) {
        double wanted = efficiencies[i] * best;
        int64_t bytes = block_bytes(&line, efficiencies[i]);
        cr_assert((double)bytes / (1000 + (double)bytes / 2) >= wanted * (1 - 1e-12));
        bytes--;
        cr_assert((double)bytes / (1000 + (double)bytes / 2) < wanted);
    }
}

Test(profile, block_edges)
{
    static const int64_t x[] = {1000, 2000}, proportional[] = {10, 20}, nothing[] = {0, 0};
    struct weft_curve no_alpha = {2, x, proportional}, free_link = {2, x, nothing}, empty = {0};
    cr_assert_eq(block_bytes(&no_alpha, 0.9), 900, "constant below the first point");
    cr_assert_eq(block_bytes(&free_link, 0.9), INT64_C(4) << 20);
    cr_assert_eq(block_bytes(&empty, 0.9), INT64_C(4) << 20);
    static const int64_t tiny_x[] = {1}, tiny_ns[] = {7};
    struct weft_curve tiny = {1, tiny_x, tiny_ns};
    cr_assert_eq(block_bytes(&tiny, 0.01), 1);
}

static const char complete_profile[] =
    "{\"format\":\"weft-profile\",\"version\":1,\"source\":\"measured\",\"machine\":\"2 cores\","
    "\"ranks\":2,\"layers\":[{\"key\":\"relu\",\"forward_ns\":5,\"backward_ns\":7}],"
    "\"collectives\":{\"all_gather\":{\"bytes\":[1,8],\"ns\":[3,4]},"
    "\"reduce_scatter\":{\"bytes\":[2],\"ns\":[3]},\"all_reduce\":{\"bytes\":[2],\"ns\":[9]}},"
    "\"kernels\":\"avx512\",\"update\":{\"elements\":[5],\"ns\":[6]},\"norm\":{\"elements\":[7],"
    "\"ns\":[8]},"
    "\"contention\":{\"compute_rate\":800,\"channel_rate\":1000},"
    "\"agree_ns\":11,\"base_bytes\":12,\"staging_bytes\":13}";

static struct weft_profile *must_parse_profile(const char *text)
{
    struct weft_profile *profile = NULL;
    struct weft_error error = {0};
    enum weft_status status = weft_profile_parse(text, strlen(text), "p.json", &profile, &error);
    cr_assert(status == WEFT_OK, "%s", error.text);
    return profile;
}

Test(profile, a_name_counts_before_a_key)
{
    static const char written[] =
        "{\"format\": \"weft-profile\", \"version\": 1, \"source\": \"measured\", "
        "\"machine\": \"m\", \"ranks\": 2, \"collectives\": {}, \"layers\": ["
        "{\"key\": \"a\", \"forward_ns\": 1, \"backward_ns\": 2}, "
        "{\"name\": \"a\", \"forward_ns\": 3, \"backward_ns\": 4}]}";
    struct weft_text text;
    weft_text_init(&text);
    struct weft_profile *first = must_parse_profile(written);
    weft_profile_write(first, &text);
    struct weft_profile *again = must_parse_profile(weft_text_chars(&text));
    for (int i = 0; i < 2; i++) {
        const struct weft_profile *profile = i == 0 ? first : again;
        cr_assert_eq(weft_profile_layer(profile, "a")->forward_ns, 1);
        cr_assert_eq(weft_profile_times(profile, "a", "a")->forward_ns, 3);
        cr_assert_eq(weft_profile_times(profile, "b", "a")->forward_ns, 1);
        cr_assert_null(weft_profile_times(profile, "b", "b"));
    }
    weft_text_finish(&text);
    weft_profile_destroy(first);
    weft_profile_destroy(again);
}

Test(profile, keeps_the_times_of_passes)
{
    static const char form[] =
        "{\"format\": \"weft-profile\", \"version\": 1, \"source\": \"measured\", "
        "\"machine\": \"m\", \"ranks\": 2, \"collectives\": {}, \"layers\": ["
        "{\"key\": \"a\", \"forward_ns\": 1, \"backward_ns\": 2%s, "
        "\"whole\": {\"forward_ns\": 3, \"backward_ns\": 4%s}}]}";
    static const char both[] =
        ", \"pass_first\": {\"forward_ns\": 5, \"backward_ns\": 6}, \"pass_later\": "
        "{\"forward_ns\": 7, \"backward_ns\": 8}";
    static const char half[] = ", \"pass_later\": {\"forward_ns\": 7, \"backward_ns\": 8}";
    static const char idle[] =
        ", \"pass_first\": {\"forward_ns\": 5, \"backward_ns\": 0}, \"pass_later\": "
        "{\"forward_ns\": 0, \"backward_ns\": 8}";
    char text[1024];
    struct weft_error error = {0};
    struct weft_text written;
    snprintf(text, sizeof text, form, "", both);
    struct weft_profile *profile = must_parse_profile(text), *none = NULL;
    weft_text_init(&written);
    weft_profile_write(profile, &written);
    struct weft_profile *again = must_parse_profile(weft_text_chars(&written));
    const struct weft_layer_times *at = weft_profile_layer(again, "a");
    cr_assert_null(weft_layer_times_in_pass(at, WEFT_RECOMPUTE_NONE, true));
    cr_assert_eq(weft_layer_times_in_pass(at, WEFT_RECOMPUTE_WHOLE, false)->backward_ns, 6);
    cr_assert_eq(weft_layer_times_in_pass(at, WEFT_RECOMPUTE_WHOLE, true)->forward_ns, 7);
    cr_assert_eq(weft_layer_times_at(at, WEFT_RECOMPUTE_WHOLE)->forward_ns, 3);
    weft_profile_destroy(again);
    weft_profile_destroy(profile);
    weft_text_finish(&written);
    /* A coarse clock may see no time in a frozen layer. */
    snprintf(text, sizeof text, form, idle, both);
    profile = must_parse_profile(text);
    at = weft_profile_layer(profile, "a");
    cr_assert_eq(weft_layer_times_in_pass(at, WEFT_RECOMPUTE_NONE, false)->forward_ns, 5);
    cr_assert_eq(weft_layer_times_in_pass(at, WEFT_RECOMPUTE_NONE, true)->forward_ns, 0);
    weft_profile_destroy(profile);
    for (int of_level = 0; of_level < 2; of_level++) {
        snprintf(text, sizeof text, form, of_level ? "" : half, of_level ? half : both);
        cr_assert_eq(weft_profile_parse(text, strlen(text), "it", &none, &error), WEFT_E_DATA);
        cr_assert(strstr(error.text, of_level ? "layers[0].whole: must have both"
                                              : "layers[0]: must have both") != NULL,
                  "%s", error.text);
        error = (struct weft_error){0};
    }
}

Test(profile, reads_every_part)
{
    struct weft_profile *profile = must_parse_profile(complete_profile);
    cr_assert_str_eq(profile->source, "measured");
    cr_assert_str_eq(profile->machine, "2 cores");
    cr_assert_eq(profile->ranks, 2);
    cr_assert_eq(weft_profile_layer(profile, "relu")->backward_ns, 7);
    cr_assert_null(weft_profile_layer(profile, "gelu"));
    cr_assert_eq(profile->collectives[WEFT_ALL_GATHER].n, 2);
    cr_assert_eq(profile->collectives[WEFT_ALL_GATHER].ns[1], 4);
    cr_assert_eq(profile->collectives[WEFT_ALL_REDUCE].ns[0], 9);
    cr_assert_eq(profile->update.x[0], 5);
    cr_assert_eq(profile->norm.ns[0], 8);
    cr_assert_str_eq(profile->kernels, "avx512");
    cr_assert_null(profile->updates);
    cr_assert_eq(profile->agree_ns, 11);
    cr_assert_eq(profile->staging_bytes, 13);
    cr_assert_eq(profile->rates.compute, 800);
    cr_assert_eq(profile->rates.own, 1000);
    cr_assert_eq(profile->base_bytes, 12);
    weft_profile_destroy(profile);
}

Test(profile, writes_what_it_reads)
{
    struct weft_profile *first = must_parse_profile(complete_profile);
    struct weft_text once, twice;
    weft_text_init(&once);
    weft_text_init(&twice);
    weft_profile_write(first, &once);
    struct weft_profile *second = must_parse_profile(weft_text_chars(&once));
    weft_profile_write(second, &twice);
    cr_assert_str_eq(weft_text_chars(&once), weft_text_chars(&twice));
    cr_assert(weft_hash_equal(first->hash, second->hash));
    cr_assert_not_null(strstr(weft_text_chars(&once), "\"weft\": \""));
    weft_text_finish(&once);
    weft_text_finish(&twice);
    weft_profile_destroy(first);
    weft_profile_destroy(second);
}

Test(profile, may_lack_parts)
{
    struct weft_profile *profile =
        must_parse_profile("{\"format\":\"weft-profile\",\"version\":1,\"source\":\"measured\","
                           "\"machine\":\"\",\"ranks\":1,\"layers\":[],\"collectives\":{}}");
    cr_assert_eq(profile->n_layers, 0);
    cr_assert_eq(profile->update.n, 0);
    cr_assert_eq(profile->agree_ns, -1);
    cr_assert_eq(profile->staging_bytes, 0);
    cr_assert_eq(profile->rates.compute, 0);
    cr_assert_eq(profile->base_bytes, -1);
    weft_profile_destroy(profile);
}

/* `complete_profile` with the first `from` replaced. */
static const char *failure_profile(const char *from, const char *to)
{
    static struct weft_error error;
    struct weft_text text;
    const char *at = strstr(complete_profile, from);
    struct weft_profile *profile = NULL;
    cr_assert_not_null(at, "%s", from);
    weft_text_init(&text);
    weft_text_append(&text, complete_profile, (size_t)(at - complete_profile));
    weft_text_add(&text, to);
    weft_text_add(&text, at + strlen(from));
    error = (struct weft_error){0};
    enum weft_status status =
        weft_profile_parse(weft_text_chars(&text), text.length, "p.json", &profile, &error);
    cr_assert_eq(status, WEFT_E_DATA, "%s", to);
    cr_assert_null(profile);
    weft_text_finish(&text);
    return error.text;
}

Test(profile, refuses_what_is_no_profile)
{
    static const char *const cases[][3] = {
        {"weft-profile", "weft-plan", "its format is \"weft-plan\", not \"weft-profile\""},
        {"\"version\":1", "\"version\":2", "its version is 2 and this program reads 1"},
        {"\"ranks\":2", "\"ranks\":0", "ranks"},
        {"\"forward_ns\":5", "\"forward_ns\":-5", "forward_ns"},
        {"\"forward_ns\":5", "\"forward_ns\":5,\"backward_scratch_bytes\":-1",
         "backward_scratch_bytes"},
        {"\"key\":\"relu\"", "\"kye\":\"relu\"", "key"},
        {"[1,8]", "[8,1]", "p.json: all_gather: bytes[1] is not more than the one before it"},
        {"[1,8]", "[1,8,9]", "p.json: all_gather: 3 bytes but 2 ns; must be as many"},
        {"[1,8]", "[]", "p.json: all_gather: bytes has 0 points"},
        {"[1,8]", "[1,8.5]", "p.json: all_gather: bytes[1] is no integer"},
        {"[3,4]", "[3,-4]", "p.json: all_gather: ns[1] is no integer"},
        {"\"elements\":[5]", "\"bytes\":[5]", "elements"},
        {"\"agree_ns\":11", "\"agree_ns\":\"11us\"", "agree_ns"},
        {"\"compute_rate\":800", "\"compute_rate\":63", "compute_rate"},
        {"\"compute_rate\":800,", "", "compute_rate"},
        {"\"channel_rate\":1000", "\"channel_rate\":1025", "channel_rate"},
        {"\"channel_rate\":1000", "\"channel_rate\":223", "add up to less than 1024"},
        {"\"base_bytes\":12", "\"base_bytes\":-1", "base_bytes"},
        {"[{\"key\"", "[{\"key\":\"relu\",\"forward_ns\":5,\"backward_ns\":7},{\"key\"",
         "p.json: layers[1]: \"relu\" is there twice"},
        {"}", "", "p.json:1:"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = failure_profile(cases[i][0], cases[i][1]);
        cr_assert_not_null(strstr(text, cases[i][2]), "%s", text);
        cr_assert_eq(strncmp(text, "p.json", 6), 0, "%s", text);
    }
}

Test(profile, names_of_collectives)
{
    cr_assert_str_eq(weft_collective_name(WEFT_ALL_GATHER), "all_gather");
    cr_assert_str_eq(weft_collective_name(WEFT_REDUCE_SCATTER), "reduce_scatter");
    cr_assert_str_eq(weft_collective_name(WEFT_ALL_REDUCE), "all_reduce");
}

Test(profile, survives_any_damage)
{
    static char text[sizeof complete_profile];
    uint64_t state = 3;
    for (int i = 0; i < 3000; i++) {
        static const char bytes[] = "{}[],:\"0123456789-.e xn";
        memcpy(text, complete_profile, sizeof complete_profile);
        for (int n = 0; n < 1 + i % 3; n++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            text[(state >> 33) % (sizeof complete_profile - 1)] =
                bytes[(state >> 21) % (sizeof bytes - 1)];
        }
        struct weft_profile *profile = NULL;
        struct weft_error error = {0};
        enum weft_status status =
            weft_profile_parse(text, strlen(text), "p.json", &profile, &error);
        cr_assert((status == WEFT_OK) == (profile != NULL));
        cr_assert(status == WEFT_OK || error.text[0] != '\0');
        weft_profile_destroy(profile);
    }
}

/* A micro-batch that was measured has its own base; others have the largest. */
Test(profile, a_base_is_that_of_its_micro_batch)
{
    struct weft_error err = {0};
    struct weft_profile *whole = must_parse_profile(complete_profile), *other = NULL;
    struct weft_profile *first = NULL, *second = NULL, *joined = NULL;
    cr_assert_eq(weft_profile_base_of(whole, 4), 12);
    cr_assert_eq(weft_profile_of_split(whole, 4, &first, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_profile_with_base(whole, 30, &other, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_profile_of_split(other, 8, &second, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_profile_add(&joined, first, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(joined, first, "the first one is alone");
    cr_assert_eq(weft_profile_add(&joined, second, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(joined->n_bases, 2);
    cr_assert_eq(weft_profile_base_of(joined, 4), 12);
    cr_assert_eq(weft_profile_base_of(joined, 8), 30);
    cr_assert_eq(weft_profile_base_of(joined, 2), 30);
    cr_assert_eq(weft_profile_with_base(joined, 7, &first, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_profile_base_of(first, 4), 7, "another machine's base is of all");
    weft_profile_destroy(first);
    weft_profile_destroy(joined);
    weft_profile_destroy(other);
    weft_profile_destroy(whole);
}

Test(profile, refuses_two_bases_of_one_micro_batch)
{
    static const char twice[] =
        "{\"format\":\"weft-profile\",\"version\":1,\"source\":\"measured\",\"machine\":\"m\","
        "\"ranks\":1,\"layers\":[],\"collectives\":{},\"base_bytes\":5,\"bases\":"
        "[{\"micro_batch\":2,\"bytes\":5},{\"micro_batch\":2,\"bytes\":5}]}";
    struct weft_profile *profile = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_profile_parse(twice, strlen(twice), "p.json", &profile, &err), WEFT_E_DATA);
    cr_assert(strstr(err.text, "bases[1]: micro_batch 2 is there twice") != NULL, "%s", err.text);
}
