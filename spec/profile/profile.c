/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/profile/profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"

enum { VERSION = 1 };
/* Used with one rank, or an empty curve. Any block size works then; this one keeps the number and
 * size of blocks moderate. */
static const int64_t plain_block_bytes = INT64_C(4) << 20;

static const struct weft_key_table pass_table = WEFT_KEY_TABLE_OPEN(
    "Times of a micro-step, if all of them run through a group of layers before the next group.",
    WEFT_KEY_RANGE(weft_pass_times, forward_ns, 0, WEFT_JSON_MOST_INTEGER, "of the slowest rank"),
    WEFT_KEY_RANGE(weft_pass_times, backward_ns, 0, WEFT_JSON_MOST_INTEGER, "of the slowest rank"));

#define PASS_KEYS(type, of)                                                                        \
    WEFT_KEY_INSIDE_BY(0, "pass_first", type, of pass_first, of pass_first, of pass_first,         \
                       &pass_table,                                                                \
                       "the first micro-step of a pass through the layer's group, with "           \
                       "\"pass_later\""),                                                          \
        WEFT_KEY_INSIDE_BY(0, "pass_later", type, of pass_later, of pass_later, of pass_later,     \
                           &pass_table,                                                            \
                           "the mean of the pass's later micro-steps, with \"pass_first\"")

static const struct weft_key_table level_table = WEFT_KEY_TABLE_OPEN(
    "Times of layers that recompute saved activations.",
    WEFT_KEY_RANGE(weft_level_times, forward_ns, 0, WEFT_JSON_MOST_INTEGER, "of the slowest rank"),
    WEFT_KEY_RANGE(weft_level_times, backward_ns, 0, WEFT_JSON_MOST_INTEGER,
                   "of the slowest rank, restoring included"),
    PASS_KEYS(weft_level_times, ));

static weft_key_put_fn put_key, put_levels;

static const struct weft_key_table times_table = WEFT_KEY_TABLE_OPEN(
    "Times of layers of one key, or of one layer by its name. The name counts if both are there.",
    WEFT_KEY_VALUE_PUT(WEFT_KEY_OPTIONAL, "key", WEFT_KEY_TEXT, weft_layer_times, key, put_key,
                       "type and sizes; layers of one key take the same time"),
    WEFT_KEY_PART_AS(WEFT_KEY_OPTIONAL, WEFT_KEY_TEXT, "name", NULL,
                     "of a layer of the config, instead of the key; its times are at the config's "
                     "micro-batch"),
    WEFT_KEY_RANGE(weft_layer_times, forward_ns, 0, WEFT_JSON_MOST_INTEGER, "of the slowest rank"),
    WEFT_KEY_RANGE(weft_layer_times, backward_ns, 0, WEFT_JSON_MOST_INTEGER, "of the slowest rank"),
    PASS_KEYS(weft_layer_times, levels[WEFT_RECOMPUTE_NONE].),
    WEFT_KEY_PUT(WEFT_KEY_OPTIONAL, WEFT_KEY_OBJECT, "light", &level_table, put_levels,
                 "with light recomputation"),
    WEFT_KEY_PART_AS(WEFT_KEY_OPTIONAL, WEFT_KEY_OBJECT, "selective", &level_table,
                     "with selective recomputation"),
    WEFT_KEY_PART_AS(WEFT_KEY_OPTIONAL, WEFT_KEY_OBJECT, "medium", &level_table,
                     "with medium recomputation"),
    WEFT_KEY_PART_AS(WEFT_KEY_OPTIONAL, WEFT_KEY_OBJECT, "deep", &level_table,
                     "with deep recomputation"),
    WEFT_KEY_PART_AS(WEFT_KEY_OPTIONAL, WEFT_KEY_OBJECT, "whole", &level_table,
                     "with whole recomputation"),
    WEFT_KEY_COUNT_IF("forward_scratch_bytes", weft_layer_times, forward_scratch_bytes,
                      forward_scratch_bytes, backward_scratch_bytes,
                      "device memory that a GPU's kernels need besides the layer's buffers"),
    WEFT_KEY_COUNT_IF("backward_scratch_bytes", weft_layer_times, backward_scratch_bytes,
                      forward_scratch_bytes, backward_scratch_bytes, "the same"));

