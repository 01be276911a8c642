/* SPDX-License-Identifier: Apache-2.0
 * The engines, one line each, in the order in which they are tried: the fastest where it serves first, `reference` last of
 * those that are chosen without being named. Define ENGINE(name) before including this. */
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
