/* SPDX-License-Identifier: Apache-2.0 */
/* Columns and rows of a program under construction. Internal to relax/. */
#ifndef WEFT_SCHEDULER_RELAX_ILP_BUILD_H
#define WEFT_SCHEDULER_RELAX_ILP_BUILD_H

#include "scheduler/relax/ilp_class.h"

/* Growing arrays of a program. An open row adds up entries by column in `row`, because a column may
 * be in it only once. */
struct weft_ilp_build {
    struct weft_ilp *ilp;
    int32_t n_columns, most_columns;
    int32_t n_rows, most_rows;
    int64_t n_entries, most_entries;
    double *row;      /* [most_columns] */
    int32_t *touched; /* [most_columns] */
    bool *in_row;     /* [most_columns] */
    int32_t n_touched;
    bool failed;
};

/* Adds a column. Returns its index. */
int32_t weft_ilp_add_column(struct weft_ilp_build *build, double cost, double lower, double upper);

/* Adds an entry to the open row, and closes the row. */
void weft_ilp_add_entry(struct weft_ilp_build *build, int32_t column, double value);
void weft_ilp_end_row(struct weft_ilp_build *build, double lower, double upper);

/* Adds to the open row factor * (work of an item times its strategies). */
void weft_ilp_add_item(struct weft_ilp_build *build, const struct weft_ilp_class *of, int32_t item,
                       double factor);

/* Adds to the open row factor * (work of the items of the prefix up to `slot`), and factor *
 * A[class, slot]. */
void weft_ilp_add_prefix(struct weft_ilp_build *build, const struct weft_ilp_class *of,
                         const struct weft_ilp_prefix *prefix, int32_t slot, double factor);
void weft_ilp_add_placed(struct weft_ilp_build *build, const struct weft_ilp_class *of,
                         int32_t slot, double factor);

/* The same of M. */
void weft_ilp_add_held(struct weft_ilp_build *build, const struct weft_ilp_class *of, int32_t slot,
                       double factor);

/* Times and bytes in units of the program. */
double weft_ilp_time_units(const struct weft_ilp *ilp, int64_t ns);
double weft_ilp_bytes_units(const struct weft_ilp *ilp, int64_t bytes);

#endif
