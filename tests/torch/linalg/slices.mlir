#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
module {
  ml_program.global private mutable @global_seed(dense<0> : tensor<i64>) : tensor<i64>
  func.func @main(%arg0: tensor<3x32xf32>, %arg1: tensor<3x8xf32>, %arg2: tensor<32xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x16xf32>, tensor<2x8xf32>) {
    %cst = arith.constant 1.000000e+00 : f32
    %0 = tensor.empty() : tensor<3x32xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %arg2 : tensor<3x32xf32>, tensor<32xf32>) outs(%0 : tensor<3x32xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %14 = arith.addf %in, %in_3 : f32
      linalg.yield %14 : f32
    } -> tensor<3x32xf32>
    %extracted_slice = tensor.extract_slice %1[0, 0] [3, 8] [1, 1] : tensor<3x32xf32> to tensor<3x8xf32>
    %extracted_slice_0 = tensor.extract_slice %1[0, 8] [3, 8] [1, 1] : tensor<3x32xf32> to tensor<3x8xf32>
    %extracted_slice_1 = tensor.extract_slice %1[0, 16] [3, 8] [1, 1] : tensor<3x32xf32> to tensor<3x8xf32>
    %extracted_slice_2 = tensor.extract_slice %1[0, 24] [3, 8] [1, 1] : tensor<3x32xf32> to tensor<3x8xf32>
    %2 = tensor.empty() : tensor<3x8xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%extracted_slice : tensor<3x8xf32>) outs(%2 : tensor<3x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %14 = arith.negf %in : f32
      %15 = math.exp %14 : f32
      %16 = arith.addf %15, %cst : f32
      %17 = arith.divf %cst, %16 : f32
      linalg.yield %17 : f32
    } -> tensor<3x8xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%extracted_slice_0 : tensor<3x8xf32>) outs(%2 : tensor<3x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %14 = arith.negf %in : f32
      %15 = math.exp %14 : f32
      %16 = arith.addf %15, %cst : f32
      %17 = arith.divf %cst, %16 : f32
      linalg.yield %17 : f32
    } -> tensor<3x8xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%extracted_slice_1 : tensor<3x8xf32>) outs(%2 : tensor<3x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %14 = math.tanh %in : f32
      linalg.yield %14 : f32
    } -> tensor<3x8xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%extracted_slice_2 : tensor<3x8xf32>) outs(%2 : tensor<3x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %14 = arith.negf %in : f32
      %15 = math.exp %14 : f32
      %16 = arith.addf %15, %cst : f32
      %17 = arith.divf %cst, %16 : f32
      linalg.yield %17 : f32
    } -> tensor<3x8xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%4, %arg1 : tensor<3x8xf32>, tensor<3x8xf32>) outs(%2 : tensor<3x8xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %14 = arith.mulf %in, %in_3 : f32
      linalg.yield %14 : f32
    } -> tensor<3x8xf32>
    %8 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%3, %5 : tensor<3x8xf32>, tensor<3x8xf32>) outs(%2 : tensor<3x8xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %14 = arith.mulf %in, %in_3 : f32
      linalg.yield %14 : f32
    } -> tensor<3x8xf32>
    %9 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%7, %8 : tensor<3x8xf32>, tensor<3x8xf32>) outs(%2 : tensor<3x8xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %14 = arith.addf %in, %in_3 : f32
      linalg.yield %14 : f32
    } -> tensor<3x8xf32>
    %10 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%9 : tensor<3x8xf32>) outs(%2 : tensor<3x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %14 = math.tanh %in : f32
      linalg.yield %14 : f32
    } -> tensor<3x8xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%6, %10 : tensor<3x8xf32>, tensor<3x8xf32>) outs(%2 : tensor<3x8xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %14 = arith.mulf %in, %in_3 : f32
      linalg.yield %14 : f32
    } -> tensor<3x8xf32>
    %concat = tensor.concat dim(1) %11, %9 : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x16xf32>
    %12 = tensor.empty() : tensor<2x8xf32>
    %extracted_slice_4 = tensor.extract_slice %11[0, 0] [1, 8] [1, 1] : tensor<3x8xf32> to tensor<1x8xf32>
    %extracted_slice_5 = tensor.extract_slice %9[2, 0] [1, 8] [1, 1] : tensor<3x8xf32> to tensor<1x8xf32>
    %inserted_slice = tensor.insert_slice %extracted_slice_4 into %12[0, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<2x8xf32>
    %inserted_slice_6 = tensor.insert_slice %extracted_slice_5 into %inserted_slice[1, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<2x8xf32>
    return %11, %9, %concat, %inserted_slice_6 : tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x16xf32>, tensor<2x8xf32>
  }
}
