/* SPDX-License-Identifier: Apache-2.0 */
/* A 128-bit hash that names inputs (config, profile, plan) and detects accidental change, not
 * attacks. Equal bytes have equal hashes on every machine. */
#ifndef WEFT_BASE_HASH_H
#define WEFT_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft_hash {
    uint64_t high;
    uint64_t low;
};

enum { WEFT_HASH_TEXT_BYTES = 33 };

struct weft_hash weft_hash_bytes(const void *bytes, size_t length);
/* 64 bits of a string, for naming random streams. */
uint64_t weft_hash_string(const char *string);
bool weft_hash_equal(struct weft_hash a, struct weft_hash b);
/* 32 lower-case hexadecimal digits. Returns `out`. */
const char *weft_hash_show(struct weft_hash hash, char out[WEFT_HASH_TEXT_BYTES]);
/* Reads 32 hexadecimal digits; otherwise returns false and leaves *out untouched. */
bool weft_hash_read(const char *string, struct weft_hash *out);

#endif
