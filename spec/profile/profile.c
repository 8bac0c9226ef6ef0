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
/* 2^53: the largest exact JSON number. 104 days in ns, 8 PiB. */
static const int64_t most_integer = INT64_C(1) << 53;

static const char *const collective_names[WEFT_COLLECTIVE_COUNT] = {
    [WEFT_ALL_GATHER] = "all_gather",
    [WEFT_REDUCE_SCATTER] = "reduce_scatter",
    [WEFT_ALL_REDUCE] = "all_reduce",
};

const char *weft_collective_name(enum weft_collective kind)
{
    return (unsigned)kind < WEFT_COLLECTIVE_COUNT ? collective_names[kind] : "no collective";
}

const struct weft_layer_times *weft_profile_layer(const struct weft_profile *profile,
                                                  const char *key)
{
    for (int32_t i = 0; i < profile->n_layers; i++) {
        if (strcmp(profile->layers[i].key, key) == 0) return &profile->layers[i];
    }
    return NULL;
}

int64_t weft_profile_block_bytes(const struct weft_profile *profile, double efficiency)
{
    const struct weft_curve *curve = &profile->collectives[WEFT_ALL_GATHER];
    double best = 0; /* bytes a ns */
    for (int32_t i = 0; i < curve->n; i++) {
        if (curve->ns[i] <= 0) return plain_block_bytes;
        double rate = (double)curve->x[i] / (double)curve->ns[i];
        if (rate > best) best = rate;
    }
    double wanted = efficiency * best;
    if (wanted <= 0) return plain_block_bytes;
    int32_t reached = 0;
    while (reached + 1 < curve->n &&
           (double)curve->x[reached] / (double)curve->ns[reached] < wanted) {
        reached++;
    }
    /* Solves x / ns(x) = wanted on the segment that ends at `reached`; before the first point ns is
     * constant. */
    double x0 = 0, y0 = (double)curve->ns[0], slope = 0;
    if (reached > 0) {
        x0 = (double)curve->x[reached - 1];
        y0 = (double)curve->ns[reached - 1];
        slope = ((double)curve->ns[reached] - y0) / ((double)curve->x[reached] - x0);
    }
    double x = wanted * (y0 - slope * x0) / (1 - wanted * slope);
    double most = (double)curve->x[reached];
    if (!(x > x0) || x > most) x = most;
    int64_t bytes = (int64_t)ceil(x);
    return bytes < 1 ? 1 : bytes;
}

void weft_profile_destroy(struct weft_profile *profile)
{
    if (profile == NULL) return;
    weft_pool_finish(&profile->pool);
    free(profile);
}

/* Writes a profile. The hash covers the form without the program's version (NULL), so equal times
 * have equal hashes from any version. */
