/* SPDX-License-Identifier: Apache-2.0 */
/* Plans in the terms of DeepSpeed and Megatron-FSDP, from their documentation. Weft never ran
 * them. */
#ifndef WEFT_REPORT_EXPORT_OTHERS_H
#define WEFT_REPORT_EXPORT_OTHERS_H

#include "report/export/fsdp2.h"

/* A setting of DeepSpeed's ZeRO 3 and the plan that its rule makes with it. */
struct weft_deepspeed_export {
    const struct weft_plan *found; /* predicted */
    const char *setting;
    int64_t prefetch_elements, live_elements, reuse_elements;
    int64_t persistent_elements, bucket_elements;
};

/* Put documents of `format` "weft-export" into an answer. `plan` is the plan that was given.
 * DeepSpeed's step is compared with its bound if both have one problem, and otherwise there is no
 * bound. */
extern const struct weft_key_table weft_deepspeed_export_keys, weft_megatron_keys;
void weft_deepspeed_put(const struct weft_plan *plan, const struct weft_deepspeed_export *deepspeed,
                        struct weft_answer *out);
void weft_megatron_put(const struct weft_fsdp2 *fsdp2, struct weft_answer *out);

#endif
