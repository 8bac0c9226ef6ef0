/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/saving.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/shown.h"
#include "base/units.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/finite.h"
#include "runtime/checkpoint/origin.h"
#include "runtime/checkpoint/save.h"
#include "runtime/checkpoint/shared.h"
#include "runtime/checkpoint/vault/keeping.h"
#include "runtime/exec/precision.h"
#include "runtime/exec/state.h"
#include "runtime/train/bits.h"
#include "runtime/train/schedule.h"
#include "spec/config_batch.h"
#include "spec/config_compare.h"

enum { READ_ELEMENTS = 1 << 16, LATEST_BYTES = 80 };
#define TOLD_LENGTH 1.5 /* of updates, relative to usual ones */

/* The executor's own state, as read by a save. */
struct source {
    const struct weft_exec *exec;
    struct weft_state_access *access;
    const struct weft_model *model;
    bool skips_shared; /* the first node saves it for all */
    struct weft_state_cursor cursor;
    struct weft_state_piece piece; /* given last */
};

struct weft_saving {
    const struct weft_train_options *options;
    const struct weft_train *train;
    int32_t rank, ranks;
    struct weft_pool pool;
    struct weft_layout *layout;         /* NULL: neither saves nor resumes */
    struct weft_checkpoint *checkpoint; /* to resume, until its state is read */
    bool fresh;                         /* the checkpoint has no moments of this optimizer */
    struct weft_origin_file *from;      /* origin, until its parameters are read */
    struct weft_origin origin;          /* of the run; path "" without one */
    struct weft_saver *saver;           /* NULL: does not save */
    struct weft_keeping *keeping;       /* in host memory; NULL: keeps none there */
    struct weft_progress progress;
    int64_t steps_done, saved_step;
    int64_t kept_step;    /* kept last by this start; 0: none */
    int64_t pending_step; /* being saved; -1: none */
    int64_t last_step;    /* no step follows it; -1: not known yet */
    int64_t stalled_ns;   /* time that training stood still for the save */
    struct source source;
    const char *settings;
    struct weft_text bits; /* bits.h */
};

static void rewind_source(void *context)
{
    struct source *source = context;
    source->cursor = (struct weft_state_cursor){.held = false};
}

static bool next_piece(void *context, struct weft_save_piece *out)
{
    struct source *source = context;
    struct weft_state_piece *piece = &source->piece;
    do {
        if (!weft_exec_state_next(source->exec, &source->cursor, piece)) return false;
    } while (source->skips_shared &&
             weft_layout_shares(source->model, piece->tensor, piece->state));
    *out = (struct weft_save_piece){piece->tensor, piece->state, piece->first, piece->count,
                                    piece->computed};
    return true;
}

static enum weft_status read_piece(void *context, int64_t from, int64_t n, float *out,
                                   struct weft_error *err)
{
    struct source *source = context;
    return weft_exec_state_read(source->access, &source->piece, from, n, out, err);
}

static int64_t step_samples(const struct weft_saving *saving)
{
    return weft_config_samples(saving->options->config);
}

/* The device's name unless it is the CPU. */
static const char *other_device(const struct weft_config *config)
{
    enum weft_device_type type = (enum weft_device_type)config->cluster.device.type;
    return type == WEFT_DEVICE_CPU ? NULL : weft_device_name(type);
}

/* A checkpoint has nothing of a device but its bits, so another device may continue. */
static void tell_device(const struct weft_saving *saving)
{
    const char *ours = other_device(saving->options->config);
    const char *theirs = saving->checkpoint->manifest->device;
    const char *cpu = weft_device_name(WEFT_DEVICE_CPU);
    char shown[WEFT_SHOWN_BYTES];
    ours = ours != NULL ? ours : cpu;
    theirs = theirs != NULL ? theirs : cpu;
    if (strcmp(ours, theirs) != 0)
        weft_log(WEFT_LOG_WARNING, "%s: was computed on device \"%s\", and goes on with \"%s\"",
                 saving->checkpoint->path, weft_shown(theirs, shown), ours);
}