#define CURVE_IF(name, by, member, text)                                                           \
    WEFT_CURVE_KEY(WEFT_KEY_OPTIONAL, name, by, weft_profile, member, text)
static const struct weft_key_table collectives_table = WEFT_KEY_TABLE_OPEN(
    "Times of collectives of all ranks.",
    CURVE_IF("all_gather", bytes, collectives[WEFT_ALL_GATHER], "parameters"),
    CURVE_IF("reduce_scatter", bytes, collectives[WEFT_REDUCE_SCATTER], "gradients"),
    CURVE_IF("all_reduce", bytes, collectives[WEFT_ALL_REDUCE],
             "gradients of units that every rank holds"));

static const struct weft_key_table contention_table = WEFT_KEY_TABLE_OPEN(
    "Rates of compute and communication while both run.",
    WEFT_KEY_RANGE_AS(WEFT_KEY_NEEDED, "compute_rate", weft_rates, compute, WEFT_RATE_LEAST,
                      WEFT_RATE_ONE, "of compute while a channel is busy; 1024 is full speed"),
    WEFT_KEY_RANGE_AS(WEFT_KEY_NEEDED, "channel_rate", weft_rates, own, WEFT_RATE_LEAST,
                      WEFT_RATE_ONE, "of a channel while compute is; 1024 is full speed"));

static const struct weft_key_table base_table =
    WEFT_KEY_TABLE_OPEN("Base memory of runs with one micro-batch.",
                        WEFT_KEY_RANGE(weft_profile_base, micro_batch, 1, WEFT_JSON_MOST_INTEGER,
                                       "samples of a rank's micro-step"),
                        WEFT_KEY_RANGE(weft_profile_base, bytes, 0, WEFT_JSON_MOST_INTEGER,
                                       "that a rank holds outside the arena"));

