#include "base/signals.h"

#include <signal.h>
#include <stddef.h>

void weft_signals_drop_handlers(void)
{
    for (int number = 1; number <= SIGRTMAX; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) != 0) continue;
        if (action.sa_handler != SIG_IGN && action.sa_handler != SIG_DFL) signal(number, SIG_DFL);
    }
}