/* Settings may be changed on purpose, but not unnoticed. */
static void tell_changes(const struct weft_saving *saving)
{
    const struct weft_manifest *manifest = saving->checkpoint->manifest;
    const char *kernels = weft_nn_gemm_name(saving->options->nn);
    char shown[WEFT_SHOWN_BYTES];
    struct weft_train before;
    struct weft_text text;
    weft_text_init(&text);
    if (weft_manifest_compare(saving->settings, manifest->settings, &text) > 0)
        weft_log(WEFT_LOG_WARNING, "%s: goes on with other settings of train:\n%s",
                 saving->checkpoint->path, weft_text_chars(&text));
    weft_text_finish(&text);
    if (weft_config_read_schedule(manifest->settings, &before))
        weft_train_tell_rate(saving->train, &before, saving->steps_done, saving->checkpoint->path);
    tell_device(saving);
    if (strcmp(kernels, manifest->kernels) != 0)
        weft_log(
            WEFT_LOG_WARNING,
            "%s: was computed with %s, which WEFT_GEMM overrides or this build or machine does "
            "not have, and goes on with %s: the same to rounding, not the same bits",
            saving->checkpoint->path, weft_shown(manifest->kernels, shown), kernels);
}

/* Samples are drawn by step number, so another number per step draws other samples. */
static void tell_batch(const struct weft_saving *saving)
{
    const struct weft_progress *progress = &saving->progress;
    if (progress->samples == progress->step * step_samples(saving)) return;
    weft_log(WEFT_LOG_WARNING,
             "%s: has read %" PRId64 " samples in %" PRId64 " steps, and goes on with %" PRId64
             " a step",
             saving->checkpoint->path, progress->samples, progress->step, step_samples(saving));
}

static void tell_data(const struct weft_saving *saving, struct weft_hash data)
{
    if (weft_hash_equal(saving->progress.data, data)) return;
    weft_log(WEFT_LOG_WARNING,
             "%s: was trained on other data, or another share of them, than %s, and goes on with "
             "these",
             saving->checkpoint->path, saving->train->data);
}

/* Whether it has AdamW's moments: with roots, of each element. */
static bool has_roots(const char *name)
{
    for (int type = 0; type < WEFT_OPTIMIZER_COUNT; type++)
        if (strcmp(weft_optimizer_row(type)->name, name) == 0)
            return weft_optimizer_row(type)->has_roots && !weft_optimizer_row(type)->has_means;
    return false;
}

/* Optimizers have moments of their own, but AdamW and LAMB have the same. */
static bool share_moments(const char *a, const char *b)
{
    return strcmp(a, b) == 0 || (has_roots(a) && has_roots(b));
}

/* With another optimizer all moments start at 0, and bias correction counts from here. */
static void compare_optimizers(struct weft_saving *saving)
{
    char now[WEFT_MANIFEST_TYPE_BYTES], before[WEFT_MANIFEST_TYPE_BYTES];
    weft_manifest_optimizer(saving->settings, now);
    weft_manifest_optimizer(saving->checkpoint->manifest->settings, before);
    saving->fresh = !share_moments(now, before);
    if (!saving->fresh) return;
    saving->progress.moments_began = saving->progress.step;
    if (saving->rank == 0)
        weft_log(
            WEFT_LOG_WARNING,
            "%s: all moments start at 0: those of the checkpoint are %s's, and the optimizer is "
            "%s",
            saving->checkpoint->path, before, now);
}

/* The longest AdamW update with moments that began at 0 but no bias correction any more. A
 * corrected update has a length of about 1. */
static double longest_update(const struct weft_train *train)
{
    enum { MOST = 100000 };
    const double b1 = train->optimizer.betas[0], b2 = train->optimizer.betas[1];
    double most = 1, power1 = 1, power2 = 1;
    for (int k = 0; k < MOST; k++) {
        power1 *= b1;
        power2 *= b2;
        const double length = (1 - power1) / sqrt(1 - power2);
        if (length > most) most = length;
    }
    return most;
}

static void tell_moments(const struct weft_saving *saving)
{
    struct weft_text text;
    int32_t n_begun = 0;
    if (saving->fresh) return;
    weft_text_init(&text);
    int32_t n =
        weft_checkpoint_compare_moments(saving->checkpoint, saving->layout, &n_begun, &text);
    if (n > 0)
        weft_log(WEFT_LOG_WARNING, "%s: goes on with other moments:\n%s", saving->checkpoint->path,
                 weft_text_chars(&text));
    const double longest = longest_update(saving->train);
    if (n_begun > 0 && weft_optimizer_row(saving->train->optimizer.type)->has_roots &&
        longest > TOLD_LENGTH)
        weft_log(WEFT_LOG_WARNING,
                 "moments that start at 0 have the bias correction of step %" PRId64
                 ": for some steps their updates are up to %.1f times as long as others. A new run "
                 "with --from %s begins all moments and the correction anew",
                 saving->progress.step + 1 - saving->progress.moments_began, longest,
                 saving->checkpoint->path);
    weft_text_finish(&text);
}

