/* SPDX-License-Identifier: Apache-2.0 */
#include "base/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"

enum { MOST_DIGITS = 18 };

/* A unit is an integer multiple of the smallest unit of its measure. */
struct unit {
    const char *name;
    int64_t multiple;
};

#define KI ((int64_t)1 << 10)
#define MI ((int64_t)1 << 20)
#define GI ((int64_t)1 << 30)
#define TI ((int64_t)1 << 40)
#define K  INT64_C(1000)
#define M  INT64_C(1000000)
#define G  INT64_C(1000000000)
#define T  INT64_C(1000000000000)
#define P  INT64_C(1000000000000000)

static const struct unit byte_units[] = {
    {"B", 1},    {"kB", K},   {"MB", M},   {"GB", G},   {"TB", T},       {"PB", P},
    {"KiB", KI}, {"MiB", MI}, {"GiB", GI}, {"TiB", TI}, {"PiB", TI *KI}, {NULL, 0},
};
/* Multiples are in bits a second. */
static const struct unit rate_units[] = {
    {"bit/s", 1},      {"kbit/s", K},     {"Mbit/s", M},     {"Gbit/s", G},     {"Tbit/s", T},
    {"B/s", 8},        {"kB/s", 8 * K},   {"MB/s", 8 * M},   {"GB/s", 8 * G},   {"TB/s", 8 * T},
    {"KiB/s", 8 * KI}, {"MiB/s", 8 * MI}, {"GiB/s", 8 * GI}, {"TiB/s", 8 * TI}, {NULL, 0},
};
static const struct unit time_units[] = {
    {"ns", 1}, {"us", K}, {"ms", M}, {"s", G}, {"min", 60 * G}, {"h", 3600 * G}, {NULL, 0},
};
static const struct unit count_units[] = {
    {"", 1}, {"k", K}, {"M", M}, {"G", G}, {"T", T}, {"P", P}, {NULL, 0},
};

/* A decimal number digits / 10^decimals, and the text after it. */
struct quantity {
    int64_t digits;
    int decimals;
    int number_length; /* characters of the number, for messages */
    const char *suffix;
};

/* False, with the reason in *why, if `string` does not start with a number. */
static bool read_number(const char *string, struct quantity *out, const char **why)
{
    struct quantity quantity = {0};
    const char *at = string;
    int digit_count = 0;
    bool point = false;
    *why = "a number must come first";
    if (*at == '-') *why = "it is negative";
    for (;; at++) {
        if (*at == '.' && !point && digit_count > 0) {
            point = true;
            continue;
        }
        if (*at < '0' || *at > '9') break;
        digit_count++;
        if (quantity.digits > INT64_C(99999999999999999)) {
            *why = "its number has more than 18 digits";
            return false;
        }
        quantity.digits = quantity.digits * 10 + (*at - '0');
        quantity.decimals += point ? 1 : 0;
    }
    if (digit_count == 0) return false;
    if (at[-1] == '.') {
        *why = "a digit is missing after the decimal point";
        return false;
    }
    if (quantity.decimals > MOST_DIGITS) {
        *why = "its number has more than 18 decimals";
        return false;
    }
    quantity.number_length = (int)(at - string);
    /* "1.50 GiB" is Weft's own output, so it is read too. */
    quantity.suffix = *at == ' ' && at[1] != '\0' ? at + 1 : at;
    *out = quantity;
    return true;
}

static const struct unit *find_unit(const struct unit *units, const char *name)
{
    for (; units->name != NULL; units++) {
        if (strcmp(units->name, name) == 0) return units;
    }
    return NULL;
}

/* digits / 10^decimals * multiple, rounded to nearest. False if it exceeds an int64. */
static bool to_integer(const struct quantity *quantity, int64_t multiple, int64_t *out)
{
    /* Takes fraction digits from the last to the first. Each remainder is less than a unit of the
     * next step, so only the last remainder decides the rounding. 10 * 2^50 fits. */
    int64_t whole = quantity->digits, part = 0, remainder = 0, sum;
    for (int i = 0; i < quantity->decimals; i++) {
        int64_t scaled = whole % 10 * multiple + part;
        whole /= 10;
        part = scaled / 10;
        remainder = scaled % 10;
    }
    if (remainder >= 5) part++;
    if (!weft_checked_mul(whole, multiple, &sum)) return false;
    return weft_checked_add(sum, part, out);
}

/* The same as a double, with one rounding if the numerator is below 2^53. */
static double to_double(const struct quantity *quantity, int64_t multiple)
{
    int decimals = quantity->decimals;
    double scale = 1;
    for (; decimals > 0 && multiple % 10 == 0; decimals--)
        multiple /= 10;
    for (; decimals > 0; decimals--)
        scale *= 10;
    return (double)quantity->digits * (double)multiple / scale;
}

