/* SPDX-License-Identifier: Apache-2.0 */
/* Requests begin in order, end once, and fail together. */
#include "offload/service.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MOST_SERVED = 1000, FREE_NUMBER = -7 /* is served at once, even during a hold */ };

static struct served {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int numbers[MOST_SERVED]; /* of lane 0, in order of their begin */
    int n, fail, released;
    bool hold;
} served = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .fail = -1};

static enum weft_status serve_number(void *context, int32_t lane, void *request,
                                     struct weft_error *err)
{
    const int number = *(int *)request;
    (void)context;
    if (number == FREE_NUMBER) return WEFT_OK;
    pthread_mutex_lock(&served.mutex);
    if (lane == 0) served.numbers[served.n++] = number;
    while (served.hold)
        pthread_cond_wait(&served.changed, &served.mutex);
    pthread_mutex_unlock(&served.mutex);
    return number == served.fail ? weft_fail(err, WEFT_E_IO, "number %d", number) : WEFT_OK;
}

static enum weft_status hang_number(void *context, int32_t lane, const void *request,
                                    struct weft_error *err)
{
    (void)context;
    return weft_fail(err, WEFT_E_HANG, "lane %d hangs at %d", (int)lane, *(const int *)request);
}

static void release_numbers(void *context)
{
    (void)context;
    pthread_mutex_lock(&served.mutex);
    served.released++;
    pthread_cond_broadcast(&served.changed);
    pthread_mutex_unlock(&served.mutex);
}

static struct weft_service *numbers_service(int32_t threads, int32_t requests, int64_t timeout_ns)
{
    const struct weft_service_options options = {.name = "numbers",
                                                 .lanes = 2,
                                                 .threads = threads,
                                                 .requests = requests,
                                                 .request_bytes = sizeof(int),
                                                 .timeout_ns = timeout_ns,
                                                 .serve = serve_number,
                                                 .hang = hang_number,
                                                 .release = release_numbers};
    struct weft_error err = {0};
    struct weft_service *service = NULL;
    cr_assert_eq(weft_service_create(&options, &service, &err), WEFT_OK, "%s", err.text);
    return service;
}

static enum weft_status submit_number(struct weft_service *service, int32_t lane, int number,
                                      int64_t *ticket, struct weft_error *err)
{
    const struct weft_service_part part = {&number, sizeof number};
    return weft_service_submit(service, lane, &part, 1, ticket, err);
}