#define TEXT_IF(member, text)                                                                      \
    WEFT_KEY_VALUE_AS(WEFT_KEY_OPTIONAL, #member, WEFT_KEY_TEXT, weft_profile, member, text)
static const char format_name[] = "weft-profile";
enum { MOST_RANKS = 65536 };
const struct weft_key_table weft_profile_keys = WEFT_KEY_TABLE_OPEN(
    "Figures that `weft profile` measured; cluster.profile names it.",
    WEFT_KEY_PART(WEFT_KEY_CONST, "format", format_name, "of this file"), WEFT_KEY_VERSION(VERSION),
    WEFT_KEY_VALUE_AS(WEFT_KEY_OPTIONAL | WEFT_KEY_UNREAD, "weft", WEFT_KEY_TEXT, weft_profile,
                      program, "version of the program that wrote it"),
    WEFT_KEY_VALUE(WEFT_KEY_TEXT, weft_profile, source,
                   "measured or analytic, and whether the link was emulated"),
    WEFT_KEY_VALUE(WEFT_KEY_TEXT, weft_profile, machine, "for people"),
    WEFT_KEY_RANGE(weft_profile, ranks, 1, MOST_RANKS, "that were measured together"),
    WEFT_KEY_INSIDE(WEFT_KEY_OPTIONAL | WEFT_KEY_FLAT | WEFT_KEY_UNREAD, "measured_on",
                    weft_profile, origin, &weft_profile_origin_keys, "by a program that notes it"),
    WEFT_KEY_ARRAY(WEFT_KEY_FLAT | WEFT_KEY_UNREAD, WEFT_KEY_OBJECT, "layers", weft_profile, layers,
                   n_layers, &times_table, "a time for each key"),
    WEFT_KEY_OWN(WEFT_KEY_UNREAD, "collectives", &collectives_table, "by size"),
    TEXT_IF(device, "that was measured, if it is not `cpu`"),
    TEXT_IF(kernels, "measured way to compute products"),
    TEXT_IF(products, "the algorithm of each product, if that way is a library with several: its "
                      "version and algorithms"),
    TEXT_IF(updates, "optimizer that was measured"),
    CURVE_IF("update", elements, update, "of the optimizer"),
    CURVE_IF("norm", elements, norm, "of the gradients' norm"),
    WEFT_KEY_INSIDE_IF(WEFT_KEY_FLAT | WEFT_KEY_UNREAD, "contention", weft_profile, rates,
                       rates.compute, &contention_table, "with --contention"),
    WEFT_KEY_INSIDE_IF(WEFT_KEY_UNREAD, "host", weft_profile, tiers.host, tiers.host.given,
                       &weft_profile_host_keys, "if the config allows cluster.host"),
    WEFT_KEY_INSIDE_IF(WEFT_KEY_UNREAD, "disk", weft_profile, tiers.disk, tiers.disk.given,
                       &weft_profile_disk_keys, "if the config allows cluster.disk"),
    WEFT_KEY_INSIDE_IF(WEFT_KEY_UNREAD, "network", weft_profile, network, network.n_hosts,
                       &weft_profile_network_keys, "of several hosts"),
    WEFT_KEY_INSIDE_IF(WEFT_KEY_UNREAD, "levels", weft_profile, network, network.ranks_per_node,
                       &weft_profile_levels_keys, "of several nodes of several ranks"),
    WEFT_KEY_RANGE_AS(WEFT_KEY_OPTIONAL | WEFT_KEY_ZERO, "agree_ns", weft_profile, agree_ns, 0,
                      WEFT_JSON_MOST_INTEGER, "time in which ranks sum norm, loss and flags"),
    WEFT_KEY_RANGE_AS(WEFT_KEY_OPTIONAL | WEFT_KEY_ZERO, "base_bytes", weft_profile, base_bytes, 0,
                      WEFT_JSON_MOST_INTEGER, "that a rank holds outside the arena"),
    WEFT_KEY_ARRAY(WEFT_KEY_OPTIONAL | WEFT_KEY_FLAT, WEFT_KEY_OBJECT, "bases", weft_profile, bases,
                   n_bases, &base_table, "of several micro-batches; others have base_bytes"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_OPTIONAL, "staging_bytes", weft_profile, staging_bytes,
                      "not in base_bytes: of sums under way, for each lane of the network and "
                      "group of ranks"));

static const char *const collective_names[WEFT_COLLECTIVE_COUNT] = {
    [WEFT_ALL_GATHER] = "all_gather",
    [WEFT_REDUCE_SCATTER] = "reduce_scatter",
    [WEFT_ALL_REDUCE] = "all_reduce",
};

const char *weft_collective_name(enum weft_collective kind)
{
    return (unsigned)kind < WEFT_COLLECTIVE_COUNT ? collective_names[kind] : "no collective";
}

static const struct weft_layer_times *find_times(const struct weft_profile *profile, bool is_name,
                                                 const char *key)
{
    for (int32_t i = 0; i < profile->n_layers; i++) {
        const struct weft_layer_times *times = &profile->layers[i];
        if (times->is_name == is_name && strcmp(times->key, key) == 0) return times;
    }
    return NULL;
}

const struct weft_layer_times *weft_profile_layer(const struct weft_profile *profile,
                                                  const char *key)
{
    return find_times(profile, false, key);
}

const struct weft_layer_times *weft_profile_times(const struct weft_profile *profile,
                                                  const char *name, const char *key)
{
    const struct weft_layer_times *named = find_times(profile, true, name);
    return named != NULL ? named : find_times(profile, false, key);
}

const struct weft_level_times *weft_layer_times_at(const struct weft_layer_times *times,
                                                   enum weft_recompute level)
{
    return (times->recomputes & 1 << level) != 0 ? &times->levels[level] : NULL;
}

static bool has_times(const struct weft_pass_times *at)
{
    return at->forward_ns > 0 || at->backward_ns > 0;
}

const struct weft_pass_times *weft_layer_times_in_pass(const struct weft_layer_times *times,
                                                       enum weft_recompute level, bool later)
{
    const struct weft_level_times *at = &times->levels[level];
    const struct weft_pass_times *pass = later ? &at->pass_later : &at->pass_first;
    return has_times(pass) ? pass : NULL;
}

int64_t weft_profile_block_bytes(const struct weft_profile *profile, double efficiency)
{
    const int64_t bytes = weft_curve_efficient(&profile->collectives[WEFT_ALL_GATHER], efficiency);
    return bytes > 0 ? bytes : plain_block_bytes;
}

void weft_profile_destroy(struct weft_profile *profile)
{
    if (profile == NULL) return;
    weft_pool_finish(&profile->pool);
    free(profile);
}

static void put_key(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct weft_layer_times *times = source;
    (void)context;
    weft_json_put_string(writer, times->is_name ? "name" : "key", times->key);
}

static void put_levels(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct weft_layer_times *times = source;
    (void)context;
    for (int level = WEFT_RECOMPUTE_FIRST; level < WEFT_RECOMPUTE_COUNT; level++) {
        const struct weft_level_times *at = weft_layer_times_at(times, (enum weft_recompute)level);
        if (at == NULL) continue;
        weft_json_key(writer, weft_recompute_names[level]);
        weft_json_begin_object(writer);
        weft_keys_write(&level_table, NULL, at, writer);
        weft_json_end_object(writer);
    }
}

/* Passes have both times or none. */
static enum weft_status check_pass(const struct weft_level_times *at, const char *where,
                                   struct weft_error *err)
{
    if (has_times(&at->pass_first) == has_times(&at->pass_later)) return WEFT_OK;
    return weft_fail(
        err, WEFT_E_DATA,
        "%s: must have both \"pass_first\" and \"pass_later\" or neither; make the profile again "
        "with `weft profile`",
        where);
}

static enum weft_status read_levels(const struct weft_json_value *value, const char *where,
                                    struct weft_layer_times *times, struct weft_error *err)
{
    WEFT_TRY(check_pass(&times->levels[WEFT_RECOMPUTE_NONE], where, err));
    for (int level = WEFT_RECOMPUTE_FIRST; level < WEFT_RECOMPUTE_COUNT; level++) {
        const struct weft_json_value *at = NULL;
        const char *name = weft_recompute_names[level];
        char place[640];
        if (weft_json_member(value, name) == NULL) continue;
        WEFT_TRY(weft_json_need(value, where, name, WEFT_JSON_OBJECT, &at, err));
        snprintf(place, sizeof place, "%s.%s", where, name);
        WEFT_TRY(weft_keys_read(&level_table, at, place, NULL, &times->levels[level], err));
        WEFT_TRY(check_pass(&times->levels[level], place, err));
        times->recomputes |= 1 << level;
    }
    return WEFT_OK;
}

/* Writes a profile. The hash covers the form without the program's version (NULL), so equal times
 * have equal hashes from any version. */
static void write_profile(const struct weft_profile *profile, const char *program,
                          struct weft_text *out)
{
    struct weft_profile written = *profile;
    struct weft_json_writer writer;
    written.program = program;
    weft_json_writer_init(&writer, out, 2);
    weft_json_begin_object(&writer);
    weft_keys_write(&weft_profile_keys, NULL, &written, &writer);
    weft_json_end_object(&writer);
    weft_text_add(out, "\n");
}

void weft_profile_write(const struct weft_profile *profile, struct weft_text *out)
{
    write_profile(profile, WEFT_VERSION, out);
}

/* Equal keys keep the order of the file. */
static int by_key(const void *a, const void *b)
{
    const struct weft_layer_times *const *x = a, *const *y = b;
    int by = (*x)->is_name - (*y)->is_name;
    if (by == 0) by = strcmp((*x)->key, (*y)->key);
    return by != 0 ? by : (*x > *y) - (*x < *y);
}

/* Checks that no key is there twice; sorts, because a file may have many keys. */
static enum weft_status check_keys(const struct weft_profile *profile, const char *source,
                                   struct weft_error *err)
{
    size_t n = (size_t)profile->n_layers;
    const struct weft_layer_times **sorted = calloc(n + 1, sizeof *sorted);
    enum weft_status status = WEFT_OK;
    if (sorted == NULL) return weft_fail_memory(err, "a profile");
    for (size_t i = 0; i < n; i++)
        sorted[i] = &profile->layers[i];
    qsort(sorted, n, sizeof *sorted, by_key);
    for (size_t i = 1; i < n && status == WEFT_OK; i++) {
        if (sorted[i - 1]->is_name != sorted[i]->is_name ||
            strcmp(sorted[i - 1]->key, sorted[i]->key) != 0)
            continue;
        status = weft_fail(err, WEFT_E_DATA, "%s: layers[%d]: \"%s\" is there twice", source,
                           (int)(sorted[i] - profile->layers), sorted[i]->key);
    }
    free(sorted);
    return status;
}

/* Takes the name as key. An entry has one of them. */
static enum weft_status read_name(const struct weft_json_value *value, const char *where,
                                  struct weft_pool *pool, struct weft_layer_times *times,
                                  struct weft_error *err)
{
    const char *name;
    const bool is_there = weft_json_string(weft_json_member(value, "name"), &name);
    if (is_there == (times->key != NULL))
        return weft_fail(err, WEFT_E_DATA, "%s: must have either \"key\" or \"name\"", where);
    if (!is_there) return WEFT_OK;
    times->is_name = true;
    times->key = weft_pool_string(pool, name);
    return times->key == NULL ? weft_fail_memory(err, "a profile") : WEFT_OK;
}

static enum weft_status read_layers(const struct weft_json_value *root, const char *source,
                                    struct weft_profile *profile, struct weft_error *err)
{
    const struct weft_json_value *list;
    enum { MOST_LAYERS = 65536 };
    WEFT_TRY(weft_json_need(root, source, "layers", WEFT_JSON_ARRAY, &list, err));
    size_t n = weft_json_count(list);
    if (n > MOST_LAYERS) {
        return weft_fail(err, WEFT_E_DATA, "%s: layers has %zu entries; must have at most %d",
                         source, n, MOST_LAYERS);
    }
    profile->layers = weft_pool_array(&profile->pool, n, sizeof *profile->layers);
    if (profile->layers == NULL) return weft_fail_memory(err, "a profile");
    for (const struct weft_json_value *value = weft_json_first(list); value != NULL;
         value = weft_json_next(value)) {
        char where[512];
        struct weft_layer_times times = {0};
        snprintf(where, sizeof where, "%s: layers[%d]", source, profile->n_layers);
        WEFT_TRY(weft_keys_read(&times_table, value, where, &profile->pool, &times, err));
        WEFT_TRY(read_name(value, where, &profile->pool, &times, err));
        WEFT_TRY(read_levels(value, where, &times, err));
        profile->layers[profile->n_layers++] = times;
    }
    return check_keys(profile, source, err);
}

static enum weft_status check_format(const struct weft_json_value *root, const char *source,
                                     struct weft_error *err)
{
    const char *format = "";
    int64_t version;
    if (!weft_json_string(weft_json_member(root, "format"), &format) ||
        strcmp(format, format_name) != 0) {
        return weft_fail(err, WEFT_E_DATA,
                         "%s: its format is \"%s\", not \"weft-profile\"; make one with "
                         "`weft profile`",
                         source, format);
    }
    WEFT_TRY(weft_json_need_integer(root, source, "version", 0, WEFT_KEY_MOST, &version, err));
    if (version == VERSION) return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA,
                     "%s: its version is %lld and this program reads %d; make it again with "
                     "`weft profile`",
                     source, (long long)version, VERSION);
}

