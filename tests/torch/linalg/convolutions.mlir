#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d1)>
#map2 = affine_map<(d0, d1, d2, d3) -> (0, d1, d2, d3)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1) -> (d1)>
module attributes {torch.debug_module_name = "Convolutions"} {
  ml_program.global private mutable @global_seed(dense<0> : tensor<i64>) : tensor<i64>
  func.func @forward(%arg0: tensor<2x3x12x12xf32>, %arg1: tensor<8x3x3x3xf32>, %arg2: tensor<8xf32>, %arg3: tensor<8xf32>, %arg4: tensor<8xf32>, %arg5: tensor<8xf32>, %arg6: tensor<72x5xf32>, %arg7: tensor<5xf32>) -> (tensor<2x5xf32>, tensor<2x8x1x1xf32>) {
    %false = arith.constant false
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %cst_1 = arith.constant 1.000000e-05 : f64
    %cst_2 = arith.constant 9.000000e+00 : f32
    %padded = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg8: index, %arg9: index, %arg10: index, %arg11: index):
      tensor.yield %cst : f32
    } : tensor<2x3x12x12xf32> to tensor<2x3x14x14xf32>
    %0 = tensor.empty() : tensor<2x8x6x6xf32>
    %broadcasted = linalg.broadcast ins(%arg2 : tensor<8xf32>) outs(%0 : tensor<2x8x6x6xf32>) dimensions = [0, 2, 3]
    %1 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%padded, %arg1 : tensor<2x3x14x14xf32>, tensor<8x3x3x3xf32>) outs(%broadcasted : tensor<2x8x6x6xf32>) -> tensor<2x8x6x6xf32>
    %2 = arith.cmpi eq, %false, %false : i1
    cf.assert %2, "training is not supported for now"
    %3 = linalg.generic {indexing_maps = [#map, #map1, #map1, #map1, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%1, %arg3, %arg4, %arg5, %arg2 : tensor<2x8x6x6xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) outs(%1 : tensor<2x8x6x6xf32>) {
    ^bb0(%in: f32, %in_4: f32, %in_5: f32, %in_6: f32, %in_7: f32, %out: f32):
      %15 = arith.truncf %cst_1 : f64 to f32
      %16 = arith.addf %in_6, %15 : f32
      %17 = math.rsqrt %16 : f32
      %18 = arith.subf %in, %in_7 : f32
      %19 = arith.mulf %18, %17 : f32
      %20 = arith.mulf %19, %in_4 : f32
      %21 = arith.addf %20, %in_5 : f32
      linalg.yield %21 : f32
    } -> tensor<2x8x6x6xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%3 : tensor<2x8x6x6xf32>) outs(%0 : tensor<2x8x6x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %15 = arith.cmpf ugt, %in, %cst : f32
      %16 = arith.select %15, %in, %cst : f32
      linalg.yield %16 : f32
    } -> tensor<2x8x6x6xf32>
    %padded_3 = tensor.pad %4 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg8: index, %arg9: index, %arg10: index, %arg11: index):
      tensor.yield %cst_0 : f32
    } : tensor<2x8x6x6xf32> to tensor<2x8x8x8xf32>
    %5 = tensor.empty() : tensor<2x8x3x3xf32>
    %6 = linalg.fill ins(%cst_0 : f32) outs(%5 : tensor<2x8x3x3xf32>) -> tensor<2x8x3x3xf32>
    %7 = tensor.empty() : tensor<3x3xf32>
    %8 = linalg.pooling_nchw_max {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%padded_3, %7 : tensor<2x8x8x8xf32>, tensor<3x3xf32>) outs(%6 : tensor<2x8x3x3xf32>) -> tensor<2x8x3x3xf32>
    %9 = tensor.empty() : tensor<2x8x1x1xf32>
    %10 = linalg.fill ins(%cst : f32) outs(%9 : tensor<2x8x1x1xf32>) -> tensor<2x8x1x1xf32>
    %11 = linalg.pooling_nchw_sum {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%8, %7 : tensor<2x8x3x3xf32>, tensor<3x3xf32>) outs(%10 : tensor<2x8x1x1xf32>) -> tensor<2x8x1x1xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%11 : tensor<2x8x1x1xf32>) outs(%9 : tensor<2x8x1x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %15 = arith.divf %in, %cst_2 : f32
      linalg.yield %15 : f32
    } -> tensor<2x8x1x1xf32>
    %collapsed = tensor.collapse_shape %8 [[0], [1, 2, 3]] : tensor<2x8x3x3xf32> into tensor<2x72xf32>
    %13 = tensor.empty() : tensor<2x5xf32>
    %broadcasted_4 = linalg.broadcast ins(%arg7 : tensor<5xf32>) outs(%13 : tensor<2x5xf32>) dimensions = [0]
    %14 = linalg.matmul ins(%collapsed, %arg6 : tensor<2x72xf32>, tensor<72x5xf32>) outs(%broadcasted_4 : tensor<2x5xf32>) -> tensor<2x5xf32>
    return %14, %12 : tensor<2x5xf32>, tensor<2x8x1x1xf32>
  }
}
