#include <stdio.h>

#include "cli/command.h"
#include "cli/solver.h"
#include "library/session.h"

enum weft_status weft_cli_read_config(const struct weft_cli *cli, const char *path,
                                      struct weft_session *session, struct weft_error *err)
{
    const char *overrides[WEFT_CLI_OVERRIDES + 1];
    int32_t n = 0;
    for (; n < cli->n_overrides; n++)
        overrides[n] = cli->overrides[n];
    char ranks[64];
    if (cli->ranks > 0) {
        snprintf(ranks, sizeof ranks, "cluster.ranks=%lld", (long long)cli->ranks);
        overrides[n++] = ranks;
    }
    session->solver = weft_solver_of_process(cli->solver);
    return weft_config_read(path, overrides, n, &session->config, err);
}
