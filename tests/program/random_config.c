/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/program/random_config.h"

#include <stdio.h>

#include "tests/program/dice.h"

static const char *frozen_or_not(struct dice *dice, int64_t percent)
{
    return chance(dice, percent) ? ", \"frozen\": true" : "";
}

/* Whether attention sees later rows and leaves out padding: a draw of its own. */
static bool hides_padding(uint64_t seed)
{
    struct dice dice = dice_of(seed, "padding");
    return chance(&dice, 35);
}

/* Tokens in, tokens out: an embedding, blocks and norms, a head that may be tied. */
static void language_layers(struct dice *dice, int least_vocab, int most_vocab, const char *block,
                            struct weft_text *out)
{
    int hidden = 8 * (int)roll(dice, 1, 5), vocab = (int)roll(dice, least_vocab, most_vocab);
    bool tied = chance(dice, 50);
    int middle = (int)roll(dice, 0, 6);
    const char *frozen = frozen_or_not(dice, 20), *embedding_frozen = frozen;
    weft_text_addf(out,
                   "{\"name\": \"wte\", \"type\": \"embedding\", \"vocab\": %d, \"positions\": %d, "
                   "\"hidden\": %d%s}",
                   vocab, chance(dice, 50) ? 8 : 0, hidden, frozen);
    for (int i = 0; i < middle; i++) {
        frozen = frozen_or_not(dice, 20);
        if (chance(dice, 60)) {
            weft_text_addf(out,
                           ", {\"name\": \"h%d\", \"type\": \"%s\", \"hidden\": %d, "
                           "\"heads\": 2, \"ffn\": %d%s}",
                           i, block, hidden, (int)roll(dice, 3, 70), frozen);
        } else if (chance(dice, 50)) {
            weft_text_addf(out, ", {\"name\": \"n%d\", \"type\": \"layer_norm\", \"hidden\": %d%s}",
                           i, hidden, frozen);
        } else {
            weft_text_addf(out, ", {\"name\": \"g%d\", \"type\": \"gelu\", \"hidden\": %d}", i,
                           hidden);
        }
    }
    weft_text_addf(
        out, ", {\"name\": \"head\", \"type\": \"lm_head\", \"vocab\": %d, \"hidden\": %d%s%s}",
        vocab, hidden, tied ? ", \"bias\": false, \"tie\": \"wte\"" : "",
        tied ? embedding_frozen : "");
}

/* Numbers in, classes out; widths that nothing divides. */
static void dense_layers(struct dice *dice, struct weft_text *out)
{
    int width = (int)roll(dice, 1, 60), middle = (int)roll(dice, 0, 7);
    for (int i = 0; i < middle; i++) {
        int next = (int)roll(dice, 1, 60);
        if (chance(dice, 60)) {
            weft_text_addf(out,
                           "{\"name\": \"f%d\", \"type\": \"linear\", \"hidden\": %d, "
                           "\"outputs\": %d%s}, ",
                           i, width, next, frozen_or_not(dice, 20));
            width = next;
        } else {
            weft_text_addf(out, "{\"name\": \"a%d\", \"type\": \"%s\", \"hidden\": %d}, ", i,
                           chance(dice, 50) ? "relu" : "gelu", width);
        }
    }
    weft_text_addf(out,
                   "{\"name\": \"head\", \"type\": \"classifier\", \"hidden\": %d, "
                   "\"classes\": %d}",
                   width, (int)roll(dice, 2, 20));
}

/* Several micro-steps, no clipping, updates that ranks agree on, or none of it. Draws of its own,
 * so that the rest of a seed's config does not depend on them. */
static void add_period(uint64_t seed, struct weft_text *out)
{
    static const char *const cadences[] = {"auto", "micro_step", "step"};
    struct dice dice = dice_of(seed, "period");
    if (chance(&dice, 50)) {
        const char *cadence = cadences[roll(&dice, 0, 2)];
        const int rounds = (int)roll(&dice, 1, 3);
        struct dice group = dice_of(seed, "group");
        if (cadence == cadences[1] && chance(&group, 40))
            weft_text_addf(out, ", \"grad_accum\": %d, \"group\": 2", 2 * rounds);
        else
            weft_text_addf(out, ", \"grad_accum\": %d, \"reduce\": \"%s\"", rounds, cadence);
    }
    if (chance(&dice, 50)) weft_text_add(out, ", \"clip_norm\": 0");
    if (chance(&dice, 25))
        weft_text_add(out, ", \"optimizer\": {\"type\": \"lamb\"}");
    else if (chance(&dice, 20))
        weft_text_add(out, ", \"optimizer\": {\"type\": \"adam_mini\"}");
}

