/* Facts about the reader of what the program writes: a terminal has a width and may show colours;
 * everything else gets lines of 80 columns without any. */
#ifndef WEFT_CLI_TERMINAL_H
#define WEFT_CLI_TERMINAL_H

#include "cli/command.h"

enum { WEFT_DEFAULT_COLUMNS = 80 };

/* Columns of the terminal at `fd`; 0 when it is none. */
int32_t weft_terminal_columns(int fd);

/* Whether the text at `fd` is painted: --color, else on a terminal that is not dumb, unless
 * NO_COLOR is set. */
bool weft_terminal_paints(const struct weft_cli *cli, int fd);

/* Begins a report, fitted to where it will be written: the file at `path`, or stdout for NULL. With
 * --json, and so for a document, it is not fitted at all. */
void weft_cli_report_init(const struct weft_cli *cli, const char *path, struct weft_text *report);

#endif
