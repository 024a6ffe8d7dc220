// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --spmd-hoist-invariants | FileCheck %s

#at = affine_map<(i) -> (i)>
#in_rows = affine_map<(i, j) -> (j)>
#whole = affine_map<(i, j) -> (i, j)>

// The weights of a layer are cut out before the loop over its parts, with what
// they are written to, and leave the loop around it as well.
// CHECK-LABEL: func.func @weights
// CHECK: tensor.empty
// CHECK-NEXT: linalg.generic
// CHECK: tensor.extract
// CHECK: scf.for
// CHECK: scf.for
// CHECK-NOT: tensor.extract
// CHECK: linalg.add
func.func @weights(%all: tensor<6x4xf32>, %x: tensor<4xf32>, %layer: tensor<index>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %out = scf.for %i = %c0 to %c8 step %c1 iter_args(%outer = %x) -> tensor<4xf32> {
    %inner = scf.for %j = %c0 to %c8 step %c1 iter_args(%acc = %outer) -> tensor<4xf32> {
      %empty = tensor.empty() : tensor<4xf32>
      %w = linalg.generic {indexing_maps = [#at], iterator_types = ["parallel"]} outs(%empty : tensor<4xf32>) {
      ^bb0(%o: f32):
        %k = linalg.index 0 : index
        %n = tensor.extract %layer[] : tensor<index>
        %v = tensor.extract %all[%n, %k] : tensor<6x4xf32>
        linalg.yield %v : f32
      } -> tensor<4xf32>
      %sum = linalg.add ins(%w, %acc : tensor<4xf32>, tensor<4xf32>) outs(%acc : tensor<4xf32>) -> tensor<4xf32>
      scf.yield %sum : tensor<4xf32>
    }
    scf.yield %inner : tensor<4xf32>
  }
  return %out : tensor<4xf32>
}

// A result that is larger than what it is made of stays with its reader, and so
// does what reads the counter or what the loop carries.
// CHECK-LABEL: func.func @stay
// CHECK: scf.for
// CHECK: linalg.generic
// CHECK: linalg.generic
// CHECK: linalg.add
func.func @stay(%row: tensor<4xf32>, %x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %out = scf.for %i = %c0 to %c8 step %c1 iter_args(%acc = %x) -> tensor<8x4xf32> {
    %empty = tensor.empty() : tensor<8x4xf32>
    %wide = linalg.generic {indexing_maps = [#in_rows, #whole], iterator_types = ["parallel", "parallel"]} ins(%row : tensor<4xf32>) outs(%empty : tensor<8x4xf32>) {
    ^bb0(%v: f32, %o: f32):
      linalg.yield %v : f32
    } -> tensor<8x4xf32>
    %made = tensor.empty() : tensor<8x4xf32>
    %counted = linalg.generic {indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel"]} ins(%wide : tensor<8x4xf32>) outs(%made : tensor<8x4xf32>) {
    ^bb0(%v: f32, %o: f32):
      %n = arith.index_cast %i : index to i32
      %f = arith.sitofp %n : i32 to f32
      %s = arith.addf %v, %f : f32
      linalg.yield %s : f32
    } -> tensor<8x4xf32>
    %sum = linalg.add ins(%counted, %acc : tensor<8x4xf32>, tensor<8x4xf32>) outs(%acc : tensor<8x4xf32>) -> tensor<8x4xf32>
    scf.yield %sum : tensor<8x4xf32>
  }
  return %out : tensor<8x4xf32>
}