void random_config(uint64_t seed, bool plain, struct weft_text *out)
{
    struct dice dice = dice_of(seed, "config");
    bool language = chance(&dice, 60), bf16 = chance(&dice, 30);
    const bool hides = language && hides_padding(seed);
    weft_text_add(out, "{\"version\": 1, \"model\": {\"layers\": [");
    if (language) {
        language_layers(&dice, 5, 40, hides ? "encoder_block" : "transformer_block", out);
    } else {
        dense_layers(&dice, out);
    }
    int ranks = (int)roll(&dice, 1, 4);
    weft_text_addf(out, "]}, \"cluster\": {\"ranks\": %d, \"channels\": %d}, ", ranks,
                   chance(&dice, 30) ? 2 : 1);
    int samples = (int)roll(&dice, 1, 3);
    int seq_len = language ? (int)roll(&dice, 1, 8) : 1;
    weft_text_addf(out, "\"train\": {\"steps\": 1, \"micro_batch\": %d, \"seq_len\": %d", samples,
                   seq_len);
    if (hides) weft_text_add(out, ", \"padding\": {\"token\": 1}");
    if (bf16) {
        weft_text_addf(out, ", \"precision\": {\"compute\": \"bf16\", \"reduce\": \"%s\"}",
                       chance(&dice, 50) ? "bf16" : "f32");
    }
    if (!plain) add_period(seed, out);
    weft_text_add(out, "}, \"plan\": {");
    struct dice ahead = dice_of(seed, "ahead");
    if (!plain && chance(&ahead, 50))
        weft_text_addf(out, "\"update_ahead\": %d, ", (int)roll(&ahead, 1, 5));
    if (chance(&dice, 50)) {
        weft_text_addf(out, "\"blocks\": %d}}", (int)roll(&dice, 1, 5));
    } else {
        int kib = (int)roll(&dice, 1, 64);
        bool fuse = chance(&dice, 50);
        weft_text_addf(out, "\"block_size\": \"%dKiB\", \"fuse\": %s}}", kib,
                       fuse ? "true" : "false");
    }
}

/* Whole configs */

enum { MOST_LAYERS = 200, MOST_RANKS = 4096 };

static const char *const shape_names[RANDOM_SHAPES] = {
    [RANDOM_EVEN] = "even",       [RANDOM_UNEVEN] = "uneven",
    [RANDOM_EXPERTS] = "experts", [RANDOM_IMAGES] = "images",
    [RANDOM_TINY] = "tiny",       [RANDOM_EMBEDDING] = "one large embedding",
};

enum random_shape random_whole_shape(uint64_t seed)
{
    struct dice dice = dice_of(seed, "shape");
    return (enum random_shape)roll(&dice, 0, RANDOM_SHAPES - 1);
}

double random_whole_ratio(uint64_t seed)
{
    struct dice dice = dice_of(seed, "ratio");
    return roll_scale(&dice, 0.1, 10);
}

double random_whole_share(uint64_t seed)
{
    struct dice dice = dice_of(seed, "share");
    if (chance(&dice, 15)) return 0;
    if (chance(&dice, 15)) return 1;
    return (double)roll(&dice, 0, 1000) / 1000;
}

/* Layers after the first, each with a comma before it. */
static void add_block(struct weft_text *out, const char *type, int64_t hidden, int64_t ffn,
                      int64_t repeat, const char *name)
{
    weft_text_addf(out,
                   ", {\"name\": \"%s.{i}\", \"type\": \"%s\", \"repeat\": %lld, \"hidden\": %lld, "
                   "\"heads\": %lld, \"ffn\": %lld",
                   name, type, (long long)repeat, (long long)hidden, (long long)(hidden / 64),
                   (long long)ffn);
}

static void add_embedding(struct weft_text *out, int64_t vocab, int64_t hidden, const char *more)
{
    weft_text_addf(out,
                   "{\"name\": \"wte\", \"type\": \"embedding\", \"vocab\": %lld, \"hidden\": %lld"
                   "%s}",
                   (long long)vocab, (long long)hidden, more);
}

static void add_head(struct weft_text *out, int64_t vocab, int64_t hidden, bool tied,
                     const char *more)
{
    weft_text_addf(out,
                   ", {\"name\": \"head\", \"type\": \"lm_head\", \"vocab\": %lld, \"hidden\": "
                   "%lld, \"bias\": false%s%s}",
                   (long long)vocab, (long long)hidden, tied ? ", \"tie\": \"wte\"" : "",
                   tied ? more : "");
}

