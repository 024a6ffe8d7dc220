// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --convert-stablehlo-to-linalg --spmd-name-products --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @main
func.func @main(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>, %c: tensor<3x4x8xbf16>, %d: tensor<3x8x2xbf16>)
    -> (tensor<4x2xf32>, tensor<3x4x2xbf16>) {
  // CHECK: linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<8x2xf32>)
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  // Narrow floats are added up in f32.
  // CHECK: linalg.batch_matmul {{.*}} -> tensor<3x4x2xf32>
  // CHECK: arith.truncf
  %1 = stablehlo.dot_general %c, %d, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<3x4x8xbf16>, tensor<3x8x2xbf16>) -> tensor<3x4x2xbf16>
  return %0, %1 : tensor<4x2xf32>, tensor<3x4x2xbf16>
}

// -----

// Weights that lie as [n][k] are read where they lie, with or without a transposition in the program.
// CHECK-DAG: #[[A:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[B:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[C:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @main
// CHECK-NOT: linalg.transpose
func.func @main(%x: tensor<2x32x256xf32>, %y: tensor<7x256xf32>, %w: tensor<512x256xf32>)
    -> (tensor<2x32x512xf32>, tensor<7x512xf32>) {
  // The dimensions of the rows are joined.
  // CHECK: %[[X:.*]] = tensor.collapse_shape %{{.*}} {{\[\[}}0, 1], [2]] : tensor<2x32x256xf32> into tensor<64x256xf32>
  // CHECK: linalg.matmul indexing_maps = [#[[A]], #[[B]], #[[C]]] ins(%[[X]], %{{.*}} : tensor<64x256xf32>, tensor<512x256xf32>)
  // CHECK: tensor.expand_shape %{{.*}} : tensor<64x512xf32> into tensor<2x32x512xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [2] x [1] : (tensor<2x32x256xf32>, tensor<512x256xf32>) -> tensor<2x32x512xf32>
  // CHECK: linalg.matmul indexing_maps = [#[[A]], #[[B]], #[[C]]] ins(%{{.*}}, %{{.*}} : tensor<7x256xf32>, tensor<512x256xf32>)
  %1 = stablehlo.transpose %w, dims = [1, 0] : (tensor<512x256xf32>) -> tensor<256x512xf32>
  %2 = stablehlo.dot_general %y, %1, contracting_dims = [1] x [0] : (tensor<7x256xf32>, tensor<256x512xf32>) -> tensor<7x512xf32>
  return %0, %2 : tensor<2x32x512xf32>, tensor<7x512xf32>
}

// -----

// A gradient of weights sums over the rows of both factors: the first is transposed.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<256x64xf32>, %dy: tensor<256x128xf32>) -> tensor<64x128xf32> {
  // CHECK: %[[X:.*]] = linalg.transpose ins(%{{.*}} : tensor<256x64xf32>) outs(%{{.*}} : tensor<64x256xf32>) permutation = [1, 0]
  // CHECK: linalg.matmul ins(%[[X]], %{{.*}} : tensor<64x256xf32>, tensor<256x128xf32>)
  %0 = stablehlo.dot_general %x, %dy, contracting_dims = [0] x [0] : (tensor<256x64xf32>, tensor<256x128xf32>) -> tensor<64x128xf32>
  return %0 : tensor<64x128xf32>
}

// -----

// Scores of attention, as JAX writes them: heads stand behind positions.
// CHECK-LABEL: func.func @main
func.func @main(%q: tensor<2x64x4x64xbf16>, %k: tensor<2x96x4x64xbf16>) -> tensor<2x4x64x96xbf16> {
  // CHECK: linalg.transpose ins(%{{.*}} : tensor<2x64x4x64xbf16>) outs(%{{.*}} : tensor<2x4x64x64xbf16>) permutation = [0, 2, 1, 3]
  // CHECK: linalg.transpose ins(%{{.*}} : tensor<2x96x4x64xbf16>) outs(%{{.*}} : tensor<2x4x96x64xbf16>) permutation = [0, 2, 1, 3]
  // CHECK: linalg.batch_matmul indexing_maps = {{.*}} ins(%{{.*}}, %{{.*}} : tensor<8x64x64xbf16>, tensor<8x96x64xbf16>)
  // CHECK: tensor.expand_shape %{{.*}} : tensor<8x64x96xf32> into tensor<2x4x64x96xf32>
  %0 = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<2x64x4x64xbf16>, tensor<2x96x4x64xbf16>) -> tensor<2x4x64x96xbf16>
  return %0 : tensor<2x4x64x96xbf16>
}

// -----

