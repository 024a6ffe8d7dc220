// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --spmd-partition-tensors --spmd-inline-calls --split-input-file | FileCheck %s

#rows = #spmd.layout<mesh = [2], first = 4, split = [[0], []]>
#whole = #spmd.layout<mesh = [2], first = 4, split = [[], []]>

// A function without constraints runs as it is on each device. Devices 4 and 5
// have half of the rows each, so they get the rest first.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<8x16xf32> {{.*}}, %[[MINE:.*]]: tensor<4x16xf32>)
// CHECK: spmd.on 4 to 6 -> tensor<8x16xf32> {
// CHECK: %[[ALL:.*]] = spmd.move from <mesh = [2], first = 4, split = {{\[\[}}0], []]> to <mesh = [2], first = 4, split = {{\[\[}}], []]> full = [8, 16] ins(%[[MINE]]
// CHECK: %[[Y:.*]] = arith.mulf %[[ALL]], %[[ALL]]
// CHECK: spmd.yield %[[Y]]
// CHECK-NOT: @square
func.func @main(%x: tensor<8x16xf32> {spmd.layout = #rows}, %mine: tensor<4x16xf32>) {
  %y = spmd.call @square(%mine) in [#rows] out [#whole] : (tensor<4x16xf32>) -> tensor<8x16xf32>
  return
}
func.func private @square(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %y = arith.mulf %x, %x : tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// -----

// A partitioned one is made for one device; its groups name devices 2 and 3.
#rows = #spmd.layout<mesh = [2], first = 2, split = [[0], []]>
#row = #spmd.layout<mesh = [2], split = [[0], []]>
#sums = #spmd.layout<mesh = [2], first = 2, split = [[]]>

// CHECK-LABEL: func.func @main
// CHECK: spmd.on 2 to 4 -> tensor<16xf32> {
// CHECK: %[[PART:.*]] = linalg.reduce {{.*}} ins(%{{.*}} : tensor<4x16xf32>)
// CHECK: %[[SUM:.*]] = spmd.all_reduce sum ins(%[[PART]] {{.*}} groups {{\[\[}}2, 3]]
// CHECK: spmd.yield %[[SUM]]
func.func @main(%mine: tensor<4x16xf32>) {
  %y = spmd.call @columns(%mine) in [#rows] out [#sums] : (tensor<4x16xf32>) -> tensor<16xf32>
  return
}
func.func private @columns(%x: tensor<8x16xf32>) -> tensor<16xf32> {
  %zero = arith.constant 0.0 : f32
  %cut = spmd.layout_constraint %x, #row : tensor<8x16xf32>
  %empty = tensor.empty() : tensor<16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<16xf32>) -> tensor<16xf32>
  %sum = linalg.reduce { arith.addf } ins(%cut : tensor<8x16xf32>) outs(%init : tensor<16xf32>) dimensions = [0]
  return %sum : tensor<16xf32>
}