/* Blocks that are all alike, some of them frozen from the first on, as in fine-tuning. */
static void even_layers(struct dice *dice, int64_t n, struct weft_text *out)
{
    bool llama = chance(dice, 50), tied = chance(dice, 40), tuned = chance(dice, 20);
    int64_t hidden = 64 * (int64_t)roll_scale(dice, 4, 128), vocab = roll(dice, 8000, 128000);
    int64_t ffn = hidden * roll(dice, 2, 4), middle = n > 3 ? n - 3 : 1;
    int64_t frozen = tuned && middle > 1 ? roll(dice, 1, middle - 1) : 0;
    const char *type = llama ? "llama_block" : "transformer_block";
    const char *first = tuned ? ", \"frozen\": true" : "";
    add_embedding(out, vocab, hidden, first);
    if (frozen > 0) {
        add_block(out, type, hidden, ffn, frozen, "kept");
        weft_text_addf(out, "%s}", first);
    }
    add_block(out, type, hidden, ffn, middle - frozen, "h");
    weft_text_addf(out, "}, {\"name\": \"ln\", \"type\": \"%s\", \"hidden\": %lld}",
                   llama ? "rms_norm" : "layer_norm", (long long)hidden);
    add_head(out, vocab, hidden, tied, first);
}

static void uneven_layers(struct dice *dice, int64_t n, struct weft_text *out)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t parameters = (int64_t)roll_scale(dice, 1 << 10, 1 << 26);
        if (chance(dice, 10)) parameters = 0;
        double flops = (double)(parameters > 0 ? parameters : 1 << 16) * roll_scale(dice, 16, 512);
        int64_t output = 1024 * (int64_t)roll_scale(dice, 64, 4096);
        int64_t saved = 1024 * (int64_t)roll_scale(dice, 128, 16384);
        int64_t temporary = chance(dice, 30) ? 1024 * (int64_t)roll_scale(dice, 64, 8192) : 0;
        weft_text_addf(out,
                       "%s{\"name\": \"l.%lld\", \"type\": \"custom\", \"hidden\": 1, "
                       "\"parameters\": %lld, \"forward_flops\": \"%lld\", \"backward_flops\": "
                       "\"%lld\", \"output\": \"%lldB\", \"saved\": \"%lldB\", \"temporary\": "
                       "\"%lldB\"%s}",
                       i > 0 ? ", " : "", (long long)i, (long long)parameters, (long long)flops,
                       (long long)(2 * flops), (long long)output, (long long)saved,
                       (long long)temporary, frozen_or_not(dice, i + 1 < n ? 10 : 0));
    }
}

/* Experts in every block or in every other. */
static void expert_layers(struct dice *dice, int64_t n, struct weft_text *out)
{
    int64_t hidden = 64 * (int64_t)roll_scale(dice, 4, 64), vocab = roll(dice, 8000, 64000);
    int64_t experts = roll(dice, 4, 32), ffn = hidden * roll(dice, 1, 4),
            middle = n > 3 ? n - 3 : 1;
    bool every = chance(dice, 50);
    char name[32];
    add_embedding(out, vocab, hidden, "");
    for (int64_t i = 0; i < middle; i++) {
        bool plain = !every && i % 2 == 0;
        snprintf(name, sizeof name, "h%lld", (long long)i);
        add_block(out, plain ? "llama_block" : "moe_block", hidden, ffn, 1, name);
        if (!plain) weft_text_addf(out, ", \"experts\": %lld", (long long)experts);
        weft_text_add(out, "}");
    }
    weft_text_addf(out, ", {\"name\": \"ln\", \"type\": \"rms_norm\", \"hidden\": %lld}",
                   (long long)hidden);
    add_head(out, vocab, hidden, false, "");
}

static void add_bottleneck(struct weft_text *out, int64_t at, int64_t image, int64_t channels,
                           int64_t width, int64_t stride)
{
    weft_text_addf(out,
                   ", {\"name\": \"b%lld\", \"type\": \"bottleneck\", \"image\": %lld, "
                   "\"channels\": %lld, \"width\": %lld, \"filters\": %lld, \"stride\": %lld}",
                   (long long)at, (long long)image, (long long)channels, (long long)width,
                   (long long)(4 * width), (long long)stride);
}