static void write_profile(const struct weft_profile *profile, const char *program,
                          struct weft_text *out)
{
    struct weft_json_writer writer;
    weft_json_writer_init(&writer, out, 2);
    weft_json_begin_object(&writer);
    weft_json_put_string(&writer, "format", "weft-profile");
    weft_json_put_integer(&writer, "version", VERSION);
    if (program != NULL) weft_json_put_string(&writer, "weft", program);
    weft_json_put_string(&writer, "source", profile->source);
    weft_json_put_string(&writer, "machine", profile->machine);
    weft_json_put_integer(&writer, "ranks", profile->ranks);
    weft_profile_origin_write(&profile->origin, &writer);
    weft_json_key(&writer, "layers");
    weft_json_begin_array(&writer);
    for (int32_t i = 0; i < profile->n_layers; i++) {
        weft_json_begin_object(&writer);
        weft_json_flat(&writer);
        weft_json_put_string(&writer, "key", profile->layers[i].key);
        weft_json_put_integer(&writer, "forward_ns", profile->layers[i].forward_ns);
        weft_json_put_integer(&writer, "backward_ns", profile->layers[i].backward_ns);
        weft_json_end_object(&writer);
    }
    weft_json_end_array(&writer);
    weft_json_key(&writer, "collectives");
    weft_json_begin_object(&writer);
    for (int kind = 0; kind < WEFT_COLLECTIVE_COUNT; kind++) {
        weft_curve_write(&writer, collective_names[kind], "bytes", &profile->collectives[kind]);
    }
    weft_json_end_object(&writer);
    if (profile->device != NULL) weft_json_put_string(&writer, "device", profile->device);
    if (profile->kernels != NULL) weft_json_put_string(&writer, "kernels", profile->kernels);
    if (profile->products != NULL) weft_json_put_string(&writer, "products", profile->products);
    if (profile->updates != NULL) weft_json_put_string(&writer, "updates", profile->updates);
    weft_curve_write(&writer, "update", "elements", &profile->update);
    weft_curve_write(&writer, "norm", "elements", &profile->norm);
    if (profile->rates.compute > 0) {
        weft_json_key(&writer, "contention");
        weft_json_begin_object(&writer);
        weft_json_flat(&writer);
        weft_json_put_integer(&writer, "compute_rate", profile->rates.compute);
        weft_json_put_integer(&writer, "channel_rate", profile->rates.own);
        weft_json_end_object(&writer);
    }
    weft_profile_write_tiers(&profile->tiers, &writer);
    if (profile->agree_ns >= 0) weft_json_put_integer(&writer, "agree_ns", profile->agree_ns);
    if (profile->base_bytes >= 0) weft_json_put_integer(&writer, "base_bytes", profile->base_bytes);
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
    int by = strcmp((*x)->key, (*y)->key);
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
        if (strcmp(sorted[i - 1]->key, sorted[i]->key) != 0) continue;
        status = weft_fail(err, WEFT_E_DATA, "%s: layers[%d]: \"%s\" is there twice", source,
                           (int)(sorted[i] - profile->layers), sorted[i]->key);
    }
    free(sorted);
    return status;
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
        struct weft_layer_times times;
        snprintf(where, sizeof where, "%s: layers[%d]", source, profile->n_layers);
        WEFT_TRY(weft_json_need_string(value, where, "key", &times.key, err));
        WEFT_TRY(weft_json_need_integer(value, where, "forward_ns", 0, most_integer,
                                        &times.forward_ns, err));
        WEFT_TRY(weft_json_need_integer(value, where, "backward_ns", 0, most_integer,
                                        &times.backward_ns, err));
        times.key = weft_pool_string(&profile->pool, times.key);
        if (times.key == NULL) return weft_fail_memory(err, "a profile");
        profile->layers[profile->n_layers++] = times;
    }
    return check_keys(profile, source, err);
}

static enum weft_status read_strings(const struct weft_json_value *root, const char *source,
                                     struct weft_profile *profile, struct weft_error *err)
{
    const char *format = "";
    int64_t version;
    if (!weft_json_string(weft_json_member(root, "format"), &format) ||
        strcmp(format, "weft-profile") != 0) {
        return weft_fail(err, WEFT_E_DATA,
                         "%s: its format is \"%s\", not \"weft-profile\"; make one with "
                         "`weft profile`",
                         source, format);
    }
    WEFT_TRY(weft_json_need_integer(root, source, "version", 0, most_integer, &version, err));
    if (version != VERSION) {
        return weft_fail(err, WEFT_E_DATA,
                         "%s: its version is %lld and this program reads %d; make it again with "
                         "`weft profile`",
                         source, (long long)version, VERSION);
    }
    WEFT_TRY(weft_json_need_string(root, source, "source", &profile->source, err));
    WEFT_TRY(weft_json_need_string(root, source, "machine", &profile->machine, err));
    profile->source = weft_pool_string(&profile->pool, profile->source);
    profile->machine = weft_pool_string(&profile->pool, profile->machine);
    if (profile->source == NULL || profile->machine == NULL) {
        return weft_fail_memory(err, "a profile");
    }
    return weft_json_need_integer(root, source, "ranks", 1, 65536, &profile->ranks, err);
}

