// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A training step of a two-layer network, in the form that JAX exports: the weights are donated
// (tf.aliasing_output), so they stay on the device from replay to replay.
module @jit_step attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<16x32xf32> {tf.aliasing_output = 1 : i32} loc("w1"),
                         %arg1: tensor<32x4xf32> {tf.aliasing_output = 2 : i32} loc("w2"),
                         %arg2: tensor<64x16xf32> loc("x"), %arg3: tensor<64x4xf32> loc("t"))
      -> (tensor<f32> {jax.result_info = "loss"}, tensor<16x32xf32> {jax.result_info = "w1"},
          tensor<32x4xf32> {jax.result_info = "w2"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<3.906250e-03> : tensor<f32>
    %cst_1 = stablehlo.constant dense<1.562500e-02> : tensor<f32>
    %0 = stablehlo.dot_general %arg2, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<64x16xf32>, tensor<16x32xf32>) -> tensor<64x32xf32>
    %1 = call @relu(%0) : (tensor<64x32xf32>) -> tensor<64x32xf32>
    %2 = stablehlo.dot_general %1, %arg1, contracting_dims = [1] x [0] : (tensor<64x32xf32>, tensor<32x4xf32>) -> tensor<64x4xf32>
    %3 = stablehlo.subtract %2, %arg3 : tensor<64x4xf32>
    %4 = stablehlo.multiply %3, %3 : tensor<64x4xf32>
    %5 = stablehlo.reduce(%4 init: %cst) applies stablehlo.add across dimensions = [0, 1] : (tensor<64x4xf32>, tensor<f32>) -> tensor<f32>
    %6 = stablehlo.multiply %5, %cst_0 : tensor<f32>
    %7 = stablehlo.dot_general %1, %3, contracting_dims = [0] x [0] : (tensor<64x32xf32>, tensor<64x4xf32>) -> tensor<32x4xf32>
    %8 = stablehlo.dot_general %3, %arg1, contracting_dims = [1] x [1] : (tensor<64x4xf32>, tensor<32x4xf32>) -> tensor<64x32xf32>
    %9 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<64x32xf32>
    %10 = stablehlo.compare GT, %0, %9, FLOAT : (tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<64x32xi1>
    %11 = stablehlo.select %10, %8, %9 : tensor<64x32xi1>, tensor<64x32xf32>
    %12 = stablehlo.dot_general %arg2, %11, contracting_dims = [0] x [0] : (tensor<64x16xf32>, tensor<64x32xf32>) -> tensor<16x32xf32>
    %13 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %14 = stablehlo.multiply %12, %13 : tensor<16x32xf32>
    %15 = stablehlo.subtract %arg0, %14 : tensor<16x32xf32>
    %16 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<32x4xf32>
    %17 = stablehlo.multiply %7, %16 : tensor<32x4xf32>
    %18 = stablehlo.subtract %arg1, %17 : tensor<32x4xf32>
    return %6, %15, %18 : tensor<f32>, tensor<16x32xf32>, tensor<32x4xf32>
  }
  func.func private @relu(%arg0: tensor<64x32xf32>) -> tensor<64x32xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<64x32xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<64x32xf32>
    return %1 : tensor<64x32xf32>
  }
}
