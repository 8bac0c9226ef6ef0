/* SPDX-License-Identifier: Apache-2.0 */
#include "library/metrics/hosts.h"

/* Hosts are only written, so their keys have no place in a struct. */

#define COUNT(name, text) WEFT_KEY_PART(WEFT_KEY_INT64, name, NULL, text)
#define CORES(name, text) WEFT_KEY_PART_AS(WEFT_KEY_OR_NULL, WEFT_KEY_NUMBER, name, NULL, text)

const struct weft_key_table weft_run_host_keys = WEFT_KEY_TABLE_OPEN(
    "A host.", WEFT_KEY_PART(WEFT_KEY_TEXT, "name", NULL, "of the host"),
    COUNT("ranks", "on the host"), COUNT("cores", "that are online"),
    CORES("others_cores", "that other programs used, on average; null: the run was too short"),
    CORES("stolen_cores", "that the host of this virtual machine took; null: likewise"));

const struct weft_key_table weft_run_rank_keys =
    WEFT_KEY_TABLE_OPEN("A rank: means of its steps after the first two.",
                        COUNT("host", "by its place in `hosts`"), COUNT("compute_ns", "of a step"),
                        COUNT("exposed_ns", "of a step, in which compute waited for communication"),
                        COUNT("data_wait_ns", "before a step, for its data"));

static void write_host(const struct weft_run_host *host, struct weft_json_writer *writer)
{
    weft_json_begin_object(writer);
    weft_json_put_string(writer, "name", host->name);
    weft_json_put_integer(writer, "ranks", host->ranks);
    weft_json_put_integer(writer, "cores", host->cores);
    weft_json_put_number(writer, "others_cores", host->others_cores);
    weft_json_put_number(writer, "stolen_cores", host->stolen_cores);
    weft_json_end_object(writer);
}

static void write_rank(const struct weft_run_rank *rank, struct weft_json_writer *writer)
{
    weft_json_begin_object(writer);
    weft_json_put_integer(writer, "host", rank->host);
    weft_json_put_integer(writer, "compute_ns", rank->compute_ns);
    weft_json_put_integer(writer, "exposed_ns", rank->exposed_ns);
    weft_json_put_integer(writer, "data_wait_ns", rank->data_wait_ns);
    weft_json_end_object(writer);
}

void weft_run_hosts_write(const struct weft_run_hosts *hosts, struct weft_json_writer *writer)
{
    weft_json_key(writer, "hosts");
    weft_json_begin_array(writer);
    for (int32_t h = 0; h < hosts->n_hosts; h++)
        write_host(&hosts->hosts[h], writer);
    weft_json_end_array(writer);
    weft_json_key(writer, "ranks");
    weft_json_begin_array(writer);
    for (int32_t r = 0; r < hosts->n_ranks; r++)
        write_rank(&hosts->ranks[r], writer);
    weft_json_end_array(writer);
}
