/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/tree/follow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* Columns of counts of a relaxation with fixed strategies. */
enum { MOST_COLUMNS = 10000, MET = 64 };
/* Parts of the device's limit that the relaxation keeps free, until a rounding fits. */
static const double FREE_PARTS[] = {0, 0.003, 0.01, 0.02, 0.04};
enum { N_PARTS = sizeof FREE_PARTS / sizeof *FREE_PARTS };

struct weft_follow {
    struct weft_pool pool;
    struct weft_branch *branch;   /* borrowed */
    bool idle;                    /* there is nothing to try */
    struct weft_ilp_moved *moved; /* [n_blocks] */
    int32_t *first;               /* [n_items] */
    struct weft_move *moves;      /* [n_blocks] */
    struct weft_hash met[MET];
};

enum weft_status weft_follow_create(struct weft_branch *branch, struct weft_follow **out,
                                    struct weft_error *err)
{
    const struct weft_digest *table = branch->table;
    struct weft_follow *follow = calloc(1, sizeof *follow);
    if (!follow) return weft_fail_memory(err, "roundings");
    size_t n_blocks = (size_t)table->n_blocks + 1;
    follow->branch = branch;
    follow->idle = !branch->ilp || weft_problem_n_moving(table->problem) < 2;
    follow->moved = weft_pool_array(&follow->pool, n_blocks, sizeof *follow->moved);
    follow->first =
        weft_pool_array(&follow->pool, (size_t)table->n_items + 1, sizeof *follow->first);
    follow->moves = weft_pool_array(&follow->pool, n_blocks, sizeof *follow->moves);
    if (!follow->moved || !follow->first || !follow->moves) {
        weft_follow_destroy(follow);
        return weft_fail_memory(err, "roundings");
    }
    *out = follow;
    return WEFT_OK;
}

void weft_follow_destroy(struct weft_follow *follow)
{
    if (!follow) return;
    weft_pool_finish(&follow->pool);
    free(follow);
}

bool weft_follow_is_of_use(const struct weft_follow *follow)
{
    return !follow->idle && !follow->branch->failure[0] && !weft_branch_is_over(follow->branch);
}

static bool was_met(struct weft_follow *follow, const int32_t *strategies)
{
    size_t n = (size_t)follow->branch->table->n_decisions;
    struct weft_hash hash = weft_hash_bytes(strategies, n * sizeof *strategies);
    struct weft_hash *met = &follow->met[hash.low % MET];
    if (weft_hash_equal(*met, hash)) return true;
    *met = hash;
    return false;
}

/* Bytes by which the moves exceed the limit in the fullest row. */
static int64_t excess_of(const struct weft_follow *follow, const int32_t *strategies, int32_t n)
{
    struct weft_search *search = follow->branch->search;
    const struct weft_digest *table = search->table;
    int64_t most = INT64_MIN;
    weft_work_spend(search->budget.work, 3 * (int64_t)table->n_rows + 5 * (int64_t)n);
    weft_digest_move_rows(table, strategies, follow->moves, n, search->rows);
    for (int32_t r = 0; r < table->n_rows; r++)
        if (search->rows[r] > most) most = search->rows[r];
    return most - weft_digest_limit_bytes(table);
}

/* Rounds the relaxation with some bytes kept free. *more: more bytes may help. */
static enum weft_status try_part(struct weft_follow *follow, struct weft_ilp *ilp,
                                 const int32_t *strategies, double part, bool *more,
                                 struct weft_error *err)
{
    struct weft_branch *branch = follow->branch;
    struct weft_lp_result result = {0};
    struct weft_pool pool = {0};
    enum weft_status status = WEFT_OK;
    *more = false;
    double limit = (double)branch->table->problem->tiers[0].limit_bytes;
    weft_ilp_keep_free(ilp, (int64_t)(part * limit));
    bool solved = weft_branch_solve(branch, &ilp->lp, 0, &pool, &result);
    if (solved && result.value < ldexp((double)branch->search->step_ns, -ilp->time_shift)) {
        int32_t n =
            weft_ilp_round(ilp, result.x, strategies, follow->moved, follow->first, follow->moves);
        *more = n < 0 || excess_of(follow, strategies, n) > 0;
        if (n >= 0 && !*more)
            status = weft_search_try_moves(branch->search, strategies, follow->moves, n, err);
    }
    weft_pool_finish(&pool);
    return status;
}

enum weft_status weft_follow_try(struct weft_follow *follow, const int32_t *strategies,
                                 struct weft_error *err)
{
    struct weft_ilp *ilp = NULL;
    bool more = true;
    if (!weft_follow_is_of_use(follow) || was_met(follow, strategies) ||
        !weft_search_fits(follow->branch->search, strategies))
        return WEFT_OK;
    WEFT_TRY(weft_ilp_create_for(follow->branch->table, strategies, MOST_COLUMNS, &ilp, err));
    enum weft_status status = WEFT_OK;
    for (int k = 0; k < N_PARTS && more && status == WEFT_OK; k++) {
        if (!weft_follow_is_of_use(follow)) break;
        status = try_part(follow, ilp, strategies, FREE_PARTS[k], &more, err);
    }
    weft_ilp_destroy(ilp);
    return status;
}
