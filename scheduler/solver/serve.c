/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/solver/serve.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { MOST_DOCUMENT_BYTES = 1 << 30 };

static enum weft_status answer_changes(struct weft_serve *serve, const struct weft_text *document,
                                       struct weft_error *err)
{
    struct weft_lp_changes changes;
    if (serve->n_columns < 0)
        return weft_fail(err, WEFT_E_DATA, "solver protocol: changes of no program");
    WEFT_TRY(weft_lp_changes_parse(document->data, document->length, serve->n_columns,
                                   serve->n_rows, &serve->pool, &changes, &serve->limits, err));
    serve->lp = (struct weft_lp){.n_columns = changes.n_columns,
                                 .n_rows = changes.n_rows + changes.added.n};
    serve->solver->solve(serve, &changes);
    return WEFT_OK;
}

static enum weft_status answer_program(struct weft_serve *serve, const struct weft_text *document,
                                       struct weft_error *err)
{
    WEFT_TRY(weft_lp_parse(weft_text_chars(document), document->length, &serve->pool, &serve->lp,
                           &serve->limits, err));
    serve->solver->solve(serve, NULL);
    return WEFT_OK;
}

static enum weft_status name_solver(struct weft_serve *serve, struct weft_error *err)
{
    const struct weft_serve_solver *solver = serve->solver;
    if (!solver->is_named) return WEFT_OK;
    serve->result.by =
        weft_pool_format(&serve->pool, "%.40s %.20s", solver->name, solver->version());
    return serve->result.by ? WEFT_OK : weft_fail_memory(err, "the result");
}

static enum weft_status write_result(struct weft_serve *serve, struct weft_error *err)
{
    struct weft_text out = {0};
    enum weft_status status = WEFT_OK;
    WEFT_TRY(name_solver(serve, err));
    weft_lp_result_write(&serve->lp, &serve->result, &out);
    if (!weft_text_ok(&out)) {
        status = weft_fail_memory(err, "the result");
    } else if (fwrite(out.data, 1, out.length, stdout) != out.length || fflush(stdout) != 0) {
        status = weft_fail(err, WEFT_E_IO, "cannot write the result to stdout");
    }
    weft_text_finish(&out);
    return status;
}

static enum weft_status answer_document(struct weft_serve *serve, const struct weft_text *document,
                                        struct weft_error *err)
{
    const bool changes = weft_lp_is_changes(weft_text_chars(document), document->length);
    serve->result = (struct weft_lp_result){
        .status = WEFT_LP_UNKNOWN, .stop = "not solved", .bound = -INFINITY};
    enum weft_status status =
        changes ? answer_changes(serve, document, err) : answer_program(serve, document, err);
    if (status == WEFT_OK) status = write_result(serve, err);
    weft_pool_finish(&serve->pool);
    return status;
}

/* Reads lines up to the end of a document. *ended: there are none. */
static enum weft_status read_document(struct weft_text *out, bool *ended, struct weft_error *err)
{
    char *line = NULL;
    size_t capacity = 0;
    bool whole = false;
    out->length = 0;
    while (!whole && out->length <= MOST_DOCUMENT_BYTES) {
        ssize_t length = getline(&line, &capacity, stdin);
        if (length < 0) break;
        weft_text_append(out, line, (size_t)length);
        whole = strcmp(line, "end\n") == 0;
    }
    free(line);
    *ended = out->length == 0;
    if (!weft_text_ok(out)) return weft_fail_memory(err, "the problem");
    if (!whole && !feof(stdin))
        return weft_fail(err, WEFT_E_IO, "cannot read stdin: %s",
                         ferror(stdin) ? strerror(errno) : "a problem of more than 1 GiB");
    return WEFT_OK;
}

static enum weft_status answer_all(struct weft_serve *serve, struct weft_error *err)
{
    struct weft_text document = {0};
    bool ended = false;
    enum weft_status status = read_document(&document, &ended, err);
    do {
        if (status == WEFT_OK) status = answer_document(serve, &document, err);
        if (status == WEFT_OK && !serve->over) status = read_document(&document, &ended, err);
    } while (status == WEFT_OK && !ended && !serve->over);
    weft_text_finish(&document);
    return status;
}

int weft_serve_main(struct weft_serve *serve, int argc, char **argv)
{
    struct weft_error err = {0};
    const char *name = serve->solver->name, *version = serve->solver->version();
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return printf("weft-solve " WEFT_VERSION ", %s %s\n", name, version) < 0;
    if (argc > 1) {
        fprintf(stderr,
                "usage: %s < programs > results\nSolves the linear programs that `weft` writes, "
                "some with integer columns. `weft` starts it. %s %s.\n",
                argv[0], name, version);
        return strcmp(argv[1], "--help") == 0 ? 0 : 64;
    }
    serve->n_columns = -1;
    enum weft_status status = answer_all(serve, &err);
    if (status != WEFT_OK) fprintf(stderr, "weft-solve: %s\n", err.text);
    return weft_status_exit_code(status);
}
