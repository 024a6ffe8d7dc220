module {
  func.func @main(%arg0: tensor<1x4x7x7xf32>, %arg1: tensor<6x2x3x3xf32>, %arg2: tensor<6xf32>, %arg3: tensor<4x1x3x3xf32>) -> (tensor<1x6x3x3xf32>, tensor<1x4x5x5xf32>) {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<1x6x3x3xf32>
    %broadcasted = linalg.broadcast ins(%arg2 : tensor<6xf32>) outs(%0 : tensor<1x6x3x3xf32>) dimensions = [0, 2, 3]
    %expanded = tensor.expand_shape %arg0 [[0], [1, 2], [3], [4]] output_shape [1, 2, 2, 7, 7] : tensor<1x4x7x7xf32> into tensor<1x2x2x7x7xf32>
    %expanded_0 = tensor.expand_shape %arg1 [[0, 1], [2], [3], [4]] output_shape [2, 3, 2, 3, 3] : tensor<6x2x3x3xf32> into tensor<2x3x2x3x3xf32>
    %expanded_1 = tensor.expand_shape %broadcasted [[0], [1, 2], [3], [4]] output_shape [1, 2, 3, 3, 3] : tensor<1x6x3x3xf32> into tensor<1x2x3x3x3xf32>
    %1 = linalg.conv_2d_ngchw_gfchw {dilations = dense<2> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%expanded, %expanded_0 : tensor<1x2x2x7x7xf32>, tensor<2x3x2x3x3xf32>) outs(%expanded_1 : tensor<1x2x3x3x3xf32>) -> tensor<1x2x3x3x3xf32>
    %collapsed = tensor.collapse_shape %1 [[0], [1, 2], [3], [4]] : tensor<1x2x3x3x3xf32> into tensor<1x6x3x3xf32>
    %2 = tensor.empty() : tensor<1x4x5x5xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<1x4x5x5xf32>) -> tensor<1x4x5x5xf32>
    %collapsed_2 = tensor.collapse_shape %arg3 [[0, 1], [2], [3]] : tensor<4x1x3x3xf32> into tensor<4x3x3xf32>
    %4 = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%arg0, %collapsed_2 : tensor<1x4x7x7xf32>, tensor<4x3x3xf32>) outs(%3 : tensor<1x4x5x5xf32>) -> tensor<1x4x5x5xf32>
    return %collapsed, %4 : tensor<1x6x3x3xf32>, tensor<1x4x5x5xf32>
  }
}