/* A replay that cannot have the run's bits would only find that they differ. */
static enum weft_status check_replay(const struct weft_saving *saving, struct weft_error *err)
{
    const struct weft_manifest *manifest = saving->checkpoint->manifest;
    const char *ours = weft_nn_gemm_name(saving->options->nn);
    char shown[WEFT_SHOWN_BYTES];
    if (strcmp(ours, manifest->kernels) != 0)
        return weft_fail(err, WEFT_E_ENVIRONMENT,
                         "%s: the run computed products with %s, and here they are computed with "
                         "%s, which rounds otherwise: replay on a machine that has %s, and without "
                         "WEFT_GEMM",
                         saving->checkpoint->path, weft_shown(manifest->kernels, shown), ours,
                         weft_shown(manifest->kernels, shown));
    return WEFT_OK;
}

static enum weft_status open_checkpoint(struct weft_saving *saving, struct weft_hash data,
                                        struct weft_error *err)
{
    const struct weft_train_options *o = saving->options;
    if (o->several_hosts && saving->rank != 0) weft_checkpoint_await(o->resume);
    WEFT_TRY(weft_checkpoint_open(o->resume, &saving->checkpoint, err));
    WEFT_TRY(weft_checkpoint_matches(saving->checkpoint, saving->layout, err));
    WEFT_TRY(weft_checkpoint_verify(saving->checkpoint, saving->rank, saving->ranks, err));
    saving->progress = saving->checkpoint->manifest->progress;
    saving->origin = saving->checkpoint->manifest->origin;
    saving->steps_done = saving->progress.step;
    compare_optimizers(saving);
    if (saving->rank != 0) return WEFT_OK;
    weft_checkpoint_warn(saving->checkpoint);
    tell_changes(saving);
    tell_moments(saving);
    tell_batch(saving);
    if (o->replay_to > 0) return check_replay(saving, err);
    tell_data(saving, data);
    return WEFT_OK;
}

static enum weft_status open_origin(struct weft_saving *saving, struct weft_error *err)
{
    const struct weft_train_options *o = saving->options;
    WEFT_TRY(weft_origin_open(o->from, o->config->model, &saving->from, err));
    WEFT_TRY(weft_origin_verify(saving->from, saving->rank, saving->ranks, err));
    snprintf(saving->origin.path, sizeof saving->origin.path, "%s", o->from);
    if (saving->rank == 0) weft_origin_warn(saving->from);
    return WEFT_OK;
}

/* Whether the resumed checkpoint is among the checkpoints of this run. */
static bool is_own(const struct weft_train_options *o)
{
    size_t length = o->checkpoints == NULL ? 0 : strlen(o->checkpoints);
    return length > 0 && o->resume != NULL && strncmp(o->resume, o->checkpoints, length) == 0 &&
           o->resume[length] == '/' && strchr(o->resume + length + 1, '/') == NULL;
}

static struct weft_saver_options options_of(const struct weft_saving *saving)
{
    const struct weft_train_options *o = saving->options;
    return (struct weft_saver_options){
        .layout = saving->layout,
        .comm = o->comm,
        .page_bytes = o->several_hosts ? WEFT_SAVE_PAGE_BYTES : 0,
        .sink = &weft_sink_system,
        .directory = o->checkpoints,
        .keep = saving->train->checkpoint.keep,
        .keep_multiple = saving->train->checkpoint.keep_every * saving->train->checkpoint.every,
        .precious = is_own(o) ? saving->steps_done : -1,
        .settings = saving->settings,
        .device = other_device(o->config),
        .kernels = weft_nn_gemm_name(o->nn),
        .products = weft_nn_choices(o->nn),
        .bits = weft_text_chars(&saving->bits),
        .split = {.micro_batch = saving->train->micro_batch,
                  .micro_steps = saving->train->grad_accum,
                  .group = o->plan->problem->period.group,
                  .layers = o->plan->problem->period.layers,
                  .ranks = saving->ranks,
                  .idle = o->plan->problem->period.idle,
                  .bundle = weft_config_bundle(o->config)},
        .origin = &saving->origin,
    };
}

