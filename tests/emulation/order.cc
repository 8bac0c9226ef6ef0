/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/order.h"

#include <algorithm>
#include <map>
#include <vector>

#include "tests/emulation/watch.h"

/* Number of earlier launches of each stream. */
typedef std::map<cudaStream_t, uint32_t> clock_of_streams;

struct stamp {
    cudaStream_t stream;
    uint32_t number; /* in its stream, from 1 on */
    clock_of_streams clock;
};

static std::map<cudaStream_t, clock_of_streams> streams;
static clock_of_streams host;
static std::vector<clock_of_streams> events;
static std::map<uint32_t, struct stamp> launches;

static void add_clock(const clock_of_streams &from, clock_of_streams &to)
{
    for (const auto &entry : from) {
        to[entry.first] = std::max(to[entry.first], entry.second);
    }
}

void emu_order_launch(cudaStream_t stream, uint32_t launch)
{
    clock_of_streams &clock = streams[stream];
    add_clock(host, clock);
    const uint32_t number = ++clock[stream];
    launches[launch] = {stream, number, clock};
}

bool emu_order_is_behind(uint32_t launch, uint32_t earlier)
{
    const struct stamp &a = launches.at(earlier);
    const clock_of_streams &clock = launches.at(launch).clock;
    const auto found = clock.find(a.stream);
    return found != clock.end() && found->second >= a.number;
}

bool emu_order_is_known(uint32_t launch)
{
    const struct stamp &a = launches.at(launch);
    const auto found = host.find(a.stream);
    return found != host.end() && found->second >= a.number;
}

int emu_watch_record(cudaStream_t stream)
{
    events.push_back(streams[stream]);
    return (int)events.size() - 1;
}

void emu_watch_wait(cudaStream_t stream, int event)
{
    add_clock(events.at((size_t)event), streams[stream]);
}

void emu_watch_synchronise(cudaStream_t stream)
{
    add_clock(streams[stream], host);
}
