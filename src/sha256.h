/* SPDX-License-Identifier: Apache-2.0
 * SHA-256 (FIPS 180-4), which names cache entries and detects damage to them. */
#ifndef CLATTN_SHA256_H
#define CLATTN_SHA256_H

#include <stddef.h>

#define CLA_SHA256_SIZE 32

void cla_sha256(const void *bytes, size_t size, unsigned char hash[CLA_SHA256_SIZE]);

#endif