static void image_layers(struct dice *dice, int64_t n, struct weft_text *out)
{
    int64_t image = 8 * roll(dice, 8, 32), width = 8 * roll(dice, 2, 12), channels = width;
    int64_t stages = roll(dice, 2, 4), middle = n > 4 ? n - 4 : 1;
    weft_text_addf(out,
                   "{\"name\": \"conv\", \"type\": \"conv2d\", \"image\": %lld, \"channels\": 3, "
                   "\"filters\": %lld, \"kernel\": 7, \"stride\": 2, \"bias\": false, \"norm\": "
                   "true}, {\"name\": \"pool\", \"type\": \"pool2d\", \"image\": %lld, "
                   "\"channels\": %lld, \"stride\": 2}",
                   (long long)image, (long long)channels, (long long)(image / 2),
                   (long long)channels);
    image /= 4;
    for (int64_t i = 0, stage = 0; i < middle; i++) {
        bool next = i > 0 && (i * stages) / middle > stage;
        stage += next;
        if (next) width *= 2;
        add_bottleneck(out, i, image, channels, width, next ? 2 : 1);
        if (next) image = (image + 1) / 2;
        channels = 4 * width;
    }
    weft_text_addf(out,
                   ", {\"name\": \"mean\", \"type\": \"pool2d\", \"image\": %lld, \"channels\": "
                   "%lld, \"stride\": %lld}, {\"name\": \"fc\", \"type\": \"classifier\", "
                   "\"hidden\": %lld, \"classes\": %lld}",
                   (long long)image, (long long)channels, (long long)image, (long long)channels,
                   (long long)roll(dice, 10, 20000));
}

static void embedding_layers(struct dice *dice, struct weft_text *out)
{
    int64_t hidden = 64 * (int64_t)roll_scale(dice, 1, 16);
    int64_t vocab = (int64_t)roll_scale(dice, 100000, 2000000);
    bool tied = chance(dice, 50);
    add_embedding(out, vocab, hidden, "");
    add_block(out, "transformer_block", hidden, 4 * hidden, roll(dice, 1, 8), "h");
    weft_text_add(out, "}");
    add_head(out, vocab, hidden, tied, "");
}

/* A config that can be executed; `language` chooses the type of its data. */
static void tiny_layers(struct dice *dice, bool language, struct weft_text *out)
{
    if (language)
        language_layers(dice, 256, 300, "transformer_block", out);
    else
        dense_layers(dice, out);
}

static void whole_layers(uint64_t seed, enum random_shape shape, bool language,
                         struct weft_text *out)
{
    struct dice dice = dice_of(seed, "layers");
    int64_t n = (int64_t)roll_scale(&dice, 2, MOST_LAYERS + 0.5);
    switch (shape) {
    case RANDOM_EVEN:
        even_layers(&dice, n, out);
        return;
    case RANDOM_UNEVEN:
        uneven_layers(&dice, n, out);
        return;
    case RANDOM_EXPERTS:
        expert_layers(&dice, n, out);
        return;
    case RANDOM_IMAGES:
        image_layers(&dice, n, out);
        return;
    case RANDOM_EMBEDDING:
        embedding_layers(&dice, out);
        return;
    case RANDOM_TINY:
        tiny_layers(&dice, language, out);
        return;
    case RANDOM_SHAPES:
        return;
    }
}

static void add_link(struct weft_text *out, const char *name, double alpha_s, double bytes_per_s)
{
    weft_text_addf(out, "\"%s\": {\"alpha\": \"%.0fns\", \"bandwidth\": \"%.0fB/s\"}", name,
                   alpha_s * 1e9 + 1, bytes_per_s + 1);
}