static enum weft_status read_rates(const struct weft_json_value *root, const char *source,
                                   struct weft_rates *out, struct weft_error *err)
{
    const struct weft_json_value *object;
    struct weft_rates rates;
    if (weft_json_member(root, "contention") == NULL) return WEFT_OK;
    WEFT_TRY(weft_json_need(root, source, "contention", WEFT_JSON_OBJECT, &object, err));
    WEFT_TRY(weft_keys_read(&contention_table, object, source, NULL, &rates, err));
    if (rates.compute + rates.own < WEFT_RATE_ONE) {
        return weft_fail(err, WEFT_E_DATA,
                         "%s: contention: compute_rate %d and channel_rate %d add up to less than "
                         "%d: one after the other would be faster",
                         source, rates.compute, rates.own, WEFT_RATE_ONE);
    }
    *out = rates;
    return WEFT_OK;
}

static enum weft_status check_bases(const struct weft_profile *profile, const char *source,
                                    struct weft_error *err)
{
    for (int32_t b = 0; b < profile->n_bases; b++)
        for (int32_t i = 0; i < b; i++)
            if (profile->bases[i].micro_batch == profile->bases[b].micro_batch)
                return weft_fail(err, WEFT_E_DATA, "%s: bases[%d]: micro_batch %lld is there twice",
                                 source, b, (long long)profile->bases[b].micro_batch);
    return WEFT_OK;
}

