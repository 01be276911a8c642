/* SPDX-License-Identifier: Apache-2.0
 * exp2, exp and tanh of the cpu engines: no calls and no branches, for a whole elem. Included once, by an engine.
 */
/* 2^x for x up to 127. x = n + f, where n is the nearest integer. It is found by adding 1.5 * 2^23 + 127, after which the low
 * bits hold the exponent of 2^n. 2^f is a polynomial that is 1 at 0, accurate to 9.2e-8 before rounding. The error is at most
 * 2.1 ulp with fma, and 2.3 ulp without. The result is exactly 0 below -126, -inf included, so that no result is subnormal. The
 * comparison lets NaN pass through. */
FN elem cpu_power(elem t, elem f, index vanishes)
{
    elem p = MULTIPLY_ADD((elem)(1.32647285e-3f), f, (elem)(9.67151299e-3f));
    p = MULTIPLY_ADD(p, f, (elem)(5.55073358e-2f));
    p = MULTIPLY_ADD(p, f, (elem)(2.40222424e-1f));
    p = MULTIPLY_ADD(p, f, (elem)(6.93147004e-1f));
    p = MULTIPLY_ADD(p, f, (elem)(1.0f));
    return PICK(vanishes, (elem)(0.0f), p * as_elem(as_index(t) << 23));
}
FN elem cpu_exp2(elem x)
{
    const elem t = x + (elem)(12583039.0f), f = x - (t - (elem)(12583039.0f));
    return cpu_power(t, f, (index)(x < (elem)(-126.0f)));
}
/* e^x, with as many instructions where there is a fused multiply-add. */
FN elem cpu_exp(elem x)
{
    const elem t = MULTIPLY_ADD(x, (elem)(LOG2_E), (elem)(12583039.0f));
    const elem f = MULTIPLY_ADD(x, (elem)(LOG2_E), (elem)(12583039.0f) - t);
    return cpu_power(t, f, (index)(x < (elem)(-126.0f * LN_2)));
}

/* Below 0.55 a polynomial (error 4e-9 before rounding), above it 1 - 2 / (e^2x + 1), which is 1 from 10 on. NaN passes
 * through. */
FN elem cpu_tanh(elem x)
{
    const elem size = as_elem(as_index(x) & 0x7fffffff), z = x * x;
    elem p = MULTIPLY_ADD((elem)(-6.61022775e-3f), z, (elem)(2.13093888e-2f));
    p = MULTIPLY_ADD(p, z, (elem)(-5.39094284e-2f));
    p = MULTIPLY_ADD(p, z, (elem)(1.33331135e-1f));
    p = MULTIPLY_ADD(p, z, (elem)(-3.33333313e-1f));
    p = MULTIPLY_ADD(p * z, size, size);
    const elem e = cpu_exp2(PICK(size > (elem)(10.0f), (elem)(10.0f), size) * (elem)(2.0f * LOG2_E));
    const elem y = PICK(size < (elem)(0.55f), p, (elem)(1.0f) - (elem)(2.0f) / (e + (elem)(1.0f)));
    return as_elem(as_index(y) | (as_index(x) & (index)(int)0x80000000u));
}
