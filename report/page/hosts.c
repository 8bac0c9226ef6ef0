/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/page/report.h"

/* Hosts of a run with their load, its ranks over all steps, and the measured links. */

enum { MOST_ROWS = 64 };

static const struct weft_record_hosts *hosts_of(const struct weft_report *report, int32_t i)
{
    return &report->records[i].hosts;
}

/* The rank with the longest compute; of one host, or of all (-1). NULL: the host has none. */
static const struct weft_record_seat *find_slowest(const struct weft_record_hosts *hosts,
                                                   int32_t host)
{
    const struct weft_record_seat *slowest = NULL;
    for (int32_t r = 0; r < hosts->n_ranks; r++) {
        const struct weft_record_seat *seat = &hosts->ranks[r];
        if (host >= 0 && seat->host != host) continue;
        if (slowest == NULL || seat->compute_ns > slowest->compute_ns) slowest = seat;
    }
    return slowest;
}

static const struct weft_record_seat *find_fastest(const struct weft_record_hosts *hosts)
{
    const struct weft_record_seat *fastest = &hosts->ranks[0];
    for (int32_t r = 1; r < hosts->n_ranks; r++)
        if (hosts->ranks[r].compute_ns < fastest->compute_ns) fastest = &hosts->ranks[r];
    return fastest;
}

/* "rank 2", and with several hosts "rank 2 on host b". */
static const char *show_seat(struct weft_report *report, const struct weft_record_hosts *hosts,
                             const struct weft_record_seat *seat)
{
    if (hosts->n_hosts == 1) return weft_page_format(report->page, "rank %d", (int)seat->rank);
    return weft_page_format(report->page, "rank %d on host %s", (int)seat->rank,
                            hosts->hosts[seat->host].name);
}

static void say_slowest(struct weft_report *report, int32_t i, struct weft_page_section *section)
{
    char most[WEFT_UNITS_TEXT_BYTES], least[WEFT_UNITS_TEXT_BYTES];
    const struct weft_record_hosts *hosts = hosts_of(report, i);
    const struct weft_record_seat *slowest = find_slowest(hosts, -1),
                                  *fastest = find_fastest(hosts);
    weft_units_show_ns((int64_t)slowest->compute_ns, most);
    if (hosts->n_ranks == 1)
        weft_section_say(section, "Over all steps%s the rank computes for %s a step.",
                         weft_report_of(report, i), most);
    else if (slowest->compute_ns == fastest->compute_ns)
        weft_section_say(section, "Over all steps%s all ranks compute for %s a step.",
                         weft_report_of(report, i), most);
    else
        weft_section_say(section,
                         "Over all steps%s %s computes longest, for %s a step. The shortest time "
                         "is %s, of %s.",
                         weft_report_of(report, i), show_seat(report, hosts, slowest), most,
                         weft_units_show_ns((int64_t)fastest->compute_ns, least),
                         show_seat(report, hosts, fastest));
}

enum { HOST, HOST_RANKS, CORES, OTHERS, STOLEN, SLOWEST, COMPUTE, N_HOST_COLUMNS };

static void put_cores(struct weft_rows *rows, int32_t column, double cores)
{
    if (!isfinite(cores)) return;
    weft_rows_real(rows, column, cores);
    weft_rows_show(rows, column, cores >= 0.5 ? WEFT_PAINT_BAD : WEFT_PAINT_NONE, "%.2f cores",
                   cores);
}

static void add_hosts_table(struct weft_report *report, int32_t i, struct weft_answer *body)
{
    static const struct weft_column columns[N_HOST_COLUMNS] = {
        [HOST] = {"host", "host", 'l', WEFT_FIGURE_WORD, 0},
        [HOST_RANKS] = {"ranks", "ranks", 'r', WEFT_FIGURE_INTEGER, 0},
        [CORES] = {"cores", "cores", 'r', WEFT_FIGURE_INTEGER, 0},
        [OTHERS] = {"others_cores", "other programs used", 'r', WEFT_FIGURE_REAL, 0},
        [STOLEN] = {"stolen_cores", "the VM's host took", 'r', WEFT_FIGURE_REAL, 0},
        [SLOWEST] = {"slowest_rank", "slowest rank", 'r', WEFT_FIGURE_INTEGER, 0},
        [COMPUTE] = {"compute_ns", "computes", 'r', WEFT_FIGURE_NS, 0}};
    const struct weft_record_hosts *hosts = hosts_of(report, i);
    struct weft_rows *rows =
        weft_answer_table(body, weft_report_key(report, i, "hosts"), columns, N_HOST_COLUMNS);
    weft_rows_title(rows, "Hosts%s, with their load during the run", weft_report_of(report, i));
    for (int32_t h = 0; h < hosts->n_hosts && h < MOST_ROWS; h++) {
        const struct weft_record_host *host = &hosts->hosts[h];
        const struct weft_record_seat *slowest = find_slowest(hosts, h);
        weft_rows_begin(rows, NULL);
        weft_rows_word(rows, HOST, host->name);
        weft_rows_integer(rows, HOST_RANKS, host->ranks);
        weft_rows_integer(rows, CORES, host->cores);
        put_cores(rows, OTHERS, host->others_cores);
        put_cores(rows, STOLEN, host->stolen_cores);
        if (slowest == NULL) continue;
        weft_rows_integer(rows, SLOWEST, slowest->rank);
        weft_rows_integer(rows, COMPUTE, (int64_t)slowest->compute_ns);
    }
    if (hosts->n_hosts > MOST_ROWS)
        weft_rows_note(rows, "The table has %d of %d hosts.", (int)MOST_ROWS, (int)hosts->n_hosts);
}

