/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/job/hosts.h"
#include "cli/job/job.h"
#include "cli/job/rank.h"
#include "cli/study/place.h"
#include "cli/terminal.h"
#include "library/session.h"
#include "report/table.h"

/* The time in which other micro-batches than the config's are measured, after its own. */
static const int64_t SPLITS_NS = INT64_C(30) * 1000000000;

static void show_layers(const struct weft_profile *profile, struct weft_text *out)
{
    char forward[WEFT_UNITS_TEXT_BYTES], backward[WEFT_UNITS_TEXT_BYTES];
    struct weft_table table;
    weft_table_init(&table, "lrr");
    weft_table_cell(&table, "layer");
    weft_table_cell(&table, "forward");
    weft_table_cell(&table, "backward");
    for (int32_t i = 0; i < profile->n_layers; i++) {
        weft_table_cell(&table, "%s", profile->layers[i].key);
        weft_table_cell(&table, "%s", weft_units_show_ns(profile->layers[i].forward_ns, forward));
        weft_table_cell(&table, "%s", weft_units_show_ns(profile->layers[i].backward_ns, backward));
    }
    weft_table_render(&table, 2, out);
    weft_table_finish(&table);
}

static void show_collectives(const struct weft_profile *profile, struct weft_text *out)
{
    char bytes[WEFT_UNITS_TEXT_BYTES], shown[WEFT_UNITS_TEXT_BYTES];
    const struct weft_curve *sizes = &profile->collectives[WEFT_ALL_GATHER];
    struct weft_table table;
    weft_table_init(&table, "rrrr");
    weft_table_cell(&table, "full size");
    for (int kind = 0; kind < WEFT_COLLECTIVE_COUNT; kind++)
        weft_table_cell(&table, "%s", weft_collective_name((enum weft_collective)kind));
    for (int32_t i = 0; i < sizes->n; i++) {
        weft_table_cell(&table, "%s", weft_units_show_bytes(sizes->x[i], bytes));
        for (int kind = 0; kind < WEFT_COLLECTIVE_COUNT; kind++) {
            int64_t ns = weft_curve_at(&profile->collectives[kind], sizes->x[i]);
            weft_table_cell(&table, "%s", weft_units_show_ns(ns, shown));
        }
    }
    weft_table_render(&table, 2, out);
    weft_table_finish(&table);
}

static bool has_level(const struct weft_profile_network *network, int level)
{
    return weft_link_curve(network, level)->n > 0;
}

/* Shows collectives of single levels at the sizes of sums across nodes. */
static void show_levels(const struct weft_profile_network *network, struct weft_text *out)
{
    char bytes[WEFT_UNITS_TEXT_BYTES], shown[WEFT_UNITS_TEXT_BYTES];
    const struct weft_curve *across = &network->levels[WEFT_GROUP_ACROSS][WEFT_ALL_REDUCE];
    struct weft_table table;
    if (!weft_profile_has_levels(network)) return;
    char columns[WEFT_LINK_LEVELS + 2] = "r";
    for (int l = 0, n = 1; l < WEFT_LINK_LEVELS; l++)
        if (has_level(network, l)) columns[n++] = 'r';
    weft_table_init(&table, columns);
    weft_table_cell(&table, "full size");
    for (int l = 0; l < WEFT_LINK_LEVELS; l++)
        if (has_level(network, l)) weft_table_cell(&table, "%s", weft_link_levels[l].name);
    for (int32_t i = 0; i < across->n; i++) {
        const int64_t x = across->x[i];
        weft_table_cell(&table, "%s", weft_units_show_bytes(x, bytes));
        for (int l = 0; l < WEFT_LINK_LEVELS; l++)
            if (has_level(network, l))
                weft_table_cell(
                    &table, "%s",
                    weft_units_show_ns(weft_curve_at(weft_link_curve(network, l), x), shown));
    }
    weft_table_render(&table, 2, out);
    weft_table_finish(&table);
}

