/* Signals between fork and exec. exec takes handlers away, but what arrives before it would run
 * them in the child, which says and does what only its parent should. */
#ifndef WEFT_BASE_SIGNALS_H
#define WEFT_BASE_SIGNALS_H

/* In a child, while signals are blocked: every signal that has a handler gets the default action;
 * what is ignored stays so. Nothing but system calls. */
void weft_signals_drop_handlers(void);

#endif
