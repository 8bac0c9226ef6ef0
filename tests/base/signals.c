#include "base/signals.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void handle(int number)
{
    (void)number;
    _exit(7);
}

/* What a child that waits with the signal blocked ends with. */
static int outcome_of(int number, void (*action)(int))
{
    sigset_t all, before;
    int status = 0;
    sigfillset(&all);
    signal(number, action);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t child = fork();
    if (child == 0) {
        raise(number);
        weft_signals_drop_handlers();
        sigprocmask(SIG_SETMASK, &before, NULL);
        _exit(0);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    cr_assert_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

Test(signals, a_child_does_not_run_its_parents_handlers)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        cr_assert_eq(outcome_of(numbers[i], handle), numbers[i]);
        cr_assert_eq(outcome_of(numbers[i], SIG_IGN), 0, "what is ignored stays so");
    }
}
