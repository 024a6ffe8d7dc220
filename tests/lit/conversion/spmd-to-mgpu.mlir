// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --spmd-to-mgpu --split-input-file | FileCheck %s
// RUN: mgpu-opt %s --split-input-file --spmd-to-mgpu --mgpu-launch-pipeline | FileCheck %s --check-prefix=LAUNCH

// tosa, a call, a broadcast and a constant: one launch is left beside the copies.
// CHECK: numDevices = 1>
// CHECK-LABEL: func.func @main
// CHECK-NOT: tensor<
// CHECK: linalg.generic
// CHECK-NOT: linalg.{{generic|fill|copy|broadcast}}
// CHECK: return
// LAUNCH: mgpu.launch
// LAUNCH-NOT: mgpu.launch
// LAUNCH: return
func.func private @scaled(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %two = arith.constant dense<2.0> : tensor<4x8xf32>
  %y = arith.mulf %x, %two : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

func.func @main(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %y = call @scaled(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %bb = linalg.broadcast ins(%b : tensor<8xf32>) outs(%e : tensor<4x8xf32>) dimensions = [0]
  %z = arith.addf %y, %bb : tensor<4x8xf32>
  %t = tosa.tanh %z : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %t : tensor<4x8xf32>
}

// -----

// Loops and branches that depend on the device are resolved for each; one that
// depends on a scalar alone stays one, with the calls of all devices.
#rows = #spmd.layout<mesh = [2], split = [[0]]>
// CHECK-LABEL: func.func @main
// CHECK-NOT: scf.if
// CHECK: linalg.generic
// CHECK: arith.mulf
// CHECK-NOT: arith.mulf
// CHECK: scf.while
// CHECK: mgpu.all_reduce
// CHECK-NEXT: mgpu.all_reduce
// CHECK-NOT: scf.while
// CHECK: return
func.func @main(%x: tensor<8xf32> {spmd.layout = #rows}, %n: i32) -> (tensor<8xf32> {spmd.layout = #rows}) {
  %xs = spmd.full_to_shard %x : tensor<8xf32> to tensor<4xf32>
  %d = spmd.device_index : index
  %c0 = arith.constant 0 : index
  %i0 = arith.constant 0 : i32
  %i1 = arith.constant 1 : i32
  %first = arith.cmpi eq, %d, %c0 : index
  %two = arith.constant dense<2.0> : tensor<4xf32>
  %y = scf.if %first -> tensor<4xf32> {
    %m = arith.mulf %xs, %two : tensor<4xf32>
    scf.yield %m : tensor<4xf32>
  } else {
    scf.yield %xs : tensor<4xf32>
  }
  %r:2 = scf.while (%i = %i0, %t = %y) : (i32, tensor<4xf32>) -> (i32, tensor<4xf32>) {
    %c = arith.cmpi slt, %i, %n : i32
    scf.condition(%c) %i, %t : i32, tensor<4xf32>
  } do {
  ^bb0(%i: i32, %t: tensor<4xf32>):
    %u = spmd.all_reduce sum ins(%t : tensor<4xf32>) outs(%t : tensor<4xf32>) -> tensor<4xf32>
    %j = arith.addi %i, %i1 : i32
    scf.yield %j, %u : i32, tensor<4xf32>
  }
  %f = spmd.shard_to_full %r#1 : tensor<4xf32> to tensor<8xf32>
  return %f : tensor<8xf32>
}
