/* A disk of memory, which fails, is late, or loses and mixes up what it is given, as it is told. */
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
    FAKE_MISPLACED, /* a write goes to a block beside */
    FAKE_FLIPPED,   /* a bit of what is read is another */
    FAKE_ASTRAY,    /* a read is of a block beside */
    FAKE_DAMAGES
};

struct fake_disk {
    struct weft_disk_calls calls;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned char *bytes;
    int64_t capacity, reserved;

    /* Its kind; zero is ext4 with direct input and output, aligned to 512. */
    uint64_t file_system;
    int64_t alignment; /* 0: 512; -1: it does not say; -2: it has none */
    bool no_unnamed;   /* it does not know O_TMPFILE */

    /* Call number fail_at (of all, from 0 on; -1: none) fails with fail_with, and `fails` calls of
     * its kind behind it do too. */
    int64_t fail_at;
    int fail_with, fails;
    enum fake_call failed; /* the kind that it was */

    bool direct; /* it was asked to go past the page cache: offsets and addresses must be aligned */

    uint64_t dice; /* not 0: reads and writes are cut short or interrupted at random */
    enum fake_damage damage;
    int64_t damage_at, damage_beside; /* number of the read or write; bytes to the block beside */
    bool damaged;

    bool hold; /* reads and writes do not return until it is false again */
    int holding;

    int64_t made[FAKE_CALLS], all; /* calls */
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
