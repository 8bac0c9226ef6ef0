/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/job/elastic.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/machine/cores.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/job/hosts.h"
#include "memory_model/vault.h"
#include "spec/config_batch.h"

static enum weft_status check_numbers(const struct weft_cli *cli,
                                      const struct weft_elastic *elastic, struct weft_error *err)
{
    const int32_t cores = weft_cores();
    if (cli->ranks > 0 && (cli->ranks < elastic->least || cli->ranks > elastic->most))
        return weft_fail(err, WEFT_E_USAGE, "--elastic %s: -n %" PRId64 " is not between these",
                         cli->elastic, cli->ranks);
    if (elastic->most > cores)
        return weft_fail(err, WEFT_E_USAGE,
                         "--elastic %s: this process may use %d core%s, and each rank needs one: "
                         "at most --elastic %d:%d",
                         cli->elastic, (int)cores, cores == 1 ? "" : "s",
                         (int)(elastic->least < cores ? elastic->least : cores), (int)cores);
    return WEFT_OK;
}

enum weft_status weft_elastic_read(const struct weft_cli *cli, struct weft_elastic *out,
                                   struct weft_error *err)
{
    struct weft_elastic elastic = {0};
    char more;
    *out = elastic;
    if (cli->elastic == NULL) return WEFT_OK;
    if (sscanf(cli->elastic, "%5" SCNd64 ":%5" SCNd64 "%c", &elastic.least, &elastic.most, &more) !=
            2 ||
        elastic.least < 1 || elastic.most < elastic.least)
        return weft_fail(
            err, WEFT_E_USAGE,
            "--elastic %s: give the least and the largest number of ranks, such as 2:4",
            cli->elastic);
    if (weft_hosts_are_ours())
        return weft_fail(
            err, WEFT_E_USAGE,
            "--elastic: is for local ranks, and another launcher started these; "
            "examples/slurm/elastic.sh starts a job again on the nodes that there are");
    if (cli->run_directory == NULL)
        return weft_fail(err, WEFT_E_USAGE,
                         "--elastic: goes on from checkpoints of a run: give --run DIR");
    WEFT_TRY(check_numbers(cli, &elastic, err));
    elastic.ranks = cli->ranks > 0 ? cli->ranks : elastic.most;
    *out = elastic;
    return WEFT_OK;
}

enum weft_status weft_elastic_check(const struct weft_elastic *elastic,
                                    const struct weft_config *config, struct weft_error *err)
{
    const long long every = config->train.checkpoint.host;
    if (every == 0 || elastic->keeps) return WEFT_OK;
    if (weft_hosts_are_ours())
        return weft_fail(err, WEFT_E_USAGE,
                         "train.checkpoint.host is %lld: ranks of another launcher keep no copy on "
                         "a neighbour yet, so the memory would end with its rank: set it to 0, "
                         "and train.checkpoint.every to fewer steps",
                         every);
    if (elastic->most == 0)
        weft_log(WEFT_LOG_WARNING,
                 "train.checkpoint.host is %lld: host memory keeps nothing without --elastic "
                 "MIN:MAX, for it ends with this process",
                 every);
    return WEFT_OK;
}

enum weft_status weft_elastic_check_least(const struct weft_elastic *elastic,
                                          const struct weft_config *config, struct weft_error *err)
{
    char kept[WEFT_UNITS_TEXT_BYTES], limit[WEFT_UNITS_TEXT_BYTES];
    const int64_t limit_bytes = config->cluster.host.memory_limit_bytes;
    struct weft_config least = *config;
    if (elastic->most == 0 || elastic->keeps) return WEFT_OK;
    least.cluster.ranks = elastic->least;
    const int64_t bytes = weft_config_kept_bytes(&least);
    if (bytes <= limit_bytes) return WEFT_OK;
    return weft_fail(err, WEFT_E_USAGE,
                     "--elastic: checkpoints of two steps (train.checkpoint.host) take %s of host "
                     "memory a rank with %" PRId64 " rank%s, and cluster.host.memory_limit is %s: "
                     "raise it to %" PRId64 "B, or give more ranks as the least",
                     weft_units_show_bytes(bytes, kept), elastic->least,
                     elastic->least == 1 ? "" : "s", weft_units_show_bytes(limit_bytes, limit),
                     bytes);
}

