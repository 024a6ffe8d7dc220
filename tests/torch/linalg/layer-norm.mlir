#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
#map2 = affine_map<(d0, d1, d2) -> (0, d1, d2)>
#map3 = affine_map<(d0, d1, d2) -> (0, d1, 0)>
#map4 = affine_map<(d0, d1, d2) -> (d2)>
module {
  ml_program.global private mutable @global_seed(dense<0> : tensor<i64>) : tensor<i64>
  func.func @main(%arg0: tensor<1x6x16xf32>, %arg1: tensor<16xf32>, %arg2: tensor<16xf32>) -> tensor<1x6x16xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0.000000e+00 : f64
    %cst_1 = arith.constant 1.000000e-05 : f64
    %cst_2 = arith.constant 1.600000e+01 : f64
    %cst_3 = arith.constant 1.600000e+01 : f32
    %0 = tensor.empty() : tensor<1x6x16xf64>
    %1 = linalg.generic {indexing_maps = [#map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0 : tensor<1x6x16xf32>) outs(%0 : tensor<1x6x16xf64>) {
    ^bb0(%in: f32, %out: f64):
      %18 = arith.extf %in : f32 to f64
      linalg.yield %18 : f64
    } -> tensor<1x6x16xf64>
    %2 = tensor.empty() : tensor<1x6x1xf64>
    %3 = linalg.fill ins(%cst_0 : f64) outs(%2 : tensor<1x6x1xf64>) -> tensor<1x6x1xf64>
    %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%1 : tensor<1x6x16xf64>) outs(%3 : tensor<1x6x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %18 = arith.addf %in, %out : f64
      linalg.yield %18 : f64
    } -> tensor<1x6x1xf64>
    %5 = linalg.generic {indexing_maps = [#map3, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%4 : tensor<1x6x1xf64>) outs(%2 : tensor<1x6x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %18 = arith.divf %in, %cst_2 : f64
      linalg.yield %18 : f64
    } -> tensor<1x6x1xf64>
    %6 = linalg.generic {indexing_maps = [#map2, #map3, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%1, %5 : tensor<1x6x16xf64>, tensor<1x6x1xf64>) outs(%0 : tensor<1x6x16xf64>) {
    ^bb0(%in: f64, %in_4: f64, %out: f64):
      %18 = arith.subf %in, %in_4 : f64
      linalg.yield %18 : f64
    } -> tensor<1x6x16xf64>
    %7 = linalg.generic {indexing_maps = [#map2, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6, %6 : tensor<1x6x16xf64>, tensor<1x6x16xf64>) outs(%0 : tensor<1x6x16xf64>) {
    ^bb0(%in: f64, %in_4: f64, %out: f64):
      %18 = arith.mulf %in, %in_4 : f64
      linalg.yield %18 : f64
    } -> tensor<1x6x16xf64>
    %8 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%7 : tensor<1x6x16xf64>) outs(%3 : tensor<1x6x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %18 = arith.addf %in, %out : f64
      linalg.yield %18 : f64
    } -> tensor<1x6x1xf64>
    %9 = linalg.generic {indexing_maps = [#map3, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%8 : tensor<1x6x1xf64>) outs(%2 : tensor<1x6x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %18 = arith.divf %in, %cst_2 : f64
      linalg.yield %18 : f64
    } -> tensor<1x6x1xf64>
    %10 = tensor.empty() : tensor<1x6x1xf32>
    %11 = linalg.generic {indexing_maps = [#map3, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%9 : tensor<1x6x1xf64>) outs(%10 : tensor<1x6x1xf32>) {
    ^bb0(%in: f64, %out: f32):
      %18 = arith.truncf %in : f64 to f32
      linalg.yield %18 : f32
    } -> tensor<1x6x1xf32>
    %12 = linalg.fill ins(%cst : f32) outs(%10 : tensor<1x6x1xf32>) -> tensor<1x6x1xf32>
    %13 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0 : tensor<1x6x16xf32>) outs(%12 : tensor<1x6x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %18 = arith.addf %in, %out : f32
      linalg.yield %18 : f32
    } -> tensor<1x6x1xf32>
    %14 = linalg.generic {indexing_maps = [#map3, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%13 : tensor<1x6x1xf32>) outs(%10 : tensor<1x6x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %18 = arith.divf %in, %cst_3 : f32
      linalg.yield %18 : f32
    } -> tensor<1x6x1xf32>
    %15 = linalg.generic {indexing_maps = [#map3, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%11 : tensor<1x6x1xf32>) outs(%10 : tensor<1x6x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %18 = arith.truncf %cst_1 : f64 to f32
      %19 = arith.addf %in, %18 : f32
      %20 = math.rsqrt %19 : f32
      linalg.yield %20 : f32
    } -> tensor<1x6x1xf32>
    %16 = tensor.empty() : tensor<1x6x16xf32>
    %17 = linalg.generic {indexing_maps = [#map2, #map3, #map3, #map4, #map4, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %14, %15, %arg1, %arg2 : tensor<1x6x16xf32>, tensor<1x6x1xf32>, tensor<1x6x1xf32>, tensor<16xf32>, tensor<16xf32>) outs(%16 : tensor<1x6x16xf32>) {
    ^bb0(%in: f32, %in_4: f32, %in_5: f32, %in_6: f32, %in_7: f32, %out: f32):
      %18 = arith.subf %in, %in_4 : f32
      %19 = arith.mulf %18, %in_5 : f32
      %20 = arith.mulf %19, %in_6 : f32
      %21 = arith.addf %20, %in_7 : f32
      linalg.yield %21 : f32
    } -> tensor<1x6x16xf32>
    return %17 : tensor<1x6x16xf32>
  }
}
