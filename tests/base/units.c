/* SPDX-License-Identifier: Apache-2.0 */
#include "base/units.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static int64_t bytes_of(const char *string)
{
    struct weft_error err = {0};
    int64_t bytes = -1;
    cr_assert_eq(weft_units_bytes(string, &bytes, &err), WEFT_OK, "%s", err.text);
    return bytes;
}

static double rate_of(const char *string)
{
    struct weft_error err = {0};
    double rate = -1;
    cr_assert_eq(weft_units_bytes_per_s(string, &rate, &err), WEFT_OK, "%s", err.text);
    return rate;
}

static int64_t ns_of(const char *string)
{
    struct weft_error err = {0};
    int64_t ns = -1;
    cr_assert_eq(weft_units_ns(string, &ns, &err), WEFT_OK, "%s", err.text);
    return ns;
}

static double count_of(const char *string)
{
    struct weft_error err = {0};
    double count = -1;
    cr_assert_eq(weft_units_count(string, &count, &err), WEFT_OK, "%s", err.text);
    return count;
}

Test(units, bytes_count_by_1000_or_by_1024)
{
    cr_assert_eq(bytes_of("0B"), 0);
    cr_assert_eq(bytes_of("24GiB"), INT64_C(25769803776));
    cr_assert_eq(bytes_of("24GB"), INT64_C(24000000000));
    cr_assert_eq(bytes_of("1kB"), 1000);
    cr_assert_eq(bytes_of("1KiB"), 1024);
    cr_assert_eq(bytes_of("1.5GiB"), INT64_C(1610612736));
    cr_assert_eq(bytes_of("1.50 GiB"), INT64_C(1610612736));
    cr_assert_eq(bytes_of("8PiB"), INT64_C(8) << 50);
}

Test(units, bytes_are_exact_or_rounded_to_nearest)
{
    cr_assert_eq(bytes_of("0.1KiB"), 102);
    cr_assert_eq(bytes_of("0.6B"), 1);
    cr_assert_eq(bytes_of("0.4B"), 0);
    cr_assert_eq(bytes_of("0.499999999999999999B"), 0);
    /* More digits than a double holds. */
    cr_assert_eq(bytes_of("9007199254740993B"), INT64_C(9007199254740993));
    cr_assert_eq(bytes_of("9007199.254740993GB"), INT64_C(9007199254740993));
    cr_assert_eq(bytes_of("8191.999PiB"), INT64_C(9223370910954868965));
}

Test(units, rates_are_bits_or_bytes)
{
    cr_assert_eq(rate_of("25Gbit/s"), 3.125e9);
    cr_assert_eq(rate_of("8bit/s"), 1);
    cr_assert_eq(rate_of("1kbit/s"), 125);
    cr_assert_eq(rate_of("6.1GB/s"), 6.1e9);
    cr_assert_eq(rate_of("2GiB/s"), 2147483648.0);
    cr_assert_eq(rate_of("3.35TB/s"), 3.35e12);
}

Test(units, times_are_nanoseconds)
{
    cr_assert_eq(ns_of("8us"), 8000);
    cr_assert_eq(ns_of("1.5ms"), 1500000);
    cr_assert_eq(ns_of("30s"), INT64_C(30000000000));
    cr_assert_eq(ns_of("2min"), INT64_C(120000000000));
    cr_assert_eq(ns_of("0.5h"), INT64_C(1800000000000));
    cr_assert_eq(ns_of("0.0000000015s"), 2);
}

Test(units, counts_need_no_letter)
{
    cr_assert_eq(count_of("312T"), 312e12);
    cr_assert_eq(count_of("19.5T"), 19.5e12);
    cr_assert_eq(count_of("7"), 7);
    cr_assert_eq(count_of("0.1"), 0.1);
    cr_assert_eq(count_of("2k"), 2000);
}

typedef enum weft_status parse_bytes_fn(const char *, int64_t *, struct weft_error *);
typedef enum weft_status parse_real_fn(const char *, double *, struct weft_error *);

static void refuse_units(parse_bytes_fn *parse, const char *string, const char *message)
{
    struct weft_error err = {0};
    int64_t out = -7;
    cr_assert_eq(parse(string, &out, &err), WEFT_E_DATA, "%s was accepted", string);
    cr_assert_eq(out, -7);
    cr_assert_str_eq(err.text, message);
}

static void refuse_real(parse_real_fn *parse, const char *string, const char *message)
{
    struct weft_error err = {0};
    double out = -7;
    cr_assert_eq(parse(string, &out, &err), WEFT_E_DATA, "%s was accepted", string);
    cr_assert_eq(out, -7);
    cr_assert_str_eq(err.text, message);
}