static enum weft_status read_profile(const struct weft_json_value *root, const char *source,
                                     struct weft_profile *profile, struct weft_error *err)
{
    struct weft_pool *pool = &profile->pool;
    const struct weft_json_value *collectives;
    if (weft_json_kind(root) != WEFT_JSON_OBJECT) {
        return weft_fail(err, WEFT_E_DATA, "%s: is no object; make a profile with `weft profile`",
                         source);
    }
    WEFT_TRY(check_format(root, source, err));
    profile->agree_ns = profile->base_bytes = -1;
    WEFT_TRY(weft_keys_read(&weft_profile_keys, root, source, pool, profile, err));
    WEFT_TRY(weft_profile_origin_read(root, source, pool, &profile->origin, err));
    WEFT_TRY(read_layers(root, source, profile, err));
    WEFT_TRY(check_bases(profile, source, err));
    WEFT_TRY(weft_json_need(root, source, "collectives", WEFT_JSON_OBJECT, &collectives, err));
    for (int kind = 0; kind < WEFT_COLLECTIVE_COUNT; kind++) {
        WEFT_TRY(weft_curve_read(collectives, source, collective_names[kind], "bytes", pool,
                                 &profile->collectives[kind], err));
    }
    WEFT_TRY(weft_curve_read(root, source, "update", "elements", pool, &profile->update, err));
    WEFT_TRY(weft_curve_read(root, source, "norm", "elements", pool, &profile->norm, err));
    WEFT_TRY(read_rates(root, source, &profile->rates, err));
    WEFT_TRY(weft_profile_read_tiers(root, source, pool, &profile->tiers, err));
    return weft_profile_network_read(root, source, pool, &profile->network, err);
}

