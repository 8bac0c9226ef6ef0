/* SPDX-License-Identifier: Apache-2.0 */
/* Every figure of a problem's file counts: changed, it is refused or it is another problem, which
 * a comparison tells. */
#include "problem/problem.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/problem/small_problem.h"

enum { TEXT_BYTES = 1 << 16 };

/* The small problem with all optional members: a second tier, blocks, a decision of a layer, an
 * item after another, holds in the second tier. */
static struct weft_problem full_problem(void)
{
    static struct weft_problem_decision decisions[3];
    enum { AVERAGE = N_SMALL_ITEMS, SAVED };
    static struct weft_problem_item items[SAVED + 1];
    static struct weft_hold saved_holds[] = {{WEFT_CATEGORY_ACTIVATIONS, 3, 6, 300, 0}};
    static struct weft_hold host_holds[] = {{WEFT_CATEGORY_ACTIVATIONS, 4, 5, 250, 1}};
    static struct weft_problem_strategy saved[] = {
        {"device", 2, WEFT_POLICY_COUNT, 0, 1, NULL, saved_holds, WEFT_LOCATION_DEVICE, false,
         WEFT_RECOMPUTE_NONE, WEFT_LOCATION_DEVICE, WEFT_LOCATION_DEVICE},
        {"host", 3, WEFT_POLICY_COUNT, 0, 1, NULL, host_holds, WEFT_LOCATION_HOST, false,
         WEFT_RECOMPUTE_NONE, WEFT_LOCATION_DEVICE, WEFT_LOCATION_DEVICE}};
    static const char *kinds[] = {"dp", "sdp", "device", "host"};
    struct weft_problem problem = small_problem();
    memcpy(decisions, problem.decisions, 2 * sizeof *decisions);
    memcpy(items, problem.items, N_SMALL_ITEMS * sizeof *items);
    decisions[2] =
        (struct weft_problem_decision){WEFT_SAVED_PREFIX "a", 4, 2, saved, -1, 0, 0, true, 0};
    items[AVERAGE] = small_item(1, WEFT_AVERAGE, SDP, 2, 3, 0);
    items[AVERAGE].item.acquires = true;
    items[AVERAGE].average_ns = 2401;
    items[AVERAGE].phase = 3;
    items[SAVED] = small_item(2, WEFT_SAVED_DOWN, 2, 4, 4, 100);
    items[SAVED].lane = 2;
    items[A_REDUCE].after = A_GATHER;
    problem.blocks = (struct weft_problem_blocks){4096, 2, 900000, 1, 2, 3};
    problem.micro_batch = 3;
    problem.ranks_per_node = 2;
    problem.period.every = 4;
    problem.n_lanes = 3;
    problem.lanes[1].rates = (struct weft_rates){700, 600};
    problem.lanes[2] = (struct weft_lane){"down", WEFT_LANE_KIND_DOWN, problem.lanes[2].rates};
    problem.n_tiers = 2;
    problem.tiers[0].limit_bytes = 123456;
    problem.tiers[1] = (struct weft_problem_tier){"host", WEFT_LOCATION_HOST, 654321};
    problem.config_hash = (struct weft_hash){3, 4};
    problem.profile_hash = (struct weft_hash){5, 6};
    problem.kinds = kinds;
    problem.n_kinds = 4;
    problem.decisions = decisions;
    problem.n_decisions = 3;
    problem.n_strategies = 6;
    problem.items = items;
    problem.n_items = SAVED + 1;
    return problem;
}

static void write_problem(const struct weft_problem *problem, struct weft_text *text)
{
    struct weft_json_writer writer;
    weft_text_init(text);
    weft_json_writer_init(&writer, text, 0);
    weft_problem_write(problem, &writer);
    cr_assert(weft_text_ok(text));
}

