/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cuda/choices/attention_choices.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "layers/shared/block.h"
#include "runtime/nn/cuda/choices/trial.h"

static const char part_word[] = "attention ";
static const char own_title[] = "own";

/* Opening */

enum weft_status weft_cuda_attention_open(struct weft_nn_cuda *cuda, const char *name,
                                          struct weft_error *unopened, struct weft_error *err)
{
    const struct weft_cuda_attending_ops *ops = cuda->machine->attending;
    const bool automatic = name == NULL || strcmp(name, "auto") == 0;
    if (!automatic && strcmp(name, own_title) == 0) return WEFT_OK;
    if (!automatic && strcmp(name, "cudnn") != 0)
        return weft_fail(err, WEFT_E_USAGE,
                         "there is no way \"%s\" of attention on a GPU; there are \"auto\", "
                         "\"own\", \"cudnn\"",
                         name);
    if (!automatic && cuda->plain)
        return weft_fail(err, WEFT_E_USAGE,
                         "WEFT_ATTENTION=%s with WEFT_GEMM=plain, which computes attention in the "
                         "CPU's order: leave one of them out",
                         name);
    if (!automatic && ops == NULL)
        return weft_fail(err, WEFT_E_ENVIRONMENT,
                         "WEFT_ATTENTION=%s: this build has no cuDNN, since its headers were not "
                         "found (docs/gpu.md); WEFT_ATTENTION=own attends without it",
                         name);
    cuda->wants_library = !automatic;
    if (ops == NULL || cuda->plain) return WEFT_OK;
    const enum weft_status status = ops->open(&cuda->attending, automatic ? unopened : err);
    return automatic ? WEFT_OK : status;
}

static void drop_choices(struct weft_nn_cuda *cuda)
{
    for (int32_t i = 0; i < cuda->n_attended; i++) {
        if (cuda->attended[i].plan != NULL)
            cuda->machine->attending->release(cuda->attended[i].plan);
    }
    free(cuda->attended);
    cuda->attended = NULL;
    cuda->n_attended = 0;
}

void weft_cuda_attention_close(struct weft_nn_cuda *cuda)
{
    drop_choices(cuda);
    if (cuda->attending != NULL) cuda->machine->attending->close(cuda->attending);
}

bool weft_cuda_attention_chooses(const struct weft_nn_cuda *cuda)
{
    return cuda->machine->attending != NULL && !cuda->plain;
}

static const char *title_of(const struct weft_nn_cuda *cuda)
{
    return cuda->attending != NULL ? cuda->machine->attending->title(cuda->attending) : own_title;
}

static const struct weft_cuda_attended *first_by_library(const struct weft_nn_cuda *cuda)
{
    for (int32_t i = 0; i < cuda->n_attended; i++) {
        if (cuda->attended[i].by_library) return &cuda->attended[i];
    }
    return NULL;
}

void weft_cuda_attention_describe(struct weft_nn_cuda *cuda, const struct weft_error *unopened)
{
    const struct weft_cuda_attended *way = first_by_library(cuda);
    char *to = cuda->description + cuda->described;
    const size_t room = sizeof cuda->description - cuda->described;
    *to = '\0';
    if (way != NULL)
        snprintf(to, room, "; attention by %s (%s, %s)", title_of(cuda), way->forward,
                 way->backward);
    else if (cuda->attending != NULL)
        snprintf(to, room, "; attention%s by %s", cuda->n_attended > 0 ? " too, not" : " too, or",
                 title_of(cuda));
    else if (unopened->status != WEFT_OK)
        snprintf(to, room, "; attention too, for %.300s", unopened->text);
}

/* Text */

const char *weft_cuda_attention_part(const char *text)
{
    const size_t length = strlen(part_word);
    while (*text != '\0' && strncmp(text, part_word, length) != 0) {
        text += strcspn(text, "\n");
        text += *text != '\0';
    }
    return text;
}

