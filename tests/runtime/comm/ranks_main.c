/* SPDX-License-Identifier: Apache-2.0 */
/* The main of a program of several tests: runs the one that it is told. */
#include <stdio.h>
#include <string.h>

#include "tests/runtime/comm/ranks.h"

static struct ranks_test *enlisted;

void ranks_enlist(struct ranks_test *test)
{
    test->next = enlisted;
    enlisted = test;
}

int main(int argc, char **argv)
{
    for (const struct ranks_test *test = enlisted; argc == 2 && test; test = test->next)
        if (strcmp(test->name, argv[1]) == 0) return test->run();
    fprintf(stderr, "use: %s TEST, one of:\n", argv[0]);
    for (const struct ranks_test *test = enlisted; test; test = test->next)
        fprintf(stderr, "  %s\n", test->name);
    return 64;
}
