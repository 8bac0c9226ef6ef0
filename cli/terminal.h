/* SPDX-License-Identifier: Apache-2.0 */
/* Width and colours of the output. A terminal has a width and may show colours; other outputs get
 * 80 columns without colours. */
#ifndef WEFT_CLI_TERMINAL_H
#define WEFT_CLI_TERMINAL_H

#include "cli/command.h"

enum { WEFT_DEFAULT_COLUMNS = 80 };

/* Returns the columns of the terminal at `fd`; 0 if it is no terminal. */
int32_t weft_terminal_columns(int fd);

/* True if text at `fd` gets colours: by --color, otherwise on a terminal that is not dumb, unless
 * NO_COLOR is set. */
bool weft_terminal_paints(const struct weft_cli *cli, int fd);

/* Begins a report for the file at `path`, or for stdout if NULL: sets width and colours. With
 * --json it sets neither. */
void weft_cli_report_init(const struct weft_cli *cli, const char *path, struct weft_text *report);

#endif