/* Latencies and rates are scaled alike, so that blocks stay as large as they are. */
static void whole_cluster(uint64_t seed, bool tiny, const struct random_whole *figures,
                          struct weft_text *out)
{
    struct dice dice = dice_of(seed, "cluster");
    int64_t a_node = INT64_C(1) << roll(&dice, 1, 4);
    int64_t ranks = tiny ? roll(&dice, 2, 4) : (int64_t)roll_scale(&dice, 2, MOST_RANKS + 0.5);
    bool nodes = chance(&dice, 50) && ranks >= 2 * a_node;
    if (nodes) ranks = ranks / a_node * a_node;
    double alpha_s = roll_scale(&dice, 2e-6, 2e-4) * figures->link_scale;
    double bytes_per_s = roll_scale(&dice, tiny ? 1e7 : 1e9, tiny ? 1e9 : 3e11);
    bytes_per_s /= figures->link_scale;
    double slower = roll_scale(&dice, 1, 10);
    weft_text_addf(out,
                   "{\"ranks\": %lld, \"ranks_per_node\": %lld, \"channels\": %d, \"device\": "
                   "{\"flops\": {\"f32\": \"%s\", \"bf16\": \"%s\"}, \"memory_bandwidth\": \"%s\"},"
                   " \"link\": {",
                   (long long)ranks, (long long)(nodes ? a_node : 0), chance(&dice, 15) ? 2 : 1,
                   tiny ? "20G" : "50T", tiny ? "40G" : "200T", tiny ? "10GB/s" : "2TB/s");
    add_link(out, "intra", alpha_s, bytes_per_s);
    if (nodes) {
        weft_text_add(out, ", ");
        add_link(out, "inter", alpha_s * slower, bytes_per_s / slower);
    }
    weft_text_add(out, "}");
    if (chance(&dice, 30)) {
        double compute = (double)roll(&dice, 0, 50) / 100;
        weft_text_addf(out, ", \"contention\": {\"compute\": %.2f, \"channel\": %.2f}", compute,
                       (double)roll(&dice, 0, 50) / 100);
    }
    if (chance(&dice, 30))
        weft_text_addf(out, ", \"base\": \"%lldKiB\"",
                       (long long)roll(&dice, 1, tiny ? 64 : 1 << 20));
    if (figures->limit_bytes > 0)
        weft_text_addf(out, ", \"memory_limit\": \"%lldB\"", (long long)figures->limit_bytes);
    weft_text_add(out, "}");
}

static void whole_train(uint64_t seed, enum random_shape shape, bool language,
                        struct weft_text *out)
{
    static const char *const cadences[] = {"auto", "auto", "micro_step", "step"};
    struct dice dice = dice_of(seed, "train"), delay = dice_of(seed, "delay");
    bool delayed = chance(&delay, 20);
    bool tiny = shape == RANDOM_TINY;
    int64_t seq_len = tiny ? roll(&dice, 1, 8) : 128 * roll(&dice, 1, 16);
    if (!language) seq_len = 1;
    weft_text_addf(out, "{\"steps\": 2, \"micro_batch\": %lld, \"seq_len\": %lld",
                   (long long)roll(&dice, 1, tiny ? 3 : 8), (long long)seq_len);
    if (tiny) weft_text_add(out, ", \"data\": \"/usr/share/common-licenses/GPL-3\"");
    if (chance(&dice, 40)) {
        const char *cadence = cadences[roll(&dice, 0, 3)];
        if (cadence == cadences[2]) delayed = false;
        const int64_t micro_steps = roll(&dice, 2, tiny ? 3 : 8);
        weft_text_addf(out, ", \"grad_accum\": %lld", (long long)micro_steps);
        if (cadence == cadences[2] && micro_steps % 2 == 0)
            weft_text_add(out, ", \"group\": 2");
        else
            weft_text_addf(out, ", \"reduce\": \"%s\"", cadence);
    }
    if (chance(&dice, 30)) weft_text_add(out, ", \"clip_norm\": 0");
    const bool lamb = chance(&dice, 15);
    struct dice means = dice_of(seed, "means");
    if (lamb)
        weft_text_add(out, ", \"optimizer\": {\"type\": \"lamb\"}");
    else if (!delayed && chance(&means, 15))
        weft_text_add(out, ", \"optimizer\": {\"type\": \"adam_mini\"}");
    else if (chance(&dice, 15))
        weft_text_add(out, ", \"optimizer\": {\"type\": \"sgd\"}");
    if (chance(&dice, tiny ? 30 : 60)) {
        weft_text_addf(out, ", \"precision\": {\"compute\": \"bf16\", \"reduce\": \"%s\"}",
                       chance(&dice, 50) ? "bf16" : "f32");
    }
    if (delayed && !lamb) weft_text_add(out, ", \"delay\": 1");
    weft_text_add(out, "}");
}

void random_whole_config(uint64_t seed, const struct random_whole *figures, struct weft_text *out)
{
    enum random_shape shape = random_whole_shape(seed);
    struct dice dice = dice_of(seed, "data");
    bool language = shape == RANDOM_EVEN || shape == RANDOM_EXPERTS || shape == RANDOM_EMBEDDING;
    if (shape == RANDOM_TINY) language = chance(&dice, 60);
    weft_text_addf(out, "{\"$comment\": \"random config %llu: %s\", \"version\": 1, ",
                   (unsigned long long)seed, shape_names[shape]);
    weft_text_add(out, "\"model\": {\"layers\": [");
    whole_layers(seed, shape, language, out);
    weft_text_add(out, "]}, \"cluster\": ");
    whole_cluster(seed, shape == RANDOM_TINY, figures, out);
    weft_text_add(out, ", \"train\": ");
    whole_train(seed, shape, language, out);
    weft_text_add(out, "}\n");
}
