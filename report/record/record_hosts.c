/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "report/record/record.h"

enum { MOST_HOSTS = 1 << 16, MOST_RANKS = 1 << 20 };

/* A count, or a time in nanoseconds, that sums of all ranks hold; NAN: none. */
static double read_count(const struct weft_json_value *object, const char *name)
{
    const double count = weft_record_number(object, name);
    return count >= 0 && count < 1e15 ? count : NAN;
}

static bool read_host(const struct weft_json_value *object, struct weft_source *record,
                      struct weft_record_host *out)
{
    const double ranks = read_count(object, "ranks"), cores = read_count(object, "cores");
    if (!isfinite(ranks) || !isfinite(cores)) return false;
    *out = (struct weft_record_host){.name = weft_record_word(record, object, "name"),
                                     .ranks = (int64_t)ranks,
                                     .cores = (int64_t)cores,
                                     .others_cores = read_count(object, "others_cores"),
                                     .stolen_cores = read_count(object, "stolen_cores")};
    return true;
}

static bool read_seat(const struct weft_json_value *object, int32_t rank, int32_t n_hosts,
                      struct weft_record_seat *out)
{
    int64_t host = -1;
    *out = (struct weft_record_seat){.rank = rank,
                                     .compute_ns = read_count(object, "compute_ns"),
                                     .exposed_ns = read_count(object, "exposed_ns"),
                                     .data_wait_ns = read_count(object, "data_wait_ns")};
    if (!weft_json_integer(weft_json_member(object, "host"), &host) || host < 0 || host >= n_hosts)
        return false;
    out->host = (int32_t)host;
    return isfinite(out->compute_ns) && isfinite(out->exposed_ns) && isfinite(out->data_wait_ns);
}

enum weft_status weft_record_read_hosts(const struct weft_json_value *result,
                                        struct weft_source *record, struct weft_error *err)
{
    const struct weft_json_value *hosts = weft_json_member(result, "hosts");
    const struct weft_json_value *ranks = weft_json_member(result, "ranks");
    const size_t n_hosts = hosts != NULL ? weft_json_count(hosts) : 0;
    const size_t n_ranks = ranks != NULL ? weft_json_count(ranks) : 0;
    struct weft_record_hosts out = {0};
    if (n_hosts == 0 || n_hosts > MOST_HOSTS || n_ranks == 0 || n_ranks > MOST_RANKS)
        return WEFT_OK;
    out.hosts = weft_pool_array(&record->pool, n_hosts, sizeof *out.hosts);
    out.ranks = weft_pool_array(&record->pool, n_ranks, sizeof *out.ranks);
    if (out.hosts == NULL || out.ranks == NULL) return weft_fail_memory(err, "the hosts of a run");
    for (const struct weft_json_value *at = weft_json_first(hosts); at; at = weft_json_next(at))
        if (!read_host(at, record, &out.hosts[out.n_hosts++])) return WEFT_OK;
    for (const struct weft_json_value *at = weft_json_first(ranks); at; at = weft_json_next(at)) {
        if (!read_seat(at, out.n_ranks, out.n_hosts, &out.ranks[out.n_ranks])) return WEFT_OK;
        out.n_ranks++;
    }
    record->hosts = out;
    return WEFT_OK;
}
