/* SPDX-License-Identifier: Apache-2.0 */
/* Pipes to a started process. Other programs do not inherit their ends. */
#ifndef WEFT_CLI_PROCESS_PIPES_H
#define WEFT_CLI_PROCESS_PIPES_H

#include <stdbool.h>

/* Opens all n pipes. False: none is open, every end is -1, and errno has the reason. */
bool weft_pipes_open(int (*pipes)[2], int n);
void weft_pipes_close(int (*pipes)[2], int n); /* closes the open ends */

/* Closes an open end and sets it to -1. */
void weft_pipe_close_end(int *end);

#endif
