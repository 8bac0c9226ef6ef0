/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* accept4 */
#include "runtime/comm/mpi/lifeline.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

enum {
    MOST_STRANGERS =
        16,        /* connections that have not proven themselves; a new one ends the oldest */
    LOOK_MS = 250, /* after a loss */
    TRY_NS = 1000000000, /* for an address to answer */
    PAUSE_NS = 50000000, /* between two rounds over the addresses */
    GOOD_BYE = -1,
};

/* A rank's first message. */
struct hello {
    unsigned char token[WEFT_LIFELINE_TOKEN_BYTES];
    int32_t rank; /* in network order */
};

struct stranger {
    int fd; /* -1: free */
    size_t got;
    int64_t since_ns;
    unsigned char bytes[sizeof(struct hello)];
};

struct weft_lifeline {
    struct weft_lifeline_invitation invitation;
    int32_t rank, n_lines;
    int wake, listener; /* -1: none */
    int *lines;         /* rank 0: of each rank; otherwise one, to rank 0. -1: none, or left */
    struct pollfd *polled;
    struct stranger strangers[MOST_STRANGERS];
    pthread_t thread;
    bool has_thread;
    atomic_bool leaves;
    _Atomic int32_t lost, joined;
    void *context;
    void (*_Atomic look)(void *context); /* NULL: none */
};

