// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --spmd-partition-tensors --split-input-file | FileCheck %s

// Rows over axis 0, the columns of %w over axis 1: the second product's index is cut, so its result
// is a sum over axis 1.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: tensor<8x16xf32> {spmd.layout = #spmd.layout<mesh = [2, 2], split = {{\[\[}}0], []]>}
// CHECK-SAME: %[[V:.*]]: tensor<32x8xf32> {spmd.layout = #spmd.layout<mesh = [2, 2], split = {{\[\[}}1], []]>}
// CHECK-SAME: -> (tensor<8x8xf32> {spmd.layout = #spmd.layout<mesh = [2, 2], split = {{\[\[}}0], []]>})
// CHECK: %[[A:.*]] = linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<4x16xf32>, tensor<16x16xf32>)
// CHECK: %[[H:.*]] = math.tanh %[[A]] : tensor<4x16xf32>
// CHECK: %[[PART:.*]] = linalg.matmul ins(%[[H]], %{{.*}} : tensor<4x16xf32>, tensor<16x8xf32>)
// CHECK: %[[SUM:.*]] = spmd.all_reduce sum ins(%[[PART]] {{.*}} groups {{\[\[}}0, 1], [2, 3]]
// CHECK: %[[FULL:.*]] = spmd.shard_to_full %[[SUM]] : tensor<4x8xf32> to tensor<8x8xf32>
// CHECK: return %[[FULL]]
func.func @main(%x: tensor<8x16xf32>, %w: tensor<16x32xf32>, %v: tensor<32x8xf32>) -> tensor<8x8xf32> {
  %xs = spmd.layout_constraint %x, <mesh = [2, 2], split = [[0], []]> : tensor<8x16xf32>
  %ws = spmd.layout_constraint %w, <mesh = [2, 2], split = [[], [1]]> : tensor<16x32xf32>
  %no_a = arith.constant dense<0.0> : tensor<8x32xf32>
  %a = linalg.matmul ins(%xs, %ws : tensor<8x16xf32>, tensor<16x32xf32>) outs(%no_a : tensor<8x32xf32>) -> tensor<8x32xf32>
  %h = math.tanh %a : tensor<8x32xf32>
  %no_y = arith.constant dense<0.0> : tensor<8x8xf32>
  %y = linalg.matmul ins(%h, %v : tensor<8x32xf32>, tensor<32x8xf32>) outs(%no_y : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

// The given start of a reduction that is cut is added once, to the sum of all.
// CHECK-LABEL: func.func @main
// CHECK: %[[ZERO:.*]] = arith.constant {{-?}}0.000000e+00 : f32
// CHECK: %[[NONE:.*]] = linalg.fill ins(%[[ZERO]] : f32)
// CHECK: %[[PART:.*]] = linalg.reduce {{.*}} ins(%{{.*}} : tensor<8x4xf32>) outs(%[[NONE]] : tensor<8xf32>)
// CHECK: %[[SUM:.*]] = spmd.all_reduce sum ins(%[[PART]]
// CHECK: arith.addf %{{.*}}, %[[SUM]] : tensor<8xf32>
func.func @main(%x: tensor<8x8xf32>) -> tensor<8xf32> {
  %xs = spmd.layout_constraint %x, <mesh = [2], split = [[], [0]]> : tensor<8x8xf32>
  %one = arith.constant dense<1.0> : tensor<8xf32>
  %sum = linalg.reduce { arith.addf } ins(%xs : tensor<8x8xf32>) outs(%one : tensor<8xf32>) dimensions = [1]
  return %sum : tensor<8xf32>
}

// -----

// A sum that is cut afterwards is a reduce_scatter.
// CHECK-LABEL: func.func @main
// CHECK: spmd.reduce_scatter sum ins(%{{.*}} : tensor<8xf32>) outs(%{{.*}} : tensor<4xf32>) axis = 0 groups {{\[\[}}0, 1]]
func.func @main(%x: tensor<8x8xf32>) -> tensor<8xf32> {
  %xs = spmd.layout_constraint %x, <mesh = [2], split = [[], [0]]> : tensor<8x8xf32>
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %sum = linalg.reduce { arith.addf } ins(%xs : tensor<8x8xf32>) outs(%zero : tensor<8xf32>) dimensions = [1]
  %r = spmd.layout_constraint %sum, <mesh = [2], split = [[0]]> : tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// Without a target the fewest bytes count. Two axes change their dimension at once.
// CHECK-LABEL: func.func @main
// CHECK: spmd.all_to_all ins(%{{.*}} : tensor<1x16xf32>) outs(%{{.*}} : tensor<8x2xf32>) split = 1 concat = 0 groups {{\[\[}}0, 1, 2, 3, 4, 5, 6, 7]]
// CHECK-NOT: tensor.extract_slice
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %a = spmd.layout_constraint %x, <mesh = [2, 4], split = [[0, 1], []]> : tensor<8x16xf32>
  %b = spmd.layout_constraint %a, <mesh = [2, 4], split = [[], [0, 1]]> : tensor<8x16xf32>
  return %b : tensor<8x16xf32>
}

// -----

// Axes that change places: each device copies what it lacks, which is less than to gather.
// CHECK-LABEL: func.func @main
// CHECK-NOT: spmd.all
// CHECK: spmd.move from <mesh = [2, 4], split = {{\[\[}}0], [1]]> to <mesh = [2, 4], split = {{\[\[}}1], [0]]> full = [8, 16]
// CHECK-NOT: spmd.all
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %a = spmd.layout_constraint %x, <mesh = [2, 4], split = [[0], [1]]> : tensor<8x16xf32>
  %b = spmd.layout_constraint %a, <mesh = [2, 4], split = [[1], [0]]> : tensor<8x16xf32>
  return %b : tensor<8x16xf32>
}

// -----

// Of the same bytes, one exchange: the axes are gathered together.
// CHECK-LABEL: func.func @main
// CHECK: spmd.all_gather ins(%{{.*}} : tensor<1x16xf32>) outs(%{{.*}} : tensor<8x16xf32>) axis = 0 groups {{\[\[}}0, 1, 2, 3, 4, 5, 6, 7]]
// CHECK-NOT: spmd.all
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %a = spmd.layout_constraint %x, <mesh = [2, 4], split = [[0, 1], []]> : tensor<8x16xf32>
  %b = spmd.layout_constraint %a, <mesh = [2, 4], split = [[], []]> : tensor<8x16xf32>
  return %b : tensor<8x16xf32>
}

