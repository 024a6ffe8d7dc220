// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --convert-stablehlo-to-linalg | FileCheck %s
// RUN: mgpu-opt %s --convert-stablehlo-to-linalg=entry=chain | FileCheck %s --check-prefix=CHAIN

// Unsigned integers lose their sign, and their operations are the unsigned ones.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<4xi8>, %[[Y:.*]]: tensor<4xi8>, %[[Z:.*]]: tensor<4xf32>) -> (tensor<4xi8>, tensor<4xi8>
func.func @main(%x: tensor<4xui8>, %y: tensor<4xui8>, %z: tensor<4xf32>)
    -> (tensor<4xui8>, tensor<4xui8>, tensor<4xi32>, tensor<4xi1>, tensor<4xi1>) {
  // CHECK: linalg.generic
  // CHECK-SAME: ins(%[[X]], %[[Y]]
  // CHECK: arith.maxui
  %0 = stablehlo.maximum %x, %y : tensor<4xui8>
  // x / 0 has all bits set.
  // CHECK: linalg.generic
  // CHECK: %[[ZERO:.*]] = arith.cmpi eq
  // CHECK: arith.divui
  // CHECK: arith.select %[[ZERO]]
  %1 = stablehlo.divide %x, %y : tensor<4xui8>
  // Out of range is the nearest number, and NaN is 0.
  // CHECK: linalg.generic
  // CHECK: arith.cmpf uno
  // CHECK: arith.fptosi
  // CHECK: -2147483648
  // CHECK: 2147483647
  %2 = stablehlo.convert %z : (tensor<4xf32>) -> tensor<4xi32>
  // CHECK: arith.cmpi ult
  %3 = stablehlo.compare LT, %x, %y, UNSIGNED : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xi1>
  // CHECK: arith.bitcast
  // CHECK: arith.cmpi sge
  %4 = stablehlo.compare GE, %z, %z, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %0, %1, %2, %3, %4 : tensor<4xui8>, tensor<4xui8>, tensor<4xi32>, tensor<4xi1>, tensor<4xi1>
}

// What one operation alone uses is computed with it.
// CHAIN-LABEL: func.func @chain
func.func @chain(%x: tensor<4xf32>, %y: tensor<4xf32>, %p: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHAIN: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<4xf32>, tensor<4xf32>)
  // CHAIN: math.exp
  // CHAIN-NEXT: arith.addf
  %0 = stablehlo.exponential %x : tensor<4xf32>
  %1 = stablehlo.add %0, %y : tensor<4xf32>
  // The sum has two uses, so it is kept.
  // CHAIN: linalg.generic
  // CHAIN: arith.mulf
  // CHAIN-NEXT: arith.subf
  // CHAIN-NEXT: arith.select
  // CHAIN-NOT: linalg.generic
  %2 = stablehlo.multiply %y, %y : tensor<4xf32>
  %3 = stablehlo.subtract %2, %1 : tensor<4xf32>
  %4 = stablehlo.select %p, %3, %1 : tensor<i1>, tensor<4xf32>
  return %1, %4 : tensor<4xf32>, tensor<4xf32>
}