static int lower_case(int c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

/* Lists the units, as in "kB, MB or GB". */
static void list_units(struct weft_text *text, const struct unit *units)
{
    for (; units->name != NULL; units++) {
        if (units->name[0] == '\0') continue;
        weft_text_addf(text, "%s%s", units->name,
                       units[1].name == NULL   ? ""
                       : units[2].name == NULL ? " or "
                                               : ", ");
    }
}

static const char *describe_unit(const struct quantity *quantity)
{
    return quantity->suffix[0] == '\0' ? "has no unit" : "has an unknown unit";
}

static enum weft_status fail_number(const char *string, const char *why, const char *example,
                                    struct weft_error *err)
{
    return weft_fail(err, WEFT_E_DATA, "\"%s\": %s; write for example \"%s\"", string, why,
                     example);
}

static enum weft_status fail_large(const char *string, struct weft_error *err)
{
    return weft_fail(err, WEFT_E_DATA, "\"%s\" is too large: at most 2^63 - 1 can be held", string);
}

/* The letter of a prefix in SI and in IEC notation. */
static bool prefix_of(const char *suffix, char *decimal, char *binary)
{
    static const char known[] = "kmgtp";
    char letter = (char)lower_case(suffix[0]);
    if (letter == '\0' || strchr(known, letter) == NULL) return false;
    *binary = (char)(letter - 'a' + 'A');
    *decimal = letter == 'k' ? 'k' : *binary;
    return true;
}

/* Shows both readings of a number with an ambiguous unit, 1000 or 1024. */
static enum weft_status fail_bytes(const char *string, const struct quantity *quantity,
                                   struct weft_error *err)
{
    struct weft_text help;
    weft_text_init(&help);
    char names[2][4] = {"GiB", "GB"};
    bool prefixed = prefix_of(quantity->suffix, &names[1][0], &names[0][0]);
    if (prefixed || quantity->suffix[0] == '\0') {
        weft_text_add(&help, "did you mean ");
        for (int i = 0; i < 2; i++) {
            int64_t bytes;
            weft_text_addf(&help, "%s\"%.*s%s\"", i == 0 ? "" : " or ", quantity->number_length,
                           string, names[i]);
            if (to_integer(quantity, find_unit(byte_units, names[i])->multiple, &bytes)) {
                weft_text_addf(&help, " (%" PRId64 " bytes)", bytes);
            }
        }
        weft_text_add(&help, "?");
    } else {
        weft_text_add(&help, "use ");
        list_units(&help, byte_units);
    }
    enum weft_status status = weft_fail(err, WEFT_E_DATA, "\"%s\" %s of bytes: %s", string,
                                        describe_unit(quantity), weft_text_chars(&help));
    weft_text_finish(&help);
    return status;
}

/* Fails for measures without an ambiguity. */
static enum weft_status fail_unit(const char *string, const struct quantity *quantity,
                                  const char *measure, const struct unit *units,
                                  struct weft_error *err)
{
    struct weft_text help;
    weft_text_init(&help);
    list_units(&help, units);
    enum weft_status status = weft_fail(err, WEFT_E_DATA, "\"%s\" %s of %s: use %s", string,
                                        describe_unit(quantity), measure, weft_text_chars(&help));
    weft_text_finish(&help);
    return status;
}

/* "25G", "25Gb/s" and "25Gbps" may be bits or bytes: show both. */
static enum weft_status fail_rate(const char *string, const struct quantity *quantity,
                                  struct weft_error *err)
{
    char bits[] = "Gbit/s", bytes[] = "GB/s", unused;
    bool prefixed = prefix_of(quantity->suffix, &bits[0], &unused) && bits[0] != 'P';
    if (!prefixed && quantity->suffix[0] != '\0') {
        return fail_unit(string, quantity, "rate", rate_units, err);
    }
    if (!prefixed) bits[0] = 'G';
    bytes[0] = bits[0];
    return weft_fail(
        err, WEFT_E_DATA,
        "\"%s\" %s of rate: did you mean \"%.*s%s\" (%.9g bytes/s) or \"%.*s%s\" (%.9g bytes/s)?",
        string, describe_unit(quantity), quantity->number_length, string, bits,
        to_double(quantity, find_unit(rate_units, bits)->multiple) / 8, quantity->number_length,
        string, bytes, to_double(quantity, find_unit(rate_units, bytes)->multiple) / 8);
}

enum weft_status weft_units_bytes(const char *string, int64_t *bytes, struct weft_error *err)
{
    struct quantity quantity;
    const char *why;
    if (!read_number(string, &quantity, &why)) return fail_number(string, why, "24GiB", err);
    const struct unit *unit = find_unit(byte_units, quantity.suffix);
    if (unit == NULL) return fail_bytes(string, &quantity, err);
    return to_integer(&quantity, unit->multiple, bytes) ? WEFT_OK : fail_large(string, err);
}

enum weft_status weft_units_bytes_per_s(const char *string, double *bytes_per_s,
                                        struct weft_error *err)
{
    struct quantity quantity;
    const char *why;
    if (!read_number(string, &quantity, &why)) return fail_number(string, why, "25Gbit/s", err);
    const struct unit *unit = find_unit(rate_units, quantity.suffix);
    if (unit == NULL) return fail_rate(string, &quantity, err);
    *bytes_per_s = to_double(&quantity, unit->multiple) / 8;
    return WEFT_OK;
}

enum weft_status weft_units_ns(const char *string, int64_t *ns, struct weft_error *err)
{
    struct quantity quantity;
    const char *why;
    if (!read_number(string, &quantity, &why)) return fail_number(string, why, "8us", err);
    const struct unit *unit = find_unit(time_units, quantity.suffix);
    if (unit == NULL) return fail_unit(string, &quantity, "time", time_units, err);
    return to_integer(&quantity, unit->multiple, ns) ? WEFT_OK : fail_large(string, err);
}

enum weft_status weft_units_count(const char *string, double *count, struct weft_error *err)
{
    struct quantity quantity;
    const char *why;
    if (!read_number(string, &quantity, &why)) return fail_number(string, why, "312T", err);
    const struct unit *unit = find_unit(count_units, quantity.suffix);
    if (unit == NULL) return fail_unit(string, &quantity, "count", count_units, err);
    *count = to_double(&quantity, unit->multiple);
    return WEFT_OK;
}

/* Formats three significant digits and a unit. */
static const char *show_quantity(double value, const char *unit, char out[WEFT_UNITS_TEXT_BYTES])
{
    double size = fabs(value);
    int decimals = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
    snprintf(out, WEFT_UNITS_TEXT_BYTES, "%.*f %s", decimals, value, unit);
    return out;
}

/* Divides by `base` while the value, as shown, would reach it. Returns the number of divisions. */
static int scale_down(double *value, double base, int most)
{
    int steps = 0;
    for (; steps < most && fabs(*value) >= base - 0.5; steps++)
        *value /= base;
    return steps;
}

static void write_bytes_in(int64_t bytes, int64_t step, const char *const names[5],
                           char out[WEFT_UNITS_TEXT_BYTES])
{
    size_t unit = 0;
    for (; unit < 4 && bytes != 0 && bytes % step == 0; unit++)
        bytes /= step;
    snprintf(out, WEFT_UNITS_TEXT_BYTES, "%lld%s", (long long)bytes, names[unit]);
}

const char *weft_units_write_bytes(int64_t bytes, char out[WEFT_UNITS_TEXT_BYTES])
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    write_bytes_in(bytes, 1024, names, out);
    return out;
}

