// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --spmd-fuse-elementwise | FileCheck %s

#id = affine_map<(i) -> (i)>

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<8xf32>, %w: tensor<8x8xf32>) -> (tensor<2x4xf32>, tensor<2x4x8xf32>) {
  // Two operations and the reshape between them are one.
  // CHECK: linalg.generic
  // CHECK: math.exp
  // CHECK-NEXT: math.tanh
  // CHECK-NOT: math
  %e = tensor.empty() : tensor<8xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %y = math.exp %in : f32
    linalg.yield %y : f32
  } -> tensor<8xf32>
  %b = tensor.expand_shape %a [[0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>
  %f = tensor.empty() : tensor<2x4xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<2x4xf32>) outs(%f : tensor<2x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %y = math.tanh %in : f32
    linalg.yield %y : f32
  } -> tensor<2x4xf32>
  // CHECK: linalg.matmul
  // CHECK: tensor.expand_shape
  %m = linalg.matmul ins(%w, %w : tensor<8x8xf32>, tensor<8x8xf32>) outs(%w : tensor<8x8xf32>) -> tensor<8x8xf32>
  %n = tensor.expand_shape %m [[0, 1], [2]] output_shape [2, 4, 8] : tensor<8x8xf32> into tensor<2x4x8xf32>
  return %c, %n : tensor<2x4xf32>, tensor<2x4x8xf32>
}

// What adds to the values it is given is not taken into a sum, which would add
// once more at each of its steps.
// CHECK-LABEL: func.func @reads_its_outs
func.func @reads_its_outs(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %z: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: %[[SUM:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%y : tensor<4x8xf32>) {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %b, %a : f32
      linalg.yield %s : f32
  } -> tensor<4x8xf32>
  // CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]} ins(%[[SUM]]
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%0 : tensor<4x8xf32>) outs(%z : tensor<4xf32>) {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %b, %a : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// What is added to a product whose rows follow two dimensions is added to its
// matrix, so that both can share a launch.
// CHECK-LABEL: func.func @bias
func.func @bias(%w: tensor<32x8xf32>, %k: tensor<8x8xf32>, %b: tensor<8xf32>, %r: tensor<2x16x8xf32>) -> tensor<2x16x8xf32> {
  // CHECK: %[[M:.*]] = linalg.matmul
  // CHECK: linalg.generic {{.*}} ins(%[[M]], %{{.*}}, %{{.*}} : tensor<32x8xf32>, tensor<8xf32>, tensor<32x8xf32>)
  // CHECK: tensor.expand_shape %{{.*}} : tensor<32x8xf32> into tensor<2x16x8xf32>
  %m = linalg.matmul ins(%w, %k : tensor<32x8xf32>, tensor<8x8xf32>) outs(%w : tensor<32x8xf32>) -> tensor<32x8xf32>
  %n = tensor.expand_shape %m [[0, 1], [2]] output_shape [2, 16, 8] : tensor<32x8xf32> into tensor<2x16x8xf32>
  %e = tensor.empty() : tensor<2x16x8xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (k)>, affine_map<(i, j, k) -> (i, j, k)>,
                                        affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%n, %b, %r : tensor<2x16x8xf32>, tensor<8xf32>, tensor<2x16x8xf32>) outs(%e : tensor<2x16x8xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32, %out: f32):
    %s = arith.addf %x, %y : f32
    %t = arith.addf %s, %z : f32
    linalg.yield %t : f32
  } -> tensor<2x16x8xf32>
  return %c : tensor<2x16x8xf32>
}

// Numbers that have no width as a whole are no reason to fail.
// CHECK-LABEL: func.func @complex
func.func @complex(%w: tensor<32x8xcomplex<f32>>, %k: tensor<8x8xcomplex<f32>>) -> tensor<2x16x8xcomplex<f32>> {
  %m = linalg.matmul ins(%w, %k : tensor<32x8xcomplex<f32>>, tensor<8x8xcomplex<f32>>) outs(%w : tensor<32x8xcomplex<f32>>) -> tensor<32x8xcomplex<f32>>
  %n = tensor.expand_shape %m [[0, 1], [2]] output_shape [2, 16, 8] : tensor<32x8xcomplex<f32>> into tensor<2x16x8xcomplex<f32>>
  %e = tensor.empty() : tensor<2x16x8xcomplex<f32>>
  // CHECK: linalg.generic {{.*}} ["parallel", "parallel", "parallel"]
  %c = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%n : tensor<2x16x8xcomplex<f32>>) outs(%e : tensor<2x16x8xcomplex<f32>>) {
  ^bb0(%x: complex<f32>, %out: complex<f32>):
    %s = complex.add %x, %x : complex<f32>
    linalg.yield %s : complex<f32>
  } -> tensor<2x16x8xcomplex<f32>>
  return %c : tensor<2x16x8xcomplex<f32>>
}

// A product by a vector that exp was taken of computes it once, not in each of
// its many rows; in a few rows it is computed again.
// CHECK-LABEL: func.func @many_rows
func.func @many_rows(%w: tensor<16x8xf32>, %x: tensor<8xf32>, %o: tensor<16xf32>) -> tensor<16xf32> {
  // CHECK: linalg.generic {{.*}} iterator_types = ["parallel"]
  // CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]
  // CHECK-NOT: math.exp
  // CHECK: return
  %e = tensor.empty() : tensor<8xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(k) -> (k)>, affine_map<(k) -> (k)>], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%v: f32, %out: f32):
    %p = math.exp %v : f32
    linalg.yield %p : f32
  } -> tensor<8xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(n, k) -> (n, k)>, affine_map<(n, k) -> (k)>, affine_map<(n, k) -> (n)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%w, %a : tensor<16x8xf32>, tensor<8xf32>) outs(%o : tensor<16xf32>) {
  ^bb0(%m: f32, %v: f32, %out: f32):
    %p = arith.mulf %m, %v : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<16xf32>
  return %b : tensor<16xf32>
}

// CHECK-LABEL: func.func @few_rows
func.func @few_rows(%w: tensor<15x8xf32>, %x: tensor<8xf32>, %o: tensor<15xf32>) -> tensor<15xf32> {
  // CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]
  // CHECK: math.exp
  %e = tensor.empty() : tensor<8xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(k) -> (k)>, affine_map<(k) -> (k)>], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%v: f32, %out: f32):
    %p = math.exp %v : f32
    linalg.yield %p : f32
  } -> tensor<8xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(n, k) -> (n, k)>, affine_map<(n, k) -> (k)>, affine_map<(n, k) -> (n)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%w, %a : tensor<15x8xf32>, tensor<8xf32>) outs(%o : tensor<15xf32>) {
  ^bb0(%m: f32, %v: f32, %out: f32):
    %p = arith.mulf %m, %v : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<15xf32>
  return %b : tensor<15xf32>
}
