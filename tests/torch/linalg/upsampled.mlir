#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
module {
  func.func @main(%arg0: tensor<1x2x3x4xf32>) -> (tensor<1x2x6x8xf32>, tensor<1x2x3x4xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<1x2x6x8xf32>
    %1 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%0 : tensor<1x2x6x8xf32>) {
    ^bb0(%out: f32):
      %6 = linalg.index 0 : index
      %7 = linalg.index 1 : index
      %8 = linalg.index 2 : index
      %9 = linalg.index 3 : index
      %10 = arith.floordivsi %8, %c2 : index
      %11 = arith.floordivsi %9, %c2 : index
      %extracted = tensor.extract %arg0[%6, %7, %10, %11] : tensor<1x2x3x4xf32>
      linalg.yield %extracted : f32
    } -> tensor<1x2x6x8xf32>
    %padded = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg1: index, %arg2: index, %arg3: index, %arg4: index):
      tensor.yield %cst : f32
    } : tensor<1x2x3x4xf32> to tensor<1x2x5x6xf32>
    %2 = tensor.empty() : tensor<1x2x3x4xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
    %4 = tensor.empty() : tensor<3x3xf32>
    %5 = linalg.pooling_nchw_sum {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded, %4 : tensor<1x2x5x6xf32>, tensor<3x3xf32>) outs(%3 : tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
    %20 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5 : tensor<1x2x3x4xf32>) outs(%2 : tensor<1x2x3x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %6 = linalg.index 2 : index
      %7 = linalg.index 3 : index
      %8 = arith.subi %6, %c1 : index
      %9 = arith.subi %7, %c1 : index
      %10 = arith.addi %8, %c3 : index
      %11 = arith.addi %9, %c3 : index
      %12 = arith.maxsi %8, %c0 : index
      %13 = arith.maxsi %9, %c0 : index
      %14 = arith.minsi %10, %c3 : index
      %15 = arith.minsi %11, %c4 : index
      %16 = arith.subi %14, %12 : index
      %17 = arith.subi %15, %13 : index
      %18 = arith.muli %16, %17 : index
      %19 = arith.index_cast %18 : index to i64
      %21 = arith.sitofp %19 : i64 to f32
      %22 = arith.divf %in, %21 : f32
      linalg.yield %22 : f32
    } -> tensor<1x2x3x4xf32>
    return %1, %20 : tensor<1x2x6x8xf32>, tensor<1x2x3x4xf32>
  }
}