static void close_descriptor(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

/* Takes the same time wherever the tokens differ. */
static bool tokens_are_equal(const unsigned char *a, const unsigned char *b)
{
    unsigned char differs = 0;
    for (int i = 0; i < WEFT_LIFELINE_TOKEN_BYTES; i++)
        differs |= a[i] ^ b[i];
    return differs == 0;
}

static void send_number(int fd, int32_t number)
{
    const uint32_t bytes = htonl((uint32_t)number);
    /* A peer that cannot take four bytes is gone. */
    (void)!send(fd, &bytes, sizeof bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Rank 0's thread */

static void tell_lost(struct weft_lifeline *line, int32_t rank)
{
    int32_t none = -1;
    if (!atomic_compare_exchange_strong(&line->lost, &none, rank)) return;
    for (int32_t i = 0; line->rank == 0 && i < line->n_lines; i++)
        if (line->lines[i] >= 0) send_number(line->lines[i], rank);
}

static void take_stranger(struct weft_lifeline *line)
{
    const int fd = accept4(line->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    struct stranger *place = &line->strangers[0];
    for (int i = 0; i < MOST_STRANGERS && place->fd >= 0; i++) {
        struct stranger *other = &line->strangers[i];
        if (other->fd < 0 || other->since_ns < place->since_ns) place = other;
    }
    close_descriptor(&place->fd);
    *place = (struct stranger){.fd = fd, .since_ns = weft_clock_now_ns()};
}

static void admit_rank(struct weft_lifeline *line, int32_t rank, int fd)
{
    const unsigned char *answer = line->invitation.answer;
    if (send(fd, answer, WEFT_LIFELINE_TOKEN_BYTES, MSG_NOSIGNAL) != WEFT_LIFELINE_TOKEN_BYTES) {
        close(fd);
        return;
    }
    line->lines[rank] = fd;
    const int32_t lost = atomic_load(&line->lost);
    if (lost >= 0) send_number(fd, lost);
    if (atomic_fetch_add(&line->joined, 1) + 1 == line->n_lines) close_descriptor(&line->listener);
}

static void hear_stranger(struct weft_lifeline *line, struct stranger *stranger)
{
    struct hello hello;
    const size_t missing = sizeof hello - stranger->got;
    const ssize_t n = recv(stranger->fd, stranger->bytes + stranger->got, missing, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n > 0) stranger->got += (size_t)n;
    if (n > 0 && stranger->got < sizeof hello) return;
    const int fd = stranger->fd;
    stranger->fd = -1;
    memcpy(&hello, stranger->bytes, sizeof hello);
    const int64_t rank = (int32_t)ntohl((uint32_t)hello.rank);
    if (n > 0 && tokens_are_equal(hello.token, line->invitation.token) && rank > 0 &&
        rank < line->n_lines && line->lines[rank] < 0)
        admit_rank(line, (int32_t)rank, fd);
    else
        close(fd);
}

/* A rank says nothing but good-bye. */
static void hear_rank(struct weft_lifeline *line, int32_t rank)
{
    uint32_t word = 0;
    const ssize_t n = recv(line->lines[rank], &word, sizeof word, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    close_descriptor(&line->lines[rank]);
    if (n != (ssize_t)sizeof word || (int32_t)ntohl(word) != GOOD_BYE) tell_lost(line, rank);
}

static int poll_descriptor(struct pollfd *place, int fd)
{
    *place = (struct pollfd){.fd = fd, .events = POLLIN};
    return fd;
}

/* Waits for something to hear. */
static bool poll_line(struct weft_lifeline *line, int32_t descriptors)
{
    const bool is_lost = atomic_load(&line->lost) >= 0;
    const int found = poll(line->polled, (nfds_t)descriptors, is_lost ? LOOK_MS : -1);
    void (*look)(void *) = atomic_load(&line->look); /* it may come after the loss */
    if (found == 0 && look != NULL) look(line->context);
    return found > 0;
}

static void watch_ranks(struct weft_lifeline *line)
{
    struct pollfd *strangers = &line->polled[2], *lines = strangers + MOST_STRANGERS;
    poll_descriptor(&line->polled[0], line->wake);
    poll_descriptor(&line->polled[1], line->listener);
    for (int i = 0; i < MOST_STRANGERS; i++)
        poll_descriptor(&strangers[i], line->strangers[i].fd);
    for (int32_t i = 0; i < line->n_lines; i++)
        poll_descriptor(&lines[i], line->lines[i]);
    if (!poll_line(line, 2 + MOST_STRANGERS + line->n_lines)) return;
    for (int32_t i = 0; i < line->n_lines; i++)
        if (lines[i].revents != 0) hear_rank(line, i);
    for (int i = 0; i < MOST_STRANGERS; i++)
        if (strangers[i].revents != 0) hear_stranger(line, &line->strangers[i]);
    if (line->listener >= 0 && line->polled[1].revents != 0) take_stranger(line);
}

/* The thread of another rank */

static void watch_rank_0(struct weft_lifeline *line)
{
    uint32_t word = 0;
    poll_descriptor(&line->polled[0], line->wake);
    poll_descriptor(&line->polled[1], line->lines[0]);
    if (!poll_line(line, 2) || line->polled[1].revents == 0) return;
    const ssize_t n = recv(line->lines[0], &word, sizeof word, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    const int32_t number = n == (ssize_t)sizeof word ? (int32_t)ntohl(word) : 0;
    if (number >= 0) tell_lost(line, number);
    if (n != (ssize_t)sizeof word || number == GOOD_BYE) close_descriptor(&line->lines[0]);
}

static void *run_watch(void *argument)
{
    struct weft_lifeline *line = argument;
    while (!atomic_load(&line->leaves)) {
        if (line->rank == 0)
            watch_ranks(line);
        else
            watch_rank_0(line);
    }
    return NULL;
}

/* Life */

static enum weft_status make_lifeline(int32_t rank, int32_t n_lines, struct weft_lifeline **out,
                                      struct weft_error *err)
{
    struct weft_lifeline *line = calloc(1, sizeof *line);
    if (line == NULL) return weft_fail_memory(err, "a lifeline");
    line->rank = rank;
    line->n_lines = n_lines;
    line->listener = -1;
    atomic_init(&line->lost, -1);
    atomic_init(&line->joined, 1);
    line->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    line->lines = calloc((size_t)n_lines, sizeof *line->lines);
    line->polled = calloc((size_t)n_lines + 2 + MOST_STRANGERS, sizeof *line->polled);
    for (int i = 0; i < MOST_STRANGERS; i++)
        line->strangers[i].fd = -1;
    for (int32_t i = 0; line->lines != NULL && i < n_lines; i++)
        line->lines[i] = -1;
    *out = line;
    if (line->lines == NULL || line->polled == NULL) return weft_fail_memory(err, "a lifeline");
    if (line->wake >= 0) return WEFT_OK;
    return weft_fail(err, WEFT_E_SYSTEM, "eventfd: %s", strerror(errno));
}

static enum weft_status start_watch(struct weft_lifeline *line, struct weft_error *err)
{
    const int code = pthread_create(&line->thread, NULL, run_watch, line);
    line->has_thread = code == 0;
    if (code == 0) return WEFT_OK;
    return weft_fail(err, WEFT_E_SYSTEM, "the thread of the lifelines: %s", strerror(code));
}

static void add_address(struct weft_lifeline_invitation *invitation, const struct sockaddr *address)
{
    if (invitation->n_addresses == WEFT_LIFELINE_ADDRESSES) return;
    unsigned char *to = invitation->addresses[invitation->n_addresses].bytes;
    invitation->addresses[invitation->n_addresses].family = address->sa_family;
    if (address->sa_family == AF_INET) {
        memcpy(to, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
    } else {
        memcpy(to, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, 16);
    }
    invitation->n_addresses++;
}

/* Link-local addresses need an interface's number, which differs between hosts. */
static bool is_reachable(const struct ifaddrs *interface)
{
    const struct sockaddr *address = interface->ifa_addr;
    if (address == NULL || !(interface->ifa_flags & IFF_UP)) return false;
    if (interface->ifa_flags & IFF_LOOPBACK) return false;
    if (address->sa_family == AF_INET) return true;
    return address->sa_family == AF_INET6 &&
           !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

static enum weft_status list_addresses(struct weft_lifeline_invitation *invitation,
                                       struct weft_error *err)
{
    struct ifaddrs *interfaces = NULL;
    const struct sockaddr_in loopback = {.sin_family = AF_INET,
                                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (getifaddrs(&interfaces) != 0)
        return weft_fail(err, WEFT_E_SYSTEM, "the host's addresses: %s", strerror(errno));
    add_address(invitation, (const struct sockaddr *)&loopback);
    for (const struct ifaddrs *i = interfaces; i != NULL; i = i->ifa_next)
        if (is_reachable(i)) add_address(invitation, i->ifa_addr);
    freeifaddrs(interfaces);
    return WEFT_OK;
}

/* A socket for IPv6 takes IPv4 too. Systems without IPv6 have IPv4 alone. */
static int open_listener(struct sockaddr_in6 *bound)
{
    const int off = 0;
    const struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_addr = in6addr_any};
    const struct sockaddr_in any4 = {.sin_family = AF_INET};
    socklen_t length = sizeof *bound;
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&any, sizeof any) != 0) {
        close_descriptor(&fd);
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0 && bind(fd, (const struct sockaddr *)&any4, sizeof any4) != 0)
            close_descriptor(&fd);
    }
    if (fd >= 0 &&
        (listen(fd, SOMAXCONN) != 0 || getsockname(fd, (struct sockaddr *)bound, &length) != 0))
        close_descriptor(&fd);
    return fd;
}

static enum weft_status draw_token(unsigned char *token, struct weft_error *err)
{
    if (getrandom(token, WEFT_LIFELINE_TOKEN_BYTES, 0) == WEFT_LIFELINE_TOKEN_BYTES) return WEFT_OK;
    return weft_fail(err, WEFT_E_SYSTEM, "getrandom: %s", strerror(errno));
}

static enum weft_status listen_for_ranks(struct weft_lifeline *line, struct weft_error *err)
{
    struct weft_lifeline_invitation *invitation = &line->invitation;
    struct sockaddr_in6 bound;
    WEFT_TRY(draw_token(invitation->token, err));
    WEFT_TRY(draw_token(invitation->answer, err));
    WEFT_TRY(list_addresses(invitation, err));
    line->listener = open_listener(&bound);
    if (line->listener < 0)
        return weft_fail(err, WEFT_E_SYSTEM, "a TCP socket that listens: %s", strerror(errno));
    /* The port has the same place in addresses of both families. */
    invitation->port = ntohs(bound.sin6_port);
    return WEFT_OK;
}

enum weft_status weft_lifeline_open(int32_t ranks, struct weft_lifeline **out,
                                    struct weft_lifeline_invitation *invitation,
                                    struct weft_error *err)
{
    struct weft_lifeline *line = NULL;
    enum weft_status status = make_lifeline(0, ranks, &line, err);
    if (status == WEFT_OK) status = listen_for_ranks(line, err);
    if (status == WEFT_OK) status = start_watch(line, err);
    if (status != WEFT_OK) {
        weft_lifeline_leave(line);
        return status;
    }
    *invitation = line->invitation;
    *out = line;
    return WEFT_OK;
}

/* Joining */

static socklen_t socket_address(const struct weft_lifeline_invitation *invitation, int32_t i,
                                struct sockaddr_storage *out)
{
    const in_port_t port = htons((uint16_t)invitation->port);
    memset(out, 0, sizeof *out);
    if (invitation->addresses[i].family == AF_INET) {
        struct sockaddr_in *to = (struct sockaddr_in *)out;
        to->sin_family = AF_INET;
        to->sin_port = port;
        memcpy(&to->sin_addr, invitation->addresses[i].bytes, 4);
        return sizeof *to;
    }
    struct sockaddr_in6 *to = (struct sockaddr_in6 *)out;
    to->sin6_family = AF_INET6;
    to->sin6_port = port;
    memcpy(&to->sin6_addr, invitation->addresses[i].bytes, 16);
    return sizeof *to;
}

static bool await_descriptor(int fd, short events, int64_t end_ns)
{
    struct pollfd polled = {.fd = fd, .events = events};
    for (;;) {
        const int64_t left_ns = end_ns - weft_clock_now_ns();
        if (left_ns <= 0) return false;
        if (poll(&polled, 1, (int)(left_ns / 1000000) + 1) > 0) return true;
    }
}

/* Sends the hello and reads the answer. */
static bool is_admitted(int fd, const struct weft_lifeline_invitation *invitation, int32_t rank,
                        int64_t end_ns)
{
    struct hello hello = {.rank = (int32_t)htonl((uint32_t)rank)};
    unsigned char answer[WEFT_LIFELINE_TOKEN_BYTES];
    size_t got = 0;
    memcpy(hello.token, invitation->token, sizeof hello.token);
    if (!await_descriptor(fd, POLLOUT, end_ns)) return false;
    if (send(fd, &hello, sizeof hello, MSG_NOSIGNAL) != (ssize_t)sizeof hello) return false;
    while (got < sizeof answer) {
        if (!await_descriptor(fd, POLLIN, end_ns)) return false;
        const ssize_t n = recv(fd, answer + got, sizeof answer - got, 0);
        if (n <= 0) return false;
        got += (size_t)n;
    }
    return tokens_are_equal(answer, invitation->answer);
}

static int try_address(const struct weft_lifeline_invitation *invitation, int32_t i, int32_t rank)
{
    struct sockaddr_storage address;
    const socklen_t length = socket_address(invitation, i, &address);
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    if ((connect(fd, (const struct sockaddr *)&address, length) != 0 && errno != EINPROGRESS) ||
        !is_admitted(fd, invitation, rank, weft_clock_now_ns() + TRY_NS))
        close_descriptor(&fd);
    return fd;
}

static enum weft_status fail_unreached(const struct weft_lifeline_invitation *invitation,
                                       int32_t first, int32_t end, struct weft_error *err)
{
    struct weft_text tried;
    weft_text_init(&tried);
    for (int32_t i = first; i < end; i++) {
        char address[INET6_ADDRSTRLEN] = "";
        inet_ntop(invitation->addresses[i].family, invitation->addresses[i].bytes, address,
                  sizeof address);
        weft_text_addf(&tried, "%s%s", i > first ? ", " : "", address);
    }
    weft_fail(err, WEFT_E_LOST, "rank 0 does not answer on TCP port %d of %s", invitation->port,
              tried.length > 0 ? weft_text_chars(&tried) : "any address");
    weft_text_finish(&tried);
    return WEFT_E_LOST;
}

static enum weft_status connect_line(struct weft_lifeline *line, bool same_host,
                                     int64_t deadline_ns, struct weft_error *err)
{
    const struct weft_lifeline_invitation *invitation = &line->invitation;
    const int32_t first = same_host ? 0 : 1;
    const int32_t end = same_host ? 1 : invitation->n_addresses;
    const int64_t end_ns = weft_clock_now_ns() + deadline_ns;
    for (;;) {
        for (int32_t i = first; i < end && line->lines[0] < 0; i++)
            line->lines[0] = try_address(invitation, i, line->rank);
        if (line->lines[0] >= 0) return WEFT_OK;
        if (weft_clock_now_ns() >= end_ns) return fail_unreached(invitation, first, end, err);
        weft_clock_sleep_until_ns(weft_clock_now_ns() + PAUSE_NS);
    }
}

enum weft_status weft_lifeline_join(const struct weft_lifeline_invitation *invitation, int32_t rank,
                                    bool same_host, int64_t deadline_ns, struct weft_lifeline **out,
                                    struct weft_error *err)
{
    struct weft_lifeline *line = NULL;
    enum weft_status status = make_lifeline(rank, 1, &line, err);
    if (status == WEFT_OK) {
        line->invitation = *invitation;
        status = connect_line(line, same_host, deadline_ns, err);
    }
    if (status == WEFT_OK) status = start_watch(line, err);
    if (status != WEFT_OK)
        weft_lifeline_leave(line);
    else
        *out = line;
    return status;
}

int32_t weft_lifeline_lost(const struct weft_lifeline *line)
{
    return line != NULL ? atomic_load(&line->lost) : -1;
}

void weft_lifeline_look(struct weft_lifeline *line, void (*look)(void *context), void *context)
{
    if (line == NULL) return;
    line->context = context;
    atomic_store(&line->look, look);
}

int32_t weft_lifeline_joined(const struct weft_lifeline *line)
{
    return atomic_load(&line->joined);
}

void weft_lifeline_leave(struct weft_lifeline *line)
{
    const uint64_t one = 1;
    if (line == NULL) return;
    atomic_store(&line->leaves, true);
    if (line->has_thread) {
        (void)!write(line->wake, &one, sizeof one);
        pthread_join(line->thread, NULL);
    }
    for (int32_t i = 0; line->lines != NULL && i < line->n_lines; i++) {
        if (line->lines[i] >= 0) send_number(line->lines[i], GOOD_BYE);
        close_descriptor(&line->lines[i]);
    }
    for (int i = 0; i < MOST_STRANGERS; i++)
        close_descriptor(&line->strangers[i].fd);
    close_descriptor(&line->listener);
    close_descriptor(&line->wake);
    free(line->lines);
    free(line->polled);
    free(line);
}
