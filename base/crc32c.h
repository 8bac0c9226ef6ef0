/* SPDX-License-Identifier: Apache-2.0 */
/* CRC32C (Castagnoli, reflected 0x82F63B78) as in iSCSI (RFC 3720) and ext4. It finds every burst
 * of up to 32 bits, and all but 2^-32 of other errors. A CRC is linear over XOR, so ranks that each
 * hold some bytes of a chunk compute shares of its CRC and XOR them. */
#ifndef WEFT_BASE_CRC32C_H
#define WEFT_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Extends `crc`, the CRC of the bytes before (0: none), by these bytes. Uses the processor's
 * instruction if there is one. */
uint32_t weft_crc32c(uint32_t crc, const void *bytes, size_t length);
/* The same by tables, on every machine. */
uint32_t weft_crc32c_table(uint32_t crc, const void *bytes, size_t length);

/* The share of `length` bytes in the CRC of a chunk, with `behind` bytes after them. The CRC of a
 * chunk is weft_crc32c_frame(its length) XOR the shares of runs that cover it once. */
uint32_t weft_crc32c_share(const void *bytes, size_t length, int64_t behind);
/* The CRC of `length` zero bytes. */
uint32_t weft_crc32c_frame(int64_t length);

#endif
