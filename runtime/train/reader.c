#include "runtime/train/reader.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/machine/mappings.h"

enum { BATCHES = 2 };

struct batch {
    int64_t step; /* that fills it, or will; 0: none */
    bool ready;
    void *input;
    int32_t *targets;
};

struct weft_reader {
    struct weft_reader_options options;
    struct batch batches[BATCHES];
    pthread_t thread;
    bool started;
    pthread_mutex_t mutex; /* guards the members below, and step and ready */
    pthread_cond_t changed;
    struct batch *wanted; /* to be filled; NULL: the thread is idle */
    bool leaves;
    struct weft_error error; /* of the first batch that failed */
};

static void *run(void *argument)
{
    struct weft_reader *r = argument;
    const struct weft_reader_options *o = &r->options;
    pthread_mutex_lock(&r->mutex);
    for (;;) {
        while (r->wanted == NULL && !r->leaves)
            pthread_cond_wait(&r->changed, &r->mutex);
        if (r->leaves) break;
        struct batch *batch = r->wanted;
        struct weft_error err = {0};
        pthread_mutex_unlock(&r->mutex);
        enum weft_status status = weft_data_fill(o->data, batch->step, o->first_sample, o->count,
                                                 batch->input, batch->targets, &err);
        pthread_mutex_lock(&r->mutex);
        if (status != WEFT_OK) r->error = err;
        batch->ready = status == WEFT_OK;
        r->wanted = NULL;
        pthread_cond_broadcast(&r->changed);
    }
    pthread_mutex_unlock(&r->mutex);
    return NULL;
}

/* Blocks all signals: they belong to the caller's threads. */
static enum weft_status start(struct weft_reader *r, struct weft_error *err)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&r->thread, NULL, run, r);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    r->started = error == 0;
    if (r->started) return WEFT_OK;
    char reason[WEFT_REFUSAL_BYTES];
    weft_thread_refusal(error, reason, sizeof reason);
    return weft_fail(err, WEFT_E_SYSTEM, "cannot start a thread that reads the data: %s", reason);
}

/* The mutex must be held. */
static void want(struct weft_reader *r, struct batch *batch, int64_t step)
{
    batch->step = step;
    batch->ready = false;
    r->wanted = batch;
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
    if (status == WEFT_OK) status = start(r, err);
    if (status != WEFT_OK) {
        weft_reader_destroy(r);
        return status;
    }
    pthread_mutex_lock(&r->mutex);
    want(r, &r->batches[0], options->first_step);
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

static struct batch *find(struct weft_reader *r, int64_t step)
{
    for (int i = 0; i < BATCHES; i++) {
        if (r->batches[i].step == step) return &r->batches[i];
    }
    return NULL;
}

/* Waits until the thread is idle and returns the time. The mutex must be held. */
static int64_t wait_until_idle(struct weft_reader *r)
{
    if (r->wanted == NULL) return 0;
    int64_t start_ns = weft_clock_now_ns();
    while (r->wanted != NULL)
        pthread_cond_wait(&r->changed, &r->mutex);
    return weft_clock_now_ns() - start_ns;
}

enum weft_status weft_reader_take(struct weft_reader *r, int64_t step, const void **input,
                                  const int32_t **targets, int64_t *wait_ns, struct weft_error *err)
{
    enum weft_status status = WEFT_OK;
    pthread_mutex_lock(&r->mutex);
    struct batch *batch = find(r, step);
    *wait_ns = batch != NULL && batch->ready ? 0 : wait_until_idle(r);
    if (r->error.status == WEFT_OK && batch == NULL) {
        batch = &r->batches[0];
        want(r, batch, step);
        *wait_ns += wait_until_idle(r);
    }
    if (batch == NULL || !batch->ready) {
        status = weft_fail(err, r->error.status, "%s", r->error.text);
    } else {
        struct batch *other = &r->batches[batch == &r->batches[0]];
        if (other->step != step + 1 && step < r->options.last_step && r->wanted == NULL)
            want(r, other, step + 1);
        *input = batch->input;
        *targets = batch->targets;
    }
    pthread_mutex_unlock(&r->mutex);
    return status;
}