static enum weft_status open_savers(struct weft_saving *saving, struct weft_error *err)
{
    const struct weft_train_options *o = saving->options;
    const struct weft_saver_options options = options_of(saving);
    if (is_own(o)) saving->saved_step = saving->steps_done;
    if (o->checkpoints != NULL) WEFT_TRY(weft_saver_create(&options, &saving->saver, err));
    if (o->kept == NULL) return WEFT_OK;
    return weft_keeping_open(&options, o->kept, o->failpoint, &saving->keeping, err);
}

/* A replay begins only where it can have the run's bits. */
static enum weft_status begin_bits(struct weft_saving *saving, struct weft_error *err)
{
    const struct weft_train_options *o = saving->options;
    struct weft_text how;
    weft_bits_tell(o->device, o->nn, &saving->bits);
    if (!weft_text_ok(&saving->bits)) return weft_fail_memory(err, "the bits' parts");
    if (saving->rank != 0 || o->replay_bits == NULL) return WEFT_OK;
    weft_text_init(&how);
    enum weft_status status =
        weft_bits_compare(o->replay_bits, weft_text_chars(&saving->bits), " in the run, and ",
                          " here", &how)
            ? WEFT_OK
            : weft_fail(err, WEFT_E_ENVIRONMENT,
                        "a replay here would have other bits: %s. Replay on a machine like the "
                        "run's, or with the run's WEFT_GEMM, WEFT_KERNELS and DNNL_MAX_CPU_ISA",
                        weft_text_chars(&how));
    weft_text_finish(&how);
    return status;
}

/* Also of a replay from the first parameters, which resumes no checkpoint. */
static enum weft_status check_replayed_data(const struct weft_saving *saving,
                                            struct weft_data *data, struct weft_error *err)
{
    const struct weft_train_options *o = saving->options;
    char text[WEFT_HASH_TEXT_BYTES];
    struct weft_hash hash;
    if (saving->rank != 0 || o->replay_data == NULL) return WEFT_OK;
    WEFT_TRY(weft_data_hash(data, &hash, err));
    if (strcmp(weft_hash_show(hash, text), o->replay_data) == 0) return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA,
                     "%s: the run read other data in steps %" PRId64 " to %" PRId64
                     ", or another share of them, so they cannot be replayed. Give the run's data "
                     "with --set train.data=PATH",
                     saving->train->data, o->replay_from, o->replay_to);
}

static enum weft_status fill_saving(struct weft_saving *saving, struct weft_data *data,
                                    struct weft_error *err)
{
    const struct weft_train_options *o = saving->options;
    struct weft_hash hash = {0};
    WEFT_TRY(begin_bits(saving, err));
    WEFT_TRY(check_replayed_data(saving, data, err));
    if (o->resume == NULL && o->from != NULL) WEFT_TRY(open_origin(saving, err));
    if (o->checkpoints == NULL && o->resume == NULL && o->kept == NULL) return WEFT_OK;
    WEFT_TRY(weft_layout_create(o->config->model, weft_config_states(o->config),
                                weft_config_nodes(o->config), WEFT_CHECKPOINT_CHUNK_BYTES,
                                &saving->layout, err));
    saving->layout->node = saving->rank / (int32_t)weft_config_together(o->config);
    WEFT_TRY(weft_manifest_settings(o->config, &saving->pool, &saving->settings, err));
    if (saving->rank == 0) WEFT_TRY(weft_data_hash(data, &hash, err));
    if (o->resume != NULL) WEFT_TRY(open_checkpoint(saving, hash, err));
    saving->progress.data = hash;
    return open_savers(saving, err);
}

enum weft_status weft_saving_open(const struct weft_train_options *options, struct weft_data *data,
                                  struct weft_saving **out, struct weft_error *err)
{
    struct weft_saving *saving = calloc(1, sizeof *saving);
    if (saving == NULL) return weft_fail_memory(err, "saving");
    saving->options = options;
    saving->train = &options->config->train;
    saving->rank = weft_comm_rank(options->comm);
    saving->ranks = weft_comm_ranks(options->comm);
    saving->progress.loss_scale = 1;
    weft_text_init(&saving->bits);
    saving->saved_step = saving->pending_step = saving->last_step = -1;
    enum weft_status status = fill_saving(saving, data, err);
    if (status != WEFT_OK) {
        weft_saving_close(saving);
        return status;
    }
    *out = saving;
    return WEFT_OK;
}