static bool is_same_shape(const struct weft_cuda_attention *a, const struct weft_cuda_attention *b)
{
    return a->dtype == b->dtype && a->samples == b->samples && a->seq_len == b->seq_len &&
           a->heads == b->heads && a->hidden == b->hidden;
}

static struct weft_cuda_attended *find_shape(struct weft_cuda_attended *all, int32_t n,
                                             const struct weft_cuda_attention *shape)
{
    for (int32_t i = 0; i < n; i++) {
        if (is_same_shape(&all[i].shape, shape)) return &all[i];
    }
    return NULL;
}

struct ways {
    struct weft_cuda_attended *all;
    int32_t n;
};

static enum weft_status add_way(struct ways *ways, const struct weft_cuda_attended *way,
                                struct weft_error *err)
{
    if (find_shape(ways->all, ways->n, &way->shape) != NULL) return WEFT_OK;
    struct weft_cuda_attended *all = realloc(ways->all, ((size_t)ways->n + 1) * sizeof *all);
    if (all == NULL) return weft_fail_memory(err, "ways of attention");
    ways->all = all;
    all[ways->n++] = *way;
    return WEFT_OK;
}

static void show_way(const struct weft_nn_cuda *cuda, const struct weft_cuda_attended *way,
                     struct weft_text *out)
{
    const struct weft_cuda_attention *shape = &way->shape;
    weft_text_addf(out, "%s %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %s %s %s\n",
                   weft_dtype_name(shape->dtype), shape->samples, shape->seq_len, shape->heads,
                   shape->hidden, way->by_library ? cuda->machine->attending->name : own_title,
                   way->by_library ? way->forward : "-", way->by_library ? way->backward : "-");
}

static bool read_shape(const char *dtype, struct weft_cuda_attention *shape)
{
    static const enum weft_dtype halves[] = {WEFT_BF16, WEFT_F16};
    const int64_t most = INT64_C(1) << 31;
    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
        if (strcmp(dtype, weft_dtype_name(halves[i])) != 0) continue;
        shape->dtype = halves[i];
        return shape->samples > 0 && shape->samples < most && shape->seq_len > 0 &&
               shape->seq_len < most && shape->heads > 0 && shape->hidden > 0 &&
               shape->hidden < most && shape->hidden % shape->heads == 0;
    }
    return false;
}

static bool read_way(const char *line, const char *library, struct weft_cuda_attended *out)
{
    char dtype[8], way[16];
    int end = 0;
    *out = (struct weft_cuda_attended){.by_library = false};
    struct weft_cuda_attention *shape = &out->shape;
    if (sscanf(line, "%7s %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %15s %95s %95s%n", dtype,
               &shape->samples, &shape->seq_len, &shape->heads, &shape->hidden, way, out->forward,
               out->backward, &end) != 8 ||
        line[end] != '\0' || !read_shape(dtype, shape))
        return false;
    out->by_library = strcmp(way, library) == 0;
    return out->by_library || (strcmp(way, own_title) == 0 && strcmp(out->forward, "-") == 0 &&
                               strcmp(out->backward, "-") == 0);
}

/* Reads the lines after the first of a part of a text. */
static enum weft_status read_ways(const struct weft_nn_cuda *cuda, const char *part,
                                  struct ways *out, struct weft_error *err)
{
    char line[320];
    for (const char *at = part + strcspn(part, "\n"); *at != '\0';) {
        at++;
        const size_t length = strcspn(at, "\n");
        struct weft_cuda_attended way;
        snprintf(line, sizeof line, "%.*s", (int)length, at);
        at += length;
        if (length == 0) continue;
        if (length >= sizeof line || !read_way(line, cuda->machine->attending->name, &way))
            return weft_fail(err, WEFT_E_DATA, "this is no way of attention: \"%.200s\"", line);
        WEFT_TRY(add_way(out, &way, err));
    }
    return WEFT_OK;
}