// -----

// A sum that takes axes from an index of the result: the result is scattered along that index.
// CHECK-LABEL: func.func @main
// CHECK-SAME: -> (tensor<256x128xf32> {spmd.layout = #spmd.layout<mesh = [2, 2, 2], split = {{\[\[}}0], [2, 1]]>})
// CHECK: spmd.reduce_scatter sum {{.*}} axis = 1
// CHECK: spmd.reduce_scatter sum {{.*}} axis = 1
func.func @main(%x: tensor<256x512xf32>, %w: tensor<512x128xf32>) -> tensor<256x128xf32> {
  %a = spmd.layout_constraint %x, <mesh = [2, 2, 2], split = [[0], [1, 2]]> : tensor<256x512xf32>
  %b = spmd.layout_constraint %w, <mesh = [2, 2, 2], split = [[0], [2, 1]]> : tensor<512x128xf32>
  %zero = arith.constant dense<0.0> : tensor<256x128xf32>
  %y = linalg.matmul ins(%a, %b : tensor<256x512xf32>, tensor<512x128xf32>) outs(%zero : tensor<256x128xf32>) -> tensor<256x128xf32>
  return %y : tensor<256x128xf32>
}

// -----

// From one layout to another: an axis that changes its dimension is an all_to_all, one that goes is
// an all_gather, one that comes is a slice, which goes first.
// CHECK-LABEL: func.func @main
// CHECK: spmd.all_to_all ins(%{{.*}} : tensor<4x8xf32>) outs(%{{.*}} : tensor<8x4xf32>) split = 1 concat = 0 groups {{\[\[}}0, 2], [1, 3]]
// CHECK: %[[CUT:.*]] = tensor.extract_slice %{{.*}} [4, 4] [1, 1] : tensor<8x4xf32> to tensor<4x4xf32>
// CHECK: spmd.all_gather ins(%[[CUT]] : tensor<4x4xf32>) outs(%{{.*}} : tensor<4x8xf32>) axis = 1 groups {{\[\[}}0, 2], [1, 3]]
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %a = spmd.layout_constraint %x, <mesh = [2, 2], split = [[0], []]> : tensor<8x8xf32>
  %b = spmd.layout_constraint %a, <mesh = [2, 2], split = [[], [0]]> : tensor<8x8xf32>
  %c = spmd.layout_constraint %b, <mesh = [2, 2], split = [[1], []]> : tensor<8x8xf32>
  return %c : tensor<8x8xf32>
}

