/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces watch.cc and order.cc in programs without watched kernels. */
#include "tests/emulation/watch.h"

bool emu_watched(void)
{
    return false;
}

void emu_watch_operand(const char *name, const void *data, size_t bytes, enum emu_mode mode)
{
    (void)name;
    (void)data;
    (void)bytes;
    (void)mode;
}

void emu_watch_release(const void *data)
{
    (void)data;
}

int emu_watch_record(cudaStream_t stream)
{
    (void)stream;
    return 0;
}

void emu_watch_wait(cudaStream_t stream, int event)
{
    (void)stream;
    (void)event;
}

void emu_watch_synchronise(cudaStream_t stream)
{
    (void)stream;
}

void emu_watch_host(const void *data, size_t bytes, bool write)
{
    (void)data;
    (void)bytes;
    (void)write;
}

struct emu_traffic emu_watch_traffic(const char *name)
{
    (void)name;
    return emu_traffic();
}

void emu_watch_limit(struct emu_watch_limits limits)
{
    (void)limits;
}
