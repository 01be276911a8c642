/* SPDX-License-Identifier: Apache-2.0
 * Signals that end the program: unfinished files are removed first, and a command may ask to be told of Ctrl-C instead of being
 * ended. */
#ifndef CLATTN_TOOLS_INTERRUPT_H
#define CLATTN_TOOLS_INTERRUPT_H

#include <stdbool.h>

/* From now on a signal that ends the program removes this file first; `path` lives until interrupt_forget. Returns the slot
 * that interrupt_forget takes, or -1 when too many files are open for that. */
int interrupt_remove(const char *path);
void interrupt_forget(int slot);

/* From now on the first Ctrl-C only sets what interrupt_is_pending returns; the second one ends the program. */
void interrupt_defer(void);
bool interrupt_is_pending(void);

#endif