/* Reads an optional integer; -1 if it is missing. */
static enum weft_status read_optional(const struct weft_json_value *root, const char *source,
                                      const char *name, int64_t *out, struct weft_error *err)
{
    *out = -1;
    if (weft_json_member(root, name) == NULL) return WEFT_OK;
    return weft_json_need_integer(root, source, name, 0, most_integer, out, err);
}

static enum weft_status read_rates(const struct weft_json_value *root, const char *source,
                                   struct weft_rates *out, struct weft_error *err)
{
    const struct weft_json_value *object;
    int64_t compute, channel;
    if (weft_json_member(root, "contention") == NULL) return WEFT_OK;
    WEFT_TRY(weft_json_need(root, source, "contention", WEFT_JSON_OBJECT, &object, err));
    WEFT_TRY(weft_json_need_integer(object, source, "compute_rate", WEFT_RATE_LEAST, WEFT_RATE_ONE,
                                    &compute, err));
    WEFT_TRY(weft_json_need_integer(object, source, "channel_rate", WEFT_RATE_LEAST, WEFT_RATE_ONE,
                                    &channel, err));
    if (compute + channel < WEFT_RATE_ONE) {
        return weft_fail(err, WEFT_E_DATA,
                         "%s: contention: compute_rate %d and channel_rate %d add up to less than "
                         "%d: one after the other would be faster",
                         source, (int)compute, (int)channel, WEFT_RATE_ONE);
    }
    *out = (struct weft_rates){(int32_t)compute, (int32_t)channel};
    return WEFT_OK;
}

/* Reads a name that older profiles lack. */
static enum weft_status read_name(const struct weft_json_value *root, const char *source,
                                  const char *key, struct weft_pool *pool, const char **out,
                                  struct weft_error *err)
{
    const char *name = NULL;
    if (weft_json_member(root, key) == NULL) return WEFT_OK;
    WEFT_TRY(weft_json_need_string(root, source, key, &name, err));
    *out = weft_pool_string(pool, name);
    return *out != NULL ? WEFT_OK : weft_fail_memory(err, "a profile");
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
    WEFT_TRY(read_strings(root, source, profile, err));
    WEFT_TRY(weft_profile_origin_read(root, source, pool, &profile->origin, err));
    WEFT_TRY(read_layers(root, source, profile, err));
    WEFT_TRY(weft_json_need(root, source, "collectives", WEFT_JSON_OBJECT, &collectives, err));
    for (int kind = 0; kind < WEFT_COLLECTIVE_COUNT; kind++) {
        WEFT_TRY(weft_curve_read(collectives, source, collective_names[kind], "bytes", pool,
                                 &profile->collectives[kind], err));
    }
    WEFT_TRY(read_name(root, source, "device", pool, &profile->device, err));
    WEFT_TRY(read_name(root, source, "kernels", pool, &profile->kernels, err));
    WEFT_TRY(read_name(root, source, "products", pool, &profile->products, err));
    WEFT_TRY(read_name(root, source, "updates", pool, &profile->updates, err));
    WEFT_TRY(weft_curve_read(root, source, "update", "elements", pool, &profile->update, err));
    WEFT_TRY(weft_curve_read(root, source, "norm", "elements", pool, &profile->norm, err));
    WEFT_TRY(read_rates(root, source, &profile->rates, err));
    WEFT_TRY(weft_profile_read_tiers(root, source, pool, &profile->tiers, err));
    WEFT_TRY(read_optional(root, source, "agree_ns", &profile->agree_ns, err));
    return read_optional(root, source, "base_bytes", &profile->base_bytes, err);
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

enum weft_status weft_profile_with_base(const struct weft_profile *profile, int64_t base_bytes,
                                        struct weft_profile **out, struct weft_error *err)
{
    struct weft_profile other = *profile;
    struct weft_text text;
    weft_text_init(&text);
    other.base_bytes = base_bytes;
    weft_profile_write(&other, &text);
    enum weft_status status =
        weft_text_ok(&text)
            ? weft_profile_parse(weft_text_chars(&text), text.length, "a profile", out, err)
            : weft_fail_memory(err, "a profile");
    weft_text_finish(&text);
    return status;
}
