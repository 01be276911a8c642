/* SPDX-License-Identifier: Apache-2.0 */
#include "sha256.h"

#include <stdint.h>
#include <string.h>

enum { BLOCK = 64, ROUNDS = 64 };

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t constants[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
    0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
    0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
    0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turned(uint32_t x, int bits) { return x >> bits | x << (32 - bits); }

static void put(unsigned char *at, uint32_t word)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(word >> (24 - 8 * i));
}

/* The standard rotates the state by one word a round; here the indices rotate instead. */
static inline void one_round(uint32_t s[8], int turn, uint32_t add)
{
#define S(i) s[(i - turn) & 7]
    const uint32_t choice = (S(4) & S(5)) ^ (~S(4) & S(6)), majority = (S(0) & S(1)) ^ (S(0) & S(2)) ^ (S(1) & S(2));
    add += S(7) + (turned(S(4), 6) ^ turned(S(4), 11) ^ turned(S(4), 25)) + choice;
    S(3) += add;
    S(7) = add + (turned(S(0), 2) ^ turned(S(0), 13) ^ turned(S(0), 22)) + majority;
#undef S
}

static void add_block(uint32_t state[8], const unsigned char *block)
{
    uint32_t w[ROUNDS], s[8];
    memcpy(s, state, sizeof s);
    for (int i = 0; i < 16; i++, block += 4)
        w[i] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 | (uint32_t)block[2] << 8 | block[3];
    for (int i = 16; i < ROUNDS; i++) {
        const uint32_t a = turned(w[i - 15], 7) ^ turned(w[i - 15], 18) ^ w[i - 15] >> 3;
        const uint32_t b = turned(w[i - 2], 17) ^ turned(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + a + w[i - 7] + b;
    }
    for (int i = 0; i < ROUNDS; i += 8)
        for (int j = 0; j < 8; j++)
            one_round(s, j, constants[i + j] + w[i + j]);
    for (int i = 0; i < 8; i++)
        state[i] += s[i];
}

void cla_sha256(const void *bytes, size_t size, unsigned char hash[CLA_SHA256_SIZE])
{
    uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const unsigned char *at = bytes;
    size_t left = size;
    for (; left >= BLOCK; left -= BLOCK, at += BLOCK)
        add_block(state, at);
    /* The padding: the remaining bytes, one bit, zeros, and the number of bits in the last eight bytes. */
    unsigned char end[2 * BLOCK] = {0};
    const size_t blocks = left + 9 <= BLOCK ? 1 : 2;
    if (left > 0)
        memcpy(end, at, left);
    end[left] = 0x80;
    put(end + blocks * BLOCK - 8, (uint32_t)((uint64_t)size >> 29));
    put(end + blocks * BLOCK - 4, (uint32_t)((uint64_t)size << 3));
    for (size_t i = 0; i < blocks; i++)
        add_block(state, end + i * BLOCK);
    for (int i = 0; i < 8; i++)
        put(hash + (size_t)4 * i, state[i]);
}