// -----

// The index of a loop that is cut counts from where the part begins. An operation without a rule
// computes on whole tensors.
// CHECK-LABEL: func.func @main
// CHECK: %[[DEVICE:.*]] = spmd.device_index
// CHECK: %[[BEGIN:.*]] = arith.muli %[[DEVICE]], %{{.*}}
// CHECK: %[[INDEX:.*]] = linalg.index 0
// CHECK: arith.addi %[[INDEX]], %[[BEGIN]]
// CHECK: %[[WHOLE:.*]] = spmd.all_gather
// CHECK: tensor.gather %[[WHOLE]]
func.func @main(%x: tensor<8x2xi32>, %at: tensor<4x1xi32>) -> tensor<4x2xi32> {
  %xs = spmd.layout_constraint %x, <mesh = [2], split = [[0], []]> : tensor<8x2xi32>
  %empty = tensor.empty() : tensor<8x2xi32>
  %y = linalg.map ins(%xs : tensor<8x2xi32>) outs(%empty : tensor<8x2xi32>) (%v: i32, %o: i32) {
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %s = arith.addi %v, %n : i32
    linalg.yield %s : i32
  }
  %g = tensor.gather %y[%at] gather_dims([0]) : (tensor<8x2xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  return %g : tensor<4x2xi32>
}

// -----

// Parts of different sizes: 10 rows on 4 devices are 3, 3, 2 and 2. What changes them is copied from
// device to device.
// CHECK-LABEL: func.func @main
// CHECK-SAME: tensor<10x4xf32> {spmd.layout = #spmd.layout<mesh = [4], split = {{\[\[}}0], []]>}
// CHECK: %[[Y:.*]] = math.exp %{{.*}} : tensor<?x4xf32>
// CHECK: spmd.move from <mesh = [4], split = {{\[\[}}0], []]> to <mesh = [4], split = {{\[\[}}], [0]]> full = [10, 4] ins(%[[Y]] : tensor<?x4xf32>) outs(%{{.*}} : tensor<10x1xf32>)
func.func @main(%x: tensor<10x4xf32>) -> tensor<10x4xf32> {
  %xs = spmd.layout_constraint %x, <mesh = [4], split = [[0], []]> : tensor<10x4xf32>
  %y = math.exp %xs : tensor<10x4xf32>
  %z = spmd.layout_constraint %y, <mesh = [4], split = [[], [0]]> : tensor<10x4xf32>
  return %z : tensor<10x4xf32>
}

// -----

// A dimension that the program leaves open is cut as its neighbours are.
// CHECK-LABEL: func.func @main
// CHECK-SAME: -> (tensor<8xf32> {spmd.layout = #spmd.layout<mesh = [2], split = {{\[\[}}0]]>})
// CHECK: %[[Y:.*]] = math.exp %{{.*}} : tensor<4xf32>
// CHECK: spmd.shard_to_full %[[Y]] : tensor<4xf32> to tensor<8xf32>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %xs = spmd.layout_constraint %x, <mesh = [2], split = [[0]]> : tensor<8xf32>
  %y = math.exp %xs : tensor<8xf32>
  %z = spmd.layout_constraint %y, <mesh = [2], split = [[]]> open [0] : tensor<8xf32>
  return %z : tensor<8xf32>
}

// -----

