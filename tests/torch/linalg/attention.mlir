#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d2, d1, d3)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3, d2)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map5 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
#map6 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
module attributes {torch.debug_module_name = "Attention"} {
  ml_program.global private mutable @global_seed(dense<0> : tensor<i64>) : tensor<i64>
  func.func @forward(%arg0: tensor<2x5x12xf32>, %arg1: tensor<2x5x12xf32>, %arg2: tensor<2x5x12xf32>, %arg3: tensor<5x5xi1>) -> tensor<2x5x12xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %cst_1 = arith.constant 2.000000e+00 : f32
    %c0_i64 = arith.constant 0 : i64
    %expanded = tensor.expand_shape %arg0 [[0], [1], [2, 3]] output_shape [2, 5, 3, 4] : tensor<2x5x12xf32> into tensor<2x5x3x4xf32>
    %0 = tensor.empty() : tensor<2x3x5x4xf32>
    %1 = linalg.generic {indexing_maps = [#map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<2x5x3x4xf32>) outs(%0 : tensor<2x3x5x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x3x5x4xf32>
    %expanded_2 = tensor.expand_shape %arg1 [[0], [1], [2, 3]] output_shape [2, 5, 3, 4] : tensor<2x5x12xf32> into tensor<2x5x3x4xf32>
    %2 = linalg.generic {indexing_maps = [#map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_2 : tensor<2x5x3x4xf32>) outs(%0 : tensor<2x3x5x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x3x5x4xf32>
    %expanded_3 = tensor.expand_shape %arg2 [[0], [1], [2, 3]] output_shape [2, 5, 3, 4] : tensor<2x5x12xf32> into tensor<2x5x3x4xf32>
    %3 = linalg.generic {indexing_maps = [#map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_3 : tensor<2x5x3x4xf32>) outs(%0 : tensor<2x3x5x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x3x5x4xf32>
    %4 = tensor.empty() : tensor<2x3x4x5xf32>
    %5 = linalg.generic {indexing_maps = [#map1, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2 : tensor<2x3x5x4xf32>) outs(%4 : tensor<2x3x4x5xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x3x4x5xf32>
    %collapsed = tensor.collapse_shape %1 [[0, 1], [2], [3]] : tensor<2x3x5x4xf32> into tensor<6x5x4xf32>
    %collapsed_4 = tensor.collapse_shape %5 [[0, 1], [2], [3]] : tensor<2x3x4x5xf32> into tensor<6x4x5xf32>
    %6 = tensor.empty() : tensor<6x5x5xf32>
    %7 = linalg.fill ins(%cst : f32) outs(%6 : tensor<6x5x5xf32>) -> tensor<6x5x5xf32>
    %8 = linalg.batch_matmul ins(%collapsed, %collapsed_4 : tensor<6x5x4xf32>, tensor<6x4x5xf32>) outs(%7 : tensor<6x5x5xf32>) -> tensor<6x5x5xf32>
    %expanded_5 = tensor.expand_shape %8 [[0, 1], [2], [3]] output_shape [2, 3, 5, 5] : tensor<6x5x5xf32> into tensor<2x3x5x5xf32>
    %9 = tensor.empty() : tensor<2x3x5x5xf32>
    %10 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_5 : tensor<2x3x5x5xf32>) outs(%9 : tensor<2x3x5x5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %24 = arith.divf %in, %cst_1 : f32
      linalg.yield %24 : f32
    } -> tensor<2x3x5x5xf32>
    %11 = linalg.generic {indexing_maps = [#map6, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg3, %10 : tensor<5x5xi1>, tensor<2x3x5x5xf32>) outs(%9 : tensor<2x3x5x5xf32>) {
    ^bb0(%in: i1, %in_6: f32, %out: f32):
      %24 = arith.select %in, %cst_0, %in_6 : f32
      linalg.yield %24 : f32
    } -> tensor<2x3x5x5xf32>
    %12 = tensor.empty() : tensor<2x3x5x1xi64>
    %13 = linalg.fill ins(%c0_i64 : i64) outs(%12 : tensor<2x3x5x1xi64>) -> tensor<2x3x5x1xi64>
    %14 = tensor.empty() : tensor<2x3x5x1xf32>
    %15 = linalg.fill ins(%cst_0 : f32) outs(%14 : tensor<2x3x5x1xf32>) -> tensor<2x3x5x1xf32>
    %16:2 = linalg.generic {indexing_maps = [#map1, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%11 : tensor<2x3x5x5xf32>) outs(%15, %13 : tensor<2x3x5x1xf32>, tensor<2x3x5x1xi64>) {
    ^bb0(%in: f32, %out: f32, %out_6: i64):
      %24 = linalg.index 3 : index
      %25 = arith.index_cast %24 : index to i64
      %26 = arith.maximumf %in, %out : f32
      %27 = arith.cmpf ogt, %in, %out : f32
      %28 = arith.select %27, %25, %out_6 : i64
      linalg.yield %26, %28 : f32, i64
    } -> (tensor<2x3x5x1xf32>, tensor<2x3x5x1xi64>)
    %17 = linalg.generic {indexing_maps = [#map1, #map5, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%11, %16#0 : tensor<2x3x5x5xf32>, tensor<2x3x5x1xf32>) outs(%9 : tensor<2x3x5x5xf32>) {
    ^bb0(%in: f32, %in_6: f32, %out: f32):
      %24 = arith.subf %in, %in_6 : f32
      linalg.yield %24 : f32
    } -> tensor<2x3x5x5xf32>
    %18 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%17 : tensor<2x3x5x5xf32>) outs(%9 : tensor<2x3x5x5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %24 = math.exp %in : f32
      linalg.yield %24 : f32
    } -> tensor<2x3x5x5xf32>
    %19 = linalg.fill ins(%cst : f32) outs(%14 : tensor<2x3x5x1xf32>) -> tensor<2x3x5x1xf32>
    %20 = linalg.generic {indexing_maps = [#map1, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%18 : tensor<2x3x5x5xf32>) outs(%19 : tensor<2x3x5x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %24 = arith.addf %in, %out : f32
      linalg.yield %24 : f32
    } -> tensor<2x3x5x1xf32>
    %21 = linalg.generic {indexing_maps = [#map1, #map5, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%18, %20 : tensor<2x3x5x5xf32>, tensor<2x3x5x1xf32>) outs(%9 : tensor<2x3x5x5xf32>) {
    ^bb0(%in: f32, %in_6: f32, %out: f32):
      %24 = arith.divf %in, %in_6 : f32
      linalg.yield %24 : f32
    } -> tensor<2x3x5x5xf32>
    %collapsed_7 = tensor.collapse_shape %21 [[0, 1], [2], [3]] : tensor<2x3x5x5xf32> into tensor<6x5x5xf32>
    %collapsed_8 = tensor.collapse_shape %3 [[0, 1], [2], [3]] : tensor<2x3x5x4xf32> into tensor<6x5x4xf32>
    %22 = tensor.empty() : tensor<6x5x4xf32>
    %23 = linalg.fill ins(%cst : f32) outs(%22 : tensor<6x5x4xf32>) -> tensor<6x5x4xf32>
    %30 = linalg.batch_matmul ins(%collapsed_7, %collapsed_8 : tensor<6x5x5xf32>, tensor<6x5x4xf32>) outs(%23 : tensor<6x5x4xf32>) -> tensor<6x5x4xf32>
    %expanded_9 = tensor.expand_shape %30 [[0, 1], [2], [3]] output_shape [2, 3, 5, 4] : tensor<6x5x4xf32> into tensor<2x3x5x4xf32>
    %31 = tensor.empty() : tensor<2x5x3x4xf32>
    %32 = linalg.generic {indexing_maps = [#map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_9 : tensor<2x3x5x4xf32>) outs(%31 : tensor<2x5x3x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x5x3x4xf32>
    %collapsed_10 = tensor.collapse_shape %32 [[0], [1], [2, 3]] : tensor<2x5x3x4xf32> into tensor<2x5x12xf32>
    return %collapsed_10 : tensor<2x5x12xf32>
  }
}
