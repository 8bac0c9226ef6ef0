/* Words of the solver's protocol: how numbers are written, and a reader that remembers the first
 * fault and reads 0 from there on, so that it is asked once, at the end. Internal to mip_text.c and
 * mip_changes.c. */
#ifndef WEFT_SCHEDULER_SOLVER_MIP_WORDS_H
#define WEFT_SCHEDULER_SOLVER_MIP_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"
#include "scheduler/solver/mip.h"

/* Each writes a space first. A number reads back to the same value. */
void weft_mip_add_integer(struct weft_text *out, int64_t value);
void weft_mip_add_number(struct weft_text *out, double value);
/* n numbers and the end of the line. */
void weft_mip_add_numbers(struct weft_text *out, const double *values, int32_t n);
/* The line "limits ...". */
void weft_mip_add_limits(struct weft_text *out, const struct weft_mip_limits *limits);
/* A line a row: "`letter` LOWER UPPER N (COLUMN VALUE) x N". */
void weft_mip_add_rows(struct weft_text *out, const char *letter, const struct weft_mip_rows *rows);

struct weft_mip_reader {
    const char *at, *end;
    int64_t line;
    bool failed;
    struct weft_error *err;
};

struct weft_mip_reader weft_mip_reader(const char *bytes, size_t length, struct weft_error *err);

/* Says that `what` was expected, once. */
void weft_mip_read_fail(struct weft_mip_reader *in, const char *what);

/* The next word must be `wanted`. */
void weft_mip_need_word(struct weft_mip_reader *in, const char *wanted);
/* True, and consumed, when the next word is `wanted`. */
bool weft_mip_has_word(struct weft_mip_reader *in, const char *wanted);
/* The place among the n names of the next word; 0 and failed when it is none of them. */
int weft_mip_read_name(struct weft_mip_reader *in, const char *const *names, int n,
                       const char *what);

int64_t weft_mip_read_integer(struct weft_mip_reader *in, int64_t least, int64_t most,
                              const char *what);
double weft_mip_read_number(struct weft_mip_reader *in, const char *what); /* no NaN */
void weft_mip_read_numbers(struct weft_mip_reader *in, double *values, int32_t n, const char *what);
struct weft_mip_limits weft_mip_read_limits(struct weft_mip_reader *in);

/* rows->n lines of weft_mip_add_rows into its arrays, which have room for n_entries entries: as
 * many there must be. */
void weft_mip_read_rows(struct weft_mip_reader *in, const char *letter, int32_t n_columns,
                        int64_t n_entries, struct weft_mip_rows *rows);

/* Every number takes two bytes at least, so a count above this is a lie, found before anything is
 * allocated for it. */
int32_t weft_mip_most_words(const struct weft_mip_reader *in);

#endif
