/* Pipes to a process that is started: their ends are not passed on to other programs. */
#ifndef WEFT_CLI_PROCESS_PIPES_H
#define WEFT_CLI_PROCESS_PIPES_H

#include <stdbool.h>

/* All n of them, or none: then false, errno says why, and every end is -1. */
bool weft_pipes_open(int (*pipes)[2], int n);
void weft_pipes_close(int (*pipes)[2], int n); /* what is open of them */

/* Closes an end, unless it is closed, and makes it -1. */
void weft_pipe_close_end(int *end);

#endif
