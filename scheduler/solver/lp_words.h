/* SPDX-License-Identifier: Apache-2.0 */
/* Words of the solver's protocol: writers of numbers, and a reader. The reader remembers the first
 * fault and reads 0 after it, so its caller checks once, at the end. Internal to lp_text.c and
 * lp_changes.c. */
#ifndef WEFT_SCHEDULER_SOLVER_LP_WORDS_H
#define WEFT_SCHEDULER_SOLVER_LP_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"
#include "scheduler/solver/lp.h"

/* Each writes a space first. A number reads back to the same value. */
void weft_lp_add_integer(struct weft_text *out, int64_t value);
void weft_lp_add_number(struct weft_text *out, double value);
/* n numbers and the end of the line. */
void weft_lp_add_numbers(struct weft_text *out, const double *values, int32_t n);
/* The line "limits ...". */
void weft_lp_add_limits(struct weft_text *out, const struct weft_lp_limits *limits);
/* A line a row: "`letter` LOWER UPPER N (COLUMN VALUE) x N". */
void weft_lp_add_rows(struct weft_text *out, const char *letter, const struct weft_lp_rows *rows);

struct weft_lp_reader {
    const char *at, *end;
    int64_t line;
    bool failed;
    struct weft_error *err;
};

struct weft_lp_reader weft_lp_reader(const char *bytes, size_t length, struct weft_error *err);

/* Reports the first fault: `what` was expected. */
void weft_lp_read_fail(struct weft_lp_reader *in, const char *what);

/* The next word must be `wanted`. */
void weft_lp_need_word(struct weft_lp_reader *in, const char *wanted);
/* Index of the next word among the n names; 0 and failed if it is none of them. */
int weft_lp_read_name(struct weft_lp_reader *in, const char *const *names, int n, const char *what);

int64_t weft_lp_read_integer(struct weft_lp_reader *in, int64_t least, int64_t most,
                             const char *what);
double weft_lp_read_number(struct weft_lp_reader *in, const char *what); /* no NaN */
void weft_lp_read_numbers(struct weft_lp_reader *in, double *values, int32_t n, const char *what);
struct weft_lp_limits weft_lp_read_limits(struct weft_lp_reader *in);

/* Reads rows->n lines of weft_lp_add_rows into its arrays. Their room is n_entries entries, and
 * the lines must have as many. */
void weft_lp_read_rows(struct weft_lp_reader *in, const char *letter, int32_t n_columns,
                       int64_t n_entries, struct weft_lp_rows *rows);

/* Most words that can follow: each takes two bytes at least. A larger count is refused before its
 * arrays are allocated. */
int32_t weft_lp_most_words(const struct weft_lp_reader *in);

#endif