Test(units, ambiguous_bytes_show_both_readings)
{
    refuse_units(
        weft_units_bytes, "24G",
        "\"24G\" has an unknown unit of bytes: did you mean \"24GiB\" (25769803776 bytes) or "
        "\"24GB\" (24000000000 bytes)?");
    refuse_units(
        weft_units_bytes, "24",
        "\"24\" has no unit of bytes: did you mean \"24GiB\" (25769803776 bytes) or \"24GB\" "
        "(24000000000 bytes)?");
    refuse_units(weft_units_bytes, "1.5KB",
                 "\"1.5KB\" has an unknown unit of bytes: did you mean \"1.5KiB\" (1536 bytes) or "
                 "\"1.5kB\" (1500 bytes)?");
    refuse_units(
        weft_units_bytes, "8gib",
        "\"8gib\" has an unknown unit of bytes: did you mean \"8GiB\" (8589934592 bytes) or "
        "\"8GB\" (8000000000 bytes)?");
    refuse_units(weft_units_bytes, "8191999P",
                 "\"8191999P\" has an unknown unit of bytes: did you mean \"8191999PiB\" or "
                 "\"8191999PB\"?");
}

Test(units, bad_bytes_say_what_is_right)
{
    refuse_units(weft_units_bytes, "",
                 "\"\": a number must come first; write for example \"24GiB\"");
    refuse_units(weft_units_bytes, "GiB",
                 "\"GiB\": a number must come first; write for example \"24GiB\"");
    refuse_units(weft_units_bytes, "-1GiB",
                 "\"-1GiB\": it is negative; write for example \"24GiB\"");
    refuse_units(weft_units_bytes, ".5GiB",
                 "\".5GiB\": a number must come first; write for example \"24GiB\"");
    refuse_units(
        weft_units_bytes, "5.GiB",
        "\"5.GiB\": a digit is missing after the decimal point; write for example \"24GiB\"");
    refuse_units(weft_units_bytes, "1234567890123456789B",
                 "\"1234567890123456789B\": its number has more than 18 digits; write for example "
                 "\"24GiB\"");
    refuse_units(weft_units_bytes, "8192PiB",
                 "\"8192PiB\" is too large: at most 2^63 - 1 can be held");
    refuse_units(
        weft_units_bytes, "3 s",
        "\"3 s\" has an unknown unit of bytes: use B, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB "
        "or PiB");
    struct weft_error err = {0};
    int64_t out;
    cr_assert_eq(weft_units_bytes("1GiB ", &out, &err), WEFT_E_DATA);
    cr_assert_eq(weft_units_bytes(" 1GiB", &out, NULL), WEFT_E_DATA);
    cr_assert_eq(weft_units_bytes("1  GiB", &out, NULL), WEFT_E_DATA);
    cr_assert_eq(weft_units_bytes("1e3B", &out, NULL), WEFT_E_DATA);
    cr_assert_eq(weft_units_bytes("1.2.3B", &out, NULL), WEFT_E_DATA);
    cr_assert_eq(weft_units_bytes("0.0000000000000000001B", &out, NULL), WEFT_E_DATA);
}

Test(units, ambiguous_rates_show_both_readings)
{
    refuse_real(weft_units_bytes_per_s, "25G",
                "\"25G\" has an unknown unit of rate: did you mean \"25Gbit/s\" (3.125e+09 "
                "bytes/s) or \"25GB/s\" (2.5e+10 bytes/s)?");
    refuse_real(weft_units_bytes_per_s, "100Mbps",
                "\"100Mbps\" has an unknown unit of rate: did you mean \"100Mbit/s\" (12500000 "
                "bytes/s) or \"100MB/s\" (100000000 bytes/s)?");
    refuse_real(weft_units_bytes_per_s, "3 apples",
                "\"3 apples\" has an unknown unit of rate: use bit/s, kbit/s, Mbit/s, Gbit/s, "
                "Tbit/s, B/s, kB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s or TiB/s");
}

Test(units, bad_times_and_counts_list_the_units)
{
    refuse_units(weft_units_ns, "8", "\"8\" has no unit of time: use ns, us, ms, s, min or h");
    refuse_units(weft_units_ns, "8m",
                 "\"8m\" has an unknown unit of time: use ns, us, ms, s, min or h");
    refuse_units(weft_units_ns, "99999999h",
                 "\"99999999h\" is too large: at most 2^63 - 1 can be held");
    refuse_real(weft_units_count, "312TF",
                "\"312TF\" has an unknown unit of count: use k, M, G, T or P");
}

