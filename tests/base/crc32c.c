/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/rng.h"

enum { BYTES = 70000 };

static unsigned char *random_bytes(uint64_t stream)
{
    unsigned char *bytes = malloc(BYTES);
    cr_assert_not_null(bytes);
    for (int i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)weft_rng_u64(7, stream, (uint64_t)i);
    return bytes;
}

/* The examples of RFC 3720, B.4, and the check value of the catalogue of parametrised CRCs. */
Test(crc32c, published_values)
{
    unsigned char bytes[32] = {0};
    cr_assert_eq(weft_crc32c(0, bytes, 32), 0x8A9136AAu);
    memset(bytes, 0xFF, 32);
    cr_assert_eq(weft_crc32c(0, bytes, 32), 0x62A8AB43u);
    for (int i = 0; i < 32; i++)
        bytes[i] = (unsigned char)i;
    cr_assert_eq(weft_crc32c(0, bytes, 32), 0x46DD794Eu);
    cr_assert_eq(weft_crc32c(0, "123456789", 9), 0xE3069283u);
    cr_assert_eq(weft_crc32c_table(0, "123456789", 9), 0xE3069283u);
    cr_assert_eq(weft_crc32c(0, NULL, 0), 0);
}

Test(crc32c, instruction_and_tables_agree)
{
    unsigned char *bytes = random_bytes(1);
    for (size_t length = 0; length < 300; length++) {
        size_t at = length % 13;
        cr_assert_eq(weft_crc32c(99, bytes + at, length),
                     weft_crc32c_table(99, bytes + at, length));
    }
    /* Beyond 64 KiB an instruction goes through three parts side by side. */
    for (size_t length = 65536 - 30; length <= BYTES; length += length < 65536 + 60 ? 1 : 97)
        cr_assert_eq(weft_crc32c(7, bytes, length), weft_crc32c_table(7, bytes, length));
    for (size_t length = BYTES - 20; length <= BYTES; length++)
        cr_assert_eq(weft_crc32c(0, bytes, length), weft_crc32c_table(0, bytes, length));
    free(bytes);
}

Test(crc32c, goes_on_where_it_stopped)
{
    unsigned char *bytes = random_bytes(2);
    uint32_t whole = weft_crc32c(0, bytes, BYTES);
    for (size_t cut = 0; cut <= BYTES; cut += 997)
        cr_assert_eq(weft_crc32c(weft_crc32c(0, bytes, cut), bytes + cut, BYTES - cut), whole);
    free(bytes);
}

Test(crc32c, shares_of_runs_make_the_whole)
{
    unsigned char *bytes = random_bytes(3);
    for (uint64_t round = 0; round < 50; round++) {
        int64_t length = 1 + (int64_t)weft_rng_below(5, round, 0, BYTES), at = 0;
        uint32_t sum = weft_crc32c_frame(length);
        for (uint64_t draw = 1; at < length; draw++) {
            int64_t run = 1 + (int64_t)weft_rng_below(5, round, draw, 5000);
            if (run > length - at) run = length - at;
            sum ^= weft_crc32c_share(bytes + at, (size_t)run, length - at - run);
            at += run;
        }
        cr_assert_eq(sum, weft_crc32c(0, bytes, (size_t)length), "%lld bytes", (long long)length);
    }
    cr_assert_eq(weft_crc32c_frame(0), 0);
    free(bytes);
}