static int compare_seats(const void *a, const void *b)
{
    const struct weft_record_seat *one = a, *other = b;
    const int later = (one->rank > other->rank) - (one->rank < other->rank);
    const int faster =
        (one->compute_ns < other->compute_ns) - (one->compute_ns > other->compute_ns);
    return faster != 0 ? faster : later;
}

/* Ranks in the order of their compute, the longest first. */
static void add_ranks_table(struct weft_report *report, int32_t i, struct weft_answer *body)
{
    enum { RANK, OF_HOST, COMPUTES, WAITS, DATA, N_COLUMNS };
    static const struct weft_column columns[N_COLUMNS] = {
        [RANK] = {"rank", "rank", 'r', WEFT_FIGURE_INTEGER, 0},
        [OF_HOST] = {"host", "host", 'l', WEFT_FIGURE_WORD, 0},
        [COMPUTES] = {"compute_ns", "computes", 'r', WEFT_FIGURE_NS, 0},
        [WAITS] = {"exposed_ns", "waits", 'r', WEFT_FIGURE_NS, 0},
        [DATA] = {"data_wait_ns", "waits for data", 'r', WEFT_FIGURE_NS, 0}};
    const struct weft_record_hosts *hosts = hosts_of(report, i);
    struct weft_record_seat *sorted = weft_page_array(report->page, hosts->n_ranks, sizeof *sorted);
    if (sorted == NULL) return;
    memcpy(sorted, hosts->ranks, (size_t)hosts->n_ranks * sizeof *sorted);
    qsort(sorted, (size_t)hosts->n_ranks, sizeof *sorted, compare_seats);
    struct weft_rows *rows =
        weft_answer_table(body, weft_report_key(report, i, "run_ranks"), columns, N_COLUMNS);
    weft_rows_title(rows, "Ranks%s over all steps, the slowest first", weft_report_of(report, i));
    for (int32_t k = 0; k < hosts->n_ranks && k < MOST_ROWS; k++) {
        weft_rows_begin(rows, NULL);
        weft_rows_integer(rows, RANK, sorted[k].rank);
        weft_rows_word(rows, OF_HOST, hosts->hosts[sorted[k].host].name);
        weft_rows_integer(rows, COMPUTES, (int64_t)sorted[k].compute_ns);
        weft_rows_integer(rows, WAITS, (int64_t)sorted[k].exposed_ns);
        weft_rows_integer(rows, DATA, (int64_t)sorted[k].data_wait_ns);
    }
    if (hosts->n_ranks > MOST_ROWS)
        weft_rows_note(rows, "The table has %d of %d ranks.", (int)MOST_ROWS, (int)hosts->n_ranks);
}

static int compare_pairs(const void *a, const void *b)
{
    const struct weft_network_pair *one = *(const struct weft_network_pair *const *)a;
    const struct weft_network_pair *other = *(const struct weft_network_pair *const *)b;
    return (one->ns < other->ns) - (one->ns > other->ns);
}

static void put_rate(struct weft_rows *rows, int32_t column, enum weft_paint paint, double rate)
{
    char text[WEFT_UNITS_TEXT_BYTES];
    weft_rows_real(rows, column, rate);
    weft_rows_show(rows, column, paint, "%s", weft_units_show_rate(rate, text));
}

