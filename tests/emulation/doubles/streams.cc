/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/doubles/double.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>

std::mutex double_door;
std::condition_variable &double_moved = *new std::condition_variable();

/* Never freed: threads of remaining streams use it at the program's end. */
struct streams {
    double_clock issued; /* of all streams ever opened */
    double_clock host;   /* the part that the host has seen complete */
};

static struct streams *streams(void)
{
    static struct streams *const all = new struct streams();
    return all;
}

static void add_clock(const double_clock &from, double_clock &to)
{
    if (to.size() < from.size()) to.resize(from.size());
    for (size_t i = 0; i < from.size(); i++) {
        to[i] = std::max(to[i], from[i]);
    }
}

static long asked_of_environment(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? atol(text) : otherwise;
}

/* Delays one operation in four (xorshift64, Marsaglia 2003). */
static void be_late(struct double_stream *stream)
{
    static const long most_us = asked_of_environment("WEFT_DOUBLE_DELAY_US", 100);
    stream->random ^= stream->random << 13;
    stream->random ^= stream->random >> 7;
    stream->random ^= stream->random << 17;
    if (most_us <= 0 || stream->random >> 62 != 0) return;
    const long us = (long)(stream->random >> 20) % most_us;
    std::this_thread::sleep_for(std::chrono::microseconds(labs(us)));
}

static void run_operation(const struct double_operation &operation)
{
    std::shared_lock<std::shared_mutex> running(double_running(), std::defer_lock);
    if (!operation.waits) running.lock();
    if (operation.run && !double_is_broken()) operation.run(operation.id);
}

/* The host writes a word without a call, so it is polled. The stream learns all that the host has
 * seen complete by then. */
static void wait_for_host(struct double_stream *stream, const struct double_operation &operation,
                          std::unique_lock<std::mutex> &door)
{
    if (!operation.ready) return;
    while (!operation.ready() && !double_is_broken()) {
        double_moved.wait_for(door, std::chrono::microseconds(50));
    }
    add_clock(streams()->host, stream->acquired);
}

static void run_stream(struct double_stream *stream)
{
    std::unique_lock<std::mutex> door(double_door);
    for (;;) {
        double_moved.wait(door, [&] { return stream->ends || !stream->queue.empty(); });
        if (stream->queue.empty()) return;
        const struct double_operation operation = stream->queue.front();
        stream->queue.pop_front();
        double_moved.wait(door, [&] {
            return operation.awaited == NULL || operation.awaited->reached || double_is_broken();
        });
        if (operation.awaited != NULL) add_clock(operation.awaited->acquired, stream->acquired);
        wait_for_host(stream, operation, door);
        if (!stream->acquired.empty()) double_order_acquire(operation.id, stream->acquired);
        door.unlock();
        be_late(stream);
        run_operation(operation);
        door.lock();
        stream->done++;
        double_moved.notify_all();
    }
}

struct double_stream *double_stream_open(void)
{
    static const long seed = asked_of_environment("WEFT_DOUBLE_SEED", 1);
    struct double_stream *stream = new struct double_stream();
    stream->index = (uint32_t)streams()->issued.size();
    streams()->issued.push_back(0);
    stream->random = ((uint64_t)seed * 1000003 + stream->index) * 2 + 1;
    stream->worker = std::thread(run_stream, stream);
    return stream;
}

void double_stream_close(struct double_stream *stream, std::unique_lock<std::mutex> &door)
{
    stream->ends = true;
    double_moved.notify_all();
    if (!stream->queue.empty() || !double_stream_is_idle(stream)) {
        /* As in CUDA, closing does not wait: issued work continues, and the stream is never
         * freed. */
        stream->worker.detach();
        return;
    }
    door.unlock();
    stream->worker.join();
    door.lock();
    delete stream;
}

bool double_stream_is_idle(const struct double_stream *stream)
{
    return stream->done == stream->issued;
}

void double_issue(struct double_stream *stream, const char *what,
                  std::function<void(uint32_t id)> run, std::shared_ptr<double_mark> awaited,
                  bool waits, std::function<bool(void)> ready)
{
    add_clock(streams()->host, stream->clock);
    if (awaited != NULL) add_clock(awaited->clock, stream->clock);
    if (stream->clock.size() <= stream->index) stream->clock.resize(stream->index + 1);
    stream->clock[stream->index]++;
    streams()->issued[stream->index] = ++stream->issued;
    const uint32_t id = double_order_add(stream->index, stream->clock, what);
    if (run && !waits) stream->behind = what;
    stream->queue.push_back({id, run, awaited, waits, ready});
    double_moved.notify_all();
}

bool double_host_knows_all(void)
{
    const double_clock &host = streams()->host, &issued = streams()->issued;
    for (size_t i = 0; i < issued.size(); i++) {
        if ((i < host.size() ? host[i] : 0) < issued[i]) return false;
    }
    return true;
}

void double_host_learns(const double_clock &clock)
{
    add_clock(clock, streams()->host);
}
