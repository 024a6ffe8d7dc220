#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
module {
  func.func @forward(%arg0: tensor<2x4x5x5xf32>, %arg1: tensor<4x3x3x3xf32>) -> tensor<2x3x10x10xf32> {
    %c2 = arith.constant 2 : index
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<3x4x3x3xf32>
    %1 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%0 : tensor<3x4x3x3xf32>) {
    ^bb0(%out: f32):
      %7 = linalg.index 0 : index
      %8 = linalg.index 1 : index
      %9 = linalg.index 2 : index
      %10 = linalg.index 3 : index
      %11 = arith.subi %c2, %9 : index
      %12 = arith.subi %c2, %10 : index
      %extracted = tensor.extract %arg1[%8, %7, %11, %12] : tensor<4x3x3x3xf32>
      linalg.yield %extracted : f32
    } -> tensor<3x4x3x3xf32>
    %2 = tensor.empty() : tensor<2x4x12x12xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<2x4x12x12xf32>) -> tensor<2x4x12x12xf32>
    %inserted_slice = tensor.insert_slice %arg0 into %3[0, 0, 1, 1] [2, 4, 5, 5] [1, 1, 2, 2] : tensor<2x4x5x5xf32> into tensor<2x4x12x12xf32>
    %4 = tensor.empty() : tensor<2x3x10x10xf32>
    %5 = linalg.fill ins(%cst : f32) outs(%4 : tensor<2x3x10x10xf32>) -> tensor<2x3x10x10xf32>
    %6 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%inserted_slice, %1 : tensor<2x4x12x12xf32>, tensor<3x4x3x3xf32>) outs(%5 : tensor<2x3x10x10xf32>) -> tensor<2x3x10x10xf32>
    return %6 : tensor<2x3x10x10xf32>
  }
}