// Both want axis 0 for the rows of %c; %a comes first though %b is larger.
// CHECK-LABEL: func.func @main
// CHECK-SAME: -> (tensor<8x8xf32> {spmd.layout = #spmd.layout<mesh = [2], split = {{\[\[}}0], []]>})
func.func @main(%x: tensor<8xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %a = spmd.layout_constraint %x, <mesh = [2], split = [[0]]> : tensor<8xf32>
  %b = spmd.layout_constraint %y, <mesh = [2], split = [[], [0]]> priorities [0, 1] : tensor<8x8xf32>
  %none = tensor.empty() : tensor<8x8xf32>
  %wide = linalg.broadcast ins(%a : tensor<8xf32>) outs(%none : tensor<8x8xf32>) dimensions = [1]
  %more = math.tanh %wide : tensor<8x8xf32>
  %c = arith.addf %more, %b : tensor<8x8xf32>
  return %c : tensor<8x8xf32>
}

// -----

// %b is of the group of %a, so it is cut too, though nothing else asks for that.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %{{[a-z0-9]+}}: tensor<8xf32> {spmd.layout = #spmd.layout<mesh = [2], split = {{\[\[}}0]]>}
// CHECK-SAME: %{{[a-z0-9]+}}: tensor<8xf32> {spmd.layout = #spmd.layout<mesh = [2], split = {{\[\[}}0]]>}
func.func @main(%x: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %a = spmd.layout_constraint %x, <mesh = [2], split = [[0]]> : tensor<8xf32>
  spmd.same_layout %a group = 0 : tensor<8xf32>
  spmd.same_layout %b group = 0 : tensor<8xf32>
  %c = math.tanh %a : tensor<8xf32>
  %d = math.tanh %b : tensor<8xf32>
  return %c, %d : tensor<8xf32>, tensor<8xf32>
}

// -----

// A stencil: devices get the rows that they lack from their neighbours.
// CHECK-LABEL: func.func @main
// CHECK: spmd.move from <mesh = [2], split = {{\[\[}}0]]> to <mesh = [2], split = {{\[\[}}0]], offsets = {{\[\[}}0, 3, 8]], halos = {{\[\[}}0, 2]]> full = [8]
// CHECK: linalg.conv_1d ins(%{{.*}}, %{{.*}} : tensor<5xf32>, tensor<3xf32>) outs(%{{.*}} : tensor<3xf32>)
func.func @main(%x: tensor<8xf32>, %f: tensor<3xf32>) -> tensor<6xf32> {
  %a = spmd.layout_constraint %x, <mesh = [2], split = [[0]]> : tensor<8xf32>
  %zero = arith.constant dense<0.0> : tensor<6xf32>
  %y = linalg.conv_1d ins(%a, %f : tensor<8xf32>, tensor<3xf32>) outs(%zero : tensor<6xf32>) -> tensor<6xf32>
  return %y : tensor<6xf32>
}

// -----

// %b asks for another layout than its group has, and keeps that; %c has that of %a.
// CHECK-LABEL: func.func @main
// CHECK-SAME: -> (tensor<8xf32> {spmd.layout = #spmd.layout<mesh = [2], split = {{\[\[}}]]>}, tensor<8xf32> {spmd.layout = #spmd.layout<mesh = [2], split = {{\[\[}}0]]>})
func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>, %z: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %a = spmd.layout_constraint %x, <mesh = [2], split = [[0]]> : tensor<8xf32>
  %b = spmd.layout_constraint %y, <mesh = [2], split = [[]]> : tensor<8xf32>
  %c = math.tanh %z : tensor<8xf32>
  spmd.same_layout %a group = 7 : tensor<8xf32>
  spmd.same_layout %b group = 7 : tensor<8xf32>
  spmd.same_layout %c group = 7 : tensor<8xf32>
  return %b, %c : tensor<8xf32>, tensor<8xf32>
}

// -----

// An axis that the closed rows of %b have is not taken for its open columns.
// CHECK-LABEL: func.func @main
// CHECK-SAME: -> (tensor<8x8xf32> {spmd.layout = #spmd.layout<mesh = [2], split = {{\[\[}}0], []]>})
func.func @main(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %a = spmd.layout_constraint %x, <mesh = [2], split = [[], [0]]> : tensor<8x8xf32>
  %b = spmd.layout_constraint %y, <mesh = [2], split = [[0], []]> open [1] : tensor<8x8xf32>
  %c = arith.addf %a, %b : tensor<8x8xf32>
  %d = spmd.layout_constraint %c, <mesh = [2], split = [[0], []]> open [1] : tensor<8x8xf32>
  return %d : tensor<8x8xf32>
}
