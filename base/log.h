/* Progress and warnings of the library go to one sink, which the program sets; without one they
 * go nowhere. This is the only global state in Weft. The sink may be called from any thread. */
#ifndef WEFT_BASE_LOG_H
#define WEFT_BASE_LOG_H

#include "base/compiler.h"

/* weft_log_set_sink sets it before any thread is started. */

/* One line, without newline. */
void weft_log(enum weft_log_level level, const char *format, ...) WEFT_PRINTF(2, 3);

#endif
