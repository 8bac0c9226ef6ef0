/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Output for narrower terminals is wrapped at this width. */
enum { LEAST_COLUMNS = 20 };

int32_t weft_terminal_columns(int fd)
{
    struct winsize size;
    if (!isatty(fd)) return 0;
    if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return WEFT_DEFAULT_COLUMNS;
    return size.ws_col < LEAST_COLUMNS ? LEAST_COLUMNS : size.ws_col;
}

bool weft_terminal_paints(const struct weft_cli *cli, int fd)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    if (cli->color != WEFT_COLOR_AUTO) return cli->color == WEFT_COLOR_ALWAYS;
    if (no_color && no_color[0]) return false;
    return isatty(fd) && term && term[0] && strcmp(term, "dumb") != 0;
}

void weft_cli_report_init(const struct weft_cli *cli, const char *path, struct weft_text *report)
{
    bool to_stdout = !path || strcmp(path, "-") == 0;
    int32_t columns = to_stdout ? weft_terminal_columns(STDOUT_FILENO) : 0;
    weft_text_init(report);
    if (cli->json) return;
    report->columns = columns > 0 ? columns : WEFT_DEFAULT_COLUMNS;
    report->color = to_stdout && weft_terminal_paints(cli, STDOUT_FILENO);
}
