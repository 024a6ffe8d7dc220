// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// REQUIRES: nvrtc
// Custom calls that --custom gives a kernel of CUDA C++.
// RUN: mgpu-tune run %s --entry scaled --custom scale=%S/Inputs/scale.cu | FileCheck %s --check-prefix=RAN
// RUN: mgpu-tune run %s --entry named --custom 'my$op=%S/Inputs/scale.cu:scale' | FileCheck %s --check-prefix=RAN
// RUN: mgpu-tune run %s --entry several --custom row_sums=%S/Inputs/scale.cu:rows | FileCheck %s --check-prefix=RAN
// RUN: mgpu-tune run %s --entry view --custom row_sums=%S/Inputs/scale.cu:rows | FileCheck %s --check-prefix=RAN
// RUN: mgpu-tune run %s --entry in_place --custom accumulate=%S/Inputs/scale.cu | FileCheck %s --check-prefix=RAN
// RUN: mgpu-tune run %s --entry in_place --devices 2 --custom accumulate=%S/Inputs/scale.cu | FileCheck %s --check-prefix=RAN
// RUN: mgpu-tune run %s --entry in_loop --custom scale=%S/Inputs/scale.cu | FileCheck %s --check-prefix=RAN
// RUN: not mgpu-tune run %s --entry spoiled --random --custom spoils=%S/Inputs/scale.cu 2>&1 | FileCheck %s --check-prefix=SPOILS

// A bundle keeps the kernel.
// RUN: mgpu-tune bundle %s --entry kept --custom scale=%S/Inputs/scale.cu -o %t.mgpu --no-tuned
// RUN: mgpu-tune run %t.mgpu --random | FileCheck %s --check-prefix=RAN
// RAN: fetch

func.func @scaled() {
  %x = stablehlo.iota dim = 0 : tensor<1000xf32>
  %three = stablehlo.constant dense<3.0> : tensor<1000xf32>
  %y = stablehlo.custom_call @scale(%x) : (tensor<1000xf32>) -> tensor<1000xf32>
  %z = stablehlo.multiply %x, %three : tensor<1000xf32>
  stablehlo.custom_call @check.expect_eq(%y, %z) {has_side_effect = true} : (tensor<1000xf32>, tensor<1000xf32>) -> ()
  return
}

func.func @named() {
  %x = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %y = stablehlo.custom_call @"my$op"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %z = stablehlo.constant dense<[3.0, 6.0]> : tensor<2xf32>
  stablehlo.custom_call @check.expect_eq(%y, %z) {has_side_effect = true} : (tensor<2xf32>, tensor<2xf32>) -> ()
  return
}

func.func @several() {
  %x = stablehlo.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %y:2 = stablehlo.custom_call @row_sums(%x) : (tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2xi32>)
  %z = stablehlo.constant dense<[6.0, 15.0]> : tensor<2xf32>
  %n = stablehlo.constant dense<3> : tensor<2xi32>
  stablehlo.custom_call @check.expect_eq(%y#0, %z) {has_side_effect = true} : (tensor<2xf32>, tensor<2xf32>) -> ()
  stablehlo.custom_call @check.expect_eq(%y#1, %n) {has_side_effect = true} : (tensor<2xi32>, tensor<2xi32>) -> ()
  return
}

// A slice has gaps in memory, and a pointer has none.
func.func @view() {
  %x = stablehlo.iota dim = 1 : tensor<4x8xf32>
  %part = stablehlo.slice %x [1:3, 2:5] : (tensor<4x8xf32>) -> tensor<2x3xf32>
  %y:2 = stablehlo.custom_call @row_sums(%part) : (tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2xi32>)
  %z = stablehlo.constant dense<9.0> : tensor<2xf32>
  stablehlo.custom_call @check.expect_eq(%y#0, %z) {has_side_effect = true} : (tensor<2xf32>, tensor<2xf32>) -> ()
  return
}

// The result begins as the first operand, which keeps its value.
func.func @in_place() {
  %a = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %b = stablehlo.constant dense<[10.0, 20.0, 30.0]> : tensor<3xf32>
  %sum = stablehlo.add %a, %b : tensor<3xf32>
  %y = stablehlo.custom_call @accumulate(%sum, %b) {output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %z = stablehlo.subtract %y, %sum : tensor<3xf32>
  stablehlo.custom_call @check.expect_eq(%z, %b) {has_side_effect = true} : (tensor<3xf32>, tensor<3xf32>) -> ()
  return
}

func.func @in_loop() {
  %x = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<2xf32>
  cond {
    %more = stablehlo.compare LT, %i, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %w = stablehlo.custom_call @scale(%v) : (tensor<2xf32>) -> tensor<2xf32>
    stablehlo.return %next, %w : tensor<i32>, tensor<2xf32>
  }
  %z = stablehlo.constant dense<[81.0, 162.0]> : tensor<2xf32>
  stablehlo.custom_call @check.expect_eq(%r#1, %z) {has_side_effect = true} : (tensor<2xf32>, tensor<2xf32>) -> ()
  return
}

func.func @spoiled(%x: tensor<4xf32> {mgpu.role = "resident"}) -> tensor<4xf32> {
  // SPOILS: error: node {{.*}}spoils{{.*}} (/{{.*}}stablehlo-custom-kernel.mlir:[[#@LINE+1]]:8): PTX line {{.*}}scale.cu:{{.*}}: write of 4 bytes of buffer {{.*}}, which the launch declares to be read only
  %y = stablehlo.custom_call @spoils(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

func.func @kept(%x: tensor<16xf32>) -> tensor<16xf32> {
  %y = stablehlo.custom_call @scale(%x) : (tensor<16xf32>) -> tensor<16xf32>
  return %y : tensor<16xf32>
}

// The largest result has a thread for each element; numbers of 4 bits wrap.
// RUN: mgpu-tune run %s --entry larger --custom larger=%S/Inputs/larger.cu | FileCheck %s --check-prefix=RAN
func.func @larger() {
  %x = stablehlo.constant dense<1.0> : tensor<f32>
  %y:3 = stablehlo.custom_call @larger(%x) : (tensor<f32>) -> (tensor<f32>, tensor<1000xf32>, tensor<8xi4>)
  %z = stablehlo.iota dim = 0 : tensor<1000xf32>
  %n = stablehlo.convert %y#2 : (tensor<8xi4>) -> tensor<8xi32>
  %m = stablehlo.constant dense<-1> : tensor<8xi32>
  stablehlo.custom_call @check.expect_eq(%y#1, %z) {has_side_effect = true} : (tensor<1000xf32>, tensor<1000xf32>) -> ()
  stablehlo.custom_call @check.expect_eq(%n, %m) {has_side_effect = true} : (tensor<8xi32>, tensor<8xi32>) -> ()
  return
}
