/* A mixed-integer linear program as plain data, the limits under which to solve it, and what came
 * back: the form in which a problem leaves Weft for weft-solve. Minimise cost . x subject to
 * row_lower <= A x <= row_upper, lower <= x <= upper, some x integer. Infinite bounds are
 * +-INFINITY. The solver is spoken to in documents: a program, or what differs from the one before
 * (mip_changes.h), on its stdin until that ends, and a result for each on its stdout. Documents are
 * lines of words, up to a line "end" (mip_text.c, mip_changes.c). */
#ifndef WEFT_SCHEDULER_SOLVER_MIP_H
#define WEFT_SCHEDULER_SOLVER_MIP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pool.h"
#include "base/status.h"
#include "base/text.h"

struct weft_mip {
    int32_t n_columns;
    double *cost, *lower, *upper; /* [n_columns] */
    bool *integer;
    int32_t *priority; /* higher is branched on first; 0 = as the solver likes */
    int32_t n_rows;
    double *row_lower, *row_upper;
    int64_t n_entries;
    int64_t *row_start; /* [n_rows + 1] */
    int32_t *column;    /* [n_entries] */
    double *value;
    int32_t n_incumbents; /* feasible solutions known so far, best first */
    double **incumbents;  /* [n_incumbents][n_columns] */
};

/* Rows lower <= A x <= upper. */
struct weft_mip_rows {
    int32_t n;
    double *lower, *upper; /* [n] */
    int64_t *start;        /* [n + 1]: a row's entries are start[i] to start[i + 1] - 1 of: */
    int32_t *column;
    double *value;
};

struct weft_mip_limits {
    int64_t iterations; /* of the simplex method, in the root LP and again in the search; 0 = no
                           limit */
    int64_t nodes;      /* of the search; 0 = no limit; -1 = root LP only */
    double gap;         /* relative, at which to stop */
    int64_t
        patience_ns; /* of who asks, after which the solver hangs; it is not told. 0 = endless */
};

enum weft_mip_status {
    WEFT_MIP_OPTIMAL,    /* within limits.gap, by the solver's word */
    WEFT_MIP_FEASIBLE,   /* a limit stopped it; x is the best found */
    WEFT_MIP_INFEASIBLE, /* proven, by the solver's word */
    WEFT_MIP_UNKNOWN,    /* a limit stopped it before any x */
    WEFT_MIP_STATUS_COUNT
};

struct weft_mip_result {
    enum weft_mip_status status;
    const char *stop; /* "optimal", "gap", "node limit", "iteration limit" ... */
    bool has_lp;      /* the root relaxation was solved to optimality */
    double lp_value;
    double *row_duals;         /* [n_rows], of the root relaxation; NULL without it */
    double *lp_x;              /* [n_columns], its solution; NULL without it */
    double *x;                 /* [n_columns]; NULL when none */
    double objective;          /* of x */
    double bound;              /* the solver's own; -INFINITY when none */
    int64_t iterations, nodes; /* the work that it was */
    /* Set by who asks: what the solver kept from questions before was lost, and another solution
     * may be as good. */
    bool anew;
};

/* What an iteration takes of weft-solve, and what an answer took of it and of who asked, in units
 * of base/work.h. */
int64_t weft_mip_iteration_units(const struct weft_mip *mip);
int64_t weft_mip_answer_units(const struct weft_mip *mip, const struct weft_mip_result *result);

/* What the caller of the scheduler provides. WEFT_OK with a result, or an error when the solver is
 * missing, crashed or hung (the scheduler then goes on with what it has and says so). Result arrays
 * belong to the pool. */
typedef enum weft_status weft_solve_fn(void *context, const struct weft_mip *mip,
                                       const struct weft_mip_limits *limits, struct weft_pool *pool,
                                       struct weft_mip_result *result, struct weft_error *err);

struct weft_solver {
    weft_solve_fn *solve; /* NULL: no solver; planners that need one say so */
    /* The questions of one plan are over: ends what is kept from one to the next. NULL: nothing. */
    void (*release)(void *context);
    void *context;
};

/* The rows from `from` on; refers to `mip`. */
struct weft_mip_rows weft_mip_rows(const struct weft_mip *mip, int32_t from);

/* The protocol, both ways. Reading checks every count and index: WEFT_E_DATA. */
void weft_mip_write(const struct weft_mip *mip, const struct weft_mip_limits *limits,
                    struct weft_text *out);
WEFT_MUST_USE enum weft_status weft_mip_parse(const char *bytes, size_t length,
                                              struct weft_pool *pool, struct weft_mip *mip,
                                              struct weft_mip_limits *limits,
                                              struct weft_error *err);
void weft_mip_result_write(const struct weft_mip *mip, const struct weft_mip_result *result,
                           struct weft_text *out);
WEFT_MUST_USE enum weft_status weft_mip_result_parse(const char *bytes, size_t length,
                                                     const struct weft_mip *mip,
                                                     struct weft_pool *pool,
                                                     struct weft_mip_result *result,
                                                     struct weft_error *err);

#endif
