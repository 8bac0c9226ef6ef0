/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/process/solver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/machine/proc.h"
#include "base/process.h"

/* An answer has a number for each column and row, and some lines of words. */
enum { ANSWER_NUMBER_BYTES = 32, ANSWER_MORE_BYTES = 1 << 16 };

static bool is_executable(const char *path)
{
    return access(path, X_OK) == 0;
}

const char *weft_solver_find(char *out, size_t capacity)
{
    const char *named = getenv("WEFT_SOLVE");
    if (named) {
        /* The user named one. A wrong path is an error, not a reason to take another. */
        int length = snprintf(out, capacity, "%s", named);
        return length > 0 && (size_t)length < capacity && is_executable(out) ? out : NULL;
    }
    char self[4096];
    if (weft_proc_program(self, sizeof self)) {
        char *slash = strrchr(self, '/');
        if (slash) *slash = '\0';
        /* Next to this program, where it is installed, and in the build tree. */
        static const char *const places[] = {"/weft-solve", "/../libexec/weft/weft-solve",
                                             "/../scheduler/weft-solve"};
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
            int length = snprintf(out, capacity, "%s%s", self, places[i]);
            if (length > 0 && (size_t)length < capacity && is_executable(out)) return out;
        }
    }
    return weft_process_find("weft-solve", out, capacity);
}

static enum weft_status find_solver(struct weft_solver_process *process, struct weft_error *err)
{
    if (weft_solver_find(process->path, sizeof process->path)) return WEFT_OK;
    const char *named = getenv("WEFT_SOLVE");
    return named ? weft_fail(err, WEFT_E_ENVIRONMENT,
                             "missing (WEFT_SOLVE=%s is not an executable file)", named)
                 : weft_fail(err, WEFT_E_ENVIRONMENT,
                             "missing (no weft-solve next to weft or in PATH; build with "
                             "GLPK: libglpk-dev)");
}

static void forget_program(struct weft_solver_process *process)
{
    weft_pool_finish(&process->pool);
    process->knows = false;
}

/* Keeps a copy of the program that the process has the basis of. Without memory for it the next
 * question is a whole program. */
static void remember_program(struct weft_solver_process *process, const struct weft_lp *lp)
{
    struct weft_error unwanted;
    forget_program(process);
    process->knows = process->child.pid > 0 && !lp->integer &&
                     weft_lp_copy(lp, &process->pool, &process->lp, &unwanted) == WEFT_OK;
}

static void write_question(struct weft_solver_process *process, const struct weft_lp *lp,
                           const struct weft_lp_limits *limits, struct weft_text *question)
{
    struct weft_pool pool = {0};
    struct weft_lp_changes changes;
    if (process->knows && weft_lp_changes_find(&process->lp, lp, &pool, &changes))
        weft_lp_changes_write(&changes, limits, question);
    else
        weft_lp_write(lp, limits, question);
    weft_pool_finish(&pool);
}

static enum weft_status ask_process(struct weft_solver_process *process, const struct weft_lp *lp,
                                    const struct weft_lp_limits *limits, struct weft_text *answer,
                                    struct weft_error *err)
{
    struct weft_text question;
    size_t most_bytes =
        ANSWER_MORE_BYTES + ANSWER_NUMBER_BYTES * ((size_t)lp->n_columns + (size_t)lp->n_rows);
    weft_text_init(&question);
    write_question(process, lp, limits, &question);
    enum weft_status status =
        weft_text_ok(&question) ? WEFT_OK : weft_fail_memory(err, "the solver's question");
    if (status == WEFT_OK)
        status = weft_solver_child_ask(&process->child, &question, limits->patience_ns, most_bytes,
                                       process->watch, answer, err);
    weft_text_finish(&question);
    return status;
}

/* Asks the process. If it ended since the last question without an answer, starts it again:
 * somebody may have killed it, or it may be a program that answers once. */
static enum weft_status ask_again(struct weft_solver_process *process, const struct weft_lp *lp,
                                  const struct weft_lp_limits *limits, struct weft_text *answer,
                                  bool *anew, struct weft_error *err)
{
    struct weft_lp_limits left = *limits;
    if (weft_solver_child_is_ready(&process->child)) {
        struct weft_error failure = {0};
        int64_t start_ns = weft_clock_now_ns();
        enum weft_status status = ask_process(process, lp, limits, answer, &failure);
        if (answer->length > 0 || status == WEFT_E_HANG || status == WEFT_E_SYSTEM)
            return status == WEFT_OK ? WEFT_OK : weft_fail(err, status, "%s", failure.text);
        if (limits->patience_ns > 0) left.patience_ns -= weft_clock_now_ns() - start_ns;
        if (limits->patience_ns > 0 && left.patience_ns < 1) left.patience_ns = 1;
    }
    *anew = process->knows;
    weft_solver_child_stop(&process->child);
    forget_program(process);
    WEFT_TRY(find_solver(process, err));
    WEFT_TRY(weft_solver_child_start(process->path, NULL, &process->child, err));
    return ask_process(process, lp, &left, answer, err);
}

static enum weft_status solve_program(void *context, const struct weft_lp *lp,
                                      const struct weft_lp_limits *limits, struct weft_pool *pool,
                                      struct weft_lp_result *result, struct weft_error *err)
{
    struct weft_solver_process *process = context;
    struct weft_text answer;
    bool anew = false;
    if (process->hung) return weft_fail(err, WEFT_E_HANG, "had no answer before, and was killed");
    weft_text_init(&answer);
    enum weft_status status = ask_again(process, lp, limits, &answer, &anew, err);
    if (status == WEFT_OK)
        status =
            weft_lp_result_parse(weft_text_chars(&answer), answer.length, lp, pool, result, err);
    weft_text_finish(&answer);
    process->hung = status == WEFT_E_HANG;
    if (status == WEFT_OK) result->anew = anew;
    if (status == WEFT_OK)
        remember_program(process, lp);
    else
        weft_solver_process_stop(process);
    return status;
}

void weft_solver_process_stop(struct weft_solver_process *process)
{
    weft_solver_child_stop(&process->child);
    forget_program(process);
}

static void release_process(void *context)
{
    weft_solver_process_stop(context);
}

struct weft_solver weft_solver_of_process(struct weft_solver_process *process)
{
    return (struct weft_solver){
        .solve = solve_program, .release = release_process, .context = process};
}

bool weft_solver_version(const char *path, char *out, size_t capacity)
{
    enum { MOST_BYTES = 4096 };
    static const int64_t patience_ns = INT64_C(5000000000);
    static const char begins[] = "weft-solve ";
    struct weft_solver_child child = {0};
    struct weft_text nothing, answer;
    struct weft_error err = {0};
    weft_text_init(&nothing);
    weft_text_init(&answer);
    bool ok = weft_solver_child_start(path, "--version", &child, &err) == WEFT_OK &&
              weft_solver_child_ask(&child, &nothing, patience_ns, MOST_BYTES, NULL, &answer,
                                    &err) == WEFT_OK;
    snprintf(out, capacity, "%s", weft_text_chars(&answer));
    out[strcspn(out, "\n")] = '\0';
    weft_solver_child_stop(&child);
    ok = ok && strncmp(out, begins, strlen(begins)) == 0;
    weft_text_finish(&answer);
    return ok;
}