/* True if a part has this title on its first line. */
static bool has_title(const char *part, const char *title)
{
    const size_t length = strcspn(part, "\n"), before = strlen(part_word);
    return length == before + strlen(title) && strncmp(part + before, title, strlen(title)) == 0;
}

/* Choosing */

bool weft_cuda_on_tensor_cores(bool plain, const struct weft_walk *walk,
                               const struct weft_walk_step *step)
{
    return !plain && weft_attend_uses_tensor_cores(walk, step);
}

static bool has_window(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    return step->sizes.window > 0 && step->sizes.window < walk->batch.seq_len;
}

/* True if rows of the step's inputs are [q, k, v] of as many heads each; then its shape. */
static bool is_of_library(const struct weft_walk *walk, const struct weft_walk_step *step,
                          struct weft_cuda_attention *out)
{
    const int64_t hidden = step->sizes.heads * step->sizes.head_dim;
    const int32_t place = walk->values[step->in[0].value].place;
    for (int i = 0; i < step->n_in; i++)
        if (walk->values[step->in[i].value].place != place || step->in[i].from != i * hidden)
            return false;
    *out = (struct weft_cuda_attention){.dtype = walk->batch.compute,
                                        .samples = walk->batch.samples,
                                        .seq_len = walk->batch.seq_len,
                                        .heads = step->sizes.heads,
                                        .hidden = hidden};
    return step->sizes.kv_heads == step->sizes.heads && step->numbers.scalar == 0 &&
           step->sizes.causal != 0 && !has_window(walk, step) &&
           walk->values[place].columns == 3 * hidden;
}

static bool is_attention(const struct weft_walk_step *step)
{
    return strcmp(step->op->name, "attend") == 0;
}

static enum weft_status list_layer(const struct weft_nn_cuda *cuda, const struct weft_layer *layer,
                                   const struct weft_batch *batch, struct ways *out,
                                   struct weft_error *err)
{
    struct weft_walk walk;
    struct weft_error unsaid = {0};
    if (layer->kind->recipe == NULL ||
        weft_walk_derive(layer, batch, WEFT_RECOMPUTE_NONE, &walk, &unsaid) != WEFT_OK)
        return WEFT_OK;
    for (int32_t i = 0; i < walk.n_steps; i++) {
        const struct weft_walk_step *step = &walk.steps[i];
        struct weft_cuda_attended way = {.by_library = false};
        if (is_attention(step) && weft_cuda_on_tensor_cores(cuda->plain, &walk, step) &&
            is_of_library(&walk, step, &way.shape))
            WEFT_TRY(add_way(out, &way, err));
    }
    return WEFT_OK;
}

static enum weft_status list_shapes(const struct weft_nn_cuda *cuda,
                                    const struct weft_layer *layers, int32_t n_layers,
                                    const struct weft_batch *batch, struct ways *out,
                                    struct weft_error *err)
{
    for (int32_t l = 0; l < n_layers; l++)
        WEFT_TRY(list_layer(cuda, &layers[l], batch, out, err));
    return WEFT_OK;
}

/* Prepares the library's plan and reads its engines. */
static enum weft_status prepare_way(const struct weft_nn_cuda *cuda, struct weft_cuda_attended *way,
                                    struct weft_error *err)
{
    const struct weft_cuda_attending_ops *ops = cuda->machine->attending;
    WEFT_TRY(ops->prepare(cuda->attending, &way->shape, true, &way->plan, err));
    const struct weft_cuda_attending_facts *facts = ops->facts(way->plan);
    way->by_library = true;
    snprintf(way->forward, sizeof way->forward, "%s", facts->forward);
    snprintf(way->backward, sizeof way->backward, "%s", facts->backward);
    return WEFT_OK;
}

static void take_own(const struct weft_nn_cuda *cuda, struct weft_cuda_attended *way)
{
    if (way->plan != NULL) cuda->machine->attending->release(way->plan);
    way->plan = NULL;
    way->by_library = false;
}

