/* A tree grows for a bound that it may not reach everywhere: nodes that were not the weakest are
 * divided, and of the plans that are put aside as needless many would not hurt. What is proven at
 * last is the least of all leaves, for which a smaller tree may do. Trimming makes nodes leaves
 * again whose own prices reach that bound, and of the splits that put leaves aside keeps those that
 * the rest needs, so that the certificate is short and cheap to check.
 *
 * RESULTS.md: certificate/trimmed. */
#ifndef WEFT_SCHEDULER_TREE_TRIM_H
#define WEFT_SCHEDULER_TREE_TRIM_H

#include "scheduler/search/search.h"
#include "scheduler/tree/proof.h"

/* The proof then proves what it did, or more where a leaf had not been bounded in its own box, and
 * all of its nodes have that bound: it is not to grow any more. Looks at `most_boxes` boxes at most
 * and, once the budget is used up, at an eighth of those that a check of the tree looks at; the
 * tree is whole whenever that ends. Prices must have been offered to the root. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_trim(struct weft_proof *proof, const struct weft_search *search,
                                         int64_t most_boxes, struct weft_error *err);

#endif