void weft_saving_close(struct weft_saving *saving)
{
    if (saving == NULL) return;
    weft_saver_destroy(saving->saver);
    weft_keeping_close(saving->keeping);
    weft_exec_state_close(saving->source.access);
    weft_checkpoint_close(saving->checkpoint);
    weft_origin_close(saving->from);
    weft_layout_destroy(saving->layout);
    weft_pool_finish(&saving->pool);
    weft_text_finish(&saving->bits);
    free(saving);
}

int64_t weft_saving_steps_done(const struct weft_saving *saving)
{
    return saving->steps_done;
}

int64_t weft_saving_saved_step(const struct weft_saving *saving)
{
    return saving->saved_step;
}

/* A checkpoint without scaling has 1 and 0; f16 then begins with its own scale. */
static enum weft_status take_loss_scale(const struct weft_saving *saving, struct weft_exec *exec,
                                        struct weft_error *err)
{
    const struct weft_loss_scale scale = {saving->progress.loss_scale, saving->progress.good_steps};
    int exponent;
    if (saving->train->precision.compute != WEFT_F16) return WEFT_OK;
    if (scale.scale == 1 && scale.good_steps == 0) return WEFT_OK;
    bool in_range = scale.scale >= 1 && scale.scale <= WEFT_LOSS_SCALE_MOST;
    if (!in_range || frexp(scale.scale, &exponent) != 0.5)
        return weft_fail(err, WEFT_E_DATA,
                         "%s: a loss scale of %g, with %" PRId64 " good steps, is none that a run "
                         "leaves; resume from an earlier checkpoint",
                         saving->checkpoint->path, scale.scale, scale.good_steps);
    weft_exec_set_loss_scale(exec, scale);
    return WEFT_OK;
}

/* Moments without a source stay 0. */
static bool is_given(const struct weft_saving *saving, const struct weft_state_piece *piece)
{
    const bool is_outer = piece->state == WEFT_STATE_ANCHOR || piece->state == WEFT_STATE_OUTER;
    if (piece->state == WEFT_STATE_PARAMETER) return true;
    if (piece->state == WEFT_STATE_ANCHOR && saving->checkpoint == NULL) return true;
    /* Another optimizer begins anew; the outer one goes on. */
    return saving->checkpoint != NULL && (is_outer || !saving->fresh) &&
           weft_checkpoint_has(saving->checkpoint, saving->layout, piece->tensor, piece->state);
}

static enum weft_status read_elements(const struct weft_saving *saving,
                                      const struct weft_state_piece *piece, int64_t from, int64_t n,
                                      float *out, struct weft_error *err)
{
    const int64_t first = piece->first + from;
    const char *tensor = saving->options->config->model->tensors[piece->tensor].name;
    const bool resumes = saving->checkpoint != NULL;
    WEFT_TRY(resumes ? weft_checkpoint_read(saving->checkpoint, saving->layout, piece->tensor,
                                            piece->state, first, n, out, err)
                     : weft_origin_read(saving->from, piece->tensor, first, n, out, err));
    if (piece->state != WEFT_STATE_PARAMETER) return WEFT_OK;
    return weft_finite_check_read(resumes ? saving->checkpoint->path : saving->origin.path, tensor,
                                  first, n, out, piece->computed, err);
}

/* Reads through a fixed buffer, so a piece of any size takes little memory. */
static enum weft_status read_state(const struct weft_saving *saving, struct weft_exec *exec,
                                   struct weft_state_access *access, float *buffer,
                                   struct weft_error *err)
{
    struct weft_state_cursor cursor = {.held = true};
    struct weft_state_piece piece;
    WEFT_TRY(weft_exec_state_clear(exec, err));
    while (weft_exec_state_next(exec, &cursor, &piece)) {
        if (!is_given(saving, &piece)) continue;
        for (int64_t from = 0; from < piece.count; from += READ_ELEMENTS) {
            int64_t left = piece.count - from, n = left < READ_ELEMENTS ? left : READ_ELEMENTS;
            WEFT_TRY(read_elements(saving, &piece, from, n, buffer, err));
            WEFT_TRY(weft_exec_state_write(access, &piece, from, n, buffer, err));
        }
    }
    return WEFT_OK;
}

