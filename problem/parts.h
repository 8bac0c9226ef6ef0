/* Parts of a problem beside its decisions: items with their lanes and times, tiers, and how units
 * were cut into blocks. */
#ifndef WEFT_PROBLEM_PARTS_H
#define WEFT_PROBLEM_PARTS_H

#include <stdint.h>

#include "memory_model/weigh.h"
#include "spec/tiers.h"

/* Integers of a problem and sums of them are at most this, which JSON readers hold exactly. */
#define WEFT_PROBLEM_MOST (INT64_C(9007199254740991))
/* Blocks of all items of a problem are at most this, so that whatever is made of them (a program's
 * instructions, operands, pieces) can be numbered with 32 bits. */
enum { WEFT_PROBLEM_MOST_BLOCKS = 1 << 24 };
/* Periods that a config may leave open, each of which is a problem. */
enum { WEFT_MOST_VARIANTS = 32 };

struct weft_problem_item {
    struct weft_item item;
    int32_t lane;     /* that its blocks move on, WEFT_LANE_FIRST to n_lanes - 1 */
    int64_t block_ns; /* lane time of one block */
    int32_t after;    /* another item of its decision: block b begins when that one's is over; -1 */
};

enum { WEFT_MOST_TIERS = 8 };

/* A memory: what it holds in every slot is a row, and no row may exceed its limit. What it holds
 * whatever is planned, its base, is among the common holds. */
struct weft_problem_tier {
    const char *name;
    enum weft_home kind;
    int64_t limit_bytes; /* INT64_MAX when the user gave none */
};

/* How units were cut into blocks: told to people, and no part of what is planned. All zero where it
 * is not known. */
struct weft_problem_blocks {
    int64_t least_bytes;    /* smaller neighbours were fused to it, larger units split by it */
    int64_t count;          /* blocks of every unit; 0 = least_bytes says */
    int64_t efficiency_ppm; /* least_bytes reaches this share of the best bandwidth in the profile,
                               in millionths; 0 = the config gave it */
    int64_t fused;          /* 1: small neighbours share a unit */
};

#endif