static int64_t workspace_of(const struct weft_nn_cuda *cuda, const struct weft_cuda_attended *way)
{
    const struct weft_cuda_attending_facts *facts = cuda->machine->attending->facts(way->plan);
    return facts->forward_bytes > facts->backward_bytes ? facts->forward_bytes
                                                        : facts->backward_bytes;
}

/* Proves a prepared way. With `faster` it also sets whether it beats own kernels. */
static enum weft_status try_way(const struct weft_nn_cuda *cuda,
                                const struct weft_cuda_attended *way, bool *faster,
                                struct weft_error *err)
{
    struct weft_cuda_trial *trial = NULL;
    double worst = 0, us[2] = {0}, own_us[2] = {0};
    WEFT_TRY(weft_cuda_trial_open(cuda->machine, cuda->attending, &way->shape,
                                  workspace_of(cuda, way), &trial, err));
    enum weft_status status = weft_cuda_trial_prove(trial, way->plan, &worst, err);
    if (status == WEFT_OK && faster != NULL)
        status = weft_cuda_trial_time(trial, way->plan, us, err);
    if (status == WEFT_OK && faster != NULL) {
        status = weft_cuda_trial_time(trial, NULL, own_us, err);
        *faster = us[0] + us[1] < own_us[0] + own_us[1];
    }
    weft_cuda_trial_close(trial);
    return status;
}

static void warn_of_own(const struct weft_nn_cuda *cuda, const struct weft_error *why,
                        struct weft_text *warnings)
{
    weft_text_addf(warnings, "attention is by Weft's own kernels, not by %s: %s\n", title_of(cuda),
                   why->text);
}

/* Takes the earlier way, unless the library cannot, or has other engines. */
static void choose_earlier(const struct weft_nn_cuda *cuda,
                           const struct weft_cuda_attended *earlier, struct weft_cuda_attended *way,
                           struct weft_text *warnings)
{
    struct weft_error why = {0};
    if (!earlier->by_library) return;
    enum weft_status status = prepare_way(cuda, way, &why);
    if (status == WEFT_OK) status = try_way(cuda, way, NULL, &why);
    if (status != WEFT_OK) {
        warn_of_own(cuda, &why, warnings);
        take_own(cuda, way);
    } else if (strcmp(way->forward, earlier->forward) != 0 ||
               strcmp(way->backward, earlier->backward) != 0) {
        weft_text_addf(warnings,
                       "attention was by %s and %s of %s, and is by %s and %s: the same to "
                       "rounding, not the same bits\n",
                       earlier->forward, earlier->backward, title_of(cuda), way->forward,
                       way->backward);
    }
}

static void choose_way(const struct weft_nn_cuda *cuda, struct weft_cuda_attended *way,
                       struct weft_text *warnings)
{
    struct weft_error why = {0};
    bool faster = true;
    enum weft_status status = prepare_way(cuda, way, &why);
    if (status == WEFT_OK) status = try_way(cuda, way, cuda->wants_library ? NULL : &faster, &why);
    if (status != WEFT_OK) warn_of_own(cuda, &why, warnings);
    if (status != WEFT_OK || !faster) take_own(cuda, way);
}

/* Earlier ways. `fixed`: this text's shapes stay as they were, own kernels included. */
struct earlier {
    struct ways ways;
    bool fixed;
};

static enum weft_status read_earlier(const struct weft_nn_cuda *cuda, const char *text,
                                     struct earlier *out, struct weft_text *warnings,
                                     struct weft_error *err)
{
    if (text == NULL || *text == '\0') return WEFT_OK;
    const char *part = weft_cuda_attention_part(text), *title = part + strlen(part_word);
    const bool was_own = *part == '\0' || has_title(part, own_title);
    out->fixed = was_own ? !cuda->wants_library : has_title(part, title_of(cuda));
    if (!was_own && out->fixed) WEFT_TRY(read_ways(cuda, part, &out->ways, err));
    if (out->fixed || (was_own && cuda->attending == NULL)) return WEFT_OK;
    weft_text_addf(warnings,
                   "attention was computed by %.*s, and is by %s: the same to rounding, not the "
                   "same bits\n",
                   was_own ? (int)strlen(own_title) : (int)strcspn(title, "\n"),
                   was_own ? own_title : title, title_of(cuda));
    return WEFT_OK;
}