static enum weft_status take_state(const struct weft_saving *saving, struct weft_exec *exec,
                                   struct weft_error *err)
{
    struct weft_state_access *access = NULL;
    float *buffer = malloc(READ_ELEMENTS * sizeof *buffer);
    enum weft_status status = buffer == NULL ? weft_fail_memory(err, "a buffer for the state")
                                             : weft_exec_state_open(exec, &access, err);
    if (status == WEFT_OK) status = read_state(saving, exec, access, buffer, err);
    weft_exec_state_close(access);
    free(buffer);
    return status;
}

/* The fingerprint is of the parameters in this run: frozen ones may be rounded. */
static enum weft_status take_origin(struct weft_saving *saving, struct weft_exec *exec,
                                    struct weft_error *err)
{
    char hash[WEFT_HASH_TEXT_BYTES], shown[WEFT_SHOWN_BYTES];
    WEFT_TRY(take_state(saving, exec, err));
    weft_origin_close(saving->from);
    saving->from = NULL;
    WEFT_TRY(weft_exec_state_filled(exec, err));
    WEFT_TRY(weft_exec_fingerprint(exec, &saving->origin.parameters, err));
    if (saving->rank == 0)
        weft_log(WEFT_LOG_INFO, "begins with the parameters of %s: %s",
                 weft_shown(saving->origin.path, shown),
                 weft_hash_show(saving->origin.parameters, hash));
    return WEFT_OK;
}

const struct weft_origin *weft_saving_origin(const struct weft_saving *saving)
{
    return &saving->origin;
}

enum weft_status weft_saving_begin(struct weft_saving *saving, struct weft_exec *exec,
                                   struct weft_error *err)
{
    const bool reads = saving->from != NULL || saving->checkpoint != NULL;
    saving->source.exec = exec;
    saving->source.model = saving->options->config->model;
    saving->source.skips_shared = saving->layout != NULL && saving->layout->node > 0;
    weft_watch_begin(saving->options->watch, reads ? "start: checkpoint" : "start: initial values");
    if (saving->from != NULL) {
        WEFT_TRY(take_origin(saving, exec, err));
    } else if (saving->checkpoint == NULL) {
        WEFT_TRY(weft_exec_initialise(exec, (uint64_t)saving->train->seed, err));
    } else {
        WEFT_TRY(take_state(saving, exec, err));
        WEFT_TRY(take_loss_scale(saving, exec, err));
        weft_exec_set_moments_began(exec, saving->progress.moments_began);
        weft_checkpoint_close(saving->checkpoint);
        saving->checkpoint = NULL;
        WEFT_TRY(weft_exec_state_filled(exec, err));
    }
    /* Comes last, because a disk has few windows. */
    if (saving->saver == NULL && saving->keeping == NULL) return WEFT_OK;
    return weft_exec_state_open(exec, &saving->source.access, err);
}

static enum weft_status tell_saved(struct weft_saving *saving, struct weft_error *err)
{
    const struct weft_train_options *o = saving->options;
    struct weft_save_line line = {
        .step = saving->pending_step, .ns = saving->stalled_ns, .directory = o->checkpoints};
    for (int f = 0; f < WEFT_CHECKPOINT_FILES; f++)
        line.bytes += saving->layout->files[f].bytes;
    saving->saved_step = saving->pending_step;
    saving->pending_step = -1;
    return o->on_save == NULL ? WEFT_OK : o->on_save(o->context, &line, err);
}

/* Names the checkpoint that remains after a failed save. The newest complete one is never
 * removed. */
static const char *name_latest(const struct weft_saving *saving, char out[LATEST_BYTES])
{
    if (saving->saved_step > 0)
        snprintf(out, LATEST_BYTES, "the latest checkpoint is step-%" PRId64 ", as before",
                 saving->saved_step);
    else if (saving->steps_done > 0)
        snprintf(out, LATEST_BYTES, "no checkpoint after step-%" PRId64 " was saved",
                 saving->steps_done);
    else
        snprintf(out, LATEST_BYTES, "no other checkpoint was saved");
    return out;
}

static bool has_checkpoint(const struct weft_saving *saving)
{
    return saving->saved_step > 0 || saving->steps_done > 0;
}

/* `before` is empty or ends in a space. */
static enum weft_status fail_dead(const struct weft_saving *saving, const char *before,
                                  const struct weft_error *why, struct weft_error *err)
{
    char latest[LATEST_BYTES];
    const struct weft_train *train = saving->train;
    return weft_fail_again(
        err, why,
        "%s%s. Its last updates were too large. It is not saved; %s. Lower "
        "train.optimizer.lr (%g), lengthen train.lr_schedule.warmup_steps, or set "
        "train.clip_norm, and %s",
        before, why->text, name_latest(saving, latest), train->optimizer.lr,
        has_checkpoint(saving) ? "go on with --resume" : "begin again");
}

