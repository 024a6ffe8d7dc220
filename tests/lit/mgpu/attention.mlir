// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --split-input-file --verify-diagnostics

#q = affine_map<(b, q, k, d, v) -> (q, d)>
#k = affine_map<(b, q, k, d, v) -> (k, d)>
#v = affine_map<(b, q, k, d, v) -> (k, v)>
#r = affine_map<(b, q, k, d, v) -> (q, v)>
func.func @kernel(%q: memref<4x8xf32>, %k: memref<6x8xf32>, %v: memref<6x5xf32>, %r: memref<4x5xf32>)
    attributes {mgpu.attention = #mgpu.attention<[1], queries = 4, keys = 6, head = 8, value = 5 : [#q, #k, #v, #r] at [0, 1, 2, 3]>} {
  return
}

// -----

#q = affine_map<(b, q, k, d, v) -> (q, d)>
#k = affine_map<(b, q, k, d, v) -> (k, d)>
#r = affine_map<(b, q, k, d, v) -> (q, v)>
// expected-error @below {{is an attention, and its arguments are other buffers than Q, K, V and the result}}
func.func @kernel(%q: memref<4x8xf32>, %k: memref<6x8xf32>)
    attributes {mgpu.attention = #mgpu.attention<[1], queries = 4, keys = 6, head = 8, value = 5 : [#q, #k, #k, #r] at [0, 1, 2, 3]>} {
  return
}

// -----

#q = affine_map<(b, q, k, d, v) -> (q, d)>
// expected-error @below {{a size of an attention is 0; sizes are from 1 to 2^30}}
func.func private @kernel() attributes {mgpu.attention = #mgpu.attention<[0], queries = 4, keys = 6, head = 8, value = 5 : [#q, #q, #q, #q]>}

// -----

#q = affine_map<(b, q, k, d, v) -> (q floordiv 2, d)>
// expected-error @below {{an attention has maps of Q, K, V and the result, each of the batch's dimensions and four more}}
func.func private @kernel() attributes {mgpu.attention = #mgpu.attention<[1], queries = 4, keys = 6, head = 8, value = 5 : [#q, #q, #q, #q]>}
