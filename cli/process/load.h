/* The load is what the machine does beside this program. Times that are measured while other
 * programs run are longer than they would be alone, and a report of times says so. */
#ifndef WEFT_CLI_PROCESS_LOAD_H
#define WEFT_CLI_PROCESS_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

/* One reading (all since the machine or this process began), or the sum of what passed between
 * pairs of readings. */
struct weft_load {
    bool known;      /* the system has /proc/stat */
    double passed_s; /* on the clock */
    double busy_s;   /* of all cores, in programs and in the kernel */
    double stolen_s; /* of all cores, that the host took from this virtual machine */
    double own_s;    /* of this process and of its children that have ended */
    int32_t cores;
};

void weft_load_read(struct weft_load *out);

/* Adds what has passed since `before` to *spent, which may be {0}. */
void weft_load_spend(const struct weft_load *before, struct weft_load *spent);

/* Cores that others used while *spent passed, on average; 0 when it is not known. */
double weft_load_of_others(const struct weft_load *spent);
double weft_load_stolen(const struct weft_load *spent);

/* Appends a line on other programs and a line on the host, each only if it used a tenth of a core
 * or more. */
void weft_load_add(const struct weft_load *spent, struct weft_text *out);

/* Reads busy_s and stolen_s from the first line of /proc/stat, "cpu 1 2 3 ...", which counts
 * `ticks` a second. False if it is another line. */
bool weft_load_parse(const char *line, double ticks, struct weft_load *out);

#endif