/* NULL if the text is refused; *err then names the place. */
static struct weft_problem *read_problem(const char *text, struct weft_error *err)
{
    struct weft_json *json;
    struct weft_problem *problem = NULL;
    *err = (struct weft_error){0};
    if (weft_json_parse(text, strlen(text), "here", &json, err) != WEFT_OK) return NULL;
    const enum weft_status status = weft_problem_read(weft_json_root(json), "here", &problem, err);
    weft_json_destroy(json);
    cr_assert_eq(status, problem != NULL ? WEFT_OK : WEFT_E_DATA, "%d: %s", (int)status, err->text);
    return problem;
}

/* Text without white space outside of strings. */
static void pack_text(const char *from, char *to)
{
    bool inside = false;
    for (; *from != '\0'; from++) {
        if (*from == '"') inside = !inside;
        if (inside || !isspace((unsigned char)*from)) *to++ = *from;
    }
    *to = '\0';
}

static char *text_of(const struct weft_problem *problem)
{
    struct weft_text text;
    char *packed = malloc(TEXT_BYTES);
    write_problem(problem, &text);
    cr_assert(packed != NULL && text.length < TEXT_BYTES);
    pack_text(weft_text_chars(&text), packed);
    weft_text_finish(&text);
    return packed;
}

static void expect_no_difference(const struct weft_problem *a, const struct weft_problem *b,
                                 bool equal, const char *what)
{
    struct weft_text out;
    weft_text_init(&out);
    weft_problem_compare(a, b, &out);
    cr_assert_eq(out.length == 0, equal, "%.200s: \"%s\"", what, weft_text_chars(&out));
    weft_text_finish(&out);
}

/* Reads a changed text. A problem that is accepted has this text, and differs from the other. */
static bool try_text(const struct weft_problem *whole, const char *changed, const char *at)
{
    struct weft_error err;
    struct weft_problem *problem = read_problem(changed, &err);
    if (problem == NULL) {
        cr_assert(strncmp(err.text, "here", 4) == 0, "%s", err.text);
        return false;
    }
    char *again = text_of(problem);
    if (strstr(changed, "\"tier\":\"device\"") == NULL) /* which is left out */
        cr_assert_str_eq(again, changed, "not as it was read, at %.80s", at);
    expect_no_difference(whole, problem, false, at);
    free(again);
    weft_problem_destroy(problem);
    return true;
}

static void replace_text(char out[TEXT_BYTES], const char *text, size_t from, size_t to,
                         const char *with)
{
    snprintf(out, TEXT_BYTES, "%.*s%s%s", (int)from, text, with, text + to);
}

Test(problem_json, a_problem_is_read_as_it_was_written)
{
    const struct weft_problem whole = full_problem();
    struct weft_error err;
    char *text = text_of(&whole);
    cr_assert_eq(weft_problem_check(&whole, "full", &err), WEFT_OK, "%s", err.text);
    struct weft_problem *problem = read_problem(text, &err);
    cr_assert_not_null(problem, "%s", err.text);
    char *again = text_of(problem);
    cr_assert_str_eq(again, text);
    expect_no_difference(&whole, problem, true, "all");
    cr_assert_arr_eq(problem->slot_decisions, whole.slot_decisions,
                     N_SMALL_SLOTS * sizeof *whole.slot_decisions);
    free(again);
    weft_problem_destroy(problem);
    free(text);
}

Test(problem_json, every_number_counts)
{
    const struct weft_problem whole = full_problem();
    char *text = text_of(&whole), changed[TEXT_BYTES], number[40];
    int accepted = 0, refused = 0;
    for (size_t i = 0, end; text[i] != '\0'; i = end) {
        bool in_string = text[i] == '"';
        end = i + 1;
        if (in_string) end = i + 1 + strcspn(text + i + 1, "\"") + 1;
        if (in_string || !(isdigit((unsigned char)text[i]) || text[i] == '-')) continue;
        end = i + 1 + strspn(text + i + 1, "0123456789");
        const long long value = strtoll(text + i, NULL, 10);
        const long long others[] = {value + 1, value - 1, value + 2, -2, INT64_C(1) << 62};
        for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
            if (others[k] == value) continue;
            snprintf(number, sizeof number, "%lld", others[k]);
            replace_text(changed, text, i, end, number);
            if (try_text(&whole, changed, changed + (i > 30 ? i - 30 : 0)))
                accepted++;
            else
                refused++;
        }
    }
    cr_assert(accepted > 100 && refused > 100, "%d accepted, %d refused", accepted, refused);
    free(text);
}

