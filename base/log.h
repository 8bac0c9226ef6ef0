/* Progress and warnings of the library go to one sink, which the program sets; without one they
 * go nowhere. This is the only global state in Weft. The sink may be called from any thread. */
#ifndef WEFT_BASE_LOG_H
#define WEFT_BASE_LOG_H

#include "base/compiler.h"

enum weft_log_level { WEFT_LOG_DEBUG, WEFT_LOG_INFO, WEFT_LOG_WARNING, WEFT_LOG_LEVEL_COUNT };

typedef void weft_log_fn(void *context, enum weft_log_level level, const char *text);

/* Sets the sink (NULL for none) before any thread is started. */
void weft_log_set_sink(weft_log_fn *sink, void *context);

/* One line, without newline. */
void weft_log(enum weft_log_level level, const char *format, ...) WEFT_PRINTF(2, 3);

#endif