/* Shapes that a fixed text lacks are new ones of a library, or own kernels' before. */
static void choose_shape(const struct weft_nn_cuda *cuda, const struct earlier *earlier,
                         struct weft_cuda_attended *way, struct weft_text *warnings)
{
    const struct weft_cuda_attended *before =
        find_shape(earlier->ways.all, earlier->ways.n, &way->shape);
    if (cuda->attending == NULL || (earlier->fixed && earlier->ways.n == 0)) return;
    if (before != NULL && (before->by_library || !cuda->wants_library))
        choose_earlier(cuda, before, way, warnings);
    else
        choose_way(cuda, way, warnings);
}

enum weft_status weft_cuda_attention_choose(struct weft_nn_cuda *cuda,
                                            const struct weft_layer *layers, int32_t n_layers,
                                            const struct weft_batch *batch, const char *earlier,
                                            struct weft_text *out, struct weft_text *warnings,
                                            struct weft_error *err)
{
    struct ways ways = {0};
    struct earlier before = {.fixed = false};
    enum weft_status status = list_shapes(cuda, layers, n_layers, batch, &ways, err);
    if (status == WEFT_OK && ways.n > 0)
        status = read_earlier(cuda, earlier, &before, warnings, err);
    if (status == WEFT_OK && ways.n > 0) weft_text_addf(out, "%s%s\n", part_word, title_of(cuda));
    for (int32_t i = 0; i < ways.n && status == WEFT_OK; i++) {
        choose_shape(cuda, &before, &ways.all[i], warnings);
        show_way(cuda, &ways.all[i], out);
    }
    free(before.ways.all);
    drop_choices(cuda);
    cuda->attended = ways.all;
    cuda->n_attended = ways.n;
    return status;
}

/* Binding */

static enum weft_status bind_way(const struct weft_nn_cuda *cuda, struct weft_cuda_attended *way,
                                 struct weft_error *err)
{
    struct weft_error why = {0};
    const struct weft_cuda_attended asked = *way;
    if (!way->by_library) return WEFT_OK;
    const enum weft_status status = prepare_way(cuda, way, &why);
    if (status == WEFT_OK && strcmp(way->forward, asked.forward) == 0 &&
        strcmp(way->backward, asked.backward) == 0)
        return try_way(cuda, way, NULL, err);
    return weft_fail(err, WEFT_E_DISAGREE,
                     "%s cannot attend in the way that rank 0 chose: %s (%s, %s). All ranks need "
                     "the same GPU and library; WEFT_ATTENTION=own goes without the library",
                     title_of(cuda), status != WEFT_OK ? why.text : "it has other engines",
                     asked.forward, asked.backward);
}

/* Moves the plans that this rank prepared as it chose. */
static void move_plans(struct weft_nn_cuda *cuda, struct ways *to)
{
    for (int32_t i = 0; i < to->n; i++) {
        struct weft_cuda_attended *from =
            find_shape(cuda->attended, cuda->n_attended, &to->all[i].shape);
        if (from == NULL || from->plan == NULL || !to->all[i].by_library ||
            strcmp(from->forward, to->all[i].forward) != 0 ||
            strcmp(from->backward, to->all[i].backward) != 0)
            continue;
        to->all[i].plan = from->plan;
        from->plan = NULL;
    }
}

