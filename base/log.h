/* SPDX-License-Identifier: Apache-2.0 */
/* Progress and warnings of the library go to one sink, which the program sets. Without a sink they
 * are dropped. This is the only global state in Weft. Any thread may call the sink. */
#ifndef WEFT_BASE_LOG_H
#define WEFT_BASE_LOG_H

#include "base/compiler.h"

/* weft_log_set_sink sets the sink before any thread starts. */

/* One line, without newline. */
void weft_log(enum weft_log_level level, const char *format, ...) WEFT_PRINTF(2, 3);

#endif