/* Pairs of hosts, the slowest first. */
static void add_pairs(struct weft_report *report, int32_t i,
                      const struct weft_profile_network *network, struct weft_answer *body)
{
    enum { A, B, TIME, RATE, SLOW, N_COLUMNS };
    static const struct weft_column columns[N_COLUMNS] = {
        [A] = {"a", "host", 'l', WEFT_FIGURE_WORD, 0},
        [B] = {"b", "host", 'l', WEFT_FIGURE_WORD, 0},
        [TIME] = {"ns", "exchange", 'r', WEFT_FIGURE_NS, 0},
        [RATE] = {"bytes_per_s", "each way", 'r', WEFT_FIGURE_REAL, 0},
        [SLOW] = {"slow", "", 'l', WEFT_FIGURE_BOOL, 0}};
    char text[WEFT_UNITS_TEXT_BYTES];
    struct weft_error ignored = {0};
    struct weft_network_verdict verdict;
    const struct weft_network_pair **sorted =
        weft_page_array(report->page, network->n_pairs, sizeof *sorted);
    if (sorted == NULL ||
        weft_network_judge(network, &report->page->pool, &verdict, &ignored) != WEFT_OK) {
        report->page->failed = true;
        return;
    }
    for (int32_t p = 0; p < network->n_pairs; p++)
        sorted[p] = &network->pairs[p];
    qsort(sorted, (size_t)network->n_pairs, sizeof *sorted, compare_pairs);
    struct weft_rows *rows =
        weft_answer_table(body, weft_report_key(report, i, "links"), columns, N_COLUMNS);
    weft_rows_title(rows, "Measured links between hosts%s, the slowest first: %s both ways at once",
                    weft_report_of(report, i), weft_units_show_bytes(network->pair_bytes, text));
    for (int32_t k = 0; k < network->n_pairs && k < MOST_ROWS; k++) {
        const struct weft_network_pair *pair = sorted[k];
        const bool is_slow = verdict.slow_pairs[pair - network->pairs] ||
                             verdict.slow_links[pair->a] || verdict.slow_links[pair->b];
        weft_rows_begin(rows, NULL);
        weft_rows_word(rows, A, network->hosts[pair->a].name);
        weft_rows_word(rows, B, network->hosts[pair->b].name);
        weft_rows_integer(rows, TIME, pair->ns);
        put_rate(rows, RATE, is_slow ? WEFT_PAINT_BAD : WEFT_PAINT_NONE,
                 weft_network_rate(network, pair->ns));
        weft_rows_integer(rows, SLOW, is_slow);
        if (is_slow) weft_rows_show(rows, SLOW, WEFT_PAINT_BAD, "slow");
    }
    if (network->n_pairs > MOST_ROWS)
        weft_rows_note(rows, "The table has %d of %d links.", (int)MOST_ROWS,
                       (int)network->n_pairs);
}

enum { COLLECTIVE, LEAST, BYTES, NS, RATE, N_COLLECTIVE_COLUMNS };

static void put_curve(struct weft_rows *rows, const char *name, const struct weft_curve *curve)
{
    if (curve->n == 0) return;
    const int64_t bytes = curve->x[curve->n - 1], ns = curve->ns[curve->n - 1];
    weft_rows_begin(rows, NULL);
    weft_rows_word(rows, COLLECTIVE, name);
    weft_rows_integer(rows, LEAST, curve->ns[0]);
    weft_rows_integer(rows, BYTES, bytes);
    weft_rows_integer(rows, NS, ns);
    if (ns > 0) put_rate(rows, RATE, WEFT_PAINT_NONE, 1e9 * (double)bytes / (double)ns);
}

static void add_collectives(struct weft_report *report, int32_t i,
                            const struct weft_profile *profile, struct weft_answer *body)
{
    static const struct weft_column columns[N_COLLECTIVE_COLUMNS] = {
        [COLLECTIVE] = {"collective", "collective", 'l', WEFT_FIGURE_WORD, 0},
        [LEAST] = {"least_ns", "smallest block", 'r', WEFT_FIGURE_NS, 0},
        [BYTES] = {"bytes", "largest block", 'r', WEFT_FIGURE_BYTES, 0},
        [NS] = {"ns", "its time", 'r', WEFT_FIGURE_NS, 0},
        [RATE] = {"bytes_per_s", "rate", 'r', WEFT_FIGURE_REAL, 0}};
    struct weft_rows *rows = weft_answer_table(body, weft_report_key(report, i, "collectives"),
                                               columns, N_COLLECTIVE_COLUMNS);
    weft_rows_title(rows, "Measured collectives of all ranks%s", weft_report_of(report, i));
    for (int kind = 0; kind < WEFT_COLLECTIVE_COUNT; kind++)
        put_curve(rows, weft_collective_name((enum weft_collective)kind),
                  &profile->collectives[kind]);
    for (int k = 0; k < WEFT_LINK_LEVELS && weft_profile_has_levels(&profile->network); k++)
        put_curve(rows, weft_link_levels[k].name,
                  &profile->network.levels[weft_link_levels[k].group][weft_link_levels[k].kind]);
}