// What is small, or a few vectors beside a matrix, is a sum that reads its factors where they lie; so are
// integers, and factors of different types.
// CHECK-LABEL: func.func @main
// CHECK-NOT: linalg.transpose
// CHECK-NOT: linalg.matmul
// CHECK-NOT: linalg.batch_matmul
// CHECK: return
func.func @main(%a: tensor<8x4xf32>, %m: tensor<512x256xf32>, %v: tensor<512x3xf32>, %i: tensor<64x64xi32>, %h: tensor<64x64xf16>, %f: tensor<64x64xf32>)
    -> (tensor<4x4xf32>, tensor<256x3xf32>, tensor<64x64xi32>, tensor<64x64xf32>) {
  %0 = stablehlo.dot_general %a, %a, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %1 = stablehlo.dot_general %m, %v, contracting_dims = [0] x [0] : (tensor<512x256xf32>, tensor<512x3xf32>) -> tensor<256x3xf32>
  %2 = stablehlo.dot_general %i, %i, contracting_dims = [1] x [0] : (tensor<64x64xi32>, tensor<64x64xi32>) -> tensor<64x64xi32>
  %3 = stablehlo.dot_general %h, %f, contracting_dims = [1] x [0] : (tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0, %1, %2, %3 : tensor<4x4xf32>, tensor<256x3xf32>, tensor<64x64xi32>, tensor<64x64xf32>
}

// -----

// What a linalg.generic computes is what its body says: without the flag each product is rounded.
// CHECK-LABEL: func.func @main
// CHECK-NOT: linalg.matmul
// CHECK: linalg.generic
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @main(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>, %z: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %y : tensor<64x64xf32>, tensor<64x64xf32>) outs(%z : tensor<64x64xf32>) {
  ^bb0(%p: f32, %q: f32, %s: f32):
    %t = arith.mulf %p, %q : f32
    %u = arith.addf %s, %t : f32
    linalg.yield %u : f32
  } -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// -----

// A product with a name takes transpositions in.
// CHECK-LABEL: func.func @main
// CHECK-NOT: linalg.transpose
// CHECK: linalg.matmul indexing_maps = {{.*}} ins(%{{.*}}, %{{.*}} : tensor<64x32xf32>, tensor<48x32xf32>)
func.func @main(%x: tensor<64x32xf32>, %w: tensor<48x32xf32>, %z: tensor<64x48xf32>) -> tensor<64x48xf32> {
  %e = tensor.empty() : tensor<32x48xf32>
  %t = linalg.transpose ins(%w : tensor<48x32xf32>) outs(%e : tensor<32x48xf32>) permutation = [1, 0]
  %0 = linalg.matmul ins(%x, %t : tensor<64x32xf32>, tensor<32x48xf32>) outs(%z : tensor<64x48xf32>) -> tensor<64x48xf32>
  return %0 : tensor<64x48xf32>
}

// -----

// A number, which no loop but the sum's follows.
// CHECK-LABEL: func.func @main
// CHECK: linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<1x8xf32>, tensor<8x1xf32>)
// CHECK: tensor.collapse_shape %{{.*}} [] : tensor<1x1xf32> into tensor<f32>
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction"]
func.func @main(%x: tensor<8xf32>, %i: tensor<8xi32>) -> (tensor<f32>, tensor<i32>) {
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
  %1 = stablehlo.dot_general %i, %i, contracting_dims = [0] x [0] : (tensor<8xi32>, tensor<8xi32>) -> tensor<i32>
  return %0, %1 : tensor<f32>, tensor<i32>
}

// -----

// Both factors are one transposition, which goes with its last reader.
// CHECK-LABEL: func.func @main
// CHECK: linalg.matmul
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @main(%x: tensor<128x128xf32>) -> tensor<128x128xf32> {
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<128x128xf32>) -> tensor<128x128xf32>
  %0 = stablehlo.dot_general %t, %t, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  return %0 : tensor<128x128xf32>
}

// -----

// Rows by rows are sums: a GPU has no 70,000 blocks along z.
// CHECK-LABEL: func.func @main
// CHECK-NOT: linalg.batch_matmul
// CHECK: return
func.func @main(%x: tensor<70000x4xf32>, %y: tensor<70000x4xf32>) -> tensor<70000xf32> {
  %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<70000x4xf32>, tensor<70000x4xf32>) -> tensor<70000xf32>
  return %0 : tensor<70000xf32>
}

// -----

// A transposition outside of a loop stays there, where the product needs one.
// CHECK-LABEL: func.func @main
// CHECK: linalg.transpose
// CHECK: scf.for
// CHECK-NOT: linalg.transpose
// CHECK: linalg.matmul
func.func @main(%x: tensor<128x128xf32>, %w: tensor<128x128xf32>, %z: tensor<128x128xf32>) -> tensor<128x128xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %e = tensor.empty() : tensor<128x128xf32>
  %t = linalg.transpose ins(%x : tensor<128x128xf32>) outs(%e : tensor<128x128xf32>) permutation = [1, 0]
  %r = scf.for %i = %c0 to %c10 step %c1 iter_args(%s = %z) -> tensor<128x128xf32> {
    %0 = linalg.matmul ins(%t, %w : tensor<128x128xf32>, tensor<128x128xf32>) outs(%s : tensor<128x128xf32>) -> tensor<128x128xf32>
    scf.yield %0 : tensor<128x128xf32>
  }
  return %r : tensor<128x128xf32>
}
