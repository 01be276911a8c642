/* SPDX-License-Identifier: Apache-2.0 */
#include "half.h"

#include <string.h>

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

float half_to_float(uint16_t bits)
{
    const uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    const uint32_t exponent = (bits >> 10) & 31u, fraction = bits & 0x3ffu;
    if (exponent == 31)
        return float_of(sign | 0x7f800000u | fraction << 13);
    if (exponent == 0) { /* subnormal: fraction * 2^-24, exact in float */
        const float magnitude = (float)fraction * 0x1p-24f;
        return sign ? -magnitude : magnitude;
    }
    return float_of(sign | (exponent + 112u) << 23 | fraction << 13);
}

uint16_t half_from_float(float x)
{
    const uint32_t bits = bits_of(x), magnitude = bits & 0x7fffffffu;
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x1ffu));
    if (magnitude >= 0x477ff000u) /* 65520 and more: halfway to 65536 rounds up */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) {
        /* Below 2^-14 the spacing is 2^-24, which is float's own spacing from 0.5 on: adding 0.5 lets the hardware round. */
        return (uint16_t)(sign | (bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f)));
    }
    return (uint16_t)(sign | ((magnitude + 0xfffu + (magnitude >> 13 & 1u) - 0x38000000u) >> 13));
}

float bf16_to_float(uint16_t bits) { return float_of((uint32_t)bits << 16); }

uint16_t bf16_from_float(float x)
{
    const uint32_t bits = bits_of(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

size_t storage_size(clattn_type type) { return type == CLATTN_FP32 ? 4 : 2; }

const char *storage_name(clattn_type type) { return type == CLATTN_FP32 ? "fp32" : type == CLATTN_FP16 ? "fp16" : "bf16"; }

float storage_get(clattn_type type, const void *data, int64_t index)
{
    if (type == CLATTN_FP32)
        return ((const float *)data)[index];
    const uint16_t bits = ((const uint16_t *)data)[index];
    return type == CLATTN_FP16 ? half_to_float(bits) : bf16_to_float(bits);
}

void storage_set(clattn_type type, void *data, int64_t index, float x)
{
    if (type == CLATTN_FP32)
        ((float *)data)[index] = x;
    else
        ((uint16_t *)data)[index] = type == CLATTN_FP16 ? half_from_float(x) : bf16_from_float(x);
}

float storage_round(clattn_type type, float x)
{
    if (type == CLATTN_FP32)
        return x;
    return type == CLATTN_FP16 ? half_to_float(half_from_float(x)) : bf16_to_float(bf16_from_float(x));
}

uint32_t storage_poison(clattn_type type)
{
    return type == CLATTN_FP32 ? 0x7fe5a5a5u : type == CLATTN_FP16 ? 0x7f5au : 0x7fdau;
}

void storage_fill_poison(clattn_type type, void *data, int64_t count)
{
    const uint32_t poison = storage_poison(type);
    for (int64_t i = 0; i < count; i++) {
        if (type == CLATTN_FP32)
            ((uint32_t *)data)[i] = poison;
        else
            ((uint16_t *)data)[i] = (uint16_t)poison;
    }
}

bool storage_is_poison(clattn_type type, const void *data, int64_t index)
{
    const uint32_t bits = type == CLATTN_FP32 ? ((const uint32_t *)data)[index] : ((const uint16_t *)data)[index];
    return bits == storage_poison(type);
}
