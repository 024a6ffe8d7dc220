// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt --split-input-file --spmd-name-attention %s | FileCheck %s

// A softmax of linalg; two query heads share a key head. A mask is added.
// CHECK-DAG: #[[Q:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d4)>
// CHECK-DAG: #[[K:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d3, d4)>
// CHECK-DAG: #[[V:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d3, d5)>
// CHECK-DAG: #[[R:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d5)>
// CHECK-DAG: #[[MASK:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d2, d3)>
// CHECK-LABEL: func.func @grouped
// CHECK: spmd.attention <[3, 2], queries = 8, keys = 10, head = 16, value = 5 : [#[[Q]], #[[K]], #[[V]], #[[R]]]> [#[[MASK]]]
// CHECK: ^bb0(%[[PRODUCT:.*]]: f32, %[[ADDED:.*]]: f32, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index):
// CHECK: %[[SCORE:.*]] = arith.addf %[[PRODUCT]], %[[ADDED]] : f32
// CHECK: spmd.score %[[SCORE]] : f32
// CHECK-NOT: linalg.softmax
#q = affine_map<(h, g, q, k, d) -> (h, g, q, d)>
#k = affine_map<(h, g, q, k, d) -> (h, k, d)>
#s = affine_map<(h, g, q, k, d) -> (h, g, q, k)>
#w = affine_map<(h, g, q, v, k) -> (h, g, q, k)>
#v = affine_map<(h, g, q, v, k) -> (h, k, v)>
#o = affine_map<(h, g, q, v, k) -> (h, g, q, v)>
#all = affine_map<(h, g, q, k) -> (h, g, q, k)>
#mask = affine_map<(h, g, q, k) -> (q, k)>
func.func @grouped(%q: tensor<3x2x8x16xf32>, %k: tensor<3x10x16xf32>, %v: tensor<3x10x5xf32>, %m: tensor<8x10xf32>) -> tensor<3x2x8x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x2x8x10xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x2x8x10xf32>) -> tensor<3x2x8x10xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<3x2x8x16xf32>, tensor<3x10x16xf32>) outs(%f : tensor<3x2x8x10xf32>) {
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %p = arith.mulf %x, %y : f32
    %n = arith.addf %sum, %p : f32
    linalg.yield %n : f32
  } -> tensor<3x2x8x10xf32>
  %t = linalg.generic {indexing_maps = [#all, #mask, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s, %m : tensor<3x2x8x10xf32>, tensor<8x10xf32>) outs(%e : tensor<3x2x8x10xf32>) {
  ^bb0(%x: f32, %y: f32, %old: f32):
    %n = arith.addf %x, %y : f32
    linalg.yield %n : f32
  } -> tensor<3x2x8x10xf32>
  %w = linalg.softmax dimension(3) ins(%t : tensor<3x2x8x10xf32>) outs(%e : tensor<3x2x8x10xf32>) -> tensor<3x2x8x10xf32>
  %e2 = tensor.empty() : tensor<3x2x8x5xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<3x2x8x5xf32>) -> tensor<3x2x8x5xf32>
  %r = linalg.generic {indexing_maps = [#w, #v, #o], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%w, %v : tensor<3x2x8x10xf32>, tensor<3x10x5xf32>) outs(%f2 : tensor<3x2x8x5xf32>) {
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %p = arith.mulf %x, %y : f32
    %n = arith.addf %sum, %p : f32
    linalg.yield %n : f32
  } -> tensor<3x2x8x5xf32>
  return %r : tensor<3x2x8x5xf32>
}

// -----

// Along the queries it is no softmax of an attention.
// CHECK-LABEL: func.func @columns
// CHECK-NOT: spmd.attention
func.func @columns(%q: tensor<8x16xf32>, %k: tensor<16x8xf32>, %v: tensor<8x5xf32>) -> tensor<8x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %s = linalg.matmul ins(%q, %k : tensor<8x16xf32>, tensor<16x8xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  %w = linalg.softmax dimension(0) ins(%s : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %e2 = tensor.empty() : tensor<8x5xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<8x5xf32>) -> tensor<8x5xf32>
  %r = linalg.matmul ins(%w, %v : tensor<8x8xf32>, tensor<8x5xf32>) outs(%f2 : tensor<8x5xf32>) -> tensor<8x5xf32>
  return %r : tensor<8x5xf32>
}