const char *weft_units_write_bytes_shortly(int64_t bytes, char out[WEFT_UNITS_TEXT_BYTES])
{
    static const char *const names[] = {"B", "kB", "MB", "GB", "TB"};
    char other[WEFT_UNITS_TEXT_BYTES];
    weft_units_write_bytes(bytes, out);
    write_bytes_in(bytes, 1000, names, other);
    if (strlen(other) < strlen(out)) memcpy(out, other, sizeof other);
    return out;
}

const char *weft_units_show_bytes(int64_t bytes, char out[WEFT_UNITS_TEXT_BYTES])
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    int steps = scale_down(&value, 1024, 6);
    if (steps > 0) return show_quantity(value, names[steps], out);
    snprintf(out, WEFT_UNITS_TEXT_BYTES, "%" PRId64 " B", bytes);
    return out;
}

const char *weft_units_show_ns(int64_t ns, char out[WEFT_UNITS_TEXT_BYTES])
{
    static const char *const names[] = {"ns", "us", "ms", "s"};
    double value = (double)ns;
    int steps = scale_down(&value, 1000, 3);
    if (steps == 0) {
        snprintf(out, WEFT_UNITS_TEXT_BYTES, "%" PRId64 " ns", ns);
        return out;
    }
    if (steps < 3 || fabs((double)ns) < 120e9) {
        value = (double)ns / pow(1000, steps);
        return show_quantity(value, names[steps], out);
    }
    double minutes = (double)ns / 60e9;
    return fabs(minutes) < 120 ? show_quantity(minutes, "min", out)
                               : show_quantity(minutes / 60, "h", out);
}

const char *weft_units_show_rate(double bytes_per_s, char out[WEFT_UNITS_TEXT_BYTES])
{
    static const char *const names[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"};
    double value = bytes_per_s;
    int steps = scale_down(&value, 1000, 5);
    /* An absurd rate must still fit into the text. */
    if (!(fabs(value) < 1e9)) {
        snprintf(out, WEFT_UNITS_TEXT_BYTES, "%.3g %s", value, names[steps]);
        return out;
    }
    return show_quantity(value, names[steps], out);
}

double weft_units_unsigned_nan(double number)
{
    return isnan(number) ? (double)NAN : number;
}