enum weft_status weft_profile_parse(const char *bytes, size_t length, const char *source,
                                    struct weft_profile **out, struct weft_error *err)
{
    struct weft_json *document = NULL;
    struct weft_text text;
    enum weft_status status;
    weft_text_init(&text);
    struct weft_profile *profile = calloc(1, sizeof *profile);
    if (profile == NULL) return weft_fail_memory(err, "a profile");
    WEFT_TRY_GOTO(done, weft_json_parse(bytes, length, source, &document, err));
    WEFT_TRY_GOTO(done, read_profile(weft_json_root(document), source, profile, err));
    write_profile(profile, NULL, &text);
    if (!weft_text_ok(&text)) {
        status = weft_fail_memory(err, "a profile");
        goto done;
    }
    profile->hash = weft_hash_bytes(weft_text_chars(&text), text.length);
    *out = profile;
    profile = NULL;
done:
    weft_text_finish(&text);
    weft_json_destroy(document);
    weft_profile_destroy(profile);
    return status;
}

/* Writes the profile and reads it again, which gives it its hash. */
static enum weft_status copy_profile(const struct weft_profile *profile, struct weft_profile **out,
                                     struct weft_error *err)
{
    struct weft_text text;
    weft_text_init(&text);
    weft_profile_write(profile, &text);
    enum weft_status status =
        weft_text_ok(&text)
            ? weft_profile_parse(weft_text_chars(&text), text.length, "a profile", out, err)
            : weft_fail_memory(err, "a profile");
    weft_text_finish(&text);
    return status;
}

int64_t weft_profile_base_of(const struct weft_profile *profile, int64_t micro_batch)
{
    for (int32_t i = 0; i < profile->n_bases; i++)
        if (profile->bases[i].micro_batch == micro_batch) return profile->bases[i].bytes;
    return profile->base_bytes;
}

enum weft_status weft_profile_with_base(const struct weft_profile *profile, int64_t base_bytes,
                                        struct weft_profile **out, struct weft_error *err)
{
    struct weft_profile other = *profile;
    other.base_bytes = base_bytes;
    other.n_bases = 0;
    return copy_profile(&other, out, err);
}

enum weft_status weft_profile_of_split(const struct weft_profile *profile, int64_t micro_batch,
                                       struct weft_profile **out, struct weft_error *err)
{
    struct weft_profile other = *profile;
    struct weft_profile_base base = {micro_batch, profile->base_bytes};
    other.bases = &base;
    other.n_bases = profile->base_bytes >= 0;
    return copy_profile(&other, out, err);
}

/* Joining */

