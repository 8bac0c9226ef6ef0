/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of `weft report`, which `weft train --report` writes too. */
#ifndef WEFT_CLI_REPORT_H
#define WEFT_CLI_REPORT_H

#include "base/status.h"
#include "cli/command.h"
#include "report/html/page.h"

/* "weft 0.2.0". */
const char *weft_report_program(void);

/* Writes the page as HTML to a file, whole or not at all; "-" is stdout. WEFT_E_CREATE, WEFT_E_IO.
 */
WEFT_MUST_USE enum weft_status weft_report_write(const struct weft_page *page, const char *path,
                                                 struct weft_error *err);

/* Writes the report of one run's directory. reload_s is the page's. Errors of weft_source_read and
 * weft_report_write. */
WEFT_MUST_USE enum weft_status weft_report_write_run(const char *run, const char *trace,
                                                     const char *path, int32_t reload_s,
                                                     struct weft_error *err);

/* Checks that -o and --csv are two files, and neither --trace, an operand nor a file of an
 * operand's folder that is read: writing would destroy it. WEFT_E_USAGE names both files. */
WEFT_MUST_USE enum weft_status weft_report_check_outputs(const struct weft_cli *cli,
                                                         struct weft_error *err);

/* Checks `weft train --report FILE`, which is not "live", before the run: FILE is no input and no
 * file that the run writes, and its folder is there or is the run's own, which the run makes.
 * WEFT_E_USAGE, WEFT_E_CREATE. */
WEFT_MUST_USE enum weft_status weft_report_check_train(const struct weft_cli *cli,
                                                       struct weft_error *err);

/* The page of a run that goes on, written again every minute. */
struct weft_report_live {
    const char *run, *path;
    int64_t due_ns; /* of the next page; 0: not known yet */
    bool failed;    /* a warning was given */
};
/* Writes the page if it is due. `live` is a struct weft_report_live; a `look` of a job. */
void weft_report_look(void *live);

#endif