Test(units, bytes_are_shown_with_three_digits)
{
    char out[WEFT_UNITS_TEXT_BYTES];
    cr_assert_str_eq(weft_units_show_bytes(0, out), "0 B");
    cr_assert_str_eq(weft_units_show_bytes(1023, out), "1023 B");
    cr_assert_str_eq(weft_units_show_bytes(1024, out), "1.00 KiB");
    cr_assert_str_eq(weft_units_show_bytes(INT64_C(1610612736), out), "1.50 GiB");
    cr_assert_str_eq(weft_units_show_bytes(-1536, out), "-1.50 KiB");
    cr_assert_str_eq(weft_units_show_bytes((1 << 20) - 1, out), "1.00 MiB");
    cr_assert_str_eq(weft_units_show_bytes(INT64_MAX, out), "8.00 EiB");
    cr_assert_str_eq(weft_units_show_bytes(INT64_MIN, out), "-8.00 EiB");
}

Test(units, bytes_are_written_as_they_are_read)
{
    static const struct {
        int64_t bytes;
        const char *text;
    } cases[] = {{0, "0B"},
                 {1023, "1023B"},
                 {1024, "1KiB"},
                 {INT64_C(24) << 30, "24GiB"},
                 {INT64_C(1500) << 20, "1500MiB"},
                 {(INT64_C(24) << 30) + 1, "25769803777B"},
                 {INT64_C(3) << 50, "3072TiB"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[WEFT_UNITS_TEXT_BYTES];
        int64_t back = -1;
        cr_assert_str_eq(weft_units_write_bytes(cases[i].bytes, text), cases[i].text);
        cr_assert_eq(weft_units_bytes(text, &back, NULL), WEFT_OK, "%s", text);
        cr_assert_eq(back, cases[i].bytes);
    }
}

Test(units, bytes_to_paste_are_as_short_as_they_can_be)
{
    static const struct {
        int64_t bytes;
        const char *text;
    } cases[] = {{0, "0B"},
                 {INT64_C(16000000000), "16GB"},
                 {INT64_C(24) << 30, "24GiB"},
                 {64000, "64kB"},
                 {10240, "10KiB"},
                 {1000001, "1000001B"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[WEFT_UNITS_TEXT_BYTES];
        int64_t back = -1;
        cr_assert_str_eq(weft_units_write_bytes_shortly(cases[i].bytes, text), cases[i].text);
        cr_assert_eq(weft_units_bytes(text, &back, NULL), WEFT_OK, "%s", text);
        cr_assert_eq(back, cases[i].bytes);
    }
}

Test(units, times_are_shown_with_three_digits)
{
    char out[WEFT_UNITS_TEXT_BYTES];
    cr_assert_str_eq(weft_units_show_ns(0, out), "0 ns");
    cr_assert_str_eq(weft_units_show_ns(999, out), "999 ns");
    cr_assert_str_eq(weft_units_show_ns(12345678, out), "12.3 ms");
    cr_assert_str_eq(weft_units_show_ns(999999, out), "1.00 ms");
    cr_assert_str_eq(weft_units_show_ns(INT64_C(90000000000), out), "90.0 s");
    cr_assert_str_eq(weft_units_show_ns(INT64_C(150000000000), out), "2.50 min");
    cr_assert_str_eq(weft_units_show_ns(INT64_C(36000000000000), out), "10.0 h");
    cr_assert_str_eq(weft_units_show_ns(-8000, out), "-8.00 us");
    cr_assert_str_eq(weft_units_show_ns(INT64_MIN, out), "-2562048 h");
}

Test(units, rates_are_shown_with_three_digits)
{
    char out[WEFT_UNITS_TEXT_BYTES];
    cr_assert_str_eq(weft_units_show_rate(1.25e9, out), "1.25 GB/s");
    cr_assert_str_eq(weft_units_show_rate(0, out), "0.00 B/s");
    cr_assert_str_eq(weft_units_show_rate(999.7, out), "1.00 kB/s");
    cr_assert_lt(strlen(weft_units_show_rate(1e300, out)), sizeof out);
    cr_assert_str_eq(weft_units_show_rate(INFINITY, out), "inf PB/s");
}

Test(units, a_nan_is_shown_without_a_sign)
{
    char out[32];
    snprintf(out, sizeof out, "%.4f", weft_units_unsigned_nan(copysign((double)NAN, -1)));
    cr_assert_str_eq(out, "nan");
    cr_assert_eq(weft_units_unsigned_nan(-2.5), -2.5);
    cr_assert_eq(weft_units_unsigned_nan(-INFINITY), -INFINITY);
}
