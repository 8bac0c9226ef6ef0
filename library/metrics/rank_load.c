/* SPDX-License-Identifier: Apache-2.0 */
#include "library/metrics/rank_load.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/comm/host.h"

enum { WARM_STEPS = 2 };

void weft_rank_load_begin(struct weft_rank_load *load)
{
    *load = (struct weft_rank_load){.seen = 0};
    weft_load_read(&load->before);
}

void weft_rank_load_note(struct weft_rank_load *load, const struct weft_step_line *line)
{
    if (load->seen++ == WARM_STEPS)
        load->steps = load->compute_ns = load->exposed_ns = load->data_wait_ns = 0;
    load->steps++;
    load->compute_ns += line->compute_ns;
    load->exposed_ns += line->exposed_ns;
    load->data_wait_ns += line->data_wait_ns;
}

static void fill_part(const struct weft_rank_load *load, const struct weft_rendezvous *meeting,
                      const struct weft_comm *comm, struct weft_rank_part *out)
{
    const char *host = weft_comm_host(comm, meeting->rank);
    const int64_t steps = load->steps > 0 ? load->steps : 1;
    memset(out, 0, sizeof *out);
    if (host[0] != '\0')
        snprintf(out->host, sizeof out->host, "%s", host);
    else if (gethostname(out->host, sizeof out->host - 1) != 0)
        out->host[0] = '\0';
    out->machine = weft_host_of_memory();
    weft_load_spend(&load->before, &out->spent);
    out->times =
        (struct weft_run_rank){.host = meeting->hosts != NULL ? meeting->hosts[meeting->rank] : 0,
                               .compute_ns = load->compute_ns / steps,
                               .exposed_ns = load->exposed_ns / steps,
                               .data_wait_ns = load->data_wait_ns / steps};
}

/* The host of its first rank's part. The load of its machine is without the CPU time of all ranks
 * there, also of other hosts. */
static struct weft_run_host sum_host(const struct weft_rank_part *parts, int32_t ranks,
                                     int32_t host)
{
    struct weft_run_host out = {.name = "", .others_cores = NAN, .stolen_cores = NAN};
    struct weft_load spent = {0};
    int32_t first = 0;
    while (first < ranks && parts[first].times.host != host)
        first++;
    if (first == ranks) return out;
    out.name = parts[first].host;
    spent = parts[first].spent;
    spent.own_s = 0;
    for (int32_t r = 0; r < ranks; r++) {
        out.ranks += parts[r].times.host == host;
        if (weft_hash_equal(parts[r].machine, parts[first].machine))
            spent.own_s += parts[r].spent.own_s;
    }
    out.cores = spent.cores;
    if (!weft_load_is_long(&spent)) return out;
    out.others_cores = weft_load_of_others(&spent);
    out.stolen_cores = weft_load_stolen(&spent);
    return out;
}

enum weft_status weft_rank_load_join(const struct weft_rank_part *parts, int32_t ranks,
                                     struct weft_pool *pool, struct weft_run_hosts *out,
                                     struct weft_error *err)
{
    int32_t n_hosts = 0;
    for (int32_t r = 0; r < ranks; r++)
        if (parts[r].times.host >= n_hosts) n_hosts = parts[r].times.host + 1;
    struct weft_run_host *hosts = weft_pool_array(pool, (size_t)n_hosts, sizeof *hosts);
    struct weft_run_rank *times = weft_pool_array(pool, (size_t)ranks, sizeof *times);
    if (hosts == NULL || times == NULL) return weft_fail_memory(err, "the hosts of a run");
    for (int32_t h = 0; h < n_hosts; h++)
        hosts[h] = sum_host(parts, ranks, h);
    for (int32_t r = 0; r < ranks; r++)
        times[r] = parts[r].times;
    *out = (struct weft_run_hosts){n_hosts, ranks, hosts, times};
    return WEFT_OK;
}

enum weft_status weft_rank_load_exchange(const struct weft_rank_load *load,
                                         const struct weft_rendezvous *meeting,
                                         struct weft_comm *comm, struct weft_pool *pool,
                                         struct weft_run_hosts *out, struct weft_error *err)
{
    struct weft_rank_part mine;
    struct weft_rank_part *all = weft_pool_array(pool, (size_t)meeting->ranks, sizeof *all);
    if (all == NULL) return weft_fail_memory(err, "the hosts of a run");
    fill_part(load, meeting, comm, &mine);
    WEFT_TRY(weft_comm_exchange(comm, &mine, sizeof mine, all, err));
    return weft_rank_load_join(all, meeting->ranks, pool, out, err);
}