static enum weft_status take_part(struct weft_nn_cuda *cuda, const char *part, struct ways *out,
                                  struct weft_error *err)
{
    const bool own = *part == '\0' || has_title(part, own_title);
    if (!own && !has_title(part, title_of(cuda)))
        return weft_fail(err, WEFT_E_DISAGREE,
                         "rank 0's attention is by %.*s, and this rank has %s: all ranks need the "
                         "same GPU and library",
                         (int)(strcspn(part, "\n") - strlen(part_word)), part + strlen(part_word),
                         title_of(cuda));
    WEFT_TRY(read_ways(cuda, part, out, err));
    move_plans(cuda, out);
    for (int32_t i = 0; i < out->n; i++) {
        if (own && out->all[i].by_library)
            return weft_fail(err, WEFT_E_DATA, "attention of no library has engines of one");
        if (out->all[i].plan == NULL) WEFT_TRY(bind_way(cuda, &out->all[i], err));
    }
    return WEFT_OK;
}

enum weft_status weft_cuda_attention_bind(struct weft_nn_cuda *cuda, const char *part,
                                          struct weft_error *err)
{
    struct ways ways = {0};
    const enum weft_status status = take_part(cuda, part, &ways, err);
    drop_choices(cuda);
    cuda->attended = ways.all;
    cuda->n_attended = ways.n;
    if (status != WEFT_OK) drop_choices(cuda);
    if (cuda->attending != NULL) weft_cuda_attention_describe(cuda, NULL);
    return status;
}

/* Running */

/* The prepared way of a step, or NULL. */
static const struct weft_cuda_attended *way_of(const struct weft_nn_cuda *cuda,
                                               const struct weft_walk *walk,
                                               const struct weft_walk_step *step)
{
    struct weft_cuda_attention shape;
    if (cuda->n_attended == 0 || !is_of_library(walk, step, &shape)) return NULL;
    const struct weft_cuda_attended *way = find_shape(cuda->attended, cuda->n_attended, &shape);
    return way != NULL && way->plan != NULL ? way : NULL;
}

void weft_cuda_attention_needs(const struct weft_nn_cuda *cuda, const struct weft_walk *walk,
                               struct weft_nn_needs *needs)
{
    for (int32_t i = 0; i < walk->n_steps && cuda->n_attended > 0; i++) {
        const struct weft_walk_step *step = &walk->steps[i];
        if (!is_attention(step) || !weft_cuda_on_tensor_cores(cuda->plain, walk, step)) continue;
        const struct weft_cuda_attended *way = way_of(cuda, walk, step);
        if (way == NULL) continue;
        /* Backward may restore, so it needs forward's bytes too. */
        const int64_t forward = cuda->machine->attending->facts(way->plan)->forward_bytes,
                      most = workspace_of(cuda, way);
        if (needs->forward_bytes < forward) needs->forward_bytes = forward;
        if (needs->backward_bytes < most) needs->backward_bytes = most;
    }
}

int weft_cuda_attention_forward(const struct weft_nn_cuda *cuda, const struct weft_walk *walk,
                                const struct weft_walk_step *step,
                                const struct weft_cuda_heads *heads, void *output,
                                float *statistics, void *workspace, struct CUstream_st *on)
{
    const struct weft_cuda_attended *way = way_of(cuda, walk, step);
    if (way == NULL) return weft_cuda_attend_heads(heads, output, statistics, on);
    return cuda->machine->attending->forward(way->plan, heads->query, output, statistics, workspace,
                                             on);
}

int weft_cuda_attention_backward(const struct weft_nn_cuda *cuda, const struct weft_walk *walk,
                                 const struct weft_walk_step *step,
                                 const struct weft_cuda_heads *heads, const void *output,
                                 const float *statistics, const void *d_output, void *workspace,
                                 const struct weft_cuda_head_gradients *to, struct CUstream_st *on)
{
    const struct weft_cuda_attended *way = way_of(cuda, walk, step);
    if (way == NULL)
        return weft_cuda_attend_heads_backward(heads, output, statistics, d_output, workspace, to,
                                               on);
    return cuda->machine->attending->backward(way->plan, heads->query, output, statistics, d_output,
                                              to->query, workspace, on);
}
