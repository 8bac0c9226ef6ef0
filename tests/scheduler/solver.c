/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/scheduler/solver.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"

bool test_solver_exists(void)
{
    const char *path = getenv("WEFT_SOLVE");
    return path && access(path, X_OK) == 0;
}

/* Reads all of a stream that a process writes. */
static void drain(FILE *stream, struct weft_text *out)
{
    char bytes[4096];
    size_t n;
    while ((n = fread(bytes, 1, sizeof bytes, stream)) > 0)
        weft_text_append(out, bytes, n);
}

static enum weft_status solve(void *context, const struct weft_lp *lp,
                              const struct weft_lp_limits *limits, struct weft_pool *pool,
                              struct weft_lp_result *result, struct weft_error *err)
{
    char name[] = "/tmp/weft-test-solver-XXXXXX", command[512];
    struct weft_text in = {0}, out = {0};
    int file = mkstemp(name);
    enum weft_status status = WEFT_OK;
    (void)context;
    if (file < 0) return weft_fail(err, WEFT_E_SYSTEM, "no temporary file");
    close(file);
    weft_lp_write(lp, limits, &in);
    status = weft_file_write(name, weft_text_chars(&in), in.length, err);
    snprintf(command, sizeof command, "'%s' < %s", getenv("WEFT_SOLVE"), name);
    FILE *stream = status == WEFT_OK ? popen(command, "r") : NULL;
    if (stream) {
        drain(stream, &out);
        if (pclose(stream) != 0) status = weft_fail(err, WEFT_E_SYSTEM, "weft-solve failed");
    }
    unlink(name);
    if (status == WEFT_OK)
        status = weft_lp_result_parse(weft_text_chars(&out), out.length, lp, pool, result, err);
    weft_text_finish(&in);
    weft_text_finish(&out);
    return status;
}

/* It begins anew each time, and is asked as often as one that does not. */
static void release(void *context)
{
    (void)context;
}

struct weft_solver test_solver(void)
{
    return (struct weft_solver){.solve = solve, .release = release};
}
