/* SPDX-License-Identifier: Apache-2.0 */
/* The load is the machine's work for other programs. It makes measured times longer, and a report
 * of times mentions it. */
#ifndef WEFT_LIBRARY_METRICS_LOAD_H
#define WEFT_LIBRARY_METRICS_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

/* One reading since boot or process start, or the sum of differences between pairs of readings. */
struct weft_load {
    bool known;      /* false: the system has no /proc/stat */
    double passed_s; /* on the clock */
    double busy_s;   /* CPU time of all cores, in programs and in the kernel */
    double stolen_s; /* CPU time of all cores that the host took from this virtual machine */
    double own_s;    /* CPU time of this process and its ended children */
    int32_t cores;
};

void weft_load_read(struct weft_load *out);

/* Adds the difference from `before` to now to *spent, which may be {0}. */
void weft_load_spend(const struct weft_load *before, struct weft_load *spent);

/* Whether the difference is long enough for a figure: the system counts in ticks of 10 ms a core.
 * Other readings show nothing. */
bool weft_load_is_long(const struct weft_load *spent);

/* Average cores that other programs, or the host, used during *spent; 0 if unknown. */
double weft_load_of_others(const struct weft_load *spent);
double weft_load_stolen(const struct weft_load *spent);

/* Appends a line about other programs and one about the host, each only for at least a tenth of a
 * core during at least a second. */
void weft_load_add(const struct weft_load *spent, struct weft_text *out);

/* Reads busy_s and stolen_s from the first line of /proc/stat, "cpu 1 2 3 ...", in units of
 * 1/`ticks` s. False for another line. */
bool weft_load_parse(const char *line, double ticks, struct weft_load *out);

#endif
