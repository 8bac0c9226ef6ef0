#include "base/numbers.h"

int64_t weft_dtype_bytes(enum weft_dtype dtype)
{
    return dtype == WEFT_F32 ? 4 : 2;
}

const char *weft_dtype_name(enum weft_dtype dtype)
{
    static const char *const names[WEFT_DTYPE_COUNT] = {"f32", "bf16", "f16"};
    return names[dtype];
}
