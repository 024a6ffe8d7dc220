// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-tune run %s --entry signed | FileCheck %s
// RUN: mgpu-tune run %s --entry unsigned | FileCheck %s
// RUN: mgpu-tune run %s --entry converted | FileCheck %s
// RUN: mgpu-tune run %s --entry summed | FileCheck %s
// RUN: mgpu-tune run %s --entry given --arg x=23 --out r0=%t.npy | FileCheck %s
// RUN: %python -c "import struct; print(struct.unpack('<b', open(r'%t.npy', 'rb').read()[-1:])[0])" | FileCheck %s --check-prefix=GIVEN

// Integers of 2 and 4 bits lie in memory as 8, and wrap as their type does.
// CHECK: fetch
func.func @signed() {
  %a = stablehlo.constant dense<[7, -8, -1, 3]> : tensor<4xi4>
  %b = stablehlo.constant dense<[1, -1, -8, 5]> : tensor<4xi4>
  %sum = stablehlo.add %a, %b : tensor<4xi4>
  check.expect_eq_const %sum, dense<[-8, 7, 7, -8]> : tensor<4xi4>
  %product = stablehlo.multiply %a, %b : tensor<4xi4>
  check.expect_eq_const %product, dense<[7, -8, -8, -1]> : tensor<4xi4>
  %negated = stablehlo.negate %a : tensor<4xi4>
  check.expect_eq_const %negated, dense<[-7, -8, 1, -3]> : tensor<4xi4>
  %quotient = stablehlo.divide %a, %b : tensor<4xi4>
  check.expect_eq_const %quotient, dense<[7, -8, 0, 0]> : tensor<4xi4>
  %two = stablehlo.constant dense<2> : tensor<4xi4>
  %shifted = stablehlo.shift_left %a, %two : tensor<4xi4>
  check.expect_eq_const %shifted, dense<[-4, 0, -4, -4]> : tensor<4xi4>
  %order = stablehlo.compare LT, %a, %b : (tensor<4xi4>, tensor<4xi4>) -> tensor<4xi1>
  check.expect_eq_const %order, dense<[false, true, false, true]> : tensor<4xi1>
  return
}

func.func @unsigned() {
  %a = stablehlo.constant dense<[3, 2, 0]> : tensor<3xui2>
  %b = stablehlo.constant dense<[1, 3, 1]> : tensor<3xui2>
  %sum = stablehlo.add %a, %b : tensor<3xui2>
  check.expect_eq_const %sum, dense<[0, 1, 1]> : tensor<3xui2>
  %rest = stablehlo.subtract %b, %a : tensor<3xui2>
  check.expect_eq_const %rest, dense<[2, 1, 1]> : tensor<3xui2>
  %flipped = stablehlo.not %a : tensor<3xui2>
  check.expect_eq_const %flipped, dense<[0, 1, 3]> : tensor<3xui2>
  %order = stablehlo.compare GT, %a, %b : (tensor<3xui2>, tensor<3xui2>) -> tensor<3xi1>
  check.expect_eq_const %order, dense<[true, false, false]> : tensor<3xi1>
  return
}

func.func @converted() {
  %wide = stablehlo.constant dense<[8, -9, 23]> : tensor<3xi32>
  %narrow = stablehlo.convert %wide : (tensor<3xi32>) -> tensor<3xi4>
  check.expect_eq_const %narrow, dense<[-8, 7, 7]> : tensor<3xi4>
  %back = stablehlo.convert %narrow : (tensor<3xi4>) -> tensor<3xi32>
  check.expect_eq_const %back, dense<[-8, 7, 7]> : tensor<3xi32>
  %floats = stablehlo.constant dense<[-3.5, 100.0, -100.0]> : tensor<3xf32>
  %nearest = stablehlo.convert %floats : (tensor<3xf32>) -> tensor<3xi4>
  check.expect_eq_const %nearest, dense<[-3, 7, -8]> : tensor<3xi4>
  %places = stablehlo.iota dim = 0 : tensor<6xui2>
  check.expect_eq_const %places, dense<[0, 1, 2, 3, 0, 1]> : tensor<6xui2>
  return
}

func.func @summed() {
  %a = stablehlo.constant dense<[[7, 7, 7], [-8, -8, 1]]> : tensor<2x3xi4>
  %zero = stablehlo.constant dense<0> : tensor<i4>
  %sums = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x3xi4>, tensor<i4>) -> tensor<2xi4>
  check.expect_eq_const %sums, dense<[5, 1]> : tensor<2xi4>
  %most = stablehlo.constant dense<-8> : tensor<i4>
  %largest = stablehlo.reduce(%a init: %most) applies stablehlo.maximum across dimensions = [1] : (tensor<2x3xi4>, tensor<i4>) -> tensor<2xi4>
  check.expect_eq_const %largest, dense<[7, 1]> : tensor<2xi4>
  %b = stablehlo.constant dense<[3, 3, 3]> : tensor<3xi4>
  %dots = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x3xi4>, tensor<3xi4>) -> tensor<2xi4>
  check.expect_eq_const %dots, dense<[-1, 3]> : tensor<2xi4>
  return
}

// Of what is bound, the lowest bits are taken: 23 is 7.
// GIVEN: 7
func.func @given(%x: tensor<1xi4>) -> tensor<1xi4> {
  return %x : tensor<1xi4>
}