/* Names are for people, and may be any. All other words are of a list. */
Test(problem_json, every_word_and_flag_counts)
{
    static const char *const words[] = {"\"unknown\"",    "\"device\"",     "\"host\"",
                                        "\"dp\"",         "\"sdp\"",        "\"all_gather\"",
                                        "\"all_reduce\"", "\"activations\""};
    const struct weft_problem whole = full_problem();
    char *text = text_of(&whole), changed[TEXT_BYTES];
    int accepted = 0, refused = 0;
    for (size_t i = 0, end; text[i] != '\0'; i = end) {
        const char *others[sizeof words / sizeof *words] = {NULL};
        end = i + 1;
        if (text[i] == '"') {
            end = i + 1 + strcspn(text + i + 1, "\"") + 1;
            if (text[end] == ':') continue;
            memcpy(others, words, sizeof words);
        } else if (strncmp(text + i, "true", 4) == 0) {
            end = i + 4;
            others[0] = "false";
        } else if (strncmp(text + i, "false", 5) == 0) {
            end = i + 5;
            others[0] = "true";
        }
        for (size_t k = 0; k < sizeof words / sizeof *words && others[k] != NULL; k++) {
            if (strlen(others[k]) == end - i && strncmp(text + i, others[k], end - i) == 0)
                continue;
            replace_text(changed, text, i, end, others[k]);
            if (try_text(&whole, changed, changed + (i > 30 ? i - 30 : 0)))
                accepted++;
            else
                refused++;
        }
    }
    cr_assert(accepted > 20 && refused > 100, "%d accepted, %d refused", accepted, refused);
    free(text);
}

/* No key may have another name. */
Test(problem_json, every_key_is_known)
{
    const struct weft_problem whole = full_problem();
    char *text = text_of(&whole), changed[TEXT_BYTES];
    int refused = 0;
    for (size_t i = 0, end; text[i] != '\0'; i = end) {
        end = i + 1;
        if (text[i] != '"') continue;
        end = i + 1 + strcspn(text + i + 1, "\"") + 1;
        if (text[end] != ':') continue;
        replace_text(changed, text, i, end, "\"unknown\"");
        cr_assert_not(try_text(&whole, changed, text + i));
        refused++;
    }
    cr_assert(refused > 200, "%d keys", refused);
    free(text);
}

/* Without any one member of the outer object, which has no value by default. */
Test(problem_json, every_member_is_needed)
{
    static const char *const members[] = {"config_hash", "profile_hash", "ranks",  "tiers",
                                          "lanes",       "agree_ns",     "period", "slots",
                                          "kinds",       "decisions",    "common", "items"};
    const struct weft_problem whole = full_problem();
    char *text = text_of(&whole), changed[TEXT_BYTES], key[40], other[40];
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        struct weft_error err;
        snprintf(key, sizeof key, "\"%s\":", members[i]);
        snprintf(other, sizeof other, "\"x%s\":", members[i]);
        const char *at = strstr(text, key);
        cr_assert_not_null(at, "%s", key);
        replace_text(changed, text, (size_t)(at - text), (size_t)(at - text) + strlen(key), other);
        cr_assert_null(read_problem(changed, &err));
        cr_assert_not_null(strstr(err.text, members[i]), "%s: %s", key, err.text);
    }
    free(text);
}