/* Without a save, nothing has checked the parameters after the last update. */
static enum weft_status look_at_last(struct weft_saving *saving, struct weft_exec *exec,
                                     int64_t step, struct weft_error *err)
{
    const struct weft_save_source pieces = {&saving->source, rewind_source, next_piece, read_piece};
    char before[LATEST_BYTES];
    WEFT_TRY(weft_exec_settle(exec, err));
    struct weft_error *why = calloc(1, sizeof *why);
    if (why == NULL) return weft_fail_memory(err, "an error");
    enum weft_status status = WEFT_OK;
    if (saving->source.access == NULL)
        status = weft_exec_state_open(exec, &saving->source.access, why);
    if (status == WEFT_OK)
        status = weft_finite_check_all(saving->options->config->model, &pieces,
                                       saving->options->comm, why);
    snprintf(before, sizeof before, "step %" PRId64 ": ", step);
    if (status == WEFT_E_NUMERIC)
        fail_dead(saving, before, why, err);
    else if (status != WEFT_OK)
        weft_fail_again(err, why, "%s", why->text);
    free(why);
    return status;
}

enum weft_status weft_saving_refuse_loss(const struct weft_saving *saving, int64_t step,
                                         double loss, struct weft_error *err)
{
    struct weft_error *why = calloc(1, sizeof *why);
    if (why == NULL) return weft_fail_memory(err, "an error");
    weft_fail(why, WEFT_E_NUMERIC,
              "step %" PRId64 ": the model is dead: the loss of the held-out data is %g", step,
              weft_units_unsigned_nan(loss));
    enum weft_status status = fail_dead(saving, "", why, err);
    free(why);
    return status;
}

/* After the last step, a failed save loses its result. */
static void fail_last(const struct weft_saving *saving, const struct weft_error *why,
                      struct weft_error *err)
{
    char latest[LATEST_BYTES];
    weft_fail_again(err, why, "%s. It is the last step of this run; %s. Mend that and %s",
                    why->text, name_latest(saving, latest),
                    has_checkpoint(saving) ? "go on with --resume"
                                           : "begin again with --resume=if-any");
}

/* Decides on the outcome of a save so far, and frees *why. */
static enum weft_status judge_save(struct weft_saving *saving, enum weft_status status,
                                   struct weft_error *why, struct weft_error *err)
{
    bool required = saving->train->checkpoint.required;
    char latest[LATEST_BYTES];
    if (status == WEFT_E_IO && !required && saving->pending_step == saving->last_step) {
        fail_last(saving, why, err);
    } else if (status == WEFT_E_IO && !required) {
        if (saving->rank == 0)
            weft_log(WEFT_LOG_WARNING,
                     "%s. Training goes on; %s (train.checkpoint.required ends the run instead)",
                     why->text, name_latest(saving, latest));
        saving->pending_step = -1;
        status = WEFT_OK;
    } else if (status == WEFT_E_NUMERIC) {
        fail_dead(saving, "", why, err);
    } else if (status != WEFT_OK) {
        weft_fail_again(err, why, "%s", why->text);
    }
    free(why);
    if (status != WEFT_OK || saving->pending_step < 0 || !weft_saver_is_idle(saving->saver))
        return status;
    return tell_saved(saving, err);
}

static enum weft_status catch_up(struct weft_saving *saving, bool finish, struct weft_error *err)
{
    if (saving->saver == NULL || saving->pending_step < 0) return WEFT_OK;
    struct weft_error *why = calloc(1, sizeof *why);
    if (why == NULL) return weft_fail_memory(err, "an error");
    int64_t begin_ns = weft_clock_now_ns();
    enum weft_status status = weft_saver_catch_up(saving->saver, finish, why);
    saving->stalled_ns += weft_clock_now_ns() - begin_ns;
    return judge_save(saving, status, why, err);
}

enum weft_status weft_saving_catch_up(struct weft_saving *saving, struct weft_error *err)
{
    return catch_up(saving, false, err);
}