enum weft_status weft_elastic_keep(struct weft_elastic *elastic, const struct weft_config *config,
                                   struct weft_error *err)
{
    struct weft_layout *layout = NULL;
    if (config->train.checkpoint.host == 0 || elastic->keeps || elastic->most == 0) return WEFT_OK;
    WEFT_TRY(weft_layout_create(config->model, weft_config_states(config),
                                weft_config_nodes(config), WEFT_CHECKPOINT_CHUNK_BYTES, &layout,
                                err));
    const enum weft_status status =
        weft_vault_create(layout, weft_vault_manifest_bytes(config), &elastic->kept, err);
    elastic->keeps = status == WEFT_OK;
    weft_layout_destroy(layout);
    return status;
}

void weft_elastic_close(struct weft_elastic *elastic)
{
    if (elastic->keeps) weft_vault_close(&elastic->kept);
    elastic->keeps = false;
}

enum weft_status weft_elastic_find_saved(struct weft_elastic *elastic, int64_t on_disk,
                                         int64_t *out, struct weft_error *err)
{
    int64_t in_memory = -1;
    char *path = NULL;
    if (elastic->keeps) WEFT_TRY(weft_vault_latest(&elastic->kept, &in_memory, &path, err));
    free(path);
    elastic->from_memory = in_memory > on_disk;
    *out = elastic->from_memory ? in_memory : on_disk;
    return WEFT_OK;
}

/* ", from host memory", if the run keeps checkpoints there. */
static const char *source_of(const struct weft_elastic *elastic)
{
    if (!elastic->keeps || elastic->saved_step == 0) return "";
    return elastic->from_memory ? ", from host memory" : ", from the disk";
}

/* "steps 7 to 9 are done again". */
static void add_lost(const struct weft_elastic *elastic, struct weft_text *out)
{
    const int64_t first = elastic->saved_step + 1, last = elastic->lost_step;
    if (last < first)
        weft_text_add(out, "no step is lost");
    else if (last == first)
        weft_text_addf(out, "step %" PRId64 " is lost and done again", last);
    else
        weft_text_addf(out, "steps %" PRId64 " to %" PRId64 " are lost and done again", first,
                       last);
}

void weft_elastic_begin(struct weft_elastic *elastic, int64_t step_ns,
                        const struct weft_manifest_split *split)
{
    struct weft_text text;
    char now[WEFT_UNITS_TEXT_BYTES], before[WEFT_UNITS_TEXT_BYTES];
    if (elastic->most == 0) return;
    if (elastic->starts++ == 0) elastic->split = *split;
    weft_text_init(&text);
    if (elastic->before_ranks > 0) {
        add_lost(elastic, &text);
        const double slower =
            elastic->step_ns > 0 ? 100.0 * (double)step_ns / (double)elastic->step_ns - 100 : 0;
        weft_log(WEFT_LOG_WARNING,
                 "%" PRId64 " of %" PRId64 " ranks go on after step %" PRId64
                 "%s: %s; a step is predicted to take %s, and was to take %s before (%+.0f %%)",
                 elastic->ranks, elastic->before_ranks, elastic->saved_step, source_of(elastic),
                 weft_text_chars(&text), weft_units_show_ns(step_ns, now),
                 weft_units_show_ns(elastic->step_ns, before), slower);
    }
    weft_text_finish(&text);
    elastic->step_ns = step_ns;
    elastic->before_ranks = elastic->ranks;
}

bool weft_elastic_may_go_on(const struct weft_elastic *elastic, enum weft_status status)
{
    return elastic->most > 0 && (status == WEFT_E_LOST || status == WEFT_E_HANG);
}

bool weft_elastic_goes_on(struct weft_elastic *elastic, const struct weft_error *why,
                          int64_t steps_done, int64_t saved_step)
{
    if (!weft_elastic_may_go_on(elastic, why->status)) return false;
    elastic->tries++;
    if (saved_step > elastic->saved_step) {
        elastic->saved_step = saved_step;
        elastic->tries = 1;
    }
    elastic->lost_step = steps_done;
    if (elastic->tries > 1) {
        if (elastic->ranks == elastic->least) return false;
        elastic->ranks--;
        elastic->tries = 0;
    }
    weft_log(WEFT_LOG_WARNING, "%s. Starting again with %" PRId64 " rank%s", why->text,
             elastic->ranks, elastic->ranks == 1 ? "" : "s");
    return true;
}
