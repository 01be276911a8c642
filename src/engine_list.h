/* SPDX-License-Identifier: Apache-2.0
 * The engines, one line each, in the order in which they are tried: faster engines first, `reference` after all others that
 * need not be requested by name. Define ENGINE(name) before including this. */
ENGINE(cpu_decode)
ENGINE(cpu_amx)
ENGINE(cpu_bf16)
ENGINE(cpu)
ENGINE(nv_wgmma)
ENGINE(nv_mma)
ENGINE(nv_tf32x3)
ENGINE(simt)
ENGINE(reference)
ENGINE(unfused)
