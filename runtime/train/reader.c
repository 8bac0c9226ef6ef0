/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/reader.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/machine/mappings.h"

/* The caller's batch, the next one, and the one being read. */
enum { BATCHES = WEFT_READER_AHEAD + 1 };

struct batch {
    int64_t step; /* that fills it, or will; 0: none */
    bool ready;
    void *input;
    int32_t *targets;
};

struct weft_reader {
    struct weft_reader_options options;
    struct batch batches[BATCHES]; /* step s has batch s % BATCHES */
    pthread_t thread;
    bool started;
    pthread_mutex_t mutex; /* guards the members below, and step and ready */
    pthread_cond_t changed;
    int64_t next, upto; /* the thread reads these steps, in order */
    int64_t reading;    /* step in progress; 0: the thread is idle */
    bool leaves;
    struct weft_error error; /* of the first batch that failed; none is read after it */
};

static struct batch *batch_of(struct weft_reader *r, int64_t step)
{
    return &r->batches[step % BATCHES];
}

static bool is_ready(struct weft_reader *r, int64_t step)
{
    return batch_of(r, step)->step == step && batch_of(r, step)->ready;
}

static bool has_work(const struct weft_reader *r)
{
    return r->next <= r->upto && r->error.status == WEFT_OK;
}

/* Reads the next step's batch. The mutex must be held; it is free while the data are read. */
static void read_next(struct weft_reader *r)
{
    const struct weft_reader_options *o = &r->options;
    struct weft_error err = {0};
    struct batch *batch = batch_of(r, r->next);
    *batch = (struct batch){.step = r->next, .input = batch->input, .targets = batch->targets};
    r->reading = r->next;
    pthread_mutex_unlock(&r->mutex);
    enum weft_status status =
        weft_data_fill_share(o->data, batch->step, &o->share, batch->input, batch->targets, &err);
    pthread_mutex_lock(&r->mutex);
    if (status != WEFT_OK) r->error = err;
    batch->ready = status == WEFT_OK;
    r->reading = 0;
    r->next++;
    pthread_cond_broadcast(&r->changed);
}

static void *run_reader(void *argument)
{
    struct weft_reader *r = argument;
    pthread_mutex_lock(&r->mutex);
    while (!r->leaves) {
        if (has_work(r))
            read_next(r);
        else
            pthread_cond_wait(&r->changed, &r->mutex);
    }
    pthread_mutex_unlock(&r->mutex);
    return NULL;
}

/* Blocks all signals: they belong to the caller's threads. */
static enum weft_status start_thread(struct weft_reader *r, struct weft_error *err)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&r->thread, NULL, run_reader, r);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    r->started = error == 0;
    if (r->started) return WEFT_OK;
    char reason[WEFT_REFUSAL_BYTES];
    weft_thread_refusal(error, reason, sizeof reason);
    return weft_fail(err, WEFT_E_SYSTEM, "cannot start a thread that reads the data: %s", reason);
}

/* Wants the step's batch and those after it. The mutex must be held. */
static void want_batches(struct weft_reader *r, int64_t step)
{
    const int64_t ahead = step + WEFT_READER_AHEAD, last = r->options.last_step;
    r->upto = ahead <= last ? ahead : step < last ? last : step;
    pthread_cond_broadcast(&r->changed);
}

enum weft_status weft_reader_create(const struct weft_reader_options *options,
                                    struct weft_reader **out, struct weft_error *err)
{
    struct weft_reader *r = calloc(1, sizeof *r);
    if (r == NULL) return weft_fail_memory(err, "the reader");
    r->options = *options;
    pthread_mutex_init(&r->mutex, NULL);
    pthread_cond_init(&r->changed, NULL);
    enum weft_status status = WEFT_OK;
    for (int i = 0; i < BATCHES && status == WEFT_OK; i++) {
        r->batches[i].input = malloc((size_t)options->input_bytes);
        r->batches[i].targets = malloc((size_t)options->target_bytes);
        if (r->batches[i].input == NULL || r->batches[i].targets == NULL)
            status = weft_fail_memory(err, "a batch");
    }
    r->next = options->first_step; /* above `upto`, so the thread begins idle */
    if (status == WEFT_OK) status = start_thread(r, err);
    if (status != WEFT_OK) {
        weft_reader_destroy(r);
        return status;
    }
    pthread_mutex_lock(&r->mutex);
    want_batches(r, options->first_step);
    pthread_mutex_unlock(&r->mutex);
    *out = r;
    return WEFT_OK;
}

void weft_reader_destroy(struct weft_reader *r)
{
    if (r == NULL) return;
    pthread_mutex_lock(&r->mutex);
    r->leaves = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->mutex);
    if (r->started) pthread_join(r->thread, NULL);
    for (int i = 0; i < BATCHES; i++) {
        free(r->batches[i].input);
        free(r->batches[i].targets);
    }
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->mutex);
    free(r);
}

/* Makes `step` the next to be read. The mutex must be held. */
static void seek_step(struct weft_reader *r, int64_t step)
{
    r->upto = 0;
    while (r->reading != 0)
        pthread_cond_wait(&r->changed, &r->mutex);
    r->next = step;
}

/* Waits until the batch is read, or cannot be. Returns the time. The mutex must be held. */
static int64_t wait_for(struct weft_reader *r, int64_t step)
{
    if (is_ready(r, step)) return 0;
    const int64_t start_ns = weft_clock_now_ns();
    while (!is_ready(r, step) && r->error.status == WEFT_OK)
        pthread_cond_wait(&r->changed, &r->mutex);
    return weft_clock_now_ns() - start_ns;
}

enum weft_status weft_reader_take(struct weft_reader *r, int64_t step, const void **input,
                                  const int32_t **targets, int64_t *wait_ns, struct weft_error *err)
{
    enum weft_status status = WEFT_OK;
    pthread_mutex_lock(&r->mutex);
    if (r->next != step && !(r->next > step && is_ready(r, step))) seek_step(r, step);
    want_batches(r, step);
    *wait_ns = wait_for(r, step);
    if (is_ready(r, step)) {
        *input = batch_of(r, step)->input;
        *targets = batch_of(r, step)->targets;
    } else {
        status = weft_fail(err, r->error.status, "%s", r->error.text);
    }
    pthread_mutex_unlock(&r->mutex);
    return status;
}

enum weft_status weft_reader_look_ahead(struct weft_reader *r, int64_t step, int64_t *wait_ns,
                                        struct weft_error *err)
{
    enum weft_status status = WEFT_OK;
    *wait_ns = 0;
    if (step >= r->options.last_step) return WEFT_OK;
    pthread_mutex_lock(&r->mutex);
    *wait_ns = wait_for(r, step + 1);
    if (!is_ready(r, step + 1)) status = weft_fail(err, r->error.status, "%s", r->error.text);
    pthread_mutex_unlock(&r->mutex);
    return status;
}
