/* SPDX-License-Identifier: Apache-2.0 */
/* A folder that appears whole or not at all: it is filled under a temporary name next to its own,
 * synced and renamed. */
#ifndef WEFT_LIBRARY_HUB_FOLDER_H
#define WEFT_LIBRARY_HUB_FOLDER_H

#include "base/status.h"
#include "base/text.h"

struct weft_folder {
    struct weft_text path, to; /* the temporary path, and the wanted one */
};

/* WEFT_E_CREATE if something has the name already. */
WEFT_MUST_USE enum weft_status weft_folder_check(const char *to, struct weft_error *err);
/* Makes the temporary folder. WEFT_E_CREATE. After WEFT_OK call weft_folder_end. */
WEFT_MUST_USE enum weft_status weft_folder_begin(const char *to, struct weft_folder *out,
                                                 struct weft_error *err);
const char *weft_folder_path(const struct weft_folder *folder);
/* Gives the folder its name if `status` is WEFT_OK, and otherwise removes it with all it holds.
 * Returns `status`, or the failure of the name. */
WEFT_MUST_USE enum weft_status weft_folder_end(struct weft_folder *folder, enum weft_status status,
                                               struct weft_error *err);

#endif
