/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "report/study/sweep.h"

/* The file's name without folder and ".json": shipped configs go by it. */
static void add_name(const char *path, struct weft_text *out)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t length = strlen(name);
    if (length > 5 && strcmp(name + length - 5, ".json") == 0) length -= 5;
    weft_text_append(out, name, length);
}

/* "124 M": three digits. */
static void add_count(int64_t count, struct weft_text *out)
{
    static const char *const names[] = {"", " k", " M", " B", " T"};
    double value = (double)count;
    int unit = 0;
    for (; value >= 999.5 && unit < 4; unit++)
        value /= 1000;
    weft_text_addf(out, "%.*f%s",
                   unit == 0 || value >= 99.95 ? 0
                   : value >= 9.995            ? 1
                                               : 2,
                   value, names[unit]);
}

static void add_batch(const struct weft_config *config, struct weft_text *out)
{
    const struct weft_train *train = &config->train;
    weft_text_addf(out, "\nbatch %lld", (long long)train->micro_batch);
    if (weft_model_reads_tokens(config->model))
        weft_text_addf(out, " \u00d7 %lld tokens", (long long)train->seq_len);
    weft_text_add(out, " per rank");
    if (train->grad_accum > 1)
        weft_text_addf(out, ", %lld micro-steps", (long long)train->grad_accum);
}

static void add_link(const struct weft_link *link, struct weft_text *out)
{
    char ns[WEFT_UNITS_TEXT_BYTES], rate[WEFT_UNITS_TEXT_BYTES];
    weft_text_addf(out, "%s, %s", weft_units_show_ns(link->alpha_ns, ns),
                   weft_units_show_rate(link->bytes_per_s, rate));
}

static void add_links(const struct weft_config *config, struct weft_text *out)
{
    const struct weft_cluster *cluster = &config->cluster;
    const bool nodes = cluster->ranks_per_node > 0 && cluster->ranks_per_node < cluster->ranks;
    const bool inside = cluster->link.intra.bytes_per_s > 0;
    const bool between = nodes && cluster->link.inter.bytes_per_s > 0;
    if (cluster->ranks == 1) return;
    weft_text_add(out, "\nlink ");
    if (inside) add_link(&cluster->link.intra, out);
    if (inside && between) weft_text_add(out, " in a node, ");
    const struct weft_link inter = weft_cluster_inter(cluster);
    if (between) add_link(&inter, out);
    if (between) weft_text_add(out, " between nodes");
    if (!inside && !between) weft_text_add(out, "as measured");
    weft_text_add(out, weft_config_emulates(config) ? ", emulated" : ", not emulated");
}

void weft_sweep_title(const struct weft_config *config, const char *times, const char *version,
                      struct weft_text *out)
{
    add_name(config->source, out);
    weft_text_add(out, ", ");
    add_count(config->model->parameters, out);
    weft_text_addf(out, " parameters, %lld %s", (long long)config->cluster.ranks,
                   config->cluster.ranks == 1 ? "rank" : "ranks");
    add_batch(config, out);
    add_links(config, out);
    weft_text_addf(out, "\ntimes %s; weft %s", times, version);
}
