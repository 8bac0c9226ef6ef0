/* SPDX-License-Identifier: Apache-2.0 */
/* A folder is no data, but a pattern of its files is. */
#ifndef WEFT_RUNTIME_TRAIN_FOLDER_H
#define WEFT_RUNTIME_TRAIN_FOLDER_H

#include <stdbool.h>

#include "base/text.h"

/* Appends a pattern of the folder's plain files, of the suffix that most of them have: in the
 * folder itself, otherwise in the first level below it that has files. Returns false, and appends
 * nothing, if there is no file. */
bool weft_folder_pattern(const char *folder, struct weft_text *out);

#endif