static enum weft_status settle_progress(struct weft_saving *saving, struct weft_exec *exec,
                                        struct weft_error *err)
{
    WEFT_TRY(weft_exec_settle(exec, err));
    WEFT_TRY(weft_exec_fingerprint(exec, &saving->progress.parameters, err));
    saving->progress.loss_scale = weft_exec_loss_scale(exec).scale;
    saving->progress.good_steps = weft_exec_loss_scale(exec).good_steps;
    return WEFT_OK;
}

/* Keeps the step in host memory. A save in the background has read its state by now
 * (weft_saving_catch_up). A failure leaves the generation before it. */
static enum weft_status keep_step(struct weft_saving *saving, struct weft_exec *exec,
                                  struct weft_error *err)
{
    const struct weft_save_source pieces = {&saving->source, rewind_source, next_piece, read_piece};
    WEFT_TRY(settle_progress(saving, exec, err));
    struct weft_error *why = calloc(1, sizeof *why);
    if (why == NULL) return weft_fail_memory(err, "an error");
    enum weft_status status = weft_keeping_save(saving->keeping, &saving->progress, &pieces, why);
    if (status == WEFT_OK) saving->kept_step = saving->progress.step;
    if (status == WEFT_E_IO && !saving->train->checkpoint.required) {
        if (saving->rank == 0 && saving->kept_step > 0)
            weft_log(WEFT_LOG_WARNING, "%s. Training goes on, and host memory has step %" PRId64,
                     why->text, saving->kept_step);
        else if (saving->rank == 0)
            weft_log(WEFT_LOG_WARNING,
                     "%s. Training goes on, and host memory has no checkpoint of this start",
                     why->text);
        status = WEFT_OK;
    } else if (status == WEFT_E_NUMERIC) {
        fail_dead(saving, "", why, err);
    } else if (status != WEFT_OK) {
        weft_fail_again(err, why, "%s", why->text);
    }
    free(why);
    return status;
}

static enum weft_status save_step(struct weft_saving *saving, struct weft_exec *exec, int64_t step,
                                  bool background, struct weft_error *err)
{
    const struct weft_save_source pieces = {&saving->source, rewind_source, next_piece, read_piece};
    WEFT_TRY(catch_up(saving, true, err));
    WEFT_TRY(settle_progress(saving, exec, err));
    struct weft_error *why = calloc(1, sizeof *why);
    if (why == NULL) return weft_fail_memory(err, "an error");
    int64_t begin_ns = weft_clock_now_ns();
    saving->pending_step = step;
    enum weft_status status = background
                                  ? weft_saver_begin(saving->saver, &saving->progress, &pieces, why)
                                  : weft_saver_save(saving->saver, &saving->progress, &pieces, why);
    saving->stalled_ns = weft_clock_now_ns() - begin_ns;
    return judge_save(saving, status, why, err);
}

static bool is_kept(const struct weft_saving *saving, int64_t step)
{
    return saving->keeping != NULL && step % saving->train->checkpoint.host == 0;
}

bool weft_saving_meets(const struct weft_saving *saving, int64_t step)
{
    const int64_t every = saving->train->checkpoint.every;
    return is_kept(saving, step) || saving->pending_step >= 0 || (every > 0 && step % every == 0);
}

enum weft_status weft_saving_after(struct weft_saving *saving, struct weft_exec *exec, int64_t step,
                                   bool last, struct weft_error *err)
{
    int64_t every = saving->train->checkpoint.every;
    bool due = every > 0 && step % every == 0;
    if (step > saving->progress.step) {
        saving->progress.updates += step - saving->progress.step;
        int64_t samples = step_samples(saving) * (step - saving->progress.step);
        saving->progress.samples += samples;
        saving->progress.tokens += samples * saving->train->seq_len;
        saving->progress.step = step;
    }
    if (is_kept(saving, step) && !last) WEFT_TRY(keep_step(saving, exec, err));
    if (saving->saver == NULL) return last ? look_at_last(saving, exec, step, err) : WEFT_OK;
    if (last && saving->train->checkpoint.at_end) due = true;
    if (last) saving->last_step = step;
    bool begun = saving->pending_step == step || saving->saved_step == step;
    if (due && !begun)
        WEFT_TRY(
            save_step(saving, exec, step, !last && saving->train->checkpoint.asynchronous, err));
    if (!last) return WEFT_OK;
    WEFT_TRY(catch_up(saving, true, err));
    return saving->saved_step == step ? WEFT_OK : look_at_last(saving, exec, step, err);
}
