/* SPDX-License-Identifier: Apache-2.0 */
/* A linear program, perhaps with integer columns, as plain data, the limits of its solution, and
 * the answer: the form in which a relaxation leaves Weft for weft-solve. Minimise cost . x subject
 * to row_lower <= A x <= row_upper and lower <= x <= upper. Infinite bounds are +-INFINITY.
 *
 * Weft and the solver exchange documents. A question is a whole program, or its changes to the
 * program before it (lp_changes.h). The solver answers each question with a result. Documents are
 * lines of words, up to a line "end" (lp_text.c, lp_changes.c). */
#ifndef WEFT_SCHEDULER_SOLVER_LP_H
#define WEFT_SCHEDULER_SOLVER_LP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pool.h"
#include "base/status.h"
#include "base/text.h"

struct weft_lp {
    int32_t n_columns;
    double *cost, *lower, *upper; /* [n_columns] */
    int32_t n_rows;
    double *row_lower, *row_upper;
    int64_t n_entries;
    int64_t *row_start; /* [n_rows + 1] */
    int32_t *column;    /* [n_entries] */
    double *value;
    bool *integer; /* [n_columns]; NULL: all columns are continuous, otherwise: */
    double *start; /* [n_columns], a feasible point; NULL: none */
};

/* Rows lower <= A x <= upper. */
struct weft_lp_rows {
    int32_t n;
    double *lower, *upper; /* [n] */
    int64_t *start;        /* [n + 1]: a row's entries are start[i] to start[i + 1] - 1 of: */
    int32_t *column;
    double *value;
};

struct weft_lp_limits {
    int64_t iterations; /* of the simplex method, in all nodes; 0 = no limit */
    /* Time after which the caller takes the solver for hung; the solver does not know it. 0 = no
     * limit. */
    int64_t patience_ns;
};

enum weft_lp_status {
    WEFT_LP_OPTIMAL,    /* the solver claims that x is optimal */
    WEFT_LP_FEASIBLE,   /* a limit stopped the solver at x, of an integer program */
    WEFT_LP_INFEASIBLE, /* the solver claims that no x is feasible */
    WEFT_LP_UNKNOWN,    /* a limit or a failure stopped the solver */
    WEFT_LP_STATUS_COUNT
};

enum { WEFT_LP_NAME_BYTES = 64 };

struct weft_lp_result {
    enum weft_lp_status status;
    const char *stop; /* "optimal", "infeasible", "iteration limit" ... */
    const char *by;   /* name and version of a solver that plans name, "HiGHS 1.2.3"; NULL: GLPK */
    double value;     /* of x; 0 without x */
    double *x;        /* [n_columns]; NULL unless optimal or feasible */
    double *duals; /* [n_rows], the rows' multipliers at x; NULL unless optimal, and of an integer
                      program */
    double bound;  /* on the value, as the solver claims; -INFINITY = none */
    int64_t iterations;
    /* The caller sets it: the solver lost the state of earlier questions, so it may have chosen
     * another of several optimal x. */
    bool anew;
};

/* Work of one iteration in weft-solve, and of a whole answer in weft-solve and its caller, in units
 * of base/work.h. */
int64_t weft_lp_iteration_units(const struct weft_lp *lp);
int64_t weft_lp_answer_units(const struct weft_lp *lp, const struct weft_lp_result *result);

/* The caller of the scheduler provides this function. It returns WEFT_OK with a result, or an error
 * if the solver is missing, crashed or hung. After an error the scheduler continues without the
 * solver and reports it. Result arrays belong to the pool. */
typedef enum weft_status weft_solve_fn(void *context, const struct weft_lp *lp,
                                       const struct weft_lp_limits *limits, struct weft_pool *pool,
                                       struct weft_lp_result *result, struct weft_error *err);

struct weft_solver {
    weft_solve_fn *solve; /* NULL: no solver; planners that need one report it */
    /* Ends the state that the solver keeps between the questions of one plan. NULL: no state. */
    void (*release)(void *context);
    void *context;
};

/* The rows from `from` on; refers to `lp`. */
struct weft_lp_rows weft_lp_rows(const struct weft_lp *lp, int32_t from);

/* The protocol, both ways. Reading checks every count and index: WEFT_E_DATA. */
void weft_lp_write(const struct weft_lp *lp, const struct weft_lp_limits *limits,
                   struct weft_text *out);
WEFT_MUST_USE enum weft_status weft_lp_parse(const char *bytes, size_t length,
                                             struct weft_pool *pool, struct weft_lp *lp,
                                             struct weft_lp_limits *limits, struct weft_error *err);
void weft_lp_result_write(const struct weft_lp *lp, const struct weft_lp_result *result,
                          struct weft_text *out);
WEFT_MUST_USE enum weft_status weft_lp_result_parse(const char *bytes, size_t length,
                                                    const struct weft_lp *lp,
                                                    struct weft_pool *pool,
                                                    struct weft_lp_result *result,
                                                    struct weft_error *err);

#endif