static void add_links(struct weft_report *report, int32_t i, struct weft_page_section *section)
{
    const struct weft_profile *profile = report->records[i].profile;
    if (profile == NULL || profile->ranks < 2) return;
    if (!weft_profile_timed_network(profile)) {
        weft_section_say(section,
                         "No link%s was measured: the plan counts on the figures of the cluster.",
                         weft_report_of(report, i));
        return;
    }
    if (profile->network.n_pairs > 0) add_pairs(report, i, &profile->network, &section->body);
    if (profile->origin.link != NULL)
        weft_section_say(section, "The profile%s was measured over %s.", weft_report_of(report, i),
                         profile->origin.link);
    if (profile->origin.busy_millicores >= WEFT_BUSY_MILLICORES)
        weft_section_say(section, "Meanwhile other programs used %.1f cores.",
                         1e-3 * (double)profile->origin.busy_millicores);
    add_collectives(report, i, profile, &section->body);
}

void weft_report_add_hosts(struct weft_report *report, int32_t record,
                           struct weft_page_section *section)
{
    const struct weft_source *source = &report->records[record];
    if (source->kind != WEFT_SOURCE_RUN) return;
    if (source->hosts.n_ranks > 0) {
        say_slowest(report, record, section);
        add_hosts_table(report, record, &section->body);
        if (source->hosts.n_ranks > 1) add_ranks_table(report, record, &section->body);
    } else {
        weft_section_say(section, "No hosts and no load%s are known: a run writes them at its end.",
                         weft_report_of(report, record));
    }
    add_links(report, record, section);
}

/* Runs side by side */

enum { RUN, RUN_HOSTS, RUN_RANKS, RUN_SLOWEST, RUN_HOST, RUN_MOST, RUN_LEAST, RUN_OTHERS, N_RUNS };

static void put_run(struct weft_report *report, int32_t i, struct weft_rows *rows)
{
    const struct weft_record_hosts *hosts = hosts_of(report, i);
    const struct weft_record_seat *slowest = find_slowest(hosts, -1);
    double others = NAN;
    for (int32_t h = 0; h < hosts->n_hosts; h++)
        others = fmax(others, hosts->hosts[h].others_cores); /* not NAN, if one is known */
    weft_rows_begin(rows, NULL);
    weft_rows_word(rows, RUN, report->records[i].name);
    weft_rows_integer(rows, RUN_HOSTS, hosts->n_hosts);
    weft_rows_integer(rows, RUN_RANKS, hosts->n_ranks);
    weft_rows_integer(rows, RUN_SLOWEST, slowest->rank);
    weft_rows_word(rows, RUN_HOST, hosts->hosts[slowest->host].name);
    weft_rows_integer(rows, RUN_MOST, (int64_t)slowest->compute_ns);
    weft_rows_integer(rows, RUN_LEAST, (int64_t)find_fastest(hosts)->compute_ns);
    put_cores(rows, RUN_OTHERS, others);
}

void weft_report_compare_hosts(struct weft_report *report, struct weft_page_section *section)
{
    static const struct weft_column columns[N_RUNS] = {
        [RUN] = {"run", "run", 'l', WEFT_FIGURE_WORD, 0},
        [RUN_HOSTS] = {"hosts", "hosts", 'r', WEFT_FIGURE_INTEGER, 0},
        [RUN_RANKS] = {"ranks", "ranks", 'r', WEFT_FIGURE_INTEGER, 0},
        [RUN_SLOWEST] = {"slowest_rank", "slowest rank", 'r', WEFT_FIGURE_INTEGER, 0},
        [RUN_HOST] = {"host", "on host", 'l', WEFT_FIGURE_WORD, 0},
        [RUN_MOST] = {"compute_ns", "computes", 'r', WEFT_FIGURE_NS, 0},
        [RUN_LEAST] = {"least_compute_ns", "fastest rank", 'r', WEFT_FIGURE_NS, 0},
        [RUN_OTHERS] = {"others_cores", "other programs used", 'r', WEFT_FIGURE_REAL, 0}};
    int32_t n = 0;
    for (int32_t i = 0; i < report->n; i++)
        n += hosts_of(report, i)->n_ranks > 0;
    if (n < 2) return;
    struct weft_rows *rows = weft_answer_table(&section->body, "runs", columns, N_RUNS);
    weft_rows_title(rows, "Runs side by side; the load is the busiest host's");
    for (int32_t i = 0; i < report->n; i++)
        if (hosts_of(report, i)->n_ranks > 0) put_run(report, i, rows);
}