/* Shows the usual and the slowest pair, and all that is slow. */
static enum weft_status show_network(const struct weft_profile_network *network,
                                     struct weft_text *out, struct weft_error *err)
{
    struct weft_pool pool = {0};
    struct weft_network_verdict verdict;
    int64_t slowest_ns = 0;
    if (network->n_hosts == 0) return WEFT_OK;
    const enum weft_status status = weft_network_judge(network, &pool, &verdict, err);
    for (int32_t p = 0; p < network->n_pairs; p++)
        if (network->pairs[p].ns > slowest_ns) slowest_ns = network->pairs[p].ns;
    if (status == WEFT_OK) {
        weft_text_addf(out,
                       "%d hosts, %d pair%s: %.1f MB/s each way is usual, the slowest moves %.1f\n",
                       network->n_hosts, network->n_pairs, network->n_pairs == 1 ? "" : "s",
                       1e-6 * weft_network_rate(network, verdict.pair_ns),
                       1e-6 * weft_network_rate(network, slowest_ns));
        weft_network_show_slow(network, &verdict, out);
    }
    weft_pool_finish(&pool);
    return status;
}

static double rate_of(const struct weft_curve *curve, int64_t bytes)
{
    const int64_t ns = weft_curve_at(curve, bytes);
    return ns > 0 ? 1e9 * (double)bytes / (double)ns : 0;
}

/* Adds a row: the rate of blocks in one direction, alone and during transfers in the other. */
static void add_way(struct weft_table *table, const char *what, const struct weft_curve *curve,
                    int64_t bytes, int64_t beside)
{
    char shown[WEFT_UNITS_TEXT_BYTES];
    const double rate = rate_of(curve, bytes);
    weft_table_cell(table, "%s", what);
    weft_table_cell(table, "%s", weft_units_show_bytes(bytes, shown));
    weft_table_cell(table, "%.3f GB/s", 1e-9 * rate);
    weft_table_cell(table, "%.3f GB/s", 1e-9 * rate * (double)beside / WEFT_RATE_ONE);
}

/* Shows copies of the largest block, and the disk's chosen blocks. */
static void show_tiers(const struct weft_profile *profile, struct weft_text *out)
{
    const struct weft_profile_host *host = &profile->tiers.host;
    const struct weft_profile_disk *disk = &profile->tiers.disk;
    struct weft_table table;
    if (!host->given && !disk->given) return;
    weft_table_init(&table, "lrrr");
    weft_table_cell(&table, "tier");
    weft_table_cell(&table, "block");
    weft_table_cell(&table, "alone");
    weft_table_cell(&table, "both at once");
    if (host->given) {
        add_way(&table, "down to the host", &host->down, host->down.x[host->down.n - 1],
                host->down_beside);
        add_way(&table, "up from the host", &host->up, host->up.x[host->up.n - 1], host->up_beside);
    }
    if (disk->given) {
        add_way(&table, "disk read", &disk->read, disk->block_bytes, disk->read_beside);
        add_way(&table, "disk write", &disk->write, disk->block_bytes, disk->write_beside);
    }
    weft_table_render(&table, 2, out);
    weft_table_finish(&table);
    if (host->given)
        weft_text_addf(out,
                       "updates on the host: %.3f GB/s by %lld thread%s, %.3f during copies both "
                       "ways\n",
                       1e-9 * (double)host->update_bytes_per_s, (long long)host->threads,
                       host->threads == 1 ? "" : "s",
                       1e-9 * (double)host->update_bytes_per_s * (double)host->updates_beside /
                           WEFT_RATE_ONE);
    if (disk->given)
        weft_text_addf(
            out,
            "%s: %s, %s duplex, checksums %s; %lld at once each way, %lld seats, are as "
            "fast as more\n",
            disk->path, disk->file_system, disk->duplex == WEFT_DUPLEX_HALF ? "half" : "full",
            disk->verified ? "on" : "off", (long long)disk->threads, (long long)disk->seats);
}

