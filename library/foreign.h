/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs of a prediction that a run may not share with the measurement: machine, threads,
 * cores, ranks, link, precision, library, and load. Planning for another machine is correct;
 * training with its times is not. */
#ifndef WEFT_LIBRARY_FOREIGN_H
#define WEFT_LIBRARY_FOREIGN_H

#include <stdbool.h>

#include "library/session.h"

enum weft_input {
    WEFT_INPUT_MACHINE,
    WEFT_INPUT_THREADS, /* of a rank */
    WEFT_INPUT_CORES,
    WEFT_INPUT_RANKS,
    WEFT_INPUT_LINK,
    WEFT_INPUT_PRECISION,
    WEFT_INPUT_LIBRARY, /* of products, if the environment names one */
    WEFT_INPUT_LOAD,    /* during the measurement */
    WEFT_INPUT_COUNT
};

/* The inputs that differ: a bit for each. Call it after stage. If the config leaves threads to the
 * machine, they are compared only on the measured machine, and so are cores. Figures, and what a
 * profile does not say, never differ. */
uint32_t weft_session_compare_inputs(const struct weft_session *session);

/* Logs all differences in one line. It is information if only the machine or its ranks differ, and
 * a warning otherwise, or if the session `runs_here`. After a measurement (`measured_now`) load is
 * not told again. */
void weft_session_tell_inputs(const struct weft_session *session, bool runs_here,
                              bool measured_now);

#endif
