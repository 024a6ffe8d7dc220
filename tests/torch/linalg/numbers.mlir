#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0) -> ()>
#map2 = affine_map<() -> ()>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1) -> (d0)>
module {
  ml_program.global private mutable @global_seed(dense<0> : tensor<i64>) : tensor<i64>
  func.func @main(%arg0: tensor<6xf32>, %arg1: tensor<4x6xf32>, %arg2: tensor<f32>) -> (tensor<f32>, tensor<6xi64>, tensor<4xi64>, tensor<6xi1>, tensor<6xf32>) {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %c2_i64 = arith.constant 2 : i64
    %c3_i64 = arith.constant 3 : i64
    %c0_i64 = arith.constant 0 : i64
    %cst_1 = arith.constant 1.000000e-01 : f64
    %cst_2 = arith.constant dense<5.000000e-01> : tensor<f64>
    %0 = tensor.empty() : tensor<6xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<6xf32>) outs(%0 : tensor<6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %14 = math.fpowi %in, %c2_i64 : f32, i64
      linalg.yield %14 : f32
    } -> tensor<6xf32>
    %2 = tensor.empty() : tensor<f32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<f32>) -> tensor<f32>
    %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction"]} ins(%1 : tensor<6xf32>) outs(%3 : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %14 = arith.addf %in, %out : f32
      linalg.yield %14 : f32
    } -> tensor<f32>
    %5 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = []} ins(%4, %arg2 : tensor<f32>, tensor<f32>) outs(%2 : tensor<f32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %14 = arith.truncf %cst_1 : f64 to f32
      %15 = arith.mulf %in_3, %14 : f32
      %16 = arith.addf %in, %15 : f32
      linalg.yield %16 : f32
    } -> tensor<f32>
    %6 = tensor.empty() : tensor<6xi64>
    %7 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%6 : tensor<6xi64>) {
    ^bb0(%out: i64):
      %14 = linalg.index 0 : index
      %15 = arith.index_cast %14 : index to i64
      %16 = arith.muli %15, %c3_i64 : i64
      %17 = arith.addi %16, %c2_i64 : i64
      linalg.yield %17 : i64
    } -> tensor<6xi64>
    %8 = tensor.empty() : tensor<4xi64>
    %9 = linalg.fill ins(%c0_i64 : i64) outs(%8 : tensor<4xi64>) -> tensor<4xi64>
    %10 = tensor.empty() : tensor<4xf32>
    %11 = linalg.fill ins(%cst_0 : f32) outs(%10 : tensor<4xf32>) -> tensor<4xf32>
    %12:2 = linalg.generic {indexing_maps = [#map3, #map4, #map4], iterator_types = ["parallel", "reduction"]} ins(%arg1 : tensor<4x6xf32>) outs(%11, %9 : tensor<4xf32>, tensor<4xi64>) {
    ^bb0(%in: f32, %out: f32, %out_3: i64):
      %14 = linalg.index 1 : index
      %15 = arith.index_cast %14 : index to i64
      %16 = arith.maximumf %in, %out : f32
      %17 = arith.cmpf ogt, %in, %out : f32
      %18 = arith.select %17, %15, %out_3 : i64
      linalg.yield %16, %18 : f32, i64
    } -> (tensor<4xf32>, tensor<4xi64>)
    %13 = tensor.empty() : tensor<6xi1>
    %19 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<6xf32>) outs(%13 : tensor<6xi1>) {
    ^bb0(%in: f32, %out: i1):
      %14 = arith.cmpf ogt, %in, %cst : f32
      linalg.yield %14 : i1
    } -> tensor<6xi1>
    %20 = linalg.generic {indexing_maps = [#map, #map, #map1, #map], iterator_types = ["parallel"]} ins(%7, %arg0, %cst_2 : tensor<6xi64>, tensor<6xf32>, tensor<f64>) outs(%0 : tensor<6xf32>) {
    ^bb0(%in: i64, %in_3: f32, %in_4: f64, %out: f32):
      %14 = arith.sitofp %in : i64 to f32
      %15 = arith.truncf %in_4 : f64 to f32
      %16 = arith.mulf %14, %15 : f32
      %17 = math.floor %16 : f32
      %18 = math.powf %17, %15 : f32
      %21 = arith.addf %18, %in_3 : f32
      %22 = math.absf %21 : f32
      %23 = math.log1p %22 : f32
      linalg.yield %23 : f32
    } -> tensor<6xf32>
    return %5, %7, %12#1, %19, %20 : tensor<f32>, tensor<6xi64>, tensor<4xi64>, tensor<6xi1>, tensor<6xf32>
  }
}