Test(service, one_thread_serves_in_order)
{
    struct weft_error err = {0};
    struct weft_service *service = numbers_service(1, 3, 0);
    int64_t ticket = -1;
    for (int i = 0; i < 100; i++) {
        cr_assert_eq(submit_number(service, 0, 1000 + i, &ticket, &err), WEFT_OK, "%s", err.text);
        cr_assert_eq(ticket, i);
    }
    cr_assert_eq(weft_service_wait(service, 0, 99, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(served.n, 100);
    for (int i = 0; i < 100; i++) {
        cr_assert_eq(served.numbers[i], 1000 + i);
        cr_assert(weft_service_is_done(service, 0, i));
    }
    cr_assert_eq(weft_service_wait(service, 0, 100, &err), WEFT_E_INTERNAL);
    weft_service_destroy(service);
    cr_assert_eq(served.released, 1);
}

Test(service, the_first_failure_is_everybody_s)
{
    struct weft_error err = {0};
    struct weft_service *service = numbers_service(1, 100, 0);
    int64_t ticket = -1;
    served.fail = 1;
    served.hold = true;
    for (int i = 0; i < 4; i++)
        cr_assert_eq(submit_number(service, 0, i, &ticket, &err), WEFT_OK, "%s", err.text);
    pthread_mutex_lock(&served.mutex);
    served.hold = false;
    pthread_cond_broadcast(&served.changed);
    pthread_mutex_unlock(&served.mutex);
    cr_assert_eq(weft_service_wait(service, 0, ticket, &err), WEFT_E_IO);
    cr_assert_str_eq(err.text, "number 1");
    err = (struct weft_error){0};
    cr_assert_eq(submit_number(service, 1, 9, &ticket, &err), WEFT_E_IO);
    cr_assert_str_eq(err.text, "number 1");
    cr_assert(!weft_service_is_done(service, 0, 0));
    weft_service_destroy(service);
    cr_assert_eq(served.n, 2, "what was queued behind it was served");
}

Test(service, a_request_that_hangs_is_named_and_left_behind)
{
    struct weft_error err = {0};
    struct weft_service *service = numbers_service(1, 2, 20000000);
    int64_t ticket = -1;
    served.hold = true;
    cr_assert_eq(submit_number(service, 1, 41, &ticket, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(submit_number(service, 1, 42, &ticket, &err), WEFT_OK, "%s", err.text);
    /* The lane is full, so submit fails too. */
    cr_assert_eq(submit_number(service, 1, 43, &ticket, &err), WEFT_E_HANG);
    cr_assert_str_eq(err.text, "lane 1 hangs at 41");
    weft_service_destroy(service);
    pthread_mutex_lock(&served.mutex);
    cr_assert_eq(served.released, 0);
    served.hold = false;
    pthread_cond_broadcast(&served.changed);
    while (served.released == 0)
        pthread_cond_wait(&served.changed, &served.mutex);
    pthread_mutex_unlock(&served.mutex);
}

enum { MOST_FED = 30000 };

/* Requests that end at once, until the hang is reported. */
struct feeder {
    struct weft_service *service;
    atomic_bool told;
    bool exhausted;
};

static void *feed(void *argument)
{
    struct feeder *feeder = argument;
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; i < MOST_FED; i++) {
        struct weft_error err = {0};
        int64_t ticket;
        if (atomic_load(&feeder->told)) return NULL;
        if (submit_number(feeder->service, 0, FREE_NUMBER, &ticket, &err) != WEFT_OK) return NULL;
        nanosleep(&pause, NULL);
    }
    feeder->exhausted = true;
    return NULL;
}

Test(service, a_request_is_waited_for_without_older_ones)
{
    struct weft_error err = {0};
    struct weft_service *service = numbers_service(2, 4, INT64_C(20000000000));
    int64_t held = -1, free_one = -1;
    served.hold = true;
    cr_assert_eq(submit_number(service, 0, 41, &held, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(submit_number(service, 0, FREE_NUMBER, &free_one, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_service_wait(service, 0, free_one, &err), WEFT_OK, "%s", err.text);
    cr_assert(weft_service_is_done(service, 0, free_one));
    cr_assert_not(weft_service_is_done(service, 0, held));
    pthread_mutex_lock(&served.mutex);
    served.hold = false;
    pthread_cond_broadcast(&served.changed);
    pthread_mutex_unlock(&served.mutex);
    cr_assert_eq(weft_service_wait(service, 0, held, &err), WEFT_OK, "%s", err.text);
    weft_service_destroy(service);
}

/* Other requests begin and end meanwhile, and its age still counts. */
Test(service, the_oldest_request_is_watched)
{
    struct weft_error err = {0};
    struct feeder feeder = {.service = numbers_service(2, MOST_FED + 2, 300000000)};
    pthread_t thread;
    int64_t ticket = -1;
    served.hold = true;
    cr_assert_eq(submit_number(feeder.service, 0, 41, &ticket, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(pthread_create(&thread, NULL, feed, &feeder), 0);
    cr_assert_eq(weft_service_wait(feeder.service, 0, ticket, &err), WEFT_E_HANG);
    cr_assert_str_eq(err.text, "lane 0 hangs at 41");
    atomic_store(&feeder.told, true);
    pthread_join(thread, NULL);
    cr_assert(!feeder.exhausted, "it was told when nothing else began any more");
    pthread_mutex_lock(&served.mutex);
    served.hold = false;
    pthread_cond_broadcast(&served.changed);
    pthread_mutex_unlock(&served.mutex);
    weft_service_destroy(feeder.service);
}

Test(service, what_hangs_does_not_hold_up_the_end)
{
    struct weft_error err = {0};
    struct weft_service *service = numbers_service(1, 2, 20000000);
    int64_t ticket = -1;
    served.hold = true;
    cr_assert_eq(submit_number(service, 0, 41, &ticket, &err), WEFT_OK, "%s", err.text);
    pthread_mutex_lock(&served.mutex);
    while (served.n == 0) {
        pthread_mutex_unlock(&served.mutex);
        sched_yield();
        pthread_mutex_lock(&served.mutex);
    }
    pthread_mutex_unlock(&served.mutex);
    weft_service_destroy(service);
    cr_assert_eq(served.released, 0);
}

Test(service, what_is_queued_is_dropped_at_the_end)
{
    struct weft_error err = {0};
    for (int round = 0; round < 50; round++) {
        struct weft_service *service = numbers_service(3, 8, 0);
        int64_t ticket;
        served.n = 0;
        for (int i = 0; i < round % 9; i++)
            cr_assert_eq(submit_number(service, i % 2, i, &ticket, &err), WEFT_OK, "%s", err.text);
        weft_service_destroy(service);
        cr_assert_eq(served.released, round + 1);
    }
}

Test(service, counts_that_make_no_service_are_refused)
{
    struct weft_error err = {0};
    struct weft_service *service = NULL;
    struct weft_service_options options = {.name = "none", .lanes = 1, .threads = 0, .requests = 1};
    cr_assert_eq(weft_service_create(&options, &service, &err), WEFT_E_INTERNAL);
    options.threads = 1;
    options.lanes = WEFT_SERVICE_LANES + 1;
    cr_assert_eq(weft_service_create(&options, &service, NULL), WEFT_E_INTERNAL);
    cr_assert_null(service);
    weft_service_destroy(NULL);
}