/* The place of the line in the text; NULL: it has none. */
static const char *find_line(const char *text, const char *line, size_t length)
{
    for (; *text != '\0'; text += strcspn(text, "\n"), text += *text == '\n')
        if (strcspn(text, "\n") == length && strncmp(text, line, length) == 0) return text;
    return NULL;
}

/* Appends the lines of `from` up to `end` that `known` lacks. */
static void add_lines(const char *from, const char *end, const char *known, struct weft_text *out)
{
    while (from < end) {
        const size_t length = strcspn(from, "\n");
        if (find_line(known, from, length) == NULL) {
            weft_text_append(out, from, length);
            weft_text_add(out, "\n");
        }
        from += length + (from[length] == '\n');
    }
}

/* Lines of both texts of choices, each once. Lines of both, such as titles of parts, keep the
 * others in their part. NULL without choices, or without memory. */
static const char *join_products(struct weft_pool *pool, const char *first, const char *second)
{
    struct weft_text text;
    const char *copy = NULL, *rest = second;
    if (first == NULL || second == NULL) return first != NULL ? first : second;
    weft_text_init(&text);
    for (const char *line = first; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        const char *same = find_line(rest, line, length);
        if (same != NULL) {
            add_lines(rest, same, first, &text);
            rest = same;
        }
        weft_text_append(&text, line, length);
        weft_text_add(&text, "\n");
        line += length + (line[length] == '\n');
    }
    add_lines(rest, rest + strlen(rest), first, &text);
    if (weft_text_ok(&text)) copy = weft_pool_string(pool, weft_text_chars(&text));
    weft_text_finish(&text);
    return copy;
}

/* False without memory. The first profile's base of a micro-batch counts. */
static bool join_bases(struct weft_pool *pool, const struct weft_profile *first,
                       const struct weft_profile *second, struct weft_profile *joined)
{
    const size_t n = (size_t)first->n_bases + (size_t)second->n_bases;
    joined->bases = weft_pool_array(pool, n, sizeof *joined->bases);
    if (joined->bases == NULL) return false;
    for (int32_t i = 0; i < first->n_bases; i++)
        joined->bases[i] = first->bases[i];
    for (int32_t i = 0; i < second->n_bases; i++) {
        bool is_known = false;
        for (int32_t k = 0; k < first->n_bases; k++)
            is_known |= first->bases[k].micro_batch == second->bases[i].micro_batch;
        if (!is_known) joined->bases[joined->n_bases++] = second->bases[i];
    }
    return true;
}

static enum weft_status join_profiles(const struct weft_profile *first,
                                      const struct weft_profile *second, struct weft_profile **out,
                                      struct weft_error *err)
{
    struct weft_profile joined = *first;
    struct weft_pool pool = {0};
    const size_t n = (size_t)first->n_layers + (size_t)second->n_layers;
    joined.layers = weft_pool_array(&pool, n, sizeof *joined.layers);
    joined.products = join_products(&pool, first->products, second->products);
    bool ok = joined.layers != NULL && (joined.products != NULL || first->products == NULL);
    for (int32_t l = 0; l < first->n_layers && ok; l++)
        joined.layers[l] = first->layers[l];
    for (int32_t l = 0; l < second->n_layers && ok; l++)
        if (find_times(first, second->layers[l].is_name, second->layers[l].key) == NULL)
            joined.layers[joined.n_layers++] = second->layers[l];
    ok = ok && join_bases(&pool, first, second, &joined);
    if (second->base_bytes > joined.base_bytes) joined.base_bytes = second->base_bytes;
    if (second->staging_bytes > joined.staging_bytes) joined.staging_bytes = second->staging_bytes;
    const enum weft_status status =
        ok ? copy_profile(&joined, out, err) : weft_fail_memory(err, "a profile");
    weft_pool_finish(&pool);
    return status;
}

enum weft_status weft_profile_add(struct weft_profile **profile, struct weft_profile *measured,
                                  struct weft_error *err)
{
    struct weft_profile *joined = NULL;
    if (*profile == NULL) {
        *profile = measured;
        return WEFT_OK;
    }
    const enum weft_status status = join_profiles(*profile, measured, &joined, err);
    weft_profile_destroy(measured);
    if (status != WEFT_OK) return status;
    weft_profile_destroy(*profile);
    *profile = joined;
    return WEFT_OK;
}
