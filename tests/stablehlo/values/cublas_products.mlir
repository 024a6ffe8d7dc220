// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products of cuBLAS and cuBLASLt, as XLA writes them: factors, a sum, a bias and functions behind it.
module {
  func.func @main() {
    %x = stablehlo.constant dense<[[-0.971, -1.136, 0.421], [-1.055, -1.272, 0.614]]> : tensor<2x3xf32>
    %y = stablehlo.constant dense<[[-1.197, -0.322, -0.007], [-0.445, -0.054, 1.339], [-0.517, -1.259, -1.837], [-0.205, -0.352, 0.265]]> : tensor<4x3xf32>
    %z = stablehlo.constant dense<[[-0.464, -0.479, -0.721, -0.52], [0.16, -0.38, 0.1, 1.901]]> : tensor<2x4xf32>
    %w = stablehlo.constant dense<[0.479, -1.576, 1.734, 0.348]> : tensor<4xf32>
    %a:2 = stablehlo.custom_call @__cublas$gemm(%x, %y, %z) {backend_config = "{\22gemm_backend_config\22: {\22alpha_real\22: 2, \22alpha_imag\22: 0, \22beta\22: 0.5, \22dot_dimension_numbers\22: {\22lhs_contracting_dimensions\22: [\221\22], \22rhs_contracting_dimensions\22: [\221\22], \22lhs_batch_dimensions\22: [], \22rhs_batch_dimensions\22: []}, \22epilogue\22: \22DEFAULT\22}}"} : (tensor<2x3xf32>, tensor<4x3xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<8xi8>)
    %sum = stablehlo.reshape %a#0 : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %w_sum = stablehlo.constant dense<[[2.818264, 1.874816, 1.957208, 1.160984], [3.416242, 2.530618, 2.08793, 2.603958]]> : tensor<2x4xf32>
    stablehlo.custom_call @check.expect_almost_eq(%sum, %w_sum) : (tensor<2x4xf32>, tensor<2x4xf32>) -> ()
    %relu = stablehlo.custom_call @__cublas$lt$matmul(%x, %y, %w) {backend_config = "{\22gemm_backend_config\22: {\22alpha_real\22: 2, \22alpha_imag\22: 0, \22beta\22: 0, \22dot_dimension_numbers\22: {\22lhs_contracting_dimensions\22: [\221\22], \22rhs_contracting_dimensions\22: [\221\22], \22lhs_batch_dimensions\22: [], \22rhs_batch_dimensions\22: []}, \22epilogue\22: \22BIAS_RELU\22}}"} : (tensor<2x3xf32>, tensor<4x3xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    %w_relu = stablehlo.constant dense<[[3.529264, 0.538316, 4.051708, 1.768984], [3.815242, 1.144618, 3.77193, 2.001458]]> : tensor<2x4xf32>
    stablehlo.custom_call @check.expect_almost_eq(%relu, %w_relu) : (tensor<2x4xf32>, tensor<2x4xf32>) -> ()
    %gelu = stablehlo.custom_call @__cublas$lt$matmul(%x, %y, %w) {backend_config = "{\22gemm_backend_config\22: {\22alpha_real\22: 2, \22alpha_imag\22: 0, \22beta\22: 0, \22dot_dimension_numbers\22: {\22lhs_contracting_dimensions\22: [\221\22], \22rhs_contracting_dimensions\22: [\221\22], \22lhs_batch_dimensions\22: [], \22rhs_batch_dimensions\22: []}, \22epilogue\22: \22BIAS_GELU\22}}"} : (tensor<2x3xf32>, tensor<4x3xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    %w_gelu = stablehlo.constant dense<[[3.528715, 0.379394, 4.051653, 1.700882], [3.815077, 0.999986, 3.771731, 1.956181]]> : tensor<2x4xf32>
    stablehlo.custom_call @check.expect_almost_eq(%gelu, %w_gelu) : (tensor<2x4xf32>, tensor<2x4xf32>) -> ()
    return
  }
}
