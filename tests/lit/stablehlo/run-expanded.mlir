// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations that others express, and factors of matrices: `run` exits with 1
// where a number is not what NumPy computes, or what follows from its meaning.
// RUN: mgpu-tune run %s

func.func @main() {
  %x = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 0.0]]> : tensor<4x2xf32>
  %scale = stablehlo.constant dense<[2.0, -1.0]> : tensor<2xf32>
  %offset = stablehlo.constant dense<[0.5, 1.0]> : tensor<2xf32>

  // scale * (x - mean) / sqrt(variance + epsilon) + offset
  %y, %mean, %variance = "stablehlo.batch_norm_training"(%x, %scale, %offset) {epsilon = 0.5 : f32, feature_index = 1 : i64} : (tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>)
  %y_expected = stablehlo.constant dense<[[-2.058408498764038, 1.4264013767242432], [-0.3528028726577759, 0.5735985636711121], [1.3528028726577759, -0.27920424938201904], [3.058408498764038, 2.2792043685913086]]> : tensor<4x2xf32>
  %mean_expected = stablehlo.constant dense<[4.0, 3.0]> : tensor<2xf32>
  %variance_expected = stablehlo.constant dense<[5.0, 5.0]> : tensor<2xf32>
  stablehlo.custom_call @check.expect_almost_eq(%y, %y_expected) {has_side_effect = true} : (tensor<4x2xf32>, tensor<4x2xf32>) -> ()
  stablehlo.custom_call @check.expect_eq(%mean, %mean_expected) {has_side_effect = true} : (tensor<2xf32>, tensor<2xf32>) -> ()
  stablehlo.custom_call @check.expect_eq(%variance, %variance_expected) {has_side_effect = true} : (tensor<2xf32>, tensor<2xf32>) -> ()
  %again = "stablehlo.batch_norm_inference"(%x, %scale, %offset, %mean, %variance) {epsilon = 0.5 : f32, feature_index = 1 : i64} : (tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  stablehlo.custom_call @check.expect_eq(%again, %y) {has_side_effect = true} : (tensor<4x2xf32>, tensor<4x2xf32>) -> ()

  %gradient = stablehlo.constant dense<[[1.0, 0.0], [0.0, 1.0], [2.0, -1.0], [1.0, 1.0]]> : tensor<4x2xf32>
  %dx, %dscale, %doffset = "stablehlo.batch_norm_grad"(%x, %scale, %mean, %variance, %gradient) {epsilon = 0.5 : f32, feature_index = 1 : i64} : (tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>)
  %dx_expected = stablehlo.constant dense<[[0.23258261382579803, 0.20350979268550873], [-0.7752752900123596, -0.4167104959487915], [0.7752752900123596, 0.24227353930473328], [-0.23258261382579803, -0.029072823002934456]]> : tensor<4x2xf32>
  %dscale_expected = stablehlo.constant dense<[0.8528029, -2.1320071]> : tensor<2xf32>
  %doffset_expected = stablehlo.constant dense<[4.0, 1.0]> : tensor<2xf32>
  stablehlo.custom_call @check.expect_almost_eq(%dx, %dx_expected) {has_side_effect = true} : (tensor<4x2xf32>, tensor<4x2xf32>) -> ()
  stablehlo.custom_call @check.expect_almost_eq(%dscale, %dscale_expected) {has_side_effect = true} : (tensor<2xf32>, tensor<2xf32>) -> ()
  stablehlo.custom_call @check.expect_eq(%doffset, %doffset_expected) {has_side_effect = true} : (tensor<2xf32>, tensor<2xf32>) -> ()

  // result[b, j, c] = operand[b, index[b, j], c]
  %table = stablehlo.constant dense<[[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 10], [11, 12]]]> : tensor<2x3x2xi32>
  %index = stablehlo.constant dense<[[2, 0], [1, 1]]> : tensor<2x2xi32>
  %selected = stablehlo.torch_index_select %table, %index, dim = 1, batch_dims = 1 : (tensor<2x3x2xi32>, tensor<2x2xi32>) -> tensor<2x2x2xi32>
  %selected_expected = stablehlo.constant dense<[[[5, 6], [1, 2]], [[9, 10], [9, 10]]]> : tensor<2x2x2xi32>
  stablehlo.custom_call @check.expect_eq(%selected, %selected_expected) {has_side_effect = true} : (tensor<2x2x2xi32>, tensor<2x2x2xi32>) -> ()
  %row = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %rows = stablehlo.broadcast %row, sizes = [3] : (tensor<2xi32>) -> tensor<3x2xi32>
  %rows_expected = stablehlo.constant dense<[[1, 2], [1, 2], [1, 2]]> : tensor<3x2xi32>
  stablehlo.custom_call @check.expect_eq(%rows, %rows_expected) {has_side_effect = true} : (tensor<3x2xi32>, tensor<3x2xi32>) -> ()

  // L * transposed(L): [[2, 0], [1, 3]] and [[1, 0], [4, 5]]; only the given
  // triangle is read, and the other is 0.
  %spd = stablehlo.constant dense<[[[4.0, 99.0], [2.0, 10.0]], [[1.0, 99.0], [4.0, 41.0]]]> : tensor<2x2x2xf32>
  %l = stablehlo.cholesky %spd, lower = true : tensor<2x2x2xf32>
  %l_expected = stablehlo.constant dense<[[[2.0, 0.0], [1.0, 3.0]], [[1.0, 0.0], [4.0, 5.0]]]> : tensor<2x2x2xf32>
  stablehlo.custom_call @check.expect_eq(%l, %l_expected) {has_side_effect = true} : (tensor<2x2x2xf32>, tensor<2x2x2xf32>) -> ()
  %upper = stablehlo.constant dense<[[4.0, 2.0, 6.0], [99.0, 10.0, 6.0], [99.0, 99.0, 26.0]]> : tensor<3x3xf64>
  %u = stablehlo.cholesky %upper, lower = false : tensor<3x3xf64>
  %u_expected = stablehlo.constant dense<[[2.0, 1.0, 3.0], [0.0, 3.0, 1.0], [0.0, 0.0, 4.0]]> : tensor<3x3xf64>
  stablehlo.custom_call @check.expect_eq(%u, %u_expected) {has_side_effect = true} : (tensor<3x3xf64>, tensor<3x3xf64>) -> ()
  return
}
