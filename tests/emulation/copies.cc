/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous copies to shared memory. They complete when a thread waits for them. */
#include <cstring>
#include <deque>

#include "tests/emulation/emu.h"
#include "tests/emulation/run.h"

enum { COPY_BYTES = 16, MOST_THREADS = 1024 };

struct copy {
    char *to;
    const char *from; /* NULL: zeros */
    const char *site;
};

struct copies {
    std::deque<struct copy> started;
    std::deque<size_t> groups; /* sizes of the groups, oldest first */
    size_t open;               /* not yet committed */
};

static struct copies *of_threads;

void emu_copies_forget(void)
{
    if (of_threads == NULL) return;
    for (int i = 0; i < MOST_THREADS; i++) {
        of_threads[i].started.clear();
        of_threads[i].groups.clear();
        of_threads[i].open = 0;
    }
}

static struct copies *of_this_thread(void)
{
    if (of_threads == NULL) of_threads = new struct copies[MOST_THREADS]();
    return &of_threads[emu_now.thread];
}

static void access_hook(const void *address, bool write, const char *site)
{
    if (emu_hooks.access == NULL) return;
    emu_hooks.access(address, COPY_BYTES, write, site, emu_now.thread % EMU_WARP);
}

void emu_start_copy(void *shared, const void *from, bool there, const char *file, int line)
{
    struct copies *copies = of_this_thread();
    const char *site = file + line;
    access_hook(shared, true, site);
    if (there) access_hook(from, false, site + 1);
    memset(shared, 0xff, COPY_BYTES);
    copies->started.push_back({(char *)shared, there ? (const char *)from : NULL, site});
    copies->open++;
}

void emu_commit_copies(void)
{
    struct copies *copies = of_this_thread();
    copies->groups.push_back(copies->open);
    copies->open = 0;
}

void emu_wait_for_copies(int left)
{
    struct copies *copies = of_this_thread();
    while (copies->groups.size() > (size_t)left) {
        for (size_t i = 0; i < copies->groups.front(); i++) {
            const struct copy copy = copies->started.front();
            copies->started.pop_front();
            access_hook(copy.to, true, copy.site + 2);
            if (copy.from != NULL) {
                memcpy(copy.to, copy.from, COPY_BYTES);
            } else {
                memset(copy.to, 0, COPY_BYTES);
            }
        }
        copies->groups.pop_front();
    }
}
