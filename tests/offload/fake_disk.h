/* SPDX-License-Identifier: Apache-2.0 */
/* A disk in memory. On request it fails, is late, or loses and damages its data. */
#ifndef WEFT_TESTS_OFFLOAD_FAKE_DISK_H
#define WEFT_TESTS_OFFLOAD_FAKE_DISK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "offload/disk.h"

enum fake_call {
    FAKE_OPEN,
    FAKE_UNLINK,
    FAKE_FILE_SYSTEM,
    FAKE_NO_COPY,
    FAKE_ALIGNMENT,
    FAKE_DIRECT,
    FAKE_RESERVE,
    FAKE_READ,
    FAKE_WRITE,
    FAKE_RESIDENT,
    FAKE_CALLS
};

/* Damage to one read or write that returns success. */
enum fake_damage {
    FAKE_NOTHING,
    FAKE_LOST,      /* a write does nothing */
    FAKE_TORN,      /* a write ends half way, in a sector */
    FAKE_MISPLACED, /* a write goes to another block */
    FAKE_FLIPPED,   /* a read returns one wrong bit */
    FAKE_ASTRAY,    /* a read returns another block */
    FAKE_DAMAGES
};

struct fake_disk {
    struct weft_disk_calls calls;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned char *bytes;
    int64_t capacity, reserved;

    /* Properties of the disk; zero is ext4 with direct I/O, aligned to 512. */
    uint64_t file_system;
    int64_t alignment; /* 0: 512; -1: unknown; -2: none */
    bool no_unnamed;   /* O_TMPFILE is not supported */

    /* Call number fail_at (over all calls, from 0; -1: none) fails with fail_with. So do the next
     * `fails` calls of its kind. */
    int64_t fail_at;
    int fail_with, fails;
    enum fake_call failed; /* the kind of the call that failed */

    bool direct; /* direct I/O was requested: offsets and addresses must be aligned */

    uint64_t dice; /* not 0: reads and writes are short or interrupted at random */
    enum fake_damage damage;
    int64_t damage_at, damage_beside; /* number of the read or write; bytes to the wrong block */
    bool damaged;

    bool hold; /* reads and writes wait while it is true */
    int holding;

    int64_t made[FAKE_CALLS], all; /* counts of calls */
    int open_files, names;
};

void fake_disk_init(struct fake_disk *disk, int64_t capacity);
void fake_disk_finish(struct fake_disk *disk);
void fake_disk_hold(struct fake_disk *disk, bool hold);
/* Waits until a read or write is held. */
void fake_disk_await_held(struct fake_disk *disk);
/* Waits until no file is open. */
void fake_disk_await_closed(struct fake_disk *disk);

#endif