// -----

// The result is rounded as a part of it.
// CHECK-LABEL: func.func @rounded
// CHECK: spmd.attention <[1], queries = 8, keys = 9, head = 16, value = 5
// CHECK-SAME: tensor<8x5xf16>
// CHECK-NOT: arith.truncf
#id = affine_map<(i, j) -> (i, j)>
func.func @rounded(%q: tensor<8x16xf32>, %k: tensor<16x9xf32>, %v: tensor<9x5xf32>) -> tensor<8x5xf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x9xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x9xf32>) -> tensor<8x9xf32>
  %s = linalg.matmul ins(%q, %k : tensor<8x16xf32>, tensor<16x9xf32>) outs(%f : tensor<8x9xf32>) -> tensor<8x9xf32>
  %w = linalg.softmax dimension(1) ins(%s : tensor<8x9xf32>) outs(%e : tensor<8x9xf32>) -> tensor<8x9xf32>
  %e2 = tensor.empty() : tensor<8x5xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<8x5xf32>) -> tensor<8x5xf32>
  %r = linalg.matmul ins(%w, %v : tensor<8x9xf32>, tensor<9x5xf32>) outs(%f2 : tensor<8x5xf32>) -> tensor<8x5xf32>
  %e3 = tensor.empty() : tensor<8x5xf16>
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%r : tensor<8x5xf32>) outs(%e3 : tensor<8x5xf16>) {
  ^bb0(%x: f32, %old: f16):
    %y = arith.truncf %x : f32 to f16
    linalg.yield %y : f16
  } -> tensor<8x5xf16>
  return %n : tensor<8x5xf16>
}

// -----

// Few queries of many keys share out the keys by their operations.
// CHECK-LABEL: func.func @few
// CHECK-NOT: spmd.attention
func.func @few(%q: tensor<8x16xf32>, %k: tensor<16x2048xf32>, %v: tensor<2048x5xf32>) -> tensor<8x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x2048xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x2048xf32>) -> tensor<8x2048xf32>
  %s = linalg.matmul ins(%q, %k : tensor<8x16xf32>, tensor<16x2048xf32>) outs(%f : tensor<8x2048xf32>) -> tensor<8x2048xf32>
  %w = linalg.softmax dimension(1) ins(%s : tensor<8x2048xf32>) outs(%e : tensor<8x2048xf32>) -> tensor<8x2048xf32>
  %e2 = tensor.empty() : tensor<8x5xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<8x5xf32>) -> tensor<8x5xf32>
  %r = linalg.matmul ins(%w, %v : tensor<8x2048xf32>, tensor<2048x5xf32>) outs(%f2 : tensor<8x5xf32>) -> tensor<8x5xf32>
  return %r : tensor<8x5xf32>
}

// -----

// A number that was computed as a tensor of one element.
// CHECK-LABEL: func.func @one_element
// CHECK-NOT: spmd.attention
// CHECK: return
func.func @one_element(%x: tensor<2x3xf32>, %w: tensor<1xf64>) -> tensor<2x3xf32> {
  %empty = tensor.empty() : tensor<1xf32>
  %narrow = linalg.generic {
      indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%w : tensor<1xf64>) outs(%empty : tensor<1xf32>) {
  ^bb0(%in: f64, %out: f32):
    %0 = arith.truncf %in : f64 to f32
    linalg.yield %0 : f32
  } -> tensor<1xf32>
  %number = tensor.collapse_shape %narrow [] : tensor<1xf32> into tensor<f32>
  %like = tensor.empty() : tensor<2x3xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(d0, d1) -> ()>, affine_map<(d0, d1) -> (d0, d1)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%number : tensor<f32>) outs(%like : tensor<2x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}
