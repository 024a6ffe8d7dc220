#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @forward(%arg0: tensor<1x4x6x6xf32>, %arg1: tensor<4x2x3x3xf32>, %arg2: tensor<4x8xbf16>, %arg3: tensor<8x3xbf16>) -> (tensor<1x4x4x4xf32>, tensor<4x3xbf16>) {
    %cst = arith.constant 0.000000e+00 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %cast = tensor.cast %arg0 : tensor<1x4x6x6xf32> to tensor<?x?x?x?xf32>
    %dim = tensor.dim %cast, %c0 : tensor<?x?x?x?xf32>
    %0 = tensor.empty() : tensor<1x4x4x4xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
    %cast_0 = tensor.cast %1 : tensor<1x4x4x4xf32> to tensor<?x4x4x4xf32>
    %2 = arith.cmpi eq, %dim, %c1 : index
    cf.assert %2, "expect batch dimension to be 1"
    %expanded = tensor.expand_shape %arg0 [[0], [1, 2], [3], [4]] output_shape [1, 2, 2, 6, 6] : tensor<1x4x6x6xf32> into tensor<1x2x2x6x6xf32>
    %cast_1 = tensor.cast %expanded : tensor<1x2x2x6x6xf32> to tensor<?x2x2x6x6xf32>
    %expanded_2 = tensor.expand_shape %arg1 [[0, 1], [2], [3], [4]] output_shape [2, 2, 2, 3, 3] : tensor<4x2x3x3xf32> into tensor<2x2x2x3x3xf32>
    %expanded_3 = tensor.expand_shape %cast_0 [[0], [1, 2], [3], [4]] output_shape [%dim, 2, 2, 4, 4] : tensor<?x4x4x4xf32> into tensor<?x2x2x4x4xf32>
    %3 = linalg.conv_2d_ngchw_gfchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%cast_1, %expanded_2 : tensor<?x2x2x6x6xf32>, tensor<2x2x2x3x3xf32>) outs(%expanded_3 : tensor<?x2x2x4x4xf32>) -> tensor<?x2x2x4x4xf32>
    %collapsed = tensor.collapse_shape %3 [[0], [1, 2], [3], [4]] : tensor<?x2x2x4x4xf32> into tensor<?x4x4x4xf32>
    %cast_4 = tensor.cast %collapsed : tensor<?x4x4x4xf32> to tensor<1x4x4x4xf32>
    %4 = tensor.empty() : tensor<4x3xf32>
    %5 = linalg.fill ins(%cst : f32) outs(%4 : tensor<4x3xf32>) -> tensor<4x3xf32>
    %6 = linalg.matmul ins(%arg2, %arg3 : tensor<4x8xbf16>, tensor<8x3xbf16>) outs(%5 : tensor<4x3xf32>) -> tensor<4x3xf32>
    %7 = tensor.empty() : tensor<4x3xbf16>
    %8 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%6 : tensor<4x3xf32>) outs(%7 : tensor<4x3xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %9 = arith.truncf %in : f32 to bf16
      linalg.yield %9 : bf16
    } -> tensor<4x3xbf16>
    return %cast_4, %8 : tensor<1x4x4x4xf32>, tensor<4x3xbf16>
  }
}