static enum weft_status show_profile(const struct weft_profile *profile, struct weft_text *out,
                                     struct weft_error *err)
{
    char base[WEFT_UNITS_TEXT_BYTES];
    weft_text_addf(out, "%s, %lld ranks, %s; base memory %s a rank\n", profile->source,
                   (long long)profile->ranks, profile->machine,
                   weft_units_show_bytes(profile->base_bytes, base));
    if (profile->origin.busy_millicores >= WEFT_BUSY_MILLICORES)
        weft_text_addf(out,
                       "other programs or the host used %.1f cores meanwhile: times are longer by "
                       "that; measure again on an idle machine\n",
                       1e-3 * (double)profile->origin.busy_millicores);
    show_layers(profile, out);
    show_collectives(profile, out);
    show_levels(&profile->network, out);
    show_tiers(profile, out);
    if (profile->rates.compute > 0) {
        weft_text_addf(out,
                       "alone; at the same time compute goes on at %.3f and communication at %.3f "
                       "of its speed\n",
                       (double)profile->rates.compute / WEFT_RATE_ONE,
                       (double)profile->rates.own / WEFT_RATE_ONE);
    }
    return show_network(&profile->network, out, err);
}

static enum weft_status measure_config(const struct weft_cli *cli, struct weft_error *err)
{
    struct weft_session session = {0};
    struct weft_profile *profile = NULL;
    struct weft_text file, out;
    weft_text_init(&file);
    weft_cli_report_init(cli, NULL, &out);
    struct weft_place place = {0};
    int32_t n_left = 0;
    enum weft_status status = weft_place_open(cli, &place, &session, err);
    if (status == WEFT_OK) weft_place_open_levels(&session, &place);
    if (place.n > 0) {
        weft_session_close(&session);
        status = weft_place_open(cli, &place, &session, err);
    }
    if (status == WEFT_OK)
        status = weft_job_profile_splits(session.config, cli->contention, SPLITS_NS, cli->watch,
                                         &profile, &n_left, err);
    if (status == WEFT_OK && n_left > 0)
        weft_log(WEFT_LOG_INFO,
                 "profile: the time for other micro-batches is spent, and %d of them have no times",
                 n_left);
    if (status == WEFT_OK) {
        weft_profile_write(profile, &file);
        status = show_profile(profile, &out, err);
    }
    if (status == WEFT_OK) status = weft_cli_emit_file(cli, &file, cli->json ? &file : &out, err);
    weft_text_finish(&file);
    weft_text_finish(&out);
    weft_profile_destroy(profile);
    weft_session_close(&session);
    return status;
}

static enum weft_status run_profile(const struct weft_cli *cli, struct weft_error *err)
{
    return weft_hosts_run(cli, measure_config, weft_rank_work, err);
}

const struct weft_command weft_command_profile = {
    .name = "profile",
    .usage = "CONFIG",
    .summary = "measures layers, collectives and base memory on this machine",
    .details =
        "Starts the ranks of the config here and measures on all of them at once, so that what "
        "they share is in the figures. Layers get times of all levels of recomputation, and of "
        "other micro-batches of the same batch if that takes less than half a minute. Name the "
        "file in cluster.profile to plan with it.\n"
        "\n"
        "Layer times include the cost of communication at the same time. With --contention they "
        "do not: the same steps run twice, overlapped and in turns, and the profile gets the "
        "speed at which compute and communication go on while both run.\n"
        "\n"
        "Where the config may keep something in the host's memory or on a disk (cluster.host, "
        "cluster.disk, plan.offload), copies, updates there, reads and writes are measured too: "
        "alone and both ways at once, and which blocks and how many at once keep a disk busy.\n"
        "\n"
        "Under an MPI launcher the ranks of all hosts measure. Every pair of hosts is timed too, "
        "and slow links and slow hosts are named. With several nodes of several ranks, "
        "collectives of single levels are timed for hsdp and nodes (docs/hosts.md).",
    .flags = "--contention --set --model --cluster --layers --ranks --seed --memory-limit",
    .least_operands = 1,
    .most_operands = 1,
    .starts_ranks = true,
    .serves_hosts = true,
    .run = run_profile,
};
