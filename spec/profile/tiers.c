/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700 /* realpath */
#include "spec/profile/tiers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/lanes.h"
#include "base/shown.h"
#include "spec/config.h"

/* 2^53: the largest exact JSON number. */
static const int64_t most_integer = INT64_C(1) << 53;

static const char *const duplex_names[WEFT_DUPLEX_COUNT + 1] = {
    [WEFT_DUPLEX_HALF] = "half", [WEFT_DUPLEX_FULL] = "full", [WEFT_DUPLEX_COUNT] = NULL};

enum { MOST_THREADS = 65536 };

#define CURVE(tier, member, text)                                                                  \
    WEFT_CURVE_KEY(WEFT_KEY_NEEDED, #member, bytes, weft_profile_##tier, member, text)
#define SHARE(tier, member, text)                                                                  \
    WEFT_KEY_RANGE(weft_profile_##tier, member, 1, WEFT_RATE_ONE, text)

const struct weft_key_table weft_profile_host_keys = WEFT_KEY_TABLE_OPEN(
    "Memory of the host, with all local ranks at work.",
    CURVE(host, down, "copies to the host, alone"), CURVE(host, up, "copies from the host, alone"),
    SHARE(host, down_beside, "of that speed while copies go up; 1024 is all of it"),
    SHARE(host, up_beside, "of that speed while copies go down; 1024 is all of it"),
    WEFT_KEY_RANGE(weft_profile_host, threads, 0, MOST_THREADS, "of updates"),
    WEFT_KEY_RANGE(weft_profile_host, update_bytes_per_s, 0, WEFT_JSON_MOST_INTEGER,
                   "that updates read and write, without copies"),
    SHARE(host, updates_beside, "of that speed while copies go both ways"));

const struct weft_key_table weft_profile_disk_keys = WEFT_KEY_TABLE_OPEN(
    "A disk, with all local ranks at work.",
    WEFT_KEY_VALUE(WEFT_KEY_TEXT, weft_profile_disk, path, "of the directory"),
    WEFT_KEY_VALUE_AS(WEFT_KEY_OPTIONAL, "file_system", WEFT_KEY_TEXT, weft_profile_disk,
                      file_system, "of that directory"),
    CURVE(disk, read, "alone"), CURVE(disk, write, "alone"),
    SHARE(disk, read_beside, "of that speed while there are writes; 1024 is all of it"),
    SHARE(disk, write_beside, "of that speed while there are reads; 1024 is all of it"),
    WEFT_KEY_NAMED(WEFT_KEY_NEEDED, "duplex", weft_profile_disk, duplex, duplex_names,
                   "half: reads and writes take turns"),
    WEFT_KEY_VALUE(WEFT_KEY_BOOL, weft_profile_disk, verified, "checksums are in the times"),
    WEFT_KEY_RANGE(weft_profile_disk, block_bytes, 0, WEFT_JSON_MOST_INTEGER,
                   "least that is as fast as any, within 5 %"),
    WEFT_KEY_RANGE(weft_profile_disk, threads, 0, MOST_THREADS,
                   "requests at once in each direction, the least"),
    WEFT_KEY_RANGE(weft_profile_disk, seats, 0, MOST_THREADS,
                   "of a ring in each direction, the least"));

/* Reads a required curve. */
static enum weft_status need_curve(const struct weft_json_value *object, const char *where,
                                   const char *name, struct weft_pool *pool, struct weft_curve *out,
                                   struct weft_error *err)
{
    const struct weft_json_value *curve;
    WEFT_TRY(weft_json_need(object, where, name, WEFT_JSON_OBJECT, &curve, err));
    return weft_curve_read(object, where, name, "bytes", pool, out, err);
}

static enum weft_status read_host(const struct weft_json_value *object, const char *where,
                                  struct weft_pool *pool, struct weft_profile_host *out,
                                  struct weft_error *err)
{
    out->given = true;
    WEFT_TRY(need_curve(object, where, "down", pool, &out->down, err));
    WEFT_TRY(need_curve(object, where, "up", pool, &out->up, err));
    return weft_keys_read(&weft_profile_host_keys, object, where, pool, out, err);
}

static enum weft_status read_disk(const struct weft_json_value *object, const char *where,
                                  struct weft_pool *pool, struct weft_profile_disk *out,
                                  struct weft_error *err)
{
    out->given = true;
    WEFT_TRY(need_curve(object, where, "read", pool, &out->read, err));
    WEFT_TRY(need_curve(object, where, "write", pool, &out->write, err));
    return weft_keys_read(&weft_profile_disk_keys, object, where, pool, out, err);
}

enum weft_status weft_profile_read_tiers(const struct weft_json_value *root, const char *source,
                                         struct weft_pool *pool, struct weft_profile_tiers *out,
                                         struct weft_error *err)
{
    const struct weft_json_value *object;
    if (weft_json_member(root, "host") != NULL) {
        const char *where = weft_pool_format(pool, "%s: host", source);
        if (where == NULL) return weft_fail_memory(err, "a profile");
        WEFT_TRY(weft_json_need(root, source, "host", WEFT_JSON_OBJECT, &object, err));
        WEFT_TRY(read_host(object, where, pool, &out->host, err));
    }
    if (weft_json_member(root, "disk") == NULL) return WEFT_OK;
    const char *where = weft_pool_format(pool, "%s: disk", source);
    if (where == NULL) return weft_fail_memory(err, "a profile");
    WEFT_TRY(weft_json_need(root, source, "disk", WEFT_JSON_OBJECT, &object, err));
    return read_disk(object, where, pool, &out->disk, err);
}

/* Draws alpha + bytes / bandwidth through two points. */
static enum weft_status draw_line(const struct weft_link *link, struct weft_pool *pool,
                                  struct weft_curve *out, struct weft_error *err)
{
    enum { POINTS = 2 };
    int64_t *x = weft_pool_array(pool, POINTS, sizeof *x);
    int64_t *ns = weft_pool_array(pool, POINTS, sizeof *ns);
    if (x == NULL || ns == NULL) return weft_fail_memory(err, "a profile");
    x[0] = 1 << 10;
    x[1] = INT64_C(1) << 30;
    for (int i = 0; i < POINTS; i++) {
        const double taken = ceil((double)link->alpha_ns + 1e9 * (double)x[i] / link->bytes_per_s);
        ns[i] = taken < (double)most_integer ? (int64_t)taken : most_integer;
    }
    *out = (struct weft_curve){.n = POINTS, .x = x, .ns = ns};
    return WEFT_OK;
}

/* Outputs of weft_profile_take_tiers. */
struct taking {
    struct weft_pool *pool;
    struct weft_profile_tiers *tiers;
    struct weft_profile_lack *lacks;
    int32_t *n_lacks;
};

static enum weft_status take_line(const struct taking *taking, const struct weft_link *link,
                                  const char *figure, const char *part, struct weft_curve *out,
                                  struct weft_error *err)
{
    if (link->bytes_per_s > 0) return draw_line(link, taking->pool, out, err);
    taking->lacks[(*taking->n_lacks)++] = (struct weft_profile_lack){figure, part};
    return WEFT_OK;
}

/* The rate of updates is needed only where the host may update. */
static enum weft_status take_host(const struct weft_config *config, const struct taking *taking,
                                  struct weft_error *err)
{
    const struct weft_host_spec *spec = &config->cluster.host;
    const bool updates = (weft_config_state_keeps(config) & 1 << WEFT_KEEP_HOST_UPDATE) != 0;
    struct weft_profile_host *host = &taking->tiers->host;
    WEFT_TRY(take_line(taking, &spec->down, "host.down.bandwidth", "time of copies to the host",
                       &host->down, err));
    WEFT_TRY(take_line(taking, &spec->up, "host.up.bandwidth", "time of copies from the host",
                       &host->up, err));
    if (updates && spec->update_bytes_per_s <= 0)
        taking->lacks[(*taking->n_lacks)++] =
            (struct weft_profile_lack){"host.update", "time of updates on the host"};
    host->given = host->down.n > 0 && host->up.n > 0;
    host->down_beside = host->up_beside = host->updates_beside = WEFT_RATE_ONE;
    host->threads = spec->threads;
    host->update_bytes_per_s = llround(fmin(spec->update_bytes_per_s, (double)most_integer));
    return WEFT_OK;
}

static enum weft_status take_disk(const struct weft_disk_spec *spec, const struct taking *taking,
                                  struct weft_error *err)
{
    struct weft_profile_disk *disk = &taking->tiers->disk;
    WEFT_TRY(take_line(taking, &spec->read, "disk.read.bandwidth", "time of reads of the disk",
                       &disk->read, err));
    WEFT_TRY(take_line(taking, &spec->write, "disk.write.bandwidth", "time of writes to the disk",
                       &disk->write, err));
    disk->given = disk->read.n > 0 && disk->write.n > 0;
    disk->path = spec->path;
    disk->duplex = (enum weft_duplex)spec->duplex;
    disk->read_beside = disk->write_beside =
        spec->duplex == WEFT_DUPLEX_HALF ? WEFT_RATE_ONE / 2 : WEFT_RATE_ONE;
    disk->verified = spec->verify;
    return WEFT_OK;
}

/* A path that does not exist here, for planning another machine, is compared as written. */
static bool is_same_directory(const char *ours, const char *theirs)
{
    char *real = realpath(ours, NULL);
    const bool same = strcmp(ours, theirs) == 0 || (real != NULL && strcmp(real, theirs) == 0);
    free(real);
    return same;
}

static enum weft_status check_disk(const struct weft_config *config,
                                   const struct weft_profile_disk *measured, struct weft_error *err)
{
    const struct weft_disk_spec *spec = &config->cluster.disk;
    char ours[WEFT_SHOWN_BYTES], theirs[WEFT_SHOWN_BYTES];
    const char *profile =
        config->cluster.profile != NULL ? config->cluster.profile : "the measured profile";
    if (!is_same_directory(spec->path, measured->path))
        return weft_fail(err, WEFT_E_DATA,
                         "%s: its disk is %s, and cluster.disk.path of %s is %s: run `weft "
                         "profile` on that",
                         profile, weft_shown(measured->path, theirs), config->source,
                         weft_shown(spec->path, ours));
    if (spec->verify == measured->verified) return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA,
                     "%s: its disk was measured with%s checksums, and cluster.disk.verify of %s is "
                     "%s: run `weft profile` again",
                     profile, measured->verified ? "" : "out", config->source,
                     spec->verify ? "true" : "false");
}

enum weft_status weft_profile_take_tiers(const struct weft_config *config,
                                         const struct weft_profile_tiers *measured,
                                         struct weft_pool *pool, struct weft_profile_tiers *out,
                                         struct weft_profile_lack lacks[WEFT_PROFILE_LACKS],
                                         int32_t *n_lacks, struct weft_error *err)
{
    const struct weft_cluster *cluster = &config->cluster;
    const struct taking taking = {pool, out, lacks, n_lacks};
    *n_lacks = 0;
    if (weft_config_uses_host(config)) {
        if (measured != NULL && measured->host.given)
            out->host = measured->host;
        else
            WEFT_TRY(take_host(config, &taking, err));
    }
    if (!weft_config_uses_disk(config)) return WEFT_OK;
    if (measured == NULL || !measured->disk.given) return take_disk(&cluster->disk, &taking, err);
    WEFT_TRY(check_disk(config, &measured->disk, err));
    out->disk = measured->disk;
    return WEFT_OK;
}
